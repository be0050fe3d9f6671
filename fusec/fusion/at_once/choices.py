"""What truth values choose of arrays on devices: the running count of those that are true is the place of each element.

The host reads how many there are, which is the extent of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.fusion.functions.masked import check_mask
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
def _kernel(name: str) -> ElementwiseKernel:
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
            _kernel("rows")(*_spread(found, x), x, prod(rest), made)
        else:
            _kernel("elements")(*found[:2], x, made)
    return made


def _spread(found: Chosen, x: CudaArray) -> list[CudaArray]:
    """The mask and the counts with axes for those of an array behind them."""
    more = x.ndim - found.mask.ndim
    return [each.seen_as((*each.shape, *(1,) * more), (*each.strides, *(0,) * more)) for each in found[:2]]


def places(found: Chosen) -> CudaArray:
    """The places of chosen elements in C order."""
    made = new(found.mask, (found.total,), np.int64)
    if found.total:
        _kernel("places")(*found[:2], made)
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
    axis = range(a.ndim)[axis]
    if not axis and condition.shape == a.shape[:1]:
        return elements(a, choice(condition))
    return _chosen_along(condition, a, axis)


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
        _added(made, x, _converted(weights, made))
    return made


def _zeros(like: CudaArray, size: int, dtype: Any) -> CudaArray:
    made = new(like, (size,), dtype)
    cuda.fill_with_zeros(made.pointer, size * made.dtype.itemsize, made.device, made.stream)
    return made


# --- indices with masks ----------------------------------------------------------------------------------------------

_indexed: Any = fuse(lambda x, key: x[key])


def getitem(x: CudaArray, key: Any) -> Any:
    """x[key] with masks among the parts of the key. Raises NumPy's IndexError."""
    if isinstance(key, CudaArray) and key.ndim:
        check_mask(x, key)
        return elements(x, choice(key))
    items = [*key] if isinstance(key, tuple) else [key]
    if any(isinstance(each, (bool, np.bool_)) or (_is_mask(each) and not each.ndim) for each in items):
        return NotImplemented
    return _indexed(x, tuple(_expanded(x, items)))


_converted: Any = fuse(lambda values, like: values.astype(like.dtype))


@fuse
def _stored(x: Any, key: Any, value: Any) -> None:
    x[key] = value


def setitem(x: CudaArray, key: Any, value: Any) -> Any:
    """x[key] = value with masks among the parts of the key. Raises NumPy's IndexError, ValueError."""
    items = [*key] if isinstance(key, tuple) else [key]
    if any(isinstance(each, (bool, np.bool_)) or (_is_mask(each) and not each.ndim) for each in items):
        return NotImplemented
    if not (isinstance(key, CudaArray) and isinstance(value, CudaArray)):
        _stored(x, tuple(_expanded(x, items)), value)
        return None
    check_mask(x, key)
    found, rest = choice(key), x.shape[key.ndim :]
    shape = (found.total, *rest)
    try:
        np.broadcast_to(np.broadcast_to(0, value.shape), shape)
    except ValueError:
        what = f"value array of shape {value.shape} could not be broadcast to indexing result of shape {shape}"
        raise ValueError(f"shape mismatch: {what}") from None
    if prod(shape):
        values = value if value.dtype == x.dtype else _converted(value, x)
        spread = values.seen_as(shape, cuda.broadcast(values, shape, x.stream).strides)
        _kernel("stored")(*_spread(found, x), spread, prod(rest), x)
    return None


def _is_mask(each: Any) -> bool:
    return isinstance(each, CudaArray) and each.dtype == bool


def _expanded(x: CudaArray, items: Sequence[Any]) -> list[Any]:
    """Parts of a key, with the places that masks pick in place of these. Raises IndexError for masks of other sizes."""
    found: list[Any] = []
    taken = sum(each.ndim if _is_mask(each) else each is not None and each is not ... for each in items)
    axis = 0
    for each in items:
        if _is_mask(each):
            check_mask(x, each, axis)
            found += nonzero(each)
            axis += each.ndim
        else:
            found.append(each)
            axis += x.ndim - taken if each is ... else each is not None
    return found
