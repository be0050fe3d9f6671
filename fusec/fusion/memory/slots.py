"""The slots of a plan: arguments by their places; below zero, counted from the end, what belongs to the plan.

A call's frame is a list with the contents of all slots. Everything that kernels read or write is a slot, and every
array is a view of the memory of another slot: an offset in bytes, extents, strides and a dtype. So a plan is data,
which is true of arrays anywhere; what has the memory makes arrays of it (`host_memory`, `device_memory`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from fusec.base.records import dataclass
from fusec.fusion.trace.numbers import Computed, NumberStep, Source
from fusec.fusion.trace.trace_values import Array, Buffer, Step, address_of, outermost_first

Shape = tuple[int, ...]
ALIGNMENT = 64  # bytes, of temporaries in an arena


@dataclass(frozen=True)
class SlotView:
    """An array in the memory of a slot.

    offset: of its first element from the first of that slot, in bytes. ground: a slot for that memory as dense bytes
    if the array in the slot is not dense in C order; before: how many of these come before that array's first element.
    """

    slot: int
    offset: int
    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]
    readonly: bool = False
    ground: int | None = None
    before: int = 0


@dataclass(frozen=True)
class Fresh:
    """An array that a call makes and the user gets. order: its axes from outermost to innermost; None: C order."""

    slot: int
    shape: Shape
    dtype: np.dtype[Any]
    order: tuple[int, ...] | None


class Slots:
    """Gives out the slots of one plan. numbers: those that a call computes, by place."""

    def __init__(self, numbers: dict[int, Computed]) -> None:
        self.own: list[Any] = []  # what the plan's own slots hold when a call starts, slot -1 first
        self.views: dict[int, SlotView] = {}  # of slots that hold part of another's memory
        self.numbers: list[NumberStep] = []  # in order
        self.arena = Arena()
        self.arena_slot: int | None = None
        self._computed = numbers
        self.known: dict[object, int] = {}  # slots by what they hold

    def new(self, value: object = None) -> int:
        """A slot of the plan's own, with what it holds from the start."""
        self.own.append(value)
        return -len(self.own)

    def number(self, source: Source) -> int:
        """The slot of a number."""
        which, found = source
        if which == "argument":
            return int(found)
        if which == "known":
            return self.new(found)
        slot = self.known.get(source)
        if slot is None:
            given = self._computed[found]
            operands = tuple(map(self.number, given.operands))
            slot = self.known[source] = self.new()
            self.numbers.append(NumberStep(slot, given.function, operands, type(given.value)))
        return slot

    def buffer(self, buffer: Buffer) -> int:
        """The slot of all of a buffer; a temporary one has one of its own once the arena has no place for it."""
        if buffer.kind == "argument":
            return buffer.place
        slot = self.known.get(buffer)
        if slot is None:
            slot = self.known[buffer] = self.new(buffer.array)
        return slot

    def view(self, buffer: Buffer, part: Array) -> SlotView | None:
        """A part of a buffer, made from its phantom; None if it is all of the buffer."""
        whole = buffer.phantom
        offset = address_of(part) - address_of(whole) if part.size else 0
        readonly = whole.flags.writeable and not part.flags.writeable
        place = self.arena.places.get(buffer)
        if place is not None:
            if self.arena_slot is None:
                self.arena_slot = self.new()
            return SlotView(self.arena_slot, place + offset, part.shape, part.strides, part.dtype, readonly)
        is_whole = (part.shape, part.strides, part.dtype) == (whole.shape, whole.strides, whole.dtype)
        if is_whole and not offset and not readonly:
            return None
        slot, ground, before = self.buffer(buffer), None, 0
        if not whole.flags.c_contiguous:
            ground = self.known.get(("ground", slot))
            if ground is None:
                ground = self.known["ground", slot] = self.new()
            steps = zip(whole.shape, whole.strides, strict=True)
            before = -sum(min(0, (extent - 1) * stride) for extent, stride in steps if extent)
        return SlotView(slot, offset, part.shape, part.strides, part.dtype, readonly, ground, before)

    def operand(self, buffer: Buffer, part: Array) -> int:
        """The slot that holds a part of a buffer, the same for the same part of that buffer."""
        found = self.view(buffer, part)
        if found is None:
            return self.buffer(buffer)
        slot = self.known.get((buffer, found))
        if slot is None:
            slot = self.known[buffer, found] = self.new()
            self.views[slot] = found
        return slot

    def holding(self, buffer: Buffer) -> tuple[int, ...]:
        """The slots whose arrays keep the memory of a buffer."""
        slot = self.buffer(buffer)
        views = [(at, view.ground) for at, view in self.views.items() if view.slot == slot]
        return tuple(dict.fromkeys((slot, *(each for pair in views for each in pair if each is not None))))

    def is_lasting(self, slot: int) -> bool:
        """Whether a slot holds the same array in every call that has the same arena: one in it, or of a constant."""
        view = self.views[slot]
        return view.slot == self.arena_slot or (view.slot < 0 and self.own[-1 - view.slot] is not None)


def replayed(buffer: Buffer, steps: Iterable[Step]) -> Array:
    """The phantom of a view of a buffer."""
    part = buffer.phantom
    for step in steps:
        part = step(part)
    return part


def fresh(slot: int, buffer: Buffer) -> Fresh:
    """A new array for a buffer."""
    order, array = outermost_first(buffer.phantom), buffer.phantom
    return Fresh(slot, array.shape, array.dtype, None if order == tuple(range(array.ndim)) else order)


# --- memory of temporaries -------------------------------------------------------------------------------------------


class Arena:
    """One piece of memory for all temporaries of a call, each of which has its place as long as a kernel needs it."""

    def __init__(self) -> None:
        self.places: dict[Buffer, int] = {}  # in bytes
        self.nbytes = 0
        self._free: list[tuple[int, int]] = []  # where it starts and where it ends, in order

    def arrange(
        self, writers: Sequence[Collection[Buffer]], readers: Sequence[Collection[Buffer]],
        nbytes_of: Callable[[Buffer], int] = lambda buffer: buffer.phantom.nbytes,
    ) -> None:  # fmt: skip
        """Give places to the temporaries that each of some kernels in order writes, free after their last use."""
        last = {buffer: at for at, used in enumerate(zip(writers, readers, strict=True)) for each in used
                for buffer in each}  # fmt: skip
        ends: dict[int, list[Buffer]] = {}
        for at, written in enumerate(writers):
            for buffer in written:
                if buffer not in self.places:
                    self.places[buffer] = self.take(_room(nbytes_of(buffer)))
                    ends.setdefault(last[buffer], []).append(buffer)
            for buffer in ends.get(at, ()):
                self.give_back(self.places[buffer], _room(nbytes_of(buffer)))

    def take(self, nbytes: int) -> int:
        """The start of the smallest free piece that is large enough; the arena grows if there is none."""
        fits = [(stop - start, start, stop) for start, stop in self._free if stop - start >= nbytes]
        if fits:
            _, start, stop = min(fits)
            self._free.remove((start, stop))
            if stop - start > nbytes:
                self.give_back(start + nbytes, stop - start - nbytes)
            return start
        start = self.nbytes
        if self._free and self._free[-1][1] == self.nbytes:  # what is free at the end grows
            start, _ = self._free.pop()
        self.nbytes = start + nbytes
        return start

    def give_back(self, start: int, nbytes: int) -> None:
        """Free a piece."""
        stop, kept = start + nbytes, []
        for low, high in self._free:
            if high == start:
                start = low
            elif low == stop:
                stop = high
            else:
                kept.append((low, high))
        self._free = sorted([*kept, (start, stop)])


def _room(nbytes: int) -> int:
    """The bytes of a temporary, to the next boundary."""
    return -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
