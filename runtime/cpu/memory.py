"""Memory for outputs: aligned, and recycled when large, because the first touch of a page costs more than a kernel.

saxpy on 1e7 float32 takes 2.2 ms into memory used before, 3.7 into fresh pages; pages of 4 KiB instead of 2 MiB cost
another 20. Setting: FUSEC_POOL_BYTES, how many bytes to keep when nobody uses them (an eighth of the memory, at most
1 GiB); 0 keeps none.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass
from fusec.environment import settings
from fusec.runtime.cpu.machine import memory_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array = Any  # an ndarray of whatever dtype was asked for

ALIGNMENT = 64  # bytes; a cache line, and the widest vector
SMALL = 32 << 10  # bytes below which aligning takes longer than it saves, 2 us: these fit the first-level cache
LARGE = 256 << 10  # bytes from which memory is recycled
HUGE = 4 << 20  # bytes from which pages of 2 MiB are asked for
IDLE_SECONDS = 30.0
SECONDS_BETWEEN_TRIMS = 1.0
MOST_RETURNED = 8  # small regions that may wait to be put in order, to keep freeing short


def empty(shape: Sequence[int], dtype: np.dtype[Any], axes: Sequence[int] | None = None) -> Array:
    """A new array with undefined contents, aligned to 64 bytes from 32 KiB on.

    axes: the axes from outermost to innermost in memory, C order if not given. Raises MemoryError.
    """
    return _make(tuple(shape), dtype, axes, zeroed=False)


def zeros(shape: Sequence[int], dtype: np.dtype[Any], axes: Sequence[int] | None = None) -> Array:
    """A new array of zeros; alignment, `axes` and errors as for `empty`."""
    return _make(tuple(shape), dtype, axes, zeroed=True)


def _make(shape: tuple[int, ...], dtype: np.dtype[Any], axes: Sequence[int] | None, *, zeroed: bool) -> Array:
    nbytes = math.prod(shape) * dtype.itemsize
    allocate = np.zeros if zeroed else np.empty
    try:
        if nbytes < SMALL and axes is None:
            return allocate(shape, dtype)
        strides = None if axes is None else strides_in_order(shape, axes, dtype.itemsize)
        if nbytes >= LARGE:
            block = _pool.take(nbytes, zeroed=zeroed)
            return np.ndarray(shape, dtype, block, 0, strides)
        raw = allocate(nbytes + ALIGNMENT, np.uint8)
        return np.ndarray(shape, dtype, raw, -_address(raw) % ALIGNMENT, strides)
    except (OSError, OverflowError, ValueError) as problem:  # the system's refusal; beyond what an address can say
        raise MemoryError(f"no memory for an array of shape {shape} and type {dtype}") from problem


def look_for_room(nbytes: int, purpose: str) -> None:
    """Raise MemoryError if the system would not give so many bytes, for what ends the process where it gets none."""
    try:
        _pages(nbytes).close()
    except OSError as problem:
        raise MemoryError(f"no memory {purpose}") from problem


def _pages(nbytes: int) -> mmap.mmap:
    """New pages of the system. Raises OSError."""
    if sys.platform == "win32":
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _address(array: NDArray[np.uint8]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


class _Pages(np.ndarray[Any, Any]):
    """All bytes of a region, of which views are made in a quarter of the time that a new array takes.

    Not a plain array, so that NumPy does not pass over its views on the way to the owner of memory.
    """

    __slots__ = ()


class _Region:
    """Pages of the system, of one size class."""

    __slots__ = ("idle_since", "nbytes", "pages")

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self.idle_since = 0.0
        memory = _pages(nbytes)
        if sys.platform != "win32" and nbytes >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without them
                memory.madvise(mmap.MADV_HUGEPAGE)
        self.pages = np.frombuffer(memory, np.uint8).view(_Pages)


class _Block(np.ndarray[Any, Any]):
    """A region in use. Every array and view that a user has of it keeps this object alive; its end frees the region.

    NumPy passes over bases on the way to the owner of memory only if they are plain arrays, which this is not.
    """

    __slots__ = ("region",)
    region: _Region

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing() and hasattr(self, "region"):  # by then, this module's own names may be gone
            _pool.give_back(self.region)


@dataclass(frozen=True)
class PoolInfo:
    """State of the pool: idle bytes and regions, the limit on those bytes, and how requests were served."""

    idle_bytes: int
    idle_regions: int
    bound: int
    reused: int
    fresh: int


class RegionPool:
    """Regions by size class. Thread-safe; regions may return at any moment, even while the same thread is inside."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.lock = threading.Lock()
        self._returned: deque[_Region] = deque()  # filled without the lock, emptied under it
        self._idle: dict[int, list[_Region]] = {}
        self._idle_bytes = self._reused = self._fresh = 0
        self._trimmed = time.monotonic()

    def take(self, nbytes: int, *, zeroed: bool) -> _Block:
        """A block of at least `nbytes`."""
        size = size_class(nbytes)
        with self.lock:
            region = self._last_returned(size) or self._first_idle(size)
            if region is None:
                self._fresh += 1
            else:
                self._reused += 1
        if region is None:
            region, zeroed = _Region(size), False  # new pages are zero
        block: _Block = region.pages.view(_Block)
        block.region = region
        if zeroed:
            block.fill(0)
        return block

    def _last_returned(self, size: int) -> _Region | None:
        """What came back last, if it fits: a loop that drops its results needs no order."""
        if not self._returned:
            return None
        region = self._returned.pop()  # only here and under the lock is anything taken out
        if region.nbytes == size:
            return region
        self._returned.append(region)
        return None

    def _first_idle(self, size: int) -> _Region | None:
        if self._returned:
            self._sort_in()
        rows = self._idle.get(size)
        if not rows:
            return None
        self._idle_bytes -= size
        return rows.pop()

    def give_back(self, region: _Region) -> None:
        """Called when nobody refers to a region any more; must not wait."""
        region.idle_since = time.monotonic()
        self._returned.append(region)
        due = len(self._returned) > MOST_RETURNED or region.nbytes >= HUGE
        if due and not self.lock.locked():  # by this thread, perhaps, amid whose work a region may come back
            with self.lock:  # which an interrupt cannot leave locked, as it can an acquisition by hand
                self._sort_in()

    def info(self) -> PoolInfo:
        """The contents of the pool."""
        with self.lock:
            self._sort_in()
            regions = sum(map(len, self._idle.values()))
            return PoolInfo(self._idle_bytes, regions, self.bound, self._reused, self._fresh)

    def clear(self) -> None:
        """Return all idle regions to the system."""
        with self.lock:
            self._sort_in()
            self._idle.clear()
            self._idle_bytes = 0

    def renew(self) -> None:
        """In a child process: a thread that no longer exists may have held the lock during a change of the count."""
        self.lock = threading.Lock()
        self._idle_bytes = sum(size * len(rows) for size, rows in self._idle.items())

    def _sort_in(self) -> None:
        """Move what has come back to its class; give back to the system what is too much or too old."""
        while self._returned:
            region = self._returned.popleft()
            self._idle.setdefault(region.nbytes, []).append(region)
            self._idle_bytes += region.nbytes
        now = time.monotonic()
        if self._idle_bytes > self.bound or now - self._trimmed > SECONDS_BETWEEN_TRIMS:
            self._trim(now)

    def _trim(self, now: float) -> None:
        self._trimmed = now
        for region in sorted((each for row in self._idle.values() for each in row), key=lambda each: each.idle_since):
            if self._idle_bytes <= self.bound and now - region.idle_since < IDLE_SECONDS:
                break
            self._idle[region.nbytes].remove(region)
            self._idle_bytes -= region.nbytes


def size_class(nbytes: int) -> int:
    """`nbytes` rounded up to a shared size: eight classes for each power of two, whole pages."""
    bits = max(12, nbytes.bit_length() - 4)
    return (nbytes + (1 << bits) - 1) >> bits << bits


def _usual_bound() -> int:
    """Bytes that the pool may keep. Raises SettingNotUnderstood for a FUSEC_POOL_BYTES that is no number."""
    asked = settings.number_of("FUSEC_POOL_BYTES")
    return min(1 << 30, memory_bytes() // 8) if asked is None else asked


_pool = RegionPool(_usual_bound())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.renew)


def pool_info() -> PoolInfo:
    """The contents of the pool of large outputs."""
    return _pool.info()


def pool_clear() -> None:
    """Return the pool's idle memory to the system."""
    _pool.clear()
