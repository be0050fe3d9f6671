"""Which kernels read and write which memory so far, so that a statement finds its place without asking all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any

from fusec.fusion.trace.trace_values import Leaf, Statement, Write, are_apart, buffers_of

_version = itemgetter(0)


class MemoryOrder:
    """The uses of memory by kernels, by groups of buffers that may share it; the last ones can be taken back.

    Writes to one group are in the order of their versions, each in a later kernel than the one before, or in the same
    if they are apart.
    """

    def __init__(self) -> None:
        self._made: dict[int, int] = {}  # the last kernel that defines a buffer of the group
        self._used: dict[int, int] = {}  # the last one that defines or writes some
        self._read: dict[int, int] = {}  # the last one that reads some
        self._writes: dict[int, list[tuple[int, int, Write]]] = {}  # version, kernel
        self._old: list[tuple[dict[int, Any], int, Any]] = []  # what was changed, and what it was

    def note(self, statement: Statement, leaves: Iterable[Leaf], at: int) -> None:
        """A statement runs in a kernel."""
        for buffer in buffers_of(statement):
            self._raise(self._used, buffer.group, at)
            if isinstance(statement, Write):
                self._writes.setdefault(buffer.group, []).append((statement.version, at, statement))
                self._old.append((self._writes, buffer.group, None))
            else:
                self._raise(self._made, buffer.group, at)
        for leaf in leaves:
            if leaf.buffer is not None:
                self._raise(self._read, leaf.buffer.group, at)

    def _raise(self, table: dict[int, int], group: int, at: int) -> None:
        known = table.get(group, -1)
        if at > known:
            self._old.append((table, group, known))
            table[group] = at

    @property
    def mark(self) -> int:
        """The present state."""
        return len(self._old)

    def take_back(self, mark: int) -> None:
        """Forget what was noted after a mark."""
        while len(self._old) > mark:
            table, group, old = self._old.pop()
            if table is self._writes:
                table[group].pop()
            else:
                table[group] = old

    def after(self, leaves: Iterable[Leaf]) -> int:
        """The first kernel in which leaves may be read; whether that kernel itself will do is for it to say."""
        first = 0
        for leaf in leaves:
            if leaf.buffer is not None:
                group = leaf.buffer.group
                first = max(first, self._made.get(group, 0))
                writes = self._writes.get(group, ())
                number = bisect_right(writes, leaf.version, key=_version)
                if number:
                    first = max(first, writes[number - 1][1] + 1)
        return first

    def after_uses(self, statement: Write) -> int:
        """The first kernel in which memory may be written that others read or write before."""
        group = statement.buffer.group
        last = self._used.get(group, -1)
        first = last if self._is_apart(statement, last) else last + 1
        return max(first, self._read.get(group, 0))

    def _is_apart(self, statement: Write, at: int) -> bool:
        """Whether all that a kernel does to the memory of a write is to write other parts of it."""
        group = statement.buffer.group
        writes = list(takewhile(lambda each: each[1] == at, reversed(self._writes.get(group, ()))))
        return bool(writes) and self._made.get(group) != at and all(are_apart(each, statement) for _, _, each in writes)

    def before(self, leaves: Sequence[Leaf]) -> tuple[int, Leaf, Write] | None:
        """The last kernel in which all leaves can be read, which of them sets it, and the write to it; None if any."""
        found: tuple[int, Leaf, Write] | None = None
        for leaf in leaves:
            if leaf.buffer is not None:
                writes = self._writes.get(leaf.buffer.group, ())
                number = bisect_right(writes, leaf.version, key=_version)
                if number < len(writes) and (found is None or writes[number][1] < found[0]):
                    found = writes[number][1], leaf, writes[number][2]
        return found
