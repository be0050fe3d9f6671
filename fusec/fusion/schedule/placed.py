"""A placed plan as rules over the extents of a call: what `resizing` works out anew, in a tenth of its time.

Which slots there are, and which steps use them, is the same for all calls that share a template. Shapes, views and
places in the arena are made of the shapes of arguments by one rule each. What else may depend on extents is compared
with what it was when the rules were made; where it differs, `resizing` derives and places the steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.operands import strided
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass, field, replace
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import Returned, ReturnedViews
from fusec.fusion.memory.slots import Arena, Fresh, SlotView, address_of
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.extents import CallShapes, Derived, OtherShapesError

Shape = tuple[int, ...]
PlanStep = KernelStep | CallStep
Place = tuple[int, Shape, Shape, bool]
"""Bytes from the start of a buffer, extents, strides, whether it is read-only though the buffer is not."""


class CallExtents(CallShapes):
    """What the rules make for one call. Indices are those of the rules."""

    __slots__ = ("arrays", "shapes")

    def __init__(self, outlines: Sequence[Any]) -> None:
        super().__init__(outlines)
        self.shapes: list[Shape] = []
        self.arrays: list[t.Array] = []


Rule = Callable[[CallExtents], None]  # appends a shape or arrays, or raises OtherShapesError
View = Callable[[CallExtents], Place]
UsedViews = tuple[SlotView, t.Buffer | None, list[View]]
"""The view of a slot in the known call, the temporary that it is of, and what all its uses make of it."""


@dataclass(eq=False)
class PlacedTemplate:
    """The rules of a plan, and all of it that no extent changes."""

    steps: Sequence[PlanStep]
    own: list[Any]  # of slots, slot -1 first
    arena_slot: int | None
    lasting: list[int]  # slots with views that last
    rules: list[Rule] = field(default_factory=list)
    views: dict[int, UsedViews] = field(default_factory=dict)  # by slot
    counts: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list)  # a slot, a shape, axes of that
    numbers: list[tuple[int, Derived]] = field(default_factory=list)  # computed from extents otherwise, by slot
    rooms: list[tuple[t.Buffer, int, int]] = field(default_factory=list)  # temporaries, shapes, bytes of an element
    uses: tuple[list[list[t.Buffer]], list[list[t.Buffer]]] = ([], [])  # temporaries that each launch writes, and reads
    made: dict[int, list[tuple[Fresh, int]]] = field(default_factory=dict)  # by step: results, and their shapes
    shaped: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)  # slots, shapes of kernels and results
    calls: dict[int, int] = field(default_factory=dict)  # by step: where the arrays that it makes begin
    returned: list[tuple[Returned, SlotView, View]] = field(default_factory=list)  # parts of arrays
    whole: list[Returned] = field(default_factory=list)  # what is all of an array though views were taken

    def fitted(self, outlines: Sequence[Any]) -> tuple[list[PlanStep], HostMemory, ReturnedViews]:
        """The steps and the memory of calls of arrays like these, by place; the parts that are returned. Raises
        OtherShapesError, and ValueError.
        """
        found = CallExtents(outlines)
        for rule in self.rules:
            rule(found)
        shapes, arena = found.shapes, Arena()
        if self.rooms:
            rooms = {each: prod(shapes[at]) * nbytes for each, at, nbytes in self.rooms}
            arena.arrange(*self.uses, rooms.__getitem__)
        views = {slot: _slot_view(found, arena, *known) for slot, known in self.views.items()}
        own = self.own
        if self.counts or self.numbers:
            own = own[:]
            for slot, at, axes in self.counts:
                own[-1 - slot] = prod([shapes[at][axis] for axis in axes])
            for slot, derived in self.numbers:
                own[-1 - slot] = found.of(derived)
        lasting = [(slot, views[slot]) for slot in self.lasting]
        steps = [self._step(at, step, found, views) for at, step in enumerate(self.steps)]
        parts: dict[Returned, SlotView | None] = dict.fromkeys(self.whole)
        parts |= {part: _slot_view(found, arena, known, None, [place]) for part, known, place in self.returned}
        return steps, HostMemory(self.arena_slot, arena.nbytes, own[::-1], lasting), parts

    def _step(self, at: int, step: PlanStep, found: CallExtents, known: Mapping[int, SlotView]) -> PlanStep:
        """A step with its views and results."""
        views = tuple([(slot, known[slot]) for slot, _ in step.views])
        if isinstance(step, CallStep):
            first = self.calls[at]
            pairs = zip(step.call.buffers, found.arrays[first : first + len(step.call.buffers)], strict=True)
            call = replace(step.call, buffers=tuple([replace(each, phantom=array) for each, array in pairs]))
            return replace(step, call=call, views=views)
        if not views and at not in self.made:
            return step
        shapes = found.shapes
        fresh = tuple([Fresh(one.slot, shapes[of], one.dtype, None) for one, of in self.made.get(at, ())])
        makes = tuple(
            [(slot, None if shapes[one] == shapes[of] else shapes[of]) for slot, one, of in self.shaped.get(at, ())]
        )
        return step.elsewhere(fresh, views, makes)


def _slot_view(
    found: CallExtents, arena: Arena, known: SlotView, buffer: t.Buffer | None, views: Sequence[View]
) -> SlotView:
    """The view of a slot, if all that share it agree. Raises OtherShapesError."""
    offset, shape, strides, readonly = place = views[0](found)
    if any(each(found) != place for each in views[1:]):
        raise OtherShapesError
    offset += 0 if buffer is None else arena.places[buffer]
    return SlotView(known.slot, offset, shape, strides, known.dtype, readonly, known.ground, known.before)


def place_of(whole: t.Array, part: t.Array) -> Place:
    """Where a view of an array lies in it."""
    offset = address_of(part) - address_of(whole) if part.size else 0
    return offset, part.shape, part.strides, whole.flags.writeable and not part.flags.writeable


def repeated_to(given: Place, shape: Shape) -> Place:
    """As np.broadcast_to has it."""
    offset, own, strides, _ = given
    if own == shape:
        return given
    if layouts.common_shape(own, shape) != shape:
        raise OtherShapesError
    inner = [0 if extent == 1 else stride for extent, stride in zip(own, strides, strict=True)]
    return offset, shape, (*[0] * (len(shape) - len(own)), *inner), True


def reshaped_to(given: Place, shape: Shape, nbytes: int) -> Place:
    """The place of an array in a new shape, without a copy. Raises NumPy's ValueError."""
    offset, own, strides, readonly = given
    if own == shape:
        return given
    dense = strides_in_order(own, range(len(own)), nbytes)
    steps = zip(own, strides, dense, strict=True)
    if prod(own) != prod(shape):
        raise OtherShapesError
    if any(extent != 1 and one != other for extent, one, other in steps):
        part = strided(np.empty(1, f"V{nbytes}"), own, strides)
        return offset, shape, np.reshape(part, shape, copy=False).strides, readonly
    return offset, shape, strides_in_order(shape, range(len(shape)), nbytes), readonly
