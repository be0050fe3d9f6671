"""Fast paths of repeated reductions and scans: native entries where one executable answers, else a list of steps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import prod
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from fusec.arguments.operands import view_of
from fusec.dispatch import composites
from fusec.dispatch.axis_plan import AxisPlan
from fusec.dispatch.axis_spec import AxisSpec
from fusec.dispatch.host import arg_specs, known_layout
from fusec.dispatch.host_axis import AxisCall, Key, key_of
from fusec.environment import debug
from fusec.kinds.reduction import dense
from fusec.runtime.cpu import memory

if TYPE_CHECKING:
    from fusec.runtime.cpu.fastcall import KnownLayout

Callee = Callable[..., object]

BYTES = np.dtype(np.uint8)
SMALL = 1 << 14  # bytes up to which a cleared array of Python is quicker than one of NumPy's
TOO_MUCH_BETWEEN = "too much memory lies between its kernels"


def put_before(kernel: AxisSpec, plan: AxisPlan, call: AxisCall, following: Callee) -> Callee:
    """A native entry for calls like this one, which leaves others to what follows it; the latter if there is none.

    Outputs that are given follow the inputs.
    """
    from fusec.runtime.cpu import fastcall

    bound = plan.bound
    reason = objection(plan, call)
    if reason:
        debug.show(2, f"{kernel.name} has no native entry: {reason}")
        return following
    # One kernel whose operands are the arguments, or a composite.
    is_alone = len(plan.steps) == 1 and all(name == known for name, known in plan.steps[0].launch.arrays)
    step = plan.steps[0] if is_alone else composites.sequence(kernel, bound, plan.steps)
    given, (shape, *_) = call.outputs is not None, bound.shapes
    offsets = {name: offset for name, _, offset in step.launch.operands}
    places = tuple(_place(kernel, plan, call, param.name, offsets) for param in kernel.params)
    orders = {} if given else {param.name: tuple(range(len(shape))) for param in kernel.out_params}
    known = fastcall.KnownCall(step.arguments.template, step.launch.positions, shape, places, orders)
    specs = arg_specs(kernel, bound.types, call.values, {}, group="")
    form = fastcall.CallForm(known=known, given=given, zeroed=bound.read)
    return fastcall.make(step.executable, specs, following, kernel.name, form)


def objection(plan: AxisPlan, call: AxisCall) -> str:
    """Why calls like one with this plan cannot have a native entry; empty if they may."""
    if not plan.steps:
        return "no elements"
    if call.mask is not None:
        return "where= is a mask"
    if type(call.along.axis) not in (int, NoneType):
        return "axis= names several axes"
    if len(set(plan.bound.shapes)) != 1:
        return "outputs have several shapes"
    return "" if composites.fits(plan.steps) else TOO_MUCH_BETWEEN


def _place(kernel: AxisSpec, plan: AxisPlan, call: AxisCall, name: str, offsets: dict[str, int]) -> KnownLayout | None:
    """How an array lies; None for numbers."""
    if name in call.values:
        return None
    arrays = dict(call.inputs)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, call.outputs or (), strict=False)}
    dtype, held = plan.bound.types[name], arrays.get(name)
    view = dense(plan.bound.shapes[0], dtype) if held is None else view_of(held, dtype)
    return known_layout(view, held is None or held.flags.aligned, offsets.get(name, 0))


class Repeat:
    """Calls of several kernels, on arrays of known dtypes, shapes and strides."""

    def __init__(self, kernel: AxisSpec, plan: AxisPlan, call: AxisCall) -> None:
        from fusec.runtime.cpu import fastcall

        self.name, self.address_of = kernel.name, fastcall.address_reader()
        aligned = {name: each.dtype.alignment for name, each in call.inputs.items()}
        self.inputs = [(param.name, aligned.get(param.name)) for param in kernel.in_params]
        self.outputs = [(param.name, plan.bound.types[param.name].numpy) for param in kernel.out_params]
        self.shape = plan.bound.shapes[0]
        self.steps = [
            (
                step.arguments.fill, step.executable.run, step.launch.positions,
                [(known, prod(shape) * dtype.nbytes) for known, shape, dtype in step.launch.made],
            )
            for step in plan.steps
        ]  # fmt: skip

    def run(self, args: Sequence[object]) -> object:
        """The output, or a tuple of several; None for arrays that are not aligned."""
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
        held: list[object] = []  # what lies between the kernels
        for fill, run, positions, made in self.steps:
            for known, nbytes in made:
                if nbytes < SMALL:
                    room = array("b", bytes(nbytes))
                    addresses[known] = room.buffer_info()[0]
                    held.append(room)
                else:
                    large = memory.empty((nbytes,), BYTES)
                    addresses[known] = self.address_of(large)
                    held.append(large)
            slots = fill(addresses, values, self.name)
            run(slots.buffer_info()[0], positions)
        return results[0] if len(results) == 1 else tuple(results)


def repeat_of(kernel: AxisSpec, plan: AxisPlan, call: AxisCall) -> tuple[Key, Repeat] | None:
    """The fast path of calls like this one, if several kernels run; None if there is none."""
    bound = plan.bound
    if len(plan.steps) < 2 or call.mask is not None or len(set(bound.shapes)) != 1 or bound.read:
        return None
    if call.outputs is not None:
        return None
    args = [call.values.get(param.name, call.inputs.get(param.name)) for param in kernel.in_params]
    return key_of(call.along, args), Repeat(kernel, plan, call)
