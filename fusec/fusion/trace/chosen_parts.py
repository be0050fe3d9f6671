"""Parts of arrays at indices that arrays hold, as x[i]: copies in a trace, where NumPy has views.

So a part is not read when its array has been written since, nor the array when the part has, unless the part was stored
at its index again, as x[i] += 1 does. Both are refused instead.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.errors.fusing import NotFusable
from fusec.fusion.trace.lines import here

STALE = "write to x[i] itself, or make a copy of the part first: x[i].copy()"


@dataclass(eq=False)
class Origin:
    """Where a part comes from: the memory, how often that was written before, and the index."""

    memory: Any
    writes: int
    index: Any


class ChosenParts:
    """The parts of one trace, by their memory."""

    def __init__(self) -> None:
        self._origins: dict[Any, list[Origin]] = {}
        self._writes: Counter[Any] = Counter()
        self._changed: dict[Any, Span] = {}  # parts, with the lines that wrote them

    def add(self, part: Any, memory: Any, index: Any) -> None:
        """Record a part of some memory."""
        self._origins[part] = [Origin(memory, self._writes[memory], index), *self._origins.get(memory, ())]

    def write(self, memory: Any) -> None:
        """Note that memory is written."""
        self._writes[memory] += 1
        if memory in self._origins:
            self._changed.setdefault(memory, here())

    def bring_back(self, part: Any, memory: Any, index: Any, is_stored: bool = False) -> None:
        """Note that a value will be stored in some memory, or is, which may be a part that comes to its place."""
        for each in self._origins.get(part, ())[:1]:
            if each.memory is memory and each.index is index:
                self._changed.pop(part, None)
                each.writes = self._writes[memory] if is_stored else each.writes

    def check(self, memory: Any = None) -> None:
        """Raise NotFusable if memory has not what it would have without fuse. memory: None for all."""
        for part, line in self._changed.items():
            if memory is None or any(each.memory is memory for each in self._origins[part]):
                raise NotFusable("a write to the part of an array at an index that an array holds", STALE).at(line)
        if any(self._writes[each.memory] != each.writes for each in self._origins.get(memory, ())):
            what = "the part of an array at an index that an array holds, read after a write to the array,"
            raise NotFusable(what, STALE).at(here())
