"""A plan for calls of other extents, made of one that was traced: the same kernels over the same slots.

Nothing is traced, scheduled or compiled. This needs a trace that depends on no extent, but as its conditions say: all
views are data (`ViewOf`, `Indexed` that are alike), library calls say what they make of operands of other extents
(`LibraryCall.again`), and all temporaries are dense in C order. What is equal by accident of the traced call's extents
must not be taken for equal: calls that share a plan in this way agree in which extents are 0, 1 or equal to each other,
and every shape is worked out again from those of the arguments.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from math import prod
from typing import Any

from fusec.arguments import layouts
from fusec.arguments.operands import without_memory
from fusec.base.records import dataclass, replace
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.slots import Slots
from fusec.fusion.schedule.groups import Group, extents_of
from fusec.fusion.schedule.placed import OtherShapesError, PlacedTemplate
from fusec.fusion.schedule.placing_rules import PlacedStatements, placed_template
from fusec.fusion.schedule.plan import KernelStep, PlanBuilder
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.conditions import ANYWHERE, stepped
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace import Trace
from fusec.ir.reductions import ROUNDS

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
    long: Sequence[tuple[t.Total, int]]  # totals of rows that do not fit a chunk, and the elements that do
    outlines: Sequence[Any]  # of the traced call
    memory: object  # that its plan uses, see `_memory`
    _rules: PlacedTemplate | None = None
    _tries: int = MOST_TRIES  # to find rules, which accidents of extents may prevent

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

    def resized(self, outlines: Sequence[Any], on_host: bool) -> tuple[list[PlanStep], HostMemory]:
        """The steps and the memory of calls of arrays like these, by place. Raises OtherShapesError.

        on_host: by rules if there are some, without new leaves and statements, which devices ask for.
        """
        if on_host and self._rules is not None:
            with suppress(OtherShapesError, ValueError, IndexError):
                return self._rules.fitted(outlines)
        if not self.is_sound:
            raise OtherShapesError
        made, steps, slots = self.placed_again(outlines)
        if on_host and self._rules is None and self._tries:
            self._tries -= 1
            self._rules = self._noted(made, outlines, steps, slots)
        return steps, HostMemory.of(slots)

    def _noted(
        self, made: _Resized, outlines: Sequence[Any], steps: Sequence[PlanStep], slots: Slots
    ) -> PlacedTemplate | None:
        """The rules of what was made for a call."""
        trace, leaf = self.trace, made.leaf
        new: dict[Any, Any] = {**made.statements, **made.calls}
        reads: dict[t.Statement, Sequence[t.Leaf]] = {
            new[old]: list(map(leaf, each)) for old, each in self._reads.items()
        }
        for old, call in made.calls.items():
            reads[call] = [leaf(trace.leaves[each]) for each in old.operands]
        numbers = [each for step in self.steps for each in step.leaves if each.input in trace.counts]
        counts = {
            leaf(each): (list(map(leaf, over)), axes) for each in numbers for over, axes in (trace.counts[each.input],)
        }
        long: Any = [(made.statements[total], most) for total, most in self.long]
        conditions = [
            replace(each, parts=[(list(map(leaf, leaves)), *rest) for leaves, *rest in each.parts])
            for each in trace.conditions
        ]
        given = PlacedStatements([new[each] for each in trace.statements], reads, counts, long, conditions)
        return placed_template(given, outlines, steps, slots)

    def placed_again(self, outlines: Sequence[Any]) -> tuple[_Resized, list[PlanStep], Slots]:
        """All parts, derived and placed for calls of arrays like these. Raises OtherShapesError."""
        made = _Resized(self.trace, outlines, self._reads)
        try:
            steps = made.steps(self.steps)
        except (ValueError, IndexError):  # NumPy's: shapes do not broadcast, no such view
            raise OtherShapesError from None
        for total, most in self.long:
            if not any(made.statements[total].value.shape[axis] > most for axis in total.axes):
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


def template_of(builder: PlanBuilder, placed: Sequence[Any], outlines: Sequence[Any]) -> PlanTemplate | None:
    """What makes plans for other extents; None if the trace depends on some."""
    trace, prior, steps = builder.trace, builder.prior, builder.unplaced
    if trace.has_looked or len(trace.notes) > trace.lasting_notes or not steps or prior is None:
        return None
    totals = {(each.value.shape, each.axes): each for each in trace.statements if isinstance(each, t.Total)}
    long = [(totals[rows], most) for rows, most in builder.unstaged.items() if rows in totals and most > ROUNDS]
    if len(long) < len(builder.unstaged):  # they may be walked along another axis in a call of other extents
        return None
    if not all(map(_is_alike, trace.statements)) or not all(map(_is_plain, trace.leaves.values())):
        return None
    made = {buffer for each in trace.statements for buffer in t.buffers_of(each)}
    asked = [leaf for each in trace.conditions for leaves, *_ in each.parts for leaf in leaves]
    if any(each.buffer and each.buffer.kind == "temporary" and each.buffer not in made for each in asked):
        return None
    known = [None if each is None else without_memory(each) for each in outlines]
    memory = _memory(placed, builder.slots)
    return PlanTemplate(trace.without_call(), steps, tuple(builder.needed), prior, placed, long, known, memory)


def _memory(steps: Sequence[PlanStep], slots: Slots) -> tuple[object, ...]:
    """The arrays of steps that are not the caller's, and where others lie."""
    own = [(each.fresh, each.views, each.makes) if isinstance(each, KernelStep) else (each.views,) for each in steps]
    return own, dict(slots.views), slots.arena.nbytes


def _is_alike(statement: t.Statement) -> bool:
    """Whether a statement is about the same positions in calls of all extents."""
    if isinstance(statement, t.LibraryCall):
        return statement.again is not None
    return size_of(statement.value.expr).kinds <= ANYWHERE


def _is_plain(leaf: t.Leaf) -> bool:
    """Whether a leaf is the same in calls of all extents."""
    return 0 not in leaf.phantom.shape and all(
        isinstance(step, t.ViewOf) or (isinstance(step, t.Indexed) and step.is_alike) for step in leaf.steps
    )


class _Resized:
    """The parts of a trace in other shapes."""

    def __init__(self, trace: Trace, outlines: Sequence[Any], reads: Reads) -> None:
        self.trace, self.old, self.outlines, self.reads = copy.copy(trace), trace, outlines, reads
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
        for condition in self.old.conditions:
            if not condition.check([self._shape(leaves) for leaves, _, _ in condition.parts]):
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
            assert buffer.kind != "temporary", "statements come in order"
            if buffer.kind == "constant":
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
                part = stepped(buffer.phantom, leaf.steps)
                _check_alike(part, leaf.phantom)
                found = replace(leaf, phantom=part, buffer=buffer)
            self.leaves[leaf] = found
        return found

    def _call(self, call: t.LibraryCall) -> t.LibraryCall:
        """The same call of a library. Raises OtherShapesError."""
        assert call.again is not None, "templates have no others"
        made = call.again([self.leaf(self.old.leaves[each]).phantom for each in call.operands])
        for buffer, seen in zip(call.buffers, made, strict=True):
            _check_alike(seen, buffer.phantom)
            self.buffers[buffer] = replace(buffer, phantom=t.laid_out(seen, buffer.dtype.numpy))
        return replace(call, buffers=tuple(self.buffers[each] for each in call.buffers))

    def _number(self, leaf: t.Leaf) -> t.Leaf:
        counted = self.old.counts.get(leaf.input)
        if counted is None:
            return leaf
        leaves, axes = counted
        shape = self._shape(leaves)
        return replace(leaf, number=("known", prod(shape[axis] for axis in axes)))

    def _shape(self, leaves: Sequence[t.Leaf]) -> Shape:
        """That of a value over some leaves."""
        found: Shape = ()
        for shape in {self.leaf(each).phantom.shape for each in leaves}:
            joined = layouts.common_shape(found, shape)
            if isinstance(joined, int):
                raise OtherShapesError
            found = joined
        return found

    def _statement(self, statement: t.Computation) -> t.Computation:
        shape = self._shape(self.reads[statement])
        value = t.ArrayValue(statement.value.scalar, t.phantom(shape, statement.value.dtype.numpy))
        if isinstance(statement, t.Write):
            buffer = self.buffer(statement.buffer)
            part = stepped(buffer.phantom, statement.steps)
            return t.Write(buffer, statement.steps, part, value, statement.version)
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
