"""A call of a reduction with host arrays: axes, shapes, types, phases, and where results of chunks lie meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import (
    Array,
    dtype_of,
    host_array,
    is_number,
    may_overlap,
    output_array,
    shares_memory,
    view_of,
    without_memory,
    wrapper_of,
)
from fusec.base import locks
from fusec.base.locks import forks_wait
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import usual
from fusec.compiler import reduction_pipeline
from fusec.compiler.reduction_pipeline import MASK
from fusec.dispatch.bind import Axis, Bound, Given, asks_for_positions, bind, plain_axis
from fusec.errors.arguments import OutputOverlapsItself, OutputsOverlap, OutputTooLarge
from fusec.errors.reductions import WhereNotBool
from fusec.ir.loops import ScalarParam
from fusec.kinds.reduction import Arguments, Phase, arrange

if TYPE_CHECKING:
    from fusec.dispatch.planned_reduction import Reducing
    from fusec.runtime.cpu.engine import Executable

TOGETHER_AGAIN = 64  # the same where results of chunks are combined, which lie in the caches
TOGETHER = 512  # columns that a thread takes side by side, so that memory is read in long rows


@dataclass(frozen=True)
class Step:
    """One kernel of a plan, with its arguments."""

    phase: Phase
    executable: Executable
    arguments: Arguments


@dataclass(frozen=True)
class Plan:
    """A compiled reduction for one combination of dtypes, shapes, strides and axes."""

    bound: Bound
    steps: tuple[Step, ...]


@dataclass
class Call:
    """The arguments of one call, read and checked for kind.

    inputs: by name, numbers left out. values: the numbers. outputs: as given, or None. mask: the where= array.
    """

    inputs: dict[str, Array]
    values: dict[str, object]
    outputs: list[Array] | None
    mask: Array | None
    axis: Axis
    keepdims: bool

    def without_memory(self) -> Call:
        """What may be remembered of it: how its arrays lie, but not the arrays."""
        inputs = {name: without_memory(each) for name, each in self.inputs.items()}
        outputs = None if self.outputs is None else list(map(without_memory, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs)

    @property
    def key(self) -> object:
        """What the plan depends on."""
        arrays = [*self.inputs.values(), *([] if self.mask is None else [self.mask]), *(self.outputs or ())]
        described = [(each.dtype, each.shape, each.strides, each.flags.aligned) for each in arrays]
        marks = (tuple(self.inputs), self.mask is None, self.outputs is None, tuple(self.values), self.keepdims)
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        return (tuple(described), marks, type(axis), axis)  # True is no axis, but equals 1


# A call as its arguments show it: axis and keepdims, then dtype, shape and strides of each array, the type of a number.
Key = tuple[object, ...]


def key_of(axis: object, keepdims: bool, args: Sequence[object]) -> Key:
    """What calls without a given output must have in common to be repeated alike."""
    kinds = [(each.dtype, each.shape, each.strides) if type(each) is np.ndarray else type(each) for each in args]
    return axis, keepdims, *kinds


def run(
    kernel: Reducing, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool, where: object
) -> tuple[object, ...]:
    """Reduce host arrays and return all outputs."""
    call = read(kernel, args, out, axis, keepdims, where)
    asked = call.outputs
    if asked is not None and _disturbed(kernel, call):
        call = replace(call, outputs=[np.empty(each.shape, each.dtype) for each in asked])
    plan = kernel.plan(call)
    if asked is not None and asked is not call.outputs and plan.bound.read:
        assert call.outputs is not None, "outputs are given"
        for target, source in zip(call.outputs, asked, strict=True):
            target[...] = source
    outputs = _allocate(kernel, plan) if call.outputs is None else call.outputs
    flat = [
        each if param.name in kernel.elements else _without_kept(each, plan.bound.kept)
        for param, each in zip(kernel.out_params, outputs, strict=True)
    ]
    if plan.bound.is_empty:
        _store_empty(kernel, plan, call, flat)
    elif plan.steps:
        _run_steps(kernel, plan, call, flat)
    if asked is None:
        wrap = wrapper_of(args)
        return tuple(each if wrap is None else wrap(each) for each in outputs)
    given: Sequence[object] = out if isinstance(out, (tuple, list)) else (out,)
    if asked is not outputs:
        for target, source in zip(asked, outputs, strict=True):
            target[...] = source
    return tuple(given) if out is not None else args[kernel.nin :]


# --- reading -------------------------------------------------------------------------------------------------------


def read(kernel: Reducing, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool, where: object) -> Call:
    """Sort the arguments into arrays and numbers; raises for anything else."""
    inputs: dict[str, Array] = {}
    values: dict[str, object] = {}
    for param, arg in zip(kernel.in_params, args, strict=False):
        if is_number(arg):
            values[param.name] = arg
        else:
            inputs[param.name] = host_array(arg, param.name, kernel.name)
    given: Sequence[object] | None = args[kernel.nin :] or None
    if out is not None:
        given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    outputs = None
    if given is not None:
        named = zip(kernel.out_params, given, strict=True)
        outputs = [output_array(each, param.name, kernel.name) for param, each in named]
        _check_outputs(kernel, outputs)
    mask = None
    if where is not True and where is not None:
        mask = np.asarray(where) if is_number(where) else host_array(where, "where", kernel.name)
        if mask.dtype != np.bool_:
            raise WhereNotBool(kernel.name, str(mask.dtype)).at()
    return Call(inputs, values, outputs, mask, plain_axis(axis), bool(keepdims))


def _check_outputs(kernel: Reducing, outputs: Sequence[Array]) -> None:
    """No output may share memory with itself or with another."""
    views = [
        view_of(each, dtype_of(each, param.name, kernel.name))
        for param, each in zip(kernel.out_params, outputs, strict=True)
    ]
    for at, (param, view) in enumerate(zip(kernel.out_params, views, strict=True)):
        if layouts.has_internal_overlap(view):
            raise OutputOverlapsItself(kernel.name, param.name).at()
        for other in range(at):
            if may_overlap(view, views[other]) and shares_memory(outputs[at], outputs[other]):
                raise OutputsOverlap(kernel.name, kernel.out_params[other].name, param.name).at()


def _disturbed(kernel: Reducing, call: Call) -> bool:
    """Whether an output lies where inputs are read, or may be: totals are then stored elsewhere first."""
    assert call.outputs is not None, "outputs are given"
    inputs = [*call.inputs.items(), *([] if call.mask is None else [(MASK, call.mask)])]
    return any(
        np.may_share_memory(output, each) and not ((param.name, name) in kernel.in_place and _is_same(output, each))
        for param, output in zip(kernel.out_params, call.outputs, strict=True)
        for name, each in inputs
    )


def _is_same(left: Array, right: Array) -> bool:
    """Whether two arrays are the same elements in the same order."""
    places = [(each.__array_interface__["data"][0], each.shape, each.strides, each.itemsize) for each in (left, right)]
    return places[0] == places[1]


# --- plans ---------------------------------------------------------------------------------------------------------


@forks_wait
def make_plan(kernel: Reducing, call: Call) -> Plan:
    """Bind types, order the walk, compile every phase."""

    def view(array: Array, param: str) -> View:
        return view_of(array, dtype_of(array, param, kernel.name))

    outputs = None
    if call.outputs is not None:
        named = zip(kernel.out_params, call.outputs, strict=True)
        outputs = tuple(view(each, param.name) for param, each in named)
    given = Given(
        inputs={name: view(each, name) for name, each in call.inputs.items()},
        numbers=frozenset(call.values),
        outputs=outputs,
        mask=None if call.mask is None else view(call.mask, MASK),
        axis=call.axis,
        keepdims=call.keepdims,
    )
    bound = bind(kernel, given)
    return Plan(bound, tuple(_step(kernel, bound, phase) for phase in bound.phases))


def _step(kernel: Reducing, bound: Bound, phase: Phase) -> Step:
    """Compile one phase and fill in what no call changes."""
    with locks.lock:
        from fusec.runtime.cpu import engine

    if _exceeds_cache(kernel, bound) if phase.is_last else _is_far(bound, phase):
        phase = replace(phase, layout=replace(phase.layout, streaming=True))
    executable = reduction_pipeline.executable(kernel.definition, bound.request, phase)
    elements = max(1, phase.extents[phase.axis] // phase.chunks)
    together = 1 if phase.is_last else TOGETHER if phase.role in ("whole", "first") else TOGETHER_AGAIN
    executable = engine.with_grain(executable, elements, together)
    arguments = arrange(executable.kernel, phase, phase.extents, bound.raw, bound.sizes)
    return Step(phase, executable, arguments)


def _is_far(bound: Bound, phase: Phase) -> bool:
    """Whether what a phase reads lies beyond the last cache."""
    from fusec.runtime.cpu import machine

    names = {name for name, _, _ in phase.operands} & bound.types.keys()
    return prod(phase.extents) * sum(bound.types[name].nbytes for name in names) > machine.last_level_cache_bytes()


def _exceeds_cache(kernel: Reducing, bound: Bound) -> bool:
    """Whether outputs of the shape of the arguments should be written around the caches."""
    from fusec.runtime.cpu import machine

    pairs = zip(kernel.out_params, bound.shapes, strict=True)
    nbytes = sum(prod(shape) * bound.types[each.name].nbytes for each, shape in pairs if each.name in kernel.elements)
    return nbytes > machine.last_level_cache_bytes()


# --- running -------------------------------------------------------------------------------------------------------


def _run_steps(kernel: Reducing, plan: Plan, call: Call, outputs: Sequence[Array]) -> None:
    """The phases in order; the results of chunks of one are the inputs of the next."""
    with locks.lock:
        from fusec.runtime.cpu import memory

    arrays: dict[str, Array] = dict(call.inputs)
    if call.mask is not None:
        arrays[MASK] = call.mask
    arrays |= {param.name: each for param, each in zip(kernel.out_params, outputs, strict=True)}
    for step in plan.steps:
        made: dict[str, Array] = {}
        if step.phase.role in ("first", "next"):
            for stored, given, dtype in plan.bound.partials:
                arrays[stored] = made[given] = memory.empty(step.phase.space, dtype.numpy)
        addresses = {name: each.__array_interface__["data"][0] for name, each in arrays.items()}
        slots = step.arguments.fill(addresses, call.values, kernel.name)
        step.executable.run(slots.buffer_info()[0], step.phase.positions)
        arrays |= made


def _allocate(kernel: Reducing, plan: Plan) -> list[Array]:
    with locks.lock:
        from fusec.runtime.cpu import memory

    made = []
    for param, shape in zip(kernel.out_params, plan.bound.shapes, strict=True):
        dtype = plan.bound.types[param.name]
        try:
            make = memory.zeros if param.name in plan.bound.read else memory.empty
            made.append(make(shape, dtype.numpy))
        except (MemoryError, OSError, ValueError) as problem:
            raise OutputTooLarge(kernel.name, param.name, shape, prod(shape) * dtype.nbytes).at() from problem
    return made


def _without_kept(array: Array, kept: Shape) -> Array:
    """The array without the axes of one element that stand for reduced ones."""
    return array if array.shape == kept else array.reshape(kept)


def _store_empty(kernel: Reducing, plan: Plan, call: Call, outputs: Sequence[Array]) -> None:
    """Totals of no elements."""
    held = outputs if plan.bound.read else None
    for value, each in zip(empty_totals(kernel, plan.bound, call.values, held), outputs, strict=True):
        each[...] = value


@usual()
def empty_totals(
    kernel: Reducing, bound: Bound, values: Mapping[str, object], held: Sequence[Array] | None = None
) -> list[Array]:
    """The outputs for one total of no elements. values: of the inputs that are numbers.

    held: what the outputs hold, without axes kept for their place; then the outputs for all totals.
    """
    from fusec.ir.interpret import interpret
    from fusec.passes.expand import expand

    _, empty = reduction_pipeline.lower(kernel.definition, bound.request)
    shape = () if held is None else bound.kept
    if asks_for_positions(empty.body):  # then axes are those of the walk, and totals differ
        shape = tuple(1 if axis in bound.request.reduced else extent for axis, extent in enumerate(bound.shape))
    arrays = {param.name: np.zeros(shape, bound.types[param.name].numpy) for param in kernel.out_params}
    for array, each in zip(arrays.values(), held or (), strict=False):
        array[...] = each.reshape(shape)
    numbers = {**values, **bound.sizes}
    scalars = {param.name: numbers[param.name] for param in empty.params if isinstance(param, ScalarParam)}
    interpret(expand(empty), arrays, scalars, shape)
    return [each.reshape(bound.kept) if each.shape else each for each in arrays.values()]
