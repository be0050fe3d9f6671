"""Short ways for repeated calls: native entries where one kernel answers, a list of what to do where several do."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fusec import layouts
from fusec.layouts import Shape
from fusec.operands import view_of
from fusec.reductions.plans import dense
from fusec.runtime.cpu import memory

if TYPE_CHECKING:
    from fusec.reductions.calls import Call, Plan
    from fusec.reductions.kernels import Reducing
    from fusec.runtime.cpu.fastcall import ArgSpec, Place

Callee = Callable[..., object]

SMALL = 1 << 14  # bytes up to which a cleared array of Python is quicker than one of NumPy's
MAX_ENTRIES = 8  # one behind the other for a choice of axes, each a few ns for calls that are none of them


def put_before(kernel: Reducing, plan: Plan, call: Call, following: Callee) -> Callee:
    """What answers calls like this one and leaves others to what follows it; that itself if there is none.

    Outputs that are given follow the inputs.
    """
    from fusec.runtime.cpu import fastcall

    bound = plan.bound
    if not plan.steps or call.mask is not None or len(set(bound.shapes)) != 1 or bound.read:
        return following
    if len(plan.steps) > 1 and call.outputs is not None:
        return following
    if len(plan.steps) > 1:
        return Repeat(kernel, plan, call, following)
    (step,) = plan.steps
    offsets = {name: offset for name, _, offset in step.phase.operands}
    given = call.outputs is not None
    places = tuple(_place(kernel, plan, call, param.name, offsets) for param in kernel.params)
    if given and _may_be_one(kernel, plan, places):
        return following
    orders = {} if given else {param.name: tuple(range(len(bound.shapes[0]))) for param in kernel.out_params}
    known = fastcall.Known(step.arguments.template, step.phase.positions, bound.shapes[0], places, orders)
    return fastcall.make(step.executable, _specs(kernel, plan, call), following, kernel.name, known=known, given=given)


def _may_be_one(kernel: Reducing, plan: Plan, places: Sequence[Place | None]) -> bool:
    """Whether an output could be the memory of an input where that is not allowed; entries take such calls."""
    spans = {
        param.name: (plan.bound.types[param.name].nbytes, place.high - place.low)
        for param, place in zip(kernel.params, places, strict=True)
        if place is not None
    }
    return any(
        spans[output.name] == spans.get(each.name) and (output.name, each.name) not in kernel.in_place
        for output in kernel.out_params
        for each in kernel.in_params
    )


def _place(kernel: Reducing, plan: Plan, call: Call, name: str, offsets: dict[str, int]) -> Place | None:
    """How an array lies; None for numbers."""
    from fusec.runtime.cpu.fastcall import Place

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
    return Place(view.shape, view.strides, aligned, offsets.get(name, 0), low, high)


def _shape(kernel: Reducing, plan: Plan, name: str) -> Shape:
    pairs = zip(kernel.out_params, plan.bound.shapes, strict=True)
    return next(shape for param, shape in pairs if param.name == name)


def _specs(kernel: Reducing, plan: Plan, call: Call) -> list[ArgSpec]:
    from fusec.runtime.cpu.fastcall import ArgSpec

    return [
        ArgSpec(
            param.name, plan.bound.types[param.name], param in kernel.out_params, param.name in call.values,
            converts=kernel.converts,
        )
        for param in kernel.params
    ]  # fmt: skip


def _numbers(kernel: Reducing, plan: Plan, call: Call) -> dict[str, tuple[type, ...]]:
    """The types of Python numbers that calls may give where the known one gave a number."""
    if kernel.converts:
        return dict.fromkeys(call.values, (int, float))
    return {name: (float if plan.bound.types[name].is_float else int,) for name in call.values}


class Repeat:
    """Calls of several kernels, on arrays of known dtypes, shapes and strides."""

    def __init__(self, kernel: Reducing, plan: Plan, call: Call, following: Callee) -> None:
        self.name, self.plan, self.following = kernel.name, plan, following
        self.names = [param.name for param in kernel.in_params]
        self.numbers = _numbers(kernel, plan, call)
        self.places = {name: (each.dtype, each.shape, each.strides) for name, each in call.inputs.items()}
        self.outputs = [param.name for param in kernel.out_params]
        self.dtypes = [plan.bound.types[name].numpy for name in self.outputs]
        self.shape = plan.bound.shapes[0]
        self.between = [
            [(stored, given, prod(step.phase.space) * dtype.nbytes) for stored, given, dtype in plan.bound.partials]
            for step in plan.steps[:-1]
        ]
        self.between.append([])

    def __call__(self, *args: object) -> object:
        """The outputs of a call like the known one, else those of what follows."""
        addresses: dict[str, int] = {}
        values: dict[str, object] = {}
        if len(args) != len(self.names):
            return self.following(*args)
        for name, arg in zip(self.names, args, strict=True):
            if name in self.numbers and type(arg) in self.numbers[name]:
                values[name] = arg
            elif type(arg) is np.ndarray and (arg.dtype, arg.shape, arg.strides) == self.places.get(name):
                addresses[name] = arg.__array_interface__["data"][0]
                if addresses[name] % arg.dtype.alignment:
                    return self.following(*args)
            else:
                return self.following(*args)
        results = [memory.empty(self.shape, dtype) for dtype in self.dtypes]
        for name, result in zip(self.outputs, results, strict=True):
            addresses[name] = result.__array_interface__["data"][0]
        held = []
        for step, between in zip(self.plan.steps, self.between, strict=True):
            later = {}
            for stored, given, nbytes in between:
                room = array("b", bytes(nbytes)) if nbytes < SMALL else np.empty(nbytes, np.uint8)
                held.append(room)
                at = room.buffer_info()[0] if isinstance(room, array) else room.__array_interface__["data"][0]
                addresses[stored] = later[given] = at
            slots = step.arguments.fill(addresses, values, self.name)
            step.executable.run(slots.buffer_info()[0], step.phase.positions)
            addresses |= later
        return results[0] if len(results) == 1 else tuple(results)
