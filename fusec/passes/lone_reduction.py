"""Lone reduction: turn a reduction along a short last axis into a program in which few positions take a whole chunk.

This is the twin of `group_reduction` for many chunks of few elements, where most threads of a group would have none: a
position is alone with its chunk, or shares it with some others. All lanes have one element at most, so that those of a
position meet as they are, and the others by shuffles within a part of a group.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, apply
from fusec.ir.reductions import ReductionIR
from fusec.ir.walk import Body
from fusec.passes.affine import int64, over, plus, rest, test, unrolled
from fusec.passes.group_reduction import CHUNK, MEMBER, Cooperation, GroupLanes
from fusec.passes.held_elements import HeldSlots


def reduce_alone(reduction: ReductionIR, axis: int, most: int, is_full: bool = False, together: int = 1) -> ir.Program:
    """The program over positions whose coordinate along `axis`, the last one, is `together` times the chunk, and the
    member.

    together: positions that share a chunk, a power of two below GROUP. most: elements that each has, no more than all
    of them have lanes; of several positions, all but the last are there. is_full: all chunks have so many.
    Requires: what `reduce_in_groups` requires. Ensures: what that ensures, and so the same order.
    """
    return _Few(reduction, axis, most, is_full, together).program()


class _Few(Cooperation):
    """One reduction in progress."""

    def __init__(self, reduction: ReductionIR, axis: int, most: int, is_full: bool, together: int) -> None:
        self.most, self.together = most, together
        super().__init__(reduction, axis, 1, is_full)
        self.each, self.full = most, int64(most * together) if is_full else None

    def slots(self, reduction: ReductionIR, rounds: int, is_full: bool) -> HeldSlots:
        """The elements of the chunk that a position has."""
        del reduction, rounds
        sure = self.most - 1 if self.together > 1 else 0
        return HeldSlots(self.most, self.together, self.first, is_full, self.inside, sure=sure)

    @property
    def first(self) -> Expr:
        """The place among the positions of a chunk."""
        return self.member if self.together > 1 else int64(0)

    def positions(self) -> list[ir.Stmt]:
        """Declare the chunk, and the place among its positions."""
        if self.together == 1:
            return [ir.Declare(CHUNK, INT64, self.here)]
        member = ir.Declare(MEMBER, INT64, rest(self.here, self.together))
        return [member, ir.Declare(CHUNK, INT64, over(self.here, self.together))]

    def once(self, body: Body) -> Body:
        """Statements that run once for each chunk; the position of one that is alone is that of the chunk."""
        return super().once(body) if self.together > 1 else body

    def _in_slot(self, held: GroupLanes, slot: Expr, values: Sequence[Expr]) -> Body:
        """A lane takes its element."""
        return tuple(held.write(slot, values))

    def _meet(self, held: GroupLanes, number: int) -> list[ir.Stmt]:
        """Halves of the lanes, first within a position, then between positions; all get the result of the first."""
        assert self.held is not None, "all elements are held"
        body: list[ir.Stmt] = []
        half = (1 << (self.most - 1).bit_length()) // 2
        while half:
            lane = ir.Local(f"_low{number}_{half}", INT64)
            far = plus(lane, half)
            joined, both = held.combine(held.read(lane), held.read(far))
            met = self.held.slots.if_there(far, (*joined, *held.write(lane, both)))
            body += unrolled(lane.name, min(half, self.most - half), met)
            half //= 2
        mine = [ir.Local(f"_mine{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.arrays.names)]
        pairs = zip(mine, held.read(int64(0)), strict=True)
        body += [ir.Declare(own.name, own.type, part) for own, part in pairs]
        distance = self.together // 2
        while distance:
            body += self._exchange(held, mine, distance)
            distance //= 2
        return [
            *body,
            *(ir.Declare(name, dtype, own) for (name, dtype), own in zip(held.accumulator.parts, mine, strict=True)),
        ]

    def _exchange(self, held: GroupLanes, mine: Sequence[ir.Local], distance: int) -> list[ir.Stmt]:
        """Two positions combine their values; the one with the lower number has the left one."""
        is_later = test("less", int64(0), apply("bitwise_and", self.member, int64(distance)))
        theirs, left, right = (
            [ir.Local(f"{own.name}_{word}{distance}", own.type) for own in mine] for word in ("other", "left", "right")
        )
        body: list[ir.Stmt] = [ir.Declare(there.name, there.type) for there in theirs]
        body += [ir.Shuffle(t.name, own, ir.EXCHANGED + distance) for t, own in zip(theirs, mine, strict=True)]
        for low, high, there, own in zip(left, right, theirs, mine, strict=True):
            body.append(ir.Declare(low.name, low.type, apply("where", is_later, there, own)))
            body.append(ir.Declare(high.name, high.type, apply("where", is_later, own, there)))
        joined, both = held.combine(left, right)
        return [*body, *joined, *(ir.Assign(own.name, part) for own, part in zip(mine, both, strict=True))]
