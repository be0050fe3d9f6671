"""The passes over a reduction: each part runs through them as a program of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import DType
from fusec.base.records import replace
from fusec.ir.expr import Expr
from fusec.ir.loops import Declare, Function, Program, ScalarParam, Stmt
from fusec.ir.reductions import (
    Accumulator,
    ReductionIR,
    Stage,
    combine_program,
    declared,
    finish_program,
    split_kept,
    stage_program,
    then_program,
    visible,
    whole_of,
)


def run_on_reduction(reduction: ReductionIR, run: Callable[[Program], Program]) -> ReductionIR:
    """The reduction after `run`, passes over a program, has seen each of its parts.

    Requires: `run` keeps what a program stores and the names of its functions. Ensures: the order of operations between
    elements is the same; functions of all parts stand once each, callees first.
    """
    functions: dict[str, Function] = {}

    def changed(program: Program) -> tuple[tuple[Stmt, ...], tuple[Expr, ...]]:
        after = run(program)
        for function in after.functions:
            functions.setdefault(function.name, function)
        return split_kept(after)

    stages, total = [], reduction.total
    for number, stage in enumerate(reduction.stages):
        body, values = changed(stage_program(reduction, number))
        then, kept = changed(then_program(reduction, number))
        then = _declared_again(stage, then, kept)
        accumulator = stage.accumulator and _over(stage.accumulator, values)
        stages.append(Stage(body, accumulator, then))
        if total is not None and number == len(reduction.stages) - 1:
            total = _over(total, kept[len(declared(stage.then)) :])
    for accumulator in reduction.accumulators:
        changed(combine_program(reduction, accumulator))
    after = replace(reduction, stages=tuple(stages), total=total)
    finish, _ = changed(_beside(finish_program(reduction), visible(after, len(stages))))
    return replace(after, finish=finish, functions=tuple(functions.values()))


def _beside(program: Program, others: Sequence[tuple[str, DType]]) -> Program:
    """The program with parameters of these names too, so that no pass gives a name that stands in the same scope."""
    known = {param.name for param in program.params}
    more = tuple(ScalarParam(name, dtype) for name, dtype in others if name not in known)
    return replace(program, params=(*program.params, *more))


def _over(accumulator: Accumulator, values: tuple[Expr, ...]) -> Accumulator:
    return replace(accumulator, value=whole_of(values, accumulator.type))


def _declared_again(stage: Stage, then: tuple[Stmt, ...], kept: tuple[Expr, ...]) -> tuple[Stmt, ...]:
    """The statements with a local for every one that later stages read; passes may have dropped it for its value."""
    present = {name for name, _ in declared(then)}
    pairs = zip(declared(stage.then), kept, strict=False)
    return (*then, *(Declare(name, dtype, value) for (name, dtype), value in pairs if name not in present))
