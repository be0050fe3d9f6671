"""Arrays one after another, read where a kernel needs them, and arrays as what some memory holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from operator import add, mul
from typing import Any

from fusec.base.dtypes import INT64
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Scalar
from fusec.fusion.trace import tracer
from fusec.fusion.trace.derived import Derived
from fusec.fusion.trace.elsewhere import composes, position, taken
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import ArrayValue, laid_out, leaves_of, phantom
from fusec.ir.expr import Expr, apply, const
from fusec.ir.graph import Neighbour, Within

SMALL = 64  # a number that is part of the code, which divides by it faster
MOST = 8  # arrays of which a kernel chooses by position; more are stored in their places


def pieces(parts: Sequence[Any], axis: int, new: ArrayValue, is_fast: Callable[[Any], bool]) -> Any:
    """A new array that joins arrays of its dtype along an axis: kernels choose the array that has an element.

    is_fast: whether a choice is faster than a copy for a shape, as it is for this one.
    """
    trace, shape = parts[0]._trace, new.shape
    place = position(axis, shape)
    found: Expr | None = None
    lengths = [part._seen.shape[axis] for part in parts]
    derived: Sequence[Derived | None] = joined_along(trace, parts, axis, is_fast) or [None] * len(parts)
    ends = list(zip(accumulate(lengths), derived, strict=True))
    for part, start, (end, of_end) in reversed(list(zip(parts, [(0, None), *ends], ends, strict=False))):
        expr = _piece(part, axis, start, shape)
        if found is not None:
            test = apply("less", place, trace.number(("known", end), PY_INT, of_end).expr)
            expr = apply("where", test, expr, found)
        found = expr
    assert found is not None, "some arrays"
    return tracer.made(trace, ArrayValue(Scalar(new.kind, found), new.phantom))


def joined_along(trace: Trace, parts: Sequence[Any], axis: int, is_fast: Callable[[Any], bool]) -> list[Derived] | None:
    """Where each array ends in the joined one, for calls of other extents. Notes the shape of the joined array."""
    extents = trace.extents

    def ends() -> list[Derived]:
        shapes = [extents.of(part) for part in parts]
        lengths = [extents.extent(shape, axis) for shape in shapes]
        found = list(accumulate(lengths, lambda one, other: extents.computed(add, (one, other))))
        axes = range(len(shapes[0].now))
        first = [extents.extent(shapes[0], at) for at in axes]
        for shape in shapes[1:]:
            for at in axes:
                if at != axis:
                    extents.require_same(first[at], extents.extent(shape, at))
        whole = extents.gathered([found[-1] if at == axis else first[at] for at in axes])
        extents.claim(whole)
        trace.require([whole], is_fast)
        return found

    return extents.attempt(ends)


def _piece(part: Any, axis: int, start: tuple[int, Derived | None], shape: tuple[int, ...]) -> Expr:
    """An array that begins somewhere along an axis of a larger one."""
    trace, value = part._trace, held(part)
    whole = trace.whole(trace.leaves[leaves_of(value.expr)[0]], value)
    index = [position(at, shape) for at in range(len(shape))]
    known, derived = start
    if known:
        index[axis] = apply("subtract", index[axis], trace.number(("known", known), PY_INT, derived).expr)
    index[axis] = Within(index[axis], INT64)
    return taken(whole, index, shape)


def repeated(x: Any, each: int, axis: int) -> Any:
    """An array whose elements along an axis come so many times, one beside the other."""
    trace, value = x._trace, held(x)
    trace.extents.claim_changed(x, mul, {axis: each})
    shape = tuple(extent * (each if at == axis else 1) for at, extent in enumerate(x._seen.shape))
    index = [position(at, shape) for at in range(len(shape))]
    count = const(each, INT64) if each <= SMALL else trace.number(("known", each), PY_INT).expr
    index[axis] = apply("floor_divide", index[axis], count)
    expr = taken(trace.whole(trace.leaves[leaves_of(value.expr)[0]], value), index, shape)
    return tracer.made(trace, ArrayValue(Scalar(value.dtype, expr), phantom(shape, value.dtype.numpy)))


def held(x: Any, moves: Mapping[int, Neighbour] | None = None) -> ArrayValue:
    """The contents of an array as what some memory holds, or as elements that are taken elsewhere and move on."""
    trace: Trace = x._trace
    memory, steps, seen = x._memory, x._steps, x._seen
    if type(x) is not tracer.Tracer or x._is_scalar:
        value = x._read()
        seen = laid_out(value.phantom, value.dtype.numpy)
        memory, steps = trace.storage(seen, None, value), ()
    value = trace.read(memory, steps, seen)
    if trace.is_leaf(value) or (moves is not None and composes(value, moves)):
        return value
    if memory.value is None or steps:  # a view of elements that are taken elsewhere
        found = trace.settled(value)
        trace.held |= {trace.leaves[name].buffer for name in leaves_of(found.expr)}  # type: ignore[misc]
        return found
    trace.hold(memory)
    return trace.read(memory, (), seen)
