"""A kind of kernels of its own: what changes from one element to the next along an axis, in one launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.operands import Array
from fusec.arguments.signature import Parameter, Signature
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel
from fusec.base.records import replace
from fusec.compiler import pipeline
from fusec.dispatch.axes import canonical, normalised
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import Bound, Given, KernelSpec, Kind, Lines, fp_line
from fusec.errors.arguments import OutShapeMismatch
from fusec.frontends.c.definition import Definition
from fusec.kinds.launch import Launch, Machine, Request
from fusec.kinds.reduction import dense


def bind(kernel: KernelSpec, given: Given, machine: Machine, known: Mapping[str, DType] | None) -> Bound:
    """Bind types and lay out the walk over the differences; each operand is where it begins in its array."""
    del machine  # one launch keeps any machine as busy as it can be
    x, outputs = given.inputs["x"], given.outputs or ()
    types = given.types(kernel) if known is None else known
    (axis,) = normalised(kernel.name, given.options.axis, x.shape)
    shape = (*x.shape[:axis], max(x.shape[axis] - 1, 0), *x.shape[axis + 1 :])
    y = outputs[0] if outputs else dense(shape, types["y"])
    if y.shape != shape:
        raise OutShapeMismatch(kernel.name, "y", y.shape, shape).at()
    request = Request(tuple(types.items()), given.numbers, kernel.fp)
    bound = Bound(types, x.shape, (shape,), (), {}, request, kept=shape)
    if 0 in shape:
        return bound
    step = x.strides[axis]
    views = [("x", x._replace(pointer=x.pointer + step)), ("before", x), ("y", y)]
    nest = layouts.nest(shape, [each.strides for _, each in views], reorder=True, merge=True)
    layout = layouts.make_layout(nest, views, (), c_order=False)
    starts = [nest.offsets[0] + step, *nest.offsets[1:]]
    operands = tuple(zip(("x", "before", "y"), nest.strides, starts, strict=True))
    launch = Launch(layout, nest.extents, operands, arrays=(("x", "x"), ("before", "x"), ("y", "y")))
    return replace(bound, launches=(launch,))


def specialisation(request: Request, launch: Launch) -> pipeline.Specialisation:
    """The element-wise kernel of a launch."""
    types = (*request.types, ("before", dict(request.types)["x"]))
    return pipeline.Specialisation(types, request.scalars, launch.layout, request.fp)


def generate(definition: Any, request: Request, launch: Launch, target: str, number: int) -> Kernel:
    """The kernel of a launch, of which a call has one."""
    assert number == 1, "one launch has one name"
    return pipeline.generate(definition, specialisation(request, launch), target)


def interpret(kernel: KernelSpec, bound: Bound, arrays: dict[str, Array], values: Mapping[str, object]) -> None:
    """What NumPy makes of it."""
    del kernel, values
    if not bound.launches:
        return
    axis = next(at for at, extent in enumerate(bound.shape) if extent != bound.kept[at])
    arrays["y"][...] = np.diff(arrays["x"], axis=axis)  # type: ignore[arg-type]


def describe(kernel: KernelSpec, bound: Bound, compiled: Sequence[Kernel]) -> tuple[int, Lines]:
    """Every element is read and written once."""
    moved = sum(int(np.prod(shape)) * bound.types["y"].nbytes for shape in (bound.shape, bound.kept))
    return moved, [(f"kernel {at}", "differences of neighbours") for at, _ in enumerate(compiled, 1)] + [
        fp_line(kernel)
    ]


DIFFERENCES = Kind(
    name="differences",
    along_axes=True,
    keeps_shape=False,
    overlap="stage outputs",
    bind=bind,
    generate=generate,
    program=lambda definition, request, launch: pipeline.program_of(definition, specialisation(request, launch)),
    interpret=interpret,
    describe=describe,
    canonical=canonical,
)


def differences() -> Planned:
    """A kernel of this kind."""
    signature = Signature("differences", (Parameter("x", "T", None),), (Parameter("y", "T", None),))
    return Planned(Definition("T x, T before", "T y", "y = x - before", "differences"), signature, DIFFERENCES)
