"""Values that were stored since views of them are read, or elements elsewhere: the cheap ones are computed there.

A value is computed at most twice for an element, besides being stored, so that work never multiplies however deep
views of views are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

import numpy as np

from fusec.base.records import replace
from fusec.frontends.python.values import Scalar
from fusec.fusion.schedule.groups import arrays_of
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace import views
from fusec.fusion.trace.elsewhere import frames_of
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace import MAX_DEPTH, MAX_LEAVES, Trace, widened
from fusec.ir.expr import Apply, Expr, const, scalar_type
from fusec.ir.graph import Neighbour, Position, Taken, Within
from fusec.ir.walk import inner_first

MAX_PARTS = 128  # of one value, which is as much as others cost to go through
MOST = 2  # how often a cheap value is computed for an element


def forward(trace: Trace, needed: Collection[t.Buffer]) -> None:
    """Leave out buffers of cheap values that are read at most twice. needed: buffers that are returned."""
    if trace.held:
        _reuse(trace)
        _Forwarding(trace, needed).run()
    _store_moved(trace)


def _reuse(trace: Trace) -> None:
    """Have later statements read values that buffers hold, as far as they took them before they were held."""
    held: dict[Expr, Expr] = {}
    for statement in trace.statements:
        if isinstance(statement, t.LibraryCall):
            continue
        expr, buffer = statement.value.expr, statement.buffer
        if held:
            _change(statement, _with(held, expr))
        if isinstance(statement, t.Define) and buffer in trace.held and isinstance(expr, Apply):
            frames = [each.shape for each in frames_of(trace, expr)]
            if np.broadcast_shapes(*frames) == buffer.phantom.shape:
                held[expr] = trace.leaf(buffer, (), buffer.phantom, 0).expr


def _with(held: Mapping[Expr, Expr], root: Expr) -> Expr:
    """An expression that reads what buffers hold."""
    known: dict[Expr, Expr] = {}
    for expr in inner_first([root], held):
        children = tuple(held.get(child) or known[child] for child in expr.children)
        known[expr] = expr.rebuild(children) if children else expr
    return held.get(root) or known[root]


def _change(statement: t.Computation, expr: Expr) -> None:
    value = statement.value
    if expr is not value.expr:
        statement.value = t.ArrayValue(replace(value.scalar, expr=expr), value.phantom)


class _Forwarding:
    """Goes through the statements from the last on, so that the readers of a value are known when it comes up."""

    def __init__(self, trace: Trace, needed: Collection[t.Buffer]) -> None:
        self.trace, self.needed = trace, set(needed)
        self.places = {statement: at for at, statement in enumerate(trace.statements)}
        self.readers: dict[t.Buffer, dict[t.Statement, None]] = {}
        self.writes: dict[int, list[int]] = {}  # of groups of memory, the places of statements
        for statement, at in self.places.items():
            if isinstance(statement, t.Write):
                self.writes.setdefault(statement.buffer.group, []).append(at)

    def run(self) -> None:
        """Forward what can be."""
        for statement in reversed(self.trace.statements):
            if isinstance(statement, t.LibraryCall):
                self._note(statement)
                continue
            buffer = statement.buffer
            readers = self.readers.get(buffer, {})
            if buffer.kind != "argument" and buffer not in self.needed and not readers:
                continue
            is_held = isinstance(statement, t.Define) and buffer in self.trace.held and bool(readers)
            is_forwarded = is_held and self._forward(statement, [*readers])
            if not is_forwarded or buffer in self.needed:
                self._note(statement)

    def _note(self, statement: t.Statement) -> None:
        for leaf in arrays_of(statement, self.trace.leaves):
            if leaf.buffer is not None:
                self.readers.setdefault(leaf.buffer, {})[statement] = None

    def _forward(self, define: t.Computation, statements: list[t.Statement]) -> bool:
        """Have the readers of a buffer compute what they read; False if it is stored."""
        value, buffer = define.value, define.buffer
        readers = [each for each in statements if not isinstance(each, t.LibraryCall)]
        if len(readers) < len(statements) or t.is_expensive(value.expr) or buffer.group in self.writes:
            return False
        if not self._is_current(define, readers):
            return False
        reads: dict[Expr, t.Leaf] = {}
        for statement in readers:
            reads |= self._reads(statement, buffer)
        whole = [each for each in reads if self._is_at_hand(reads[each])]
        if len(whole) == len(reads):
            return False
        size = sum(map(_count, reads, reads.values()))
        size += buffer.phantom.size if buffer in self.needed and not whole else 0
        if not _is_free(value.expr):
            self._state(reads, buffer, buffer in self.needed and not whole, size > MOST * buffer.phantom.size)
        if size > MOST * buffer.phantom.size and not _is_free(value.expr):
            times = f"an element is read at {size // max(buffer.phantom.size, 1)} positions"
            self.trace.notes.append(f"a value of shape {buffer.phantom.shape} is stored: {times}")
            return False
        known: dict[Expr, Expr] = {}
        for at, leaf in reads.items():
            found = value.expr if self._is_at_hand(leaf) else self._read(value, at, leaf)
            if found is None:
                return False
            known[widened(at, buffer.dtype)] = found
        return self._replace(readers, known)

    def _state(self, reads: dict[Expr, t.Leaf], buffer: t.Buffer, is_stored: bool, is_much: bool) -> None:
        """State that readers take many more elements than there are, or that they do not, as now."""
        extents = self.trace.extents

        def state() -> None:
            own = extents.of_buffer(buffer)
            shapes = [own] * is_stored
            for at, leaf in reads.items():
                view = extents.viewed(own, buffer.phantom.dtype, leaf.steps)
                shapes.append(extents.frame(at.shape) if isinstance(at, Taken) and _is_all(at) else view)
            if {*shapes} != {own}:
                self.trace.require(
                    [own, *shapes], lambda own, *found: (sum(map(prod, found)) > MOST * prod(own)) == is_much
                )

        extents.attempt(state)

    def _replace(self, readers: list[t.Computation], known: dict[Expr, Expr]) -> bool:
        """Have statements compute values; False if these would become too large."""
        more = sum(len(t.parts_of(value)) for value in set(known.values()))
        if any(len(t.parts_of(each.value.expr)) + more > MAX_PARTS for each in readers):
            return False
        found = [(each, t.replaced(each.value.expr, dict(known))) for each in readers]
        if not all(is_small(expr) for _, expr in found):
            return False
        for statement, expr in found:
            _change(statement, expr)
            self._note(statement)
        return True

    def _is_current(self, define: t.Computation, readers: list[t.Computation]) -> bool:
        """Whether nothing that a value is made of is written before it is read."""
        groups = {leaf.buffer.group for leaf in arrays_of(define, self.trace.leaves) if leaf.buffer is not None}
        last, first = max(self.places[each] for each in readers), self.places[define]
        return not any(first < at < last for group in groups for at in self.writes.get(group, ()))

    def _reads(self, statement: t.Computation, buffer: t.Buffer) -> dict[Expr, t.Leaf]:
        """What of a statement's value reads a buffer: inputs, and elements that are taken elsewhere."""
        found: dict[Expr, t.Leaf] = {}
        for part in t.parts_of(statement.value.expr):
            name = part.array if isinstance(part, Taken) else part
            leaf = self.trace.leaves.get(name)  # type: ignore[call-overload]
            if leaf is not None and leaf.buffer is buffer and leaf.is_whole == isinstance(part, Taken):
                found[part] = leaf
        return found

    def _is_at_hand(self, leaf: t.Leaf) -> bool:
        assert leaf.buffer is not None, "what reads a buffer"
        return not leaf.is_whole and leaf.geometry == leaf.buffer.geometry

    def _read(self, value: t.ArrayValue, at: Expr, leaf: t.Leaf) -> Expr | None:
        """A value as it is read: seen through a view, or taken elsewhere."""
        trace = self.trace
        if not any(trace.leaves[name].buffer is not None for name in t.leaves_of(value.expr)):
            return None
        if not isinstance(at, Taken):
            return views.seen(trace, value, leaf.steps)
        if any(isinstance(each, Neighbour) and each.mode == "constant" for each in at.index):
            return None
        index, shape = at.index, at.shape

        def take(each: t.Leaf) -> Expr:
            whole = trace.whole(each, value, leaf.steps)
            return Taken(whole.input, const(0, whole.input.type), index, whole.input.type, shape)

        if leaf.steps and _is_moved(value.expr):
            return None
        return views.taken_of(value, trace, take, at)


def is_small(root: Expr) -> bool:
    """Whether a value is one that traces make: of few inputs, and not deep."""
    return len(t.leaves_of(root)) <= MAX_LEAVES and size_of(root).depth <= MAX_DEPTH


def _count(at: Expr, leaf: t.Leaf) -> int:
    """How many elements are read: of part of a larger array, those that it has."""
    return prod(at.shape) if isinstance(at, Taken) and _is_all(at) else leaf.phantom.size


def _is_all(at: Taken) -> bool:
    return not any(isinstance(each, Within) for each in at.index)


def _is_free(root: Expr) -> bool:
    """Whether a value is nothing but elements that are read."""
    return not any(isinstance(part, Apply) and part.op != "convert" for part in t.parts_of(root))


def _store_moved(trace: Trace) -> None:
    """Have buffers hold what totals read elsewhere than at the position at hand: kernels that reduce walk in order."""
    found: list[t.Statement] = []
    for statement in trace.statements:
        if isinstance(statement, t.Total) and _is_moved(statement.value.expr):
            value = statement.value
            inner = value.expr
            while isinstance(inner, Apply) and inner.op == "convert":
                inner = inner.args[0]
            dtype = scalar_type(inner)
            buffer = trace.temporary(value.phantom, dtype)
            found.append(t.Define(buffer, t.ArrayValue(Scalar(dtype, inner), value.phantom)))
            known: dict[Expr, Expr] = {widened(inner, dtype): trace.leaf(buffer, (), buffer.phantom, 0).expr}
            trace.notes.append(f"an array of shape {value.shape} is stored: totals read elements in order")
            _change(statement, t.replaced(value.expr, known))
        found.append(statement)
    trace.statements[:] = found


def _is_moved(root: Expr) -> bool:
    return not size_of(root).kinds.isdisjoint((Taken, Position))
