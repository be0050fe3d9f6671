"""Reductions and scans in the interpreter: a call in NumPy, with the bits of every target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.operands import dtype_of, outputs_of, view_of
from fusec.base.rounding_mode import default_rounding
from fusec.compiler.reduction_pipeline import MASK
from fusec.dispatch import host_axis
from fusec.dispatch.axis_spec import Along, AxisSpec, Given
from fusec.dispatch.host_axis import AxisCall
from fusec.dispatch.planned import is_on_device
from fusec.errors.arguments import CannotSimulate
from fusec.kinds.scan import MANY_THREADS

Array = NDArray[Any]
PLACE, TOTALS_PLACE = "_place", "_totals_place"  # and an axis: arrays of coordinates


@default_rounding()
def interpreted(kernel: AxisSpec, args: tuple[object, ...], out: object, along: Along) -> tuple[object, ...]:
    """Run a call in the interpreter; all outputs. Raises what a call raises."""
    if is_on_device(args, out, along.where):
        raise CannotSimulate("arrays of a device", "copy them to the host first").at()
    call = host_axis.read(kernel, args, out, along)
    bound = kernel.kind.bind(kernel, given(kernel, call), MANY_THREADS, None)
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


def given(kernel: AxisSpec, call: AxisCall) -> Given:
    """The arguments as memory."""
    views = {name: view_of(each, dtype_of(each, name, kernel.name)) for name, each in call.inputs.items()}
    outputs = None
    if call.outputs is not None:
        named = zip(kernel.out_params, call.outputs, strict=True)
        outputs = tuple(view_of(each, dtype_of(each, param.name, kernel.name)) for param, each in named)
    mask = None if call.mask is None else view_of(call.mask, dtype_of(call.mask, MASK, kernel.name))
    return Given(views, frozenset(call.values), outputs, mask, call.along)
