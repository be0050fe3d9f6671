"""Calls of NumPy's functions between kernels on a device: CuPy, to which NumPy hands its arrays, computes there.

memory: that of the call, a `DeviceMemory`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from fusec.errors import FusecError
from fusec.errors.fusing import CallOnDevice
from fusec.fusion.slots import fresh
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


def _refused(call: LibraryCall, why: str) -> FusecError:
    return CallOnDevice(call.name, why).at(call.place)
