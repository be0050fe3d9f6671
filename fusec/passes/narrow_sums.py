"""Narrow sums: add small integers of a chunk in the narrowest dtype that holds its total, more of them in a register.

np.sum and np.count_nonzero add bools and narrow integers as int64. No total of a chunk needs so many bits.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, INT16, INT32, DType
from fusec.base.records import replace
from fusec.ir.expr import Apply, Expr, apply, convert, scalar_type
from fusec.ir.loops import Declare, Function, Local, Return
from fusec.ir.reductions import Accumulator, ReductionIR, Stage, chunk_of


def narrow_sums(reduction: ReductionIR) -> ReductionIR:
    """The reduction with narrow integers that are added as int64 added in fewer bits, chunk by chunk.

    Requires: expanded functions. Ensures: the same results.
    """
    if reduction.total is None:
        return reduction
    most, functions = chunk_of(reduction.lanes, is_last=True), {each.name: each for each in reduction.functions}
    stages = []
    for stage in reduction.stages:
        running = stage.accumulator
        narrow = None if running is None or not _adds(functions[running.combine]) else _narrow(running.value, most)
        if running is None or narrow is None:
            stages.append(stage)
            continue
        combine = _sum(f"{running.combine}_{narrow.name}", narrow)
        functions[combine.name] = combine
        stages.append(_narrowed(stage, running, narrow, combine))
    return replace(reduction, stages=tuple(stages), functions=tuple(functions.values()))


def _adds(combine: Function) -> bool:
    """Whether a combination is the sum of two integers."""
    left, right = (Local(name, kind) for name, kind in combine.params)
    match combine.body:
        case (Return(value=Apply(op="add", args=(a, b), type=dtype)),):
            return dtype.is_integer and {a, b} == {left, right}
    return False


def _narrow(value: Expr, most: int) -> DType | None:
    """The narrower dtype that holds sums of so many values, if they are converted from one that has few bits."""
    match value:
        case Apply(op="convert", args=(small,), type=dtype) if dtype.bits == 64:
            given = scalar_type(small)
            if given == BOOL or (given.is_integer and given.bits <= 16):
                bits = (0 if given == BOOL else given.bits) + most.bit_length()
                return INT16 if bits < 16 else INT32 if bits < 32 else None
    return None


def _sum(name: str, dtype: DType) -> Function:
    a, b = Local("a", dtype), Local("b", dtype)
    return Function(name, (("a", dtype), ("b", dtype)), dtype, (Return(apply("add", a, b)),))


def _narrowed(stage: Stage, running: Accumulator, narrow: DType, combine: Function) -> Stage:
    """The walk over narrow numbers, after which the local of its result is as wide as before."""
    assert isinstance(running.value, Apply), "a conversion"
    held = Accumulator(f"{running.name}_narrow", narrow, convert(running.value.args[0], narrow), combine.name)
    ((name, wide),) = running.parts
    total = Declare(name, wide, convert(Local(held.name, narrow), wide))
    return Stage(stage.body, held, (total, *stage.then))
