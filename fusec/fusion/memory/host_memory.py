"""A call's frame in host memory: arrays of views, new results, and the arena of temporaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.arguments.operands import is_writeable
from fusec.fusion.memory.slots import Fresh, Slots, SlotView
from fusec.fusion.trace.trace_values import Array
from fusec.kernels.launches import KeptNotes
from fusec.library.arguments import totals
from fusec.runtime.cpu import memory

KEPT = 256 << 10  # bytes of an arena that stays for later calls, with the arrays in it: these take longer than kernels
MOST_KEPT = 2  # such arenas of one plan, for calls at the same time


class HostMemory:
    """Makes the frames of one plan's calls, and the arrays in them."""

    is_host = True
    takes_results = True  # kernels may make their results themselves

    def __init__(
        self, arena_slot: int | None, arena_bytes: int, own: list[Any], lasting: list[tuple[int, SlotView]]
    ) -> None:
        self.arena_slot, self.arena_bytes = arena_slot, arena_bytes
        self.own = own  # as a frame ends
        self.lasting = lasting  # views that are the same in every call with the same arena
        self.on_devices: dict[tuple[int, int], Any] = {}  # arrays that are constants, by slot and device
        self._spare: list[list[Any]] = []  # what calls are done with; no two calls have the same at a time

    @classmethod
    def of(cls, slots: Slots) -> HostMemory:
        """The memory of a plan with some slots."""
        lasting = [(slot, view) for slot, view in slots.views.items() if slots.is_lasting(slot)]
        return cls(slots.arena_slot, slots.arena.nbytes, slots.own[::-1], lasting)

    def is_like(self, other: HostMemory) -> bool:
        """Whether the frames of both plans hold the same values at the start of a call, in the same layout."""
        ours, theirs = ((each.arena_slot, each.arena_bytes, each.lasting, len(each.own)) for each in (self, other))
        return ours == theirs and all(map(_are_same, self.own, other.own))

    def take(self) -> list[Any]:
        """The plan's own slots as a call finds them if some of them last; they are given back after the call."""
        if self._spare:
            return self._spare.pop()
        found = list(self.own)
        self.complete(found)
        return found

    def complete(self, frame: list[Any]) -> None:
        """Put the arena, and views that last, in a frame that does without."""
        if self.arena_slot is not None:
            frame[self.arena_slot] = memory.empty((self.arena_bytes,), np.dtype(np.uint8))
        for slot, view in self.lasting:
            frame[slot] = self.view(frame, view)

    def give_back(self, own: list[Any]) -> None:
        """Keep the slots of a call that is over, if they are small."""
        if self.arena_bytes <= KEPT and len(self._spare) < MOST_KEPT:
            self._spare.append(own)

    def view(self, frame: list[Any], view: SlotView) -> Array:
        """The array of a view."""
        if view.ground is None:
            base = frame[view.slot]
        else:
            base = frame[view.ground]
            if base is None:
                base = frame[view.ground] = _ground(frame[view.slot])
        found: Array = np.ndarray(view.shape, view.dtype, base, view.before + view.offset, view.strides)
        if view.readonly:
            found.flags.writeable = False
        return found

    def new(self, given: Fresh) -> Array:
        """A new array."""
        return memory.empty(given.shape, given.dtype, given.order)  # type: ignore[no-any-return]

    def run(self, step: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Run a kernel."""
        if step.group.axes is None:
            step.kernel(*inputs, *outputs)
        else:
            totals(step.kernel, inputs, outputs, step.axis, True)


def _are_same(one: Any, other: Any) -> bool:
    """Whether two slots hold numbers, or arrays of one kind, with the same bits, or nothing."""
    if type(one) is not type(other):
        return False
    if not isinstance(one, (np.ndarray, np.generic)):
        return repr(one) == repr(other)  # -0.0 is not 0.0, and nan is nan
    kinds = [(each.dtype, each.shape, each.strides) for each in (one, other)]
    return kinds[0] == kinds[1] and one.tobytes() == other.tobytes()


class NotedMemory(HostMemory):
    """The memory of calls that are only noted, which learn of new arrays and of kernels that share a launch."""

    takes_results = False

    def __init__(self, like: HostMemory, notes: KeptNotes) -> None:
        vars(self).update(vars(like), _spare=[])
        self.notes = notes

    def new(self, given: Fresh) -> Array:
        """A new array."""
        return self.notes.fresh(super().new(given))  # type: ignore[no-any-return]

    def run(self, step: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Note a kernel."""
        before = len(self.notes.order)
        super().run(step, inputs, outputs)
        calls = self.notes.order[before:]
        self.notes.planned += calls
        if step.follows and len(calls) == 1:
            self.notes.following += calls
        if step.beside:
            self.notes.share(calls, step.place == 0)


class _Lent:
    """The bytes from the first to the last that an array reaches, which keep the array alive."""

    def __init__(self, array: Array) -> None:
        low, high = np.lib.array_utils.byte_bounds(array)
        self.array = array
        self.__array_interface__ = {
            "data": (low, not is_writeable(array)), "shape": (high - low,), "typestr": "|u1", "version": 3,
        }  # fmt: skip


def _ground(array: Array) -> Array:
    """The memory of an array that is not dense in C order, as an array that is."""
    return array.T if array.flags.f_contiguous else np.asarray(_Lent(array))
