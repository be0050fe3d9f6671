"""Rows that begin in the middle of a cache line, written around the caches all the same.

Stores around the caches want whole lines. Where a row is no multiple of a line, the next one lies to its lines in
another way, and vectors of several rows together cannot all begin where lines do. So they are computed where they come,
and a line is put together of two that follow one another, by one permutation of registers. What lies before the first
line of a row and behind its last one goes through the caches, under masks: to write a line in both ways takes as long
as to write ten.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Step
from fusec.base.records import dataclass
from fusec.codegen.llvm.lookup import PERMUTE_TWO
from fusec.codegen.llvm.memory import Lanes, store
from fusec.codegen.llvm.neighbours import Columns, InnerSite, Result
from fusec.codegen.llvm.nest import LINE, Nest
from fusec.codegen.llvm.values import Builder, Value, integer


@dataclass(frozen=True)
class Shift:
    """How a row lies to its lines. ahead: elements of a vector before a line begins. picks: what makes up that line."""

    ahead: Value
    picks: Value


def can_shift(nest: Nest, outputs: Sequence[tuple[str, DType]]) -> bool:
    """Whether the target permutes two registers, each of them a line of every output."""
    return nest.b.options.permutes == 8 * LINE and all(
        nest.inner[name] is Step.UNIT
        and not dtype.is_complex
        and dtype.nbytes in (4, 8)
        and nest.width * dtype.nbytes == LINE
        for name, dtype in outputs
    )


class Shifted:
    """The rows of some outputs, from a column on; around: whether lines may be written around the caches at all."""

    def __init__(self, nest: Nest, columns: Columns, outputs: Sequence[tuple[str, DType]], allowed: Value) -> None:
        self.nest, self.around = nest, allowed
        found: dict[tuple[str, int], Value] = {}
        b, row, rows = nest.b, columns.row, columns.rows
        for name, dtype in outputs:
            first = b.let(
                f"getelementptr [{dtype.nbytes} x i8], ptr {row.addresses[name].text}, i64 {columns.low.text}"
            )
            address = Value("i64", b.let(f"ptrtoint ptr {first} to i64"))
            for number in range(rows):
                beyond = b.binary("and", address, integer(dtype.nbytes - 1))
                self.around = b.binary("and", self.around, b.compare("icmp eq", beyond, integer(0)))
                nbytes = b.binary("and", b.binary("sub", integer(0), address), integer(LINE - 1))
                found[name, number] = b.binary("udiv", nbytes, integer(dtype.nbytes))
                if rows > 1:
                    stride = nest.arguments.number("stride", name, nest.layout.ndim - 2)
                    address = b.binary("add", address, stride)
        self.shifts = {key: self._shift(b.select(self.around, ahead, integer(0))) for key, ahead in found.items()}

    def _shift(self, ahead: Value) -> Shift:
        b = self.nest.b
        kind = f"i{8 * LINE // b.lanes}"
        picks = b.binary("add", Value(kind, b.iota(kind), varying=True), b.cast_integer(ahead, kind))
        return Shift(ahead, picks)

    # --- stores --------------------------------------------------------------------------------------------------

    def begin(self, site: InnerSite, results: Sequence[Result]) -> None:
        """Store what lies before the first line of each row."""
        for result in results:
            ahead = self.shifts[result.param, result.row].ahead
            self._masked(site, result, self._lanes("icmp ult", ahead), result.value[0])

    def lines(self, before: InnerSite, results: Sequence[Result]) -> None:
        """Store the lines that begin in the vectors before and end in those of now."""
        b = self.nest.b
        for result in results:
            shift = self.shifts[result.param, result.row]
            (old,), (new,) = result.held(b), result.value
            line = permuted(b, old, shift.picks, new)
            nbytes = b.binary("mul", shift.ahead, integer(LINE // b.lanes))
            address = before.place(result, nbytes).linear
            assert address is not None, "rows whose elements lie side by side"
            b.line(f"store {b.typed(line)}, ptr {address.base}, align {LINE}, !nontemporal !0")

    def rest(self, before: InnerSite, results: Sequence[Result], over: Value) -> None:
        """Store what is left of the vectors before, but for lanes that others have stored, if `over` is not 0."""
        b = self.nest.b
        for result in results:
            ahead = self.shifts[result.param, result.row].ahead
            first = b.select(b.compare("icmp eq", over, integer(0)), ahead, over)
            (held,) = result.held(b)
            self._masked(before, result, self._lanes("icmp uge", first), held)

    def _lanes(self, op: str, bound: Value) -> Lanes:
        b = self.nest.b
        return Lanes(b.compare(op, Value("i32", b.iota("i32"), varying=True), b.cast_integer(bound, "i32")))

    def _masked(self, site: InnerSite, result: Result, lanes: Lanes, value: Value) -> None:
        dtype = self.nest.arrays[result.param].dtype
        store(self.nest.b, site.place(result, integer(0)), (value,), dtype, lanes)


def permuted(b: Builder, low: Value, picks: Value, high: Value) -> Value:
    """A register of the lanes of two that a third one numbers."""
    found = b.call(b.type_of(low), PERMUTE_TWO[low.type], b.typed(low), b.typed(picks), b.typed(high))
    return Value(low.type, found, varying=True)
