"""A call of a reduction with host arrays: axes, shapes, types, phases, and where results of chunks lie meanwhile."""

from __future__ import annotations

import operator
from array import array
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fusec import forking, layouts
from fusec.dtypes import BOOL, DType
from fusec.errors.arguments import (
    OutputIsNotAnArray,
    OutputIsReadOnly,
    OutputOverlapsItself,
    OutputsOverlap,
    OutputTooLarge,
    OutShapeMismatch,
    ShapesDoNotBroadcast,
    SizeUndecided,
)
from fusec.errors.reductions import (
    AxisNotInteger,
    AxisOutOfBounds,
    AxisTwice,
    NothingToReduce,
    RowsTooLong,
    WhereNotBool,
)
from fusec.forking import forks_wait
from fusec.ir.reductions import REDUCED, chunk_of
from fusec.kernel import Slot
from fusec.layouts import Shape, View
from fusec.operands import Array, dtype_of, host_array, is_number, may_overlap, shares_memory, view_of, wrapper_of
from fusec.records import dataclass
from fusec.reductions import pipeline
from fusec.reductions.pipeline import MASK, Request
from fusec.reductions.plans import Operand, Phase, phases
from fusec.scalars import encode
from fusec.signature import Parameter

if TYPE_CHECKING:
    from fusec.reductions.kernels import Reducing
    from fusec.runtime.cpu.engine import Executable

Axis = object  # None, an integer, or a sequence of integers


@dataclass(frozen=True)
class Step:
    """One kernel of a plan, with the constant part of its arguments.

    template: all slots. pointers: (slot, name, offset in bytes). scalars: (slot, name, dtype, half of a complex128).
    """

    phase: Phase
    executable: Executable
    template: array[int]
    pointers: tuple[tuple[int, str, int], ...]
    scalars: tuple[tuple[int, str, DType, int], ...]


@dataclass(frozen=True)
class Plan:
    """A compiled reduction for one combination of dtypes, shapes, strides and axes.

    types: of all parameters. shapes: of the outputs. kept: of the totals, without axes kept for their place. count:
    elements of one total. is_empty: totals have no elements; then nothing is run.
    """

    types: Mapping[str, DType]
    shapes: tuple[Shape, ...]
    kept: Shape
    count: int
    steps: tuple[Step, ...]
    partials: tuple[tuple[str, str, DType], ...]
    request: Request
    is_empty: bool


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

    @property
    def key(self) -> object:
        """What the plan depends on."""
        arrays = [*self.inputs.values(), *([] if self.mask is None else [self.mask]), *(self.outputs or ())]
        described = [(each.dtype, each.shape, each.strides, each.flags.aligned) for each in arrays]
        marks = (tuple(self.inputs), self.mask is None, self.outputs is None, tuple(self.values), self.keepdims)
        axis = tuple(self.axis) if isinstance(self.axis, list) else self.axis
        return (tuple(described), marks, axis)


def run(
    kernel: Reducing, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool, where: object
) -> tuple[object, ...]:
    """Reduce host arrays and return all outputs."""
    call = read(kernel, args, out, axis, keepdims, where)
    plan = kernel.plan(call)
    outputs = _allocate(kernel, plan) if call.outputs is None or _disturbed(call) else call.outputs
    flat = [
        each if param.name in kernel.elements else _without_kept(each, plan.kept)
        for param, each in zip(kernel.out_params, outputs, strict=True)
    ]
    if plan.is_empty:
        _store_empty(kernel, plan, flat)
    elif plan.steps:
        _run_steps(kernel, plan, call, flat)
    if call.outputs is None:
        wrap = wrapper_of(args)
        return tuple(each if wrap is None else wrap(each) for each in outputs)
    given: Sequence[object] = out if isinstance(out, (tuple, list)) else (out,)
    if call.outputs is not outputs:
        for target, source in zip(call.outputs, outputs, strict=True):
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
    outputs = None if given is None else [_output(kernel, *pair) for pair in zip(kernel.out_params, given, strict=True)]
    if outputs is not None:
        _check_outputs(kernel, outputs)
    mask = None
    if where is not True and where is not None:
        mask = host_array(
            np.asarray(where) if isinstance(where, (bool, np.bool_, list)) else where, "where", kernel.name
        )
        if mask.dtype != np.bool_:
            raise WhereNotBool(kernel.name, str(mask.dtype)).at()
    return Call(inputs, values, outputs, mask, axis, bool(keepdims))


def _output(kernel: Reducing, param: Parameter, given: object) -> Array:
    if given is None or is_number(given):
        raise OutputIsNotAnArray(kernel.name, param.name, repr(given)).at()
    found = host_array(given, param.name, kernel.name)
    if not found.flags.writeable:
        raise OutputIsReadOnly(kernel.name, param.name).at()
    return found


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


def _disturbed(call: Call) -> bool:
    """Whether an output lies where inputs are read: totals are then stored elsewhere first."""
    assert call.outputs is not None, "outputs are given"
    inputs = [*call.inputs.values(), *([] if call.mask is None else [call.mask])]
    return any(np.may_share_memory(output, each) for output in call.outputs for each in inputs)


def normalised(kernel: Reducing, axis: Axis, shape: Shape) -> tuple[int, ...]:
    """The axes to reduce, from the first on; raises with NumPy's texts."""
    ndim = len(shape)
    if axis is None:
        return tuple(range(ndim))
    found = []
    for each in axis if isinstance(axis, (tuple, list)) else (axis,):
        try:
            number = operator.index(each)
        except TypeError as reason:
            raise AxisNotInteger(repr(axis)).at() from reason
        if isinstance(each, (bool, np.bool_)):
            raise AxisNotInteger(repr(axis)).at()
        if not -ndim <= number < ndim:
            raise AxisOutOfBounds(kernel.name, number, ndim, shape).at()
        found.append(number % ndim)
    if len(set(found)) != len(found):
        raise AxisTwice(repr(axis)).at()
    return tuple(sorted(found))


def walk_shape(kernel: Reducing, shapes: Mapping[str, Shape]) -> Shape:
    """The shape that the inputs have together. Raises ShapesDoNotBroadcast."""
    shape: Shape | None = None
    for name, each in shapes.items():
        joined = each if shape is None else layouts.common_shape(shape, each)
        if isinstance(joined, int):
            assert shape is not None
            raise ShapesDoNotBroadcast(kernel.name, name, shape, each, joined).at()
        shape = joined
    if shape is None:
        raise SizeUndecided(kernel.name, "no argument that is not raw is an array", "pass an array to reduce").at()
    return shape


# --- plans ---------------------------------------------------------------------------------------------------------


@forks_wait
def make_plan(kernel: Reducing, call: Call) -> Plan:
    """Bind types, order the walk, compile every phase."""
    dtypes = [
        dtype_of(call.inputs[param.name], param.name, kernel.name) if param.name in call.inputs else None
        for param in kernel.in_params
    ]
    given = call.outputs or []
    dtypes += [dtype_of(each, param.name, kernel.name) for param, each in zip(kernel.out_params, given, strict=False)]
    dtypes += [None] * (kernel.nargs - len(dtypes))
    types = kernel.signature.bind(dtypes)
    along = {param.name for param in kernel.in_params if not param.raw} | {MASK}
    arrays = {**call.inputs, **({} if call.mask is None else {MASK: call.mask})}
    shape = walk_shape(kernel, {name: each.shape for name, each in arrays.items() if name in along})
    axes = normalised(kernel, call.axis, shape)
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    result = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape)) if call.keepdims else kept
    shapes = tuple(shape if param.name in kernel.elements else result for param in kernel.out_params)
    for param, each, wanted in zip(kernel.out_params, given, shapes, strict=False):
        if each.shape != wanted:
            raise OutShapeMismatch(kernel.name, param.name, each.shape, wanted).at()
    ndims = tuple((param.name, call.inputs[param.name].ndim) for param in kernel.in_params if param.raw)
    uses = kernel.uses_index
    request = Request(
        pipeline.types_with_mask(types, call.mask is not None), frozenset(call.values),
        len(shape) if uses else 1, axes if uses else (0,), ndims, call.mask is not None, kernel.fp,
    )  # fmt: skip
    reduction, empty = pipeline.lower(kernel.definition, request)
    parts = () if reduction.total is None else reduction.total.parts
    partials = tuple((f"_partial{at}", f"_given{at}", dtype) for at, (_, dtype) in enumerate(parts))
    is_empty = 0 in shape and 0 not in kept
    if is_empty and not empty.body:
        raise NothingToReduce(kernel.name, shape).at()
    steps: tuple[Step, ...] = ()
    if 0 not in shape:
        operands = _operands(kernel, arrays, types, shape, axes, given)
        raw = [(name, view_of(each, types[name])) for name, each in arrays.items() if name not in along]
        found = phases(shape, axes, operands, raw, lanes=reduction.lanes, partials=partials, as_is=uses)
        if reduction.total is None and len(found) > 1:
            raise RowsTooLong(
                kernel.name, chunk_of(reduction.lanes, found[0].is_last), prod(shape[a] for a in axes)
            ).at()
        raws = dict(raw)
        steps = tuple(_step(kernel, request, phase, raws) for phase in found)
    count = prod(shape[axis] for axis in axes)
    return Plan(types, shapes, kept, count, steps, partials, request, is_empty)


def _operands(
    kernel: Reducing,
    arrays: Mapping[str, Array],
    types: Mapping[str, DType],
    shape: Shape,
    axes: tuple[int, ...],
    given: Sequence[Array],
) -> list[Operand]:
    """Inputs and outputs as memory along the walk; outputs to allocate lie in C order."""
    found = []
    raw = {param.name for param in kernel.in_params if param.raw}
    for name, each in arrays.items():
        if name not in raw:
            view = view_of(each, BOOL if name == MASK else types[name])
            found.append(Operand(name, view, layouts.broadcast_strides(view, shape), is_output=False))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    for at, param in enumerate(kernel.out_params):
        dtype = types[param.name]
        if param.name in kernel.elements:
            whole = view_of(given[at], dtype) if given else View(0, shape, _c_strides(shape, dtype.nbytes), dtype)
            found.append(Operand(param.name, whole, layouts.broadcast_strides(whole, shape), is_output=True))
            continue
        if given:
            view = view_of(_without_kept(given[at], tuple(shape[axis] for axis in kept)), dtype)
        else:
            extents = tuple(shape[axis] for axis in kept)
            view = View(0, extents, _c_strides(extents, dtype.nbytes), dtype)
        strides = [0] * len(shape)
        for axis, stride in zip(kept, view.strides, strict=True):
            strides[axis] = 0 if shape[axis] == 1 else stride
        found.append(Operand(param.name, view, tuple(strides), is_output=True))
    return found


def _c_strides(shape: Shape, nbytes: int) -> Shape:
    strides = []
    for extent in reversed(shape):
        strides.append(nbytes)
        nbytes *= extent
    return tuple(reversed(strides))


def _step(kernel: Reducing, request: Request, phase: Phase, raw: Mapping[str, View]) -> Step:
    """Compile one phase and fill in what no call changes."""
    with forking.lock:
        from fusec.runtime.cpu import engine

    executable = pipeline.executable(kernel.definition, request, phase)
    elements = max(1, phase.extents[phase.axis] // phase.chunks)
    executable = engine.with_grain(executable, elements)
    walks = {name: (strides, offset) for name, strides, offset in phase.operands}
    template, pointers, scalars = array("q"), [], []
    for position, slot in enumerate(executable.kernel.slots):
        template.append(_constant(slot, phase, walks, raw))
        if slot.kind == "pointer":
            pointers.append((position, slot.param, walks[slot.param][1] if slot.param in walks else 0))
        elif slot.kind == "scalar":
            scalars.append((position, slot.param, slot.dtype, slot.axis if slot.dtype.bits == 128 else 0))
    return Step(phase, executable, template, tuple(pointers), tuple(scalars))


def _constant(slot: Slot, phase: Phase, walks: Mapping[str, tuple[Shape, int]], raw: Mapping[str, View]) -> int:
    match slot.kind:
        case "size":
            size = 1
            for extent in phase.extents:
                size *= extent
            return size
        case "extent":
            return phase.extents[slot.axis]
        case "stride":
            return walks[slot.param][0][slot.axis]
        case "raw_size":
            return raw[slot.param].size
        case "raw_extent":
            return raw[slot.param].shape[slot.axis]
        case "raw_stride":
            return raw[slot.param].strides[slot.axis]
        case "pointer" | "scalar":
            return 0


# --- running -------------------------------------------------------------------------------------------------------


def _run_steps(kernel: Reducing, plan: Plan, call: Call, outputs: Sequence[Array]) -> None:
    """The phases in order; the results of chunks of one are the inputs of the next."""
    with forking.lock:
        from fusec.runtime.cpu import memory

    arrays: dict[str, Array] = dict(call.inputs)
    if call.mask is not None:
        arrays[MASK] = call.mask
    arrays |= {param.name: each for param, each in zip(kernel.out_params, outputs, strict=True)}
    for step in plan.steps:
        made: dict[str, Array] = {}
        if step.phase.role in ("first", "next"):
            for stored, given, dtype in plan.partials:
                arrays[stored] = made[given] = memory.empty(step.phase.space, dtype.numpy)
        slots = step.template[:]
        for slot, name, offset in step.pointers:
            slots[slot] = arrays[name].__array_interface__["data"][0] + offset
        for slot, name, dtype, half in step.scalars:
            number = plan.count if name == REDUCED else call.values[name]
            slots[slot] = encode(number, dtype, name, kernel.name)[half]
        step.executable.run(slots.buffer_info()[0], step.phase.positions)
        arrays |= made


def _allocate(kernel: Reducing, plan: Plan) -> list[Array]:
    with forking.lock:
        from fusec.runtime.cpu import memory

    made = []
    for param, shape in zip(kernel.out_params, plan.shapes, strict=True):
        dtype = plan.types[param.name]
        try:
            made.append(memory.empty(shape, dtype.numpy))
        except (MemoryError, OSError, ValueError) as problem:
            raise OutputTooLarge(kernel.name, param.name, shape, prod(shape) * dtype.nbytes).at() from problem
    return made


def _without_kept(array: Array, kept: Shape) -> Array:
    """The array without the axes of one element that stand for reduced ones."""
    return array if array.shape == kept else array.reshape(kept)


def _store_empty(kernel: Reducing, plan: Plan, outputs: Sequence[Array]) -> None:
    """Totals of no elements."""
    from fusec.ir.interpret import interpret
    from fusec.passes.expand import expand

    _, empty = pipeline.lower(kernel.definition, plan.request)
    arrays = {param.name: np.zeros((), plan.types[param.name].numpy) for param in kernel.out_params}
    interpret(expand(empty), arrays, {}, ())
    for param, each in zip(kernel.out_params, outputs, strict=True):
        each[...] = arrays[param.name]
