"""Copies: threads of a device update small arrays in shared memory first, and the arrays themselves once a block.

Updates of one element in global memory come one after another, on the whole device. In shared memory only those of a
block do. A thread has its own of 32 copies if there is room, so that those of a warp never meet; integers have the same
bits whatever the order.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.arguments.layouts import View, is_c_contiguous
from fusec.base.kernel_abi import ATOMIC_BYTES, room_of_copies

COUNTS = (32, 8, 1)
LEAST = 1 << 14  # elements of a space; for fewer, blocks that begin and end with copies take longer
REPAID = 16  # elements for each element of all copies, likewise


def copies_of(raw: Iterable[tuple[str, View]], updated: frozenset[str], positions: int) -> tuple[tuple[str, int], ...]:
    """The arrays of which blocks have copies, and how many, by name.

    updated: those that a body may update atomically. positions: elements of the space.
    """
    if positions < LEAST:
        return ()
    dense = [(name, view) for name, view in raw if name in updated and view.dtype.is_integer and is_c_contiguous(view)]
    sizes = {name: (view.size, max(ATOMIC_BYTES, view.dtype.nbytes)) for name, view in dense if view.size}
    room = room_of_copies(max(1, len(sizes)))
    found = []
    for name, (size, nbytes) in sizes.items():
        for count in COUNTS:
            if count * size * nbytes <= room and REPAID * count * size <= positions:
                found.append((name, count))
                break
    return tuple(found)
