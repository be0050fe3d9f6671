"""Numbers in device memory that are 0 between kernels, by which a kernel knows which of its blocks is done last.

Kernels on one stream run one after the other, so that each stream needs one number. It is never freed.
"""

from __future__ import annotations

from threading import get_ident
from typing import NamedTuple

from fusec.base import locks
from fusec.base.dtypes import UINT8
from fusec.runtime.cuda.memory import CudaArray, empty, fill_with_zeros
from fusec.runtime.cuda.streams import LEGACY, PER_THREAD, is_captured, wait

MOST = 4096  # streams of a device that have a number of their own
NBYTES = 8  # of a number


class BlockCounter(NamedTuple):
    """A number, and what keeps its memory."""

    pointer: int
    memory: CudaArray


_all: dict[int, CudaArray] = {}  # by device
_known: dict[tuple[int, int, int], BlockCounter] = {}  # by device, stream and thread


def block_counter(stream: int, device: int) -> BlockCounter:
    """The number of a stream. What is captured into a graph, which may run on any stream, has a new one."""
    if stream != LEGACY and is_captured(stream):  # the legacy stream cannot be captured
        return _new(stream, device)
    key = (device, stream, get_ident() if stream == PER_THREAD else 0)
    found = _known.get(key)
    if found is None:
        with locks.lock:
            number = sum(each[0] == device for each in _known)
            if number >= MOST:
                return _new(stream, device)
            if device not in _all:
                _all[device] = memory = empty((MOST * NBYTES,), UINT8, device=device, stream=LEGACY)
                fill_with_zeros(memory.pointer, MOST * NBYTES, device, LEGACY)
            memory = _all[device]
            wait(stream, LEGACY, device)
            found = _known[key] = BlockCounter(memory.pointer + number * NBYTES, memory)
    return found


def _new(stream: int, device: int) -> BlockCounter:
    memory = empty((NBYTES,), UINT8, device=device, stream=stream)
    fill_with_zeros(memory.pointer, NBYTES, device, stream)
    return BlockCounter(memory.pointer, memory)
