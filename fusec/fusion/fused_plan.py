"""The plan of a fused function for calls of one kind: kernels, results and stored values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.base import locks
from fusec.base.records import dataclass, field
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch.interception import present
from fusec.errors import FusecError
from fusec.fusion.arguments import CallArguments, are_apart, pattern_of
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import LeftOutside, ReturnedItems, places_of, with_views
from fusec.fusion.outside.reads import Guards
from fusec.fusion.schedule.native import NativeStretch, whole_stretch
from fusec.fusion.schedule.native_sequence import NativeSequence
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.schedule.resizing import PlanTemplate
from fusec.fusion.trace.derived import OtherShapesError
from fusec.fusion.trace.numbers import NumberStep, OtherNumberError, picking

HASTEN_AT, HASTEN_ONE_AT = 1, 8  # calls before kernels become one sequence; before a single one does, which is fast
FEW_PAIRS = 16  # of arrays that may share memory; more are not compared one by one if all lie one behind the other
Bound = tuple[int, int, int, frozenset[int]]
"""The slot of an integer, the least and the largest that fits, and the arguments that it is made of, by place."""


class UnfitNumberError(Exception):
    """An integer does not fit an array: what the function does before that is found by a trace with the integer.

    places: of the arguments that it is made of.
    """

    def __init__(self, places: frozenset[int]) -> None:
        super().__init__(places)
        self.places = places


class UnfitArraysError(Exception):
    """An array that is written is read-only, or shares memory with another in a way that the plan was not made for."""


UNFIT = (OtherNumberError, UnfitNumberError, UnfitArraysError)
"""What a call raises, before anything is written, that needs another plan."""


@dataclass(eq=False)
class FusedPlan:
    """The work of calls of one kind."""

    steps: tuple[KernelStep | CallStep, ...]
    memory: HostMemory
    result: Any  # from `results`
    writes: tuple[int, ...]  # written arrays
    notes: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]  # each written array with every other array
    guards: Guards
    pattern: Any = None  # which of them share memory
    stores: tuple[LeftOutside, ...] = ()  # once all is computed
    numbers: tuple[NumberStep, ...] = ()  # what is computed first
    quick: Callable[..., Any] | None = None  # does all of it at once
    problem: Exception | None = None  # what the function raised, after what the plan does
    parameters: tuple[str, ...] = ()  # what errors call the arrays and numbers of a call
    used: int = 0  # when it was used last
    calls: int = 0  # that ran its kernels one by one
    native: tuple[Any, ...] | None = None  # the steps, some as one, once calls have come several times
    entry: Callable[..., Any] | None = None  # then does all of it at once, if there is nothing else to do
    template: PlanTemplate | None = None  # makes plans for other extents
    launches: dict[Any, Any] | None = field(default_factory=dict)  # all kernels on devices; None: never at once
    bounds: tuple[Bound, ...] = ()  # of integers of a call
    is_careful: bool = False  # whoever calls the entry must know before anything is written in several steps
    learn: Callable[[NativeSequence | None], None] | None = None  # is given the sequence that the plan gets
    is_resized: bool = False  # by such a template: its notes and reasons are those of other extents

    def __post_init__(self) -> None:
        self.names, self.functions = self.guards.names(), self.guards.functions
        self.paired = tuple({place for pair in self.pairs for place in pair})
        self.find_returns()

    def find_returns(self) -> None:
        """Find what takes the result from a frame."""
        places = places_of(self.result) if isinstance(self.result, ReturnedItems) else None
        self.returns: Any = None if places is None else picking(places)

    def may_not_fit(self, flat: Sequence[Any]) -> bool:
        """Whether a written array is read-only, or may share memory with another, or did when the plan was made."""
        if self.pattern is not None or not all(flat[place].flags.writeable for place in self.writes):
            return True
        if len(self.pairs) > FEW_PAIRS and are_apart([flat[place] for place in self.paired]):
            return False
        return any(np.may_share_memory(flat[one], flat[other]) for one, other in self.pairs)

    def flat(self, found: CallArguments) -> list[Any] | None:
        """The arrays and numbers of a call; None if something that the trace read has changed."""
        picked = self.guards.read(found.objects, found.labelled, found.described)
        if picked is None:
            return None
        flat = [*found.flat, *picked]
        if self.writes:
            arrays = [*map(found.outline, flat)]
            if not all(arrays[place].flags.writeable for place in self.writes):
                return None  # the trace raises NumPy's error at the user's line
            if pattern_of(arrays, self.writes) != self.pattern:
                return None
        if self.numbers:
            try:
                self._count([*flat, *self.memory.own])
            except OtherNumberError:
                return None
        return flat

    def resized(self, outlines: Sequence[Any], on_host: bool) -> FusedPlan | None:
        """The plan for arrays of other extents, by place; None if that must be traced."""
        assert self.template is not None, "asked of plans that have one"
        try:
            steps, memory, views, sequence, learn = self.template.resized(outlines, on_host)
        except OtherShapesError:
            return None
        made = object.__new__(FusedPlan)  # all of it is known, and `__init__` takes as long as the rest
        vars(made).update(
            vars(self), steps=tuple(steps), memory=memory, calls=0, entry=None, launches={}, template=None,
            native=None if sequence is None else whole_stretch(sequence, steps, self.parameters), learn=learn,
            is_resized=True,
        )  # fmt: skip
        if views:
            made.result = with_views(self.result, views)
            made.quick = self.quick if not any(views.values()) else None
            made.find_returns()
        return made

    def _hastened(self, frame: Sequence[Any]) -> Sequence[Any]:
        """The steps of a call, in which kernels run together once that is known to be right."""
        if not self.calls and not self.is_resized and len(self.kernels) > 1:
            seen: set[object] = set()
            for step in reversed(self.kernels):  # meanwhile the call itself compiles the first ones
                step.begin(seen)
        if present() is not None:
            return self.steps
        if (self.learn is not None or self.calls in (HASTEN_AT, HASTEN_ONE_AT)) and self._is_due():
            if any(step.kernel.is_waiting for step in self.kernels):
                return self.steps
            with locks.lock, default_rounding():
                from fusec.fusion.schedule.native import native_steps, prepared_call, whole_entry

            given = [*frame]
            self.native = self.native or native_steps(self.steps, self.memory, given, self.parameters)
            if self.learn is not None:
                self._taught()
                return self.native or self.steps
            if not self.stores and self.problem is None and self.pattern is None:
                self.entry = whole_entry(self, given, self.compute if self.numbers else None, self._slowly)
            first = None if self.native is None or len(self.native) > 1 else self.native[0]
            if self.entry is None and isinstance(first, NativeStretch):
                first.hasten(given)
            if self.entry is None and self.native is not None and not self.stores and self.problem is None:
                self.entry = prepared_call(self) if self.pattern is None else None
        self.calls += 1
        return self.native or self.steps

    def _taught(self) -> None:
        """Hand on the sequence of all steps, or that there is none."""
        learn, self.learn = self.learn, None
        first = None if self.native is None or len(self.native) > 1 else self.native[0]
        if learn is not None:
            learn(first.sequence if isinstance(first, NativeStretch) else None)

    def _is_due(self) -> bool:
        """Whether kernels become one sequence at this call."""
        if self.quick is not None:
            return False
        if self.learn is None and (self.calls == HASTEN_AT) != (len(self.steps) > 1):
            return False
        return bool(self.kernels) or any(isinstance(step, CallStep) and step.product for step in self.steps)

    def named(self, error: FusecError) -> FusecError:
        """An error of the single kernel of a plan."""
        return error if self.quick is None else self.kernels[0].named(error, self.parameters)

    @property
    def _has_own_arena(self) -> bool:
        """Whether all steps are one that needs nothing of the memory that lasts."""
        first = None if self.native is None else self.native[0]
        return isinstance(first, NativeStretch) and first.is_all and not first.sequence.uses(self.memory.arena_slot)

    @property
    def kernels(self) -> list[KernelStep]:
        """The steps that are no calls of libraries."""
        return [step for step in self.steps if isinstance(step, KernelStep)]

    def compute(self, frame: list[Any]) -> None:
        """Store the numbers of a call in its frame. Raises OtherNumberError and UnfitNumberError."""
        self._count(frame)
        for slot, low, high, places in self.bounds:
            if not low <= frame[slot] <= high:
                raise UnfitNumberError(places)

    def _count(self, frame: list[Any]) -> None:
        """Store the numbers of a call in its frame. Raises OtherNumberError."""
        for number in self.numbers:
            number.run(frame)

    def run(self, flat: Sequence[Any], side: Any = None) -> Any:
        """Run all kernels; the result of the function. side: what of the arrays is on a device.

        Raises OtherNumberError and UnfitNumberError before anything is written.
        """
        if self.entry is not None and side is None:
            return self.entry(*flat)
        return self._run(flat, side)

    def _slowly(self, *flat: Any) -> Any:
        """A call that the entry does not take. Raises UnfitArraysError."""
        if self.writes and (self.is_careful or self.may_not_fit(flat)):
            raise UnfitArraysError
        return self._run(flat, None)

    def run_in_steps(self, flat: Sequence[Any]) -> Any:
        """The same on the host, without the entry."""
        return self._run(flat, None)

    def _run(self, flat: Sequence[Any], side: Any) -> Any:
        """The same, without the entry."""
        host = self.memory
        memory: Any = host
        if side is None:
            takes = bool(host.lasting) and not self._has_own_arena
            own = host.take() if takes else host.own
            frame = [*flat, *own]
        else:
            memory = device_memory_of(self, side, flat)
            for step in self.steps:  # before anything is written
                if isinstance(step, CallStep):
                    memory.check(step)
            frame = memory.frame
        if (self.numbers or self.bounds) and side is None:
            self.compute(frame)
        steps: Sequence[Any] = self.steps
        if side is None:
            steps = self.native or self.steps if self.calls > HASTEN_ONE_AT else self._hastened(frame)
            if steps is self.steps and host.lasting and not takes:
                host.complete(frame)
        elif memory.runs_at_once():
            steps = ()
        for step in steps:
            try:
                step.run(frame, memory)
            except FusecError as error:
                raise step.named(error, self.parameters) from error.__cause__
            for slot in step.releases:
                frame[slot] = None
        returns = self.returns if side is None else None
        result = self.result.build(frame, memory) if returns is None else returns(frame)
        for store in self.stores:
            store.run(frame, memory)
        if side is not None:
            memory.finish()
        elif takes:
            host.give_back(own)
        if self.problem is not None:
            args, own = result
            self.problem.args = self.problem.args if args is None else args
            vars(self.problem).update(own)
            raise self.problem
        return result


def device_memory_of(plan: FusedPlan, side: Any, flat: Sequence[Any]) -> Any:
    """The memory of a call on a device."""
    with locks.lock:
        from fusec.fusion.devices.device_memory import DeviceMemory

    return DeviceMemory(plan, side, flat)
