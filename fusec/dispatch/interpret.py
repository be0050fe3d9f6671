"""Kernels in the interpreter: a call in NumPy, with the bits of every target."""

from __future__ import annotations

import numpy as np

from fusec.arguments.operands import Array, outputs_of
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch import checked, engine
from fusec.dispatch.checked import CheckedSource
from fusec.dispatch.host import HOST
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.errors.arguments import CannotSimulate
from fusec.kinds.launch import MANY_THREADS


@default_rounding()
def interpreted(
    kernel: Planned, args: tuple[object, ...], out: object = None, options: CallOptions = PLAIN
) -> tuple[object, ...]:
    """Run a call in the interpreter; all outputs. Raises what a call raises, and CannotSimulate."""
    if engine.is_on_device((*args, *outputs_of(out), options.where)):
        raise CannotSimulate("arrays of a device", "copy the arrays to the host first").at()
    backend, call = engine.read_call(kernel, args, out, options)
    if call.is_given or kernel.writes_inputs:
        engine.protect(backend, call)
    bound = kernel.kind.bind(kernel, call.given(HOST), MANY_THREADS, None)
    if isinstance(kernel.definition, CheckedSource):
        kernel.remember(bound)  # what has found violations asks for it
    if call.outputs is None:
        pairs = zip(kernel.out_params, bound.shapes, strict=True)
        made: list[Array] = [np.zeros(shape, bound.types[param.name].numpy) for param, shape in pairs]
    else:
        made = [np.array(each, order="C") for each in call.outputs]
    flat = [
        each if param.raw or param.name in kernel.elements else each.reshape(bound.kept)
        for param, each in zip(kernel.out_params, made, strict=True)
    ]
    if bound.is_empty:
        from fusec.dispatch.empty_totals import empty_totals

        held = flat if bound.read else None
        for each, value in zip(flat, empty_totals(kernel, bound, call.values, held), strict=True):
            each[...] = value
    else:
        kernel.kind.interpret(kernel, bound, call.arrays(flat), call.values)
    if call.outputs is None:
        return tuple(made)
    for target, source in zip(call.outputs, made, strict=True):
        target[...] = source
    return call.args[kernel.nin :]


class Interpreter:
    """Interprets the calls of kernels in a context. used: whether there were any."""

    runs = True
    used = False

    def call(self, kernel: Planned, args: tuple[object, ...], out: object, options: CallOptions) -> tuple[object, ...]:
        """A call of a kernel, which may be checked already."""
        self.used = True
        if kernel.kind.along_axes or isinstance(kernel.definition, CheckedSource):
            return interpreted(kernel, args, out, options)
        return checked.run(checked.checked(kernel), (*args, *outputs_of(out)), options, interpreted)
