"""A plan for calls of other extents, derived from a traced one: the same kernels over the same slots.

Nothing is traced, scheduled or compiled. The trace may depend on extents only as its conditions say. All views must be
data (`ViewOf`, or `Indexed` that are alike). Library calls must say what they make of operands of other extents
(`LibraryCall.again`). Shapes that do not follow from leaves must follow from those of arguments (`TraceExtents`), and
temporaries must be dense in C order. Extents may be equal by accident in the traced call. So calls share a plan in this
way only if they agree in which extents are 0, 1 or equal to each other, and every shape is derived again from those of
the arguments.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod
from typing import Any

from fusec.arguments import layouts
from fusec.arguments.layouts import joined_shape
from fusec.arguments.operands import without_memory
from fusec.base.records import dataclass, field, replace
from fusec.errors import FusecError
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import ReturnedParts, ReturnedViews
from fusec.fusion.memory.slots import Slots
from fusec.fusion.schedule.groups import Group, extents_of
from fusec.fusion.schedule.placed import Fitted, PlacedTemplate
from fusec.fusion.schedule.placing_rules import PlacedStatements, exceeds, placed_template
from fusec.fusion.schedule.plan import KernelStep, PlanBuilder
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.conditions import ANYWHERE, hold
from fusec.fusion.trace.derived import CallShapes, Derived, OtherShapesError, UnknownExtentsError
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace import Trace

MOST_TRIES = 4
Shape = tuple[int, ...]
PlanStep = KernelStep | CallStep
Reads = dict[t.Computation, list[t.Leaf]]
"""What each statement reads."""


@dataclass(eq=False)
class PlanTemplate:
    """A traced plan before its operands had slots. prior: buffers that results gave slots before kernels did."""

    trace: Trace
    steps: Sequence[PlanStep]
    needed: Sequence[t.Buffer]
    prior: Sequence[t.Buffer]
    placed: Sequence[PlanStep]
    shapes: Mapping[t.Computation, Derived]  # of values that take elements at other positions
    long: Sequence[tuple[t.Total, int]]  # totals of rows that do not fit a chunk, and the elements that do
    outlines: Sequence[Any]  # of the traced call
    memory: object  # that its plan uses, see `_memory`
    parts: ReturnedParts
    _rules: list[PlacedTemplate] = field(default_factory=list)
    _tries: int = MOST_TRIES  # to find rules, which accidents of extents may prevent, and which may ask for some sizes

    @cached_property
    def is_sound(self) -> bool:
        """Whether the traced call's extents give its plan: what they do not give again depends on more than extents."""
        try:
            return _memory(*self.placed_again(self.outlines)[1:]) == self.memory
        except OtherShapesError:
            return False

    @cached_property
    def _reads(self) -> Reads:
        leaves = self.trace.leaves
        computations = [each for each in self.trace.statements if not isinstance(each, t.LibraryCall)]
        return {each: [leaves[name] for name in t.leaves_of(each.value.expr)] for each in computations}

    def resized(self, outlines: Sequence[Any], on_host: bool) -> Fitted:
        """The plan of calls of arrays like these, by place. Raises OtherShapesError.

        on_host: by rules if there are some, without new leaves and statements, which devices ask for.
        """
        for fitted in (PlacedTemplate.fitted_again, PlacedTemplate.fitted) if on_host else ():
            for rules in self._rules:
                with suppress(OtherShapesError, ValueError, IndexError, FusecError):
                    found = fitted(rules, outlines)
                    if found is not None:
                        return found
        if not self.is_sound:
            raise OtherShapesError
        made, steps, slots = self.placed_again(outlines)
        views = made.views(self.parts, slots)
        if on_host and self._tries:
            self._tries -= 1
            new = self._noted(made, outlines, steps, slots, views)
            self._rules += [] if new is None else [new]
        return Fitted(steps, HostMemory.of(slots), views)

    def _noted(
        self, made: _Resized, outlines: Sequence[Any], steps: Sequence[PlanStep], slots: Slots, views: ReturnedViews
    ) -> PlacedTemplate | None:
        """The rules of what was made for a call."""
        trace, leaf = self.trace, made.leaf
        new: dict[Any, Any] = {**made.statements, **made.calls}
        reads: dict[t.Statement, Sequence[t.Leaf]] = {
            new[old]: list(map(leaf, each)) for old, each in self._reads.items()
        }
        for old, call in made.calls.items():
            reads[call] = [leaf(trace.leaves[each]) for each in old.operands]
        counted = [each for step in self.steps for each in step.leaves if each.input in trace.counts]
        counts = {
            leaf(each): (list(map(leaf, over)), axes) for each in counted for over, axes in (trace.counts[each.input],)
        }
        long: Any = [(made.statements[total], most) for total, most in self.long]
        shapes = {new[each]: derived for each, derived in self.shapes.items()}
        known = trace.extents.numbers
        numbers = {leaf(each): known[each.input] for step in self.steps for each in step.leaves if each.input in known}
        statements = [new[each] for each in trace.statements]
        parts = {each: (made.buffer(buffer), made._steps(steps)) for each, (buffer, steps) in self.parts.items()}
        laid = {made.buffer(each): derived for each, derived in trace.extents.laid.items()}
        given = PlacedStatements(
            statements, reads, counts, long, trace.conditions, trace.extents, shapes, numbers, parts, laid
        )  # fmt: skip
        return placed_template(given, outlines, steps, slots, views)

    def placed_again(self, outlines: Sequence[Any]) -> tuple[_Resized, list[PlanStep], Slots]:
        """All parts, derived and placed for calls of arrays like these. Raises OtherShapesError."""
        made = _Resized(self.trace, outlines, self._reads, self.shapes)
        try:
            steps = made.steps(self.steps)
        except (ValueError, IndexError):  # NumPy's: shapes do not broadcast, no such view
            raise OtherShapesError from None
        for total, most in self.long:
            if not exceeds(made.statements[total].value.shape, total.axes, most):
                raise OtherShapesError
        builder = PlanBuilder(made.trace, [made.buffer(each) for each in self.needed])
        for each in self.prior:
            builder.slots.buffer(made.buffer(each))
        if any(builder.longest(step) for step in steps if isinstance(step, KernelStep)):
            raise OtherShapesError
        placed = builder.placed(steps)
        if list(map(_operands, placed)) != list(map(_operands, self.placed)):
            raise OtherShapesError
        return made, placed, builder.slots


def _operands(step: PlanStep) -> tuple[object, ...]:
    """The slots of a step, and how many of its results it makes itself."""
    return step.inputs, step.outputs, step.releases, len(step.makes) if isinstance(step, KernelStep) else -1


def template_of(
    builder: PlanBuilder, placed: Sequence[Any], outlines: Sequence[Any], parts: ReturnedParts
) -> PlanTemplate | None:
    """What makes plans for other extents; None if the trace depends on some. parts: of buffers that are returned."""
    trace, prior, steps = builder.trace, builder.prior, builder.unplaced
    if trace.has_looked or trace.extents.is_unknown or not steps or prior is None:
        return None
    totals = {(each.value.shape, each.axes): each for each in trace.statements if isinstance(each, t.Total)}
    views: list[Any] = [each for each in trace.statements if isinstance(each, t.Write)]
    views += [leaf for leaf in trace.leaves.values() if leaf.buffer is not None]
    unstaged = [(*rows, most) for rows, most in builder.unstaged.items() if rows in totals]
    long = [(totals[shape, axes], most) for shape, axes, most in unstaged if axes and exceeds(shape, axes, most)]
    calls = [each for each in trace.statements if isinstance(each, t.LibraryCall)]
    if any(each.again is None for each in calls) or not all(map(_is_plain, trace.leaves.values())):
        return None
    if not all(_are_alike(steps) for _, steps in parts.values()):
        return None
    if any(view.steps and view.buffer.group in trace.versions and any(map(_is_sized, view.steps)) for view in views):
        return None
    try:
        shapes = _shapes(trace)
    except UnknownExtentsError:
        return None
    known = [None if each is None else without_memory(each) for each in outlines]
    memory = _memory(placed, builder.slots)
    needed = tuple(builder.needed)
    return PlanTemplate(trace.without_call(), steps, needed, prior, placed, shapes, long, known, memory, parts)


def _memory(steps: Sequence[PlanStep], slots: Slots) -> tuple[object, ...]:
    """The arrays of steps that are not the caller's, and where others lie."""
    own = [(each.fresh, each.views, each.makes) if isinstance(each, KernelStep) else (each.views,) for each in steps]
    return own, dict(slots.views), slots.arena.nbytes


def _shapes(trace: Trace) -> dict[t.Computation, Derived]:
    """The shapes of values that do not follow from what the values read. Raises UnknownExtentsError."""
    found: dict[t.Computation, Derived] = {}
    trace.extents.learn_again()
    for each in trace.statements:
        if not isinstance(each, t.LibraryCall):
            size = size_of(each.value.expr)
            read = [trace.leaves[name].phantom.shape for name in size.leaves]
            if not size.kinds <= ANYWHERE or joined_shape(read) != each.value.shape:
                found[each] = trace.extents.of_value(each.value)
    return found


def _is_sized(step: t.Step) -> bool:
    return bool(getattr(step, "is_sized", False))


def _is_plain(leaf: t.Leaf) -> bool:
    """Whether a leaf is the same in calls of all extents."""
    return 0 not in leaf.phantom.shape and _are_alike(leaf.steps)


def _are_alike(steps: Sequence[t.Step]) -> bool:
    """Whether steps are the same views in calls of all extents."""
    return all(isinstance(step, t.ViewOf) or (isinstance(step, t.Indexed) and step.is_alike) for step in steps)


class _Resized:
    """The parts of a trace in other shapes."""

    def __init__(
        self, trace: Trace, outlines: Sequence[Any], reads: Reads, shapes: Mapping[t.Computation, Derived]
    ) -> None:
        self.trace, self.old, self.outlines, self.reads = copy.copy(trace), trace, outlines, reads
        self.call, self.shapes = CallShapes(outlines), shapes
        self.buffers: dict[t.Buffer, t.Buffer] = {}
        self.leaves: dict[t.Leaf, t.Leaf] = {}
        self.statements: dict[t.Computation, t.Computation] = {}
        self.calls: dict[t.LibraryCall, t.LibraryCall] = {}

    def steps(self, steps: Sequence[PlanStep]) -> list[PlanStep]:
        """The kernels and calls over these parts. Raises OtherShapesError."""
        for statement in self.old.statements:
            if isinstance(statement, t.LibraryCall):
                self.calls[statement] = self._call(statement)
            else:
                self.statements[statement] = self._statement(statement)
        if not hold(self.call, self.old.conditions, self.old.extents.agreements):
            raise OtherShapesError
        return list(map(self._step, steps))

    def _step(self, step: PlanStep) -> PlanStep:
        if isinstance(step, CallStep):
            return CallStep(self.calls[step.call], list(map(self.leaf, step.leaves)))
        group = self._group(step.group)
        return KernelStep(
            group, step.kernel, list(map(self.leaf, step.leaves)), [self.statements[each] for each in step.stored]
        )

    def buffer(self, buffer: t.Buffer) -> t.Buffer:
        """An argument as it is in this call, a constant, or a temporary whose statement has come."""
        found = self.buffers.get(buffer)
        if found is None:
            laid = self.old.extents.laid.get(buffer)
            assert buffer.kind != "temporary" or laid is not None, "statements come in order"
            if laid is not None:
                found = replace(buffer, phantom=t.phantom(self.call.of(laid), buffer.dtype.numpy))
            elif buffer.derived is not None:
                array = self.call.of(buffer.derived)
                found = replace(buffer, phantom=array, array=array)
            elif buffer.kind == "constant":
                found = buffer
            else:  # plans keep no arrays alive
                found = replace(buffer, phantom=without_memory(self.outlines[buffer.place]))
            self.buffers[buffer] = found
        return found

    def leaf(self, leaf: t.Leaf) -> t.Leaf:
        """What is read instead. Raises OtherShapesError if it has one element, or none, for other reasons."""
        found = self.leaves.get(leaf)
        if found is None:
            if leaf.buffer is None:
                found = self._number(leaf)
            else:
                buffer = self.buffer(leaf.buffer)
                steps = self._steps(leaf.steps)
                part = t.stepped(buffer.phantom, steps)
                _check_alike(part, leaf.phantom)
                found = replace(leaf, phantom=part, buffer=buffer, steps=steps)
            self.leaves[leaf] = found
        return found

    def views(self, parts: ReturnedParts, slots: Slots) -> ReturnedViews:
        """Where parts are that are returned. Raises OtherShapesError."""
        try:
            made = [(self.buffer(buffer), self._steps(steps)) for buffer, steps in parts.values()]
            found = [slots.view(buffer, t.stepped(buffer.phantom, steps)) for buffer, steps in made]
        except (ValueError, IndexError):  # NumPy's: no such view
            raise OtherShapesError from None
        return dict(zip(parts, found, strict=True))

    def _steps(self, steps: tuple[t.Step, ...]) -> tuple[t.Step, ...]:
        """The steps to a view, with the numbers that this call computes from extents."""
        known: Sequence[Any] = steps
        return tuple([each.at(self.call) if _is_sized(each) else each for each in known])

    def _call(self, call: t.LibraryCall) -> t.LibraryCall:
        """The same call of a library. Raises OtherShapesError."""
        assert call.again is not None, "templates have no others"
        numbers = self.old.extents.numbers
        made = call.again(
            [
                self.call.of(numbers[each]) if each in numbers else self.leaf(self.old.leaves[each]).phantom
                for each in call.operands
            ]
        )
        for buffer, seen in zip(call.buffers, made, strict=True):
            _check_alike(seen, buffer.phantom)
            self.buffers[buffer] = replace(buffer, phantom=t.laid_out(seen, buffer.dtype.numpy))
        return replace(call, buffers=tuple(self.buffers[each] for each in call.buffers))

    def _number(self, leaf: t.Leaf) -> t.Leaf:
        counted = self.old.counts.get(leaf.input)
        derived = self.old.extents.numbers.get(leaf.input)
        if derived is not None:
            return replace(leaf, number=("known", self.call.of(derived)))
        if counted is None:
            return leaf
        leaves, axes = counted
        shape = self._shape(leaves)
        return replace(leaf, number=("known", prod(shape[axis] for axis in axes)))

    def _shape(self, leaves: Sequence[t.Leaf]) -> Shape:
        """That of a value over some leaves."""
        found = joined_shape({self.leaf(each).phantom.shape for each in leaves})
        if found is None:
            raise OtherShapesError
        return found

    def _statement(self, statement: t.Computation) -> t.Computation:
        derived = self.shapes.get(statement)
        shape = self._shape(self.reads[statement]) if derived is None else self.call.of(derived)
        value = t.ArrayValue(statement.value.scalar, t.phantom(shape, statement.value.dtype.numpy))
        if isinstance(statement, t.Write):
            buffer = self.buffer(statement.buffer)
            steps = self._steps(statement.steps)
            part = t.stepped(buffer.phantom, steps)
            if layouts.common_shape(shape, part.shape) != part.shape:
                raise OtherShapesError
            return t.Write(buffer, steps, part, value, statement.version)
        seen, dtype = value.phantom, statement.buffer.dtype.numpy
        if isinstance(statement, t.Total):
            seen = t.phantom(tuple(1 if axis in statement.axes else extent for axis, extent in enumerate(shape)), dtype)
        buffer = replace(statement.buffer, phantom=seen if seen.dtype == dtype else t.phantom(shape, dtype))
        self.buffers[statement.buffer] = buffer
        if isinstance(statement, t.Define):
            return t.Define(buffer, value)
        return t.Total(buffer, statement.op, value, statement.axes)

    def _group(self, group: Group) -> Group:
        """The same kernel. Raises OtherShapesError if its statements are no longer about the same elements."""
        statements = [self.statements[each] for each in group.statements]
        shape = extents_of(statements[0])
        if group.kinds[group.statements[0]] == "totals" and not isinstance(statements[0], t.Total):
            raise OtherShapesError
        made = replace(
            group, shape=shape, statements=statements, defined={}, arrays=set(), depths={},
            exprs=dict(zip(statements, map(group.exprs.__getitem__, group.statements), strict=True)),
            kinds=dict(zip(statements, map(group.kinds.__getitem__, group.statements), strict=True)),
            finished={
                name: (self.leaf(leaf), self.statements[each]) for name, (leaf, each) in group.finished.items()
            },
        )  # fmt: skip
        if any(made.kind_of(each) != made.kinds[each] for each in statements):
            raise OtherShapesError
        made.beside = {name: made.finishing(name, leaf, statement) for name, (leaf, statement) in made.finished.items()}
        for name, leaf in made.beside.items():
            _check_alike(leaf.phantom, group.beside[name].phantom)
            self.leaves[group.beside[name]] = leaf
        return made


def _check_alike(array: t.Array, other: t.Array) -> None:
    """Raise OtherShapesError unless the extents that are 0 or 1 are the same."""
    if [min(each, 2) for each in array.shape] != [min(each, 2) for each in other.shape]:
        raise OtherShapesError
