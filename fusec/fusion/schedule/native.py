"""All kernels of a plan as one native sequence, which repeated calls with host arrays run: no Python is between them.

What each kernel does with its memory is as its own plan has it. Products by BLAS are steps of a sequence as kernels
are. In a plan with other calls of libraries, the kernels between two of these are a sequence. Where there are none, and
no numbers to compute, a native entry is all that a call runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from fusec.base.records import dataclass, replace
from fusec.dispatch.interception import present
from fusec.environment import debug
from fusec.errors import FusecError
from fusec.fusion.memory.calls import CallStep, as_planned, laid_out
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import ReturnedConstant, places_of
from fusec.fusion.memory.slots import SlotView
from fusec.fusion.schedule.native_sequence import (
    REFUSED,
    EntryForm,
    EntrySequence,
    FrameSource,
    NativeSequence,
    NotNative,
    SequenceBuilder,
    is_native_product,
    refuse,
    sequence_of,
)
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.trace.numbers import picking


@dataclass(eq=False)
class NativeStretch:
    """Kernels without calls of libraries between them: a step of a plan."""

    sequence: NativeSequence
    steps: tuple[KernelStep, ...]
    views: tuple[tuple[int, SlotView], ...]  # that steps after it need, which are not native
    earlier: tuple[tuple[int, SlotView], ...]  # that its kernels need, and that other sequences left out
    releases: tuple[int, ...]
    parameters: tuple[str, ...]  # what errors call the arrays and numbers of a call
    is_all: bool = False  # of the steps of a plan

    def run(self, frame: list[Any], memory: HostMemory) -> None:
        """Run all kernels at once, or one by one if that is not right for the arrays of this call."""
        try:
            is_done = self.sequence.run(frame, memory)
        except FusecError:  # a number that does not fit: the kernel that takes it says so
            is_done = False
        if not is_done:
            self.run_alone(frame, memory)
            return
        for slot, view in self.views:
            frame[slot] = memory.view(frame, view)

    def run_alone(self, frame: list[Any], memory: HostMemory) -> None:
        """Run the kernels one by one."""
        if self.is_all and memory.lasting:
            memory.complete(frame)
        for slot, view in self.earlier:
            frame[slot] = memory.view(frame, view)
        for step in self.steps:
            try:
                step.run(frame, memory)
            except FusecError as error:
                raise step.named(error, self.parameters) from error.__cause__

    def hasten(self, frame: Sequence[Any]) -> None:
        """Let an entry run the kernels, if there is one."""
        self.sequence = self.sequence.with_entry(frame)

    def named(self, error: FusecError, names: Sequence[str]) -> FusecError:
        """An error as it is: the kernel has told its names."""
        del names
        return error


def whole_stretch(sequence: NativeSequence, steps: Sequence[Any], parameters: tuple[str, ...]) -> tuple[Any, ...]:
    """All steps of a plan as one."""
    releases = tuple([slot for step in steps for slot in step.releases])
    return (NativeStretch(sequence, tuple(steps), (), (), releases, parameters, True),)


def native_steps(
    steps: Sequence[Any], memory: HostMemory, frame: list[Any], parameters: tuple[str, ...]
) -> tuple[Any, ...] | None:
    """The steps of a plan, with one for all kernels and products between two other calls of libraries; None if none run
    together.

    frame: that of a call, whose arrays have the extents, strides and alignment that all calls have. parameters: what
    errors call its arrays and numbers.
    """
    needed = _needed(steps)
    parts, sequences = _sequences(needed, memory, frame)
    if not any(sequences) and len(needed) == len(steps):
        return None
    alone = [step for part, sequence in zip(parts, sequences, strict=True) if sequence is None for step in part]
    used_alone, left_out = _used(alone), dict[int, SlotView]()
    found: list[Any] = []
    for part, sequence in zip(parts, sequences, strict=True):
        if sequence is None:
            found += part
            continue
        own, used = {slot: view for step in part for slot, view in step.views}, _used(part)
        found.append(
            NativeStretch(
                sequence, part, tuple((slot, view) for slot, view in own.items() if slot in used_alone),
                tuple((slot, view) for slot, view in left_out.items() if slot in used),
                tuple(slot for step in part for slot in step.releases), parameters,
            )
        )  # fmt: skip
        left_out |= own
    return tuple(found)


def _needed(steps: Sequence[Any]) -> list[Any]:
    """The steps without those that copy what calls have changed in place."""
    found: list[Any] = []
    for step in steps:
        if isinstance(step, KernelStep) and step.puts_back:
            found[-1] = replace(found[-1], releases=(*found[-1].releases, *step.releases))
        else:
            found.append(step)
    return found


def whole_entry(
    plan: Any, frame: Sequence[Any], compute: Callable[[list[Any]], None] | None, slow: Callable[..., Any]
) -> Callable[..., Any] | None:
    """A function of a call's arrays and numbers that runs all native steps and gives the result; None if there is none.

    compute: stores numbers that the steps need in a frame. slow: the function for the calls that it cannot take.
    """
    steps, result, memory = plan.native, plan.result, plan.memory
    if steps is None or len(steps) != 1 or not isinstance(steps[0], NativeStretch):
        return None
    sequence, own = steps[0].sequence, memory.own
    used, fresh = sequence.used, {each.slot: each for each in sequence.fresh}
    if any(slot < 0 for _, slot in sequence.pointers if slot not in fresh):
        return None
    made = [] if isinstance(result, ReturnedConstant) and result.value is None else places_of(result)
    is_ready = made is not None and sorted(made) == sorted(fresh)
    slots: list[int] = made if made is not None and is_ready else [*fresh]
    returns: Literal["outputs", "tuple", "nothing"] = "outputs" if is_ready else "tuple"
    form = EntryForm([fresh[slot] for slot in slots], returns if slots else "nothing", checks=True)
    is_plain = is_ready and used == list(range(len(frame) - len(own))) and compute is None
    entry = sequence.made_entry(frame, slow if is_plain else refuse, form)
    if entry is None or is_plain:
        return entry
    pick = picking(used)

    def call(*flat: Any) -> Any:
        given = [*flat, *own]
        if compute is not None:
            compute(given)
        found = entry(*pick(given))
        if found is REFUSED:
            return slow(*flat)
        if is_ready:
            return found
        for slot, each in zip(slots, found or (), strict=True):
            given[slot] = each
        return result.build(given, memory)

    return call


def prepared_call(plan: Any) -> Callable[..., Any]:
    """A function of a call's arrays and numbers that runs all steps, of which some are native, and gives the result."""
    memory, result, returns, has_numbers = plan.memory, plan.result, plan.returns, bool(plan.numbers or plan.bounds)
    program = [_prepared(step) for step in plan.native]

    def call(*flat: Any) -> Any:
        if (plan.writes and plan.may_not_fit(flat)) or present() is not None:
            return plan._slowly(*flat)
        own = memory.take() if memory.lasting else memory.own
        frame = [*flat, *own]
        if has_numbers:
            plan.compute(frame)
        for entry, pick, slots, step, laid in program:
            try:
                if laid is not None:
                    made = entry(*pick(frame))
                    is_ready = made.base is None and made.strides == laid[0] and made.dtype is laid[1]
                    frame[slots[0]] = made if is_ready else as_planned(made, laid[2], ())
                elif entry is None:
                    step.run(frame, memory)
                elif (made := entry(*pick(frame))) is REFUSED:
                    step.run_alone(frame, memory)
                else:
                    for slot, each in zip(slots, made or (), strict=True):
                        frame[slot] = each
                    for slot, view in step.views:
                        frame[slot] = memory.view(frame, view)
            except FusecError as error:
                raise step.named(error, plan.parameters) from error.__cause__
            except Exception as problem:
                if laid is not None:
                    step.note(problem)
                raise
            for slot in step.releases:
                frame[slot] = None
        found = result.build(frame, memory) if returns is None else returns(frame)
        if memory.lasting:
            memory.give_back(own)
        return found

    return call


def _prepared(step: Any) -> tuple[Any, Any, tuple[int, ...], Any, Any]:
    """What runs a step: an entry or a ufunc, what picks its arguments from a frame, and the slots of what it makes.

    Last, of a ufunc: strides and dtype of its result, which is always new, and an array like it.
    """
    if isinstance(step, CallStep) and step.plain is not None:
        function, pick, slot, laid, buffer = step.plain
        if isinstance(function, np.ufunc) and not step.views and buffer.phantom.ndim:
            return function, pick, (slot,), step, (laid[0], laid[2], buffer.phantom)
    sequence = step.sequence if isinstance(step, NativeStretch) else None
    if not isinstance(sequence, EntrySequence):
        return None, None, (), step, None
    return sequence.entry, sequence.takes, tuple([each.slot for each in sequence.fresh]), step, None


def _sequences(
    steps: Sequence[Any], memory: HostMemory, frame: list[Any]
) -> tuple[list[tuple[Any, ...]], list[NativeSequence | None]]:
    """Steps in parts, and what runs each part without Python between its steps; None if they are called one by one."""
    views = dict(memory.lasting) | {slot: view for step in steps for slot, view in step.views}
    parts, found = list[tuple[Any, ...]](), list[NativeSequence | None]()

    def close(part: list[Any], is_native: bool, is_last: bool) -> None:
        sequence = None
        is_whole = is_last and not parts
        if is_native:
            sequence = _sequence(part, FrameSource(views, frame, memory), is_whole, frame)
        if sequence is not None and not is_whole:  # else all of it may have an entry
            sequence = sequence.with_entry(frame)
        parts.append(tuple(part))
        found.append(sequence)
        for slot in (slot for step in part for slot in step.releases):
            frame[slot] = None

    part, was_native = list[Any](), False
    for step in steps:
        _complete(step, frame, memory)
        is_native = isinstance(step, KernelStep) or is_native_product(step, frame)
        if part and is_native is not was_native:
            close(part, was_native, is_last=False)
            part = []
        part.append(step)
        was_native = is_native
    if part:
        close(part, was_native, is_last=True)
    return parts, found


def _sequence(steps: Sequence[Any], source: FrameSource, is_whole: bool, frame: Sequence[Any]) -> NativeSequence | None:
    """The kernels of steps as one; None if they must be called one by one."""
    try:
        return sequence_of(SequenceBuilder(steps, source, is_whole).parts(), steps, frame)
    except NotNative as reason:
        debug.show(2, f"{steps[0].name} calls kernels one by one: {reason}")
        return None


def _used(steps: Sequence[Any]) -> set[int]:
    """The slots that some steps read and write."""
    return {slot for step in steps for slot in (*step.inputs, *step.outputs)}


def _complete(step: Any, frame: list[Any], memory: HostMemory) -> None:
    """Put arrays like those of a call in the slots that a step fills."""
    if isinstance(step, CallStep):
        for slot, buffer in zip(step.outputs, step.call.buffers, strict=True):
            frame[slot] = laid_out(buffer.phantom)
    else:
        for each in step.fresh:
            frame[each.slot] = memory.new(each)
    for slot, view in step.views:
        frame[slot] = memory.view(frame, view)
