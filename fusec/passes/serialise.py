"""Serialise: a reduction along an axis that is not the last becomes a program whose elements walk that axis.

The program runs over the walk with the axis replaced by its chunks. Each element takes those of its chunk one after the
other, so that the lanes of a machine, which lie along the last axis, never meet: every target runs it as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from fusec.dtypes import BOOL, INT64
from fusec.ir.expr import Apply, Const, Expr, Struct, apply, const
from fusec.ir.loops import (
    Assign,
    Call,
    Declare,
    Element,
    Field,
    If,
    Local,
    Moved,
    Program,
    Query,
    ScalarParam,
    Stmt,
    While,
)
from fusec.ir.reductions import AXIS, COVERED, ROUNDS, Accumulator, Reduction, Stage, parts_of
from fusec.ir.walk import map_expressions, renamed, rewriter

START, STEP = "_start", "_step"  # locals: the chunk's first position along the axis, and the distance from there


def serialise(reduction: Reduction, axis: int) -> Program:
    """The program over positions whose coordinate along `axis` is the number of a chunk of ROUNDS elements.

    It takes AXIS, the axis's extent, as a further scalar parameter. Inputs must have their own strides along the axis,
    one element apart; what `finish` stores has one element for each chunk.
    """
    chunk = Query("", "coordinate", const(axis, INT64), INT64)
    extent = Local(AXIS, INT64)
    start = apply("multiply", chunk, const(ROUNDS, INT64))
    left = apply("subtract", extent, Local(START, INT64))
    covered = apply("where", apply("less", left, const(ROUNDS, INT64)), left, const(ROUNDS, INT64))
    body: list[Stmt] = [Declare(START, INT64, start), Declare(COVERED, INT64, covered)]
    for number, stage in enumerate(reduction.stages):
        body += _stage(stage, number, axis)
    if reduction.total is not None:
        values = parts_of(reduction.total.value)
        body += [
            Declare(name, dtype, value) for (name, dtype), value in zip(reduction.total.parts, values, strict=True)
        ]
    body += reduction.finish
    params = (*reduction.params, ScalarParam(AXIS, INT64))
    return Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)


def _stage(stage: Stage, number: int, axis: int) -> list[Stmt]:
    """The loop over the chunk's elements, and what follows it."""
    step = f"{STEP}{number}"
    here = Local(step, INT64)
    inside, rewrite = _along(stage.body, number, axis, step)
    before: list[Stmt] = []
    after: list[Stmt] = []
    if stage.accumulator is not None:
        running = stage.accumulator.name if not isinstance(stage.accumulator.type, Struct) else f"_running{number}"
        before.append(Declare(running, stage.accumulator.type))
        inside += _accumulate(stage.accumulator, running, rewrite(stage.accumulator.value), here)
        if isinstance(stage.accumulator.type, Struct):
            whole = Local(running, stage.accumulator.type)
            for (name, dtype), (field, _) in zip(stage.accumulator.parts, stage.accumulator.type.fields, strict=True):
                after.append(Declare(name, dtype, Field(whole, field, dtype)))
    condition = apply("less", here, Local(COVERED, INT64))
    advance = Assign(step, apply("add", here, const(1, INT64)))
    count = Declare(step, INT64, const(0, INT64))
    return [*before, count, While(condition, inside, (advance,)), *after, *stage.then]


def _accumulate(accumulator: Accumulator, running: str, value: Expr, here: Expr) -> tuple[Stmt, ...]:
    """The first element as it is, then combinations."""
    before = Local(running, accumulator.type)
    combined = Call(accumulator.combine, (before, value), accumulator.type)
    is_first = Apply("equal", (here, const(0, INT64)), BOOL)
    return (If(is_first, (Assign(running, value),), (Assign(running, combined),)),)


def _along(
    body: tuple[Stmt, ...], number: int, axis: int, step: str
) -> tuple[tuple[Stmt, ...], Callable[[Expr], Expr]]:
    """The body at an element of the chunk, with names of its own, and the same change for further expressions."""
    chunk = Query("", "coordinate", const(axis, INT64), INT64)
    position = apply("add", Local(START, INT64), Local(step, INT64))
    distance = apply("subtract", position, chunk)
    inside, names = renamed(body, f"_{number}")

    def change(expr: Expr) -> Expr:
        match expr:
            case Element(param, kind):
                return Moved(param, (axis,), (distance,), kind)
            case Query("", "coordinate", Const() as along) if int(along.value) == axis:
                return position
            case Query("", "shape", Const() as along) if int(along.value) == axis:
                return Local(AXIS, INT64)
            case _:
                return expr

    rewrite = rewriter(change)
    return map_expressions(inside, rewrite), lambda expr: rewrite(names(expr))
