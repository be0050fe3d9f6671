"""Phases: split a reduction of many chunks into several kernels, whose partial results are in arrays between them."""

from __future__ import annotations

from fusec.base.records import replace
from fusec.ir.loops import Local, Param, ScalarParam
from fusec.ir.reductions import Accumulator, ReductionIR, Role, Stage, addressed, given, partials, whole_of


def in_role(reduction: ReductionIR, role: Role) -> ReductionIR:
    """The part of a reduction that one of its kernels does.

    Requires: a total, but for "whole". Ensures: the kernels together do what the reduction does.
    """
    match role:
        case "whole":
            return reduction
        case "first":
            return first_phase(reduction)
        case "next" | "last":
            return next_phase(reduction, is_last=role == "last")


def first_phase(reduction: ReductionIR) -> ReductionIR:
    """The stages, which leave the result of each chunk in arrays `PARTIAL`, one for each part of the total."""
    assert reduction.total is not None, "a reduction whose chunks do not combine has one phase"
    return _storing(reduction, reduction.total)


def next_phase(reduction: ReductionIR, *, is_last: bool) -> ReductionIR:
    """The combination of the results of chunks, read from arrays `GIVEN`; the last one finishes, others store again."""
    total = reduction.total
    assert total is not None, "a reduction whose chunks do not combine has one phase"
    inputs, loads, value = given(total)
    merged = Accumulator(f"{total.name}_merged", total.type, value, total.combine)
    results = tuple(Local(name, dtype) for name, dtype in merged.parts)
    over = replace(total, value=whole_of(results, total.type))
    scalars = tuple(param for param in reduction.params if isinstance(param, ScalarParam))
    outputs = _outputs(reduction)
    stages = (Stage(loads, merged),)
    if is_last:
        return replace(reduction, params=(*scalars, *inputs, *outputs), stages=stages, total=over)
    return _storing(replace(reduction, params=(*scalars, *inputs), stages=stages, total=over), over)


def _outputs(reduction: ReductionIR) -> tuple[Param, ...]:
    """The arrays that only `finish` addresses."""
    used = addressed(reduction.finish)
    return tuple(param for param in reduction.arrays if param.name in used)


def _storing(reduction: ReductionIR, total: Accumulator) -> ReductionIR:
    """The reduction with its totals stored as they are."""
    gone = _outputs(reduction)
    outputs, stores = partials(total)
    params = (*(param for param in reduction.params if param not in gone), *outputs)
    return replace(reduction, params=params, finish=stores)
