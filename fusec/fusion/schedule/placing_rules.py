"""What makes the rules of `placed`: a plan that was placed for one call, and the statements that it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import Returned, ReturnedParts, ReturnedViews
from fusec.fusion.memory.slots import Slots
from fusec.fusion.schedule.groups import Group, squeezed
from fusec.fusion.schedule.placed import (
    CallExtents,
    Place,
    PlacedTemplate,
    PlanStep,
    Rule,
    View,
    place_of,
    repeated_to,
    reshaped_to,
)
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.schedule.together import SMALL
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.conditions import Condition, hold
from fusec.fusion.trace.derived import Derived, OtherShapesError
from fusec.fusion.trace.extents import TraceExtents
from fusec.ir.loops import GROUP
from fusec.ir.reductions import ROUNDS, chunk_of

Shape = tuple[int, ...]


@dataclass(eq=False)
class PlacedStatements:
    """What a placed plan was made of.

    reads: the leaves that statements read. counts: the leaves whose elements numbers count. long: totals of more
    elements than a number. shapes: those of values that do not follow from what the values read. numbers: all other
    numbers that are computed from extents. parts: the parts of arrays that are returned. laid: shapes of
    temporaries that are written part by part.
    """

    statements: Sequence[t.Statement]
    reads: Mapping[t.Statement, Sequence[t.Leaf]]
    counts: Mapping[t.Leaf, tuple[Sequence[t.Leaf], tuple[int, ...]]]
    long: Sequence[tuple[t.Total, int]]
    conditions: Sequence[Condition]
    extents: TraceExtents
    shapes: Mapping[t.Statement, Derived]
    numbers: Mapping[t.Leaf, Derived]
    parts: ReturnedParts
    laid: Mapping[t.Buffer, Derived]


def placed_template(
    given: PlacedStatements, outlines: Sequence[Any], steps: Sequence[PlanStep], slots: Slots, views: ReturnedViews
) -> PlacedTemplate | None:
    """The rules of a plan that was placed for calls like this one; None if they do not say all of it. views: of parts
    that are returned.
    """
    try:
        rules = _PlacingRules(given, outlines, steps, slots, views)
        rules.make()
        found, memory, parts, *_ = rules.template.built(rules.template.worked_out(CallExtents(outlines)))
    except OtherShapesError:
        return None
    same = list(map(_parts, found)) == list(map(_parts, steps)) and memory.is_like(HostMemory.of(slots))
    return rules.template if same and parts == views else None


def _parts(step: PlanStep) -> tuple[object, ...]:
    return (step.fresh, step.views, step.makes) if isinstance(step, KernelStep) else (step.views,)


class _PlacingRules:
    """Makes the rules."""

    def __init__(
        self, given: PlacedStatements, outlines: Sequence[Any], steps: Sequence[PlanStep], slots: Slots,
        views: ReturnedViews,
    ) -> None:  # fmt: skip
        self.given, self.slots, self.steps, self.views = given, slots, steps, views
        self.now = CallExtents(outlines)
        lasting = [slot for slot in slots.views if slots.is_lasting(slot)]
        self.template = PlacedTemplate(steps, [*slots.own], slots.arena_slot, lasting, given.extents.given)
        own = [each for each in outlines[: given.extents.given] if each is not None]
        patterns = iter(layouts.pattern_of_extents([each.shape for each in own]))
        self._patterns = [None if each is None else next(patterns, each.shape) for each in outlines]
        self._shapes: dict[object, int] = {}
        self._arrays: dict[object, int] = {}
        self._buffers: dict[t.Buffer, int] = {}  # the shapes of temporaries
        self._stored: dict[t.Statement, int] = {}  # the shapes of what statements store, of totals what they combine

    def make(self) -> None:
        """Make all rules. Raises OtherShapesError if they do not say all."""
        given = self.given
        for statement in given.statements:
            if isinstance(statement, t.LibraryCall):
                self._call(statement, given.reads[statement])
            else:
                self._statement(statement, given.reads[statement])
        self._check_writes()
        for total, most in given.long:
            self._check_longer(self._stored[total], total.axes, most)
        self.template.checks += [condition.check for condition in given.conditions]
        if given.extents.agreements:
            self.template.checks.append(lambda known: hold(known, (), given.extents.agreements))
        if not all(check(self.now) for check in self.template.checks):
            raise OtherShapesError
        for at, step in enumerate(self.steps):
            if isinstance(step, KernelStep):
                self._kernel(at, step)
            else:
                self._operands(step)
                self.template.calls[at] = self._arrays[step.call.buffers[0]] if step.call.buffers else 0
        for each, slot in self.slots.known.items():
            if isinstance(each, t.Buffer) and each.derived is not None:
                self.template.numbers.append((slot, each.derived))
        for each, (buffer, steps) in given.parts.items():
            self._returned(each, buffer, steps)
        self._launches()

    # --- shapes ------------------------------------------------------------------------------------------------------

    def _rule(self, rule: Rule) -> None:
        self.template.rules.append(rule)
        rule(self.now)

    def _shape(self, key: object, make: Callable[[CallExtents], Shape]) -> int:
        """The index of a shape, the same for the same key."""
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = len(self.now.shapes)
            self._rule(lambda known: known.shapes.append(make(known)))
        return found

    def _array(self, key: object, make: Callable[[CallExtents], t.Array]) -> int:
        found = self._arrays.get(key)
        if found is None:
            found = self._arrays[key] = len(self.now.arrays)
            self._rule(lambda known: known.arrays.append(make(known)))
        return found

    def _of_buffer(self, buffer: t.Buffer) -> int:
        """The shape of all of a buffer."""
        if buffer.kind == "temporary":
            laid = self.given.laid.get(buffer)
            if laid is not None and buffer not in self._buffers:
                self._buffers[buffer] = self._shape(laid, lambda known: known.of(laid))
            return self._buffers[buffer]
        if buffer.derived is not None:
            return self._of_array(self._whole(buffer))
        if buffer.kind == "constant":
            shape = buffer.phantom.shape
            return self._shape(("constant", shape), lambda _: shape)
        place, kind = buffer.place, "argument" if buffer.place < self.given.extents.given else "outside"
        return self._shape((kind, self._patterns[place]), lambda known: known.outlines[place].shape)

    def _whole(self, buffer: t.Buffer) -> int:
        """The array of a buffer."""
        place, dtype = buffer.place, buffer.dtype.numpy
        if buffer.kind == "argument":
            return self._array(buffer, lambda known: known.outlines[place])
        if buffer.derived is not None:
            return self._array(buffer, lambda known: known.of(buffer.derived))
        if buffer.kind == "constant":
            return self._array(buffer, lambda known: known.whole(buffer.phantom))
        at = self._of_buffer(buffer)
        return self._array(buffer, lambda known: known.whole(t.phantom(known.shapes[at], dtype)))

    def _part(self, buffer: t.Buffer, steps: Sequence[t.Step]) -> int:
        """A view of a buffer, which has 0, 1 or more elements along each axis as it has now."""
        base = self._whole(buffer)
        if not steps:
            return base
        now = t.stepped(self.now.arrays[base], steps)
        alike, form = [min(extent, 2) for extent in now.shape], _form(now)
        origins: list[Any] = [getattr(each, "origin", None) or each for each in steps]
        is_sized = any(getattr(each, "is_sized", False) for each in origins)

        def part(known: CallExtents) -> t.Array:
            array = known.arrays[base]
            for step in origins:
                array = (step.at(known) if is_sized else step)(array)
            if [extent if extent < 2 else 2 for extent in array.shape] != alike or _form(array) != form:
                raise OtherShapesError
            return array

        return self._array((buffer, tuple(map(_key, steps))), part)

    def _of_leaf(self, leaf: t.Leaf) -> int:
        """The shape of what is read."""
        assert leaf.buffer is not None, "an array"
        return self._of_part(leaf.buffer, leaf.steps)

    def _of_part(self, buffer: t.Buffer, steps: Sequence[t.Step]) -> int:
        if not steps:
            return self._of_buffer(buffer)
        return self._of_array(self._part(buffer, steps))

    def _of_array(self, at: int) -> int:
        return self._shape(("array", at), lambda known: known.arrays[at].shape)

    def _joined(self, leaves: Sequence[t.Leaf]) -> int:
        """The shape of a value over some leaves."""
        found = tuple(dict.fromkeys(self._of_leaf(each) for each in leaves if each.buffer is not None))
        if len(found) == 1:
            return found[0]

        def joined(known: CallExtents) -> Shape:
            shape: Shape = ()
            for at in found:
                both = layouts.common_shape(shape, known.shapes[at])
                if isinstance(both, int):
                    raise OtherShapesError
                shape = both
            return shape

        return self._shape(frozenset(found), joined)

    def _kept(self, at: int, axes: tuple[int, ...]) -> int:
        """A shape with one element along some axes."""

        def kept(known: CallExtents) -> Shape:
            return tuple([1 if axis in axes else extent for axis, extent in enumerate(known.shapes[at])])

        return self._shape((at, axes), kept)

    def _check(self, at: int, other: int, holds: Callable[[Shape, Shape], bool] = tuple.__eq__) -> None:
        """What must be true of two shapes."""

        def check(known: CallExtents) -> None:
            if not holds(known.shapes[at], known.shapes[other]):
                raise OtherShapesError

        if at != other or holds is not tuple.__eq__:
            self._rule(check)

    def _check_writes(self) -> None:
        """What is written overlaps with other views of the same memory as it does now."""
        used: dict[int, set[int]] = {}
        written: dict[int, set[int]] = {}
        for statement in self.given.statements:
            views = [(leaf.buffer, leaf.steps) for leaf in self.given.reads[statement] if leaf.buffer is not None]
            if isinstance(statement, t.Write):
                views.append((statement.buffer, statement.steps))
                part = self._part(statement.buffer, statement.steps)
                written.setdefault(statement.buffer.group, set()).add(part)
            for buffer, steps in views:
                used.setdefault(buffer.group, set()).add(self._part(buffer, steps))
        pairs = [(one, other) for group in written for one in written[group] for other in used[group] - {one}]

        def overlaps(known: CallExtents) -> list[bool]:
            return [np.may_share_memory(known.arrays[one], known.arrays[other]) for one, other in pairs]

        if pairs:
            now = overlaps(self.now)
            self._condition(lambda known: overlaps(known) == now)

    def _check_longer(self, at: int, axes: Sequence[int], most: int) -> None:
        self._check(at, at, lambda shape, _: exceeds(shape, axes, most))

    # --- statements --------------------------------------------------------------------------------------------------

    def _call(self, call: t.LibraryCall, leaves: Sequence[t.Leaf]) -> None:
        again = call.again
        assert again is not None, "templates have no others"
        operands = [None if each.buffer is None else self._part(each.buffer, each.steps) for each in leaves]
        alike = [[min(extent, 2) for extent in each.phantom.shape] for each in call.buffers]
        forms, dtypes = [_form(each.phantom) for each in call.buffers], [each.dtype.numpy for each in call.buffers]
        numbers: list[Any] = [self.given.numbers.get(each, each.phantom) for each in leaves]
        first = len(self.now.arrays)

        def value(known: CallExtents, at: int) -> Any:
            return known.of(numbers[at]) if isinstance(numbers[at], Derived) else numbers[at]

        def make(known: CallExtents) -> None:
            given = [value(known, n) if at is None else known.arrays[at] for n, at in enumerate(operands)]
            for number, seen in enumerate(again(given)):
                array = t.laid_out(seen, dtypes[number])
                kinds = [extent if extent < 2 else 2 for extent in seen.shape]
                if kinds != alike[number] or _form(array) != forms[number]:
                    raise OtherShapesError
                known.arrays.append(array)

        self._rule(make)
        for at, buffer in enumerate(call.buffers, first):
            self._arrays[buffer] = at
            self._buffers[buffer] = self._of_array(at)

    def _statement(self, statement: t.Computation, leaves: Sequence[t.Leaf]) -> None:
        derived = self.given.shapes.get(statement)
        at = self._joined(leaves) if derived is None else self._shape(derived, lambda known: known.of(derived))
        if isinstance(statement, t.Write):
            part = self._stored[statement] = self._of_part(statement.buffer, statement.steps)
            self._check(at, part, lambda shape, whole: layouts.common_shape(shape, whole) == whole)
            return
        self._stored[statement] = at
        self._buffers[statement.buffer] = self._kept(at, statement.axes) if isinstance(statement, t.Total) else at

    def _condition(self, holds: Callable[[CallExtents], bool]) -> None:
        def check(known: CallExtents) -> None:
            if not holds(known):
                raise OtherShapesError

        self._rule(check)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _kernel(self, number: int, step: KernelStep) -> None:
        group = step.group
        if step.reverse:
            raise OtherShapesError
        walk = self._stored[group.statements[0]]
        kept = walk if group.axes is None else self._kept(walk, group.axes)
        self._check_kinds(group, walk, kept)
        if group.is_staged:
            self._check_rows(step, walk)
        self._operands(step)
        for statement, slot in zip(step.stored, step.outputs, strict=True):
            wanted = kept if group.kinds[statement] == "totals" else walk
            buffer = statement.buffer
            steps = statement.steps if isinstance(statement, t.Write) else ()
            self._use(slot, buffer, steps, reshaped=wanted)
        if any(each.order is not None for each in step.fresh):
            raise OtherShapesError
        new = {self.slots.known.get(each.buffer): each.buffer for each in step.stored}
        if step.fresh:
            self.template.made[number] = [(each, self._of_buffer(new[each.slot])) for each in step.fresh]
        if step.makes:
            pairs = zip(step.makes, step.stored, strict=True)
            self.template.shaped[number] = [
                (slot, kept if group.kinds[each] == "totals" else walk, self._of_buffer(each.buffer))
                for (slot, _), each in pairs
            ]

    def _check_kinds(self, group: Group, walk: int, kept: int) -> None:
        """All statements are about what they were about; see `Group.kind_of`."""
        for each in group.statements:
            at = self._stored[each]
            if group.kinds[each] == "elements" or isinstance(each, t.Total):
                self._check(walk, at)
            else:
                self._check(walk, at, tuple.__ne__)
                self._check(kept, at, lambda one, other: squeezed(one) == squeezed(other))

    def _check_rows(self, step: KernelStep, walk: int) -> None:
        """Rows are seen to be one chunk each; see `KernelStep.has_short_rows`."""
        if not step.has_short_rows:
            raise OtherShapesError
        axes, beside = step.group.axes or (), step.group.beside
        arrays = [leaf for leaf in step.leaves if leaf.buffer is not None and leaf.input not in beside]
        shapes = [self._of_leaf(leaf) for leaf in arrays]
        is_dense = walk in shapes and all(leaf.phantom.flags.c_contiguous for leaf in arrays)
        most = chunk_of(GROUP, is_last=step.are_last)
        if len(axes) > 1 and not (is_dense and {*shapes} == {walk}):
            raise OtherShapesError
        limit = most if is_dense else min(most, ROUNDS)
        self._check(walk, walk, lambda shape, _: prod([shape[axis] for axis in axes]) <= limit)

    def _operands(self, step: PlanStep) -> None:
        """The slots of what a step reads; kernels of totals read arrays in the shape of their walk."""
        group, walk = (
            (step.group, self._stored[step.group.statements[0]]) if isinstance(step, KernelStep) else (None, -1)
        )
        repeated = walk if group is not None and group.axes is not None else None
        for leaf, slot in zip(step.leaves, step.inputs, strict=True):
            if leaf.buffer is None:
                if leaf in self.given.counts:
                    leaves, axes = self.given.counts[leaf]
                    self.template.counts.append((slot, self._joined(leaves), axes))
                elif leaf in self.given.numbers:
                    self.template.numbers.append((slot, self.given.numbers[leaf]))
            elif group is not None and leaf.input in group.beside:
                inner, statement = group.finished[leaf.input]
                kept = self._kept(walk, group.axes or ())
                self._use(slot, leaf.buffer, inner.steps, self._stored[statement], kept)
            else:
                self._use(slot, leaf.buffer, leaf.steps, repeated)

    def _use(
        self, slot: int, buffer: t.Buffer, steps: Sequence[t.Step], repeated: int | None = None,
        reshaped: int | None = None,
    ) -> None:  # fmt: skip
        """A step uses a view of a buffer in some slot, or all of it: repeated to a shape, then in another one."""
        view = self.slots.views.get(slot)
        if view is not None:
            arena = buffer if buffer in self.slots.arena.places else None
            known = self.template.views.setdefault(slot, (view, arena, []))
            if view.before or known[1] is not arena:
                raise OtherShapesError
            known[2].append(self._place(buffer, steps, repeated, reshaped))
            return
        at = self._of_buffer(buffer)
        if steps or repeated not in (None, at) or reshaped not in (None, at):
            place, whole = self._place(buffer, steps, repeated, reshaped), self._place(buffer, (), None, None)

            def check(known: CallExtents) -> None:
                if place(known) != whole(known):
                    raise OtherShapesError

            self._rule(check)

    def _returned(self, part: Returned, buffer: t.Buffer, steps: Sequence[t.Step]) -> None:
        """A part of a buffer is returned, or all of it."""
        view = self.views[part]
        if view is None:
            self._use(self.slots.buffer(buffer), buffer, steps)
            self.template.whole.append(part)
        elif view.before or view.slot == self.slots.arena_slot:
            raise OtherShapesError
        else:
            place, whole = self._place(buffer, steps, None, None), self._place(buffer, (), None, None)
            self._condition(lambda known: place(known) != whole(known))
            self.template.returned.append((part, view, place))

    def _place(self, buffer: t.Buffer, steps: Sequence[t.Step], repeated: int | None, reshaped: int | None) -> View:
        """Where a view of a buffer lies that is repeated to a shape, and then takes another one."""
        at, nbytes = self._of_buffer(buffer), buffer.dtype.nbytes
        array = base = -1
        if steps or buffer.kind != "temporary" or buffer in self._arrays:
            array, base = self._part(buffer, steps), self._whole(buffer)

        def place(known: CallExtents) -> Place:
            if array < 0:
                shape = known.shapes[at]
                found: Place = (0, shape, strides_in_order(shape, range(len(shape)), nbytes), False)
            else:
                found = place_of(known.arrays[base], known.arrays[array])
            if repeated is not None:
                found = repeated_to(found, known.shapes[repeated])
            return found if reshaped is None else reshaped_to(found, known.shapes[reshaped], nbytes)

        return place

    # --- launches ----------------------------------------------------------------------------------------------------

    def _launches(self) -> None:
        """When temporaries are needed, and that steps share launches as they do now."""
        launches: list[list[PlanStep]] = []
        for step in self.steps:
            if isinstance(step, CallStep) or not step.place:
                launches.append([])
            launches[-1].append(step)
        places, template = self.slots.arena.places, self.template
        written = [[each.buffer for step in one for each in step.stored if each.buffer in places] for one in launches]
        read = [[leaf.buffer for step in one for leaf in step.leaves if leaf.buffer in places] for one in launches]
        template.uses = (written, read)
        template.rooms = [(each, self._of_buffer(each), each.dtype.nbytes) for each in places]
        shared = [step for step in self.steps if isinstance(step, KernelStep) and step.group.axes is None]
        if len(shared) > 1:
            self._check_small(shared)

    def _check_small(self, steps: Sequence[KernelStep]) -> None:
        """Each step moves few bytes, and all store few, so that size keeps none apart; see `together`."""
        stored, moved = Counter[int](), []
        for step in steps:
            own = Counter[int]()
            for each in step.stored:
                own[self._stored[each]] += each.buffer.dtype.nbytes
            stored += own
            for leaf in step.leaves:
                if leaf.buffer is not None:
                    own[self._of_leaf(leaf)] += leaf.buffer.dtype.nbytes
            moved.append(own)
        sums = {tuple(each.items()) for each in (stored, *moved)}

        def check(known: CallExtents) -> None:
            sizes = [prod(shape) for shape in known.shapes]
            if any(sum([sizes[at] * nbytes for at, nbytes in each]) > SMALL for each in sums):
                raise OtherShapesError

        self._rule(check)


def exceeds(shape: Shape, axes: Sequence[int], most: int) -> bool:
    """Whether rows have more elements than a chunk. All other reasons for several walks do not depend on extents."""
    return prod([shape[axis] for axis in axes]) > most


def _key(step: t.Step) -> object:
    """The same for the same view of the same array."""
    known = getattr(step, "origin", None) or step
    return repr(known) if isinstance(known, t.Indexed) else known


def _form(array: t.Array) -> object:
    """What the layout of new arrays, and kernels over rows, ask of an array."""
    return t.outermost_first(array), array.flags.c_contiguous
