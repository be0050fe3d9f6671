"""What truth values choose of arrays on devices: the running count of those that are true is the place of each element.

The host reads how many there are, which is the extent of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.fusion.fuse import fuse
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.kernels.scan_kernel import ScanKernel
from fusec.runtime import cuda
from fusec.runtime.cuda import CudaArray

SHORT = 1 << 31  # elements that int32 counts


def counts_of(size: int) -> Any:
    """The dtype of numbers up to that of elements."""
    return np.int32 if size < SHORT else np.int64


def new(like: CudaArray, shape: Sequence[int], dtype: Any) -> CudaArray:
    """A new array beside another one."""
    row = dtypes.from_numpy(np.dtype(dtype))
    assert row is not None, "kernels write known dtypes"
    return cuda.empty(tuple(shape), row, None, like.device, like.stream)


def last_of(numbers: CudaArray) -> int:
    """The last one of a row of numbers, for which the host waits; 0 if there is none."""
    if not numbers.size:
        return 0
    last = numbers.seen_as((1,), numbers.strides, numbers.strides[0] * (numbers.size - 1))
    return int(last.numpy()[0])


class Chosen(NamedTuple):
    """Which elements of an array are chosen: those that are not zero.

    counts: how many are chosen up to each in C order, in the array's shape; total: how many are at all.
    """

    mask: CudaArray
    counts: CudaArray
    total: int


@cache
def _counting(dtype: Any) -> ScanKernel:
    return ScanKernel("M m", f"{np.dtype(dtype)} c", "m != M(0) ? 1 : 0", "a + b", "c = a", "0", "count_chosen")


flat: Any = fuse(lambda x: np.reshape(x, -1))


def choice(x: CudaArray) -> Chosen:
    """The elements that are not zero."""
    is_dense = x.strides == strides_in_order(x.shape, range(x.ndim), x.row.nbytes)
    counts = _counting(counts_of(x.size))(x.ravel() if is_dense else flat(x), axis=0)
    return Chosen(x, counts.with_shape(x.shape), last_of(counts))


_BEHIND = {
    "elements": ("M m, I c, T x", "raw T y", "y[c - 1] = x"),
    "rows": ("M m, I c, T x, int64 rest", "raw T y", "y[(c - 1) * rest + i % rest] = x"),
    "places": ("M m, I c", "raw int64 y", "y[c - 1] = i"),
    "stored": ("M m, I c, raw T v, int64 rest", "T y", "y = v[(c - 1) * rest + i % rest]"),
}


@cache
def storing(name: str) -> ElementwiseKernel:
    """What puts chosen elements, or their places in C order, one behind the other, or takes such elements back."""
    inputs, outputs, store = _BEHIND[name]
    return ElementwiseKernel(inputs, outputs, f"if (m != M(0)) {store}", f"chosen_{name}")


@cache
def _coordinates(ndim: int) -> ElementwiseKernel:
    """What puts the indices of chosen elements one behind the other, those of each axis behind those of the last."""
    stores = "".join(f"y[{axis} * total + c - 1] = _ind.get()[{axis}]; " for axis in range(ndim))
    body = f"if (m != M(0)) {{ {stores}}}"
    return ElementwiseKernel("M m, I c, int64 total", "raw int64 y", body, f"chosen_{ndim}_indices", reduce_dims=False)


def elements(x: CudaArray, found: Chosen) -> CudaArray:
    """The chosen elements of an array, or the parts of it for which the mask of its first axes is true."""
    ndim = found.mask.ndim
    rest = x.shape[ndim:]
    made = new(x, (found.total, *rest), x.dtype)
    if made.size:
        if rest:
            storing("rows")(*spread(found, x), x, prod(rest), made)
        else:
            storing("elements")(*found[:2], x, made)
    return made


def spread(found: Chosen, x: CudaArray) -> list[CudaArray]:
    """The mask and the counts with axes for those of an array behind them."""
    more = x.ndim - found.mask.ndim
    return [each.seen_as((*each.shape, *(1,) * more), (*each.strides, *(0,) * more)) for each in found[:2]]


def places(found: Chosen) -> CudaArray:
    """The places of chosen elements in C order."""
    made = new(found.mask, (found.total,), np.int64)
    if found.total:
        storing("places")(*found[:2], made)
    return made


def indices(found: Chosen) -> CudaArray:
    """The indices of chosen elements: a row for each axis."""
    ndim = found.mask.ndim
    if ndim == 1:
        return places(found).with_shape((1, found.total))
    made = new(found.mask, (ndim, found.total), np.int64)
    if found.total:
        _coordinates(ndim)(*found[:2], found.total, made)
    return made


def rows_of(found: CudaArray) -> tuple[CudaArray, ...]:
    """The rows of a matrix in C order."""
    _, step = found.strides
    return tuple(
        found.seen_as(found.shape[1:], (step,), found.strides[0] * row if found.size else 0)
        for row in range(found.shape[0])
    )


# --- NumPy's functions -----------------------------------------------------------------------------------------------


def nonzero(a: CudaArray) -> tuple[CudaArray, ...]:
    """np.nonzero."""
    if not a.ndim:
        np.nonzero(np.zeros((), a.dtype))  # raises what NumPy raises
    return rows_of(indices(choice(a)))


def flatnonzero(a: CudaArray) -> CudaArray:
    """np.flatnonzero."""
    return places(choice(a))


def argwhere(a: CudaArray) -> CudaArray:
    """np.argwhere."""
    if not a.ndim:
        return new(a, (choice(a).total, 0), np.int64)
    return indices(choice(a)).T


_taken: Any = fuse(lambda x, at, axis: np.take(x, at, axis))


def _chosen_along(condition: CudaArray, x: CudaArray, axis: int) -> CudaArray:
    """What np.take makes of an array and the places in a condition that is not zero. Raises IndexError."""
    at = flatnonzero(condition)
    if condition.size > x.shape[axis] <= (last := last_of(at)) and at.size:
        raise IndexError(f"index {last} is out of bounds for axis {axis} with size {x.shape[axis]}")
    return _taken(x, at, axis)  # type: ignore[no-any-return]


def extract(condition: Any, arr: CudaArray) -> Any:
    """np.extract."""
    if not isinstance(condition, CudaArray):
        return NotImplemented
    if condition.shape == arr.shape:
        return elements(arr, choice(condition))
    return _chosen_along(condition, flat(arr), 0)


def compress(condition: Any, a: CudaArray, axis: int | None = None, out: Any = None) -> Any:
    """np.compress."""
    if not isinstance(condition, CudaArray) or out is not None:
        return NotImplemented
    if condition.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    if axis is None:
        a, axis = flat(a), 0
    axis = normalize_axis_index(axis, a.ndim)
    if not axis and condition.shape == a.shape[:1]:
        return elements(a, choice(condition))
    return _chosen_along(condition, a, axis)
