"""Sets on devices: sorted elements that differ from the one before them are the distinct ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fusec.fusion.at_once.choices import choice, elements, flat, new
from fusec.fusion.fuse import fuse
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.runtime.cuda import CudaArray

_differences: Any = fuse(np.diff)


@cache
def _ordered(has_places: bool, equals_nan: bool) -> Callable[[CudaArray], Any]:
    """What sorts elements, in the order in which they come where they are equal.

    It makes them, whether each differs from the one before, and, if wanted, their places.
    """

    def ordered(x: Any) -> Any:
        row = np.reshape(x, -1)
        places = [np.argsort(row, kind="stable")] if has_places else []
        values = row[places[0]] if has_places else np.sort(row, kind="stable")
        is_new = np.ones_like(values, bool)
        differs = values[1:] != values[:-1]
        if equals_nan and x.dtype.kind in "fc":
            differs &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
        is_new[1:] = differs
        return (values, is_new, *places)

    return fuse(ordered)


@cache
def _parting(first: bool, inverse: bool, counts: bool) -> ElementwiseKernel:
    """What stores what is known of distinct elements: where each is first, or starts when sorted; which each one is."""
    inputs = "bool is_new, I c, T x" + ", int64 place" * (first or inverse)
    outputs = "raw T y" + ", raw int64 f" * first + ", raw int64 v" * inverse + ", raw int64 s" * counts
    stores = "y[c - 1] = x; " + "f[c - 1] = place; " * first + "s[c - 1] = i; " * counts
    ends = "v[place] = c - 1; " * inverse + "if (i == n - 1) s[c] = n; " * counts
    name = "distinct" + "_first" * first + "_inverse" * inverse + "_counts" * counts
    return ElementwiseKernel(inputs, outputs, f"if (is_new) {{ {stores}}} {ends}", name)


def unique(
    ar: CudaArray, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, *, equal_nan: bool = True, sorted: bool = True,  # noqa: A002 - NumPy's name
) -> Any:  # fmt: skip
    """np.unique of all elements, which are sorted in any case."""
    del sorted
    if not (axis is None or (ar.ndim == 1 and axis in (0, -1))):
        return NotImplemented
    wanted = (bool(return_index), bool(return_inverse), bool(return_counts))
    found = _distinct(ar, wanted, bool(equal_nan))
    return found if any(wanted) else found[0]


def _distinct(ar: CudaArray, wanted: tuple[bool, bool, bool], equals_nan: bool = True) -> tuple[CudaArray, ...]:
    """Distinct elements, and what else is wanted: where each is first, which one each element is, and how many."""
    first, inverse, counts = wanted
    values, is_new, *places = _ordered(first or inverse, equals_nan)(ar)
    numbers, total = choice(is_new)[1:]
    extents = [ar.size] * inverse + [total + 1] * counts
    made = [new(ar, (total,), ar.dtype), *[new(ar, (each,), np.int64) for each in [total] * first + extents]]
    if ar.size:
        _parting(*wanted)(is_new, numbers, values, *places, *made)
    if inverse:
        made[1 + first] = made[1 + first].with_shape(ar.shape)
    if counts:
        made[-1] = _differences(made[-1]) if total else new(ar, (0,), np.int64)
    return tuple(made)


def _set_of(ar: CudaArray, is_unique: bool = False) -> CudaArray:
    """The distinct elements of an array; all in a row, if they are known to be."""
    return flat(ar) if is_unique else _distinct(ar, (False, False, False))[0]


def _chosen(x: CudaArray, mask: CudaArray) -> CudaArray:
    return elements(x, choice(mask))


# --- of two arrays ---------------------------------------------------------------------------------------------------

_joined: Any = fuse(lambda one, other: np.concatenate((one, other), axis=None))


@fuse
def _paired(one: Any, other: Any) -> Any:
    """All elements in order, and which are equal to the one before."""
    found = np.sort(np.concatenate((one, other), axis=None))
    return found, found[1:] == found[:-1]


@fuse
def _apart(is_equal: Any) -> Any:
    """Which elements are equal to none beside them. is_equal: whether each but the first equals the one before."""
    differs = np.pad(~is_equal, 1, constant_values=True)
    return differs[1:] & differs[:-1]


@fuse
def _absent(one: Any, other: Any) -> Any:
    return np.isin(one, other, invert=True)


def _are_arrays(*given: Any) -> bool:
    return all(isinstance(each, CudaArray) for each in given)


def union(ar1: Any, ar2: Any) -> Any:
    """np.union1d."""
    return _set_of(_joined(ar1, ar2)) if _are_arrays(ar1, ar2) else NotImplemented


def intersection(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """np.intersect1d, but for the places of elements."""
    if return_indices or not _are_arrays(ar1, ar2):
        return NotImplemented
    found, is_equal = _paired(*[_set_of(each, assume_unique) for each in (ar1, ar2)])
    return _chosen(found[:-1], is_equal)


def difference(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """np.setdiff1d."""
    if not _are_arrays(ar1, ar2):
        return NotImplemented
    found = _set_of(ar1, assume_unique)
    return _chosen(found, _absent(found, ar2))


def symmetric_difference(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """np.setxor1d."""
    if not _are_arrays(ar1, ar2):
        return NotImplemented
    found, is_equal = _paired(*[_set_of(each, assume_unique) for each in (ar1, ar2)])
    return _chosen(found, _apart(is_equal)) if found.size else found
