"""Bounded tables that drop the least recently used entry."""

from __future__ import annotations

from itertools import count
from typing import Generic, TypeVar

Key = TypeVar("Key")
Made = TypeVar("Made")


class Recent(Generic[Key, Made]):
    """At most `limit` values by key; a new value replaces the least recently used one.

    Threads share a table without a lock, which a fork could leave locked: each step is one operation of a dict.
    """

    __slots__ = ("_clock", "_entries", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._clock = count()
        self._entries: dict[Key, list[object]] = {}  # what was made, and when it was used last

    def get(self, key: Key) -> Made | None:
        """The value of a key, which counts as a use; None if there is none."""
        found = self._entries.get(key)
        if found is None:
            return None
        found[1] = next(self._clock)
        return found[0]  # type: ignore[return-value]

    def keep(self, key: Key, made: Made) -> Made:
        """Store the value of a key, unless another thread was faster; return the stored value."""
        found = self._entries.setdefault(key, [made, 0])
        found[1] = next(self._clock)
        self._make_room()
        return found[0]  # type: ignore[return-value]

    def __setitem__(self, key: Key, made: Made) -> None:
        """Keep something in place of what is there."""
        self._entries[key] = [made, next(self._clock)]
        self._make_room()

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

    def _make_room(self) -> None:
        while len(self._entries) > self.limit:
            oldest = min(list(self._entries.items()), key=_last_use)
            self._entries.pop(oldest[0], None)


def _last_use(entry: tuple[object, list[object]]) -> int:
    return entry[1][1]  # type: ignore[return-value]
