"""Arrays on a CUDA device in fused functions: what a call is given of them, and the frame of a call there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.operands import ArrayPlace, outline_of
from fusec.base import dtypes, locks
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import replace
from fusec.dispatch.device import machine_of
from fusec.dispatch.interception import present
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.errors import FusecError, targets
from fusec.fusion.devices import device_calls
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.results import Returned
from fusec.fusion.memory.slots import Fresh, SlotView
from fusec.fusion.trace.trace_values import Array
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.fusion.devices.device_repeats import DeviceRepeats
    from fusec.fusion.devices.device_sequences import PreparedPlan
    from fusec.runtime.cuda import DeviceArray

MAX_KNOWN = 16  # devices and alignments of arrays for which a plan keeps launches


class DeviceSide:
    """The arrays of one call that are on a device, with the streams that work on them waits for."""

    def __init__(self) -> None:
        self.asked: object = None  # the stream= of the call
        self.arrays: list[DeviceArray] = []
        self.served: tuple[PreparedPlan, int, int] | None = None  # what ran all kernels at once; device and stream
        self._current: int | None = None  # stream of the first library that has such a notion

    @property
    def stream(self) -> int:
        """The stream of the call: the one that was asked for, else as kernels choose it."""
        return cuda.handle(self.asked) if self.asked is not None else self._current or cuda.LEGACY

    @staticmethod
    def row_blocks(array: DeviceArray) -> int:
        """How many blocks hold a row of several chunks where an array is, see `fusec.kinds.launch.Machine`."""
        return machine_of(array.device).row_blocks

    def described(self, value: Any) -> DeviceArray:
        """An array of any library. Raises the errors of targets."""
        if self._current is None and cuda.library_of(value) in ("cupy", "torch"):
            self._current = cuda.stream_for([value])
        stream = self._current or cuda.LEGACY
        found = cuda.describe(value, stream)
        self.arrays.append(replace(found, stream=stream) if found.stream is None else found)
        return replace(found, stream=None)

    def repeats(self, told: Callable[[Exception], Exception], known: Mapping[int, tuple[Any, Any]]) -> DeviceRepeats:
        """What repeats calls of a function. told: makes errors what users see. known: its constants."""
        with locks.lock:
            from fusec.fusion.devices.device_repeats import DeviceRepeats
        return DeviceRepeats(told, known)


def is_described(value: object) -> bool:
    """Whether an array of a call is one on a device."""
    return isinstance(value, cuda.DeviceArray)


def form_of(array: DeviceArray) -> tuple[object, ...]:
    """What the kind of a call depends on."""
    return (type(array), array.dtype.numpy, array.shape, array.strides)


def check_alone(flat: Iterable[object]) -> None:
    """Raise HostArrayAmongDeviceArrays if some arrays of a call are on a device, and others are not."""
    arrays = [each for each in flat if isinstance(each, np.ndarray) or is_described(each)]
    if any(map(is_described, arrays)) and any(isinstance(each, np.ndarray) for each in arrays):
        raise targets.HostArrayAmongDeviceArrays("numpy.ndarray").at()


def outline(array: DeviceArray) -> Array:
    """A NumPy array of the same address and form, of which nothing may be read."""
    row, pointer = array.dtype, array.pointer or cuda.VECTOR_BYTES
    return outline_of(ArrayPlace(pointer, array.shape, array.strides, row.nbytes, array.readonly), row.numpy)


def on_host(flat: Sequence[Any]) -> list[Any]:
    """The arrays and numbers of a call with arrays in host memory instead, which lie as those do, without contents."""
    arrays = [outline(each) for each in flat if is_described(each)]
    memory: list[tuple[int, int]] = []  # its parts, as addresses of what lies in them
    for low, high in sorted(map(np.lib.array_utils.byte_bounds, arrays)):
        if memory and low < memory[-1][1]:
            low, high = memory[-1][0], max(high, memory.pop()[1])
        memory.append((low, high))
    bases = [(low, np.empty(high - low, np.uint8)) for low, high in memory]

    def moved(array: Array) -> Array:
        start: int = array.__array_interface__["data"][0]
        low, base = next(each for each in reversed(bases) if each[0] <= start or not array.size)
        return np.ndarray(array.shape, array.dtype, base, start - low if array.size else 0, array.strides)

    return [moved(outline(each)) if is_described(each) else each for each in flat]


class DeviceMemory:
    """The frame of one call on a device. host: the memory of the plan, which knows what is in the slots."""

    is_host = takes_results = False

    def __init__(self, plan: Any, side: DeviceSide, flat: Sequence[Any]) -> None:
        host, self.side = plan.memory, side
        self.device = cuda.same_device(side.arrays)
        self.stream = side.stream
        cuda.acquire(side.arrays, self.stream, self.device)
        self.like = side.arrays[0].given
        self._given = side.arrays
        self._new: set[int] = set()
        self._waiting: list[tuple[Any, tuple[Any, ...]]] = []  # steps of one launch, with their operands
        self._delivered: dict[int, Any] = {}
        self.frame: list[Any] = [*flat]
        self.frame += [self._constant(host, at) for at in range(-len(host.own), 0)]
        plan.compute(self.frame)
        self.prepared, self.arena = self._prepared(plan), None
        nbytes = host.arena_bytes if self.prepared is None else self.prepared.nbytes
        if nbytes:
            self.arena = self._described(cuda.empty((nbytes,), dtypes.UINT8, None, self.device, self.stream))
        if host.arena_slot is not None:
            self.frame[host.arena_slot] = self.arena
        for slot, view in host.lasting:
            self.frame[slot] = self.view(self.frame, view)

    def _constant(self, host: Any, slot: int) -> Any:
        """What a slot of the plan's own holds, an array on the device instead of one of NumPy's."""
        value = host.own[slot]
        if not isinstance(value, np.ndarray):
            return value
        known = host.on_devices.get((slot, self.device))
        if known is None:
            known = host.on_devices[slot, self.device] = cuda.from_numpy(value, self.device, self.stream)
        known.stream = self.stream  # which need not wait: the host has waited for the copy
        return self._described(known)

    def _prepared(self, plan: Any) -> PreparedPlan | None:
        """The kernels as launches, if a call like this one has run before, and nobody looks at single kernels."""
        known = plan.launches
        if known is None or present() is not None:
            return None
        key = (self.device, *(each.pointer % cuda.VECTOR_BYTES for each in self.frame if is_described(each)))
        if key not in known:
            if len(known) >= MAX_KNOWN:
                known.clear()
            known[key] = None
            return None
        if known[key] is None:
            with locks.lock:
                from fusec.fusion.devices.device_sequences import prepared_plan
            known[key] = prepared_plan(plan, self.frame, self.device) or False
        return known[key] or None

    def runs_at_once(self) -> bool:
        """Run all kernels, if they are known together; False if nothing is done."""
        prepared, frame = self.prepared, self.frame
        if prepared is None:
            return False
        try:
            begun: Iterator[Any] = iter([part.begun(frame) for part in prepared.kernels])
        except FusecError:  # a number that does not fit: the kernel that takes it says so
            return False
        for each in prepared.fresh:
            frame[each.slot] = self.new(each)
        given = len(frame) - prepared.own
        addresses = [each.pointer if is_described(each) else 0 for each in (*frame[:given], self.arena, *frame[given:])]
        if any(addresses[slot] % cuda.VECTOR_BYTES for slot in prepared.new):
            return False
        for part in prepared.parts:
            if not isinstance(part, CallStep):
                part.run(next(begun), addresses, self.stream)
                continue
            for slot in part.inputs:
                if slot in prepared.views:
                    frame[slot] = self.view(frame, prepared.views[slot])
            part.run(frame, self)
            for slot in part.outputs:
                addresses[slot] = frame[slot].pointer
            for slot in part.releases:
                frame[slot] = None
        self.side.served = prepared, self.device, self.stream
        return True

    def new(self, given: Fresh) -> DeviceArray:
        """A new array of the library of the call's first one."""
        row, on = dtypes.from_numpy(given.dtype), cuda.StreamOn(self.stream, self.device)
        assert row is not None, "kernels write known dtypes"
        self._new.add(given.slot)
        return self._described(cuda.allocate(self.like, given.shape, row, given.order, on))

    def _described(self, array: object) -> DeviceArray:
        return replace(cuda.describe(array, self.stream), stream=None)

    def view(self, frame: list[Any], view: SlotView) -> DeviceArray:
        """A part of the array in a slot."""
        base, row = frame[view.slot], dtypes.from_numpy(view.dtype)
        assert row is not None, "kernels take known dtypes"
        is_fixed, start = base.readonly or view.readonly, base.pointer + view.offset
        return cuda.DeviceArray(
            start, view.shape, view.strides, row, base.device, is_fixed, None, base.owner, base.given
        )

    def run(self, step: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...]) -> None:
        """Enqueue a kernel."""
        options = CallOptions(stream=self.stream)
        if step.group.axes is not None:
            options = CallOptions(step.axis, keepdims=True, stream=self.stream)
        step.kernel.run((*inputs, *outputs), None, options)

    def _copy(self, source: object, target: object) -> None:
        Planned.copier().run((source, target), None, CallOptions(stream=self.stream))

    def check(self, step: Any) -> None:
        """Raise CallOnDevice for a call of a library that cannot run here."""
        device_calls.check(step.call)

    def call(self, step: Any, operands: Sequence[Any]) -> list[DeviceArray]:
        """Call a library; its results."""
        return device_calls.run(step.call, operands, step.outputs, self)

    def owned(self, array: DeviceArray) -> Any:
        """An array of fusec's own in the memory of one that it keeps."""
        layout = cuda.DeviceLayout(array.shape, array.strides, array.dtype)
        made = cuda.borrowed(array.pointer, layout, self.device, array)
        made.stream = self.stream
        return made

    def taken(self, array: DeviceArray, wanted: Fresh, apart: Sequence[Any]) -> DeviceArray:
        """An array that a library made as a new one: itself, if it is of the call's library, lies as it should, and has
        no memory of those apart.
        """
        order = range(len(wanted.shape)) if wanted.order is None else wanted.order
        is_own = not any(np.may_share_memory(outline(each), outline(array)) for each in apart if is_described(each))
        is_laid_out = array.strides == strides_in_order(wanted.shape, order, array.dtype.nbytes)
        is_laid_out = is_laid_out and array.pointer % cuda.VECTOR_BYTES == 0
        if is_own and is_laid_out and cuda.library_of(array) == cuda.library_of(self.like):
            self._new.add(wanted.slot)
            return replace(array, stream=None)
        made = self.new(wanted)
        self._copy(array, made)
        return made

    def finish(self) -> None:
        """Make later work on the streams of other libraries' arrays wait for the call."""
        cuda.release(self._given, self.stream, self.device)

    # --- what the user gets --------------------------------------------------------------------------------------

    def lent(self, frame: list[Any], asked: Returned) -> Any:
        """An array in its library; a number that was passed as it is. NumPy's numbers are arrays without axes here."""
        held = frame[asked.slot]
        if not is_described(held):
            return held
        is_new, is_whole = asked.slot in self._new, asked.view is None
        if is_whole and not is_new:
            return held.given
        if is_whole and asked.slot in self._delivered:
            return self._delivered[asked.slot]
        part = held if asked.view is None else self.view(frame, asked.view)
        found = None
        if self._is_shown(part):
            found = held.given if asked.view is None else cuda.seen_as(held.given, part, asked.view.offset)
        if found is not None and not is_new:
            return found
        found = cuda.deliver(self.like, self._apart(part) if found is None else found)
        if is_whole:
            self._delivered[asked.slot] = found
        return found

    def _apart(self, part: DeviceArray) -> object:
        """A copy in memory of its own."""
        order = None if self._is_jax else sorted(range(len(part.shape)), key=lambda axis: -abs(part.strides[axis]))
        on = cuda.StreamOn(self.stream, self.device)
        found = cuda.allocate(self.like, part.shape, part.dtype, order, on)
        self._copy(part, found)
        return found

    @property
    def _is_jax(self) -> bool:
        return cuda.library_of(self.like) == "jax"

    def _is_shown(self, part: DeviceArray) -> bool:
        """Whether the library of the call may have such views; JAX has arrays that are dense in C order."""
        dense = strides_in_order(part.shape, range(len(part.shape)), part.dtype.nbytes)
        return not self._is_jax or part.strides == dense
