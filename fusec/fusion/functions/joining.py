"""Arrays one after another, read where a kernel needs them, and arrays as what some memory holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.base.dtypes import INT64
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Scalar
from fusec.fusion.trace import tracer
from fusec.fusion.trace.elsewhere import composes, position, taken
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import ArrayValue, laid_out, leaves_of, phantom
from fusec.ir.expr import Expr, apply, const
from fusec.ir.graph import Neighbour, Within

SMALL = 64  # a number that is part of the code, which divides by it faster
MOST = 8  # arrays of which a kernel chooses by position; more are stored in their places


def pieces(parts: Sequence[Any], axis: int, new: ArrayValue) -> Any:
    """A new array of arrays of its dtype, one after another along an axis: an element is that of one of them."""
    trace, shape = parts[0]._trace, new.shape
    place = position(axis, shape)
    found: Expr | None = None
    end = shape[axis]
    for part in reversed(parts):
        start = end - part._seen.shape[axis]
        expr = _piece(part, axis, start, shape)
        if found is not None:
            test = apply("less", place, trace.number(("known", end), PY_INT).expr)
            expr = apply("where", test, expr, found)
        found, end = expr, start
    assert found is not None, "some arrays"
    return tracer.made(trace, ArrayValue(Scalar(new.kind, found), new.phantom))


def _piece(part: Any, axis: int, start: int, shape: tuple[int, ...]) -> Expr:
    """An array that begins somewhere along an axis of a larger one."""
    trace, value = part._trace, held(part)
    whole = trace.whole(trace.leaves[leaves_of(value.expr)[0]], value.shape)
    index = [position(at, shape) for at in range(len(shape))]
    if start:
        index[axis] = apply("subtract", index[axis], trace.number(("known", start), PY_INT).expr)
    index[axis] = Within(index[axis], INT64)
    return taken(whole, index, shape)


def repeated(x: Any, each: int, axis: int) -> Any:
    """An array whose elements along an axis come so many times, one beside the other."""
    trace, value = x._trace, held(x)
    shape = tuple(extent * (each if at == axis else 1) for at, extent in enumerate(x._seen.shape))
    index = [position(at, shape) for at in range(len(shape))]
    count = const(each, INT64) if each <= SMALL else trace.number(("known", each), PY_INT).expr
    index[axis] = apply("floor_divide", index[axis], count)
    expr = taken(trace.whole(trace.leaves[leaves_of(value.expr)[0]], value.shape), index, shape)
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
