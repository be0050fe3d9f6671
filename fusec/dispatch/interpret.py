"""Kernels in the interpreter: a call in NumPy, with the bits of every target."""

from __future__ import annotations

import numpy as np

from fusec.arguments.operands import Array, outputs_of
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch import checked, engine, tiers
from fusec.dispatch.checked import CheckedSource
from fusec.dispatch.host import HOST
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.errors.arguments import CannotSimulate
from fusec.kinds.launch import MANY_THREADS

BY_CHUNKS = replace(MANY_THREADS, row_blocks=0)  # the interpreter takes chunk by chunk


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
    given: list[Array] = [np.array(each, order="K") for each in call.outputs or ()]
    like = call if call.outputs is None else replace(call, outputs=tuple(given))
    bound = kernel.kind.bind(kernel, like.given(HOST), BY_CHUNKS, None)
    if isinstance(kernel.definition, CheckedSource):
        kernel.remember(bound)  # what has found violations asks for it
    pairs = zip(kernel.out_params, bound.shapes, strict=True)
    made = given or [np.zeros(shape, bound.types[param.name].numpy) for param, shape in pairs]
    if bound.is_empty:
        from fusec.dispatch.empty_totals import empty_totals

        held = made if bound.read else None
        for each, value in zip(made, empty_totals(kernel, bound, call.values, held), strict=True):
            each[...] = value.reshape(each.shape) if value.size == each.size else value
    else:
        tiers.interpret(kernel, bound, call, made, call.values)
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
