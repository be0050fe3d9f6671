"""The contents of arrays that the function makes of constants alone: Python may ask for their values."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from fusec.base.ops import TABLE
from fusec.frontends.python.types import storage
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.tables import METHODS
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import Array, ArrayValue, Buffer, Define, Leaf, Write, buffers_of
from fusec.fusion.trace.tracer import Tracer
from fusec.ir.arithmetic import evaluate
from fusec.ir.expr import Apply, Const, Expr, scalar_type
from fusec.ir.graph import Input
from fusec.ir.walk import inner_first


class UnknownError(Exception):
    """A value depends on more than constants."""


def known(x: Tracer) -> Array | None:
    """The contents of an array; None if they depend on arguments, or on functions that kernels compute."""
    try:
        return _value(x._trace, x._read())
    except UnknownError:
        return None


class _Varying:
    """The buffers of a trace that depend on more than constants, each with its first such version.

    A trace asks again and again while it grows. So what is found stays, and no chain of buffers is followed.
    """

    def __init__(self) -> None:
        self._versions: dict[Buffer, int] = {}
        self._seen = 0  # statements of the trace

    def has(self, trace: Trace, buffer: Buffer, version: int) -> bool:
        """Whether a version of a buffer is one."""
        for each in trace.statements[self._seen :]:
            if not isinstance(each, (Define, Write)):
                self._versions.update(dict.fromkeys(buffers_of(each), 0))
            elif any(self._varies(trace.leaves[name]) for name in size_of(each.value.expr).leaves):
                self._versions.setdefault(each.buffer, each.version if isinstance(each, Write) else 0)
        self._seen = len(trace.statements)
        return buffer in self._versions and version >= self._versions[buffer]

    def _varies(self, leaf: Leaf) -> bool:
        if leaf.buffer is None:
            return leaf.number is None or leaf.number[0] != "known"
        if leaf.buffer.kind == "argument":
            return leaf.buffer.array is None
        return leaf.buffer in self._versions and leaf.version >= self._versions[leaf.buffer]


_varying: WeakKeyDictionary[Trace, _Varying] = WeakKeyDictionary()


def _contents(trace: Trace, buffer: Buffer, version: int) -> Array:
    """What a buffer holds after so many writes. Raises UnknownError."""
    if _varying.setdefault(trace, _Varying()).has(trace, buffer, version):
        raise UnknownError
    if buffer.array is not None:
        trace.has_looked |= buffer.derived is not None
        return buffer.array
    found: Array | None = None
    for each in trace.statements:
        if isinstance(each, (Define, Write)) and each.buffer is buffer:
            if isinstance(each, Define):
                found = np.empty_like(buffer.phantom)
                found[...] = _value(trace, each.value)
            elif found is not None and each.version <= version:
                part = found
                for step in each.steps:
                    part = step(part)
                part[...] = _value(trace, each.value)
    if found is None:
        raise UnknownError
    return found


def _value(trace: Trace, value: ArrayValue) -> Array:
    """What a value is. Raises UnknownError."""
    known: dict[Expr, Array] = {}
    for expr in inner_first([value.expr]):
        match expr:
            case Const():
                known[expr] = np.asarray(expr.value)
            case Input():
                known[expr] = _leaf(trace, trace.leaves[expr])
            case Apply() if TABLE[expr.op].primitive:
                known[expr] = evaluate(expr.op, [known[each] for each in expr.args], scalar_type(expr))
            case _:
                raise UnknownError
    found = np.empty_like(value.phantom, storage(value.kind).numpy)
    found[...] = known[value.expr]
    return found


def _leaf(trace: Trace, leaf: Leaf) -> Array:
    if leaf.buffer is None:
        if leaf.number is None or leaf.number[0] != "known":
            raise UnknownError
        return np.asarray(leaf.number[1], leaf.input.type.numpy)
    found = _contents(trace, leaf.buffer, leaf.version)
    for step in leaf.steps:
        found = step(found)
    return found


def ask(x: Tracer, name: str, *args: Any, **options: Any) -> Any:
    """What a method of NumPy's gives for known contents; NotImplemented if they are not known."""
    found = known(x)
    if found is None:
        return NotImplemented
    x._trace.has_looked = True
    value: Any = found[()] if x._is_scalar else found
    value = value.item() if x._is_scalar and x._read().is_weak else value
    return getattr(value, name)(*args, **options) if hasattr(value, name) else NotImplemented


METHODS["_ask"] = ask
