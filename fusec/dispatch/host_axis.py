"""A call of a reduction or a scan with host arrays: its arguments, its plan, and its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.arguments.operands import (
    Array,
    dtype_of,
    host_array,
    is_number,
    output_array,
    outputs_of,
    view_of,
    without_memory,
)
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.locks import fork_safe
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import default_rounding
from fusec.codegen import ON_HOST
from fusec.compiler import pipeline, reduction_pipeline
from fusec.compiler.reduction_pipeline import MASK
from fusec.dispatch import composites
from fusec.dispatch.axes import plain_axis
from fusec.dispatch.axis_plan import AxisPlan, CompiledLaunch
from fusec.dispatch.axis_spec import Along, AxisSpec, Bound, Given
from fusec.dispatch.overlap import ArrayArgument, check_outputs, is_staged
from fusec.dispatch.reductions import asks_for_positions
from fusec.errors.arguments import OutputTooLarge
from fusec.errors.reductions import WhereNotBool
from fusec.ir.loops import ScalarParam
from fusec.ir.reductions import AXIS
from fusec.ir.scans import COUNT, NUMBER
from fusec.kinds.launch import Launch
from fusec.kinds.slots import arrange


@dataclass
class AxisCall:
    """The arguments of one call, read and checked for kind."""

    inputs: dict[str, Array]  # numbers left out
    values: dict[str, object]  # the numbers
    outputs: list[Array] | None  # as given
    mask: Array | None  # the where= array
    along: Along

    def without_memory(self) -> AxisCall:
        """The part of a call that may be stored: the layout of its arrays, but not the arrays."""
        inputs = {name: without_memory(each) for name, each in self.inputs.items()}
        outputs = None if self.outputs is None else list(map(without_memory, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs)

    @property
    def sources(self) -> dict[str, Array]:
        """All arrays that are read."""
        return self.inputs if self.mask is None else {**self.inputs, MASK: self.mask}

    @property
    def key(self) -> object:
        """The key of the plan."""
        arrays = [*self.sources.values(), *(self.outputs or ())]
        described = [(each.dtype, each.shape, each.strides, each.flags.aligned) for each in arrays]
        marks = (tuple(self.inputs), self.mask is None, self.outputs is None, tuple(self.values))
        return (tuple(described), marks, *key_of_axes(self.along))


def key_of_axes(along: Along) -> tuple[object, ...]:
    """The part of the key that depends on the axes."""
    axis = tuple(along.axis) if isinstance(along.axis, list) else along.axis
    return type(axis), axis, along.keepdims, along.reverse  # True is no axis, but equals 1


# A call as its arguments show it: its axes, then dtype, shape and strides of each array, the type of a number.
Key = tuple[object, ...]


def key_of(along: Along, args: Sequence[object]) -> Key:
    """What calls without a given output must have in common to be repeated alike."""
    kinds = [(each.dtype, each.shape, each.strides) if type(each) is np.ndarray else type(each) for each in args]
    return along.axis, along.keepdims, along.reverse, *kinds


def read(kernel: AxisSpec, args: tuple[object, ...], out: object, along: Along) -> AxisCall:
    """Sort the arguments into arrays and numbers; raises for anything else."""
    inputs: dict[str, Array] = {}
    values: dict[str, object] = {}
    for param, arg in zip(kernel.in_params, args, strict=False):
        if is_number(arg):
            values[param.name] = arg
        else:
            inputs[param.name] = host_array(arg, param.name, kernel.name)
    given = args[kernel.nin :] if out is None else outputs_of(out)
    outputs = None
    if given:
        named = zip(kernel.out_params, given, strict=True)
        outputs = [output_array(each, param.name, kernel.name) for param, each in named]
        check_outputs(kernel.name, _outputs(kernel, outputs))
    where, mask = along.where, None
    if where is not True and where is not None:
        mask = np.asarray(where) if is_number(where) else host_array(where, "where", kernel.name)
        if mask.dtype != np.bool_:
            raise WhereNotBool(kernel.name, str(mask.dtype)).at()
    axes = Along(plain_axis(along.axis), bool(along.keepdims), mask is None, bool(along.reverse))
    return AxisCall(inputs, values, outputs, mask, axes)


def _held(kernel: AxisSpec, name: str, array: Array) -> ArrayArgument:
    return ArrayArgument(name, view_of(array, dtype_of(array, name, kernel.name)), array)


def _outputs(kernel: AxisSpec, arrays: Sequence[Array]) -> list[ArrayArgument]:
    return [_held(kernel, param.name, each) for param, each in zip(kernel.out_params, arrays, strict=True)]


def is_disturbed(kernel: AxisSpec, call: AxisCall) -> bool:
    """Whether an output overlaps inputs, or may do so: results are then stored elsewhere first."""
    if call.outputs is None:
        return False
    inputs = [_held(kernel, name, each) for name, each in call.sources.items()]
    return is_staged(inputs, _outputs(kernel, call.outputs), kernel.in_place)


# --- plans ---------------------------------------------------------------------------------------------------------


def given_of(kernel: AxisSpec, call: AxisCall) -> Given:
    """The arguments as memory."""
    views = {name: _held(kernel, name, each).view for name, each in call.sources.items()}
    outputs = None if call.outputs is None else tuple(each.view for each in _outputs(kernel, call.outputs))
    mask = None if call.mask is None else views.pop(MASK)
    return Given(views, frozenset(call.values), outputs, mask, call.along)


@fork_safe
def make_plan(kernel: AxisSpec, call: AxisCall) -> AxisPlan:
    """Bind types, order the walk, compile every launch."""
    with locks.lock:
        from fusec.runtime.cpu.machine import thread_count

    given = given_of(kernel, call)
    bound = kernel.kind.bind(kernel, given, kernel.kind.machine(thread_count()), None)
    fitted = kernel.kind.fitted(kernel, bound)
    if fitted.chain:
        compiled = _compiled(kernel, bound, fitted.chain)
        if chained := composites.chain(kernel, bound, compiled):
            return AxisPlan(bound, (chained,), tuple(step.executable.kernel for step in compiled))
        bound = replace(bound, chain=())
    steps = _compiled(kernel, bound, fitted.launches)
    return AxisPlan(bound, steps, tuple(step.executable.kernel for step in steps))


def _compiled(kernel: AxisSpec, bound: Bound, launches: Sequence[Launch]) -> tuple[CompiledLaunch, ...]:
    """Kernels with what no call changes filled in."""
    with locks.lock:
        from fusec.runtime.cpu import engine
        from fusec.runtime.cpu.machine import thread_count

    found = []
    for launch in launches:
        generate = partial(kernel.kind.generate, kernel.definition, bound.request, launch, ON_HOST, 1)
        key = (bound.request.key, launch.code(False))
        executable = pipeline.compiled(kernel.kind.name, kernel.definition.texts, key, generate)
        executable = engine.with_grain(executable, *kernel.kind.grain(launch, thread_count()))
        known = {AXIS: launch.extent, NUMBER: 0, COUNT: 0, **bound.sizes}
        found.append(
            CompiledLaunch(launch, executable, arrange(executable.kernel, launch, launch.extents, bound.raw, known))
        )
    return tuple(found)


# --- running -------------------------------------------------------------------------------------------------------


def execute(kernel: AxisSpec, plan: AxisPlan, call: AxisCall) -> Sequence[Array]:
    """Run the plan of a call; the outputs, new ones if none were given."""
    outputs = call.outputs or [
        new_output(kernel, param, shape, plan.bound.types[param.name].numpy, zeroed=param.name in plan.bound.read)
        for param, shape in zip(kernel.out_params, plan.bound.shapes, strict=True)
    ]
    if plan.bound.is_empty:
        _store_empty(kernel, plan, call, outputs)
    else:
        _run_steps(kernel, plan, call, outputs)
    return outputs


def new_output(kernel: AxisSpec, param: Parameter, shape: Shape, dtype: np.dtype[Any], *, zeroed: bool) -> Array:
    """An output in C order. Raises OutputTooLarge."""
    with locks.lock:
        from fusec.runtime.cpu import memory

    try:
        made: Array = memory.zeros(shape, dtype) if zeroed else memory.empty(shape, dtype)
    except (MemoryError, OSError, ValueError) as problem:
        raise OutputTooLarge(kernel.name, param.name, shape, prod(shape) * dtype.itemsize).at() from problem
    return made


def copy(source: Array, target: Array) -> None:
    """Copy an array's elements."""
    target[...] = source


def _run_steps(kernel: AxisSpec, plan: AxisPlan, call: AxisCall, outputs: Sequence[Array]) -> None:
    """The launches in order; what one leaves, later ones read."""
    with locks.lock:
        from fusec.runtime.cpu import memory

    arrays: dict[str, Array] = dict(call.sources)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, outputs, strict=True)}
    for step in plan.steps:
        arrays |= {name: memory.empty(shape, dtype.numpy) for name, shape, dtype in step.launch.made}
    addresses = {name: each.__array_interface__["data"][0] for name, each in arrays.items()}
    for step in plan.steps:
        slots = step.arguments.fill(addresses, call.values, kernel.name)
        step.executable.run(slots.buffer_info()[0], step.launch.positions)


def _store_empty(kernel: AxisSpec, plan: AxisPlan, call: AxisCall, outputs: Sequence[Array]) -> None:
    """Totals of no elements."""
    flat = [
        each if param.name in kernel.elements or each.shape == plan.bound.kept else each.reshape(plan.bound.kept)
        for param, each in zip(kernel.out_params, outputs, strict=True)
    ]
    held = flat if plan.bound.read else None
    for value, each in zip(empty_totals(kernel, plan.bound, call.values, held), flat, strict=True):
        each[...] = value


@default_rounding()
def empty_totals(
    kernel: AxisSpec, bound: Bound, values: Mapping[str, object], held: Sequence[Array] | None = None
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
