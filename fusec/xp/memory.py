"""The memory that lazy arrays hold."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import numpy as np

from fusec.base import locks
from fusec.base.records import dataclass
from fusec.base.rounding_mode import default_rounding
from fusec.xp.array import Array
from fusec.xp.forms import CPU
from fusec.xp.loading import on_device
from fusec.xp.sharing import pending, writers

__all__ = ["memory_stats"]


@dataclass(frozen=True)
class MemoryStats:
    """What `memory_stats` reports."""

    arrays: int
    pending: int
    held: dict[str, int]
    recorded: dict[str, int]
    pools: dict[str, int]


def memory_stats() -> MemoryStats:
    """Report the memory that the lazy arrays of the process hold: a record with these fields, bytes by device.

    arrays: the number of lazy arrays, of any shapes and dtypes. pending: how many of them are not computed yet, or have
    a write that is not. held: bytes of arrays that have values. Each piece of memory counts once and as a whole,
    however many views it has, even if it belongs to another library. recorded: more bytes that pending arrays need,
    although no array holds them any more. pools: freed bytes that are kept for new arrays, in host memory and on
    devices that have arrays now. The call looks at all objects that the garbage collector knows, which takes some
    milliseconds. Nothing is raised.

    >>> before = xp.memory_stats()
    >>> x = xp.zeros((1000, 1000), dtype="float32")
    >>> y = x[0]
    >>> xp.memory_stats().held["cpu"] - before.held["cpu"]
    4000000
    """
    with locks.lock, default_rounding():
        from fusec.runtime.cpu import memory

    arrays = [
        each for each in gc.get_objects() if type(each) is Array and hasattr(each, "_tape")
    ]  # an array without this attribute is being made by a thread
    values = [each._value for each in arrays if each._tape is None]
    slots = [each for tape in pending() for each in [*tape.slots.values()] if _is_value(each)]
    held = _owners(values)
    recorded = {key: each for key, each in _owners(slots).items() if key not in held}
    devices = dict.fromkeys(device for device, _ in (*held.values(), *recorded.values()) if device != CPU)
    pools = {CPU: memory.pool_info().idle_bytes} | {each: on_device().pooled(each) for each in devices}
    waiting = len(arrays) - len(values) + sum(bool(writers(each)) for each in values)
    return MemoryStats(len(arrays), waiting, _bytes(held), _bytes(recorded), pools)


def _is_value(slot: Any) -> bool:
    """Whether a slot of a tape holds the elements of an array."""
    return isinstance(slot, np.ndarray) or hasattr(slot, "__cuda_array_interface__")


def _owners(values: Iterable[Any]) -> dict[int, tuple[str, int]]:
    """The device and the bytes of the memory that holds values, by identity of its owner."""
    found: dict[int, tuple[str, int]] = {}
    for each in values:
        if not isinstance(each, np.ndarray):
            owner, device, nbytes = on_device().owner(each)
        else:
            while isinstance(each.base, np.ndarray):
                each = each.base
            owner, device, nbytes = each if each.base is None else each.base, CPU, each.nbytes
        found[id(owner)] = device, max(nbytes, found.get(id(owner), (device, 0))[1])
    return found


def _bytes(owners: dict[int, tuple[str, int]]) -> dict[str, int]:
    """The bytes on each device."""
    totals: dict[str, int] = {CPU: 0}
    for device, nbytes in owners.values():
        totals[device] = totals.get(device, 0) + nbytes
    return totals
