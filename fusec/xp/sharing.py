"""Which tapes read and write the memory of arrays with values."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import chain
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fusec.base import locks
from fusec.xp.loading import failures, on_device

TAPES: list[ref[Any]] = []  # all tapes, and some that are gone
MOST = [64]  # of them, before those that are gone are forgotten
WRITTEN: list[Any] = []
"""Tapes that write arrays with values."""

MAX_WRITTEN = 64  # of them that wait for a look
MOST_LOOKS = 256  # before tapes are sought again whose writes nobody sees
FEW = 8  # so many are compared with a value sooner than by ranges of addresses
_LOOKED = [0, 1]
"""How often tapes that write were asked for, and at which time those are sought whose writes nobody sees."""


def pending() -> list[Any]:
    """All tapes that are not evaluated yet."""
    return [found for each in [*TAPES] if (found := each()) is not None and not found.is_closed]


def forget() -> None:
    """Forget tapes that are gone."""
    with locks.lock:
        count = len(TAPES)  # other threads may add some meanwhile
        TAPES[:count] = [each for each in TAPES[:count] if (found := each()) is not None and not found.is_closed]
        MOST[0] = 64 + 2 * len(TAPES)


def forget_some() -> None:
    """Forget tapes that are gone if there are many."""
    if len(TAPES) > MOST[0]:
        forget()


def writers(value: Any) -> list[Any]:
    """The tapes that write the memory of a value."""
    _forget_unseen()
    tapes = [*WRITTEN]
    if len(tapes) <= FEW or type(value) is not np.ndarray:
        return [each for each in tapes if any(may_share(value, one) for one in each.written)]
    low, high = _range(value)
    found = []
    for each in tapes:
        ranges = each.ranges
        for first, end in ranges if len(ranges) == len(each.written) else _ranges(each):
            if first < high and low < end:
                found.append(each)
                break
    return found


def _ranges(tape: Any) -> tuple[tuple[int, int], ...]:
    """The ranges of addresses that a tape writes, which it keeps."""
    tape.ranges = found = tuple(map(_range, tape.written))
    return found


def _range(value: Any) -> tuple[int, int]:
    """The addresses of a value, from the first to the one behind the last; none on a device."""
    return byte_bounds(value) if type(value) is np.ndarray and value.size else (0, 0)


def writer_with(value: Any) -> tuple[Any, Any]:
    """A tape with pending writes that has a value among its leaves, and the place there; None and None without one.

    No other tape writes that memory: to record a write is to compute what other tapes do with it.
    """
    for each in [*WRITTEN]:
        at = each.places.get(id(value))
        if at is not None:
            return each, at
    return None, None


def finish_writers(array: Any) -> None:
    """Compute what tapes write to the memory of an array with a value, until there is none: while a thread looks, what
    one has recorded may come to be on another.
    """
    while found := writers(array._value):
        for each in found:
            each.evaluate(array)


def finish_readers(value: Any, but: Any = None) -> None:
    """Compute what tapes read or write of a value, but for one of them; what fails keeps a copy of the elements."""
    while found := [each for each in readers(value) if each is not but and not _is_failed_writer(each, value)]:
        for each in found:
            if each.has_failed:
                failures().keep_elements(each, value)
            else:
                each.evaluate()


def _is_failed_writer(tape: Any, value: Any) -> bool:
    """Whether a failed tape writes a value: a thread has recorded that meanwhile."""
    return tape.has_failed and any(may_share(each, value) for each in tape.written)


def settle(last: Any) -> None:
    """Compute the oldest of many writes, so that arrays that are no longer used can be freed."""
    for each in WRITTEN[:-MAX_WRITTEN]:
        if each is not last and not each.has_failed:
            each.evaluate()  # what fails stays pending, and raises at the next look at what it writes
        if each.has_failed and not _is_seen(each):
            drop(each)


def register(tape: Any) -> None:
    """Look for what a tape writes, unless another thread has evaluated it already."""
    with locks.lock:
        if not tape.is_closed and tape not in WRITTEN:
            WRITTEN.append(tape)


def _forget_unseen() -> None:
    """Look no more for what tapes write that nobody can see, such as writes to arrays that are gone.

    That is sought ever more seldom while there are tapes whose writes are seen.
    """
    _LOOKED[0] += 1
    if _LOOKED[0] < _LOOKED[1]:
        return
    for each in [*WRITTEN]:
        if not _is_seen(each):
            drop(each)
    _LOOKED[:] = 0, 1 if not WRITTEN else min(2 * _LOOKED[1], MOST_LOOKS)


def drop(tape: Any) -> None:
    """Look no more for what a tape writes."""
    with locks.lock:
        WRITTEN[:] = [each for each in WRITTEN if each is not tape]


def _bases_and_references(value: Any) -> list[tuple[int, int]]:
    """A value, the array of which it is a view, and so on: their ids, and how many references there are to each."""
    found = []
    while type(value) is np.ndarray:
        found.append((id(value), sys.getrefcount(value)))
        value = value.base
    return [*found, (id(value), sys.getrefcount(value))] if value is not None else found


def _own_references() -> tuple[int, int]:
    """The same for a view that a tape alone has, in its slots and among what it writes, and for its base."""
    slots = [np.zeros(2)[1:]]
    (_, first), (_, second) = next(map(_bases_and_references, (slots[0],)))
    return first, second


_OWN = _own_references()


def _is_seen(tape: Any) -> bool:
    """Whether others than a tape may have the memory of what it writes. On devices nobody counts who has it."""
    if any(type(each) is not np.ndarray for each in tape.written):
        return True
    views = _views(tape)
    for each in map(_bases_and_references, tape.written):
        (_, first), *others = each
        if first > _OWN[0] or any(count > _OWN[1] + views[base] - 1 for base, count in others):
            return True
    return False


def _views(tape: Any) -> Counter[int]:
    """How many arrays of a tape are views of the same one, by its id."""
    given = chain([*tape.slots.values()], tape.written)  # other threads may change the slots meanwhile
    own = {id(each): id(each.base) for each in given if type(each) is np.ndarray}
    return Counter(own.values())


def readers(value: Any) -> list[Any]:
    """The tapes that read or write the memory of a value."""
    kind, found = type(value), []
    share = np.may_share_memory if kind is np.ndarray else may_share
    for each in pending():
        for one in [*each.slots.values()]:
            if one.__class__ is kind and share(one, value):
                found.append(each)
                break
    return found


def may_share(one: Any, other: Any) -> bool:
    """Whether two values may share memory."""
    if type(one) is np.ndarray is type(other):
        return np.may_share_memory(one, other)
    return type(one) is type(other) and on_device().may_share(one, other)
