"""Hand down: turn a scan along an axis that is not the last into one program that reads memory once.

Note [Hand down]. A position takes a chunk of one column, and publishes words as those of Note [Look-back] do. Of ROWS
chunks there are published, by the words of `fusec.passes.tagged_words`:

* the carry behind each chunk: the totals up to its own, from left to right; of the first chunk that is its total;
* the total of every other chunk, as soon as it is known;
* the result behind the last of them: of the scan of such carries, which are the totals of ROWS chunks.

A left fold has the same bits wherever it is picked up. So a position looks at the AT_ONCE chunks before its own, and
folds totals onto the nearest carry as soon as there are a carry and all totals behind it. It loads their words
together, and a carry need not go from chunk to chunk. Positions wait only for chunks before their own: in blocks that
have started, as blocks number themselves (`fusec.ir.scans.TURN`), and in other groups of threads, as there are at least
GROUP neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, apply
from fusec.ir.scans import RECORDS_DOWN, ROWS, Scan
from fusec.ir.walk import Body
from fusec.passes import Loops
from fusec.passes.affine import int64, minus, over, plus, rest, test, unrolled
from fusec.passes.one_pass import OnePass
from fusec.passes.scan_columns import ColumnScan
from fusec.passes.tagged_words import are_stored, unpacked

AT_ONCE = 4  # words of carries, and of totals, that a thread looks at


def scan_down_in_one_pass(scan: Scan, loops: Loops) -> ir.Program:
    """The program over positions whose coordinate along the axis is the number of the chunk.

    Requires: all arrays have their own strides along the axis, but for TURN, which has one element; SEEN has
    `published` words along it, all 0; there are at least GROUP columns along the axes behind; `fits_one_pass`. Ensures:
    Note [Scan order]; AXIS, the axis's extent, is a further scalar parameter.
    """
    return _ColumnsInOnePass(scan, loops).program()


class _ColumnsInOnePass(OnePass, ColumnScan):
    before, many = ir.Local("_before", INT64), ir.Local("_many", INT64)
    """The chunk before, and the number of the ROWS chunks that it is one of."""

    records, plain = RECORDS_DOWN, ColumnScan

    @property
    def slots(self) -> int:
        """Elements of a chunk that a position holds."""
        return ROWS

    def combine_held(self) -> Body:
        """Scan the elements that are held; `_carry0_` is the total of the chunk."""
        run, at, carry = self.run, ir.Local("_round", INT64), "_carry0_"
        here = self.held(at)
        joined = run.join(carry, run.variable(carry), here)
        first = ir.If(test("greater", at, 0), tuple(joined), tuple(run.assign(carry, here)))
        return unrolled(at.name, self.slots, (first, *self.kept(at, run.variable(carry))))

    def publish_total(self) -> Body:
        """Publish `_carry0_` for the chunks behind."""
        place, total = rest(self.chunk, ROWS), self.run.variable("_carry0_")
        record = apply("where", test("greater", place, 0), plus(place, ROWS), place)
        return self.publish(over(self.chunk, ROWS), record, total)

    def look(self) -> list[ir.Stmt]:
        """Set `_prefix1_` to the scanned totals up to the chunk before, and publish the carry and the result behind."""
        run, carry, prefix, end = self.run, self.run.variable("_carry1_"), "_prefix1_", "_end_"
        place, is_later = rest(self.chunk, ROWS), test("greater", self.many, 0)
        publish = self.publish(self.many, place, run.variable(end))
        code = [
            ir.Declare(self.before.name, INT64, minus(self.chunk, 1)),
            ir.Declare(self.many.name, INT64, over(self.before, ROWS)),
            *run.declare("_carry1_"),
            *self._nearest(),
            *run.declare(end),
            ir.If(test("greater", place, 0), (*run.join(end, carry, run.variable("_carry0_")), *publish)),
            *run.assign(prefix, carry),
        ]
        if self.levels == 1:
            return code
        result = self.awaited("_prefix2_", minus(self.many, 1), self.records - 1)
        above = run.variable("_prefix2_")
        ends = test("equal", place, ROWS - 1)
        last = ir.If(ends, tuple(run.join(end, above, run.variable(end))))
        behind = self.publish(self.many, self.records - 1, run.variable(end))
        later = (*result, *run.join(prefix, above, run.variable(prefix)), last)
        return [*code, ir.If(is_later, later), ir.If(ends, behind)]

    def _nearest(self) -> list[ir.Stmt]:
        """Set `_carry1_` to the carry behind the chunk before, once there are words to fold it from."""
        within, declared, loads = rest(self.before, ROWS), list[ir.Stmt](), list[ir.Stmt]()

        def seen(name: str, record: Expr) -> list[Expr]:
            names, observed, words = self.observed(name, self.many, record)
            declared.extend(names)
            loads.extend(observed)
            return words

        distances = range(max(1, AT_ONCE // self.words))
        places = [apply("where", test("less", within, back), int64(0), minus(within, back)) for back in distances]
        carries = [seen(f"_carry{back}w", place) for back, place in enumerate(places)]
        totals = [seen(f"_total{back}w", plus(place, ROWS)) for back, place in enumerate(places[:-1])]
        is_known = are_stored(carries[-1])
        for carry, total in zip(carries[-2::-1], totals[::-1], strict=True):  # the first chunk of ROWS has no total
            is_known = apply("logical_or", are_stored(carry), apply("logical_and", are_stored(total), is_known))
        wait = ir.While(apply("logical_not", is_known), tuple(loads), test_first=False)
        return [*declared, wait, *self._folded(carries, totals)]

    def _folded(self, carries: Sequence[list[Expr]], totals: Sequence[list[Expr]]) -> list[ir.Stmt]:
        """Set `_carry1_` to the first carry that there is, with the totals of the chunks behind it folded onto it."""
        run, carry = self.run, "_carry1_"
        found = run.assign(carry, unpacked(carries[0], self.dtypes))
        if not totals:
            return found
        joined = run.join(carry, run.variable(carry), unpacked(totals[0], self.dtypes))
        return [ir.If(are_stored(carries[0]), tuple(found), (*self._folded(carries[1:], totals[1:]), *joined))]
