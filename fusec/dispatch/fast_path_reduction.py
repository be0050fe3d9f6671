"""Short ways for repeated calls: native entries where one kernel answers, lists of what to do where several do."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape
from fusec.arguments.operands import view_of
from fusec.dispatch import launch_sequence
from fusec.dispatch.host_reduction import Key, key_of
from fusec.environment import debug
from fusec.kinds.reduction import dense
from fusec.runtime.cpu import memory

if TYPE_CHECKING:
    from fusec.dispatch.host_reduction import Call, Plan
    from fusec.dispatch.planned_reduction import Reducing
    from fusec.runtime.cpu.fastcall import ArgSpec, KnownLayout

Callee = Callable[..., object]

BYTES = np.dtype(np.uint8)
SMALL = 1 << 14  # bytes up to which a cleared array of Python is quicker than one of NumPy's
TOO_MUCH_BETWEEN = "too much lies between its kernels"


def put_before(kernel: Reducing, plan: Plan, call: Call, following: Callee) -> Callee:
    """What answers calls like this one natively and leaves others to what follows it; that itself if nothing can.

    Outputs that are given follow the inputs.
    """
    from fusec.runtime.cpu import fastcall

    bound = plan.bound
    reason = objection(plan, call)
    if reason:
        debug.show(2, f"{kernel.name} has no native entry: {reason}")
        return following
    given = call.outputs is not None
    if len(plan.steps) == 1:
        (step,) = plan.steps
        offsets = {name: offset for name, _, offset in step.phase.operands}
        executable, arguments, positions = step.executable, step.arguments, step.phase.positions
    else:
        joined = launch_sequence.join(kernel, plan)
        if joined is None:
            debug.show(2, f"{kernel.name} has no native entry: {TOO_MUCH_BETWEEN}")
            return following
        offsets, (executable, arguments), positions = {}, joined, 1
    places = tuple(_place(kernel, plan, call, param.name, offsets) for param in kernel.params)
    orders = {} if given else {param.name: tuple(range(len(bound.shapes[0]))) for param in kernel.out_params}
    known = fastcall.KnownCall(arguments.template, positions, bound.shapes[0], places, orders)
    return fastcall.make(
        executable, _specs(kernel, plan, call), following, kernel.name, known=known, given=given, zeroed=bound.read
    )


def objection(plan: Plan, call: Call) -> str:
    """Why calls like one with this plan cannot have a native entry; empty if they may."""
    if not plan.steps:
        return "no elements"
    if call.mask is not None:
        return "where= is a mask"
    return "outputs have several shapes" if len(set(plan.bound.shapes)) != 1 else ""


def _place(kernel: Reducing, plan: Plan, call: Call, name: str, offsets: dict[str, int]) -> KnownLayout | None:
    """How an array lies; None for numbers."""
    from fusec.runtime.cpu.fastcall import KnownLayout

    if name in call.values:
        return None
    dtype, aligned = plan.bound.types[name], True
    if name in call.inputs:
        view, aligned = view_of(call.inputs[name], dtype), call.inputs[name].flags.aligned
    elif call.outputs is not None:
        given = next(each for param, each in zip(kernel.out_params, call.outputs, strict=True) if param.name == name)
        view, aligned = view_of(given, dtype), given.flags.aligned
    else:
        view = dense(_shape(kernel, plan, name), dtype)
    low, high = (edge - view.pointer for edge in layouts.bounds(view))
    return KnownLayout(view.shape, view.strides, aligned, offsets.get(name, 0), low, high)


def _shape(kernel: Reducing, plan: Plan, name: str) -> Shape:
    pairs = zip(kernel.out_params, plan.bound.shapes, strict=True)
    return next(shape for param, shape in pairs if param.name == name)


def _specs(kernel: Reducing, plan: Plan, call: Call) -> list[ArgSpec]:
    from fusec.runtime.cpu.fastcall import ArgSpec

    groups = {name: output for output, name in kernel.in_place}
    groups |= {output: output for output, _ in kernel.in_place}
    return [
        ArgSpec(
            param.name, plan.bound.types[param.name], param in kernel.out_params, param.name in call.values,
            converts=kernel.converts, takes=kernel.takes(param.name), group=groups.get(param.name, ""),
        )
        for param in kernel.params
    ]  # fmt: skip


class Repeat:
    """Calls of several kernels, on arrays of known dtypes, shapes and strides."""

    def __init__(self, kernel: Reducing, plan: Plan, call: Call) -> None:
        from fusec.runtime.cpu import fastcall

        self.name, self.address_of = kernel.name, fastcall.address_reader()
        aligned = {name: each.dtype.alignment for name, each in call.inputs.items()}
        self.inputs = [(param.name, aligned.get(param.name)) for param in kernel.in_params]
        self.outputs = [(param.name, plan.bound.types[param.name].numpy) for param in kernel.out_params]
        self.shape = plan.bound.shapes[0]
        rooms = [
            [(stored, given, prod(step.phase.space) * dtype.nbytes) for stored, given, dtype in plan.bound.partials]
            for step in plan.steps[:-1]
        ]
        self.steps = [
            (step.arguments.fill, step.executable.run, step.phase.positions, between)
            for step, between in zip(plan.steps, (*rooms, []), strict=True)
        ]

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
        for fill, run, positions, between in self.steps:
            later = {}
            for stored, given, nbytes in between:
                if nbytes < SMALL:
                    room = array("b", bytes(nbytes))
                    at = room.buffer_info()[0]
                    held.append(room)
                else:
                    large = memory.empty((nbytes,), BYTES)
                    at = self.address_of(large)
                    held.append(large)
                addresses[stored] = later[given] = at
            slots = fill(addresses, values, self.name)
            run(slots.buffer_info()[0], positions)
            addresses |= later
        return results[0] if len(results) == 1 else tuple(results)


def repeat_of(kernel: Reducing, plan: Plan, call: Call) -> tuple[Key, Repeat] | None:
    """The short way of calls like this one, if several kernels run; None where there is none."""
    bound = plan.bound
    if len(plan.steps) < 2 or call.mask is not None or len(set(bound.shapes)) != 1 or bound.read:
        return None
    if call.outputs is not None:
        return None
    args = [call.values.get(param.name, call.inputs.get(param.name)) for param in kernel.in_params]
    return key_of(call.axis, call.keepdims, args), Repeat(kernel, plan, call)
