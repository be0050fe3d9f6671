"""Reductions and scans in the interpreter: a call in NumPy, with the bits of every target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.operands import outputs_of
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch import host_axis
from fusec.dispatch.axis_spec import Along, AxisSpec
from fusec.dispatch.planned import is_on_device
from fusec.errors.arguments import CannotSimulate
from fusec.kinds.scan import MANY_THREADS

Array = NDArray[Any]


@default_rounding()
def interpreted(kernel: AxisSpec, args: tuple[object, ...], out: object, along: Along) -> tuple[object, ...]:
    """Run a call in the interpreter; all outputs. Raises what a call raises."""
    if is_on_device(args, out, along.where):
        raise CannotSimulate("arrays of a device", "copy them to the host first").at()
    call = host_axis.read(kernel, args, out, along)
    bound = kernel.kind.bind(kernel, host_axis.given_of(kernel, call), MANY_THREADS, None)
    made = [
        np.zeros(shape, bound.types[param.name].numpy)
        for param, shape in zip(kernel.out_params, bound.shapes, strict=True)
    ]
    for target, source in zip(made, call.outputs or (), strict=False):
        target[...] = source
    named = zip(kernel.out_params, made, strict=True)
    flat = [each if param.name in kernel.elements else each.reshape(bound.kept) for param, each in named]
    if bound.is_empty:
        held = flat if bound.read else None
        for each, value in zip(flat, host_axis.empty_totals(kernel, bound, call.values, held), strict=True):
            each[...] = value
    else:
        arrays = {**call.sources, **{param.name: each for param, each in zip(kernel.out_params, flat, strict=True)}}
        kernel.kind.interpret(kernel, bound, arrays, call.values)
    if call.outputs is None:
        return tuple(made)
    for asked, source in zip(call.outputs, made, strict=True):
        asked[...] = source
    return args[kernel.nin :] if out is None else outputs_of(out)
