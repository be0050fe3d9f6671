"""Statements to kernels: those that can share a walk over their elements do, in an order that keeps the result.

Expensive values that several kernels would compute get a buffer; so does what is read after the memory that it came
from has been written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fusec.base.dtypes import compute_type
from fusec.base.records import replace
from fusec.frontends.python.values import Scalar
from fusec.fusion.elsewhere import frames_of
from fusec.fusion.groups import LIBRARY_CALL, Group, arrays_of, extents_of
from fusec.fusion.trace import Trace, common_phantom, widened
from fusec.fusion.trace_values import (
    ArrayValue,
    Buffer,
    Computation,
    Define,
    Leaf,
    LibraryCall,
    Statement,
    Total,
    Write,
    buffers_of,
    is_expensive_op,
    leaves_of,
    parts_of,
    replaced,
)
from fusec.ir.expr import Apply, Expr, scalar_type

MAX_REPAIRS = 200  # of a schedule, besides copies of what is read: each stores one value more
NEEDS_RESULTS = "it needs the results of the kernel before"
WRITES_AGAIN = "it writes memory that the kernel before writes"
ONE_BY_ONE = 8  # repairs after each of which the kernels are asked again; then all that they share is stored at once


class TooLateError(Exception):
    """A leaf that can no longer be read where it is needed."""

    def __init__(self, leaf: Leaf) -> None:
        super().__init__(leaf)
        self.leaf = leaf


def schedule(trace: Trace, needed: Collection[Buffer], unstaged: Collection[object] = ()) -> list[Group]:
    """The kernels in order. needed: buffers that are returned. unstaged: (shape, axes) whose rows are walked once."""
    for repair in range(MAX_REPAIRS + len(trace.leaves)):
        live = _alive(trace, needed)
        try:
            groups = _Scheduler(trace, unstaged).place(live)
        except TooLateError as problem:
            _keep(trace, problem.leaf)
            continue
        again = _computed_again(trace, groups)
        if not again:
            return groups
        _store(trace, again[:1] if repair < ONE_BY_ONE else again)
    raise AssertionError("every repair stores one more of finitely many values")


def _alive(trace: Trace, needed: Collection[Buffer]) -> list[Statement]:
    """The statements that somebody sees the effect of, in order."""
    wanted, found = set(needed), []
    for statement in reversed(trace.statements):
        may_raise = isinstance(statement, LibraryCall) and statement.may_raise
        if may_raise or any(each.kind == "argument" or each in wanted for each in buffers_of(statement)):
            found.append(statement)
            wanted |= {leaf.buffer for leaf in arrays_of(statement, trace.leaves) if leaf.buffer is not None}
    return found[::-1]


class _Scheduler:
    """Puts one statement after the other into the first kernel that may run it."""

    def __init__(self, trace: Trace, unstaged: Collection[object]) -> None:
        self.trace, self.unstaged = trace, unstaged
        self.groups: list[Group] = []
        self.places: dict[Statement, int] = {}
        self.readers: list[tuple[Leaf, int]] = []
        self.calls = 0  # the first kernel after the calls that may raise, before which no argument is written

    def place(self, statements: list[Statement]) -> list[Group]:
        """All of them. Raises TooLateError."""
        for statement in statements:
            leaves = arrays_of(statement, self.trace.leaves)
            if isinstance(statement, LibraryCall):
                at = self._place_call(statement, leaves)
            else:
                at = self._place(statement, leaves)
                self.groups[at].add(statement, leaves)
            self.places[statement] = at
            self.readers += [(leaf, at) for leaf in leaves if leaf.buffer is not None]
        return self.groups

    def _place_call(self, call: LibraryCall, leaves: list[Leaf]) -> int:
        """A place of its own, after all that was computed before."""
        _, stale = self._before(leaves)
        if stale is not None:
            raise TooLateError(stale)
        self.groups.append(Group((), None, "", call=call))
        if call.may_raise:
            self.calls = len(self.groups)
        return len(self.groups) - 1

    def _place(self, statement: Computation, leaves: list[Leaf]) -> int:
        computed = max((self._after(leaf) for leaf in leaves), default=0)
        low = max(computed, self._after_stores(statement))
        high, stale = self._before(leaves)
        reason = ""
        for at in range(low, min(high + 1, len(self.groups))):
            group = self.groups[at]
            reason = group.why_not(statement, leaves, (group.shape, group.axes) not in self.unstaged)
            if not reason:
                return at
        if stale is not None:
            raise TooLateError(stale)
        if self.groups and low == len(self.groups):  # none could be asked
            reason = NEEDS_RESULTS if computed == low else WRITES_AGAIN
            reason = reason if self.groups[-1].call is None else LIBRARY_CALL
        axes = statement.axes if isinstance(statement, Total) else None
        self.groups.append(Group(extents_of(statement), axes, reason))
        return len(self.groups) - 1

    def _after(self, leaf: Leaf) -> int:
        """The first kernel in which a leaf may be read."""
        if leaf.buffer is None:
            return 0
        first = 0
        for each, at in self.places.items():
            if all(made.group != leaf.buffer.group for made in buffers_of(each)):
                continue
            if not isinstance(each, Write):
                first = max(first, at)  # whether that kernel itself will do is for it to say
            elif each.version <= leaf.version:
                first = max(first, at + 1)
        return first

    def _after_stores(self, statement: Statement) -> int:
        """The first kernel in which memory may be written that others read or write before."""
        if not isinstance(statement, Write):
            return 0
        group, first = statement.buffer.group, 0
        if statement.buffer.kind == "argument":
            first = self.calls
        for each, at in self.places.items():
            if any(made.group == group for made in buffers_of(each)):
                first = max(first, at + 1)
        for leaf, at in self.readers:
            assert leaf.buffer is not None, "numbers are not noted"
            if leaf.buffer.group == group and leaf.version < statement.version:
                first = max(first, at)
        return first

    def _before(self, leaves: list[Leaf]) -> tuple[int, Leaf | None]:
        """The last kernel in which all leaves can be read, and which of them sets it."""
        last, stale = len(self.groups) + 1, None
        for leaf in leaves:
            for each, at in self.places.items():
                is_over = isinstance(each, Write) and leaf.buffer is not None and each.buffer.group == leaf.buffer.group
                if is_over and isinstance(each, Write) and each.version > leaf.version and at < last:
                    last, stale = at, leaf
        return last, stale


# --- repairs -------------------------------------------------------------------------------------------------------


def _keep(trace: Trace, leaf: Leaf) -> None:
    """Copy what a leaf reads before its memory is written."""
    assert leaf.buffer is not None, "numbers stay"
    group = leaf.buffer.group
    stores = (each for each in trace.statements if isinstance(each, Write) and each.buffer.group == group)
    first = next(each for each in stores if each.version > leaf.version)
    at = trace.statements.index(first)
    value = trace.leaf(leaf.buffer, leaf.steps, leaf.phantom, leaf.version)
    trace.notes.append(f"an array of shape {leaf.phantom.shape} is copied, since it is read after it has changed")
    buffer = trace.temporary(leaf.phantom, leaf.buffer.dtype)
    copy = trace.leaf(buffer, (), buffer.phantom)
    known: dict[Expr, Expr] = {leaf.input: leaves_of(copy.expr)[0]}
    for statement in trace.statements[at + 1 :]:
        _change(statement, dict(known))
    if first.value.phantom.shape != leaf.phantom.shape:
        _change(first, dict(known))
    trace.statements.insert(at, Define(buffer, value))


def _change(statement: Statement, known: dict[Expr, Expr]) -> None:
    if isinstance(statement, LibraryCall):
        statement.operands = [known.get(each, each) for each in statement.operands]  # type: ignore[misc]
        return
    value = statement.value
    found = replaced(value.expr, known)
    if found is not value.expr:
        statement.value = ArrayValue(replace(value.scalar, expr=found), value.phantom)


def _computed_again(trace: Trace, groups: list[Group]) -> list[Expr]:
    """The expensive values that several kernels compute, those within larger ones apart."""
    owners: dict[Expr, set[int]] = {}
    for at, group in enumerate(groups):
        for statement in group.statements:
            for part in parts_of(statement.value.expr):
                owners.setdefault(part, set()).add(at)
    several = [part for part, where in owners.items() if len(where) > 1]
    expensive = _expensive(owners)
    found = [part for part in several if part in expensive and _reads_memory(trace, part)]
    inside: set[Expr] = set()
    pending = [child for part in found for child in part.children]
    while pending:
        part = pending.pop()
        if part not in inside:
            inside.add(part)
            pending += part.children
    return [part for part in found if part not in inside]


def _expensive(parts: Iterable[Expr]) -> set[Expr]:
    """Those of some values with all their parts that have an expensive operation in them."""
    above: dict[Expr, list[Expr]] = {}
    for part in parts:
        for child in part.children:
            above.setdefault(child, []).append(part)
    pending: list[Expr] = [part for part in parts if isinstance(part, Apply) and is_expensive_op(part.op)]
    found: set[Expr] = set()
    while pending:
        part = pending.pop()
        if part not in found:
            found.add(part)
            pending.extend(above.get(part, ()))
    return found


def _reads_memory(trace: Trace, part: Expr) -> bool:
    return isinstance(part, Apply) and any(trace.leaves[each].buffer is not None for each in leaves_of(part))


def _store(trace: Trace, parts: Sequence[Expr]) -> None:
    """Have buffers hold parts of several values, of which none is in another."""
    known: dict[Expr, Expr] = {}
    first: dict[Statement, list[Define]] = {}
    users = _users(trace, parts)
    for part in parts:
        dtype = scalar_type(part)
        shape = common_phantom(frames_of(trace, part), dtype)
        buffer = trace.temporary(shape, dtype)
        held = trace.leaf(buffer, (), buffer.phantom)
        known[part] = widened(leaves_of(held.expr)[0], compute_type(dtype))
        first.setdefault(users[part], []).append(Define(buffer, ArrayValue(Scalar(dtype, part), shape)))
        trace.notes.append(
            f"a value of shape {shape.shape} is stored: several kernels need it, and it is costly to compute"
        )
    for each in trace.statements:
        _change(each, dict(known))
    trace.statements[:] = [new for each in trace.statements for new in (*first.get(each, ()), each)]


def _users(trace: Trace, parts: Sequence[Expr]) -> dict[Expr, Statement]:
    """The first statement that computes each of some values."""
    wanted, found = set(parts), dict[Expr, Statement]()
    for statement in trace.statements:
        for part in [] if isinstance(statement, LibraryCall) else parts_of(statement.value.expr):
            if part in wanted:
                found.setdefault(part, statement)
    return found
