"""Bounded tables that drop the least recently used entry."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


class Recent(Generic[Key, Made]):
    """At most `limit` values by key; a new value replaces the least recently used one.

    Threads share a table without a lock, which a fork could leave locked: each step is one operation of a dict or heap.
    """

    __slots__ = ("_clock", "_entries", "_queue", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._clock = count()
        self._entries: dict[Key, list[object]] = {}  # what was made, and when it was used last
        self._queue: list[tuple[object, Key, list[object]]] = []  # a heap of entries by uses, some of which are older

    def get(self, key: Key) -> Made | None:
        """The value of a key, which counts as a use; None if there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        found[1] = next(self._clock)
        return found[0]  # type: ignore[return-value]

    def keep(self, key: Key, made: Made) -> Made:
        """Store the value of a key, unless another thread was faster; return the stored value."""
        return self._put(key, made)[0]  # type: ignore[return-value]

    def __setitem__(self, key: Key, made: Made) -> None:
        """Keep something in place of what is there."""
        self._put(key, made)[0] = made

    def __contains__(self, key: Key) -> bool:
        """Whether something is kept under a key; this is no use."""
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[Made]:
        """All stored values; this does not count as a use."""
        return [made for made, _ in list(self._entries.values())]  # type: ignore[misc]

    def clear(self) -> None:
        """Drop all values."""
        self._entries.clear()
        self._queue.clear()

    def _put(self, key: Key, made: Made) -> list[object]:
        """The entry of a key, which is used now."""
        new = [made, 0]
        found = self._entries.setdefault(key, new)
        found[1] = use = next(self._clock)
        if found is new:
            heappush(self._queue, (use, key, found))
            self._make_room()
        return found

    def _make_room(self) -> None:
        """Drop entries. One that was used after it came to the heap goes back, once for all these uses."""
        while len(self._entries) > self.limit:
            try:
                use, key, found = heappop(self._queue)
            except IndexError:  # a thread was interrupted before it came to the heap, or another one is here
                for key, found in list(self._entries.items()):
                    heappush(self._queue, (found[1], key, found))
                continue
            if self._entries.get(key) is not found:
                continue
            if found[1] != use:
                heappush(self._queue, (found[1], key, found))
            else:
                self._entries.pop(key, None)
