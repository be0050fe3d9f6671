"""What a fused function returns and leaves outside, as data over the slots of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CellType
from typing import Any, NamedTuple

from fusec.base.records import dataclass, replace
from fusec.fusion.memory.slots import SlotView
from fusec.fusion.outside import constants
from fusec.fusion.trace.trace_values import Buffer, Step

MISSED = object()
"""The answer of what repeats calls to one that is none of those that it knows; nothing is done."""


class ServedCall(NamedTuple):
    """A call that the launches of a plan have run.

    flat: its arrays and numbers, of which the first `given` are arguments. served: the launches, their device and
    stream. values: the places of numbers whose values the function needs. objects: the types of arguments whose
    attributes are read.
    """

    plan: Any
    flat: Sequence[Any]
    given: int
    served: Any
    values: frozenset[int] = frozenset()
    objects: frozenset[type] = frozenset()


@dataclass(eq=False)
class Returned:
    """An array or a number of a call. is_scalar: a NumPy number; kind: a Python number of this type."""

    slot: int
    view: SlotView | None = None
    is_scalar: bool = False
    kind: type | None = None

    def build(self, frame: list[Any], memory: Any) -> Any:
        """What the user gets."""
        if not memory.is_host:
            return memory.lent(frame, self)
        found = frame[self.slot] if self.view is None else memory.view(frame, self.view)
        if self.is_scalar:
            found = found[()]
        return found if self.kind is None else self.kind(found)


ReturnedParts = dict[Returned, tuple[Buffer, tuple[Step, ...]]]
"""The buffers of which parts are returned, and the steps to these."""
ReturnedViews = Mapping[Returned, SlotView | None]
"""Where parts are that are returned; None for all of an array."""


@dataclass(eq=False)
class ReturnedItems:
    """A tuple, a named tuple or a list."""

    make: Callable[[Any], Any]
    parts: tuple[Any, ...]

    def build(self, frame: list[Any], memory: Any) -> Any:
        """What the user gets."""
        return self.make([part.build(frame, memory) for part in self.parts])


@dataclass(eq=False)
class ReturnedPairs:
    """A dictionary."""

    make: Callable[[Any], Any]
    names: tuple[Any, ...]
    parts: tuple[Any, ...]

    def build(self, frame: list[Any], memory: Any) -> Any:
        """What the user gets."""
        return self.make((name, part.build(frame, memory)) for name, part in zip(self.names, self.parts, strict=True))


@dataclass(eq=False)
class ReturnedConstant:
    """What no call changes; containers of it are new at every call, and arrays too."""

    value: Any
    is_array: bool = False

    def build(self, frame: list[Any], memory: Any) -> Any:
        """What the user gets."""
        del frame, memory
        return self.value.copy(order="K") if self.is_array else constants.copied(self.value)


@dataclass(eq=False)
class LeftOutside:
    """A value that the function leaves outside: in a module's names, a cell, or an object that a slot holds."""

    owner: Any
    name: str
    value: Any
    slot: int | None = None

    def run(self, frame: list[Any], memory: Any) -> None:
        """Assign it."""
        value = self.value.build(frame, memory)
        if self.slot is not None:
            object.__setattr__(frame[self.slot], self.name, value)  # it has no other way
        elif isinstance(self.owner, CellType):
            setattr(self.owner, self.name, value)
        else:
            self.owner[self.name] = value


def with_views(result: Any, views: ReturnedViews) -> Any:
    """The same in arrays of other extents, in which the returned parts are other bytes."""
    if isinstance(result, Returned):
        return replace(result, view=views[result]) if result in views else result
    if isinstance(result, ReturnedItems | ReturnedPairs):
        return replace(result, parts=tuple([with_views(each, views) for each in result.parts]))
    return result


def places_of(result: Any) -> list[int] | None:
    """The slots of what is returned, if it is an array of its own, or a tuple of several; else None."""
    parts = result.parts if isinstance(result, ReturnedItems) and result.make is tuple else (result,)
    if len(parts) == 1 and parts[0] is not result:
        return None
    whole = [each for each in parts if isinstance(each, Returned) and each.view is None and not each.is_scalar]
    return [each.slot for each in whole] if len(whole) == len(parts) else None
