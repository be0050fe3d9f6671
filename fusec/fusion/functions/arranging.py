"""NumPy's functions that place, repeat and choose elements, on traced arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.arguments.operands import strided
from fusec.errors.fusing import NotFusable
from fusec.fusion.functions.creation import array
from fusec.fusion.functions.joining import repeated
from fusec.fusion.functions.libraries import LibraryFunction
from fusec.fusion.functions.reducing import REDUCTIONS, one_axis
from fusec.fusion.functions.routines import concatenate, reshaped, trace_of, traced, where
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import here
from fusec.fusion.trace.trace_values import ArrayValue, laid_out, outermost_first, phantom
from fusec.fusion.trace.tracer import Tracer, made

Slices = tuple[slice, ...]
CHOOSE = LibraryFunction(np.choose, "np.choose", (0, 1), may_raise=True)
MOST = 64  # parts of different lengths that np.repeat joins


def _along(axis: int, part: slice) -> Slices:
    """The index of a part along an axis."""
    return (*(slice(None),) * axis, part)


# --- repeating -------------------------------------------------------------------------------------------------------


def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """np.repeat."""
    x = traced(x, trace_of(x, repeats))
    if isinstance(repeats, Tracer) and repeats.ndim:
        raise NotFusable("np.repeat by an array", "its result has a size that depends on values").at(here())
    if axis is None:
        x, axis = reshaped(x, -1), 0
    x = x if x.ndim else reshaped(x, -1)  # as NumPy has it
    axis = one_axis(axis, x.ndim)
    counts = np.atleast_1d([operator.index(each) for each in repeats] if np.ndim(repeats) else operator.index(repeats))
    if len(counts) not in (1, x.shape[axis]):
        np.repeat(np.empty(x.shape), counts, axis)  # NumPy's error
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    if (counts == counts[:1]).all() and len(counts):
        each = int(counts[0])
        if each > 1 and x.size:
            return repeated(x, each, axis)
        wide = x._view(lambda found: np.expand_dims(found, axis + 1))
        shape = (*x.shape[: axis + 1], each, *x.shape[axis + 1 :])
        found = np.broadcast_to(wide, shape).copy()
        return reshaped(found, (*shape[:axis], x.shape[axis] * each, *x.shape[axis + 1 :]))
    if len(counts) > MOST:
        raise NotFusable("np.repeat by many different numbers", "repeat by one number, or before").at(here())
    parts = [x[_along(axis, slice(at, at + 1))] for at in range(len(counts))]
    return concatenate([repeat(part, int(count), axis) for part, count in zip(parts, counts, strict=True)], axis)


# --- diagonals -------------------------------------------------------------------------------------------------------


def trace_method(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """x.trace."""
    return REDUCTIONS["sum"](np.diagonal(x, offset, axis1, axis2), -1, dtype, out)


def diagflat(x: Any, k: int = 0) -> Any:
    """np.diagflat."""
    return np.diag(np.ravel(x), k)


def fill_diagonal(x: Any, val: Any, wrap: bool = False) -> None:
    """np.fill_diagonal."""
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    is_wrapped = wrap and x.shape[0] > x.shape[1] + 1
    target = x.flat[:: x.shape[1] + 1] if is_wrapped else x._view(_diagonal)
    target[...] = val if np.size(val) == 1 else FUNCTIONS["resize"](val, target.size)


def _diagonal(found: Any) -> Any:
    """The diagonal of an array of any number of axes; it can be written."""
    return strided(found, (min(found.shape),), (sum(found.strides),))


def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """np.compress; a condition that is not known picks elements as a mask does."""
    if out is not None:
        raise NotFusable("np.compress with out=", "assign to slices").at(here())
    a = traced(a, trace_of(condition, a))
    if axis is None:
        a, axis = np.ravel(a), 0
    a = a if a.ndim else np.ravel(a)  # as NumPy has it
    axis = one_axis(axis, a.ndim)
    if isinstance(condition, Tracer):
        if axis:
            raise NotFusable("np.compress by an array", "its result has a size that depends on values").at(here())
        return a[: condition.shape[0]][condition.astype(bool)]
    return np.take(a, np.flatnonzero(condition), axis)


# --- inserting -------------------------------------------------------------------------------------------------------


def _picked(x: Any, places: Any, axis: int) -> Any:
    """The elements at known places along an axis, as runs of neighbours."""
    ends = np.flatnonzero(np.diff(places) != 1) + 1
    runs = [run for run in np.split(places, ends) if len(run)]
    parts = [x[_along(axis, slice(int(run[0]), int(run[-1]) + 1))] for run in runs]
    return concatenate(parts, axis) if parts else x[_along(axis, slice(0, 0))].copy()


def _new(found: Any, like: Any, axis: int | None = None) -> Any:
    """Elements of an array in new memory, which lies as the array does; or with an axis that is indexed outside."""
    shape, dtype = found._seen.shape, found.dtype
    seen = laid_out(like._seen, dtype, "A", shape)
    if axis is not None:
        seen = phantom(shape, dtype, (axis, *(each for each in outermost_first(like._seen) if each != axis)))
    return made(found._trace, ArrayValue(found._read().scalar, seen))


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """np.delete; what is deleted is known."""
    arr = traced(arr, trace_of(arr, obj))
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = one_axis(axis, arr.ndim)
    kept = np.delete(np.arange(arr.shape[axis]), obj)
    found = _picked(arr, kept, axis)
    is_slice = isinstance(obj, slice) or (np.size(obj) == 1 and np.asarray(obj).dtype != np.bool_)
    return _new(found, arr, None if is_slice else axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """np.insert; the places are known."""
    trace = trace_of(arr, obj, values)
    arr = traced(arr, trace)
    values = traced(np.array(values, arr.dtype) if type(values) is int else values, trace)
    if axis is None:
        arr, axis = np.ravel(arr), 0
    axis = one_axis(axis, arr.ndim)
    values = array(values, arr.dtype, ndmin=arr.ndim, copy=None)
    example, length = np.broadcast_to(np.empty(()), values.shape), arr.shape[axis]
    shape = np.insert(np.broadcast_to(np.empty(()), arr.shape), obj, example, axis).shape
    if np.ndim(obj) == 0 and not isinstance(obj, slice):
        values = np.moveaxis(values, 0, axis)
    more = shape[axis] - length
    values = np.broadcast_to(values, (*shape[:axis], more, *shape[axis + 1 :]))
    new = np.arange(length, length + more)
    places = np.insert(np.arange(length), obj, new if more != 1 else new[0])
    return _new(_picked(concatenate([arr, values], axis), places, axis), arr)


# --- choosing --------------------------------------------------------------------------------------------------------


def putmask(x: Any, mask: Any, values: Any) -> None:
    """np.putmask."""
    is_array = isinstance(values, np.ndarray) or (isinstance(values, Tracer) and not values._is_scalar)
    if is_array and not np.can_cast(values.dtype, x.dtype):
        np.putmask(np.empty(1, x.dtype), True, np.empty(1, values.dtype))  # NumPy's error
    mask, values = traced(mask, x._trace), traced(values, x._trace)
    if mask.size != x.size:
        raise ValueError("putmask: mask and data must be the same size")
    if values.size and x.size:
        values = values if values.size == 1 else reshaped(FUNCTIONS["resize"](values, x.size), x.shape)
        x[...] = where(reshaped(mask, x.shape), values.astype(x.dtype), x)


def place(x: Any, mask: Any, vals: Any) -> None:
    """np.place with one value."""
    if np.size(vals) != 1:
        cure = "where each value goes depends on values: write np.putmask, or x[...] = np.where(mask, values, x)"
        raise NotFusable("np.place of several values", cure).at(here())
    putmask(x, mask, np.ravel(vals)[0])


def choose(x: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """np.choose; NumPy's own between kernels if an integer may choose nothing, which raises an error."""
    parts = list(choices)
    if not parts:
        raise ValueError("0-length sequence.")
    trace = trace_of(x, parts)
    x = traced(x, trace)
    if not np.can_cast(x.dtype, np.intp):
        raise TypeError(f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'")
    if mode == "wrap":
        x = x % len(parts)
    elif mode == "clip":
        x = np.clip(x, 0, len(parts) - 1)
    elif x.dtype != np.bool_ or len(parts) < 2:
        return CHOOSE(x, parts, out=out, mode=mode)
    found = traced(parts[-1], trace)
    for at in reversed(range(len(parts) - 1)):
        found = where(x == at, parts[at], found)
    dtype = FUNCTIONS["result_type"](*(np.asarray(each) if isinstance(each, list) else each for each in parts))
    found = np.broadcast_to(found, np.broadcast_shapes(found.shape, x.shape)).astype(dtype, order="C")
    if out is None:
        return found[()]
    out[...] = found
    return out


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **options: Any) -> Any:
    """np.piecewise of numbers."""
    del args, options
    if any(map(callable, funclist)):
        cure = "write np.where(condition, f(x), y), or np.select"
        raise NotFusable("np.piecewise with functions", cure).at(here())
    x = traced(x, trace_of(x, condlist))
    is_one = np.isscalar(condlist) or (not isinstance(condlist[0], (list, np.ndarray)) and x.ndim)
    conditions = [traced(each, x._trace).astype(bool) for each in ([condlist] if is_one else condlist)]
    found = np.zeros_like(x)
    if len(funclist) == len(conditions) + 1:
        found[...] = funclist[-1]
    elif len(funclist) != len(conditions):
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            "expected"
        )
    for condition, value in zip(conditions, funclist, strict=False):
        found[...] = where(condition, value, found)
    return found


# --- steps -----------------------------------------------------------------------------------------------------------


def linspace(
    start: Any, stop: Any, num: Any = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """np.linspace, in the order of operations of NumPy's source, which asks whether a step is 0."""
    del device
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    trace, gaps = trace_of(start, stop), num - 1 if endpoint else num
    kind: Any = FUNCTIONS["result_type"](start, stop, 0.0)
    first, last = traced(start, trace), traced(stop, trace)
    delta = np.subtract(last, first, dtype=kind)
    found = np.arange(0, num, dtype=kind).reshape((-1,) + (1,) * delta.ndim)
    step: Any = np.nan
    if gaps > 0:
        step = delta / gaps
        found = where(np.any(step == 0), found / gaps * delta, found * step)
    else:
        found = found * delta
    found = found + first
    if endpoint and num > 1:
        found[-1, ...] = last
    found = np.moveaxis(found, 0, axis)
    if dtype is not None and np.issubdtype(dtype, np.integer):
        found = np.floor(found)
    found = found.astype(kind if dtype is None else dtype, copy=False)
    return (found, step) if retstep else found


FUNCTIONS.update(
    {
        "repeat": repeat, "delete": delete, "insert": insert, "diagflat": diagflat, "fill_diagonal": fill_diagonal,
        "compress": compress, "putmask": putmask, "place": place, "choose": choose, "piecewise": piecewise,
        "linspace": linspace,
    }
)  # fmt: skip
METHODS.update(
    {
        "repeat": repeat, "trace": trace_method, "choose": choose,
        "compress": lambda x, condition, axis=None, out=None: compress(condition, x, axis, out),
    }
)  # fmt: skip
