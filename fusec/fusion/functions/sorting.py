"""Sorting, searching and counting in fused functions, which NumPy does between kernels."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from fusec.errors.fusing import NotFusable
from fusec.fusion.functions import binning, ranks, windows
from fusec.fusion.functions.libraries import Asked, LibraryFunction, resized
from fusec.fusion.functions.routines import reshaped, trace_of, traced
from fusec.fusion.functions.sharing import shared
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import here
from fusec.fusion.trace.tracer import Tracer

_argpartition = shared(np.argpartition)


@wraps(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, **options: Any) -> Any:
    """np.sort, whose default kind is ten times faster than the stable one, but for bytes, which that one counts.

    Sorted numbers tell no order but that of zeros and of nans, whose bits differ; these are put back as they came.
    """
    is_byte = isinstance(a, np.ndarray) and a.dtype.itemsize == 1
    any_kind = kind in ("stable", "mergesort") or (is_byte and kind is None)
    is_number = type(a) is np.ndarray and a.dtype.isbuiltin == 1 and a.dtype.kind in "biuf"
    is_plain = is_number and type(axis) is int and not any(options.values())
    if not any_kind or not is_plain:
        return np.sort(a, axis, kind, **options)
    found = np.sort(a, axis, "stable" if is_byte else None)
    if a.dtype.kind == "f" and a.size:
        rows, given = np.moveaxis(found, axis, -1), np.moveaxis(a, axis, -1)
        if np.isnan(rows[..., -1]).any():
            rows[np.isnan(rows)] = given[np.isnan(given)]
        are_zero = rows == 0
        if are_zero.any():
            rows[are_zero] = given[given == 0]
    return found


def _sorting(function: Callable[..., Any], at: int, **options: Any) -> Callable[..., Any]:
    """A function that sorts along an axis, which is argument number `at`; None: all elements in a row."""
    of_axis = LibraryFunction(function, f"np.{function.__name__}", (0,), ("a",), **options)

    @wraps(of_axis, assigned=(), updated=())
    def call(a: Any, *args: Any, **named: Any) -> Any:
        a = traced(a, trace_of(a))
        if named.get("axis", args[at - 1] if len(args) >= at else -1) is None:
            a, named = reshaped(a, -1), {**named, "axis": -1}
            args = args[: at - 1]
        return of_axis(a, *args, **named)

    return call


def _as_sorted(asked: Asked) -> Any:
    """np.partition: the elements are those of np.sort; places beyond the axis are found when it is called."""
    given = asked.named
    function = np.argsort if asked.function is _argpartition else np.sort
    return asked.instead(function, given["a"], axis=given.get("axis", -1)).by_stand_ins()


def _sorted_in_place(name: str) -> Callable[..., Any]:
    """A method that sorts an array."""

    def call(x: Any, *args: Any, **options: Any) -> None:
        x[...] = FUNCTIONS[name](x, *args, **options)

    return call


def _joined(asked: Asked) -> Any:
    """np.convolve and np.correlate."""
    given = asked.named
    found = asked.by_stand_ins()
    (long, short) = sorted((np.size(asked.example(given[name])) for name in ("a", "v")), reverse=True)
    mode = given.get("mode", "full" if asked.function is np.convolve else "valid")
    sizes = {"f": long + short - 1, "s": long, "v": long - short + 1}
    return resized(found, (sizes[str(mode)[0]],))


def _counted(asked: Asked) -> Any:
    """np.histogram: of so many bins, or with given edges."""
    bins = asked.example(asked.named.get("bins", 10))
    if isinstance(bins, str):
        cure = "pass their number, or their edges: np.histogram(x, 10)"
        raise NotFusable("np.histogram with bins that values choose", cure).at(here())
    found = asked.by_stand_ins()
    if not np.ndim(bins):
        return found
    hist, edges = found
    return resized(hist, (max(len(bins) - 1, 0),)), resized(edges, (len(bins),))


_histogram = LibraryFunction(
    np.histogram, "np.histogram", (0, 1, 4), ("a", "bins", "weights"), True, _counted, by_kernels=binning.histogram,
    on_devices=binning.histogram_of_sorted,
)  # fmt: skip


@wraps(_histogram, assigned=(), updated=())
def histogram(a: Any, bins: Any = 10, *args: Any, **options: Any) -> Any:
    """np.histogram; a number of bins is part of shapes."""
    return _histogram(a, operator.index(bins) if isinstance(bins, Tracer) and not bins.ndim else bins, *args, **options)


def _packed(asked: Asked) -> Any:
    """np.packbits and np.unpackbits along an axis."""
    given = {"a": asked.args[0], **asked.options}  # builtins before NumPy 2.4 have no signatures
    found, shape = asked.by_stand_ins(), list(asked.example(given["a"]).shape)
    axis, count = given["axis"], given.get("count")
    if asked.function is np.packbits:
        shape[axis] = -(-shape[axis] // 8)
    else:
        bits = 8 * shape[axis]
        shape[axis] = bits if count is None else count if count >= 0 else max(bits + count, 0)
    return resized(found, shape)


def _bits(function: Callable[..., Any]) -> Callable[..., Any]:
    of_axis = LibraryFunction(function, f"np.{function.__name__}", (0,), ("a",), True, _packed)

    @wraps(of_axis, assigned=(), updated=())
    def call(a: Any, /, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
        a = traced(a, trace_of(a))
        options = {"bitorder": bitorder} if count is None else {"bitorder": bitorder, "count": count}
        if axis is None or not a.ndim:
            a, axis = reshaped(a, -1), -1
        return of_axis(a, axis=axis, **options)

    return call


def _ranked(function: Callable[..., Any]) -> LibraryFunction:
    """A median or a quantile, which leaves its operand as it is."""
    has_q = "median" not in function.__name__
    of_rows = function if has_q else shared(function)
    at = [*inspect.signature(function).parameters].index("overwrite_input")

    def call(*args: Any, **options: Any) -> Any:
        options.pop("overwrite_input", None)
        return of_rows(*args[:at], *[False for _ in args[at : at + 1]], *args[at + 1 :], **options)

    keywords = ("a", "q", "weights")
    on_devices = ranks.ON_DEVICES[function.__name__]
    return LibraryFunction(
        call, f"np.{function.__name__}", (0, 1) if has_q else (0,), keywords, has_q, on_devices=on_devices
    )


FUNCTIONS.update(
    {
        "sort": _sorting(shared(sort), 1), "argsort": _sorting(shared(np.argsort), 1),
        "partition": _sorting(shared(np.partition), 2, may_raise=True, outcome=_as_sorted),
        "argpartition": _sorting(_argpartition, 2, may_raise=True, outcome=_as_sorted),
        "lexsort": LibraryFunction(np.lexsort, "np.lexsort", (0,), ("keys",), on_devices=ranks.lexsort),
        "sort_complex": LibraryFunction(np.sort_complex, "np.sort_complex", on_devices=ranks.sort_complex),
        "searchsorted": LibraryFunction(
            np.searchsorted, "np.searchsorted", (0, 1, 3), ("a", "v", "sorter"), True, by_kernels=binning.searchsorted
        ),
        "digitize": LibraryFunction(
            np.digitize, "np.digitize", (0, 1), ("x", "bins"), True, by_kernels=binning.digitize
        ),
        "interp": LibraryFunction(
            np.interp, "np.interp", (0, 1, 2, 3, 4, 5), ("x", "xp", "fp", "left", "right", "period"), True,
            on_devices=ranks.interp,
        ),
        "histogram": histogram,
        "unravel_index": LibraryFunction(np.unravel_index, "np.unravel_index", (0,), ("indices",), True),
        "ravel_multi_index": LibraryFunction(
            np.ravel_multi_index, "np.ravel_multi_index", (0,), ("multi_index",), True
        ),
        "convolve": LibraryFunction(
            np.convolve, "np.convolve", (0, 1), ("a", "v"), outcome=_joined, on_devices=windows.convolve
        ),
        "correlate": LibraryFunction(
            np.correlate, "np.correlate", (0, 1), ("a", "v"), outcome=_joined, on_devices=windows.correlate
        ),
        "packbits": _bits(np.packbits), "unpackbits": _bits(np.unpackbits),
        **{name: _ranked(getattr(np, name)) for name in (
            "median", "nanmedian", "percentile", "nanpercentile", "quantile", "nanquantile")},
    }
)  # fmt: skip
METHODS.update(
    {
        **{name: FUNCTIONS[name] for name in ("argsort", "argpartition", "searchsorted")},
        "sort": _sorted_in_place("sort"), "partition": _sorted_in_place("partition"),
    }
)  # fmt: skip
