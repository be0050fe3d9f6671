"""Memory whose values no buffer holds yet, by what these values read: a write to that stores them first."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

Memory = TypeVar("Memory")


class Unstored(Generic[Memory]):
    """What has values. groups_of: the groups of memory that the value of some memory reads, none without a value."""

    def __init__(self, groups_of: Callable[[Memory], Collection[int]]) -> None:
        self._groups_of = groups_of
        self._new: list[ref[Memory]] = []  # looked at when something is written
        self._readers: dict[int, WeakKeyDictionary[Memory, None]] = {}

    def add(self, memory: Memory) -> None:
        """Memory has got a value."""
        self._new.append(ref(memory))

    def reading(self, group: int) -> list[Memory]:
        """The memory, in the order in which it got values, whose values read a group."""
        new, self._new = self._new, []
        for each in new:
            memory = each()
            if memory is not None:
                for read in self._groups_of(memory):
                    self._readers.setdefault(read, WeakKeyDictionary())[memory] = None
        found = list(self._readers.get(group, ()))
        return [each for each in found if group in self._groups_of(each)]
