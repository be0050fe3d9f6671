"""Short ways for repeated calls: native entries, which take several kernels for one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fusec import layouts
from fusec.ir.reductions import addressed
from fusec.operands import view_of
from fusec.reductions.plans import dense
from fusec.runtime.cpu import fastcall
from fusec.runtime.cpu.fastcall import ArgSpec, Place
from fusec.scans import chains, pipeline

if TYPE_CHECKING:
    from fusec.reductions.calls import Call
    from fusec.scans.calls import Plan
    from fusec.scans.kernels import Scanning

Callee = Callable[..., object]

MAX_ENTRIES = 8  # one behind the other for an axis and a direction, each a few ns for calls that are none of them


def put_before(kernel: Scanning, plan: Plan, call: Call, following: Callee) -> Callee:
    """What answers calls like this one and leaves others to what follows it; that itself if there is none.

    Outputs that are given follow the inputs.
    """
    if not plan.steps or plan.bound.read:
        return following
    lined_up = plan.steps[0] if len(plan.steps) == 1 else chains.line_up(kernel, plan)
    if lined_up is None:
        return following
    step, executable, arguments = lined_up
    offsets = {name: offset for name, _, offset in step.operands}
    places = [_place(kernel, plan, call, param.name, offsets) for param in kernel.params]
    given = call.outputs is not None
    if given and _may_be_one(kernel, plan, places):
        return following
    shape = plan.bound.shape
    orders = {} if given else {param.name: tuple(range(len(shape))) for param in kernel.out_params}
    known = fastcall.Known(arguments.template, step.positions, shape, tuple(places), orders)
    specs = [
        ArgSpec(param.name, plan.bound.types[param.name], param in kernel.out_params, param.name in call.values)
        for param in kernel.params
    ]
    return fastcall.make(executable, specs, following, kernel.name, known=known, given=given)


def _may_be_one(kernel: Scanning, plan: Plan, places: Sequence[Place | None]) -> bool:
    """Whether an output could be the memory of an input, where results would be stored before elements are read.

    Entries take calls in which both are one. Results of an inclusive scan may replace their own elements.
    """
    named = {param.name: place for param, place in zip(kernel.params, places, strict=True) if place is not None}
    replaces = _replaces(kernel, plan)
    for output in (named[param.name] for param in kernel.out_params):
        for each in (named[param.name] for param in kernel.in_params if param.name in named):
            alike = (each.shape, each.strides, each.offset) == (output.shape, output.strides, output.offset)
            if each.high - each.low == output.high - output.low and not (alike and replaces):
                return True
    return False


def _replaces(kernel: Scanning, plan: Plan) -> bool:
    """Whether each element is read for the last time before its result is stored."""
    scan = pipeline.lower(kernel.scan, plan.bound.request)
    written = {param.name for param in scan.arrays if param.written}
    return not scan.exclusive and len(written) == 1 and addressed(scan.reduction.finish) <= written


def _place(kernel: Scanning, plan: Plan, call: Call, name: str, offsets: dict[str, int]) -> Place | None:
    """How an array lies; None for numbers."""
    if name in call.values:
        return None
    arrays = dict(call.inputs)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, call.outputs or (), strict=False)}
    dtype, array = plan.bound.types[name], arrays.get(name)
    view = dense(plan.bound.shape, dtype) if array is None else view_of(array, dtype)
    low, high = (edge - view.pointer for edge in layouts.bounds(view))
    return Place(view.shape, view.strides, array is None or array.flags.aligned, offsets.get(name, 0), low, high)
