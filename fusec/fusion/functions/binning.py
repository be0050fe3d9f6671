"""Places among few known numbers: kernels compare with all of them, where NumPy would search."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from fusec.fusion.functions.known import known
from fusec.fusion.functions.routines import traced
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.tracer import Tracer

MOST_EDGES = 16
EXACT = tuple(np.dtype(each) for each in ("f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4"))  # in float64
ORDERED = (*EXACT, np.dtype("i8"))
LEAST_WIDTH = 2.0**-16  # of a bin, beside the edges: NumPy is certain to find the bin that comparisons find


def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """np.searchsorted of an array in few known numbers that are in order; None for all else."""
    edges = _edges(a)
    if edges is None or sorter is not None or not _is_array(v, ORDERED) or side not in ("left", "right"):
        return None
    return _places(v, edges, side) if _rises(edges) else None


def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """np.digitize of an array, of which the same is true."""
    edges = _edges(bins)
    if edges is None or not _is_array(x, ORDERED) or type(right) is not bool:
        return None
    side = "left" if right else "right"
    if _rises(edges):
        return _places(x, edges, side)
    return len(edges) - _places(x, edges[::-1], side) if _rises(edges[::-1]) else None


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002
    """np.histogram with few bins in a range of numbers; None for all else."""
    if weights is not None or density or type(bins) is not int or bins >= MOST_EDGES:
        return None
    edges = _spaced(a, bins, range)
    if edges is None:
        return None
    values = METHODS["astype"](a, edges.dtype, copy=False)
    inside = [(values >= low) & (values < high) for low, high in pairwise(edges[:-1])]
    inside.append((values >= edges[-2]) & (values <= edges[-1]))
    return FUNCTIONS["stack"]([METHODS["sum"](each) for each in inside]), traced(edges, a._trace)


def histogram_of_sorted(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None  # noqa: A002
) -> Any:  # fmt: skip
    """np.histogram, of elements that are sorted, with known bins; None for all else."""
    if weights is not None or density or not _is_array(a, ORDERED):
        return None
    bins = known(bins) if isinstance(bins, Tracer) else bins
    edges = _spaced(a, bins, range) if type(bins) is int else None if bins is None else np.asarray(bins)
    if edges is None or edges.ndim != 1 or not len(edges) or edges.dtype not in ORDERED:
        return None
    np.histogram(np.empty(0), edges)  # raises NumPy's error
    values = METHODS["astype"](a, edges.dtype, copy=False) if type(bins) is int else a
    ordered = np.sort(values.reshape(-1))
    places = [FUNCTIONS["searchsorted"](ordered, traced(edges[:-1], a._trace))]
    places.append(FUNCTIONS["searchsorted"](ordered, traced(edges[-1:], a._trace), "right"))
    return np.diff(np.concatenate(places)), traced(edges, a._trace)


def _spaced(a: Any, bins: int, range: Any) -> np.ndarray[Any, Any] | None:  # noqa: A002
    """The edges of bins in a range of numbers, if NumPy is certain to find the bins that comparisons find."""
    is_plain = type(range) in (tuple, list) and len(range) == 2 and all(type(each) in (int, float) for each in range)
    if not (_is_array(a, EXACT) and is_plain and bins > 0 and all(map(math.isfinite, range))):
        return None
    dtype = np.result_type(*range, np.empty(0, a.dtype))
    dtype = np.result_type(dtype, float) if dtype.kind in "iu" else dtype
    with np.errstate(all="ignore"):
        edges = np.linspace(range[0], range[1], bins + 1, dtype=dtype)
        is_wide = np.diff(edges).min() > LEAST_WIDTH * np.abs(edges).max()
        return edges if is_wide and np.isfinite(edges[-1] - edges[0]) else None


def _is_array(x: Any, dtypes: tuple[np.dtype[Any], ...]) -> bool:
    return isinstance(x, Tracer) and not x._is_scalar and x._seen.ndim > 0 and x.dtype in dtypes


def _edges(given: Any) -> np.ndarray[Any, Any] | None:
    """Few known numbers in a row; None for all else."""
    if type(given) in (list, tuple) and all(type(each) in (int, float) for each in given):
        given = np.array(given)
    found = known(given) if isinstance(given, Tracer) else given
    if not isinstance(found, np.ndarray) or found.ndim != 1 or not 0 < len(found) <= MOST_EDGES:
        return None
    return found if found.dtype in ORDERED else None


def _rises(edges: np.ndarray[Any, Any]) -> bool:
    """Whether numbers are in order, and all are numbers."""
    return bool((edges[:-1] <= edges[1:]).all() and (edges == edges).all())


def _places(x: Any, edges: np.ndarray[Any, Any], side: str) -> Any:
    """How many of some numbers come before each element, in C order; before nan, all."""
    before = [~(x <= edge) if side == "left" else ~(x < edge) for edge in edges]
    found = METHODS["astype"](before[0], np.intp, "C")
    for each in before[1:]:
        found = found + each
    return found
