"""The axes and the shapes of a call of a reduction or a scan. Raises NumPy's errors where they do not fit."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape
from fusec.base.dtypes import DType
from fusec.dispatch.shown import Showing, machine_of
from fusec.dispatch.spec import Axis, Bound, CallOptions, Given, KernelSpec
from fusec.errors.arguments import ShapesDoNotBroadcast, SizeUndecided
from fusec.errors.reductions import AxisNotInteger, AxisOutOfBounds, AxisTwice, axis_outside
from fusec.kinds.reduction import dense


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
    """The axes to reduce, from the first on. Raises NumPy's errors."""
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


def walk_shape(name: str, shapes: Mapping[str, Shape]) -> Shape:
    """The common shape of the inputs. Raises ShapesDoNotBroadcast."""
    shape: Shape | None = None
    for param, each in shapes.items():
        joined = each if shape is None else layouts.common_shape(shape, each)
        if isinstance(joined, int):
            assert shape is not None
            raise ShapesDoNotBroadcast(f"parameter '{param}' of kernel '{name}'", shape, each, joined).at()
        shape = joined
    if shape is None:
        raise SizeUndecided(
            name, "no argument that is not raw is an array", "pass an array for an input that is not raw"
        ).at()
    return shape


# --- calls that are only shown ---------------------------------------------------------------------------------------

SHOWN = (1_000_000,)  # the shape of the arrays if nobody says


def canonical(kernel: KernelSpec, asked: Showing, types: Mapping[str, DType], taken: tuple[str, ...]) -> Bound:
    """A call of contiguous arrays of a shape. taken: parameters passed by value."""
    shape = SHOWN if asked.shape is None else asked.shape
    axis = -1 if asked.axis is None and kernel.kind.keeps_shape else asked.axis
    inputs = {
        param.name: dense((prod(shape),) if param.raw else shape, types[param.name])
        for param in kernel.in_params
        if param.name not in taken
    }
    given = Given(inputs, frozenset(taken), None, None, CallOptions(axis, reverse=asked.reverse))
    with axes_within(asked):
        return kernel.kind.bind(kernel, given, machine_of(asked.target), types)


@contextmanager
def axes_within(asked: Showing) -> Iterator[None]:
    """Let the error for an axis that the arrays shown do not have name what gives them more."""
    try:
        yield
    except np.exceptions.AxisError as problem:
        if problem.axis is None or problem.ndim is None:
            raise
        shape = SHOWN if asked.shape is None else asked.shape
        cure = f"kernels are shown for arrays of shape {shape}: pass shape= with more axes"
        raise AxisOutOfBounds(problem.axis, problem.ndim, cure).at() from None
