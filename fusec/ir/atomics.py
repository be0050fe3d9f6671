"""Atomic updates in the interpreter: one lane after another, in lane order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from fusec.base.dtypes import BOOL, DType, from_numpy
from fusec.ir.arithmetic import evaluate
from fusec.ir.loops import AtomicOp
from fusec.ir.memory import Lanes, Mask, Memory

Array = NDArray[Any]


def update(memory: Memory, op: AtomicOp, address: Array, values: Sequence[Array], mask: Mask) -> Array:
    """Apply the op at the address of every active lane and return the old values; other lanes return zero.

    Rounds of lanes with distinct addresses give what the lanes would one by one, in order.
    """
    dtype = from_numpy(values[0].dtype)
    assert dtype is not None, f"no dtype row for {values[0].dtype}"
    result = np.zeros(mask.shape, dtype.numpy)
    memory.updating = True
    for lanes in _rounds(address, np.flatnonzero(mask)):
        old = memory.load(address, lanes, dtype)
        memory.store(address, lanes, _combine(op, old, [value[lanes] for value in values], dtype))
        result[lanes] = old
    memory.updating = False
    return result


def _rounds(address: Array, lanes: Lanes) -> list[Lanes]:
    """The lanes parted: the n-th part holds the n-th lane that uses each address.

    Addresses in local arrays differ between lanes whatever their numbers, and those in shared ones between blocks; a
    round too many does no harm.
    """
    seen: dict[bytes, int] = {}
    turns = np.zeros(len(lanes), np.int64)
    for position, key in enumerate(address[lanes]):
        octets = key.tobytes()
        turns[position] = seen.get(octets, 0)
        seen[octets] = int(turns[position]) + 1
    order = np.argsort(turns, kind="stable")
    return np.split(lanes[order], np.flatnonzero(np.diff(turns[order])) + 1)


def _combine(op: AtomicOp, old: Array, values: Sequence[Array], dtype: DType) -> Array:
    """The new values; minimum and maximum keep the old value unless the operand beats it or the old value is nan."""
    value = values[0]
    match op:
        case "add" | "subtract":
            return evaluate(op, [old, value], dtype)
        case "and" | "or" | "xor":
            return evaluate(f"bitwise_{op}", [old, value], dtype)
        case "minimum":
            return np.where(evaluate("less", [value, old], BOOL) | (old != old), value, old)
        case "maximum":
            return np.where(evaluate("greater", [value, old], BOOL) | (old != old), value, old)
        case "exchange":
            return value
        case "compare_exchange":
            return np.where(old == value, values[1], old)
        case _:
            assert_never(op)
