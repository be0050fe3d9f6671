"""Group reduction: turn a reduction along the last axis into a program in which groups of positions share the chunks.

For targets whose threads can read each other's values. Of the lanes of a chunk, each position of a group holds every
GROUP-th, so that neighbours read neighbouring elements; the first halves of the lanes meet within a position, the
last ones by shuffles. If elements are narrow, each position holds lanes side by side instead, which it loads and stores
at once; then the first halves meet by shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr, apply, scalar_type
from fusec.ir.reductions import AXIS, COVERED, Accumulator, ReductionIR, Stage, chunk_of, parts_of
from fusec.ir.walk import Body, fresh_names, map_expressions, rewriter
from fusec.passes.affine import (
    combined,
    counted,
    int64,
    least,
    minus,
    over,
    plus,
    relocated,
    rest,
    test,
    total_of,
    unrolled,
)
from fusec.passes.ahead import arrays_of
from fusec.passes.held_elements import HeldElements, HeldSlots

CHUNK, MEMBER, START = "_chunk", "_member", "_start"
"""Locals: number of the chunk, position in the group, the chunk's first element."""


def reduce_in_groups(
    reduction: ReductionIR, axis: int, rounds: int = 0, is_full: bool = False, is_wide: bool = False
) -> ir.Program:
    """The program over positions whose coordinate along `axis`, the last one, is GROUP times the chunk, and the member.

    rounds: elements of each lane that are held between walks, 0 for none; chunks have no more then. is_full: all chunks
    have so many. is_wide: positions hold lanes side by side; chunks have as many elements as fill those of some
    positions.
    Requires: primitive ops; inputs with strides of their own along the axis; one element for each chunk of what
    `finish` stores. Ensures: the order of Note [Order]; AXIS, the axis's extent, is a further scalar parameter.
    """
    return (_SideBySide if is_wide else Cooperation)(reduction, axis, rounds, is_full).program()


def _times(left: Expr, right: int) -> Expr:
    return int64(int(left.value) * right) if isinstance(left, Const) else apply("multiply", left, int64(right))


class GroupLanes:
    """The lanes of one position: a local array for each part of the accumulator."""

    def __init__(self, accumulator: Accumulator, number: int, count: int) -> None:
        self.accumulator, self.count = accumulator, count
        self.arrays = arrays_of(accumulator, f"_held{number}")
        self.read, self.write = self.arrays.read, self.arrays.write
        self._fresh = fresh_names(f"_joined{number}_")

    def declare(self) -> list[ir.Stmt]:
        """The arrays."""
        return self.arrays.declare(self.count)

    def combine(self, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[tuple[ir.Stmt, ...], tuple[Expr, ...]]:
        """The parts of two values combined, and the statements that must come before them."""
        return combined(self.accumulator, left, right, self._fresh)


class Cooperation:
    """One reduction on its way; positions are those of a group unless it says otherwise."""

    block: tuple[int, ...] = ()  # of the program
    together = ir.GROUP  # positions that share a chunk
    chunks = 1  # that a group or block has at once
    cluster = 1  # blocks that have them together

    def __init__(self, reduction: ReductionIR, axis: int, rounds: int = 0, is_full: bool = False) -> None:
        self.axis = axis
        self.each = reduction.lanes // ir.GROUP  # lanes of a position
        self.here = ir.Query("", "coordinate", int64(axis), INT64)
        self.member, self.covered = ir.Local(MEMBER, INT64), ir.Local(COVERED, INT64)
        self.held = HeldElements(reduction, self.slots(reduction, rounds, is_full)) if rounds else None
        self.reduction = self.held.reduction if self.held else reduction
        self.full = int64(rounds * reduction.lanes) if is_full else None  # elements of every chunk

    def slots(self, reduction: ReductionIR, rounds: int, is_full: bool) -> HeldSlots:
        """The elements that a position holds."""
        return HeldSlots(rounds * reduction.lanes // self.together, self.together, self.first, is_full, self.inside)

    def program(self) -> ir.Program:
        """The whole program."""
        reduction, extent = self.reduction, ir.Local(AXIS, INT64)
        body = self.positions()
        if reduction.total is None and self.chunks == 1:
            body += [ir.Declare(START, INT64, int64(0)), ir.Declare(COVERED, INT64, self.full or extent)]
        else:
            size = chunk_of(reduction.lanes, True)
            body.append(ir.Declare(START, INT64, _times(ir.Local(CHUNK, INT64), size)))
            covered = least(minus(extent, ir.Local(START, INT64)), size)
            body.append(ir.Declare(COVERED, INT64, self.full or covered))
        body += self.held.loaded() if self.held else []
        for number, stage in enumerate(reduction.stages):
            body += self.stage(stage, number)
        finish = self.once(reduction.finish)
        body += [*total_of(reduction), *([ir.If(self.is_first, finish)] if finish else [])]
        params = (*reduction.params, ir.ScalarParam(AXIS, INT64))
        functions, source = reduction.functions, reduction.source
        return ir.Program(reduction.name, params, tuple(body), functions, source, self.block, self.cluster)

    def positions(self) -> list[ir.Stmt]:
        """Declare the place in the group, and the chunk."""
        return [
            ir.Declare(MEMBER, INT64, rest(self.here, ir.GROUP)),
            ir.Declare(CHUNK, INT64, over(self.here, ir.GROUP)),
        ]

    @property
    def first(self) -> Expr:
        """A number that is 0 at exactly one of the positions that share a chunk."""
        return self.member

    @property
    def is_first(self) -> Expr:
        """Whether a position is the one that finishes a total."""
        return test("equal", self.first, 0)

    def once(self, body: Body) -> Body:
        """Statements that run once for each chunk; those of `finish` run at the first position of a group only."""
        to_chunk = minus(ir.Local(CHUNK, INT64), self.here)

        def change(expr: Expr) -> Expr:
            return ir.Moved(expr.param, (self.axis,), (to_chunk,), expr.type) if isinstance(expr, ir.Element) else expr

        return map_expressions(body, rewriter(change))

    # --- stages --------------------------------------------------------------------------------------------------

    def stage(self, stage: Stage, number: int) -> list[ir.Stmt]:
        """One walk along the axis, and what follows it."""
        if stage.accumulator is None and self.held:
            return [*self.held.walk(stage, number), *self.once(stage.then)]
        if stage.accumulator is None:
            at = ir.Local(f"_at{number}", INT64)
            body, _ = self.inside(stage.body, f"{number}", at)
            step = ir.Assign(at.name, plus(at, self.together))
            walk = ir.While(test("less", at, self.covered), body, (step,))
            return [ir.Declare(at.name, INT64, self.first), walk, *self.once(stage.then)]
        held = GroupLanes(stage.accumulator, number, self.each)
        taken = self.rounds(stage, held, number)
        return [*held.declare(), *taken, *self._meet(held, number), *self.once(stage.then)]

    def rounds(self, stage: Stage, held: GroupLanes, number: int) -> tuple[ir.Stmt, ...]:
        """The lanes take their elements, one in each round; only the last round may have less than all of them."""
        if self.held:
            return self.held.walk(stage, number, lambda slot, values: self._in_slot(held, slot, values))
        whole, turn = ir.Local(f"_whole{number}", INT64), ir.Local(f"_round{number}", INT64)
        lane, last = ir.Local(f"_lane{number}", INT64), ir.Local(f"_last{number}", INT64)
        taken = self._taken(stage, held, f"{number}", turn, lane)
        place, *others = self._taken(stage, held, f"{number}_last", whole, last)
        assert isinstance(place, ir.Declare), "the place of the element comes first"
        inside = test("less", ir.Local(place.name, INT64), self.covered)
        return (
            ir.Declare(whole.name, INT64, over(self.covered, self.reduction.lanes)),
            *counted(turn.name, whole, counted(lane.name, self.each, taken)),
            *counted(last.name, self.each, (place, ir.If(inside, tuple(others)))),
        )

    def _taken(self, stage: Stage, held: GroupLanes, label: str, turn: Expr, lane: Expr) -> tuple[ir.Stmt, ...]:
        """A lane takes its element of a round; the first as it is."""
        assert stage.accumulator is not None, "a stage that accumulates"
        place = ir.Local(f"_place{label}", INT64)
        start = plus(plus(_times(turn, self.reduction.lanes), _times(lane, ir.GROUP)), self.member)
        body, rewrite = self.inside(stage.body, label, place)
        values = parts_of(rewrite(stage.accumulator.value))
        new = [ir.Declare(f"_new{label}_{at}", scalar_type(value), value) for at, value in enumerate(values)]
        mine = [ir.Local(stmt.name, stmt.type) for stmt in new]
        joined, both = held.combine(held.read(lane), mine)
        first = test("equal", turn, 0)
        taken = ir.If(first, held.write(lane, mine), (*joined, *held.write(lane, both)))
        return (ir.Declare(place.name, INT64, start), *body, *new, taken)

    def _in_slot(self, held: GroupLanes, slot: Expr, values: Sequence[Expr]) -> Body:
        """A lane takes the element of a slot; the first as it is."""
        lane = rest(slot, self.each)
        joined, both = held.combine(held.read(lane), values)
        is_first = test("less", slot, self.each)
        return (ir.If(is_first, held.write(lane, values), (*joined, *held.write(lane, both))),)

    def _meet(self, held: GroupLanes, number: int) -> list[ir.Stmt]:
        """Halves of the lanes, first within a position, then between positions; all get the result of the first."""
        body: list[ir.Stmt] = []
        half = self.each // 2
        while half:
            body += self._low(held, number, half, lambda far: plus(_times(far, ir.GROUP), self.member))
            half //= 2
        mine = [ir.Local(f"_mine{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.arrays.names)]
        theirs = [ir.Local(f"_theirs{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.arrays.names)]
        pairs = zip(mine, held.read(int64(0)), strict=True)
        body += [ir.Declare(local.name, local.type, part) for local, part in pairs]
        body += [ir.Declare(local.name, local.type) for local in theirs]
        distance = ir.GROUP // 2
        while distance:
            body += [ir.Shuffle(there.name, here, distance) for here, there in zip(mine, theirs, strict=True)]
            joined, both = held.combine(mine, theirs)
            reached = test("less", plus(self.member, distance), self.covered)
            kept = tuple(ir.Assign(local.name, part) for local, part in zip(mine, both, strict=True))
            body.append(ir.If(reached, (*joined, *kept)))
            distance //= 2
        return [*body, *self.told(held.accumulator, mine, number)]

    def told(self, accumulator: Accumulator, mine: Sequence[ir.Local], number: int) -> list[ir.Stmt]:
        """Declare the result of a walk at all positions. mine: the chunk's, which the first position of a group has."""
        del number
        pairs = zip(accumulator.parts, mine, strict=True)
        return [stmt for (name, dtype), own in pairs for stmt in (ir.Declare(name, dtype), ir.Shuffle(name, own, 0))]

    def _low(self, held: GroupLanes, number: int, half: int, place: Callable[[Expr], Expr]) -> Body:
        """Combine the first lanes of a position with as many that follow. place: of a lane of this position."""
        name = f"_low{number}_{half}"
        lane = ir.Local(name, INT64) if half > 1 else int64(0)
        far = plus(lane, half) if half > 1 else int64(1)
        joined, both = held.combine(held.read(lane), held.read(far))
        step = ir.If(test("less", place(far), self.covered), (*joined, *held.write(lane, both)))
        return counted(name, half, [step]) if half > 1 else (step,)

    def inside(self, body: Body, label: str, place: Expr) -> tuple[Body, Callable[[Expr], Expr]]:
        """The body at an element of the chunk, with names of its own, and the same change for further expressions."""
        position = plus(ir.Local(START, INT64), place)
        return relocated(body, label, self.axis, position, minus(position, self.here))


class _SideBySide(Cooperation):
    """The same with lanes side by side at a position."""

    def slots(self, reduction: ReductionIR, rounds: int, is_full: bool) -> HeldSlots:
        """The elements that a position holds: those of its lanes."""
        count, base = rounds * self.each, _times(self.member, self.each)
        return HeldSlots(count, reduction.lanes, base, is_full, self.inside, self.each)

    def _meet(self, held: GroupLanes, number: int) -> list[ir.Stmt]:
        """Halves of the lanes, first between positions, then within the first position; all get its result."""
        lane = ir.Local(f"_far{number}", INT64)
        mine, theirs = (
            [ir.Local(f"_{word}{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.arrays.names)]
            for word in ("mine", "theirs")
        )
        met: list[ir.Stmt] = [
            ir.Declare(own.name, own.type, part) for own, part in zip(mine, held.read(lane), strict=True)
        ]
        met += [ir.Declare(local.name, local.type) for local in theirs]
        distance = ir.GROUP // 2
        while distance:
            met += [ir.Shuffle(there.name, here, distance) for here, there in zip(mine, theirs, strict=True)]
            joined, both = held.combine(mine, theirs)
            reached = test("less", self._place(plus(self.member, distance), lane), self.covered)
            kept = tuple(ir.Assign(local.name, part) for local, part in zip(mine, both, strict=True))
            met.append(ir.If(reached, (*joined, *kept)))
            distance //= 2
        body = [*unrolled(lane.name, self.each, (*met, *held.write(lane, mine)))]
        half = self.each // 2
        while half:
            body += self._low(held, number, half, lambda far: self._place(self.member, far))
            half //= 2
        found = [ir.Local(f"_first{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.arrays.names)]
        pairs = zip(found, held.read(int64(0)), strict=True)
        body += [ir.Declare(local.name, local.type, part) for local, part in pairs]
        return [*body, *self.told(held.accumulator, found, number)]

    def _place(self, member: Expr, lane: Expr) -> Expr:
        """The number of a lane of a position."""
        return plus(_times(member, self.each), lane)
