"""Memory of a launch: global buffers between guard zones, and local memory; shared.py has the third kind.

Every space is a window of the generic address space. An address outside every buffer, or not aligned to the access,
is a fault; what nobody has written yet holds a pattern.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ptx.faults import Misaligned, OutOfBounds
from ptx.types import UNSIGNED

Array = np.ndarray
SHARED, LOCAL, GLOBAL = 1 << 40, 2 << 40, 0x7F << 40  # where the windows start
WINDOW = 1 << 40
GUARD = 1 << 16  # bytes without an owner between buffers
FIRST = 1024  # the lowest address inside the shared and the local window, so that null is outside
POISON = 0xA7


def describe(addresses: Array, wrong: Array, nbytes: int) -> str:
    """The first wrong access: its position in the group and its address."""
    at = int(np.flatnonzero(wrong)[0])
    return f"{nbytes} bytes at {int(addresses[at]):#x} by thread #{at} of the {len(addresses)} that run"


def check_alignment(addresses: Array, nbytes: int) -> None:
    """Raises Misaligned unless every address is a multiple of the width."""
    low = addresses & np.uint64(nbytes - 1)
    if low.any():
        raise Misaligned(f"misaligned access of {describe(addresses, low != 0, nbytes)}")


@dataclass
class Buffer:
    """An array that lives in global memory. array: a view of its bytes there; address: of its first element."""

    array: Array
    address: int


class GlobalMemory:
    """Buffers and module variables in one block of bytes, far enough apart that an overrun hits no neighbour."""

    def __init__(self, arrays: Sequence[Array], variables: Mapping[str, bytearray], aligned: int = 16) -> None:
        """aligned: the address of each array is a multiple of this (a power of two) and of no higher one."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        end, places = GUARD, []
        for nbytes, align, odd in (
            *((_extent(each)[1], aligned, aligned) for each in arrays),
            *((len(each), 256, 0) for each in variables.values()),
        ):
            start = -(-end // (2 * align)) * 2 * align + odd
            places.append(start)
            self._starts.append(start)
            self._ends.append(start + nbytes)
            end = start + nbytes + GUARD
        self._bytes = np.full(-(-end // 16) * 16, POISON, np.uint8)
        self._views = {width: self._bytes.view(kind) for width, kind in UNSIGNED.items()}
        self.buffers = [self._place(each, start) for each, start in zip(arrays, places, strict=False)]
        self.symbols = {}
        for (name, content), start in zip(variables.items(), places[len(arrays) :], strict=True):
            self._bytes[start : start + len(content)] = np.frombuffer(content, np.uint8)
            self.symbols[name] = GLOBAL + start

    def _place(self, array: Array, start: int) -> Buffer:
        offset, _ = _extent(array)
        view = np.ndarray(array.shape, array.dtype, self._bytes, start + offset, array.strides)
        if array.size:
            view[...] = array
        return Buffer(view, GLOBAL + start + offset)

    def read_variable(self, name: str, nbytes: int) -> bytes:
        """The bytes of a module variable now."""
        start = self.symbols[name] - GLOBAL
        return self._bytes[start : start + nbytes].tobytes()

    def locate(self, addresses: Array, nbytes: int) -> Array:
        """Byte offsets of accesses. Raises Misaligned, OutOfBounds."""
        check_alignment(addresses, nbytes)
        offsets = addresses.view(np.int64) - GLOBAL
        low, high = int(offsets.min()), int(offsets.max()) + nbytes
        owner = bisect_right(self._starts, low) - 1
        if owner < 0 or high > self._ends[owner]:
            owners = np.searchsorted(self._starts, offsets, "right") - 1
            wrong = (owners < 0) | (offsets + nbytes > np.array(self._ends)[owners])
            if wrong.any():
                raise OutOfBounds(f"outside every buffer: {describe(addresses, wrong, nbytes)}")
        return offsets

    def load(self, addresses: Array, width: int, count: int) -> list[Array]:
        """For each of `count` neighbours of `width` bytes, the values of all threads as unsigned numbers."""
        places = self.locate(addresses, width * count) >> SHIFT[width]
        view = self._views[width]
        return [view[places + k] if k else view[places] for k in range(count)]

    def store(self, addresses: Array, width: int, values: Sequence[Array]) -> None:
        """Store neighbours; of threads that write to one place the last wins."""
        places = self.locate(addresses, width * len(values)) >> SHIFT[width]
        for k, each in enumerate(values):
            self._views[width][places + k] = each


SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


def _extent(array: Array) -> tuple[int, int]:
    """How far behind the lowest byte the first element lies, and how many bytes the array spans."""
    if not array.size:
        return 0, 0
    low, high = np.lib.array_utils.byte_bounds(array)
    return array.__array_interface__["data"][0] - low, high - low


class LocalMemory:
    """A stack for each thread; it grows with the calls."""

    def __init__(self, threads: int) -> None:
        self._bytes = np.full((threads, 0), POISON, np.uint8)

    def reserve(self, nbytes: int) -> None:
        """Make room for addresses below FIRST + nbytes."""
        missing = -(-nbytes // 16) * 16 - self._bytes.shape[1]
        if missing > 0:
            fresh = np.full((len(self._bytes), missing), POISON, np.uint8)
            self._bytes = np.ascontiguousarray(np.concatenate([self._bytes, fresh], axis=1))

    def _places(self, addresses: Array, nbytes: int) -> Array:
        check_alignment(addresses, nbytes)
        offsets = (addresses - np.uint64(FIRST)).view(np.int64)
        wrong = (offsets < 0) | (offsets + nbytes > self._bytes.shape[1])
        if wrong.any():
            raise OutOfBounds(f"outside local memory: {describe(addresses, wrong, nbytes)}")
        return offsets

    def load(self, addresses: Array, threads: Array, width: int, count: int) -> list[Array]:
        """As GlobalMemory.load; addresses within the window, threads by their number."""
        places = self._places(addresses, width * count) >> SHIFT[width]
        view = self._bytes.view(UNSIGNED[width])
        return [view[threads, places + k] for k in range(count)]

    def store(self, addresses: Array, threads: Array, width: int, values: Sequence[Array]) -> None:
        """As GlobalMemory.store."""
        places = self._places(addresses, width * len(values)) >> SHIFT[width]
        view = self._bytes.view(UNSIGNED[width])
        for k, each in enumerate(values):
            view[threads, places + k] = each
