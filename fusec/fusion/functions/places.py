"""Positions of extremes in traced arrays: the least position of an element that is the extreme."""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from fusec.fusion.functions.composing import called
from fusec.fusion.functions.reducing import REDUCTIONS, normalised
from fusec.fusion.functions.routines import reshaped, traced, where
from fusec.fusion.trace.conditions import require
from fusec.fusion.trace.numbers import plain
from fusec.fusion.trace.tables import CREATION, FUNCTIONS, METHODS
from fusec.fusion.trace.trace import Trace
from fusec.library import reductions as library

SHORT = 1 << 31  # elements whose positions int32 holds
ARANGE = CREATION[np.arange]
LONG = 1 << 12  # elements of a total from which on fusec's own function finds a place in one pass over memory


def _place(upwards: bool) -> Callable[..., Any]:
    def place(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
        x = traced(x, (x if out is None else out)._trace)
        axis = None if axis is None else operator.index(axis)
        if not x.size:
            (np.argmax if upwards else np.argmin)(np.empty(x.shape), axis)  # NumPy's error, if it has one
        _check(out)
        if axis is None and x.ndim > 1 and x._seen.flags.c_contiguous and (keepdims is np._NoValue or not keepdims):
            require([x], lambda array: array.flags.c_contiguous)  # positions are those in the row that it is
            x = reshaped(x, -1)
        count = x.size if axis is None or not x.ndim else x.shape[normalised(axis, x.ndim)[0]]
        if count > LONG and x.dtype.kind != "c":
            return _in_one_pass(library.argmax if upwards else library.argmin, x, axis, out, keepdims)
        is_found = x == REDUCTIONS["max" if upwards else "min"](x, axis, keepdims=True)
        if x.dtype.kind not in "biu":  # of narrow floats it is "V"
            is_found |= np.isnan(x)  # the extreme, wherever it is
        kind: Any = np.int32 if x.size < SHORT else np.int64
        positions = where(is_found, _positions(x._trace, x.shape, axis, kind), kind(np.iinfo(kind).max))
        return _given(REDUCTIONS["min"](positions, axis, keepdims=keepdims).astype(np.intp, order="C"), out)

    return place


def _of_numbers(upwards: bool) -> Callable[..., Any]:
    """The same, of numbers alone: an error where there are none."""
    place, known = _place(upwards), library.nanargmax if upwards else library.nanargmin

    def of_numbers(x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
        x = traced(x, (x if out is None else out)._trace)
        if x.dtype.kind in "biuc" or not x.size:
            return place(x, axis, out, keepdims=keepdims)
        _check(out)
        return _in_one_pass(known, x, None if axis is None else operator.index(axis), out, keepdims)

    return of_numbers


def _check(out: Any) -> None:
    """Raise NumPy's error for an array of another dtype than positions have."""
    if out is not None and out.dtype != np.intp:
        rule = "according to the rule 'safe'"
        raise TypeError(f"Cannot cast array data from {out.dtype!r} to {np.dtype(np.intp)!r} {rule}")


def _in_one_pass(function: Any, x: Any, axis: int | None, out: Any, keepdims: Any) -> Any:
    """What a function of fusec's own finds."""
    keeps = keepdims is not np._NoValue and bool(keepdims)
    return _given(called(function, (x, axis), {"keepdims": keeps}), out)


def _given(found: Any, out: Any) -> Any:
    """Positions, in the array given for them if there is one. Raises NumPy's error for its shape."""
    if out is None:
        return found
    if out.shape != found.shape:
        raise ValueError("output array does not match result of np.argmax.")
    out[...] = found
    return out


def _positions(trace: Trace, shape: tuple[int, ...], axis: int | None, kind: Any) -> Any:
    """The position of every element among those of its total, in C order, in a shape that broadcasts to the array's."""
    axes = range(len(shape)) if axis is None else [axis % len(shape)] if shape else []
    found: Any = traced(np.zeros((), kind), trace)
    for each in axes:
        if shape[each] > 1:
            steps = traced(ARANGE(shape[each], dtype=kind), trace)
            along = steps.reshape([-1 if other == each else 1 for other in range(len(shape))])
            found = found + (along * kind(plain(prod(shape[each + 1 :]))) if axis is None else along)
    return found


for _name, _function in (("argmax", _place(upwards=True)), ("argmin", _place(upwards=False))):
    FUNCTIONS[_name] = METHODS[_name] = _function
    FUNCTIONS[f"nan{_name}"] = _of_numbers(_name == "argmax")
