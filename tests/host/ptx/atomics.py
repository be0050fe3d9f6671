"""Atomic updates: what they compute, and their order when several threads of a group meet at one address."""

from collections.abc import Callable, Iterator

import numpy as np

from ptx.faults import Unsupported
from ptx.floats import flushed

Array = np.ndarray


def update(op: str, kind: str, space: str) -> Callable[..., Array]:
    """The new value from the old one and the operands.

    An addition of float32 flushes subnormal numbers in global memory, not in shared (PTX ISA, atom).
    """
    if op == "add" and kind == "f32" and space != "shared":
        return lambda old, x: flushed(flushed(old) + flushed(x))
    found = _UPDATES.get(op)
    if found is None or kind in ("f16", "bf16", "f16x2", "bf16x2", "b128"):
        raise Unsupported(f"an atomic {op} on {kind}")
    return found


_UPDATES: dict[str, Callable[..., Array]] = {
    "add": lambda old, x: old + x,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, x: x,
    "cas": lambda old, expected, x: np.where(old == expected, x, old),
    "inc": lambda old, limit: np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, limit: np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1)),
}


def rounds(addresses: Array) -> Iterator[Array]:
    """Positions that may run at once, such that at one address the threads come in their order."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    rank = np.arange(len(order)) - starts[np.cumsum(is_first) - 1]
    by_rank = order[np.argsort(rank, kind="stable")]
    counts = np.bincount(rank)
    yield from np.split(by_rank, np.cumsum(counts)[:-1])
