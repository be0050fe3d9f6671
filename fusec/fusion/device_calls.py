"""Calls of NumPy's functions between kernels on a device: CuPy, to which NumPy hands its arrays, computes there.

memory: that of the call, a `DeviceMemory`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.errors import FusecError
from fusec.errors.fusing import CallOnDevice
from fusec.fusion.slots import Fresh, fresh
from fusec.fusion.trace_values import LibraryCall
from fusec.runtime import cuda


def check(call: LibraryCall) -> None:
    """Raise CallOnDevice if a call needs CuPy, and there is none."""
    if call.kernels or not call.buffers:
        return
    try:
        importlib.import_module("cupy")
    except ImportError as problem:
        raise _refused(call, "CuPy, which would compute it there, cannot be imported") from problem


def run(call: LibraryCall, operands: Sequence[Any], slots: Sequence[int], memory: Any) -> list[Any]:
    """The arrays that a call makes, for these slots. Raises CallOnDevice, and what the function raises."""
    taken = (_by_kernels if call.kernels else _by_cupy)(call, operands, memory)
    wanted = [(each.phantom.shape, each.phantom.dtype) for each in call.buffers]
    if [(each.shape, each.dtype.numpy) for each in taken] != wanted:
        raise _refused(call, "CuPy's result has another shape or dtype than NumPy's")
    targets = [fresh(slot, buffer) for slot, buffer in zip(slots, call.buffers, strict=True)]
    return [memory.taken(each, target, operands) for each, target in zip(taken, targets, strict=True)]


def _by_cupy(call: LibraryCall, operands: Sequence[Any], memory: Any) -> list[cuda.DeviceArray]:
    """What CuPy makes of arrays."""
    arrays = [cuda.lent_to_cupy(each) if isinstance(each, cuda.DeviceArray) else each for each in operands]
    with cuda.in_cupy(cuda.StreamOn(memory.stream, memory.device)):
        try:
            found = call.function(*arrays)
        except TypeError as problem:  # NumPy's, for a function that CuPy does not have
            raise _refused(call, "CuPy does not have it for these arrays") from problem
        return [cuda.describe(each, memory.stream) for each in found if cuda.library_of(each) == "cupy"]


def _by_kernels(call: LibraryCall, operands: Sequence[Any], memory: Any) -> list[cuda.DeviceArray]:
    """What kernels of fusec make of arrays of its own, which run on a stream of theirs that each waits for."""
    arrays = [memory.owned(each) if isinstance(each, cuda.DeviceArray) else each for each in operands]
    found = [cuda.describe(each) for each in call.function(*arrays)]
    cuda.acquire(found, memory.stream, memory.device)
    return found


class RepeatedCalls:
    """The calls of libraries in one repeated call, of arrays of its own library, which is current on its stream.

    repeat: a `RepeatedCall`. held: the memory between kernels.
    """

    def __init__(self, repeat: Any, frame: list[Any], addresses: list[int], held: Any, stream: int) -> None:
        self.repeat, self.frame, self.addresses, self.stream = repeat, frame, addresses, stream
        for slot, array in repeat.constants:
            frame[slot] = self._lent(array)
        arena = repeat.plan.memory.arena_slot
        if arena is not None:
            nbytes = repeat.plan.memory.arena_bytes
            layout = cuda.DeviceLayout((nbytes,), (1,), dtypes.UINT8)
            frame[arena] = self._lent(cuda.CudaArray(held, layout, repeat.device, stream))

    def _lent(self, array: cuda.CudaArray) -> Any:
        """An array of fusec's own as one of the library's."""
        return array if self.repeat.source.library == "fusec" else cuda.lent_to_cupy(cuda.describe(array))

    def run(self, step: Any) -> None:
        """Call the function on the slots of a call. Raises CallOnDevice, and what the function raises."""
        call, frame, views = step.call, self.frame, self.repeat.prepared.views
        if not call.buffers:  # a look at values, for which devices do not wait
            return
        operands = [
            frame[slot] if slot not in views else self.repeat.seen(frame[views[slot].slot], views[slot])
            for slot in step.inputs
        ]
        try:
            found = call.function(*operands)
        except TypeError as problem:  # NumPy's, for a function that CuPy does not have
            if call.kernels:
                raise
            raise _refused(call, "CuPy does not have it for these arrays") from problem
        for slot, buffer, each in zip(step.outputs, call.buffers, found, strict=True):
            frame[slot], self.addresses[slot] = self._as_planned(call, each, fresh(slot, buffer), operands)
        for slot in step.releases:
            frame[slot] = None

    def _as_planned(self, call: LibraryCall, found: Any, wanted: Fresh, operands: Sequence[Any]) -> tuple[Any, int]:
        """A result that has memory of its own, laid out as the plan says; and its address."""
        source = self.repeat.source
        if type(found) is not source.kind or found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise _refused(call, "CuPy's result has another shape or dtype than NumPy's")
        address, _ = source.read(found)
        order = range(len(wanted.shape)) if wanted.order is None else wanted.order
        is_laid_out = found.strides == strides_in_order(wanted.shape, order, wanted.dtype.itemsize)
        is_own = cuda.is_whole(found) and not any(each is found for each in operands)
        if is_own and is_laid_out and address % cuda.VECTOR_BYTES == 0:
            return found, address
        row = dtypes.from_numpy(wanted.dtype)
        assert row is not None, "kernels take known dtypes"
        made, address = source.maker(wanted.shape, order, row, self.repeat.device)()
        Planned.copier().run((found, made), None, CallOptions(stream=self.stream))
        return made, address


def _refused(call: LibraryCall, why: str) -> FusecError:
    return CallOnDevice(call.name, why).at(call.place)
