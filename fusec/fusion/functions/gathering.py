"""Elements that arrays of integers choose: x[index], np.take, np.take_along_axis."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from fusec.base.dtypes import INT64
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions.joining import held
from fusec.fusion.functions.operands import operand_of
from fusec.fusion.functions.reducing import one_axis
from fusec.fusion.functions.routines import reshaped, trace_of, traced
from fusec.fusion.trace import tracer
from fusec.fusion.trace.conditions import require, require_extents
from fusec.fusion.trace.derived import Derived
from fusec.fusion.trace.elsewhere import position, taken
from fusec.fusion.trace.extents import TraceExtents
from fusec.fusion.trace.indices import NO_INTEGERS, is_number
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import Trace, constant, here
from fusec.fusion.trace.trace_values import (
    Array,
    ArrayValue,
    LibraryCall,
    ViewOf,
    joint_phantom,
    leaves_of,
    outermost_first,
    phantom,
)
from fusec.ir.expr import Expr, apply, const
from fusec.library.reductions import minmax

Shape = tuple[int, ...]
ZERO = const(0, INT64)
CHECK_OF_INDICES = "a check of indices"
"""What reports and errors call it."""
MANY = 1 << 17  # indices that a kernel looks at faster than NumPy
UNSIGNED = {each.itemsize: each for each in map(np.dtype, "BHIQ")}


def indexed(x: Any, index: Any) -> Any:
    """x[index] with arrays or lists in the index. Raises NumPy's errors."""
    items = index if isinstance(index, tuple) else (index,)
    found = chosen(x, items)
    if all(map(is_number, items)) and not found._is_scalar:
        x._trace.parts.add(found._memory, x._memory, index)
    return found


def chosen(x: Any, items: Sequence[Any]) -> Any:
    """x[items], some of which are arrays or lists. Raises NumPy's errors."""
    trace = x._trace
    if len(items) == 1 and isinstance(items[0], (bool, np.bool_)):
        trace.has_looked = True
        return METHODS["copy"](x[None][: int(items[0])])
    found = _expanded(trace, x, items)
    if not any(isinstance(each, tracer.Tracer) for each in found):  # lists of truth values that are known
        return x[tuple(found)]
    basic = [slice(None) if _is_chosen(each) else each for each in found]
    x = x[tuple(basic)]
    places = [at for at, each in enumerate(found) if _is_chosen(each)]
    index = [found[at] for at in places]
    others = [at for at in range(x.ndim) if at not in places]
    shape = _common([each._seen.shape if isinstance(each, tracer.Tracer) else () for each in index])
    frame = (*shape, *(x._seen.shape[at] for at in others))
    exprs: list[Expr] = [ZERO] * x.ndim
    for at, each in zip(places, index, strict=True):
        exprs[at] = _inside(trace, each, x, at, len(others))
    for number, at in enumerate(others, len(shape)):
        exprs[at] = position(number, frame)
    extents: TraceExtents = trace.extents

    def whole() -> Derived:
        own, chosen = extents.of(x), extents.joined([extents.of(each) for each in index if hasattr(each, "_seen")])
        sizes = [extents.extent(chosen, at) for at in range(len(shape))]
        return extents.gathered([*sizes, *[extents.extent(own, at) for at in others]])

    result = _taken(x, exprs, _new(x, frame, others, index), whole, not frame)
    if _is_apart(items) or not shape:
        return result
    axes = tuple(range(len(shape)))
    return result._view(ViewOf(np.moveaxis, (axes, tuple([places[0] + axis for axis in axes]))))


def _new(x: Any, frame: Shape, others: Sequence[int], index: Sequence[Any]) -> Array:
    """The memory of the result: axes of the array that are no part of the index are inside, in the array's order."""
    if all(x._seen.shape[at] == 1 for at in others):
        behind = (..., *(None,) * len(others))
        arrays = [each._seen[behind] for each in index if isinstance(each, tracer.Tracer)]
        return joint_phantom(arrays, frame, x.dtype)
    count = len(frame) - len(others)
    inside = [count + others.index(at) for at in outermost_first(x._seen) if at in others]
    return phantom(frame, x.dtype, (*range(count), *inside))


def _taken(x: Any, index: Sequence[Expr], seen: Array, whole: Callable[[], Derived], is_scalar: bool = False) -> Any:
    """The elements of an array at an index for each axis, as a new array. whole: derives its shape in other calls."""
    trace, value, frame = x._trace, held(x), seen.shape
    trace.extents.attempt(lambda: trace.extents.claim(whole()))
    if 0 in frame:
        trace.has_looked = True
        return tracer.made(trace, ArrayValue(constant(0, value.dtype).scalar, seen))
    leaf = trace.leaves[leaves_of(value.expr)[0]]
    expr = taken(trace.whole(leaf, value), index, frame)
    return tracer.made(trace, ArrayValue(Scalar(value.dtype, expr), seen), is_scalar)


# --- indices -------------------------------------------------------------------------------------------------------


def _is_chosen(each: Any) -> bool:
    return not (each is None or isinstance(each, slice))


def _is_apart(items: Sequence[Any]) -> bool:
    """Whether arrays of an index have slices between them, so that their axes come first."""
    places = [at for at, each in enumerate(items) if not (each is None or isinstance(each, (slice, EllipsisType)))]
    return places != list(range(places[0], places[-1] + 1))


def _expanded(trace: Trace, x: Any, items: Sequence[Any]) -> list[Any]:
    """An index with a slice, None, an integer or a traced array for every axis. Raises NumPy's errors."""
    found: list[Any] = []
    for each in items:
        if each is None or isinstance(each, (slice, EllipsisType)):
            found.append(each)
        elif isinstance(each, (list, tuple, np.ndarray, tracer.Tracer, bool, np.bool_)):
            found += _arrays(trace, each)
        else:
            found.append(operator.index(each))
    used = sum(not (each is None or each is ...) for each in found)
    if used > x.ndim:
        what = f"array is {x.ndim}-dimensional, but {used} were indexed"
        raise IndexError(f"too many indices for array: {what}")
    at = next((at for at, each in enumerate(found) if each is ...), len(found))
    found[at : at + 1] = [slice(None)] * (x.ndim - used)
    if any(each is ... for each in found):
        raise IndexError("an index can only have a single ellipsis ('...')")
    extents = iter(x._seen.shape)
    return [each if each is None else _as_index(trace, each, next(extents)) for each in found]


class _KnownPlaces(NamedTuple):
    """The places along an axis that a known mask picks."""

    places: Any
    extent: int  # of the mask


def _as_index(trace: Trace, each: Any, extent: int) -> Any:
    """Part of an index for an axis. Raises IndexError for a mask of another size."""
    if not isinstance(each, _KnownPlaces):
        return each
    if each.extent != extent:
        sizes = f"size of axis is {extent} but size of corresponding boolean axis is {each.extent}"
        raise IndexError(f"boolean index did not match indexed array; {sizes}")
    trace.has_looked = True  # at an extent
    return traced(each.places, trace)


def _arrays(trace: Trace, given: Any) -> list[Any]:
    """An array of an index as traced arrays of integers."""
    if not isinstance(given, tracer.Tracer):
        is_array = isinstance(given, np.ndarray)
        given = METHODS["_array"](given) if isinstance(given, (list, tuple)) else np.asarray(given)
        given = given if is_array or given.size else given.astype(np.intp)  # an empty list
    if not isinstance(given, tracer.Tracer):
        if given.dtype.kind == "b":  # what it picks is known
            return [_KnownPlaces(each, extent) for each, extent in zip(np.nonzero(given), given.shape, strict=True)]
        if given.dtype.kind not in "iu":
            raise IndexError(NO_INTEGERS)
        given = traced(given, trace)
    if given.dtype.kind == "b" and not given.ndim:
        given._number("an index")
    if given.dtype.kind not in "iu":
        raise IndexError(NO_INTEGERS)
    if not given.ndim and given._read().is_weak:
        return [operator.index(given)]
    return [given]


def _common(shapes: Sequence[Shape]) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        shown = " ".join(str(each).replace(" ", "") for each in shapes)
        raise IndexError(f"shape mismatch: indexing arrays could not be broadcast together with shapes {shown} ") from (
            None
        )


def _inside(trace: Trace, given: Any, x: Any, axis: int, behind: int) -> Expr:
    """A nonnegative index of an axis. behind: how many axes of the frame follow its own. Raises IndexError."""
    extent, extents = x._seen.shape[axis], trace.extents
    if not isinstance(given, tracer.Tracer):
        if not -extent <= given < extent:
            raise IndexError(f"index {given} is out of bounds for axis {axis} with size {extent}")
        require_extents(x, [axis])
        return const(given % extent, INT64)
    if given.dtype == np.uint64:  # NumPy reads their bits as int64
        given = given.astype(np.int64)
    derived = extents.attempt(lambda: extents.extent(extents.of(x), axis))
    _check(trace, given, extent, axis, derived)
    wide = given[(..., *([None] * behind))]
    expr = trace.adapted(wide._read(), INT64).expr
    count = trace.number(("known", extent), PY_INT, derived).expr
    if given.dtype.kind == "i":
        expr = apply("where", apply("less", expr, ZERO), apply("add", expr, count), expr)
    if trace.device != "cpu":  # where nobody has looked
        last = apply("subtract", count, const(1, INT64))
        expr = apply("maximum", apply("minimum", expr, last), ZERO)
    return expr


def _check(trace: Trace, given: Any, extent: int, axis: int, derived: Derived | None) -> None:
    """Have calls raise NumPy's IndexError for an index that is not one of an array."""
    limits = np.iinfo(given.dtype)
    is_inside = -extent <= limits.min and limits.max < extent
    if derived is not None and (is_inside or given.dtype.itemsize < 4):
        trace.extents.fix(derived)
    if is_inside:
        return
    leaf = operand_of(given)
    if not given._seen.size or (leaf.input, extent, derived) in trace.checked:
        return
    trace.checked.add((leaf.input, extent, derived))
    if leaf.buffer is not None and leaf.buffer.kind == "constant":
        check(axis, leaf.phantom, extent)
        if derived is not None:
            trace.extents.fix(derived)
        return
    for memory in [each for each in trace.written if each.value is not None]:  # what was written before stays
        trace.settle(memory)
    operands = [leaf.input, *leaves_of(trace.number(("known", extent), PY_INT, derived).expr)]
    statement = LibraryCall(CHECK_OF_INDICES, partial(check, axis), operands, (), True, here(), again=lambda _: ())
    trace.statements.append(statement)


def check(axis: int, index: Any, extent: int) -> tuple[Any, ...]:
    """Raise IndexError if an element of an array is no index of an axis."""
    if index.size <= MANY:  # negative integers are large as unsigned ones
        unsigned = index.view(UNSIGNED[index.dtype.itemsize])
        if int(np.maximum.reduce(unsigned, axis=None)) < extent:
            return ()
    low, high = minmax(index) if index.size > MANY else (index.min(), index.max())
    if int(high) >= extent or int(low) < -extent:
        bad = next(each for each in index.flat if not -extent <= each < extent)
        raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {extent}")
    return ()


# --- functions -------------------------------------------------------------------------------------------------------


def take(x: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """np.take."""
    trace = trace_of(x, indices)
    indices = np.empty(np.shape(indices), np.intp) if isinstance(indices, list) and not np.size(indices) else indices
    x, indices = traced(x, trace), traced(indices, trace)
    if axis is None:
        x, axis = reshaped(x, -1), 0
    x = x if x.ndim else reshaped(x, -1)  # as NumPy has it
    axis = one_axis(axis, x.ndim)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if not np.can_cast(indices.dtype, np.intp, "same_kind"):
        raise TypeError(f"Cannot cast array data from {indices.dtype!r} to dtype('int64') according to the rule 'safe'")
    if mode != "raise" and x._seen.shape[axis]:
        require([x], lambda array: array.shape[axis] > 0)
        extent = x.shape[axis]
        indices = indices.astype(np.int64)
        indices = indices % extent if mode == "wrap" else np.clip(indices, 0, extent - 1)
    indices = indices.astype(np.intp) if indices.dtype.kind == "b" else indices
    found = chosen(x, (*([slice(None)] * axis), indices))
    found = found if found._is_scalar else METHODS["copy"](found, "C")
    if out is None:
        return found
    out[...] = found
    return out


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """np.take_along_axis."""
    trace = trace_of(arr, indices)
    x, indices = traced(arr, trace), traced(indices, trace)
    if axis is None:
        if indices.ndim != 1:
            raise ValueError("when axis=None, `indices` must have a single dimension.")
        x, axis = reshaped(x, -1), 0
    axis = one_axis(axis, x.ndim)
    if indices.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if indices.ndim != x.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    beside = [extent if at != axis else 1 for at, extent in enumerate(x._seen.shape)]
    frame = _common([indices._seen.shape, tuple(beside)])
    index = [ZERO if x._seen.shape[at] == 1 else position(at, frame) for at in range(x.ndim)]
    index[axis] = _inside(trace, indices, x, axis, 0)
    places = [np.arange(extent).reshape([-1 if at == own else 1 for own in range(x.ndim)])
              for at, extent in enumerate(beside) if at != axis]  # fmt: skip
    places.insert(axis, indices._seen)
    extents: TraceExtents = trace.extents

    def whole() -> Derived:
        own = extents.of(x)
        sizes = [extents.fixed_number(1) if at == axis else extents.extent(own, at) for at in range(x.ndim)]
        return extents.joined([extents.of(indices), extents.gathered(sizes)])

    return _taken(x, index, joint_phantom(places, frame, x.dtype), whole)


METHODS.update({"_chosen": indexed, "take": take})
FUNCTIONS.update({"take": take, "take_along_axis": take_along_axis})
