"""The trace of a tape: what gives new steps their forms, and plans their kernels."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments.operands import without_memory
from fusec.base.records import dataclass
from fusec.base.rounding_mode import default_rounding
from fusec.base.source import Span
from fusec.fusion.arguments import CallArguments
from fusec.fusion.functions.libraries import calls_plainly
from fusec.fusion.fuse import LOADED
from fusec.fusion.fused_plan import FusedPlan
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.recording import Numbers
from fusec.fusion.running import TracedRun
from fusec.fusion.trace import tracer
from fusec.fusion.trace.derived import Derived, UnknownExtentsError
from fusec.fusion.trace.extents import TraceExtents
from fusec.fusion.trace.trace import NeedsNumberError, recorded_by
from fusec.fusion.trace.trace_values import LibraryCall, Statement, Write
from fusec.fusion.trace.tracer import Tracer
from fusec.xp.forms import CPU, Device, Form, as_number, form_of
from fusec.xp.kinds import StepRule, TapeKind
from fusec.xp.loading import on_device
from fusec.xp.steps import Operation, read_by
from fusec.xp.trie import TapeState

assert LOADED  # NumPy's functions of traced arrays


class UntracedError(Exception):
    """A step has results that are no arrays."""


class TapeExtents(TraceExtents):
    """All that follows from the shapes of leaves, which are all given. In one kind, gaps are alike; Note [Kinds]."""

    def __init__(self, trace: Any) -> None:
        super().__init__(trace)
        self.given = sys.maxsize

    def note_writes(self, statements: Sequence[Statement]) -> None:
        """Note that parts of arrays take what is written to them, which plans see when they are made."""
        for each in statements:
            if isinstance(each, Write) and not (self._trace.has_looked or self.is_unknown):
                try:
                    self.agree(self.of_value(each.value), self.shape_of(self.array(each.buffer, each.steps)))
                except UnknownExtentsError:
                    self.is_unknown = True


@dataclass(frozen=True)
class StepPlace(Span):
    """The user's line of a step when it was traced; at: the place of the step, by which tapes know their own lines."""

    at: int


class TapeRun(TracedRun):
    """A run of the steps of a tape, which goes on as the tape does. at: the state that it has come to.

    may_fail: whether the step that was taken last may fail for some elements.
    """

    may_fail = False

    def __init__(self, root: TapeState, pattern: Any = None) -> None:
        super().__init__("xp", CallArguments((), {}), frozenset(), Numbers(), pattern)
        self.tracers: list[Any] = []
        self.live: Sequence[int] = ()
        self.at, self.device = root, CPU
        self.extents = self.trace.extents = TapeExtents(self.trace)
        self.results: Sequence[Any] = ()  # of the step that was taken last
        self.numbers: set[int] = set()  # the places of arrays instead of which NumPy has numbers
        self.are_numbers: Sequence[bool] = ()  # whether NumPy has a number instead of each
        self.told = 0, 0  # how many conditions and agreements the rules of this run have

    def go(self, node: TapeState, slots: Mapping[int, Any]) -> None:
        """Take all steps to a state."""
        for each in node.path(self.at.depth):
            if type(each.step) is Form:
                self.device = each.device
                self.numbers |= {len(self.tracers)} if each.step.is_number else set()
                self.tracers.append(self._leaf(slots[each.start]))
            else:
                self.take(each.step, [slots[at] for at in each.numbers()])
            self.at = each

    def take(self, step: Any, values: Sequence[Any]) -> tuple[tuple[Form | None, ...], Any]:
        """Take one step. values: those of its numbers.

        Returns the forms of its results, with None for its numbers, and a function that makes one object of several
        results, such as a tuple; None for a single result.
        """
        before, computed = len(self.trace.statements), len(self.trace.numbers)
        with default_rounding(), recorded_by(self.recording):
            numbers = [*map(self._leaf, values)]
            if type(step) is Operation:
                found = step.run(self.tracers, numbers)
            else:
                found = step[0](*[numbers[0] if type(each) is type else self.tracers[each] for each in step[1:]])
            alone = not isinstance(found, (tuple, list))
            if not alone and not found:  # such as the shape of an array without axes
                raise UntracedError
            given = [found] if alone else found
            of_numbers = self._of_numbers(step)
            self.are_numbers = [isinstance(each, np.generic) or self._is_number(each, of_numbers) for each in given]
            self.numbers |= {at for at, is_number in enumerate(self.are_numbers, len(self.tracers)) if is_number}
            self.results = results = [self._whole(each) for each in given]
        if len(self.trace.numbers) > computed and values:  # other values may be refused, such as exponents of integers
            raise NeedsNumberError(0)
        new = self.trace.statements[before:]
        if self.device != CPU:
            on_device().check(new)
        self._place_calls(new, len(self.tracers))
        self.extents.note_writes(new)
        self.tracers += [*results, *numbers]
        together = None if alone else getattr(found, "_make", type(found))
        pairs = zip(results, self.are_numbers, strict=True)
        return (*[_form(*pair, self.device) for pair in pairs], *(None for _ in numbers)), together

    def _of_numbers(self, step: Any) -> list[int]:
        """The operands of a step, if each is a number in NumPy, whose methods and parts are numbers, too."""
        places = [*read_by(step)] if type(step) is Operation and step.function not in OF_ARRAYS else []
        return places if self.numbers.issuperset(places) else []

    def _is_number(self, found: Any, of_numbers: Sequence[int]) -> bool:
        """Whether a result is a number in NumPy."""
        if not isinstance(found, Tracer) or found._is_scalar or found.ndim:
            return isinstance(found, Tracer) and found._is_scalar
        return any(found._memory is self.tracers[at]._memory for at in of_numbers)

    def _place_calls(self, new: Sequence[Statement], at: int) -> None:
        """Have calls of libraries that may fail know the place of their step."""
        calls = [each for each in new if isinstance(each, LibraryCall) and each.may_raise]
        for each in calls:
            each.place = StepPlace(each.place.file, each.place.start, each.place.end, at)
        self.may_fail = bool(calls)

    @property
    def is_open(self) -> bool:
        """Whether the trace depends on extents only as the rules of this run say."""
        return self._learned() == self.told and not self.trace.has_looked and not self.trace.extents.is_unknown

    def _learned(self) -> tuple[int, int]:
        """How many conditions and agreements there are."""
        return len(self.trace.conditions), len(self.trace.extents.agreements)

    def tell(self, kind: TapeKind, key: Any, together: Any, writes: tuple[int, ...], numbers: int) -> TapeKind | None:
        """Add a rule for the last step to a kind. Returns the kind behind it; None without a rule. Note [Kinds]."""
        rule = self._rule(together, writes, numbers)
        behind = None if rule is None else kind.add(key, rule)
        if behind is not None:
            self.told = self._learned()
        return behind

    def _rule(self, together: Any, writes: tuple[int, ...], numbers: int) -> StepRule | None:
        """The rule of the last step; None if its results' shapes do not follow from those of leaves."""
        trace, extents = self.trace, self.trace.extents
        if trace.has_looked or extents.is_unknown:
            return None
        found: list[tuple[Any, Derived, bool] | None] = []
        try:
            for each, is_number in zip(self.results, self.are_numbers, strict=True):
                is_whole = isinstance(each, Tracer) and not each._steps
                if each is not None:
                    shape = extents.of_memory(each._memory) if is_whole else extents.seen(each)
                    found.append((each._seen.dtype, shape, is_number))
                else:
                    found.append(None)
        except UnknownExtentsError:
            return None
        first, pairs = self.told
        found += [None] * numbers
        rule = StepRule(found, trace.conditions[first:], extents.agreements[pairs:], together, writes)
        rule.may_fail = self.may_fail
        return rule

    def newly_written(self, before: int) -> list[int]:
        """The numbers of the leaves that are written, but for those that were written before."""
        buffers = [each.buffer for each in self.trace.written[before:]]
        return [each.place for each in buffers if each is not None]

    def _leaf(self, value: Any) -> Any:
        """An array with a value, or a number."""
        if hasattr(value, "__cuda_array_interface__"):
            given = on_device().without_memory(self.found, value)
            self._see_device(value, given)
        else:
            given = without_memory(value) if isinstance(value, np.ndarray) else value
            self.found._taken(given)
        self.flat.append(given)
        return self.argument(len(self.flat) - 1)

    def _whole(self, given: Any) -> Any:
        """A result as an array: one without axes is no number."""
        if isinstance(given, (np.ndarray, np.generic)) and not isinstance(given, Tracer):
            given = tracer.made(self.trace, tracer._operand(self.trace, given))
        if isinstance(given, Tracer) and given._is_scalar:
            return tracer.made(self.trace, given._read())
        if given is not None and not isinstance(given, Tracer):
            raise UntracedError
        return given

    def late(self, node: TapeState) -> dict[int, int]:
        """The leaves that must be there themselves, by number, with the depth of the first state that needs them so.

        These are the leaves that are written, that are read after the first write, and of which arrays in use are
        parts. Any other leaf may be copied first. node: where the run is.
        """
        leaves = {id(each._memory): at for at, each in self.arguments.items()}
        found: dict[int, int] = {}
        is_written = False
        for each in node.path():
            used = [*each.writes]
            is_written = is_written or bool(used)
            if is_written and type(each.step) is not Form:
                used += read_by(each.step)
            for place in used:
                found.setdefault(id(getattr(self.tracers[place], "_memory", None)), each.depth)
        for place in self.live:
            found.setdefault(id(self.tracers[place]._memory), node.depth + 1)
        return {leaves[memory]: depth for memory, depth in found.items() if memory in leaves}

    def ran(self) -> tuple[Any, Exception | None]:
        """The arrays in use."""
        found = tuple(self.tracers[at] for at in self.live)
        return (found[0] if len(found) == 1 else found), None


OF_ARRAYS = (np.broadcast_to, np.expand_dims)
"""Functions of NumPy whose views of numbers are arrays."""


def _form(found: Any, is_number: bool, device: Device) -> Form | None:
    if not isinstance(found, Tracer):
        return None
    made = form_of(found._seen, device)
    return as_number(made) if is_number else made


def may_fail(plan: FusedPlan) -> bool:
    """Whether a plan may fail after a write: it calls a library for more than products, or looks at indices."""
    calls = [each.call.function for each in plan.steps if isinstance(each, CallStep)]
    return not all(calls_plainly(each, np.matmul) for each in calls)
