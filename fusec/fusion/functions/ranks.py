"""Medians, quantiles and orders on devices, made of sorts and of what kernels compute; on the host NumPy selects."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import numpy as np

from fusec.fusion.functions.known import known
from fusec.fusion.functions.numpy_source import on_traced
from fusec.fusion.functions.routines import trace_of, traced
from fusec.fusion.trace.tracer import Tracer


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes that are left out; None: all."""
    found: tuple[int, ...] = np.lib.array_utils.normalize_axis_tuple(range(ndim) if axis is None else axis, ndim)
    return found


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """An array whose last axis stands for some axes."""
    kept = [each for each in range(x.ndim) if each not in axes]
    moved = np.moveaxis(x, kept, range(len(kept)))
    return moved.reshape((*moved.shape[: len(kept)], -1)) if len(axes) != 1 else moved


def _with_axes(found: Any, axes: tuple[int, ...], ndim: int, keepdims: Any) -> Any:
    """A result, with an axis of one element for each that is left out if they are kept."""
    if keepdims is np._NoValue or not keepdims:
        return found[()]
    return found[(..., *(None if each in axes else slice(None) for each in range(ndim)))]


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    """np.median."""
    del overwrite_input
    return None if out is not None else _of_middle(a, axis, keepdims, leaves_nan_out=False)


def nanmedian(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
    """np.nanmedian."""
    del overwrite_input
    return None if out is not None else _of_middle(a, axis, keepdims, leaves_nan_out=True)


def _of_middle(a: Any, axis: Any, keepdims: Any, leaves_nan_out: bool) -> Any:
    x = traced(a, trace_of(a))
    with x._trace.extents.plainly():
        axes = _axes(axis, x.ndim)
        has_nan = x.dtype.kind in "fc"
        rows = _rows(x, axes)
        extent = rows.shape[-1]
        if not extent:
            return np.mean(x, axis, keepdims=keepdims)
        ordered = np.sort(rows, axis=-1)
        if leaves_nan_out and has_nan:
            found = _middle_of_numbers(ordered, np.sum(~np.isnan(rows), axis=-1, keepdims=True))
        else:
            half = extent // 2
            found = np.mean(ordered[..., half - 1 + extent % 2 : half + 1], axis=-1)
            if has_nan:
                found = np.where(np.isnan(ordered[..., -1]), ordered[..., -1], found)
        return _with_axes(found, axes, x.ndim, keepdims)


def _middle_of_numbers(ordered: Any, count: Any) -> Any:
    """The medians of sorted rows, of which so many elements are numbers."""
    low, high = (np.take_along_axis(ordered, at, axis=-1) for at in (np.maximum(count - 1, 0) // 2, count // 2))
    both = np.mean(np.concatenate((low, high), axis=-1), axis=-1)
    return np.where(count[..., 0] % 2 == 1, low[..., 0], both)


# --- quantiles -------------------------------------------------------------------------------------------------------


def _lerp(a: Any, b: Any, t: Any, out: Any = None, kind: Any = None) -> Any:
    """Between two values, in the order of operations of NumPy's source. kind: the dtype of t and 1 - t, if another."""
    del out
    difference = b - a
    start, end = (each if kind is None else each.astype(kind) for each in (t, 1 - t))
    found = a + difference * start
    return np.where(t >= 0.5, (b - difference * end).astype(found.dtype), found)


def _any(test: Any) -> Any:
    """What np.any is to source that replaces elements where a test holds."""
    return True if isinstance(test, Tracer) else np.any(test)


_INSTEAD = {"_lerp": _lerp, "any": _any}
_OF_NUMPY = {name: on_traced(getattr(np, name), _INSTEAD) for name in ("quantile", "percentile")}
_HAS_WEAK = "weak_q" in unwrap(np.quantile).__code__.co_varnames  # older releases round parts to the array's dtype


def quantiles(name: str, leaves_nan_out: bool = False) -> Any:
    """np.quantile and the like, for known parts of rows; None for all else."""

    def between(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: str = "linear",
        keepdims: Any = False, *, weights: Any = None,
    ) -> Any:  # fmt: skip
        del overwrite_input
        q = known(q) if isinstance(q, Tracer) else q
        if q is None or out is not None or weights is not None:
            return None
        x = traced(a, trace_of(a))
        with x._trace.extents.plainly():
            axes = _axes(axis, x.ndim)
            rows = _rows(x, axes)
            if x.dtype.kind not in "biuf" or not rows.shape[-1]:
                return None
            if not leaves_nan_out or x.dtype.kind != "f":
                found = _OF_NUMPY[name](rows[..., None], q, axis=-2, method=method)[..., 0]
            elif method == "linear" and _HAS_WEAK:
                found = _between_numbers(name, rows, q)
            else:
                return None
            return _with_axes(found, axes, x.ndim, keepdims)

    return between


def _between_numbers(name: str, rows: Any, q: Any) -> Any:
    """Linear quantiles of the numbers in each row, as NumPy's source computes them row by row."""
    getattr(np, name)(np.zeros(1), q)  # raises NumPy's error
    kind = rows.dtype if type(q) in (int, float) else None
    part = np.true_divide(q, 100) if name == "percentile" else np.asarray(q)
    ordered, last = np.sort(rows, axis=-1), np.sum(~np.isnan(rows), axis=-1) - 1
    part = part[(..., *(None for _ in last.shape))]
    lead = part.ndim - last.ndim

    def at(places: Any) -> Any:
        chosen = np.maximum(places, 0).astype(np.intp)[..., None]
        return np.take_along_axis(ordered[(*(None for _ in range(lead)), ...)], chosen, axis=-1)[..., 0]

    place = last.astype(part.dtype) * part
    if place.dtype.kind in "iu":
        return at(place)
    is_last, before = place >= last, np.where(place < 0, 0, np.floor(place))
    low, high = (np.where(is_last, last, each) for each in (before, np.where(place < 0, 0, before + 1)))
    return _lerp(at(low), at(high), place - np.where(is_last, -1, before), kind=kind)


# --- orders ----------------------------------------------------------------------------------------------------------


def lexsort(keys: Any, axis: int = -1) -> Any:
    """np.lexsort: stable sorts by one key after the other."""
    trace = trace_of(keys)
    order: Any = None
    for each in [traced(each, trace) for each in keys]:
        if not each.ndim:
            return None
        key = each if order is None else np.take_along_axis(each, order, axis)
        places = np.argsort(key, axis=axis, kind="stable")
        order = places if order is None else np.take_along_axis(order, places, axis)
    return order


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """np.interp of real numbers, in the order of operations of NumPy's source; None for all else."""
    trace = trace_of(x, xp, fp)
    given = [traced(each, trace) for each in (x, xp, fp)]
    if period is not None or not given[1].shape[0] or any(each.dtype.kind == "c" for each in given):
        return None
    x, edges, values = (each.astype(np.float64) for each in given)
    with trace.extents.plainly():
        last = edges.shape[0] - 1
    at = np.searchsorted(edges, x, side="right") - 1
    low = np.clip(at, 0, max(last - 1, 0))
    high = np.minimum(low + 1, last)
    slope = (values[high] - values[low]) / (edges[high] - edges[low])
    found = slope * (x - edges[low]) + values[low]
    found = np.where(np.isnan(found), slope * (x - edges[high]) + values[high], found)
    found = np.where(np.isnan(found) & (values[low] == values[high]), values[low], found)
    place = np.maximum(at, 0)
    found = np.where((at >= last) | (edges[place] == x), values[place], found)
    found = np.where(x < edges[0], values[0] if left is None else left, found)
    found = np.where(x > edges[last], values[last] if right is None else right, found)
    return np.where(np.isnan(x) & (last > 0), x, found)[()]


sort_complex = on_traced(np.sort_complex, {})
ON_DEVICES = {
    "median": median, "nanmedian": nanmedian,
    **{name: quantiles(name) for name in ("quantile", "percentile")},
    **{f"nan{name}": quantiles(name, leaves_nan_out=True) for name in ("quantile", "percentile")},
}  # fmt: skip
