"""Native entries of kernels: functions without Python for calls with host arrays."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import View
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass
from fusec.dispatch.call import KernelCall
from fusec.dispatch.host import BYTES, HOST
from fusec.dispatch.plan import CompiledLaunch, Plan
from fusec.dispatch.spec import CallOptions, KernelSpec, is_one_axis
from fusec.environment import debug

if TYPE_CHECKING:
    from fusec.arguments.operands import Array
    from fusec.runtime.cpu.fastcall import ArgSpec, KnownLayout

Callee = Callable[..., object]

MOST_BYTES = 4 << 20  # between kernels: a composite keeps that much memory for its next call
SMALL = 1 << 14  # bytes up to which a cleared array of Python is quicker than one of NumPy's
TOO_MUCH_BETWEEN = "too much memory lies between its kernels"


# --- contiguous arrays of any shape --------------------------------------------------------------------------------


def takes_any_shape(kernel: KernelSpec, plan: Plan[Any], numbers: frozenset[str]) -> bool:
    """True if an entry may take contiguous arrays of any shape; outputs beyond the cache have their own code.

    Such an entry does not compare the shapes of raw arrays, so kernels whose raw arrays must have that of the space
    get none.
    """
    from fusec.runtime.cpu import fastcall

    (step,) = plan.steps
    return (
        bool(kernel.out_params)
        and not kernel.follows_raw
        and fastcall.is_contiguous(step.launch.layout)
        and not step.launch.layout.streaming
        and not any(param.raw for param in kernel.out_params)
        and not fastcall.objection(step.code, arg_specs(kernel, plan.bound.types, numbers, {}), None)
    )


def typed_entry(kernel: KernelSpec, plan: Plan[Any], numbers: frozenset[str], fallback: Callee) -> Callee:
    """A native function in front of `fallback` for calls with these dtypes on contiguous arrays of any shape."""
    from fusec.runtime.cpu import fastcall, machine

    types, (step,) = plan.bound.types, plan.steps
    arguments = arg_specs(kernel, types, numbers, {})
    form = fastcall.CallForm(
        limit=machine.last_level_cache_bytes() // sum(arg.dtype.nbytes for arg in arguments if arg.output),
        allocates=kernel.binds_outputs(types, numbers),
        given=kernel.takes_outputs,
        keyword=kernel.names_output,
        ndim=0 if kernel.reduce_dims or not kernel.uses_index else len(plan.bound.shape),
        returns=kernel.returns,
        zeroed=plan.zeroed,
    )
    return fastcall.make(step.code, arguments, fallback, kernel.name, form)


# --- arrays of known shapes and strides ----------------------------------------------------------------------------


@dataclass(frozen=True)
class PlacedCall:
    """The part of a call that may be stored."""

    numbers: frozenset[str]  # inputs passed by value
    places: tuple[KnownLayout | None, ...]  # the layout of its arrays, including outputs to allocate
    deciding: Mapping[str, object]  # numbers that must be these
    allocates: bool  # outputs were not given
    reason: str  # why there can be no entry, empty if there may be one


def placed(kernel: KernelSpec, plan: Plan[Any], call: KernelCall[Array]) -> PlacedCall:
    """A call without its arrays."""
    arrays = call.arrays(call.outputs)
    places: list[KnownLayout | None] = []
    offsets = {name: offset for name, _, offset in plan.steps[0].launch.operands} if _is_alone(plan.steps) else {}
    new = {each.param.name: each for each in plan.outputs}
    for param in kernel.params:
        name, given = param.name, arrays.get(param.name)
        if name in call.values:
            places.append(None)
        elif given is not None:
            place = known_layout(HOST.view(given, name, kernel.name), given.flags.aligned, offsets.get(name, 0))
            places.append(place)
        else:
            shape, dtype = new[name].shape, new[name].dtype
            strides = strides_in_order(shape, new[name].order or tuple(range(len(shape))), dtype.nbytes)
            places.append(known_layout(View(0, shape, strides, dtype), True, offsets.get(name, 0)))
    reason = objection(kernel, plan, call)
    numbers, deciding = frozenset(call.values), kernel.deciding(call.values)
    return PlacedCall(numbers, tuple(places), deciding, call.outputs is None, reason)


def _is_alone(steps: Sequence[CompiledLaunch[Any]]) -> bool:
    """Whether there is one kernel whose operands are the arguments, or a composite."""
    return len(steps) == 1 and all(name == known for name, known in steps[0].launch.arrays)


def placed_entry(kernel: KernelSpec, plan: Plan[Any], call: PlacedCall, fallback: Callee) -> Callee:
    """A native function in front of `fallback` for calls on arrays of the shapes and strides of a plan."""
    from fusec.runtime.cpu import fastcall

    if call.reason:
        debug.show(2, f"{kernel.name} has no native entry: {call.reason}")
        return fallback
    bound, step = plan.bound, plan.steps[0]
    if not _is_alone(plan.steps):
        from fusec.dispatch import composites

        step = composites.sequence(kernel, bound, plan.steps)
    orders = {}
    if call.allocates:
        orders = {each.param.name: each.order or tuple(range(len(each.shape))) for each in plan.outputs}
    known = fastcall.KnownCall(step.arguments.template, step.launch.positions, call.places, orders)
    form = fastcall.CallForm(
        returns=kernel.returns,
        known=known,
        allocates=not any(param.raw for param in kernel.out_params),
        given=kernel.takes_outputs,
        keyword=kernel.names_output,
        zeroed=plan.zeroed,
    )
    arguments = arg_specs(kernel, bound.types, call.numbers, call.deciding)
    return fastcall.make(step.code, arguments, fallback, kernel.name, form)


def objection(kernel: KernelSpec, plan: Plan[Any], call: KernelCall[Any]) -> str:
    """Why calls like one with this plan cannot have a native entry; empty if they may."""
    from fusec.runtime.cpu import fastcall

    if plan.is_idle:
        return "no elements"
    if call.mask is not None:
        return "where= is a mask"
    if not is_one_axis(call.options.axis):
        return "axis= names several axes"
    deciding = kernel.deciding(call.values)
    for name, value in deciding.items():
        if _exact(value) is None:
            return f"'{name}' determines how many elements there are, and is not an int"
    if plan.nbytes > MOST_BYTES:
        return TOO_MUCH_BETWEEN
    if not _is_alone(plan.steps):
        return ""
    (step,) = plan.steps
    blank = fastcall.KnownCall(step.arguments.template, 0, (), {})
    arguments = arg_specs(kernel, plan.bound.types, frozenset(call.values), deciding)
    return fastcall.objection(step.code, arguments, blank)


def _exact(value: object) -> int | None:
    """An integer that decides on the number of elements; None for any other number."""
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def arg_specs(
    kernel: KernelSpec, types: Mapping[str, DType], numbers: Container[str], deciding: Mapping[str, object]
) -> list[ArgSpec]:
    """The arguments that a native entry takes. deciding: numbers that must be these."""
    from fusec.runtime.cpu.fastcall import ArgSpec

    group = "elements" if kernel.kind.overlap == "copy inputs" else ""
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


# --- several kernels -----------------------------------------------------------------------------------------------

# A call as its arguments show it: its axes, then dtype, shape and strides of each array, the type of a number.
Key = tuple[object, ...]


def key_of(options: CallOptions, args: Sequence[object]) -> Key:
    """What calls without a given output must have in common to be repeated alike."""
    kinds = [(each.dtype, each.shape, each.strides) if type(each) is np.ndarray else type(each) for each in args]
    return options.axis, options.keepdims, options.reverse, *kinds


class Repeat:
    """Calls of several kernels, on arrays of known dtypes, shapes and strides."""

    def __init__(self, kernel: KernelSpec, plan: Plan[Any], call: KernelCall[Array]) -> None:
        from fusec.runtime.cpu import fastcall

        self.name, self.address_of, self.plan = kernel.name, fastcall.address_reader(), plan
        aligned = {name: each.dtype.alignment for name, each in call.inputs.items()}
        self.inputs = [(param.name, aligned.get(param.name)) for param in kernel.in_params]
        self.outputs = [(param.name, plan.bound.types[param.name].numpy) for param in kernel.out_params]
        self.shape = plan.bound.shapes[0]
        self.steps = [(step.arguments.fill, step.code.run, step.launch.positions) for step in plan.steps]

    def run(self, args: Sequence[object]) -> object:
        """The output, or a tuple of several; None for arrays that are not aligned."""
        from fusec.runtime.cpu import memory

        addresses: dict[str, int] = {}
        values: dict[str, object] = {}
        for (name, alignment), arg in zip(self.inputs, args, strict=True):
            if alignment is None:
                values[name] = arg
                continue
            addresses[name] = address = self.address_of(arg)
            if address % alignment:
                return None
        results = []
        for name, dtype in self.outputs:
            results.append(result := memory.empty(self.shape, dtype))
            addresses[name] = self.address_of(result)
        nbytes = self.plan.nbytes
        between: Any = array("b", bytes(nbytes)) if nbytes < SMALL else memory.empty((nbytes,), BYTES)
        start = between.buffer_info()[0] if nbytes < SMALL else self.address_of(between)
        for name, offset in self.plan.offsets.items():
            addresses[name] = start + offset
        for fill, run, positions in self.steps:
            slots = fill(addresses, values, self.name)
            run(slots.buffer_info()[0], positions)
        return results[0] if len(results) == 1 else tuple(results)


def repeat_of(kernel: KernelSpec, plan: Plan[Any], call: KernelCall[Array]) -> tuple[Key, Repeat] | None:
    """The fast path of calls like this one, if several kernels run; None if there is none."""
    bound = plan.bound
    if len(plan.steps) < 2 or call.mask is not None or len(set(bound.shapes)) != 1 or plan.zeroed:
        return None
    if call.outputs is not None:
        return None
    return key_of(call.options, call.args), Repeat(kernel, plan, call)
