"""Statements to kernels: those that can share a walk over their elements do, in an order that keeps the result.

Expensive values that several kernels would compute get a buffer, and so do quotients that larger walks repeat, and what
is read after the memory that it came from has been written. Such repairs go on from the first statement that they
change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection

from fusec.fusion.schedule.groups import LIBRARY_CALL, Group, alive, arrays_of, extents_of, squeezed
from fusec.fusion.schedule.memory_order import MemoryOrder
from fusec.fusion.schedule.repairs import (
    OFTEN,
    REPEATED,
    SHARED,
    computed_again,
    copy_before,
    divided_again,
    outermost,
    shared,
    store,
)
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import Buffer, Computation, Leaf, LibraryCall, Statement, Total, Write
from fusec.ir.graph import Input, Taken
from fusec.ir.walk import inner_first

NEEDS_RESULTS = "it needs the results of the kernel before"
WRITES_AGAIN = "it writes memory that the kernel before writes"
ONE_BY_ONE = 8  # values that are stored one after another; of more, all that kernels share are stored at once
FEW = 3  # repairs, after which quotients that are computed twice are stored too: so few more repairs follow
MAX_ASKED = 64  # kernels, the last ones, that a statement may join


class TooLateError(Exception):
    """A leaf that can no longer be read where it is needed, since a statement has written its memory."""

    def __init__(self, leaf: Leaf, first: Write) -> None:
        super().__init__(leaf)
        self.leaf, self.first = leaf, first


def schedule(trace: Trace, needed: Collection[Buffer], unstaged: Collection[object] = ()) -> list[Group]:
    """The kernels in order. needed: buffers that are returned. unstaged: (shape, axes) whose rows are walked once."""
    scheduler, repairs = _Scheduler(trace, unstaged), 0
    scheduler.go_on(alive(trace, needed))
    while True:
        if again := computed_again(trace, scheduler.groups):
            repairs += 1
            every = shared(trace, scheduler.groups)
            changed = store(trace, every if max(repairs, len(every)) > ONE_BY_ONE else again[:1], SHARED)
        elif every := divided_again(trace, scheduler.groups, OFTEN if repairs < FEW else 2):
            repairs += 1
            changed = store(trace, every if max(repairs, len(every)) > ONE_BY_ONE else outermost(every), REPEATED)
        else:
            return scheduler.groups
        live = alive(trace, needed)
        pairs = enumerate(zip(scheduler.placed, live, strict=False))
        same = next((at for at, (old, new) in pairs if old is not new or new in changed), len(live))
        scheduler.take_back(same)
        scheduler.go_on(live)


class _Scheduler:
    """Puts one statement after the other into the first kernel that may run it."""

    def __init__(self, trace: Trace, unstaged: Collection[object]) -> None:
        self.trace, self.unstaged = trace, unstaged
        self.groups: list[Group] = []
        self.placed: list[Statement] = []
        self._at: list[int] = []  # the kernel of each
        self._marks: list[tuple[int, int, int]] = []  # the memory, the kernels and the calls before each
        self._memory = MemoryOrder()
        self._like: dict[object, list[int]] = {}  # kernels by what they can take
        self._open: dict[object, list[int]] = {}  # the same of those that can take more arrays
        self._calls: list[int] = [0]  # the first kernel after each call that may raise: no argument is written before

    def go_on(self, statements: list[Statement]) -> None:
        """Place the statements that are not placed; what is read too late is copied, and joins them."""
        while len(self.placed) < len(statements):
            statement = statements[len(self.placed)]
            leaves = arrays_of(statement, self.trace.leaves)
            mark = self._memory.mark, len(self.groups), len(self._calls)
            try:
                at = (
                    self._called(statement, leaves)
                    if isinstance(statement, LibraryCall)
                    else self._computed(statement, leaves)
                )
            except TooLateError as late:
                number = self.placed.index(late.first)
                statements.insert(number, copy_before(self.trace, late.first, late.leaf))
                self.take_back(number)
                continue
            self._marks.append(mark)
            self._memory.note(statement, leaves, at)
            self.placed.append(statement)
            self._at.append(at)

    def take_back(self, count: int) -> None:
        """Keep the first statements where they are, and no others."""
        if count >= len(self.placed):
            return
        gone = Counter(self._at[count:])
        mark, kernels, calls = self._marks[count]
        self._memory.take_back(mark)
        del self.placed[count:], self._at[count:], self._marks[count:]
        del self.groups[kernels:], self._calls[calls:]
        for at, number in gone.items():
            if at < kernels:
                old = self.groups[at]
                self.groups[at] = made = Group(old.shape, old.axes, old.reason)
                for statement in old.statements[:-number]:
                    made.add(statement, arrays_of(statement, self.trace.leaves))
        for key, like in self._like.items():
            del like[bisect_left(like, kernels) :]
            self._open[key] = [at for at in like if not self.groups[at].is_full]

    def _called(self, call: LibraryCall, leaves: list[Leaf]) -> int:
        """A place of its own, after all that was computed before."""
        over = self._memory.before(leaves)
        if over is not None:
            raise TooLateError(*over[1:])
        self.groups.append(Group((), None, "", call=call))
        if call.may_raise:
            self._calls.append(len(self.groups))
        return len(self.groups) - 1

    def _computed(self, statement: Computation, leaves: list[Leaf]) -> int:
        """The first kernel that takes a computation."""
        computed = low = self._memory.after(leaves)
        if self._calls[-1] and self._gathers(statement):  # the call may be the check of its indices
            low = max(low, self._calls[-1])
        if isinstance(statement, Write):
            low = max(low, self._memory.after_uses(statement))
            if statement.buffer.kind == "argument":
                low = max(low, self._calls[-1])
        over = self._memory.before(leaves)
        end = len(self.groups) if over is None else min(over[0] + 1, len(self.groups))
        reason = ""
        for at in self._candidates(statement, leaves, low, end):
            reason = self._joined(at, statement, leaves)
            if not reason:
                return at
        if over is not None:
            raise TooLateError(*over[1:])
        if low < end:
            last = self.groups[-1]
            reason = last.why_not(statement, leaves, (last.shape, last.axes) not in self.unstaged)
        elif self.groups and low == len(self.groups):  # none could be asked
            reason = NEEDS_RESULTS if computed == low else WRITES_AGAIN
            reason = reason if self.groups[-1].call is None else LIBRARY_CALL
        return self._new(statement, leaves, reason)

    def _gathers(self, statement: Computation) -> bool:
        """Whether a statement reads elements at indices that arrays hold."""
        index = [each for node in inner_first([statement.value.expr]) if isinstance(node, Taken) for each in node.index]
        inputs = (each for each in inner_first(index) if isinstance(each, Input))
        return any(self.trace.leaves[each].buffer is not None for each in inputs)

    def _joined(self, at: int, statement: Computation, leaves: list[Leaf]) -> str:
        """Add a statement to a kernel; if that cannot be, why."""
        group = self.groups[at]
        reason = group.why_not(statement, leaves, (group.shape, group.axes) not in self.unstaged)
        if not reason:
            was_full = group.is_full
            group.add(statement, leaves)
            for key in group.takes if group.is_full and not was_full else ():
                self._open[key].remove(at)
        return reason

    def _new(self, statement: Computation, leaves: list[Leaf], reason: str) -> int:
        """A new kernel with a statement."""
        axes = statement.axes if isinstance(statement, Total) else None
        at, group = len(self.groups), Group(extents_of(statement), axes, reason)
        self.groups.append(group)
        group.add(statement, leaves)
        for key in group.takes:
            self._like.setdefault(key, []).append(at)
            self._open.setdefault(key, []).append(at)
        return at

    def _candidates(self, statement: Computation, leaves: list[Leaf], low: int, end: int) -> list[int]:
        """The kernels within some bounds that a statement may be like, in order; the last of very many."""
        shape = extents_of(statement)
        keys: tuple[object, ...] = (shape, ("totals", squeezed(shape)))
        if isinstance(statement, Total):
            keys = ((shape, statement.axes),)
        sorts = [like for key in keys if (like := self._open.get(key))]
        stops = [bisect_left(like, end) for like in sorts]
        parts = [
            like[max(bisect_left(like, low), stop - MAX_ASKED) : stop] for like, stop in zip(sorts, stops, strict=True)
        ]
        found = parts[0] if len(parts) == 1 else sorted({at for part in parts for at in part})[-MAX_ASKED:]
        first = self.groups[low] if low < end else None
        if first is not None and first.is_full and first.takes & {*keys} and first.repeats(statement, leaves):
            return [low, *found]
        return found
