"""What a call of a reduction comes to in plain numbers, whether its arrays are on the host or on a device."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.compiler import reduction_pipeline
from fusec.compiler.reduction_pipeline import MASK
from fusec.errors.arguments import OutShapeMismatch, ShapesDoNotBroadcast, SizeUndecided
from fusec.errors.reductions import AxisNotInteger, AxisTwice, NothingToReduce, RowsTooLong, axis_outside
from fusec.ir.loops import Query, Stmt
from fusec.ir.reductions import REDUCED, TOTALS, chunk_of
from fusec.ir.walk import expressions, operands, statements
from fusec.kinds.reduction import Operand, Phase, Request, dense, phases

if TYPE_CHECKING:
    from fusec.dispatch.planned_reduction import Reducing

# What NumPy's messages call the built-in rules that have no identity.
UFUNCS = {"min": "minimum", "max": "maximum", "minmax": "minimum", "ptp": "maximum", "norm_low": "minimum"}

Axis = object  # None, an integer, or a sequence of integers


@dataclass(frozen=True)
class Given:
    """The arguments of a call.

    inputs: by name, numbers left out. numbers: the names of those. outputs: None to allocate them. mask: the array of
    where=.
    """

    inputs: Mapping[str, View]
    numbers: frozenset[str]
    outputs: tuple[View, ...] | None
    mask: View | None
    axis: Axis
    keepdims: bool


@dataclass(frozen=True)
class Bound:
    """What is known of a call before anything is compiled.

    types: of all parameters. shape: of the walk. shapes: of the outputs. kept: of the totals, without axes kept for
    their place. count: elements of one total. phases: the kernels in order; none if nothing is to be run. partials:
    (name as output, name as input, dtype) of arrays between them. raw: the arrays that the texts address. is_empty:
    totals have no elements. read: outputs of totals that are read, so that those to allocate start as zeros.
    """

    types: Mapping[str, DType]
    shape: Shape
    shapes: tuple[Shape, ...]
    kept: Shape
    count: int
    phases: tuple[Phase, ...]
    partials: tuple[tuple[str, str, DType], ...]
    raw: Mapping[str, View]
    request: Request
    is_empty: bool
    read: frozenset[str]

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers that kernels may ask for: elements of a total, and totals."""
        return {REDUCED: self.count, TOTALS: prod(self.kept)}


def bind(kernel: Reducing, given: Given, known: Mapping[str, DType] | None = None) -> Bound:
    """Bind types and order the walk. Raises for shapes, axes and types that do not go together.

    known: the types of all parameters, for calls that are only shown.
    """
    outputs = given.outputs or ()
    dtypes = [given.inputs[param.name].dtype if param.name in given.inputs else None for param in kernel.in_params]
    dtypes += [each.dtype for each in outputs] or [None] * kernel.nout
    types = kernel.signature.bind(dtypes) if known is None else known
    along = {param.name for param in kernel.in_params if not param.raw} | {MASK}
    views = {**given.inputs, **({} if given.mask is None else {MASK: given.mask})}
    shape = walk_shape(kernel, {name: each.shape for name, each in views.items() if name in along})
    axes = normalised(kernel.name, given.axis, shape)
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    result = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape)) if given.keepdims else kept
    shapes = tuple(shape if param.name in kernel.elements else result for param in kernel.out_params)
    for param, each, wanted in zip(kernel.out_params, outputs, shapes, strict=False):
        if each.shape != wanted:
            raise OutShapeMismatch(kernel.name, param.name, each.shape, wanted).at()
    addressed = [param.name for param in kernel.in_params if param.raw and param.name in given.inputs]
    ndims = tuple((name, len(given.inputs[name].shape)) for name in addressed)
    uses, masked = kernel.uses_index, given.mask is not None
    request = Request(
        reduction_pipeline.types_with_mask(types, masked), given.numbers,
        len(shape) if uses else 1, axes if uses else (0,), ndims, masked, kernel.fp,
    )  # fmt: skip
    reduction, empty = reduction_pipeline.lower(kernel.definition, request)
    parts = () if reduction.total is None else reduction.total.parts
    partials = tuple((f"_partial{at}", f"_given{at}", dtype) for at, (_, dtype) in enumerate(parts))
    is_empty, count = 0 in shape and 0 not in kept, prod(shape[axis] for axis in axes)
    if is_empty and not empty.body:
        raise _nothing(kernel, shape).at()
    raw = {name: each for name, each in views.items() if name not in along}
    found: tuple[Phase, ...] = ()
    if 0 not in shape:
        inputs = {name: each for name, each in views.items() if name in along}
        operands = _operands(kernel, inputs, types, shape, axes, outputs)
        found = phases(
            shape, axes, operands, list(raw.items()), lanes=reduction.lanes, partials=partials, as_is=uses,
            totals_as_is=uses and asks_for_positions(reduction.finish),
        )  # fmt: skip
        if reduction.total is None and len(found) > 1:
            raise RowsTooLong(kernel.name, chunk_of(reduction.lanes, found[0].is_last), count).at()
    # Outputs over elements may be read too, where a walk finds what an earlier one has stored.
    read = frozenset(each.name for each in reduction.arrays if each.written and each.read) - kernel.elements
    return Bound(types, shape, shapes, kept, count, found, partials, raw, request, is_empty, read)


def asks_for_positions(finish: Sequence[Stmt]) -> bool:
    """Whether what is made of a total depends on where it stands."""
    roots = (root for each in statements(finish) for root in operands(each))
    return any(isinstance(each, Query) and each.what == "coordinate" for each in expressions(roots))


def _nothing(kernel: Reducing, shape: Shape) -> NothingToReduce:
    """The error for totals of no elements; NumPy's text names its ufunc."""
    rule = kernel.definition.texts.get("rule", "")
    if hasattr(kernel.definition, "identity"):  # a kernel that its user has defined
        return NothingToReduce(kernel.name, shape, "give the kernel an identity")
    if rule not in UFUNCS:
        return NothingToReduce(kernel.name, shape)
    name = UFUNCS[rule]
    if kernel.name.startswith("nan"):
        name = {"minimum": "fmin", "maximum": "fmax"}[name]
    if rule in ("min", "max"):
        return NothingToReduce(name, shape, "pass initial=, the value of a total of no elements")
    return NothingToReduce(name, shape)


def plain_axis(axis: Axis) -> int | tuple[int, ...] | None:
    """The axes as Python's own integers: None, one, or a tuple. Raises AxisNotInteger."""
    if axis is None or type(axis) is int:
        return axis
    if isinstance(axis, (tuple, list)):
        return tuple(_index(each, axis) for each in axis)
    return _index(axis, axis)


def _index(axis: object, whole: object) -> int:
    if isinstance(axis, (bool, np.bool_)):
        raise AxisNotInteger(repr(whole)).at()
    try:
        return operator.index(axis)  # type: ignore[arg-type]
    except TypeError as reason:
        raise AxisNotInteger(repr(whole)).at() from reason


def normalised(name: str, axis: Axis, shape: Shape) -> tuple[int, ...]:
    """The axes to reduce, from the first on; raises with NumPy's texts."""
    ndim = len(shape)
    if axis is None:
        return tuple(range(ndim))
    found = []
    plain = plain_axis(axis)
    for number in plain if isinstance(plain, tuple) else (plain,):
        assert number is not None, "None was all axes"
        if not -ndim <= number < ndim:
            raise axis_outside(name, number, shape).at()
        found.append(number % ndim)
    if len(set(found)) != len(found):
        raise AxisTwice(repr(axis)).at()
    return tuple(sorted(found))


def walk_shape(kernel: Reducing, shapes: Mapping[str, Shape]) -> Shape:
    """The shape that the inputs have together. Raises ShapesDoNotBroadcast."""
    shape: Shape | None = None
    for name, each in shapes.items():
        joined = each if shape is None else layouts.common_shape(shape, each)
        if isinstance(joined, int):
            assert shape is not None
            raise ShapesDoNotBroadcast(kernel.name, name, shape, each, joined).at()
        shape = joined
    if shape is None:
        raise SizeUndecided(
            kernel.name, "no argument that is not raw is an array", "pass an array for an input that is not raw"
        ).at()
    return shape


def _operands(
    kernel: Reducing,
    inputs: Mapping[str, View],
    types: Mapping[str, DType],
    shape: Shape,
    axes: tuple[int, ...],
    outputs: Sequence[View],
) -> list[Operand]:
    """Inputs and outputs as memory along the walk; outputs to allocate lie in C order."""
    found = [
        Operand(name, view, layouts.broadcast_strides(view, shape), is_output=False) for name, view in inputs.items()
    ]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    for at, param in enumerate(kernel.out_params):
        if param.name in kernel.elements:
            whole = outputs[at] if outputs else dense(shape, types[param.name])
            found.append(Operand(param.name, whole, layouts.broadcast_strides(whole, shape), is_output=True))
            continue
        extents = tuple(shape[axis] for axis in kept)
        view = without_kept(outputs[at], axes, len(shape)) if outputs else dense(extents, types[param.name])
        strides = [0] * len(shape)
        for axis, stride in zip(kept, view.strides, strict=True):
            strides[axis] = 0 if shape[axis] == 1 else stride
        found.append(Operand(param.name, view, tuple(strides), is_output=True))
    return found


def without_kept(view: View, axes: Sequence[int], ndim: int) -> View:
    """The view without the axes of one element that stand for reduced ones."""
    if len(view.shape) < ndim:
        return view
    kept = [axis for axis in range(ndim) if axis not in axes]
    return view._replace(
        shape=tuple(view.shape[axis] for axis in kept), strides=tuple(view.strides[axis] for axis in kept)
    )
