"""Integers as counts on devices: how often each occurs, and how often elements are repeated."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from fusec.fusion.at_once.choices import flat, last_of, new
from fusec.fusion.fuse import fuse
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.runtime import cuda
from fusec.runtime.cuda import CudaArray

copied: Any = fuse(lambda x: x.copy())
converted: Any = fuse(lambda values, like: values.astype(like.dtype))


@fuse
def _repeated(x: Any, ends: Any, places: Any, axis: Any) -> Any:
    return np.take(x, np.searchsorted(ends, places, side="right"), axis)


_ends: Any = fuse(lambda counts: np.cumsum(counts, dtype=np.int64))


@cache
def _counted_up() -> ElementwiseKernel:
    return ElementwiseKernel("", "int64 y", "y = i", "counted_up")


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """np.repeat of elements along an axis, each another number of times. Raises ValueError."""
    if not isinstance(a, CudaArray) or not isinstance(repeats, CudaArray) or repeats.ndim != 1:
        return NotImplemented
    if axis is None:
        a, axis = flat(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    if repeats.dtype.kind not in "biu" or repeats.dtype == np.uint64 or repeats.shape != a.shape[axis : axis + 1]:
        return NotImplemented
    if not repeats.size:
        return copied(a)
    if repeats.dtype.kind == "i" and int(_limits(repeats).numpy()[0]) < 0:
        raise ValueError("repeats may not contain negative values.")
    ends = _ends(repeats)
    places = new(a, (last_of(ends),), np.int64)
    if places.size:
        _counted_up()(places)
    return _repeated(a, ends, places, axis)


@fuse
def _limits(x: Any) -> Any:
    return np.stack([x.min(), x.max()])


@fuse
def _added(counts: Any, places: Any, weights: Any) -> None:
    np.add.at(counts, places, weights)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    """np.bincount. Raises what NumPy raises."""
    if not isinstance(x, CudaArray) or not (weights is None or isinstance(weights, CudaArray)):
        return NotImplemented
    if x.ndim != 1 or x.dtype.kind not in "biu" or x.dtype == np.uint64 or not x.size:
        np.bincount(np.broadcast_to(np.zeros((), x.dtype), x.shape))  # raises what NumPy raises, if it does
        return NotImplemented if x.size else _zeros(x, int(minlength), np.int64 if weights is None else np.float64)
    least, most = map(int, _limits(x).numpy())
    if least < 0:
        raise ValueError("'list' argument must have no negative elements")
    if weights is not None and weights.shape != x.shape:
        raise ValueError("The weights and list don't have the same length.")
    made = _zeros(x, max(most + 1, int(minlength)), np.int64 if weights is None else np.float64)
    if weights is None:
        _added(made, x, 1)
    else:
        _added(made, x, converted(weights, made))
    return made


def _zeros(like: CudaArray, size: int, dtype: Any) -> CudaArray:
    made = new(like, (size,), dtype)
    cuda.fill_with_zeros(made.pointer, size * made.dtype.itemsize, made.device, made.stream)
    return made
