"""Repeated reductions and scans on a device: the results of the first call of a kind, found by attributes of its
arrays.

Only for calls of arrays of one library and numbers, on the stream that is current there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from fusec.dispatch.axis_spec import AxisSpec
from fusec.dispatch.device_axis import DeviceAxisCall, DeviceAxisPlan
from fusec.dispatch.device_plans import KnownCalls, cached_launch, library_of, pairs_of
from fusec.dispatch.device_steps import view_of
from fusec.dispatch.fast_path_device import ArrayPair, CachedCall
from fusec.dispatch.overlap import ArrayArgument

Callee = Callable[..., object]


class DeviceAxisFastPath(KnownCalls):
    """The calls of one choice of axes that are known; all others go to `following`."""

    def __init__(self, following: Callee) -> None:
        super().__init__()
        self.following = following

    def __call__(self, *args: object) -> object:
        """Run, or go on."""
        values, marks = [], []
        try:
            for arg in args:
                value, mark = self._readers[type(arg)](arg)
                values.append(value)
                marks.append(mark)
            return self._ready.get(tuple(marks)).run(args, values)  # type: ignore[union-attr]
        except Exception:  # an unknown type or kind of call, an array that refuses, no memory: told by the long way
            return self.following(*args)


def cached_call(
    kernel: AxisSpec, args: Sequence[object], call: DeviceAxisCall, plan: DeviceAxisPlan
) -> CachedCall | None:
    """The fast path of calls of this kind; None if the library of the arrays has none.

    args: the inputs, and the outputs if they are given. Requires: nothing was copied, cleared or left out by a mask.
    """
    source = library_of(args, call.device, call.stream)
    if source is None:
        return None
    bound = plan.bound
    makers: tuple[Callable[[], tuple[Any, int]], ...] = ()
    if call.outputs is None:
        typed = [(shape, bound.types[each.name]) for shape, each in zip(bound.shapes, kernel.out_params, strict=True)]
        makers = tuple(source.maker(shape, range(len(shape)), dtype, call.device) for shape, dtype in typed)
    return CachedCall(
        launches=tuple(
            cached_launch(kernel.signature, each.launcher, each.arguments, plan.steps.offsets)
            for each in plan.steps.order
        ),
        makers=makers,
        pairs=_pairs(kernel, call),
        source=source,
        device=call.device,
        nin=kernel.nin,
        returns="outputs",
        note=partial(setattr, kernel, "last", bound),
        nbytes=plan.steps.nbytes,
    )


def _pairs(kernel: AxisSpec, call: DeviceAxisCall) -> tuple[ArrayPair, ...]:
    """Given outputs, each with whatever it must not meet: results are stored before all elements are read."""
    arrays = dict(call.inputs)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, call.outputs or (), strict=False)}
    held = [
        ArrayArgument(param.name, view_of(arrays[param.name]), raw=True) if param.name in arrays else None
        for param in kernel.params
    ]
    return pairs_of(held, [position >= kernel.nin for position in range(kernel.nargs)])
