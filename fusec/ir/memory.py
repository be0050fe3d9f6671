"""The interpreter's memory: buffers, and addresses as (buffer, byte offset) pairs, one for every lane.

A buffer is an argument array, seen as the bytes it spans, a local array, of which every lane has its own, or a shared
one, of which every block has its own.
"""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Lanes = NDArray[np.intp]

ADDRESS: np.dtype[Any] = np.dtype([("buffer", np.int64), ("offset", np.int64)])  # buffer 0 is the null pointer


class InterpreterError(AssertionError):
    """An invalid action of an interpreted program: a bad address, a missing function, a wrong argument."""


class BlockFault(InterpreterError):  # noqa: N818 - what happened
    """A conflict between threads of a block. what: a description for people; line: of the program, once known."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what, self.line = what, line

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}"


class MemoryArea(Protocol):
    """Memory of one kind; `offsets` are in bytes and within bounds of `size`."""

    name: str
    size: int

    def gather(self, lanes: Lanes, offsets: Array, dtype: DType) -> Array:
        """The values at one offset for each lane."""

    def scatter(self, lanes: Lanes, offsets: Array, values: Array) -> None:
        """Write one value for each lane; the last lane wins where offsets coincide."""


class ArrayBuffer:
    """The bytes that an array spans, including gaps between its elements."""

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


NOBODY, SEVERAL, UPDATED = -1, -2, -3  # in place of a thread: none, more than one, some by atomic updates


@dataclass
class SharedBuffer:
    """A shared array: a row of elements for every block, and the threads that accessed each since the last barrier."""

    name: str
    memory: Memory
    blocks: int
    threads: int  # of each block
    length: int  # elements of each block
    dtype: DType

    def __post_init__(self) -> None:
        self.elements = np.zeros(self.blocks * self.length, self.dtype.numpy)
        self.size = self.length * self.dtype.nbytes
        self.written = np.zeros(self.elements.size, np.bool_)
        self.writer = np.full(self.elements.size, NOBODY, np.int32)
        self.reader = np.full(self.elements.size, NOBODY, np.int32)

    def meet(self, blocks: Mask) -> None:
        """A barrier in some of the blocks."""
        for touched in (self.writer, self.reader):
            touched.reshape(len(blocks), self.length)[blocks] = NOBODY

    def gather(self, lanes: Lanes, offsets: Array, dtype: DType) -> Array:
        """The values in the rows of the lanes' blocks. Raises BlockFault if a barrier or a write is missing."""
        assert self.elements.dtype == dtype.numpy, f"shared array {self.name} read as {dtype}"
        places, threads = self._places(lanes, offsets, dtype.nbytes)
        self._refuse(~self.written[places], lanes, places, "reads {place}, which nobody has written")
        allowed = (NOBODY, UPDATED) if self.memory.updating else (NOBODY,)
        writer = self.writer[places]
        what = "reads {place} before a barrier after another has written it"
        self._refuse(~np.isin(writer, allowed) & (writer != threads), lanes, places, what)
        if not self.memory.updating:
            self._touch(self.reader, places, threads)
        return np.asarray(self.elements[places])

    def scatter(self, lanes: Lanes, offsets: Array, values: Array) -> None:
        """Write one value for each lane. Raises BlockFault if the order of threads would matter."""
        assert self.elements.dtype == values.dtype, f"shared array {self.name} written as {values.dtype}"
        places, threads = self._places(lanes, offsets, values.dtype.itemsize)
        reader, writer = self.reader[places], self.writer[places]
        what = "writes {place} before a barrier after another has read it"
        self._refuse((reader != NOBODY) & (reader != threads), lanes, places, what)
        allowed = (NOBODY, UPDATED) if self.memory.updating else (NOBODY,)
        differs = np.frombuffer(values.tobytes(), f"V{values.itemsize}") != self._bits(places)
        what = "writes {place} before a barrier after another has written it"
        self._refuse(~np.isin(writer, allowed) & (writer != threads) & differs, lanes, places, what)
        self.elements[places], self.written[places] = values, True
        if self.memory.updating:
            self.writer[places] = UPDATED
            return
        differs = np.frombuffer(values.tobytes(), f"V{values.itemsize}") != self._bits(places)
        self._refuse(differs, lanes, places, what)
        self._touch(self.writer, places, threads)

    def _places(self, lanes: Lanes, offsets: Array, nbytes: int) -> tuple[Array, Array]:
        return lanes // self.threads * self.length + offsets // nbytes, lanes % self.threads

    def _bits(self, places: Array) -> Array:
        """Elements as bytes that compare equal only if they are the same."""
        return np.frombuffer(self.elements[places].tobytes(), f"V{self.elements.itemsize}")

    def _touch(self, touched: Array, places: Array, threads: Array) -> None:
        """Note who was there."""
        before = touched[places]
        touched[places] = np.where((before == NOBODY) | (before == threads), threads, SEVERAL)
        after = touched[places]
        touched[places[after != threads]] = SEVERAL

    def _refuse(self, wrong: Mask, lanes: Lanes, places: Array, what: str) -> None:
        if wrong.any():
            at = int(np.argmax(wrong))
            said = what.format(place=f"element {places[at] % self.length} of '{self.name}'")
            raise BlockFault(f"thread {lanes[at] % self.threads} of a block {said}")


@dataclass
class Memory:
    """All buffers of a running program; number 0 is no buffer. updating: an atomic update is in progress."""

    buffers: list[MemoryArea | None] = field(default_factory=lambda: [None])
    updating: bool = False

    def add(self, buffer: MemoryArea) -> int:
        """Register a buffer and return its number."""
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def load(self, address: Array, lanes: Lanes, dtype: DType) -> Array:
        """The values at the addresses of some lanes, one for each of these. address: one for every lane."""
        result = np.zeros(lanes.shape, dtype.numpy)
        for buffer, chosen in self._targets(address, lanes, dtype.nbytes):
            result[chosen] = buffer.gather(lanes[chosen], address["offset"][lanes[chosen]], dtype)
        return result

    def store(self, address: Array, lanes: Lanes, values: Array) -> None:
        """Write one value for each of some lanes, in their order."""
        for buffer, chosen in self._targets(address, lanes, values.dtype.itemsize):
            buffer.scatter(lanes[chosen], address["offset"][lanes[chosen]], values[chosen])

    def _targets(self, address: Array, lanes: Lanes, nbytes: int) -> list[tuple[MemoryArea, Lanes]]:
        """The buffers that the lanes point into, each with positions in `lanes`; InterpreterError for a bad address."""
        numbers = address["buffer"][lanes]
        groups: list[tuple[MemoryArea, Lanes]] = []
        first = numbers[0] if numbers.size else 0
        is_one = bool(numbers.size and (numbers == first).all())
        for number in [first] if is_one else dict.fromkeys(numbers.tolist()):  # np.unique imports much
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
