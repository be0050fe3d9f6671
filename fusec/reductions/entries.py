"""Native entries of reductions: repeated calls that one kernel answers start it without Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fusec import layouts
from fusec.layouts import Shape
from fusec.operands import view_of
from fusec.reductions.plans import dense

if TYPE_CHECKING:
    from fusec.reductions.calls import Call, Plan
    from fusec.reductions.kernels import Reducing
    from fusec.runtime.cpu.fastcall import ArgSpec, Place

Callee = Callable[..., object]

MAX_ENTRIES = 8  # one behind the other for a choice of axes, each a few ns for calls that are none of them


def put_before(kernel: Reducing, plan: Plan, call: Call, following: Callee) -> Callee:
    """A builtin that answers calls like this one and leaves others to what follows it; that itself if there is none.

    Only for calls that allocate their outputs.
    """
    from fusec.runtime.cpu import fastcall

    bound = plan.bound
    if len(plan.steps) != 1 or call.outputs is not None or call.mask is not None or len(set(bound.shapes)) != 1:
        return following
    (step,) = plan.steps
    offsets = {name: offset for name, _, offset in step.phase.operands}
    known = fastcall.Known(
        step.arguments.template, step.phase.positions, bound.shapes[0],
        tuple(_place(kernel, plan, call, param.name, offsets) for param in kernel.params),
        {param.name: tuple(range(len(bound.shapes[0]))) for param in kernel.out_params},
    )  # fmt: skip
    return fastcall.make(step.executable, _specs(kernel, plan, call), following, kernel.name, known=known, given=False)


def _place(kernel: Reducing, plan: Plan, call: Call, name: str, offsets: dict[str, int]) -> Place | None:
    """How an array lies; None for numbers."""
    from fusec.runtime.cpu.fastcall import Place

    if name in call.values:
        return None
    dtype, aligned = plan.bound.types[name], True
    if name in call.inputs:
        view, aligned = view_of(call.inputs[name], dtype), call.inputs[name].flags.aligned
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
        ArgSpec(param.name, plan.bound.types[param.name], param in kernel.out_params, param.name in call.values)
        for param in kernel.params
    ]
