"""The stages of a reduction: texts -> reduction -> phases -> passes -> kernel -> executable, with the disk cache."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from fusec.base.dtypes import BOOL, INT64, DType
from fusec.base.kernel_abi import Kernel
from fusec.base.locks import fork_safe
from fusec.base.ops import TABLE
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.codegen import ON_HOST, target_of
from fusec.compiler import pipeline
from fusec.compiler.lowering import lower_reduction
from fusec.compiler.pipeline import Source
from fusec.environment import debug
from fusec.errors.reductions import WhereWithoutIdentity
from fusec.ir.expr import Apply, const
from fusec.ir.loops import Declare, Load
from fusec.ir.reductions import AXIS, addressed, is_stored
from fusec.ir.walk import expressions, roots_of
from fusec.kinds.launch import MASK, Request
from fusec.kinds.reduction import Phase

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Layout
    from fusec.ir.loops import Program
    from fusec.ir.reductions import ReductionIR, Role


@lru_cache(maxsize=256)
@default_rounding()
def lower(definition: Source, request: Request) -> tuple[ReductionIR, Program]:
    """The typed reduction before any pass, and the program for totals of no elements.

    Raises the front end's errors, and WhereWithoutIdentity.
    """
    reduction, empty = lower_reduction(definition, request)
    if request.masked:
        if not empty.body:
            raise WhereWithoutIdentity(definition.name).at()
        reduction = _masked(reduction, empty)
    return reduction, empty


@lru_cache(maxsize=256)
def is_costly(definition: Source, request: Request) -> bool:
    """Whether a reduction computes elementary functions, such as log, for its elements."""
    reduction, _ = lower(definition, request)
    values = [stage.accumulator.value for stage in reduction.stages if stage.accumulator is not None]
    bodies = [*(stage.body for stage in reduction.stages), *(function.body for function in reduction.functions)]
    roots = [*values, *(root for body in bodies for root in roots_of(body))]
    ops = {expr.op for expr in expressions(roots) if isinstance(expr, Apply)}
    return any(TABLE[op].math.partition(".")[0] not in ("", "basic") for op in ops)


@lru_cache(maxsize=256)
def held_bytes(definition: Source, request: Request) -> int:
    """The bytes of registers that an element of a reduction needs if it is kept there between walks."""
    from fusec.passes.held_elements import held_bytes as of_element

    return of_element(lower(definition, request)[0])


def _masked(reduction: ReductionIR, empty: Program) -> ReductionIR:
    """The reduction that takes the identity where the mask says no."""
    from fusec.passes.mask import mask

    return mask(reduction, MASK, empty)


def prepared(definition: Source, request: Request, phase: Phase) -> ReductionIR:
    """The work of one phase, after all passes over its parts, which the interpreter and the compiler share."""
    made = _prepared.__wrapped__ if debug.is_wanted(3) else _prepared
    return made(definition, request, phase.layout.ndim, phase.role)


@lru_cache(maxsize=64)
@default_rounding()
def _prepared(definition: Source, request: Request, ndim: int, role: Role) -> ReductionIR:
    from fusec import passes

    reduction, _ = lower(definition, request)
    return passes.run(reduction, passes.Facts(request.fp, ndims={"": ndim, **dict(request.ndims)}, role=role))


def program_of(definition: Source, request: Request, phase: Phase) -> Program:
    """A phase as a program for targets with many threads, after all passes."""
    return threaded(prepared(definition, request, phase), phase)


def threaded(reduction: ReductionIR, phase: Phase, number: int = 1) -> Program:
    """A phase as a program for targets with many threads, over the space `phase.threads`.

    number: of the phases of one role, where several are in one file.
    """
    program = _shared_by_threads(reduction, phase, number)
    if not phase.dense_rows:
        return program
    params = tuple(param for param in program.params if param.name != AXIS)
    return replace(program, params=params, body=(Declare(AXIS, INT64, const(phase.extent, INT64)), *program.body))


def _shared_by_threads(reduction: ReductionIR, phase: Phase, number: int) -> Program:
    """The same with the extent of the axis as a parameter, which that of short rows is not."""
    from fusec.passes.block_reduction import BlockShape, reduce_in_blocks
    from fusec.passes.group_reduction import reduce_in_groups
    from fusec.passes.lone_reduction import reduce_alone
    from fusec.passes.serialise import serialise

    name = reduction.name if phase.role == "whole" else f"{reduction.name}_{phase.role}"
    named = replace(reduction, name=name if number == 1 else f"{name}{number}")
    found, axis = phase.sharing, phase.axis
    if found.few:
        return reduce_alone(named, axis, found.rounds, found.is_full, found.few)
    if found.segments:
        block = BlockShape(found.segments, found.rounds, found.is_full, found.chunks, found.blocks)
        return reduce_in_blocks(named, axis, block)
    if phase.is_last:
        return reduce_in_groups(named, axis, found.rounds, found.is_full, found.is_wide)
    return serialise(named, axis, found.rounds, found.is_full, phase.role in ("next", "last"))


@fork_safe
def generate(definition: Source, request: Request, phase: Phase, target: str = ON_HOST, number: int = 1) -> Kernel:
    """The kernel of one phase. number: see `threaded`."""
    reduction, generator = prepared(definition, request, phase), target_of(target).generator
    options = pipeline.options_of(request.fp, definition)
    if generator.reduction is not None:
        kernel = generator.reduction(reduction, phase.layout, phase.axis, options)
    else:
        kernel = generator.program(threaded(reduction, phase, number), layout_of(reduction, phase), options)
    debug.show(5, f"{kernel.title} {kernel.target}", kernel.source)
    return kernel


def layout_of(reduction: ReductionIR, phase: Phase) -> Layout:
    """What the program of `threaded` is specialised for."""
    rows = tuple((name, _is_read_first(reduction, name)) for name in phase.dense_rows)
    return replace(phase.threads_layout, rows=rows, row=phase.extent) if rows else phase.threads_layout


def _is_read_first(reduction: ReductionIR, name: str) -> bool:
    """Whether some walk reads elements of an array before one has stored all of them."""
    for stage in reduction.stages:
        value = [] if stage.accumulator is None else [stage.accumulator.value]
        loads = [each for each in expressions([*value, *roots_of(stage.body)]) if isinstance(each, Load)]
        if any(name in addressed((), [each]) for each in loads):
            return True
        if is_stored(stage.body, name):
            return False
    return True


def types_with_mask(types: Mapping[str, DType], masked: bool) -> tuple[tuple[str, DType], ...]:
    """The dtypes of all arguments, including that of a mask."""
    return (*types.items(), *(((MASK, BOOL),) if masked else ()))
