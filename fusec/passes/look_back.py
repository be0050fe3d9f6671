"""Look back: turn a scan along the last axis into one program that reads memory once.

Note [Look-back]. A group of positions takes a chunk, publishes its total, and learns from what others have published
what is before its chunk. Published are, by the words of `fusec.passes.tagged_words`:

* the total of every chunk;
* for every GROUP chunks their end, the last of their totals' scan by doubling distances, and the carry up to there: the
  ends of a large chunk (GROUPS times GROUP chunks) from left to right;
* for every large chunk its total, which is its last carry, and the result of the scan of these totals.

The order is that of Note [Scan order], whenever a word is seen: a total has one value, and a left fold has the same
bits wherever it is picked up. So a group folds ends onto the nearest carry that it sees, and which one this is depends
on the time, the bits do not. Groups wait only for chunks before their own, in blocks that have started: blocks take
chunks in the order in which they start (`fusec.ir.scans.TURN`), and publish a total before they wait.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import INT32, INT64, UINT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, apply, const
from fusec.ir.scans import GROUPS, RECORDS, SEEN, TURN, Scan, params_of
from fusec.ir.walk import Body
from fusec.passes import Loops
from fusec.passes.affine import int64, minus, over, plus, rest, test, times, unrolled
from fusec.passes.one_pass import OnePass
from fusec.passes.scan_rows import ELEMENTS, RowScan
from fusec.passes.tagged_words import are_stored, unpacked, word

END, CARRY, LARGE, RESULT = range(ir.GROUP, RECORDS)
"""The records of GROUP chunks behind their totals; the last two are those of the large chunk that ends there."""


def scan_in_one_pass(scan: Scan, loops: Loops) -> ir.Program:
    """The program over positions whose coordinate along the last axis is GROUP times the chunk, and the member.

    Requires: all arrays have their own strides along the axis, but for TURN, which has one element; SEEN has
    `published` words along it, all 0; `fits_one_pass`. Ensures: Note [Scan order]; AXIS, the axis's extent, is a
    further scalar parameter.
    """
    return _RowsInOnePass(scan, loops).program()


def clear(scan: Scan) -> ir.Program:
    """The program that sets the words of a scan, and the number of blocks that have started, to 0."""
    is_first = test("equal", ir.query("coordinate", 0), 0)
    seen, turn = (ir.Store(ir.element(name, UINT64), word(0)) for name in (SEEN, TURN))
    return ir.Program(scan.name, params_of(scan, "clear"), (seen, ir.If(is_first, (turn,))))


class _RowsInOnePass(OnePass, RowScan):
    records, plain = RECORDS, RowScan

    def __init__(self, scan: Scan, loops: Loops) -> None:
        super().__init__(scan, loops)
        self.batch = 1 if loops.held else self.batch  # of the last chunk alone
        self.lead = test("equal", self.member, 0)
        self.is_right = test("equal", self.member, ir.GROUP - 1)

    @property
    def slots(self) -> int:
        """Elements of a chunk that a position holds."""
        return GROUPS

    def combine_held(self) -> Body:
        """Scan the groups that are held; `_carry0_` is the total of the chunk."""
        run, at = self.run, ir.Local("_round", INT64)
        mine, last, carry = "_mineh", "_lasth", run.variable("_carry0_")
        joined = (*run.join(mine, carry, run.variable(mine)), *run.join("_carry0_", carry, run.variable(last)))
        scan = (
            *run.declare(mine, self.held(at)),
            *self._scanned(mine, "_theirsh", last),
            ir.If(test("greater", at, 0), joined, tuple(run.assign("_carry0_", run.variable(last)))),
            *self.kept(at, run.variable(mine)),
        )
        return unrolled(at.name, GROUPS, scan)

    def publish_total(self) -> Body:
        """Publish `_carry0_` for the chunks behind."""
        return self._lead(over(self.chunk, ir.GROUP), rest(self.chunk, ir.GROUP), self.run.variable("_carry0_"))

    def _lead(self, number: Expr, record: Expr | int, values: Sequence[Expr]) -> Body:
        """One member of the group publishes values."""
        return (ir.If(self.lead, self.publish(number, record, values)),)

    # --- what is before the chunk --------------------------------------------------------------------------------

    def look(self) -> list[ir.Stmt]:
        """Set `_prefix1_` to the scanned totals up to the chunk before, and publish what this chunk is the last of.

        The members hold the totals of GROUP chunks, so that the newest is that of the last member.
        """
        run, before, number, within = self.run, ir.Local("_before", INT64), ir.Local("_many", INT64), self._within
        total, carry, whole = (run.variable(name) for name in ("_total_", "_carry1_", "_prefix2_"))
        first = minus(int64(ir.GROUP - 1), rest(before, ir.GROUP))  # where the first of the totals is
        place = minus(plus(rest(before, ir.GROUP), self.member), ir.GROUP - 1)
        is_there = test("greater_equal", self.member, first)
        ends = test("equal", rest(self.chunk, ir.GROUP), ir.GROUP - 1)
        is_later, above = test("greater", within, 0), over(before, ELEMENTS)
        result = "_prefix1_"
        return [
            ir.Declare(before.name, INT64, minus(self.chunk, 1)),
            ir.Declare(number.name, INT64, over(before, ir.GROUP)),
            *self.awaited("_totals", number, place, is_there),
            *run.declare("_work1_", run.variable("_totals")),
            *self._scanned("_work1_", "_theirs1_", "_total_", first),
            *run.declare("_end_"),
            ir.If(ends, tuple(self._end())),
            *run.declare("_carry1_"),
            ir.If(is_later, tuple(self._carry())),
            ir.If(ends, tuple(self._ended())),
            *run.assign(result, total),
            ir.If(is_later, tuple(run.join(result, carry, run.variable(result)))),
            *(self._above(above, whole) if self.levels > 1 else []),
        ]

    @property
    def _within(self) -> Expr:
        """How many times GROUP chunks there are in the large chunk before those of the chunk before."""
        return rest(ir.Local("_many", INT64), GROUPS)

    def _end(self) -> list[ir.Stmt]:
        """The total of this chunk is the last of GROUP: set `_end_`, and publish it."""
        run = self.run
        own = tuple(run.assign("_all", run.variable("_carry0_")))
        code = [*run.shuffled("_all", run.variable("_totals"), 1), ir.If(self.is_right, own)]
        code += [*self._scanned("_all", "_theirs2_", "_last2_"), *run.assign("_end_", run.variable("_last2_"))]
        return [*code, *self._lead(ir.Local("_many", INT64), END, run.variable("_end_"))]

    def _ended(self) -> list[ir.Stmt]:
        """Publish the carry up to this chunk; of the first ends of a large chunk, that is the end itself."""
        run, number = self.run, ir.Local("_many", INT64)
        joined = run.join("_end_", run.variable("_carry1_"), run.variable("_end_"))
        publish = self._lead(number, CARRY, run.variable("_end_"))
        code: list[ir.Stmt] = [ir.If(test("greater", self._within, 0), (*joined, *publish))]
        if self.levels > 1:
            code.append(ir.If(test("equal", self._within, GROUPS - 1), tuple(self._large())))
        return code

    def _carry(self) -> list[ir.Stmt]:
        """Set `_carry1_` to the carry before these GROUP chunks: the nearest one that is there, and ends folded on it.

        The members look at as many ends, of which the newest is that of the last member.
        """
        run, within = self.run, self._within
        ready, theirs, found, steps = (ir.Local(f"_{name}", INT32) for name in ("ready", "others", "found", "steps"))
        one, zero = const(1, INT32), const(0, INT32)
        number = plus(minus(ir.Local("_many", INT64), ir.GROUP), self.member)
        oldest = minus(int64(ir.GROUP), within)
        is_oldest = test("equal", self.member, oldest)
        declared, carries, carry_words = self.observed("_carryw", number, CARRY)
        more, ends, end_words = self.observed("_endw", number, END)
        either = apply("logical_or", are_stored(carry_words), are_stored(end_words))
        wait = ir.While(apply("logical_not", either), (*carries, *ends), test_first=False)
        acc, end = "_folded", "_ends"
        has_carry = are_stored(carry_words)
        look = (
            wait,
            *run.assign(end, unpacked(end_words, self.dtypes)),
            *run.assign(acc, run.variable(end)),
            ir.If(has_carry, tuple(run.assign(acc, unpacked(carry_words, self.dtypes)))),
            ir.Assign(ready.name, apply("where", apply("logical_or", has_carry, is_oldest), one, zero)),
        )
        is_next = apply("logical_and", test("greater", self.member, oldest), apply("less", ready, theirs))
        joined = (*run.join(acc, run.variable("_left"), run.variable(end)), ir.Assign(ready.name, one))
        fold = (
            ir.Shuffle(theirs.name, ready, -1),
            *run.shuffle("_left", run.variable(acc), -1),
            ir.If(apply("logical_and", test("greater", self.member, 0), is_next), joined),
            ir.Shuffle(found.name, ready, ir.LAST),
        )
        going = apply("logical_and", apply("equal", found, zero), apply("less", steps, const(ir.GROUP - 1, INT32)))
        body = (
            ir.If(test("greater_equal", self.member, oldest), look),
            ir.Assign(steps.name, zero),
            ir.Shuffle(found.name, ready, ir.LAST),
            ir.While(going, fold, (ir.Assign(steps.name, apply("add", steps, one)),)),
        )
        return [
            *(ir.Declare(each.name, INT32) for each in (ready, theirs, found, steps)),
            *declared,
            *more,
            *run.declare(acc),
            *run.declare(end),
            *run.declare("_left"),
            ir.While(apply("equal", found, zero), body, test_first=False),
            *run.shuffle("_carry1_", run.variable(acc), ir.LAST),
        ]

    # --- large chunks --------------------------------------------------------------------------------------------

    @staticmethod
    def _last_of(large: Expr) -> Expr:
        """The last GROUP chunks of a large chunk, which have its records."""
        return plus(times(large, GROUPS), GROUPS - 1)

    def _above(self, above: Expr, whole: Sequence[Expr]) -> list[ir.Stmt]:
        """Combine the prefix with the large chunks before."""
        result = "_prefix1_"
        found = self.awaited("_prefix2_", self._last_of(minus(above, 1)), RESULT)
        joined = self.run.join(result, whole, self.run.variable(result))
        return [ir.If(test("greater", above, 0), (*found, *joined))]

    def _large(self) -> list[ir.Stmt]:
        """`_end_` is the total of a large chunk: publish it, and the result of the scan of these totals.

        Their carry is the result for the last one before: there are no larger chunks.
        """
        run, large, number = self.run, over(self.chunk, ELEMENTS), ir.Local("_many", INT64)
        place = rest(large, ir.GROUP)
        first = minus(int64(ir.GROUP - 1), place)
        theirs = plus(minus(large, ir.GROUP - 1), self.member)
        is_there = test("greater_equal", self.member, first)
        is_other = apply("logical_and", is_there, test("less", self.member, ir.GROUP - 1))
        own, result = tuple(run.assign("_larges", run.variable("_end_"))), "_result2_"
        before = minus(minus(large, place), 1)
        carried = (
            *self.awaited("_carry2_", self._last_of(before), RESULT),
            *run.join(result, run.variable("_carry2_"), run.variable(result)),
        )
        return [
            *self._lead(number, LARGE, run.variable("_end_")),
            *self.awaited("_larges", self._last_of(theirs), LARGE, is_other),
            ir.If(self.is_right, own),
            *self._scanned("_larges", "_theirs3_", result, first),
            ir.If(test("greater_equal", before, 0), carried),
            *self._lead(number, RESULT, run.variable(result)),
        ]
