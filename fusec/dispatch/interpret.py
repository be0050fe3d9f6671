"""Element-wise kernels in the interpreter: a call in NumPy, with the bits of every target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.base.dtypes import DType
from fusec.base.rounding_mode import default_rounding
from fusec.compiler import pipeline
from fusec.dispatch import checked, host
from fusec.dispatch.plan import ElementwiseCall
from fusec.dispatch.planned import Planned, is_on_device
from fusec.errors.arguments import CannotSimulate
from fusec.errors.checks import BlockMisused

if TYPE_CHECKING:
    from fusec.dispatch.axis_spec import Along, AxisSpec

NO_DEVICE = "copy the arrays to the host first"


def completed(
    kernel: Planned, args: tuple[object, ...], size: int | Shape
) -> tuple[ElementwiseCall, Mapping[str, DType], Shape]:
    """A call that is not to be run, with outputs of zeros where none were given; its types, and its space."""
    call = host.read(kernel, args, size)
    host.protect(kernel, call)
    types = kernel.signature.bind(call.dtypes)
    shapes = [None if each is None else each.shape for each in call.arrays]
    shape = host.loop_shape(kernel, shapes, size)
    host.check_shapes(kernel, shapes, shape, size)
    for at in range(kernel.nin, kernel.nargs):
        if call.arrays[at] is None:
            call.arrays[at] = np.zeros(shape, types[kernel.params[at].name].numpy)
    return call, types, shape


@default_rounding()
def interpreted(kernel: Planned, args: tuple[object, ...], size: int | Shape) -> tuple[object, ...]:
    """Run a checked kernel in the interpreter and return its outputs. Raises IndexOutside or AssertionFailed."""
    from fusec.ir.interpret import interpret
    from fusec.ir.memory import BlockFault
    from fusec.passes import Facts

    if is_on_device(args, None, None):
        raise CannotSimulate("arrays of a device", NO_DEVICE).at()
    nin = kernel.nin - 1
    fault = np.zeros(checked.WORDS, np.uint32)
    call, types, shape = completed(kernel, (*args[:nin], fault, *args[nin:]), size)
    arrays, numbers = _arguments(kernel, call)
    ndims = {"": len(shape), **{param.name: arrays[param.name].ndim for param in kernel.params if param.raw}}
    program = pipeline.lower(kernel.definition, types, ndims, call.numbers, Facts(fp=kernel.fp))
    try:
        interpret(program, arrays, numbers, shape)
    except BlockFault as found:
        raise BlockMisused(kernel.name, found.what).at(checked.line_of(program, found.line)) from None
    if fault[0]:
        shapes_of = {name: array.shape for name, array in arrays.items()}
        raise checked.fault_of(kernel, fault, shapes_of, types, shape)
    return tuple(args[nin:]) if call.given else tuple(call.arrays[kernel.nin :])


def _arguments(kernel: Planned, call: ElementwiseCall) -> tuple[dict[str, Any], dict[str, object]]:
    """The arrays and the numbers of a call by parameter."""
    pairs = list(zip(kernel.params, call.arrays, strict=True))
    arrays = {param.name: array for param, array in pairs if array is not None}
    values = dict(zip((param.name for param in kernel.params), call.values, strict=False))
    return arrays, {name: values[name] for name in call.numbers}


class Interpreter:
    """Interprets the calls of kernels in a context. used: whether there were any."""

    runs = True
    used = False

    def elementwise(self, kernel: Planned, args: tuple[object, ...], size: int | Shape) -> tuple[object, ...]:
        """A call of an element-wise kernel, which may be checked already."""
        self.used = True
        if isinstance(kernel.definition, checked.CheckedSource):
            return interpreted(kernel, (*args[: kernel.nin - 1], *args[kernel.nin :]), size)
        return interpreted(checked.checked(kernel), args, size)

    def along_axes(self, kernel: AxisSpec, args: tuple[object, ...], out: object, along: Along) -> tuple[object, ...]:
        """A call of a kernel along axes."""
        from fusec.dispatch import interpret_axis

        self.used = True
        return interpret_axis.interpreted(kernel, args, out, along)
