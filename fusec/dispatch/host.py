"""A call with host arrays: read the arguments, bind types, broadcast, protect overlapping memory, run."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import (
    Array,
    dtype_of,
    host_array,
    is_number,
    memory_order,
    output_array,
    view_of,
    wrapper_of,
)
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass, replace
from fusec.compiler import pipeline
from fusec.compiler.pipeline import Specialisation
from fusec.dispatch.overlap import ArrayArgument, disturbed
from fusec.dispatch.plan import ElementwiseCall, Plan
from fusec.dispatch.spec import KernelSpec
from fusec.environment import debug
from fusec.errors.arguments import (
    OutputSizeUndecided,
    OutputTooLarge,
    OutShapeMismatch,
    ShapesDoNotBroadcast,
    SizeNotAllowed,
    SizeUndecided,
)
from fusec.errors.python import StencilShapes
from fusec.kinds.elementwise import make_space
from fusec.kinds.slots import arrange

if TYPE_CHECKING:
    from fusec.runtime.cpu.fastcall import ArgSpec, KnownLayout


def read(kernel: KernelSpec, args: tuple[object, ...], size: int | Shape) -> ElementwiseCall:
    """Sort the arguments into arrays and numbers; raises for anything else."""
    arrays: list[Array | None] = []
    found: list[DType | None] = []
    key: list[object] = [size]
    numbers = []
    given = len(args) > kernel.nin
    for position, (param, arg) in enumerate(zip(kernel.params, args, strict=False)):
        if position < kernel.nin and is_number(arg):
            arrays.append(None)
            found.append(None)
            numbers.append(param.name)
            key.append(None)
            continue
        if position >= kernel.nin:
            taken = "what follows the inputs is an output; " if is_number(arg) else ""
            array = output_array(arg, param.name, kernel.name, taken)
        else:
            array = (output_array if param.non_const else host_array)(arg, param.name, kernel.name)
        arrays.append(array)
        found.append(dtype_of(array, param.name, kernel.name))
        key.append((array.dtype, array.shape, array.strides, array.flags.aligned))
    if not given:
        arrays += [None] * kernel.nout
        found += [None] * kernel.nout
    return ElementwiseCall(arrays, args, tuple(found), given, size, frozenset(numbers), tuple(key))


def execute(kernel: KernelSpec, call: ElementwiseCall, plan: Plan) -> Sequence[object]:
    """Run the plan of a call; all outputs, new ones in the container of the inputs."""
    _allocate(kernel, call, plan)
    if plan.space.size:
        plan.launch(call.arrays, call.values, kernel.params, kernel.name)
    if call.given:
        return call.values[kernel.nin :]
    wrap = wrapper_of(call.values)
    return [each if wrap is None or each is None else wrap(each) for each in call.arrays[kernel.nin :]]


# --- shapes --------------------------------------------------------------------------------------------------------


def loop_shape(kernel: KernelSpec, shapes: Sequence[Shape | None], size: int | Shape) -> Shape:
    """The shape of the iteration space: that of the non-raw arrays, or (size,) if there is none.

    shapes: of the arguments, None for numbers and outputs not given. size: a shape is that of the space.
    """
    if isinstance(size, tuple):
        return size
    shape: Shape | None = None
    for param, each in zip(kernel.params, shapes, strict=True):
        if each is None or (param.raw and (param.non_const or not kernel.follows_raw)):
            continue
        if size != -1:
            raise SizeNotAllowed(kernel.name, param.name).at()
        joined = each if shape is None else layouts.common_shape(shape, each)
        if isinstance(joined, int):
            assert shape is not None
            if kernel.follows_raw and param.raw:
                raise StencilShapes(kernel.name, param.name, each, shape).at()
            raise ShapesDoNotBroadcast(f"parameter '{param.name}' of kernel '{kernel.name}'", shape, each, joined).at()
        shape = joined
    if size != -1:
        return (size,)
    if shape is None:
        if any(each is not None for each in shapes):
            raise SizeUndecided(kernel.name, "every array argument is raw", "pass size=, the number of elements").at()
        raise SizeUndecided(
            kernel.name, "no argument is an array", "pass an array, e.g. np.asarray(2.0), or size="
        ).at()
    return shape


def check_shapes(kernel: KernelSpec, shapes: Sequence[Shape | None], shape: Shape, size: int | Shape) -> None:
    """Given outputs have the shape of the space, and raw arrays that follow it; raw ones to allocate need `size=`."""
    if kernel.follows_raw:
        for param, each in zip(kernel.in_params, shapes, strict=False):
            if param.raw and not param.non_const and each is not None and each != shape:
                raise StencilShapes(kernel.name, param.name, each, shape).at()
    for param, each in zip(kernel.out_params, shapes[kernel.nin :], strict=True):
        if each is None:
            if param.raw and size == -1:
                raise OutputSizeUndecided(kernel.name, param.name).at()
        elif not param.raw and each != shape:
            raise OutShapeMismatch(kernel.name, param.name, each, shape).at()


# --- plans ---------------------------------------------------------------------------------------------------------


@locks.fork_safe
def make_plan(kernel: KernelSpec, call: ElementwiseCall) -> Plan:
    """Bind types, lay out the space, compile."""
    from fusec.runtime.cpu import engine

    types = kernel.signature.bind(call.dtypes)
    shapes = [None if each is None else each.shape for each in call.arrays]
    shape = loop_shape(kernel, shapes, call.size)
    check_shapes(kernel, shapes, shape, call.size)
    views, orders = _views(kernel, call, types, shape)
    space = make_space(shape, views, uses_index=kernel.uses_index, reduce_dims=kernel.reduce_dims)
    if _exceeds_cache(kernel, views):
        space = replace(space, layout=replace(space.layout, streaming=True))
        debug.show(2, f"{kernel.name}: outputs exceed the last-level cache and are written around it")
    spec = Specialisation(tuple(types.items()), call.numbers, space.layout, kernel.fp)
    executable = pipeline.executable(kernel.definition, spec)
    executable = engine.with_rows(executable, space.extents[-1], space.size)
    return Plan(executable, arrange(executable.kernel, space, space.extents, space.raw, {}), space, types, orders)


def _views(
    kernel: KernelSpec, call: ElementwiseCall, types: dict[str, DType], shape: Shape
) -> tuple[list[tuple[Parameter, View]], dict[str, tuple[int, ...]]]:
    """All array arguments as memory; outputs to allocate lie in the order of the inputs."""
    views: list[tuple[Parameter, View]] = []
    orders: dict[str, tuple[int, ...]] = {}
    for position, (param, each) in enumerate(zip(kernel.params, call.arrays, strict=True)):
        dtype = types[param.name]
        if each is not None:
            views.append((param, view_of(each, dtype)))
        elif position >= kernel.nin:
            inputs = [layouts.broadcast_strides(view, shape) for known, view in views if not known.raw]
            order = tuple(range(len(shape))) if param.raw else memory_order(shape, inputs)
            orders[param.name] = order
            views.append((param, View(0, shape, strides_in_order(shape, order, dtype.nbytes), dtype)))
    return views, orders


def _exceeds_cache(kernel: KernelSpec, views: Sequence[tuple[Parameter, View]]) -> bool:
    """True if the contiguous outputs are larger than the last-level cache, so that they should be written around it."""
    from fusec.runtime.cpu import machine

    outputs = [view for param, view in views if param in kernel.out_params and not param.raw]
    return sum(view.size * view.dtype.nbytes for view in outputs) > machine.last_level_cache_bytes()


def _allocate(kernel: KernelSpec, call: ElementwiseCall, plan: Plan) -> None:
    """Fill in the outputs that were not given; what an element may leave unassigned starts as zero."""
    if call.given:
        return
    with locks.lock:
        from fusec.runtime.cpu import memory

    for position, param in enumerate(kernel.out_params, kernel.nin):
        make = memory.zeros if param.raw or param.name in plan.executable.kernel.fills else memory.empty
        order = plan.orders[param.name]
        axes = None if order == tuple(range(len(order))) else order
        shape, dtype = plan.space.shape, plan.types[param.name]
        try:
            call.arrays[position] = make(shape, dtype.numpy, axes)
        except (MemoryError, OSError, ValueError) as problem:  # ValueError: beyond what an address can say
            nbytes = plan.space.size * dtype.nbytes
            raise OutputTooLarge(kernel.name, param.name, shape, nbytes).at() from problem


# --- memory that overlaps --------------------------------------------------------------------------------------------


def protect(kernel: KernelSpec, call: ElementwiseCall) -> None:
    """Copy inputs that share memory with a given output in another order, as NumPy does; refuse what has no meaning."""
    typed = zip(kernel.params, call.arrays, call.dtypes, strict=True)
    held = [
        ArrayArgument(param.name, view_of(array, dtype), array, param.raw)
        if array is not None and dtype is not None
        else None
        for param, array, dtype in typed
    ]
    found = disturbed(kernel, held)
    for position in found:
        call.arrays[position] = np.array(call.arrays[position], order="K")  # not the copy() of a subclass
    if found:  # strides changed
        call.key = _key(call)


def _key(call: ElementwiseCall) -> object:
    arrays = [
        None if each is None else (each.dtype, each.shape, each.strides, each.flags.aligned) for each in call.arrays
    ]
    return (call.size, *arrays)


# --- the native entries --------------------------------------------------------------------------------------------


def takes_any_shape(kernel: KernelSpec, plan: Plan, numbers: frozenset[str]) -> bool:
    """True if an entry may take contiguous arrays of any shape; outputs beyond the cache have their own code.

    Such an entry does not compare the shapes of raw arrays, so kernels whose raw arrays must have that of the space
    get none.
    """
    from fusec.runtime.cpu import fastcall

    return (
        bool(kernel.out_params)
        and not kernel.follows_raw
        and fastcall.is_contiguous(plan.space.layout)
        and not plan.space.layout.streaming
        and not any(param.raw for param in kernel.out_params)
        and not fastcall.objection(plan.executable, arg_specs(kernel, plan.types, numbers, {}), None)
    )


def typed_entry(
    kernel: KernelSpec, plan: Plan, numbers: frozenset[str], fallback: Callable[..., object]
) -> Callable[..., object]:
    """A native function in front of `fallback` for calls with these dtypes on contiguous arrays of any shape."""
    from fusec.runtime.cpu import fastcall, machine

    arguments = arg_specs(kernel, plan.types, numbers, {})
    form = fastcall.CallForm(
        limit=machine.last_level_cache_bytes() // sum(arg.dtype.nbytes for arg in arguments if arg.output),
        allocates=kernel.binds_outputs(plan.types, numbers),
        given=kernel.takes_outputs,
        keyword=kernel.names_output,
        ndim=0 if kernel.reduce_dims or not kernel.uses_index else len(plan.space.shape),
        returns=kernel.returns,
        zeroed=plan.executable.kernel.fills,
    )
    return fastcall.make(plan.executable, arguments, fallback, kernel.name, form)


@dataclass(frozen=True)
class PlacedCall:
    """The part of a call that may be stored."""

    numbers: frozenset[str]  # inputs passed by value
    places: tuple[KnownLayout | None, ...]  # the layout of its arrays, including outputs to allocate
    deciding: Mapping[str, object]  # numbers that must be these


def placed_entry(
    kernel: KernelSpec, plan: Plan, placed: PlacedCall, fallback: Callable[..., object]
) -> Callable[..., object]:
    """A native function in front of `fallback` for calls on arrays of the shapes and strides of a plan."""
    from fusec.runtime.cpu import fastcall

    reason = objection(kernel, plan, placed.numbers, placed.deciding)
    if reason:
        debug.show(2, f"{kernel.name} has no native entry: {reason}")
        return fallback
    known = fastcall.KnownCall(plan.arguments.template, plan.space.size, plan.space.shape, placed.places, plan.orders)
    form = fastcall.CallForm(
        returns=kernel.returns,
        known=known,
        allocates=not any(param.raw for param in kernel.out_params),
        given=kernel.takes_outputs,
        keyword=kernel.names_output,
        zeroed=plan.executable.kernel.fills,
    )
    arguments = arg_specs(kernel, plan.types, placed.numbers, placed.deciding)
    return fastcall.make(plan.executable, arguments, fallback, kernel.name, form)


def objection(kernel: KernelSpec, plan: Plan, numbers: frozenset[str], deciding: Mapping[str, object]) -> str:
    """Why calls like one with this plan cannot have a native entry; empty if they can."""
    from fusec.runtime.cpu import fastcall

    if not plan.space.size:
        return "no elements"
    for name, value in deciding.items():
        if _exact(value) is None:
            return f"'{name}' determines how many elements there are, and is not an int"
    blank = fastcall.KnownCall(plan.arguments.template, 0, (), (), {})
    return fastcall.objection(plan.executable, arg_specs(kernel, plan.types, numbers, deciding), blank)


def _exact(value: object) -> int | None:
    """An integer that decides on the number of elements; None for any other number."""
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def arg_specs(
    kernel: KernelSpec,
    types: Mapping[str, DType],
    numbers: Container[str],
    deciding: Mapping[str, object],
    group: str = "elements",
) -> list[ArgSpec]:
    """The arguments that a native entry takes. deciding: numbers that must be these. group: see `ArgSpec`."""
    from fusec.runtime.cpu.fastcall import ArgSpec

    groups = {name: output for output, name in kernel.in_place}
    groups |= {output: output for output, _ in kernel.in_place}
    return [
        ArgSpec(
            param.name,
            types[param.name],
            param in kernel.out_params,
            param.name in numbers,
            converts=kernel.converts(param.name, types),
            takes=kernel.takes(param),
            changes=param.non_const,
            exactly=_exact(deciding.get(param.name)),
            group=groups.get(param.name, group),
        )
        for param in kernel.params
    ]


def known_layout(view: View, aligned: bool, offset: int) -> KnownLayout:
    """How an array lies whose walk begins `offset` bytes behind its address."""
    from fusec.runtime.cpu.fastcall import KnownLayout

    low, high = (bound - view.pointer for bound in layouts.bounds(view))
    return KnownLayout(view.shape, view.strides, aligned, offset, low, high)


def placed(kernel: KernelSpec, plan: Plan, call: ElementwiseCall) -> PlacedCall:
    """A call without its arrays."""
    offsets = {name: offset for name, _, offset in plan.space.operands}
    views = plan.space.views
    places = tuple(
        known_layout(views[param.name], given is None or given.flags.aligned, offsets.get(param.name, 0))
        if param.name in views
        else None
        for param, given in zip(kernel.params, call.arrays, strict=True)
    )
    return PlacedCall(call.numbers, places, kernel.deciding(call))
