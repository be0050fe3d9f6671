"""The kernels of a plan as launches that repeated calls on a device fill in: no Python is between those in a row.

The twin of `native`, for devices: a call gives the addresses of arguments, results and one piece of memory for all
that lies between kernels, and the numbers. What each kernel does with its memory is as its own plan has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from fusec.arguments.layouts import broadcast_strides
from fusec.arguments.operands import memory_order
from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass, replace
from fusec.compiler.disk_cache import default_cache
from fusec.dispatch import engine
from fusec.dispatch.cached_launches import cached_launch, ended
from fusec.dispatch.call import KernelCall
from fusec.dispatch.device import CUDA
from fusec.dispatch.fast_path_device import CachedLaunch, Encoder
from fusec.dispatch.overlap import disturbed
from fusec.dispatch.plan import ALIGNED, Plan
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.environment import debug
from fusec.fusion.devices import device_calls
from fusec.fusion.devices.device_launches import joined
from fusec.fusion.devices.recipes import LibraryStage, Part, form_of, part_of
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.results import Returned
from fusec.fusion.memory.slots import Arena, Fresh, SlotView, fresh
from fusec.fusion.schedule.plan import KernelStep
from fusec.kinds.reduction import has_end
from fusec.runtime import cuda
from fusec.runtime.cuda import DeviceArray

APART = 1 << 44  # bytes between the addresses that stand for arrays which calls make
NEW = 1 << 56  # the first of these, beyond all that there are


class NotPrepared(Exception):  # noqa: N818 - a reason
    """Why the kernels of a plan must be called one by one."""


@dataclass(eq=False)
class PreparedKernels:
    """Launches in a row. enqueue: launches them, given a stream, the addresses of the arrays in `places`, and the
    numbers in slots, encoded.
    """

    enqueue: Callable[..., object]
    places: tuple[int, ...]
    numbers: tuple[tuple[int, Encoder], ...]

    def begun(self, frame: Sequence[Any]) -> list[int]:
        """The encoded numbers of a call. Raises what a number is refused with."""
        return [encoder(frame[slot]) for slot, encoder in self.numbers]

    def run(self, numbers: Sequence[int], addresses: Sequence[int], stream: int) -> None:
        """Enqueue them. addresses: of arrays, by place. Raises LaunchFailed."""
        self.enqueue(stream, *[addresses[place] for place in self.places], *numbers)


class PreparedCall(NamedTuple):
    """A call of one of CUDA's libraries between launches. operands: the places of its arrays, and bytes from their
    first elements.
    """

    call: Callable[[Sequence[int], int, int], None]
    operands: tuple[tuple[int, int], ...]
    device: int

    def begun(self, frame: Sequence[Any]) -> None:
        """Nothing: it takes no numbers."""

    def run(self, held: None, addresses: Sequence[int], stream: int) -> None:
        """Enqueue it. Raises CudaMathRefused."""
        del held
        self.call([addresses[place] + start for place, start in self.operands], self.device, stream)


@dataclass(eq=False)
class PreparedPlan:
    """The kernels of a plan, and the calls of libraries between them. The places of arrays are their slots; the memory
    between kernels, of so many bytes, lies before the plan's own slots.

    own: how many these are. fresh: what calls make first. views: of slots that hold part of another's memory.
    """

    parts: tuple[PreparedKernels | PreparedCall | CallStep, ...]
    nbytes: int
    own: int
    fresh: tuple[Fresh, ...]
    views: dict[int, SlotView]

    def __post_init__(self) -> None:
        self.kernels = [part for part in self.parts if not isinstance(part, CallStep)]
        self.new = tuple(each.slot for each in self.fresh)


def prepared_plan(plan: Any, frame: Sequence[Any], device: int) -> PreparedPlan | None:
    """The kernels of a plan as launches; None if they must be called one by one.

    frame: that of a call before its first kernel, whose arrays have the forms and alignment that all calls have.
    """
    try:
        return _LaunchBuilder(plan, frame, device).made(plan.steps)
    except NotPrepared as reason:
        debug.show(2, f"{plan.kernels[0].kernel.name} calls its kernels one by one: {reason}")
        return None


_Operand = tuple[Any, int, int]
"""An array or a number; the place of its memory, and bytes from its first element."""


class _PlannedKernel(NamedTuple):
    """A kernel of a plan with its operands, and their slots; a number that is always the same stands for itself."""

    kernel: Planned
    plan: Plan[Any]
    found: Sequence[_Operand]
    slots: Sequence[Any]


class _LaunchBuilder:
    """Collects the launches of the steps. room: the memory between kernels, of which that of the plan comes first.

    inside: where in it lie the arrays of slots that nobody else sees.
    """

    def __init__(self, plan: Any, frame: Sequence[Any], device: int) -> None:
        self.host, self.frame, self.device = plan.memory, [*frame], device
        self.views: dict[int, SlotView] = dict(self.host.lasting)
        self.arena = len(frame) - len(self.host.own)  # its place
        self.room, self.inside = Arena(), dict[int, int]()
        self.room.nbytes = _rounded(self.host.arena_bytes)
        if self.host.arena_slot is not None:
            whole = self._apart(self.arena, (self.host.arena_bytes,), (1,), dtypes.UINT8)
            self.frame[self.host.arena_slot], self.inside[self.host.arena_slot] = whole, 0
        self.seen = {each.slot for each in returned(plan)}  # slots of arrays that others than kernels see
        self.most = 0  # bytes between the launches of one kernel
        self.parts: list[PreparedKernels | PreparedCall | CallStep] = []
        self._start()

    def _start(self) -> None:
        self.launches: list[tuple[Any, int, Sequence[int]]] = []
        self.pointers: list[tuple[int, int, int]] = []
        self.numbers: list[tuple[int, int, Encoder]] = []
        self.between: list[tuple[int, int]] = []  # a word, and bytes in what is between launches
        self.counters: list[int] = []  # words that are addresses of numbers of blocks
        self.words = 0

    def made(self, steps: Sequence[Any]) -> PreparedPlan:
        """The whole. Raises NotPrepared."""
        self._look(steps)
        self.new: list[Fresh] = []
        waiting: list[_PlannedKernel] = []  # of one launch
        done: list[int] = []  # slots that nobody needs once that is enqueued
        for step, after in itertools.zip_longest(steps, steps[1:]):
            self.views.update(step.views)
            done += step.releases
            if isinstance(step, KernelStep):
                self.new += step.fresh
                waiting.append(self._kernel(step))
                if step.follows:
                    self._add_pair(*waiting)
                elif len(waiting) <= step.beside or getattr(after, "follows", False):
                    continue
                else:
                    self._add(waiting)
                waiting = []
            elif (maker := device_calls.maker_of(step.call)) is not None:
                self._follow(step, maker)
            else:
                self._close()
                for slot, buffer in zip(step.outputs, step.call.buffers, strict=True):
                    self._new(fresh(slot, buffer))
                self.parts.append(step)
            for slot in [each for each in done if each in self.inside]:
                self.room.give_back(self.inside.pop(slot), _nbytes_of(self.frame[slot]))
            done = []
        self._close()
        nbytes, own = self.room.nbytes + self.most, len(self.host.own)
        return PreparedPlan(tuple(self.parts), nbytes, own, tuple(self.new), self.views)

    def _look(self, steps: Sequence[Any]) -> None:
        """Find the slots of arrays that are given to libraries other than CUDA's own."""
        views = {**self.views, **{slot: view for step in steps for slot, view in step.views}}
        for step in steps:
            if not isinstance(step, KernelStep) and device_calls.maker_of(step.call) is None:
                self.seen.update(views[slot].slot if slot in views else slot for slot in step.inputs)

    def _close(self) -> None:
        """End a row of launches; what is between those of a kernel lies behind all else."""
        if self.launches:
            pointers = (
                *self.pointers,
                *((word, self.arena, self.room.nbytes + offset) for word, offset in self.between),
            )
            places = tuple(sorted({place for _, place, _ in pointers}))
            number = {place: at for at, place in enumerate(places)}
            fills = [(word, number[place], offset) for word, place, offset in pointers]
            fills += [(word, len(places) + at, 0) for at, (word, _, _) in enumerate(self.numbers)]
            sequence = cuda.LaunchSequence(self.launches, self.device, fills, self.counters, default_cache())
            numbers = tuple((slot, encoder) for _, slot, encoder in self.numbers)
            self.parts.append(PreparedKernels(sequence.enqueue, places, numbers))
            self._start()

    # --- arrays --------------------------------------------------------------------------------------------------

    def _apart(self, place: int, shape: Sequence[int], strides: Sequence[int], row: dtypes.DType) -> DeviceArray:
        """What stands for an array that calls make."""
        start = NEW + (place + len(self.host.own)) * APART
        return DeviceArray(start, tuple(shape), tuple(strides), row, self.device, False, None, None, None)

    def _new(self, made: Fresh) -> None:
        row = dtypes.from_numpy(made.dtype)
        assert row is not None, "kernels write known dtypes"
        order = range(len(made.shape)) if made.order is None else made.order
        strides = strides_in_order(made.shape, order, row.nbytes)
        self.frame[made.slot] = self._apart(made.slot, made.shape, strides, row)

    def _operand(self, slot: int) -> _Operand:
        """What a slot holds."""
        view = self.views.get(slot)
        whole = slot if view is None else view.slot
        base, (place, start) = self.frame[whole], self._place(whole)
        if view is None:
            return base, place, start
        row = dtypes.from_numpy(view.dtype)
        assert row is not None, "kernels take known dtypes"
        part = replace(base, pointer=base.pointer + view.offset, shape=view.shape, strides=view.strides, dtype=row)
        return part, place, start + view.offset

    def _place(self, slot: int) -> tuple[int, int]:
        """Where the array of a slot is, and bytes from there."""
        return (self.arena, self.inside[slot]) if slot in self.inside else (slot, 0)

    # --- calls of CUDA's libraries -------------------------------------------------------------------------------

    def _follow(self, step: CallStep, maker: Any) -> None:
        """The recipe of a call. Raises NotPrepared."""
        if any(each.number is not None and each.number[0] != "known" for each in step.leaves):
            raise NotPrepared("a recipe depends on a number of the call")
        results = []
        for slot, buffer in zip(step.outputs, step.call.buffers, strict=True):
            made = fresh(slot, buffer)
            self._new(made)
            if slot in self.seen:
                self.new.append(made)
            else:
                target = self.frame[slot]
                start = self.inside[slot] = self.room.take(_nbytes_of(target))
                self.frame[slot] = self._within(target, start)
            results.append(slot)
        arrays = [self._operand(slot) for slot in (*step.inputs, *results)]
        recipe = maker.recipe(step.call, [form_of(each) for each, _, _ in arrays], self.device)
        taken = []
        for form in recipe.rooms:
            room, start = self._room(form.shape, form.strides, form.row)
            arrays.append(room)
            taken.append((start, _nbytes_of(room[0])))
        for stage in recipe.stages:
            if isinstance(stage, LibraryStage):
                self._close()
                operands = tuple((arrays[at][1], arrays[at][2] + start) for at, start in stage.operands)
                self.parts.append(PreparedCall(stage.call, operands, self.device))
                continue
            found = [self._part(arrays, each) if isinstance(each, Part) else (each, 0, 0) for each in stage.operands]
            options = CallOptions(stage.axes, stream=cuda.LEGACY)
            self._add([self._planned(stage.kernel, found, stage.operands, options)])
        for start, nbytes in taken:
            self.room.give_back(start, nbytes)

    def _part(self, arrays: Sequence[_Operand], part: Part) -> _Operand:
        """A part of an array of a recipe."""
        array, place, start = arrays[part.place]
        return part_of(array, part), place, start + part.start

    def _within(self, array: DeviceArray, start: int) -> DeviceArray:
        """An array in the memory between kernels."""
        whole = self._apart(self.arena, array.shape, array.strides, array.dtype)
        return replace(whole, pointer=whole.pointer + start)

    def _dense(self, array: DeviceArray, order: Sequence[int], row: dtypes.DType) -> tuple[_Operand, int]:
        """Memory for a copy of an array in that between kernels, and where it starts there."""
        return self._room(array.shape, strides_in_order(array.shape, order, row.nbytes), row)

    def _room(self, shape: Sequence[int], strides: Sequence[int], row: dtypes.DType) -> tuple[_Operand, int]:
        """Memory in that between kernels, and where it starts there."""
        made = self._apart(self.arena, shape, strides, row)
        start = self.room.take(_nbytes_of(made))
        return (self._within(made, start), self.arena, start), start

    def _copy(self, source: _Operand, target: _Operand, kernel: Planned) -> None:
        """A kernel that copies an array to another."""
        self._add([self._planned(kernel, (source, target), (0, 0), CallOptions(stream=cuda.LEGACY))])

    # --- kernels -------------------------------------------------------------------------------------------------

    def _kernel(self, step: KernelStep) -> _PlannedKernel:
        """A kernel with its operands, behind copies of those that it would change before it reads them."""
        kernel, options = step.kernel, CallOptions(stream=cuda.LEGACY)
        if step.group.axes is not None:
            options = CallOptions(step.axis, keepdims=True, stream=cuda.LEGACY)
        for each in step.fresh:
            self._new(each)
        slots = (*step.inputs, *step.outputs)
        found = list(map(self._operand, slots))
        call = self._read(kernel, found, options)
        if kernel.checks or engine.needs_staging(CUDA, call):
            raise NotPrepared("a kernel's results lie where its operands do")
        for at in disturbed(kernel, call.arguments(CUDA)):
            found[at] = self._copied(found[at])
        return self._planned(kernel, found, slots, options)

    def _planned(
        self, kernel: Planned, found: Sequence[_Operand], slots: Sequence[Any], options: CallOptions
    ) -> _PlannedKernel:
        plan: Plan[Any] = kernel.plan(CUDA, self._read(kernel, found, options))
        if plan.bound.is_empty:
            raise NotPrepared("a kernel has totals of no elements")
        self.most = max(self.most, plan.nbytes)
        return _PlannedKernel(kernel, plan, found, slots)

    def _read(self, kernel: Planned, found: Sequence[_Operand], options: CallOptions) -> KernelCall[Any]:
        _, call = engine.read_call(kernel, tuple([each for each, _, _ in found]), None, options)
        return call

    def _copied(self, operand: _Operand) -> _Operand:
        """An operand that is copied first, to a place in the arena."""
        array, _, _ = operand
        order = memory_order(array.shape, [broadcast_strides(CUDA.view(array, "", ""), array.shape)])
        copy, _ = self._dense(array, order, array.dtype)
        self._copy(operand, copy, Planned.copier())
        return copy

    def _add(self, kernels: Sequence[_PlannedKernel]) -> None:
        """The launches of kernels that share one, if they can."""
        if len(kernels) > 1 and not any(each.plan.is_idle for each in kernels):
            whole = joined([(each.kernel, each.plan) for each in kernels], self.device)
            if whole is not None:
                operands = [(word, kernels[at].found[place], offset) for word, at, place, offset in whole.pointers]
                numbers = [(word, kernels[at].slots[place], encoder) for word, at, place, encoder in whole.numbers]
                self._launch((whole.code, whole.blocks, whole.template), operands, numbers)
                return
        for each in kernels:
            steps = () if each.plan.is_idle else each.plan.steps
            rest = steps[-2:] if steps and has_end([step.launch for step in steps]) else ()
            for step in steps[: len(steps) - len(rest)]:
                self._one(each, step)
            if rest and not self._ended(each, each, rest):
                for step in rest:
                    self._one(each, step)

    def _add_pair(self, first: _PlannedKernel, last: _PlannedKernel) -> None:
        """A kernel, and one that may follow at its end."""
        is_plain = not any(each.plan.is_idle or len(each.plan.steps) > 1 for each in (first, last))
        if not is_plain or not self._ended(first, last, (*first.plan.steps, *last.plan.steps)):
            self._add([first])
            self._add([last])

    def _one(self, kernel: _PlannedKernel, step: Any) -> None:
        """A launch of a kernel."""
        launch = cached_launch(kernel.kernel.signature, step, kernel.plan.offsets)
        self._alone((step.code.module, max(step.code.threads, 1), launch.template), [(kernel, launch)])

    def _ended(self, first: _PlannedKernel, last: _PlannedKernel, pair: Sequence[Any]) -> bool:
        """Two launches as one; False if they must come one by one."""
        kernels = (first, last)
        found = ended([(each.kernel.signature, each.plan) for each in kernels], pair, self.device)
        if found is not None:
            self.counters.append(self.words + len(found.template) - 1)
            self._alone((found.code, found.blocks, found.template), [*zip(kernels, found.launches, strict=True)])
        return found is not None

    def _alone(
        self, launch: tuple[Any, int, Sequence[int]], parts: Sequence[tuple[_PlannedKernel, CachedLaunch]]
    ) -> None:
        """A launch. parts: of kernels, whose words follow each other."""
        operands, numbers, start = list[tuple[int, _Operand, int]](), list[tuple[int, Any, Encoder]](), 0
        for kernel, part in parts:
            self.between += [(self.words + start + word, offset) for word, offset in part.between]
            operands += [(start + word, kernel.found[at], offset) for word, at, offset in part.pointers]
            numbers += [(start + word, kernel.slots[at], encoder) for word, at, encoder in part.scalars]
            start += len(part.template)
        self._launch(launch, operands, numbers)

    def _launch(
        self,
        launch: tuple[Any, int, Sequence[int]],
        operands: Sequence[tuple[int, _Operand, int]],
        numbers: Sequence[tuple[int, Any, Encoder]],
    ) -> None:
        """One more. operands, numbers: of its words, numbers by slots or as floats."""
        self.pointers += [(self.words + word, place, start + more) for word, (_, place, start), more in operands]
        code, blocks, template = launch
        words = [*template]
        for word, slot, encoder in numbers:
            if isinstance(slot, float):
                words[word] = encoder(slot)
            else:
                self.numbers.append((self.words + word, slot, encoder))
        self.launches.append((code, blocks, words))
        self.words += len(launch[2])


def returned(plan: Any) -> list[Returned]:
    """The arrays and numbers that a call gives to the user."""
    found, pending = [], [plan.result, *(each.value for each in plan.stores)]
    while pending:
        each = pending.pop()
        pending += getattr(each, "parts", ())
        if isinstance(each, Returned):
            found.append(each)
    return found


def _nbytes_of(array: DeviceArray) -> int:
    """The bytes of a dense array, as the memory between kernels counts them."""
    return _rounded(max(1, prod(array.shape) * array.dtype.nbytes))


def _rounded(nbytes: int) -> int:
    return -(-nbytes // ALIGNED) * ALIGNED
