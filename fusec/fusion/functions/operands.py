"""Traced arrays as operands of library functions: views of memory as they are, and numbers."""

from __future__ import annotations

from typing import Any

from fusec.fusion.functions.parts import ComplexPart
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import ArrayValue, Leaf, leaves_of
from fusec.ir.expr import Apply, Expr
from fusec.ir.graph import Input


def operand_of(given: Any) -> Any:
    """The leaf that a call reads for an array or a number that is passed; Python's number for one that is known."""
    trace, memory = given._trace, given._memory
    if isinstance(given, ComplexPart):
        return _stored(trace, given._read())
    if memory.value is not None and memory.value.is_weak and not given._steps:
        return _number(trace, given, memory.value)
    if memory.value is not None and given._steps and given._seen.size >= memory.base.size:
        found = plain_leaf(trace, memory.value)
        if found is None or found.phantom.shape != memory.base.shape:
            trace.settle(memory)  # a view of all of it, such as its transpose
    if memory.value is None:
        return _leaf(trace, trace.leaf(memory.buffer, given._steps, given._seen))
    value = given._read()
    found = plain_leaf(trace, value)
    if found is not None and found.phantom.shape == given._seen.shape:
        return found
    if given._steps:
        return _stored(trace, value)
    return _leaf(trace, trace.leaf(trace.settle(memory), (), given._seen))


def _number(trace: Trace, given: Any, value: ArrayValue) -> Any:
    """A number of Python: where calls find it, or the number itself."""
    if value.scalar.literal is not None:
        return value.scalar.literal
    found = trace.leaves.get(value.expr) if isinstance(value.expr, Input) else None
    return given._number("an argument of a library's function") if found is None else found


def _stored(trace: Trace, value: ArrayValue) -> Leaf:
    return _leaf(trace, trace.settled(value))


def _leaf(trace: Trace, value: ArrayValue) -> Leaf:
    return trace.leaves[leaves_of(value.expr)[0]]


def plain_leaf(trace: Trace, value: ArrayValue) -> Leaf | None:
    """The leaf that a value is, without any computation; None for other values."""
    expr: Expr = value.expr
    if isinstance(expr, Apply) and expr.op == "convert":
        (expr,) = expr.args
    found = trace.leaves.get(expr) if isinstance(expr, Input) else None
    is_same = found is not None and found.buffer is not None and found.buffer.dtype == value.dtype
    return found if is_same else None
