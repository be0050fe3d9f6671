"""All kernels of a plan as one native sequence, which repeated calls with host arrays run: no Python is between them.

A call fills in the addresses of arguments, results and temporaries, and the numbers; `fusec.runtime.cpu.composites`
runs the kernels. What each kernel does with its memory is as its own plan has it. In a plan with calls of libraries,
the kernels between two of these are a sequence.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments.scalars import encode
from fusec.base.dtypes import INT64, DType
from fusec.base.kernel_abi import Layout, Slot
from fusec.base.kernel_abi import Step as Stride
from fusec.base.records import dataclass
from fusec.dispatch.call import KernelCall, read
from fusec.dispatch.engine import needs_staging
from fusec.dispatch.host import HOST
from fusec.dispatch.native_entries import MOST_BYTES
from fusec.dispatch.overlap import disturbed
from fusec.dispatch.plan import Plan
from fusec.dispatch.spec import PLAIN, CallOptions, is_one_axis
from fusec.environment import debug
from fusec.errors import FusecError
from fusec.fusion.memory.calls import CallStep, laid_out
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.slots import Fresh, SlotView
from fusec.fusion.schedule.plan import KernelStep
from fusec.runtime.cpu import composites, fastcall
from fusec.runtime.cpu.composites import Composite, CompositeInterface, CompositePiece

Pointer = tuple[int, int]  # the plan's slot of an array, and bytes from its first element


class NotNative(Exception):  # noqa: N818 - a reason
    """Why kernels of a plan must be called one by one."""


@dataclass(eq=False)
class NativeSequence:
    """Kernels of a plan as one executable, and how calls fill in its slots."""

    executable: Composite
    template: array[int]
    pointers: tuple[tuple[int, int], ...]  # a slot of the executable, the plan's slot of an array
    numbers: tuple[tuple[int, int, DType, int], ...]  # likewise of a number, its dtype, which half of a complex128
    fresh: tuple[Fresh, ...]
    aligned: tuple[tuple[int, int], ...]  # arguments, and what their addresses are multiples of
    written: tuple[int, ...]  # arguments, and arrays from outside, that kernels write
    name: str

    def run(self, frame: list[Any], memory: HostMemory) -> bool:
        """Run on the slots of a call; False, and nothing is done, for arrays that are not aligned or not writeable.

        Raises what a number is refused with, before anything is written.
        """
        for slot, alignment in self.aligned:
            if ADDRESS_OF(frame[slot]) % alignment:
                return False
        for slot in self.written:
            if not frame[slot].flags.writeable:
                return False
        slots = self.template[:]
        for place, slot, dtype, half in self.numbers:
            slots[place] = encode(frame[slot], dtype, f"s{slot}", self.name)[half]
        for each in self.fresh:
            frame[each.slot] = memory.new(each)
        for place, slot in self.pointers:
            slots[place] = ADDRESS_OF(frame[slot])
        self.executable.run(slots.buffer_info()[0], 1)
        return True


ADDRESS_OF = fastcall.address_reader()


@dataclass(eq=False)
class NativeStretch:
    """Kernels without calls of libraries between them: a step of a plan."""

    sequence: NativeSequence
    steps: tuple[KernelStep, ...]
    views: tuple[tuple[int, SlotView], ...]  # that steps after it need, which are not native
    earlier: tuple[tuple[int, SlotView], ...]  # that its kernels need, and that other sequences left out
    releases: tuple[int, ...]
    parameters: tuple[str, ...]  # what errors call the arrays and numbers of a call

    def run(self, frame: list[Any], memory: HostMemory) -> None:
        """Run all kernels at once, or one by one if that is not right for the arrays of this call."""
        try:
            is_done = self.sequence.run(frame, memory)
        except FusecError:  # a number that does not fit: the kernel that takes it says so
            is_done = False
        for slot, view in self.views if is_done else self.earlier:
            frame[slot] = memory.view(frame, view)
        for step in () if is_done else self.steps:
            try:
                step.run(frame, memory)
            except FusecError as error:
                raise step.named(error, self.parameters) from error.__cause__

    def named(self, error: FusecError, names: Sequence[str]) -> FusecError:
        """An error as it is: the kernel has told its names."""
        del names
        return error


def native_steps(
    steps: Sequence[Any], memory: HostMemory, frame: list[Any], parameters: tuple[str, ...]
) -> tuple[Any, ...] | None:
    """The steps of a plan, with one for all kernels between two calls of libraries; None if no kernels run together.

    frame: that of a call, whose arrays have the extents, strides and alignment that all calls have. parameters: what
    errors call its arrays and numbers.
    """
    parts = [tuple(each) for _, each in itertools.groupby(steps, lambda each: isinstance(each, KernelStep))]
    if not any(map(has_no_entry, parts)):
        return None
    sequences = _sequences(parts, memory, frame)
    if not any(sequences):
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


def _sequences(parts: Sequence[Sequence[Any]], memory: HostMemory, frame: list[Any]) -> list[NativeSequence | None]:
    """The kernels of each part as one; None if they must be called one by one."""
    steps = [step for part in parts for step in part]
    views = dict(memory.lasting) | {slot: view for step in steps for slot, view in step.views}
    name, found = next(each.kernel.name for each in steps if isinstance(each, KernelStep)), []
    for part in parts:
        for step in part:
            _complete(step, frame, memory)
        found.append(_Builder(name, part, views, frame).tried() if has_no_entry(part) else None)
        for slot in (slot for step in part for slot in step.releases):
            frame[slot] = None
    return found


def has_no_entry(steps: Sequence[Any]) -> bool:
    """Whether these are several kernels, or one over several axes, which has no native entry of its own."""
    if not all(isinstance(each, KernelStep) for each in steps):
        return False
    return len(steps) > 1 or any(each.group.axes and not is_one_axis(each.axis) for each in steps)


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


class _Builder:
    """Collects the kernels of the steps, whose arguments become slots of the whole."""

    def __init__(
        self, name: str, steps: Sequence[KernelStep], views: Mapping[int, SlotView], frame: Sequence[Any]
    ) -> None:
        self.name, self.steps, self.views, self.frame = name, steps, views, frame
        self.slots: list[Slot] = []
        self.arrays: dict[int, int] = {}  # slots of the whole by those of the plan; the first is the description
        self.numbers: dict[tuple[int, DType, int], int] = {}  # likewise, with dtype and half
        self.written: set[int] = set()  # slots whose memory is written
        self.areas: dict[str, int] = {}
        self.launches: list[list[CompositePiece]] = []

    def tried(self) -> NativeSequence | None:
        """The whole; None if the kernels must be called one by one."""
        try:
            return self._made()
        except NotNative as reason:
            debug.show(2, f"{self.name} calls kernels one by one: {reason}")
            return None

    def _made(self) -> NativeSequence:
        """The whole. Raises NotNative."""
        for number, step in enumerate(self.steps):
            self._add(number, step)
        if sum(self.areas.values()) > MOST_BYTES:
            raise NotNative("much memory lies between the kernels of its reductions")
        arrays = [each.param for each in self.slots if each.kind == "pointer"]
        outside = CompositeInterface(
            self.name, self.slots, Layout(1, tuple((each, (Stride.UNIT,)) for each in arrays)), self.areas
        )
        whole = composites.sequence(outside, self.launches)
        assert whole.description is not None, "sequences have descriptions"
        own = {each.slot for step in self.steps for each in step.fresh}
        aligned = [(slot, self.frame[slot].dtype.alignment) for slot in self.arrays if slot >= 0 and slot not in own]
        return NativeSequence(
            whole, array("q", [whole.description.address, *[0] * len(self.slots)]),
            tuple((place, slot) for slot, place in self.arrays.items()),
            tuple((place, *key) for key, place in self.numbers.items()),
            tuple(each for step in self.steps for each in step.fresh), tuple(aligned), tuple(self.written - own),
            self.name,
        )  # fmt: skip

    def _add(self, number: int, step: KernelStep) -> None:
        """The kernels of one step."""
        kernel = step.kernel
        inputs, outputs = (tuple([self.frame[slot] for slot in each]) for each in (step.inputs, step.outputs))
        options = PLAIN if step.group.axes is None else CallOptions(step.axis, True)
        call: KernelCall[Any] = read(HOST, kernel, inputs, outputs, options)
        if needs_staging(HOST, call) or disturbed(kernel, call.arguments(HOST)):
            raise NotNative("results lie where operands do")
        plan: Plan[Any] = kernel.plan(HOST, call)
        if plan.is_idle or plan.bound.is_empty or plan.zeroed:
            raise NotNative("a kernel has no elements, or reads its results")
        named = dict(zip((param.name for param in kernel.params), (*step.inputs, *step.outputs), strict=True))
        where = {name: self._pointer(slot) for name, slot in named.items() if isinstance(self.frame[slot], np.ndarray)}
        self.written |= {self._pointer(slot)[0] for slot in step.outputs}
        prefix = f"{number}."
        for each in plan.steps:
            self.areas |= {prefix + name: _nbytes(shape, dtype) for name, shape, dtype in each.launch.made}
        for each in plan.steps:
            if isinstance(each.code, Composite):
                raise NotNative("a scan of long rows is a sequence itself")
            copies, places = [], []
            for slot, name, dtype, half in each.arguments.scalars:
                copies.append((slot, self._number(named[name], dtype, half), 0))
            for slot, name, offset in each.arguments.pointers:
                if name in where:
                    base, start = where[name]
                    copies.append((slot, self._array(base), start + offset))
                else:
                    places.append((slot, prefix + name, offset))
            if not step.place:
                self.launches.append([])
            self.launches[-1].append(
                CompositePiece(each.code, each.arguments.template, copies, places, each.launch.positions)
            )

    def _pointer(self, slot: int) -> Pointer:
        """Where the array of a slot begins."""
        view = self.views.get(slot)
        if view is None:
            return slot, 0
        return view.slot, ADDRESS_OF(self.frame[slot]) - ADDRESS_OF(self.frame[view.slot])

    def _array(self, slot: int) -> int:
        if slot not in self.arrays:
            self.slots.append(Slot("pointer", f"p{slot}", 0, INT64))
            self.arrays[slot] = len(self.slots)
        return self.arrays[slot]

    def _number(self, slot: int, dtype: DType, half: int) -> int:
        key = (slot, dtype, half)
        if key not in self.numbers:
            self.slots.append(Slot("scalar", f"n{slot}", half, dtype))
            self.numbers[key] = len(self.slots)
        return self.numbers[key]


def _nbytes(shape: Sequence[int], dtype: DType) -> int:
    return int(np.prod(shape, dtype=np.int64)) * dtype.nbytes
