"""Kernels of a plan that share a launch: those that do not depend on each other, and are equal or small.

A launch costs some microseconds, whatever it does. Steps go to the first launch that has what they need behind it, as
far as they are like its kernels; so the steps of one launch read and write nothing that others of it write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from fusec.base.records import dataclass, field
from fusec.fusion.trace.trace_values import Array, Leaf, Write, buffers_of
from fusec.kinds.rows import MOST_AT_END

MOST_KERNELS = 16  # of one launch
MOST_WORDS = 500  # that it is given: CUDA passes 4 KiB
SMALL = 1 << 20  # bytes that a kernel moves, up to which it shares launches with others that are not equal to it
MOST_APART = 8  # places of one memory that are compared one by one


@dataclass(eq=False)
class _Launch:
    """The steps of a launch so far."""

    steps: list[Any]
    is_open: bool  # others may join
    nbytes: int = 0  # of temporaries that were stored before their turn
    kernels: set[object] = field(default_factory=set)

    def takes(self, step: Any) -> bool:
        """Whether a step is like these."""
        if not self.is_open or len(self.steps) >= MOST_KERNELS:
            return False
        if sum(map(_words, (*self.steps, step))) > MOST_WORDS:
            return False
        return self.kernels == {step.kernel} or all(_nbytes(each) <= SMALL for each in (*self.steps, step))


def together(steps: Sequence[Any]) -> list[list[Any]]:
    """The steps of each launch, in order; each step is behind those that it needs."""
    found: list[_Launch] = []
    uses = _Uses()
    barrier = 0  # nothing moves to before a call of a library, which may raise an exception
    for step in steps:
        read, written = _read(step), _written(step)
        low = max(barrier, uses.after(read, written))
        at = len(found)
        if _may_share(step):
            at = next((each for each in range(max(low, at - MOST_KERNELS), at) if _joins(found, each, step)), at)
        if at == len(found):
            found.append(_Launch([], _may_share(step)))
        elif at < len(found) - 1:
            found[at].nbytes += _new_bytes(step)
        found[at].steps.append(step)
        found[at].kernels.add(step.kernel if found[at].is_open else None)
        uses.note(read, written, at)
        if not hasattr(step, "kernel"):
            barrier = len(found)
    return [each.steps for each in found]


def follows(before: Sequence[Any], step: Any) -> bool:
    """Whether a step reduces few totals, which the only step of the launch before makes, and nothing else."""
    if len(before) != 1 or not all(hasattr(each, "kernel") and each.group.axes for each in (*before, step)):
        return False
    (first,) = before
    if prod(step.group.shape) > MOST_AT_END:
        return False
    made = {each.buffer for each in first.stored if not isinstance(each, Write)}
    return all(leaf.buffer is None or leaf.buffer in made for leaf in step.leaves)


def _joins(found: Sequence[_Launch], at: int, step: Any) -> bool:
    """Whether a step joins a launch; before others it does so only if its results take little memory meanwhile."""
    launch = found[at]
    is_last = at == len(found) - 1
    return launch.takes(step) and (is_last or launch.nbytes + _new_bytes(step) <= SMALL)


def _may_share(step: Any) -> bool:
    """Whether a step is an element-wise kernel that has elements."""
    return hasattr(step, "kernel") and step.group.axes is None and 0 not in step.group.shape


def _words(step: Any) -> int:
    """How many numbers a kernel is given, or more than that: sizes, and for each array its address and strides."""
    axes = len(step.group.shape)
    return (len(step.leaves) + len(step.stored)) * (1 + axes) + axes + 3


def _nbytes(step: Any) -> int:
    """The bytes that a kernel reads and writes."""
    return sum(each.nbytes for _, each in (*_read(step), *_written(step)))


def _new_bytes(step: Any) -> int:
    return sum(each.nbytes for each in step.written)


Place = tuple[int, Array]
"""Memory that is used: the group of its buffer, and what of it."""


def _read(step: Any) -> list[Place]:
    leaves: Iterable[Leaf] = step.leaves
    return [(leaf.buffer.group, leaf.phantom) for leaf in leaves if leaf.buffer is not None]


def _written(step: Any) -> list[Place]:
    if not hasattr(step, "kernel"):
        return [(each.group, each.phantom) for each in buffers_of(step.call)]
    return [
        (each.buffer.group, each.phantom if isinstance(each, Write) else each.buffer.phantom) for each in step.stored
    ]


class _Uses:
    """Which launch used which memory last."""

    def __init__(self) -> None:
        self._reads: dict[int, list[tuple[int, Array | None]]] = {}  # of a group: launches; None: of all of it
        self._writes: dict[int, list[tuple[int, Array | None]]] = {}

    def after(self, read: Sequence[Place], written: Sequence[Place]) -> int:
        """The first launch that may use memory as some step does."""
        after_writes = (_last(self._writes.get(group, ()), array) for group, array in (*read, *written))
        after_reads = (_last(self._reads.get(group, ()), array) for group, array in written)
        return 1 + max((*after_writes, *after_reads), default=-1)

    def note(self, read: Sequence[Place], written: Sequence[Place], at: int) -> None:
        """A launch uses memory."""
        for table, places in ((self._reads, read), (self._writes, written)):
            for group, array in places:
                known = table.setdefault(group, [])
                known.append((at, array))
                if len(known) > MOST_APART:
                    known[:] = [(max(number for number, _ in known), None)]


def _last(uses: Sequence[tuple[int, Array | None]], array: Array) -> int:
    """The last launch that uses some of an array's memory."""
    found = -1
    for at, other in reversed(uses):
        if at > found and (other is None or np.may_share_memory(other, array)):
            found = at
    return found
