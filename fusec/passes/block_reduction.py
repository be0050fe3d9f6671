"""Block reduction: turn a reduction along the last axis into a program in which blocks of threads share the chunks.

This is the twin of `group_reduction` for too few chunks to keep a device busy with groups. Every lane of a chunk has
`segments` threads. Each computes the values of the lane's elements in some consecutive rounds, and all do so at once.
Then the lane is handed from thread to thread, and each combines it with its own values. So elements are taken in the
same order as without segments. In the end every group of the block combines the lanes, and all threads know the result.
"""

from __future__ import annotations

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, apply
from fusec.ir.reductions import ROUNDS, ReductionIR, Stage
from fusec.ir.walk import Body
from fusec.passes.affine import Running, counted, int64, plus, rest, test, times
from fusec.passes.ahead import Arrays, RoundsAhead
from fusec.passes.group_reduction import CHUNK, MEMBER, Cooperation, GroupLanes
from fusec.passes.held_elements import HeldSlots

SEGMENT, LANE = "_segment", "_lane"
"""Locals: the number of this thread among those of its lane, and the lane."""


def reduce_in_blocks(
    reduction: ReductionIR, axis: int, segments: int, rounds: int = 0, is_full: bool = False
) -> ir.Program:
    """The program over positions whose coordinate along `axis`, the last one, is the chunk: a block for each.

    segments: threads of each lane, a power of two. rounds, is_full: as for `reduce_in_groups`; a multiple of the
    segments. Requires: what that requires, and at most `ROUNDS` segments. Ensures: what that ensures, and so the same
    order.
    """
    return _Blocks(reduction, axis, segments, rounds, is_full).program()


class _Blocks(Cooperation):
    """One reduction in progress; positions are those of a block."""

    def __init__(self, reduction: ReductionIR, axis: int, segments: int, rounds: int, is_full: bool) -> None:
        self.segments, self.own = segments, (rounds or ROUNDS) // segments  # rounds of a thread
        self.block, self.together = (segments, reduction.lanes), segments * reduction.lanes
        self.segment, self.lane = ir.Local(SEGMENT, INT64), ir.Local(LANE, INT64)
        super().__init__(reduction, axis, rounds, is_full)

    def slots(self, reduction: ReductionIR, rounds: int, is_full: bool) -> HeldSlots:
        """A thread holds elements of its lane alone."""
        del rounds
        return HeldSlots(self.own, reduction.lanes, self._place(int64(0)), is_full, self.inside)

    @property
    def first(self) -> Expr:
        """The number of the thread."""
        return plus(times(self.segment, self.block[1]), self.lane)

    def positions(self) -> list[ir.Stmt]:
        """Declare the place in the block and in the group, and the chunk."""
        thread = [ir.Query("", "thread", int64(axis), INT64) for axis in range(2)]
        return [
            ir.Declare(SEGMENT, INT64, thread[0]),
            ir.Declare(LANE, INT64, thread[1]),
            ir.Declare(MEMBER, INT64, rest(self.lane, ir.GROUP)),
            ir.Declare(CHUNK, INT64, self.here),
        ]

    def once(self, body: Body) -> Body:
        """Statements that run once for each chunk; the position of the block is that of the chunk."""
        return body

    def stage(self, stage: Stage, number: int) -> list[ir.Stmt]:
        """One walk along the axis, and what follows it. Later walks see what all threads have stored."""
        return [*super().stage(stage, number), *([ir.Barrier()] if stage.accumulator is None else [])]

    def rounds(self, stage: Stage, held: GroupLanes, number: int) -> tuple[ir.Stmt, ...]:
        """Have the lanes take their elements; then every thread holds some of all lanes."""
        there = self.held.values_of(stage) if self.held else None
        ahead = RoundsAhead(stage, number, self.own, self._place, self.covered, there)
        box = ahead.arrays("box", "shared")
        turn, at = ir.Local(f"_turn{number}", INT64), ir.Local(f"_at{number}", INT64)
        handed = ir.If(test("equal", self.segment, turn), self._handed(ahead, held, box, turn))
        lane = plus(times(at, ir.GROUP), self.member)
        filled = ir.If(test("less", lane, self.covered), held.write(at, box.read(lane)))
        return (
            *box.declare(self.reduction.lanes),
            *(() if there else ahead.kept.declare(self.own)),
            *self._values(stage, number, ahead),
            *counted(turn.name, self.segments, (handed, ir.Barrier())),
            *counted(at.name, self.each, (filled,)),
        )

    def _values(self, stage: Stage, number: int, ahead: RoundsAhead) -> Body:
        """Compute the values of the elements of a walk, wherever they are not held yet."""
        if self.held is None:
            return ahead.values(self.inside)
        if ahead.held and all(isinstance(stmt, ir.Declare) for stmt in stage.body):
            return ()
        return self.held.walk(stage, number, None if ahead.held else ahead.kept.write)

    def _handed(self, ahead: RoundsAhead, held: GroupLanes, box: Arrays, turn: Expr) -> Body:
        """Continue the lane where the thread before stopped."""
        running = Running(held.accumulator)
        first = apply("multiply", turn, int64(self.own * self.reduction.lanes))
        there = test("less", plus(first, self.lane), self.covered)
        before = tuple(running.assign(ahead.running, box.read(self.lane)))
        found = [
            *running.declare(ahead.running),
            ir.If(test("less", int64(0), turn), before),
            *ahead.joined(apply("multiply", turn, int64(self.own)), self.held.slots.if_there if self.held else None),
            *box.write(self.lane, running.variable(ahead.running)),
        ]
        return (ir.If(there, tuple(found)),)

    def _place(self, turn: Expr) -> Expr:
        """The position in the chunk of the element of a round of this thread."""
        first = apply("multiply", self.segment, int64(self.own))
        return plus(times(plus(first, turn), self.block[1]), self.lane)
