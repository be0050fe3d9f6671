"""Serialise: turn a reduction along an axis that is not the last into a program whose elements walk that axis.

The program runs over the walk with the axis replaced by its chunks. Each element takes those of its chunk one after the
other, so that the lanes of a machine, which lie along the last axis, never meet: every target runs it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr, Struct, apply
from fusec.ir.reductions import AXIS, COVERED, ROUNDS, Accumulator, ReductionIR, Stage
from fusec.ir.walk import Body, expressions, roots_of
from fusec.passes.affine import Running, counted, int64, least, minus, plus, relocated, test, total_of
from fusec.passes.ahead import Inside, RoundsAhead
from fusec.passes.held_elements import HeldElements, HeldSlots

AT_ONCE = 8  # elements at most whose loads are under way together
RESULTS_AT_ONCE = 16  # the same of results of chunks: threads are few, and wait for little else
HELD_BYTES = 240  # of values of elements that fit registers
START, STEP = "_start", "_step"  # locals: the chunk's first position along the axis, and the distance from there


def serialise(
    reduction: ReductionIR, axis: int, rounds: int = 0, is_full: bool = False, of_results: bool = False
) -> ir.Program:
    """The program over positions whose coordinate along `axis` is the number of a chunk of ROUNDS elements.

    rounds: elements of a chunk that are held between walks, 0 for none; chunks have no more then. is_full: all chunks
    have so many. of_results: the elements are results of chunks, so that positions are few.
    Requires: primitive ops; inputs with strides of their own along the axis, one element apart; one element for each
    chunk of what `finish` stores. Ensures: the order of Note [Order]; AXIS, the axis's extent, is a further scalar
    parameter.
    """
    start = apply("multiply", _chunk(axis), int64(ROUNDS))
    covered = int64(rounds) if is_full else least(minus(ir.Local(AXIS, INT64), ir.Local(START, INT64)), ROUNDS)
    body: list[ir.Stmt] = [ir.Declare(START, INT64, start), ir.Declare(COVERED, INT64, covered)]
    if rounds:
        held = HeldElements(reduction, HeldSlots(rounds, 1, int64(0), is_full, _inside(axis)))
        body += held.loaded()
        for number, stage in enumerate(held.reduction.stages):
            body += _held(held, stage, number)
    else:
        for number, stage in enumerate(reduction.stages):
            body += _stage(stage, number, axis, reduction.functions, of_results)
    body += [*total_of(reduction), *reduction.finish]
    params = (*reduction.params, ir.ScalarParam(AXIS, INT64))
    return ir.Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)


def _chunk(axis: int) -> Expr:
    """The number of the chunk."""
    return ir.Query("", "coordinate", int64(axis), INT64)


def _inside(axis: int) -> Inside:
    """What places a body at an element of the chunk."""

    def inside(body: Body, label: str, place: Expr) -> tuple[Body, Callable[[Expr], Expr]]:
        position = plus(ir.Local(START, INT64), place)
        return relocated(body, label, axis, position, minus(position, _chunk(axis)))

    return inside


def _held(held: HeldElements, stage: Stage, number: int) -> list[ir.Stmt]:
    """The same as `_stage`, over elements that are held."""
    if stage.accumulator is None:
        return [*held.walk(stage, number), *stage.then]
    walk, found = held.combined(stage, number)
    results = zip(stage.accumulator.parts, found, strict=True)
    return [*walk, *(ir.Declare(part, dtype, local) for (part, dtype), local in results), *stage.then]


def _stage(stage: Stage, number: int, axis: int, functions: Sequence[ir.Function], of_results: bool) -> list[ir.Stmt]:
    """The loop over the chunk's elements, and what follows it."""
    inside = _inside(axis)
    if stage.accumulator is not None and (of_results or _divides(stage.accumulator, functions)):
        return _ahead(stage, stage.accumulator, number, inside, RESULTS_AT_ONCE if of_results else AT_ONCE)
    step = f"{STEP}{number}"
    here = ir.Local(step, INT64)
    body, rewrite = inside(stage.body, f"{number}", here)
    before: list[ir.Stmt] = []
    after: list[ir.Stmt] = []
    if stage.accumulator is not None:
        running = stage.accumulator.name if not isinstance(stage.accumulator.type, Struct) else f"_running{number}"
        before.append(ir.Declare(running, stage.accumulator.type))
        body += _accumulate(stage.accumulator, running, rewrite(stage.accumulator.value), here)
        if isinstance(stage.accumulator.type, Struct):
            whole = ir.Local(running, stage.accumulator.type)
            for (name, dtype), (field, _) in zip(stage.accumulator.parts, stage.accumulator.type.fields, strict=True):
                after.append(ir.Declare(name, dtype, ir.Field(whole, field, dtype)))
    return [*before, *counted(step, ir.Local(COVERED, INT64), body), *after, *stage.then]


def _divides(accumulator: Accumulator, functions: Sequence[ir.Function]) -> bool:
    """Whether combining divides: such machine code has branches."""
    found: set[str] = set()
    for function in functions:  # callees before callers
        for expr in expressions(roots_of(function.body)):
            divides = isinstance(expr, Apply) and expr.op in ("divide", "quotient", "modulo")
            if divides or (isinstance(expr, ir.Call) and expr.function in found):
                found.add(function.name)
    return accumulator.combine in found


def _ahead(stage: Stage, accumulator: Accumulator, number: int, inside: Inside, most: int) -> list[ir.Stmt]:
    """The same loop over several elements at a time, whose loads do not wait for combinations."""
    base, covered = ir.Local(f"{STEP}{number}", INT64), ir.Local(COVERED, INT64)
    rounds = max(2, min(most, HELD_BYTES // sum(dtype.nbytes for _, dtype in accumulator.parts)))
    ahead = RoundsAhead(stage, number, rounds, lambda turn: plus(base, turn), covered, is_long=rounds > AT_ONCE)
    running = Running(accumulator)
    body = (*ahead.kept.declare(rounds), *ahead.values(inside), *ahead.joined(base))
    results = zip(accumulator.parts, running.variable(ahead.running), strict=True)
    return [
        *running.declare(ahead.running),
        ir.Declare(base.name, INT64, int64(0)),
        ir.While(test("less", base, covered), body, (ir.Assign(base.name, plus(base, rounds)),)),
        *(ir.Declare(name, dtype, local) for (name, dtype), local in results),
        *stage.then,
    ]


def _accumulate(accumulator: Accumulator, running: str, value: Expr, here: Expr) -> tuple[ir.Stmt, ...]:
    """The first element as it is, then combinations."""
    before = ir.Local(running, accumulator.type)
    combined = ir.Call(accumulator.combine, (before, value), accumulator.type)
    return (ir.If(test("equal", here, 0), (ir.Assign(running, value),), (ir.Assign(running, combined),)),)
