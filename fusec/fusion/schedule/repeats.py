"""Statements that make what earlier ones have made: totals, calls of libraries such as products, and their operands."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

from fusec.fusion.functions.contractions import Contraction
from fusec.fusion.functions.libraries import Place
from fusec.fusion.schedule.groups import arrays_of
from fusec.fusion.schedule.repairs import change, read_of
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.trace import Trace
from fusec.ir.expr import Expr
from fusec.ir.graph import Input

CONSTANTS = (Place, int, float, complex, bool, str, type(None))  # by which calls are compared


def leave_out_repeats(trace: Trace, needed: Collection[t.Buffer]) -> None:
    """Have later statements read what was made first. needed: buffers that are returned, each with its own memory."""
    repeats, first = _Repeats(trace, needed), dict[object, t.Statement]()
    found: list[t.Statement] = []
    for statement in trace.statements:
        repeats.update(statement)
        key = repeats.key_of(statement)
        before = statement if key is None else first.setdefault(key, statement)
        if before is statement:
            found.append(statement)
        elif not repeats.replaces(before, statement):
            found += repeats.copies(before, statement)
    trace.statements[:] = found


class _Repeats:
    """What is read instead of what repeated statements make."""

    def __init__(self, trace: Trace, needed: Collection[t.Buffer]) -> None:
        self.trace, self.needed = trace, needed
        self.buffers: dict[t.Buffer, t.Buffer] = {}
        self.counts: dict[object, Input] = {}
        self.stored = _operands(trace) | _made_of_totals(trace)

    def update(self, statement: t.Statement) -> None:
        """Have a statement read what was made first."""
        leaves = arrays_of(statement, self.trace.leaves) if self.buffers else []
        known: dict[Expr, Expr] = {leaf.input: self._instead(leaf) for leaf in leaves}
        if any(old is not new for old, new in known.items()):
            change(statement, known)

    def _instead(self, leaf: t.Leaf) -> Input:
        """What is read in place of a leaf: the same view of another buffer, or the same number of elements."""
        if leaf.buffer is not None:
            buffer = self.buffers.get(leaf.buffer)
            return leaf.input if buffer is None else read_of(self.trace, buffer, leaf.steps, leaf.is_whole)
        if leaf.input not in self.trace.counts:
            return leaf.input
        leaves, axes = self.trace.counts[leaf.input]
        leaves = tuple(self.trace.leaves[self._instead(each)] for each in leaves)
        self.trace.counts[leaf.input] = leaves, axes
        return self.counts.setdefault((leaf.number, leaf.input.type, leaves, axes), leaf.input)

    def key_of(self, statement: t.Statement) -> object:
        """What repeats of a statement have in common; None if it is none that may be left out."""
        match statement:
            case t.Total(buffer, op, value, axes):
                return op, value.expr, value.shape, axes, _layout(buffer)
            case t.Define(buffer, value) if buffer in self.stored:
                return value.expr, _layout(buffer)
            case t.LibraryCall(function=partial() as function, operands=operands, buffers=buffers, kernels=0):
                called = _constant((function.func, function.args))
                return called and (called, tuple(operands), tuple(map(_layout, buffers)))
        return None

    def replaces(self, before: t.Statement, statement: t.Statement) -> bool:
        """Whether what an earlier statement made is read instead of what another makes."""
        pairs = list(zip(t.buffers_of(statement), t.buffers_of(before), strict=True))
        versions = self.trace.versions
        if any(one in self.needed or {one.group, other.group} & versions.keys() for one, other in pairs):
            return False
        self.buffers |= pairs
        return True

    def copies(self, before: t.Statement, statement: t.Statement) -> list[t.Statement]:
        """What makes copies of what an earlier call of a library made; other statements do their work again."""
        if not isinstance(statement, t.LibraryCall):
            return [statement]
        pairs = zip(t.buffers_of(before), statement.buffers, strict=True)
        return [t.Define(new, self.trace.leaf(old, (), old.phantom, 0)) for old, new in pairs]


def _operands(trace: Trace) -> set[t.Buffer]:
    """What calls of libraries are given, and what that is made of."""
    found: set[t.Buffer] = set()
    for statement in reversed(trace.statements):
        if isinstance(statement, t.LibraryCall) or statement.buffer in found:
            found |= {leaf.buffer for leaf in arrays_of(statement, trace.leaves) if leaf.buffer is not None}
    return found


def _made_of_totals(trace: Trace) -> set[t.Buffer]:
    """Totals, and what is made of these alone."""
    found: set[t.Buffer] = set()
    for statement in trace.statements:
        buffers = {leaf.buffer for leaf in arrays_of(statement, trace.leaves)} - {None}
        if isinstance(statement, t.Total) or (isinstance(statement, t.Define) and buffers and buffers <= found):
            found.add(statement.buffer)
    return found


def _layout(buffer: t.Buffer) -> tuple[object, ...]:
    """Of what kind an array is."""
    return buffer.dtype, buffer.phantom.shape, buffer.phantom.strides


def _constant(given: Any) -> object:
    """What is equal for equal functions and arguments; None for those that cannot be compared."""
    if callable(given):
        return given if isinstance(given, Contraction) else id(given)
    if type(given) in (tuple, list, dict):
        parts = [_constant(each) for each in (given.items() if isinstance(given, dict) else given)]
        return None if None in parts else (type(given), *parts)
    return (type(given), repr(given)) if type(given) in CONSTANTS else None
