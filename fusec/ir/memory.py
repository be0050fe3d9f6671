"""The interpreter's memory: buffers, and addresses as (buffer, byte offset) pairs, one for every lane.

A buffer is either an argument array, seen as the bytes it spans, or a local array, of which every lane has its own.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fusec.dtypes import DType
from fusec.records import dataclass, field

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Lanes = NDArray[np.intp]

ADDRESS: np.dtype[Any] = np.dtype([("buffer", np.int64), ("offset", np.int64)])  # buffer 0 is the null pointer


class InterpreterError(AssertionError):
    """The interpreted program did what no program may: a bad address, a missing function, a wrong argument."""


class Buffer(Protocol):
    """Memory of one kind; `offsets` are in bytes and within bounds of `size`."""

    name: str
    size: int

    def gather(self, lanes: Lanes, offsets: Array, dtype: DType) -> Array:
        """The values at one offset for each of the lanes."""

    def scatter(self, lanes: Lanes, offsets: Array, values: Array) -> None:
        """Write one value for each of the lanes; the last lane wins where offsets coincide."""


class ArrayBuffer:
    """The bytes that an array spans, gaps between its elements included."""

    def __init__(self, name: str, array: Array) -> None:
        self.name = name
        self.array = array  # keeps the memory alive
        reach = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]
        below = sum(step for step in reach if step < 0)
        above = sum(step for step in reach if step > 0)
        self.start = -below  # offset of element 0
        self.size = above - below + array.itemsize if array.size else 0
        base = array.__array_interface__["data"][0] + below
        self.bytes: NDArray[np.uint8] = np.ctypeslib.as_array((ctypes.c_uint8 * self.size).from_address(base))

    def _elements(self, offsets: Array, itemsize: int, dtype: np.dtype[Any]) -> tuple[Array, Array] | None:
        """The span as elements and the positions of the offsets in it, unless elements lie at odd addresses."""
        phase = int(offsets[0]) % itemsize if offsets.size else 0
        if (offsets % itemsize != phase).any():
            return None
        whole = self.bytes[phase : phase + (self.size - phase) // itemsize * itemsize]
        return whole.view(dtype), offsets // itemsize

    def gather(self, lanes: Lanes, offsets: Array, dtype: DType) -> Array:
        """The values at the offsets, the same for every lane."""
        del lanes
        found = self._elements(offsets, dtype.nbytes, dtype.numpy)
        if found is not None:
            return np.asarray(found[0][found[1]])
        octets = self.bytes[offsets[:, None] + np.arange(dtype.nbytes)]
        return octets.reshape(-1).view(dtype.numpy)

    def scatter(self, lanes: Lanes, offsets: Array, values: Array) -> None:
        """Write the values at the offsets."""
        del lanes
        assert self.array.flags.writeable, f"array {self.name} is read-only"
        found = self._elements(offsets, values.dtype.itemsize, values.dtype)
        if found is not None:
            found[0][found[1]] = values
        else:
            itemsize = values.dtype.itemsize
            octets = np.ascontiguousarray(values).view(np.uint8).reshape(-1, itemsize)
            self.bytes[offsets[:, None] + np.arange(itemsize)] = octets


class LaneBuffer:
    """A local array: a row of elements for every lane."""

    def __init__(self, name: str, lanes: int, length: int, dtype: DType) -> None:
        self.name = name
        self.rows = np.zeros((lanes, length), dtype.numpy)
        self.size = length * dtype.nbytes

    def gather(self, lanes: Lanes, offsets: Array, dtype: DType) -> Array:
        """The values at one offset in each lane's own row."""
        assert self.rows.dtype == dtype.numpy, f"local array {self.name} read as {dtype}"
        return np.asarray(self.rows[lanes, offsets // dtype.nbytes])

    def scatter(self, lanes: Lanes, offsets: Array, values: Array) -> None:
        """Write one value into each lane's own row."""
        assert self.rows.dtype == values.dtype, f"local array {self.name} written as {values.dtype}"
        self.rows[lanes, offsets // values.dtype.itemsize] = values


@dataclass
class Memory:
    """All buffers of a running program; number 0 is no buffer."""

    buffers: list[Buffer | None] = field(default_factory=lambda: [None])

    def add(self, buffer: Buffer) -> int:
        """Register a buffer and return its number."""
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def load(self, address: Array, lanes: Lanes, dtype: DType) -> Array:
        """The values at the addresses of some lanes, one for each of those. address: one for every lane."""
        result = np.zeros(lanes.shape, dtype.numpy)
        for buffer, chosen in self._targets(address, lanes, dtype.nbytes):
            result[chosen] = buffer.gather(lanes[chosen], address["offset"][lanes[chosen]], dtype)
        return result

    def store(self, address: Array, lanes: Lanes, values: Array) -> None:
        """Write one value for each of some lanes, in that order."""
        for buffer, chosen in self._targets(address, lanes, values.dtype.itemsize):
            buffer.scatter(lanes[chosen], address["offset"][lanes[chosen]], values[chosen])

    def _targets(self, address: Array, lanes: Lanes, nbytes: int) -> list[tuple[Buffer, Lanes]]:
        """The buffers that the lanes point into, each with positions in `lanes`; InterpreterError for a bad address."""
        numbers = address["buffer"][lanes]
        groups: list[tuple[Buffer, Lanes]] = []
        for number in np.unique(numbers):
            chosen = np.flatnonzero(numbers == number)
            buffer = self.buffers[number] if 0 <= number < len(self.buffers) else None
            if buffer is None:
                raise InterpreterError("a null or dead pointer is followed")
            offsets = address["offset"][lanes[chosen]]
            outside = (offsets < 0) | (offsets > buffer.size - nbytes)
            if outside.any():
                raise InterpreterError(
                    f"{buffer.name}: byte offset {offsets[outside][0]} is outside the {buffer.size} bytes of the array"
                )
            groups.append((buffer, chosen))
        return groups


def addresses(buffer: int, offsets: Array) -> Array:
    """Addresses in one buffer, of the shape of `offsets`."""
    result = np.empty(np.shape(offsets), ADDRESS)
    result["buffer"] = buffer
    result["offset"] = offsets
    return result
