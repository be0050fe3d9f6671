"""Cooperate: a reduction along the last axis becomes a program in which groups of positions share the chunks.

For targets whose threads can read each other's values. Of the lanes of a chunk, each position of a group holds every
GROUP-th, so that neighbours read neighbouring elements; the first halves of the lanes meet within a position, the
last ones by shuffles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.dtypes import BOOL, INT64, DType
from fusec.ir.expr import Apply, Const, Expr, Pointer, Struct, apply, const, type_of
from fusec.ir.loops import (
    GROUP,
    Assign,
    Call,
    Declare,
    DeclareArray,
    Element,
    Field,
    If,
    Load,
    Local,
    LocalArray,
    Moved,
    Offset,
    Program,
    Query,
    ScalarParam,
    Shuffle,
    Stmt,
    Store,
    While,
)
from fusec.ir.reductions import AXIS, COVERED, Accumulator, Reduction, Stage, chunk_of, parts_of, whole_of
from fusec.ir.walk import Body, map_expressions, renamed, rewriter

CHUNK, MEMBER, START = (
    "_chunk",
    "_member",
    "_start",
)  # locals: number of the chunk, position in the group, first element


def cooperate(reduction: Reduction, axis: int) -> Program:
    """The program over positions whose coordinate along `axis`, the last one, is GROUP times the chunk, and the member.

    It takes AXIS, the axis's extent, as a further scalar parameter. Inputs must have their own strides along the axis;
    what `finish` stores has one element for each chunk.
    """
    return _Cooperation(reduction, axis).program()


def _int64(value: int) -> Const:
    return const(value, INT64)


def _log2(power: int) -> int:
    return power.bit_length() - 1


def _sum(left: Expr, right: Expr) -> Expr:
    return apply("add", left, right)


def _times(left: Expr, right: int) -> Expr:
    return apply("multiply", left, _int64(right))


def _test(op: str, left: Expr, right: Expr) -> Expr:
    return Apply(op, (left, right), BOOL)


def _counted(name: str, limit: Expr, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """A loop from 0 up to a limit."""
    here = Local(name, INT64)
    step = Assign(name, _sum(here, _int64(1)))
    return (Declare(name, INT64, _int64(0)), While(_test("less", here, limit), tuple(body), (step,)))


class _Held:
    """The lanes of one position: a local array for each part of the accumulator."""

    def __init__(self, accumulator: Accumulator, number: int, count: int) -> None:
        self.accumulator, self.number, self.count = accumulator, number, count
        self.names = [(f"_held{number}_{at}", dtype) for at, (_, dtype) in enumerate(accumulator.parts)]
        self._fresh = 0

    def declare(self) -> list[Stmt]:
        """The arrays."""
        return [DeclareArray(name, dtype, self.count) for name, dtype in self.names]

    def read(self, lane: Expr) -> tuple[Expr, ...]:
        """The parts of a lane."""
        return tuple(Load(self._place(name, dtype, lane), dtype) for name, dtype in self.names)

    def write(self, lane: Expr, parts: Sequence[Expr]) -> tuple[Stmt, ...]:
        """Store the parts of a lane."""
        pairs = zip(self.names, parts, strict=True)
        return tuple(Store(self._place(name, dtype, lane), part) for (name, dtype), part in pairs)

    def combine(self, left: Sequence[Expr], right: Sequence[Expr]) -> tuple[tuple[Stmt, ...], tuple[Expr, ...]]:
        """The parts of two values combined, and the statements that must come before them."""
        kind = self.accumulator.type
        call = Call(self.accumulator.combine, (whole_of(tuple(left), kind), whole_of(tuple(right), kind)), kind)
        if not isinstance(kind, Struct):
            return (), (call,)
        self._fresh += 1
        whole = Local(f"_joined{self.number}_{self._fresh}", kind)
        return (Declare(whole.name, kind, call),), tuple(Field(whole, name, dtype) for name, dtype in kind.fields)

    def _place(self, name: str, dtype: DType, lane: Expr) -> Expr:
        pointer = Pointer(dtype, "local")
        return Offset(LocalArray(name, pointer), lane, pointer)


class _Cooperation:
    """One reduction on its way; positions are those of a group unless it says otherwise."""

    def __init__(self, reduction: Reduction, axis: int) -> None:
        self.reduction, self.axis = reduction, axis
        self.each = reduction.lanes // GROUP  # lanes of a position
        self.here = Query("", "coordinate", _int64(axis), INT64)
        self.member, self.covered = Local(MEMBER, INT64), Local(COVERED, INT64)

    def program(self) -> Program:
        """The whole program."""
        reduction, extent = self.reduction, Local(AXIS, INT64)
        bits = _int64(_log2(GROUP))
        body: list[Stmt] = [
            Declare(MEMBER, INT64, apply("bitwise_and", self.here, _int64(GROUP - 1))),
            Declare(CHUNK, INT64, apply("right_shift", self.here, bits)),
        ]
        if reduction.total is None:
            body += [Declare(START, INT64, _int64(0)), Declare(COVERED, INT64, extent)]
        else:
            size = _int64(chunk_of(reduction.lanes, True))
            left = apply("subtract", extent, Local(START, INT64))
            body.append(Declare(START, INT64, apply("multiply", Local(CHUNK, INT64), size)))
            body.append(Declare(COVERED, INT64, apply("where", _test("less", left, size), left, size)))
        for number, stage in enumerate(reduction.stages):
            body += self._stage(stage, number)
        if reduction.total is not None:
            pairs = zip(reduction.total.parts, parts_of(reduction.total.value), strict=True)
            body += [Declare(name, dtype, value) for (name, dtype), value in pairs]
        body += self._finish()
        params = (*reduction.params, ScalarParam(AXIS, INT64))
        return Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)

    def _finish(self) -> list[Stmt]:
        """The first position of each group stores."""
        to_chunk = apply("subtract", Local(CHUNK, INT64), self.here)

        def change(expr: Expr) -> Expr:
            return Moved(expr.param, (self.axis,), (to_chunk,), expr.type) if isinstance(expr, Element) else expr

        body = map_expressions(self.reduction.finish, rewriter(change))
        return [If(_test("equal", self.member, _int64(0)), body)] if body else []

    # --- stages --------------------------------------------------------------------------------------------------

    def _stage(self, stage: Stage, number: int) -> list[Stmt]:
        if stage.accumulator is None:
            at = Local(f"_at{number}", INT64)
            body, _ = self._inside(stage.body, f"{number}", at)
            step = Assign(at.name, _sum(at, _int64(GROUP)))
            walk = While(_test("less", at, self.covered), body, (step,))
            return [Declare(at.name, INT64, self.member), walk, *stage.then]
        held = _Held(stage.accumulator, number, self.each)
        return [*held.declare(), *self._rounds(stage, held, number), *self._meet(held, number), *stage.then]

    def _rounds(self, stage: Stage, held: _Held, number: int) -> tuple[Stmt, ...]:
        """The lanes take their elements, one in each round; only the last round may have less than all of them."""
        whole, turn = Local(f"_whole{number}", INT64), Local(f"_round{number}", INT64)
        lane, last = Local(f"_lane{number}", INT64), Local(f"_last{number}", INT64)
        taken = self._taken(stage, held, f"{number}", turn, lane)
        place, *rest = self._taken(stage, held, f"{number}_last", whole, last)
        assert isinstance(place, Declare), "the place of the element comes first"
        inside = _test("less", Local(place.name, INT64), self.covered)
        return (
            Declare(whole.name, INT64, apply("right_shift", self.covered, _int64(_log2(self.reduction.lanes)))),
            *_counted(turn.name, whole, _counted(lane.name, _int64(self.each), taken)),
            *_counted(last.name, _int64(self.each), (place, If(inside, tuple(rest)))),
        )

    def _taken(self, stage: Stage, held: _Held, label: str, turn: Expr, lane: Expr) -> tuple[Stmt, ...]:
        """A lane takes its element of a round; the first as it is."""
        assert stage.accumulator is not None, "a stage that accumulates"
        place = Local(f"_place{label}", INT64)
        start = _sum(_sum(_times(turn, self.reduction.lanes), _times(lane, GROUP)), self.member)
        body, rewrite = self._inside(stage.body, label, place)
        values = parts_of(rewrite(stage.accumulator.value))
        new = [Declare(f"_new{label}_{at}", _dtype(value), value) for at, value in enumerate(values)]
        mine = [Local(stmt.name, stmt.type) for stmt in new]
        joined, both = held.combine(held.read(lane), mine)
        first = _test("equal", turn, _int64(0))
        taken = If(first, held.write(lane, mine), (*joined, *held.write(lane, both)))
        return (Declare(place.name, INT64, start), *body, *new, taken)

    def _meet(self, held: _Held, number: int) -> list[Stmt]:
        """Halves of the lanes, first within a position, then between positions; all get the result of the first."""
        body: list[Stmt] = []
        half = self.each // 2
        while half:
            name = f"_low{number}_{half}"
            lane = Local(name, INT64) if half > 1 else _int64(0)
            far = _sum(lane, _int64(half)) if half > 1 else _int64(1)
            before = _times(far, GROUP) if half > 1 else _int64(GROUP)
            joined, both = held.combine(held.read(lane), held.read(far))
            there = _test("less", _sum(before, self.member), self.covered)
            step = If(there, (*joined, *held.write(lane, both)))
            body += _counted(name, _int64(half), [step]) if half > 1 else [step]
            half //= 2
        mine = [Local(f"_mine{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.names)]
        theirs = [Local(f"_theirs{number}_{at}", dtype) for at, (_, dtype) in enumerate(held.names)]
        pairs = zip(mine, held.read(_int64(0)), strict=True)
        body += [Declare(local.name, local.type, part) for local, part in pairs]
        body += [Declare(local.name, local.type) for local in theirs]
        distance = GROUP // 2
        while distance:
            body += [Shuffle(there.name, here, distance) for here, there in zip(mine, theirs, strict=True)]
            joined, both = held.combine(mine, theirs)
            reached = _test("less", _sum(self.member, _int64(distance)), self.covered)
            kept = tuple(Assign(local.name, part) for local, part in zip(mine, both, strict=True))
            body.append(If(reached, (*joined, *kept)))
            distance //= 2
        for (name, dtype), local in zip(held.accumulator.parts, mine, strict=True):
            body += [Declare(name, dtype), Shuffle(name, local, 0)]
        return body

    def _inside(self, body: Body, label: str, place: Expr) -> tuple[Body, Callable[[Expr], Expr]]:
        """The body at an element of the chunk, with names of its own, and the same change for further expressions."""
        position = _sum(Local(START, INT64), place)
        distance = apply("subtract", position, self.here)
        changed, names = renamed(body, f"_{label}")

        def change(expr: Expr) -> Expr:
            match expr:
                case Element(param, kind):
                    return Moved(param, (self.axis,), (distance,), kind)
                case Query("", "coordinate", Const() as along) if int(along.value) == self.axis:
                    return position
                case Query("", "shape", Const() as along) if int(along.value) == self.axis:
                    return Local(AXIS, INT64)
                case _:
                    return expr

        rewrite = rewriter(change)
        return map_expressions(changed, rewrite), lambda expr: rewrite(names(expr))


def _dtype(value: Expr) -> DType:
    found = type_of(value)
    assert isinstance(found, DType), "a part is a scalar"
    return found
