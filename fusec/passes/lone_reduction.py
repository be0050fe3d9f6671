"""Lone reduction: turn a reduction along a short last axis into a program in which one thread takes a whole chunk.

This is the twin of `group_reduction` for many chunks of few elements, where most threads of a group would have none. A
thread has all lanes of its chunk, each with one element at most, so that the lanes meet without shuffles.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr
from fusec.ir.reductions import ReductionIR
from fusec.ir.walk import Body
from fusec.passes.affine import int64, plus, test, unrolled
from fusec.passes.group_reduction import CHUNK, Cooperation, GroupLanes
from fusec.passes.held_elements import HeldSlots


def reduce_alone(reduction: ReductionIR, axis: int, most: int, is_full: bool = False) -> ir.Program:
    """The program over positions whose coordinate along `axis`, the last one, is the chunk.

    most: elements of a chunk, a power of two and no more than there are lanes. is_full: all chunks have so many.
    Requires: what `reduce_in_groups` requires. Ensures: what that ensures, and so the same order.
    """
    return _Alone(reduction, axis, most, is_full).program()


class _Alone(Cooperation):
    """One reduction in progress; a position shares its chunk with no other."""

    together = 1

    def __init__(self, reduction: ReductionIR, axis: int, most: int, is_full: bool) -> None:
        self.most = most
        super().__init__(reduction, axis, 1, is_full)
        self.each, self.full = most, int64(most) if is_full else None

    def slots(self, reduction: ReductionIR, rounds: int, is_full: bool) -> HeldSlots:
        """All elements of the chunk."""
        del reduction, rounds
        return HeldSlots(self.most, 1, int64(0), is_full, self.inside)

    @property
    def first(self) -> Expr:
        """The only position of a chunk."""
        return int64(0)

    def positions(self) -> list[ir.Stmt]:
        """Declare the chunk."""
        return [ir.Declare(CHUNK, INT64, self.here)]

    def once(self, body: Body) -> Body:
        """Statements that run once for each chunk, whose position is that of the chunk."""
        return body

    def _in_slot(self, held: GroupLanes, slot: Expr, values: Sequence[Expr]) -> Body:
        """A lane takes its element."""
        return tuple(held.write(slot, values))

    def _meet(self, held: GroupLanes, number: int) -> list[ir.Stmt]:
        """Halves of the lanes."""
        body: list[ir.Stmt] = []
        half = self.most // 2
        while half:
            lane = ir.Local(f"_low{number}_{half}", INT64)
            far = plus(lane, half)
            joined, both = held.combine(held.read(lane), held.read(far))
            joint = (*joined, *held.write(lane, both))
            met = joint if self.full else (ir.If(test("less", far, self.covered), joint),)
            body += unrolled(lane.name, half, met)
            half //= 2
        pairs = zip(held.accumulator.parts, held.read(int64(0)), strict=True)
        return [*body, *(ir.Declare(name, dtype, part) for (name, dtype), part in pairs)]
