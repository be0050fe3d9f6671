"""Block reduction: turn a reduction along the last axis into a program in which blocks of threads share the chunks.

This is the twin of `group_reduction` for too few chunks to keep a device busy with groups. Every lane of a chunk has
`segments` threads. Each computes the values of the lane's elements in some consecutive rounds, and all do so at once.
Then the lane is handed from thread to thread, and each combines it with its own values. So elements are taken in the
same order as without segments. In the end every group of the block combines the lanes, and all threads know the result.

A block may have several chunks at once, those of a row that is held between walks. Each has as many threads, and all
threads combine the results of chunks one after the other. Several blocks may have a row, each some of its chunks; then
each tells all others the results of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, apply
from fusec.ir.reductions import AXIS, ROUNDS, SHORT, Accumulator, ReductionIR, Stage
from fusec.ir.walk import Body
from fusec.passes.affine import Running, counted, int64, over, plus, rest, test, times
from fusec.passes.ahead import Arrays, RoundsAhead, arrays_of
from fusec.passes.group_reduction import CHUNK, MEMBER, Cooperation, GroupLanes
from fusec.passes.held_elements import HeldSlots

SEGMENT, LANE = "_segment", "_lane"
"""Locals: the number of this thread among those of its lane, and the lane."""


class BlockShape(NamedTuple):
    """The work of a block.

    segments: threads of each lane, a power of two. rounds, is_full: as for `reduce_in_groups`; a multiple of the
    segments. chunks: those of every row, if the block has a row; 1 if it has a chunk. blocks: those of a row; if there
    are several, all have the same power of two of chunks, of which the last ones may be missing.
    """

    segments: int
    rounds: int = 0
    is_full: bool = False
    chunks: int = 1
    blocks: int = 1


def reduce_in_blocks(reduction: ReductionIR, axis: int, block: BlockShape) -> ir.Program:
    """The program over positions whose coordinate along `axis`, the last one, is the chunk or row: a block for each.

    Requires: what `reduce_in_groups` requires, and at most `ROUNDS` segments; several chunks are held, and are no more
    than `SHORT`. Ensures: what that ensures, and so the same order.
    """
    return _Blocks(reduction, axis, block).program()


class _Blocks(Cooperation):
    """One reduction in progress; positions are those of a block."""

    def __init__(self, reduction: ReductionIR, axis: int, block: BlockShape) -> None:
        segments, rounds, is_full, chunks, blocks = block
        assert chunks == 1 or (rounds == ROUNDS and chunks <= SHORT), "whole chunks are held, and combined in order"
        self.segments, self.own = segments, (rounds or ROUNDS) // segments  # rounds of a thread
        self.chunks, self.chunk, self.cluster = chunks, ir.Local(CHUNK, INT64), blocks
        self.own_chunks = chunks if blocks == 1 else 1 << (-(-chunks // blocks) - 1).bit_length()  # of a block
        self.block = (blocks * self.own_chunks * segments, reduction.lanes)
        self.together = segments * reduction.lanes
        self.segment, self.lane = ir.Local(SEGMENT, INT64), ir.Local(LANE, INT64)
        super().__init__(reduction, axis, rounds, is_full)

    def slots(self, reduction: ReductionIR, rounds: int, is_full: bool) -> HeldSlots:
        """A thread holds elements of its lane alone."""
        del rounds
        return HeldSlots(self.own, reduction.lanes, self._place(int64(0)), is_full, self.inside)

    @property
    def first(self) -> Expr:
        """The number of the thread among those of its chunk."""
        return plus(times(self.segment, self.block[1]), self.lane)

    def positions(self) -> list[ir.Stmt]:
        """Declare the place in the block and in the group, and the chunk."""
        first, lane = (ir.Query("", "thread", int64(axis), INT64) for axis in range(2))
        segment, chunk = (first, self.here) if self.chunks == 1 else self._parted(first)
        return [
            ir.Declare(SEGMENT, INT64, segment),
            ir.Declare(LANE, INT64, lane),
            ir.Declare(MEMBER, INT64, rest(self.lane, ir.GROUP)),
            ir.Declare(CHUNK, INT64, chunk),
        ]

    def _parted(self, first: Expr) -> tuple[Expr, Expr]:
        """The segment, and the chunk of the row, of a thread."""
        return (rest(first, self.segments), over(first, self.segments)) if self.segments > 1 else (int64(0), first)

    @property
    def is_first(self) -> Expr:
        """Whether a thread is the first of the block."""
        return test("equal", plus(self.first, self.chunk) if self.chunks > 1 else self.first, 0)

    def once(self, body: Body) -> Body:
        """Statements that run once for each chunk; the position of the block is that of the chunk."""
        return body

    def stage(self, stage: Stage, number: int) -> list[ir.Stmt]:
        """One walk along the axis, and what follows it. Later walks see what all threads have stored."""
        is_seen = stage.accumulator is None and (number + 1 < len(self.reduction.stages) or self.reduction.finish)
        return [*super().stage(stage, number), *([ir.Barrier()] if is_seen else [])]

    def rounds(self, stage: Stage, held: GroupLanes, number: int) -> tuple[ir.Stmt, ...]:
        """Have the lanes take their elements; then every thread holds some of all lanes."""
        box, at = arrays_of(held.accumulator, f"_box{number}", "shared"), ir.Local(f"_at{number}", INT64)
        lane = plus(times(at, ir.GROUP), self.member)
        filled = ir.If(test("less", lane, self.covered), held.write(at, box.read(self._boxed(lane))))
        taken = self._in_turn if self.segments > 1 or self.held is None else self._at_once
        return (
            *box.declare(self.own_chunks * self.reduction.lanes),
            *taken(stage, held, box, number),
            *counted(at.name, self.each, (filled,)),
        )

    def _at_once(self, stage: Stage, held: GroupLanes, box: Arrays, number: int) -> Body:
        """Have every thread take its whole lane.

        Compilers move nothing across the branch of a first walk, which asks for a number that they do not know: they
        would combine the first elements before they load the last, and so wait for memory twice.
        """
        assert self.held is not None, "elements are held"
        del held
        walk, found = self.held.combined(stage, number)
        stored = box.write(self._boxed(self.lane), found)
        if number:
            return (*walk, ir.If(test("less", self.lane, self.covered), stored), ir.Barrier())
        there = test("less", self.lane, ir.Local(AXIS, INT64) if self.full else self.covered)
        return (ir.If(there, (*walk, *stored)), ir.Barrier())

    def _in_turn(self, stage: Stage, held: GroupLanes, box: Arrays, number: int) -> Body:
        """Have the threads of a lane compute their values, and combine them one thread after the other."""
        there = self.held.values_of(stage) if self.held else None
        ahead = RoundsAhead(stage, number, self.own, self._place, self.covered, there)
        turn = ir.Local(f"_turn{number}", INT64)
        handed = ir.If(test("equal", self.segment, turn), self._handed(ahead, held, box, turn))
        return (
            *(() if there else ahead.kept.declare(self.own)),
            *self._values(stage, number, ahead),
            *counted(turn.name, self.segments, (handed, ir.Barrier())),
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
        before = tuple(running.assign(ahead.running, box.read(self._boxed(self.lane))))
        found = [
            *running.declare(ahead.running),
            ir.If(test("less", int64(0), turn), before),
            *ahead.joined(apply("multiply", turn, int64(self.own)), self.held.slots.if_there if self.held else None),
            *box.write(self._boxed(self.lane), running.variable(ahead.running)),
        ]
        return (ir.If(there, tuple(found)),)

    def _boxed(self, lane: Expr) -> Expr:
        """The place of a lane of this thread's chunk in the shared arrays."""
        if self.own_chunks == 1:
            return lane
        own = self.chunk if self.cluster == 1 else rest(self.chunk, self.own_chunks)
        return plus(times(own, self.reduction.lanes), lane)

    def told(self, accumulator: Accumulator, mine: Sequence[ir.Local], number: int) -> list[ir.Stmt]:
        """Declare the result of a walk in all threads: that of the first chunk, combined with the others in order."""
        if self.chunks == 1:
            return super().told(accumulator, mine, number)
        totals = arrays_of(accumulator, f"_total{number}", "shared" if self.cluster == 1 else "told")
        name, at = f"_all{number}_", ir.Local(f"_others{number}", INT64)
        running = Running(accumulator, name)
        joined = running.join(name, running.variable(name), totals.read(plus(at, 1)))
        results = zip(accumulator.parts, running.variable(name), strict=True)
        return [
            *totals.declare(self.cluster * self.own_chunks),
            ir.If(test("equal", self.first, 0), totals.write(self.chunk, mine)),
            ir.Barrier(),
            *running.declare(name, totals.read(int64(0))),
            *counted(at.name, self.chunks - 1, joined),
            *(ir.Declare(part, dtype, local) for (part, dtype), local in results),
        ]

    def _place(self, turn: Expr) -> Expr:
        """The position in the chunk of the element of a round of this thread."""
        first = apply("multiply", self.segment, int64(self.own))
        return plus(times(plus(first, turn), self.block[1]), self.lane)
