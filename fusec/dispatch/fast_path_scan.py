"""Short ways for repeated calls: native entries, which take several kernels for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fusec.arguments import layouts
from fusec.arguments.operands import view_of
from fusec.dispatch import fused_launch
from fusec.dispatch.fast_path_reduction import TOO_MUCH_BETWEEN
from fusec.environment import debug
from fusec.kinds.reduction import dense
from fusec.runtime.cpu import fastcall
from fusec.runtime.cpu.fastcall import ArgSpec, KnownLayout

if TYPE_CHECKING:
    from fusec.dispatch.host_reduction import Call
    from fusec.dispatch.host_scan import Plan
    from fusec.dispatch.planned_scan import Scanning

Callee = Callable[..., object]


def put_before(kernel: Scanning, plan: Plan, call: Call, following: Callee) -> Callee:
    """What answers calls like this one and leaves others to what follows it; that itself if there is none.

    Outputs that are given follow the inputs.
    """
    if not plan.steps:
        debug.show(2, f"{kernel.name} has no native entry: no elements")
        return following
    lined_up = plan.steps[0] if len(plan.steps) == 1 else fused_launch.line_up(kernel, plan)
    if lined_up is None:
        debug.show(2, f"{kernel.name} has no native entry: {TOO_MUCH_BETWEEN}")
        return following
    step, executable, arguments = lined_up
    offsets = {name: offset for name, _, offset in step.operands}
    places = [_place(kernel, plan, call, param.name, offsets) for param in kernel.params]
    given = call.outputs is not None
    shape = plan.bound.shape
    orders = {} if given else {param.name: tuple(range(len(shape))) for param in kernel.out_params}
    known = fastcall.KnownCall(arguments.template, step.positions, shape, tuple(places), orders)
    specs = [
        ArgSpec(
            param.name, plan.bound.types[param.name], param in kernel.out_params, param.name in call.values, group=""
        )
        for param in kernel.params
    ]
    zeroed = plan.bound.read
    return fastcall.make(executable, specs, following, kernel.name, known=known, given=given, zeroed=zeroed)


def _place(kernel: Scanning, plan: Plan, call: Call, name: str, offsets: dict[str, int]) -> KnownLayout | None:
    """How an array lies; None for numbers."""
    if name in call.values:
        return None
    arrays = dict(call.inputs)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, call.outputs or (), strict=False)}
    dtype, array = plan.bound.types[name], arrays.get(name)
    view = dense(plan.bound.shape, dtype) if array is None else view_of(array, dtype)
    low, high = (edge - view.pointer for edge in layouts.bounds(view))
    return KnownLayout(view.shape, view.strides, array is None or array.flags.aligned, offsets.get(name, 0), low, high)
