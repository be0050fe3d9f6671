"""Serialise: turn a reduction along an axis that is not the last into a program whose elements walk that axis.

The program runs over the walk with the axis replaced by its chunks. Each element takes those of its chunk one after the
other, so that the lanes of a machine, which lie along the last axis, never meet: every target runs it as it is.
"""

from __future__ import annotations

from fusec.base.dtypes import INT64
from fusec.ir.expr import Expr, Struct, apply
from fusec.ir.loops import (
    Assign,
    Call,
    Declare,
    Field,
    If,
    Local,
    Program,
    Query,
    ScalarParam,
    Stmt,
    While,
)
from fusec.ir.reductions import AXIS, COVERED, ROUNDS, Accumulator, ReductionIR, Stage, parts_of
from fusec.passes.affine import int64, least, minus, plus, relocated, test

START, STEP = "_start", "_step"  # locals: the chunk's first position along the axis, and the distance from there


def serialise(reduction: ReductionIR, axis: int) -> Program:
    """The program over positions whose coordinate along `axis` is the number of a chunk of ROUNDS elements.

    Requires: primitive ops; inputs with strides of their own along the axis, one element apart; one element for each
    chunk of what `finish` stores. Ensures: the order of Note [Order]; AXIS, the axis's extent, is a further scalar
    parameter.
    """
    start = apply("multiply", _chunk(axis), int64(ROUNDS))
    covered = least(minus(Local(AXIS, INT64), Local(START, INT64)), ROUNDS)
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


def _chunk(axis: int) -> Expr:
    """The number of the chunk."""
    return Query("", "coordinate", int64(axis), INT64)


def _stage(stage: Stage, number: int, axis: int) -> list[Stmt]:
    """The loop over the chunk's elements, and what follows it."""
    step = f"{STEP}{number}"
    here = Local(step, INT64)
    position = plus(Local(START, INT64), here)
    inside, rewrite = relocated(stage.body, f"{number}", axis, position, minus(position, _chunk(axis)))
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
    condition = test("less", here, Local(COVERED, INT64))
    advance = Assign(step, plus(here, 1))
    count = Declare(step, INT64, int64(0))
    return [*before, count, While(condition, inside, (advance,)), *after, *stage.then]


def _accumulate(accumulator: Accumulator, running: str, value: Expr, here: Expr) -> tuple[Stmt, ...]:
    """The first element as it is, then combinations."""
    before = Local(running, accumulator.type)
    combined = Call(accumulator.combine, (before, value), accumulator.type)
    return (If(test("equal", here, 0), (Assign(running, value),), (Assign(running, combined),)),)
