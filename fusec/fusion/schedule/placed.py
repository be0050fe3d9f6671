"""A placed plan as rules over the extents of a call: what `resizing` works out anew, in a tenth of its time.

Which slots there are, and which steps use them, is the same for all calls that share a template. Shapes, views and
places in the arena are made of the shapes of arguments by one rule each. What else may depend on extents is compared
with what it was when the rules were made; where it differs, `resizing` derives and places the steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.operands import is_writeable, without_memory
from fusec.base.kernel_abi import strides_in_order
from fusec.base.recorded import NotRecordedError, recorded
from fusec.base.records import dataclass, field, replace
from fusec.environment import settings
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import Returned, ReturnedViews
from fusec.fusion.memory.slots import Arena, Fresh, SlotView
from fusec.fusion.schedule.native_sequence import NativeSequence, SequenceBuilder, described_again
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.schedule.recorded_sequence import recorded_source
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.array_forms import ArrayForm, form_of, strides_of_shape
from fusec.fusion.trace.derived import CallShapes, Derived, OtherShapesError

Shape = tuple[int, ...]
PlanStep = KernelStep | CallStep
Place = tuple[int, Shape, Shape, bool]
"""Bytes from the start of a buffer, extents, strides, whether it is read-only though the buffer is not."""


class CallExtents(CallShapes):
    """What the rules make for one call. Indices are those of the rules."""

    __slots__ = ("arrays", "shapes")

    def __init__(self, outlines: Sequence[Any], is_recorded: bool = False) -> None:
        super().__init__(outlines, is_recorded)
        self.shapes: list[Shape] = []
        self.arrays: list[t.Array] = []

    def whole(self, array: Any) -> Any:
        """All of an array, of which views are taken."""
        return form_of(array) if self.is_recorded else array


Worked = tuple[list[SlotView], list[Any], int, dict[int, list[Any]], dict[int, list[Any]], list[Any], list[SlotView]]
"""The numbers of a call: views by slot, what slots hold, bytes of the arena, the shapes of results, those that kernels
make in others, results of libraries, and parts that are returned."""
MOST_RECORDINGS = 4  # of either kind


class Fitted(NamedTuple):
    """A plan for calls of other extents. sequence: all of its steps at once; learn: is given such a sequence of that
    very plan, of which those of other calls are made.
    """

    steps: list[PlanStep]
    memory: HostMemory
    views: ReturnedViews
    sequence: NativeSequence | None = None
    learn: Callable[[NativeSequence | None], None] | None = None


class KnownCalls(NamedTuple):
    """Calls whose numbers straight-line code works out; None of others. checks: what it leaves out.

    sequence: that of one of them, whose words are worked out as well, while settings have this version.
    """

    makes: Callable[..., Any]
    checks: Sequence[Callable[[CallExtents], bool]]
    sequence: NativeSequence | None = None
    version: int = 0


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
    given: int  # arguments, behind which arrays from outside come, that are the same in all calls
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
    checks: list[Callable[[CallExtents], bool]] = field(default_factory=list)  # what must be true behind the rules
    _recordings: list[KnownCalls] = field(default_factory=list)
    _sequences: list[KnownCalls] = field(default_factory=list)
    _refused: int = 0
    _lessons: int = MOST_RECORDINGS
    _places: list[tuple[int, int]] | None = None
    _gaps: list[int] | None = None

    @cached_property
    def results(self) -> list[int]:
        """The arrays that calls of libraries make."""
        pairs = [(first, self.steps[at]) for at, first in self.calls.items()]
        calls = [(first, step.call) for first, step in pairs if isinstance(step, CallStep)]
        return [first + at for first, call in calls for at in range(len(call.buffers))]

    def fitted(self, outlines: Sequence[Any]) -> Fitted:
        """The steps and the memory of calls of arrays like these, by place; the parts that are returned. Raises
        OtherShapesError, and ValueError.
        """
        found = self.worked_out(CallExtents(outlines))
        self.record(outlines)
        return self.built(found)

    def fitted_again(self, outlines: Sequence[Any]) -> Fitted | None:
        """The same by recorded code; None if none is for such calls."""
        if not self._recordings:
            return None
        integers, version = self._integers(outlines), settings.version()
        for known in self._sequences:
            sequence = known.sequence if known.version == version else None
            if sequence is not None and (found := self._made(known, integers, outlines)) is not None:
                return self.built(found[0], described_again(sequence, *found[1:]))
        for known in self._recordings:
            if (found := self._made(known, integers, outlines)) is not None:
                learn = partial(self.learn, [*map(_without_memory, outlines)]) if self._lessons else None
                return self.built(found, None, learn)
        return None

    def worked_out(self, found: CallExtents) -> Worked:
        """All numbers of a call, by the rules. Raises OtherShapesError, and ValueError."""
        for rule in self.rules:
            rule(found)
        for check in self.checks:
            if not check(found):
                raise OtherShapesError
        shapes, arena = found.shapes, Arena()
        if self.rooms:
            rooms = {each: prod(shapes[at]) * nbytes for each, at, nbytes in self.rooms}
            arena.arrange(*self.uses, rooms.__getitem__)
        counts = [prod([shapes[at][axis] for axis in axes]) for _, at, axes in self.counts]
        return (
            [_slot_view(found, arena, *known) for known in self.views.values()],
            [*counts, *[_content(found.of(derived)) for _, derived in self.numbers]],
            arena.nbytes,
            {at: [shapes[of] for _, of in each] for at, each in self.made.items()},
            {at: [None if shapes[one] == shapes[of] else shapes[of] for _, one, of in each]
             for at, each in self.shaped.items()},
            [form_of(found.arrays[at]) for at in self.results],
            [_slot_view(found, arena, known, None, [place]) for _, known, place in self.returned],
        )  # fmt: skip

    def built(self, worked: Worked, sequence: NativeSequence | None = None, learn: Any = None) -> Fitted:
        """The steps, memory and parts of a call, of its numbers."""
        own, views = self.own_of(worked), dict(zip(self.views, worked[0], strict=True))
        lasting = [(slot, views[slot]) for slot in self.lasting]
        arrays = dict(zip(self.results, worked[5], strict=True))
        steps = [self._step(at, step, worked, views, arrays) for at, step in enumerate(self.steps)]
        parts: dict[Returned, SlotView | None] = dict.fromkeys(self.whole)
        parts |= {part: view for (part, *_), view in zip(self.returned, worked[6], strict=True)}
        return Fitted(steps, HostMemory(self.arena_slot, worked[2], own[::-1], lasting), parts, sequence, learn)

    def own_of(self, worked: Worked) -> list[Any]:
        """What the slots of a call hold, slot -1 first."""
        if not worked[1]:
            return self.own
        own = self.own[:]
        for slot, number in zip(self._number_slots, worked[1], strict=True):
            own[-1 - slot] = number
        return own

    @cached_property
    def _number_slots(self) -> list[int]:
        """The slots of numbers and arrays that calls make of extents."""
        return [each[0] for each in self.counts] + [each[0] for each in self.numbers]

    def _step(
        self, at: int, step: PlanStep, worked: Worked, known: Mapping[int, SlotView], arrays: Mapping[int, Any]
    ) -> PlanStep:
        """A step with its views and results."""
        views = tuple([(slot, known[slot]) for slot, _ in step.views])
        if isinstance(step, CallStep):
            first = self.calls[at]
            pairs = enumerate(step.call.buffers, first)
            call = replace(step.call, buffers=tuple([replace(each, phantom=arrays[number]) for number, each in pairs]))
            return replace(step, call=call, views=views)
        if not views and at not in self.made:
            return step
        made = zip(self.made.get(at, ()), worked[3].get(at, ()), strict=True)
        shaped = zip(self.shaped.get(at, ()), worked[4].get(at, ()), strict=True)
        fresh = tuple([Fresh(one.slot, shape, one.dtype, None) for (one, _), shape in made])
        return step.elsewhere(fresh, views, tuple([(slot, shape) for (slot, *_), shape in shaped]))

    # --- recorded ----------------------------------------------------------------------------------------------------

    def _made(self, known: KnownCalls, integers: Sequence[int], outlines: Sequence[Any]) -> Any:
        """What recorded code works out for a call; None if it does not. Raises OtherShapesError."""
        found = known.makes(*integers)
        if found is not None and known.checks:
            call = CallExtents(outlines)
            if not all(check(call) for check in known.checks):
                raise OtherShapesError
        return found

    def record(self, outlines: Sequence[Any]) -> None:
        """Record what the rules work out for calls like this one, as far as that is arithmetic; see `recorded`."""
        if len(self._recordings) + self._refused >= MOST_RECORDINGS:
            return
        found = self._recorded(outlines, self.worked_out(CallExtents(outlines)), _are_equal, lambda _, worked: worked)
        if found is None:
            self._refused += 1
        else:
            self._recordings.append(found)

    def learn(self, outlines: Sequence[Any], sequence: NativeSequence | None) -> None:
        """Record the words of the sequence of a call like this one too; None if it has none."""
        if not self._lessons:
            return
        self._lessons -= 1
        if sequence is None:
            return

        def made(forms: Sequence[Any], worked: Worked) -> Any:
            source = recorded_source(self, forms, worked, sequence.plans)
            parts = SequenceBuilder(self.steps, source, True).parts()
            fresh = tuple([source.fresh_again(each) for each in sequence.fresh])
            return worked, fresh, list(parts.words), list(parts.template)

        now = self.worked_out(CallExtents(outlines)), sequence.fresh, sequence.words, [*sequence.template[1:]]
        found = self._recorded(outlines, now, _are_alike, made)
        if found is not None:
            self._sequences.append(found._replace(sequence=replace(sequence, plans={}), version=settings.version()))

    def _recorded(
        self, outlines: Sequence[Any], now: Any, are_same: Callable[[Any, Any], bool],
        make: Callable[[Sequence[Any], Worked], Any],
    ) -> KnownCalls | None:  # fmt: skip
        """What is made of forms of the arguments and what the rules work out, for calls like this one."""
        rest = self.checks
        while True:
            refused: list[Any] = []
            run = partial(self._recorded_run, outlines, rest, refused, make)
            makes = recorded(run, self._integers(outlines), now, are_same)
            if makes is not None or not refused:
                break
            rest = [each for each in rest if each not in refused]
        return None if makes is None else KnownCalls(makes, [each for each in self.checks if each not in rest])

    def _recorded_run(
        self, outlines: Sequence[Any], checks: Sequence[Any], refused: list[Any],
        make: Callable[[Sequence[Any], Worked], Any], symbols: Sequence[Any],
    ) -> Any:  # fmt: skip
        """What is made for symbols in place of extents. refused: is given the checks that need more."""
        rest = iter(symbols)
        known = {0: 0, 1: 1}
        for place, axis in self._extents(outlines):
            known[outlines[place].shape[axis]] = next(rest)
        forms = []
        for place, each in enumerate(outlines):
            if each is None or place >= self.given:
                forms.append(None if each is None else form_of(each))
                continue
            shape = tuple([known[extent] for extent in each.shape])
            strides = strides_in_order(shape, range(len(shape)), each.itemsize)
            if place in self._with_gaps(outlines):
                strides = tuple([next(rest) for _ in shape])
            forms.append(ArrayForm(0, shape, strides, each.dtype, is_writeable(each)))
        made = CallExtents(forms, True)
        found = replace(self, checks=[]).worked_out(made)
        for check in checks:
            try:
                holds = check(made)
            except (NotRecordedError, TypeError, AttributeError):
                refused.append(check)
                continue
            if not holds:
                raise OtherShapesError
        if refused:
            raise NotRecordedError
        return make(forms, found)

    def _integers(self, outlines: Sequence[Any]) -> list[int]:
        """What calls of one kind differ in: extents, each once, and the strides of arrays with gaps."""
        found = [outlines[place].shape[axis] for place, axis in self._extents(outlines)]
        return [*found, *[stride for place in self._with_gaps(outlines) for stride in outlines[place].strides]]

    def _extents(self, outlines: Sequence[Any]) -> list[tuple[int, int]]:
        """Where the extents of a call's arrays are, each once."""
        if self._places is None:
            places: dict[int, tuple[int, int]] = {}
            for place, each in enumerate(outlines[: self.given]):
                for axis, extent in enumerate(() if each is None else each.shape):
                    if extent > 1:
                        places.setdefault(extent, (place, axis))
            self._places = list(places.values())
        return self._places

    def _with_gaps(self, outlines: Sequence[Any]) -> list[int]:
        """The places of arrays with gaps."""
        if self._gaps is None:
            given = enumerate(outlines[: self.given])
            self._gaps = [place for place, each in given if each is not None and not each.flags.c_contiguous]
        return self._gaps


def _content(given: Any) -> Any:
    """What a slot holds: a number, or an array that calls make."""
    return given.content if type(given) is ArrayForm else given


def _are_equal(one: Worked, other: Worked) -> bool:
    """Whether two calls have the same numbers."""
    if (*one[:1], *one[2:]) != (*other[:1], *other[2:]):
        return False
    pairs = zip(one[1], other[1], strict=True)
    return all(type(a) is type(b) and np.array_equal(a, b, equal_nan=False) for a, b in pairs)


def _are_alike(one: Any, other: Any) -> bool:
    """The same of numbers with words of a sequence."""
    return _are_equal(one[0], other[0]) and one[1:] == other[1:]


def _without_memory(given: Any) -> Any:
    return without_memory(given) if isinstance(given, np.ndarray) else given


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
    offset = t.address_of(part) - t.address_of(whole) if part.size else 0
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
        found = strides_of_shape(own, strides, shape, nbytes)
        if found is None:
            raise ValueError("strides do not express the shape")
        return offset, shape, found, readonly
    return offset, shape, strides_in_order(shape, range(len(shape)), nbytes), readonly
