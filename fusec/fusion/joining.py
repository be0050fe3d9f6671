"""Arrays one after another, read where a kernel needs them, and arrays as what some memory holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.base.dtypes import INT64
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Scalar
from fusec.fusion import tracer
from fusec.fusion.elsewhere import composes, position, taken
from fusec.fusion.trace import Trace
from fusec.fusion.trace_values import ArrayValue, laid_out, leaves_of
from fusec.ir.expr import Expr, apply
from fusec.ir.graph import Neighbour, Within

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
        return trace.settled(value)
    trace.hold(memory)
    return trace.read(memory, (), seen)
