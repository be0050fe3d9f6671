"""Loops over a program whose interior is separate from its borders: `fusec.passes.peel_borders` defines its parts.

Along a row the border's elements come one by one, as do those of narrow rows; all others in vectors without any test,
whose neighbours are plain loads beside them. Elements may be computed twice, so whole vectors overlap rather than leave
a rest: the last one of a row ends with the row, the first shares elements with the one that begins a cache line.

Rows that lie one above the other are taken several at once, so that what they all read is loaded once: a 3x3 window
over six rows loads 24 vectors instead of 54. What comes next is asked for ahead of time.

Note [Stores]. Rows are often a multiple of 4096 bytes long and begin where pages do, those of inputs and outputs alike.
A load is then taken to depend on a store before it that has the same lower 12 bits of the address, and neighbours are
loaded from everywhere around: results wait in registers until the next vectors are loaded, which halves the time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fusec.base.kernel_abi import Layout
from fusec.base.records import dataclass
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.cost import Costs
from fusec.codegen.llvm.lanes import choose_lanes, hot_bits
from fusec.codegen.llvm.memory import Lanes
from fusec.codegen.llvm.neighbours import Columns, InnerSite, neighbours_of
from fusec.codegen.llvm.nest import LINE, Nest, Row, RowSite, Tail
from fusec.codegen.llvm.shifted import Shifted, can_shift
from fusec.codegen.llvm.values import FALSE, TRUE, Builder, Value, integer
from fusec.ir.loops import Program
from fusec.passes.peel_borders import Peeled, peel_borders
from fusec.passes.unroll_and_jam import loads_of, unroll_and_jam

_ROWS = (6, 4, 3, 2)  # taken together, and then what is left of them by half as many or less
_REGISTERS = 6  # for one value of all rows, of 32; a third of that where there are 16, of fewer lanes
_NEAR = 1 << 23  # bytes; of arrays up to here, asking ahead costs 5 to 10 %; of twice as much, it gains 15
_ALIKE = 1 << 12  # bytes; addresses that are so far apart share a set of the first cache, of 8 or 12 lines
_WORK = 240  # operations of all rows together: beyond, their values leave the registers


@dataclass(frozen=True)
class RowParts:
    """A split program with what takes several rows of its interior at once: how many, and the program, most first."""

    peeled: Peeled
    stacked: tuple[tuple[int, Program], ...]

    @property
    def rows(self) -> int:
        """The most rows that are taken at once."""
        return self.stacked[0][0] if self.stacked else 1


def parts_of(program: Program, ndim: int, vector_bits: int) -> RowParts | None:
    """The parts of a program if it has any, with as many rows together as share loads and fit the registers."""
    found = peel_borders(program, ndim)
    if found is None:
        return None
    interior, axis = found.interior, ndim - 2
    loads = loads_of(interior.body)
    most = _REGISTERS // _registers(interior, vector_bits) // (1 if vector_bits >= 512 else 3)
    chosen: list[tuple[int, Program]] = []
    for rows in _ROWS if axis >= 0 else ():
        stacked = unroll_and_jam(interior, axis, rows) if rows <= most else None
        if stacked is None or Costs(stacked.functions).of_body(stacked.body) > _WORK:
            continue
        if loads_of(stacked.body) < loads * rows:
            chosen.append((rows, stacked))
            most = rows // 2
    return RowParts(found, tuple(chosen[:2]))


def _registers(program: Program, vector_bits: int) -> int:
    """Vector registers that a value takes, of as many lanes as `lanes_of` says for several rows."""
    return max(1, _line(program) * hot_bits(program) // max(vector_bits, 1))


def _line(program: Program) -> int:
    """Elements of which every output fills a cache line."""
    return max((LINE // param.dtype.nbytes for param in program.arrays if param.written), default=1)


def lanes_of(work: RowParts | Program, layout: Layout, vector_bits: int) -> int:
    """Elements of a vector: one register where several rows are in flight, but a cache line of every output."""
    if isinstance(work, Program):
        return choose_lanes(work, layout, vector_bits)
    interior = work.peeled.interior
    lanes = choose_lanes(interior, layout, vector_bits)
    if work.rows == 1 or lanes == 1:
        return lanes
    return min(lanes, max(vector_bits // hot_bits(interior), _line(interior)))


class SplitNest(Nest):
    """Writes the loops of a split program."""

    def __init__(
        self, parts: RowParts, whole: Program, layout: Layout, builder: Builder, arguments: KernelSlots
    ) -> None:
        super().__init__(whole, layout, builder, arguments)
        self.parts = parts
        self.peeled = parts.peeled
        self.raw = sorted({name for name, _ in neighbours_of(parts.peeled.interior, layout)})

    def tail_for(self, cost: int, vector_bits: int) -> Tail:
        """Vectors at the end of a row's interior begin earlier, and compute some elements again."""
        del cost, vector_bits
        return "overlapping"

    # --- rows ----------------------------------------------------------------------------------------------------

    def _walk_rows(self, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """Several whole rows of the interior, or one or less of any kind."""
        if not self.parts.stacked:
            return super()._walk_rows(at, left)
        b, done = self.b, self.b.label("walked")
        slots = [b.alloca("i64") for _ in range(2)]
        begins = b.compare("icmp eq", at[-1], integer(0))
        inside = b.binary("and", self._is_inside(at[:-1]), begins)

        def finish(found: tuple[Value, Value]) -> None:
            for slot, value in zip(slots, found, strict=True):
                b.write_slot(slot, value)
            b.jump(done)

        for rows, program in self.parts.stacked:
            several, fewer = b.label("several"), b.label("fewer")
            fits = b.binary("and", inside, self._has_rows(rows, at, left))
            if rows == self.parts.rows and len(self.parts.stacked) > 1:
                fits = b.binary("and", fits, b.invert(self._shares_sets()))
            b.fork(fits, several, fewer)
            b.place(several)
            finish(self._several_rows(rows, program, at, left))
            b.place(fewer)
        finish(super()._walk_rows(at, left))
        b.place(done)
        count, taken = (b.read_slot(slot) for slot in slots)
        return count, taken

    def _has_rows(self, rows: int, at: tuple[Value, ...], left: Value) -> Value:
        """Whether so many rows are left, of the interior and of what is to be done."""
        b = self.b
        last = b.binary("add", at[-2], integer(rows - 1))
        limit = b.binary("sub", self._extent(self.last - 1), integer(self.peeled.high[-2]))
        together = b.binary("mul", self._extent(self.last), integer(rows))
        return b.binary("and", b.compare("icmp slt", last, limit), b.compare("icmp sle", together, left))

    def _shares_sets(self) -> Value:
        """Whether all rows that are read and written lie in one set of the first cache, so that fewer are better.

        Those of images are often a power of two long. What goes around the caches needs no place there.
        """
        if self.layout.streaming or not self.raw:
            return FALSE
        stride = self.arguments.number("raw_stride", self.raw[0], self.last - 1)
        return self.b.compare("icmp eq", self.b.binary("and", stride, integer(_ALIKE - 1)), integer(0))

    def _several_rows(self, rows: int, program: Program, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """Rows that belong to the interior from their first column to their last."""
        b, extent = self.b, self._extent(self.last)
        first = b.binary("sub", Value("i64", "%hi"), left)
        row = self._describe_row(at[:-1], first)
        low, high = self._inner(row, integer(0), extent)
        some = b.compare("icmp slt", low, high)
        with b.when(lambda: some, "wide"):
            self._vectors(Columns(row, low, high, program, rows))

        def ends(number: str) -> None:
            here = (*at[:-2], b.binary("add", at[-2], Value("i64", number)))
            begin = b.binary("add", first, b.binary("mul", Value("i64", number), extent))
            self._ends(self._describe_row(here, begin), integer(0), low, high, extent)

        self._loop("0", 1, ends, str(rows))
        return b.binary("mul", extent, integer(rows)), integer(rows)

    def _is_inside(self, outer: tuple[Value, ...]) -> Value:
        """Whether a row is of the interior but for its ends."""
        b, inside = self.b, Value("i1", "true")
        for axis, coordinate in enumerate(outer):
            if self.peeled.low[axis]:
                least = integer(self.peeled.low[axis])
                inside = b.binary("and", inside, b.compare("icmp sge", coordinate, least))
            if self.peeled.high[axis]:
                limit = b.binary("sub", self._extent(axis), integer(self.peeled.high[axis]))
                inside = b.binary("and", inside, b.compare("icmp slt", coordinate, limit))
        return inside

    def _describe_row(self, outer: tuple[Value, ...], first: Value) -> Row:
        row = super()._describe_row(outer, first)
        b = self.b
        for name in self.raw:
            address = self.arguments.pointer(name, self.arrays[name].dtype).text
            for axis, coordinate in enumerate(outer):
                offset = b.binary("mul", coordinate, self.arguments.number("raw_stride", name, axis))
                address = b.at(address, offset.text)
            row.addresses[name] = Value("ptr", address)
        return row

    # --- one row -------------------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        """The columns inside as vectors, by what the row is; those at the ends one by one."""
        b, begin, stop = self.b, Value("i64", start), Value("i64", end)
        low, high = self._inner(row, begin, stop)
        after = b.label("after")
        some = b.compare("icmp slt", low, high)
        kinds = [(self._is_inside(row.coordinates), self.peeled.interior)]
        if self.last:
            kinds.append((Value("i1", "true"), self.peeled.edge))
        for condition, part in kinds:
            chosen, other = b.label("part"), b.label("other")
            b.fork(b.binary("and", some, condition), chosen, other)
            b.place(chosen)
            self._vectors(Columns(row, low, high, part))
            b.jump(after)
            b.place(other)
        b.jump(after)
        b.place(after)
        self._ends(row, begin, low, high, stop)

    def _inner(self, row: Row, start: Value, end: Value) -> tuple[Value, Value]:
        """The columns of a row that vectors take: of the interior, enough for one; else none, at the end."""
        b = self.b
        low = b.intrinsic("smax", start, integer(self.peeled.low[-1]))
        limit = b.binary("sub", self._extent(self.last), integer(self.peeled.high[-1]))
        high = b.intrinsic("smin", end, limit)
        width = b.binary("sub", high, low)
        whole = b.binary("add", low, b.binary("and", width, integer(-self.width)))
        high = b.select(self.is_in_place(row), whole, high)
        enough = b.compare("icmp sge", width, integer(self.width))
        return b.select(enough, low, end), b.select(enough, high, end)

    def _ends(self, row: Row, start: Value, low: Value, high: Value, end: Value) -> None:
        """The columns before `low` and from `high` on, one by one."""
        b = self.b
        slot, test, skip, work, done = b.alloca("i64"), *(b.label(stem) for stem in ("test", "skip", "work", "done"))
        b.write_slot(slot, b.select(b.compare("icmp eq", start, low), high, start))
        b.jump(test)
        b.place(test)
        position = b.read_slot(slot)
        b.fork(b.compare("icmp slt", position, end), work, done)
        b.place(work)
        width, b.lanes = b.lanes, 1
        self._body(RowSite(self, row, position.text), Lanes())
        b.lanes = width
        following = b.binary("add", position, integer(1))
        b.write_slot(slot, following)
        b.fork(b.compare("icmp eq", following, low), skip, test)
        b.place(skip)
        b.write_slot(slot, high)
        b.jump(test)
        b.place(done)

    def _vectors(self, columns: Columns) -> None:
        """Whole vectors of columns that hold one at least."""
        if not columns.part.body:
            return
        outputs = self._outputs()
        if columns.rows == 1 or not self.layout.streaming or not can_shift(self, outputs):
            self._one_after_the_other(columns, None)
            return
        b, alike = self.b, TRUE
        for name, _ in outputs:
            beyond = b.binary("and", self.arguments.number("stride", name, self.last - 1), integer(LINE - 1))
            alike = b.binary("and", alike, b.compare("icmp eq", beyond, integer(0)))

        def those_that_differ() -> None:
            shifted = Shifted(self, columns, outputs, b.invert(self.is_in_place(columns.row)))
            self._one_after_the_other(columns, shifted)

        self._either(alike, partial(self._one_after_the_other, columns, None), those_that_differ)

    def _one_after_the_other(self, columns: Columns, shifted: Shifted | None) -> None:
        """The vectors; shifted: what stores them where rows lie to their lines in different ways."""
        b, lanes = self.b, integer(self.width)
        row, low, high, rows = columns.row, columns.low, columns.high, columns.rows
        last = b.binary("sub", high, lanes)
        together, skew = None, integer(0)
        if self.layout.streaming and shifted is None:
            together, skew = self._lines(row, low, rows)
        is_far = self._is_far() if rows > 1 else FALSE
        slot, before, head, done = b.alloca("i64"), b.alloca("i64"), b.label("vector"), b.label("done")
        b.write_slot(slot, b.binary("sub", low, skew))
        b.jump(head)
        b.place(head)
        start = b.read_slot(slot)

        def site(start: Value, part: Program | None) -> InnerSite:
            position = b.intrinsic("smin", b.intrinsic("smax", start, low), last)
            streams = None if together is None else self._streams(together, skew, start, low, last)
            return InnerSite(self, row, position.text, streams, part)

        def store_those_before() -> None:
            started = b.read_slot(before)
            there = site(started, None)
            if shifted is not None:
                shifted.rest(there, results, b.intrinsic("smax", b.binary("sub", started, last), integer(0)))
                return
            for result in results:
                there.store(result)

        here = site(start, columns.part)
        if is_far != FALSE:
            self._either(is_far, lambda: here.ask_ahead(rows, self._extent(self.last)), lambda: None)
        self._body(here, Lanes(), columns.part)
        results = here.kept or []
        if results:
            is_first = b.compare("icmp eq", Value("i64", here.position), low)
            if shifted is None:
                self._either(is_first, lambda: None, store_those_before)
            else:
                whole = b.binary("and", shifted.around, b.compare("icmp eq", Value("i64", here.position), start))
                there = partial(site, b.read_slot(before), None)
                lines = partial(self._either, whole, lambda: shifted.lines(there(), results), store_those_before)
                self._either(is_first, lambda: shifted.begin(here, results), lines)
            for result in results:
                result.hold(b)
            b.write_slot(before, start)
        b.write_slot(slot, b.binary("add", start, lanes))
        b.fork(b.compare("icmp slt", Value("i64", here.position), last), head, done)
        b.place(done)
        if results:
            store_those_before()

    def _is_far(self) -> Value:
        """Whether the first input is more than a core has near by, so that it pays to ask for it ahead."""
        if self.layout.streaming:
            return TRUE
        if not self.raw:
            return FALSE
        stride = self.arguments.number("raw_stride", self.raw[0], 0)
        nbytes = self.b.binary("mul", self._extent(0), stride)
        return self.b.compare("icmp sgt", nbytes, integer(_NEAR))

    def _streams(self, together: Value, skew: Value, start: Value, low: Value, last: Value) -> Value:
        """Whether a vector goes around the caches: not where it shares a line with one that overlaps it.

        Those go through the caches, and to write a line in both ways takes as long as to write ten.
        """
        b, lanes = self.b, integer(self.width)
        is_aligned = b.compare("icmp eq", skew, integer(0))
        first = b.select(is_aligned, low, b.binary("add", low, lanes))
        before = b.compare("icmp sle", b.binary("add", start, lanes), last)
        alone = b.binary("or", before, b.compare("icmp eq", start, last))
        return b.binary("and", b.binary("and", together, alone), b.compare("icmp sge", start, first))

    def _either(self, condition: Value, then: Callable[[], None], orelse: Callable[[], None]) -> None:
        b, one, other, after = self.b, self.b.label("one"), self.b.label("other"), self.b.label("after")
        b.fork(condition, one, other)
        for label, write in ((one, then), (other, orelse)):
            b.place(label)
            write()
            b.jump(after)
        b.place(after)

    def _lines(self, row: Row, start: Value, rows: int) -> tuple[Value | None, Value]:
        """Whether outputs begin their cache lines together, and how many elements before `start` that is."""
        outputs = self._outputs()
        if not self._fill_lines():
            return None, integer(0)
        b, skew = self.b, integer(0)
        together = b.invert(self.is_in_place(row))
        for number, (name, dtype) in enumerate(outputs):
            address = b.address_of(row.addresses[name], dtype.nbytes, start.text)
            beyond = b.binary("and", address, integer(LINE - 1))
            count = b.binary("udiv", beyond, integer(dtype.nbytes))
            whole = b.compare("icmp eq", b.binary("mul", count, integer(dtype.nbytes)), beyond)
            together = b.binary("and", together, whole)
            if rows > 1:
                stride = b.binary("and", self.arguments.number("stride", name, self.last - 1), integer(LINE - 1))
                together = b.binary("and", together, b.compare("icmp eq", stride, integer(0)))
            if number:
                together = b.binary("and", together, b.compare("icmp eq", count, skew))
            else:
                skew = count
        return together, b.select(together, skew, integer(0))
