"""Serialise: turn a reduction along an axis that is not the last into a program whose elements walk that axis.

The program runs over the walk with the axis replaced by its chunks. Each element takes those of its chunk one after the
other, so that the lanes of a machine, which lie along the last axis, never meet: every target runs it as it is.
"""

from __future__ import annotations

from fusec.base.dtypes import INT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Struct, apply
from fusec.ir.reductions import AXIS, COVERED, ROUNDS, Accumulator, ReductionIR, Stage
from fusec.passes.affine import counted, int64, least, minus, plus, relocated, test, total_of

START, STEP = "_start", "_step"  # locals: the chunk's first position along the axis, and the distance from there


def serialise(reduction: ReductionIR, axis: int) -> ir.Program:
    """The program over positions whose coordinate along `axis` is the number of a chunk of ROUNDS elements.

    Requires: primitive ops; inputs with strides of their own along the axis, one element apart; one element for each
    chunk of what `finish` stores. Ensures: the order of Note [Order]; AXIS, the axis's extent, is a further scalar
    parameter.
    """
    start = apply("multiply", _chunk(axis), int64(ROUNDS))
    covered = least(minus(ir.Local(AXIS, INT64), ir.Local(START, INT64)), ROUNDS)
    body: list[ir.Stmt] = [ir.Declare(START, INT64, start), ir.Declare(COVERED, INT64, covered)]
    for number, stage in enumerate(reduction.stages):
        body += _stage(stage, number, axis)
    body += [*total_of(reduction), *reduction.finish]
    params = (*reduction.params, ir.ScalarParam(AXIS, INT64))
    return ir.Program(reduction.name, params, tuple(body), reduction.functions, reduction.source)


def _chunk(axis: int) -> Expr:
    """The number of the chunk."""
    return ir.Query("", "coordinate", int64(axis), INT64)


def _stage(stage: Stage, number: int, axis: int) -> list[ir.Stmt]:
    """The loop over the chunk's elements, and what follows it."""
    step = f"{STEP}{number}"
    here = ir.Local(step, INT64)
    position = plus(ir.Local(START, INT64), here)
    inside, rewrite = relocated(stage.body, f"{number}", axis, position, minus(position, _chunk(axis)))
    before: list[ir.Stmt] = []
    after: list[ir.Stmt] = []
    if stage.accumulator is not None:
        running = stage.accumulator.name if not isinstance(stage.accumulator.type, Struct) else f"_running{number}"
        before.append(ir.Declare(running, stage.accumulator.type))
        inside += _accumulate(stage.accumulator, running, rewrite(stage.accumulator.value), here)
        if isinstance(stage.accumulator.type, Struct):
            whole = ir.Local(running, stage.accumulator.type)
            for (name, dtype), (field, _) in zip(stage.accumulator.parts, stage.accumulator.type.fields, strict=True):
                after.append(ir.Declare(name, dtype, ir.Field(whole, field, dtype)))
    return [*before, *counted(step, ir.Local(COVERED, INT64), inside), *after, *stage.then]


def _accumulate(accumulator: Accumulator, running: str, value: Expr, here: Expr) -> tuple[ir.Stmt, ...]:
    """The first element as it is, then combinations."""
    before = ir.Local(running, accumulator.type)
    combined = ir.Call(accumulator.combine, (before, value), accumulator.type)
    return (ir.If(test("equal", here, 0), (ir.Assign(running, value),), (ir.Assign(running, combined),)),)
