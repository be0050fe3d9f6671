"""The amount of work of a kernel: when threads pay off, and how they divide it into chunks."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property

from fusec.base.kernel_abi import Kernel, Step
from fusec.base.recorded import numbers_of
from fusec.base.records import dataclass
from fusec.runtime.cpu.machine import thread_count

SERIAL_NS = 10_000.0  # waking a thread costs 2 to 5 us, so that less work is not worth sharing
LEAST_CHUNK_NS = 5_000.0  # a chunk costs one atomic operation on a shared cache line, some 0.1 us
# Fitted to saxpy, gelu and Black-Scholes in float32 and float64 on one AVX-512 core at 2.6 GHz.
OPERATION_NS = 0.15  # one operation, on one element or one vector of them
BYTE_NS = 0.01  # traffic between one core and its caches
STRIDED_NS = 0.15  # an element that is not beside its neighbour, 0.08 to 0.25 by the stride
VECTOR_BYTES = 64  # of the widest vectors; lanes beyond them are unrolled ones
MOST_ELEMENTS = 1 << 18  # of a chunk; more would leave threads idle at the end of long loops
UNIT = 64  # chunks are multiples of this many elements, so that all but the first store are aligned alike
HEAVY_OPERATIONS = 64  # from here on the cost of elements may differ much, as in loops that end by data
SHARE, FINE_SHARE = 4, 16  # chunks of a thread; the more, the less the others wait for the last one


@dataclass(frozen=True)
class Grain:
    """How to divide an iteration space, in elements.

    serial_below: up to here one thread does it all. least, most: bounds of a chunk. share: chunks that each thread
    should get if the bounds allow. unit: what chunks in between are multiples of.
    """

    serial_below: int
    least: int
    most: int
    share: int
    unit: int = UNIT

    @property
    def numbers(self) -> tuple[int, int, int, int, int]:
        """The numbers in the order in which native code reads them."""
        return self.serial_below, self.least, self.most, self.share, self.unit

    @property
    def address(self) -> int:
        """The address of the numbers as int64, for native code; valid as long as this object."""
        return ctypes.addressof(self._words)

    @cached_property
    def _words(self) -> ctypes.Array[ctypes.c_int64]:
        return (ctypes.c_int64 * 5)(*self.numbers)


def nanoseconds_per_element(kernel: Kernel) -> float:
    """Estimated time of one element on one core with its data in cache, right to a factor of about three."""
    widths = [slot.dtype.nbytes for slot in kernel.slots if slot.kind == "pointer"]
    at_once = VECTOR_BYTES // max(widths, default=1)
    lanes = max(1, min(kernel.lanes, at_once))
    strided = sum(row[-1] is Step.ANY for _, row in kernel.layout.steps)
    return kernel.cost / lanes * OPERATION_NS + sum(widths) * BYTE_NS + strided * STRIDED_NS + 0.01


def grain_of(kernel: Kernel, elements: int = 1, together: int = 1) -> Grain:
    """The grain of a kernel for the threads of this process.

    elements: that one position stands for. together: positions that belong into one chunk.
    """
    facts = nanoseconds_per_element(kernel), 1 if kernel.block else UNIT, kernel.group, kernel.cost >= HEAVY_OPERATIONS
    return Grain(*numbers_of(_grain_of, (facts, elements, together), 5))


def _grain_of(facts: tuple[float, int, int, bool], elements: int, together: int) -> tuple[int, int, int, int, int]:
    nanoseconds, unit, group, is_heavy = facts
    each = nanoseconds * elements
    unit = max(unit if elements == 1 else 1, group, together)
    least = _whole_units(LEAST_CHUNK_NS / each, unit)
    most = max(least, _whole_units(min(MOST_ELEMENTS, 100 * LEAST_CHUNK_NS / each), unit))
    share = FINE_SHARE if is_heavy or elements > 1 else SHARE
    serial_below = int(SERIAL_NS / each) if thread_count() > 1 else 1 << 62
    return serial_below, least, most, share, unit


def grain_together(parts: Sequence[tuple[Grain, int]]) -> Grain:
    """The grain of several kernels over their positions one behind the other. parts: the grain and positions of each.

    They are worth sharing if each uses up so much of what one thread would do, or all of them together.
    """
    return Grain(*numbers_of(_together, [number for grain, size in parts for number in (*grain.numbers, size)], 5))


def grain_in_strips(parts: Sequence[tuple[Grain, int]]) -> Grain:
    """The grain of strips, in each of which all of several kernels run. parts: see `grain_together`."""
    found = grain_together(parts)
    return Grain(found.serial_below, 1, 1, found.share, 1)


def _together(*numbers: int) -> tuple[int, int, int, int, int]:
    parts = [(Grain(*numbers[at : at + 5]), numbers[at + 5]) for at in range(0, len(numbers), 6)]
    is_much = sum(size / max(grain.serial_below, 1) for grain, size in parts) > 1
    serial_below = 0 if is_much else 1 << 62
    least, most = (min(getattr(grain, name) for grain, _ in parts) for name in ("least", "most"))
    share, unit = (max(getattr(grain, name) for grain, _ in parts) for name in ("share", "unit"))
    return serial_below, least, max(least, most), share, unit


def _whole_units(elements: float, unit: int) -> int:
    return max(1, int(elements / unit)) * unit
