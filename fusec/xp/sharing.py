"""Which tapes read and write the memory of arrays with values."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np

from fusec.base import locks
from fusec.xp.loading import on_device

_known: list[ref[Any]] = []  # all tapes, and some that are gone
_most = [64]  # of them until those are forgotten that are gone
WRITTEN: list[Any] = []
"""Tapes that write arrays with values."""


def noted(tape: Any) -> None:
    """Have a new tape found by the memory that it reads and writes."""
    _known.append(ref(tape))
    if len(_known) > _most[0]:
        _forget()


def pending() -> list[Any]:
    """All tapes that have not been evaluated."""
    return [found for each in [*_known] if (found := each()) is not None and not found.is_closed]


def _forget() -> None:
    with locks.lock:
        _known[:] = [each for each in [*_known] if (found := each()) is not None and not found.is_closed]
        _most[0] = 64 + 2 * len(_known)


def writers(value: Any) -> list[Any]:
    """The tapes that write the memory of a value."""
    return [each for each in [*WRITTEN] if any(may_share(value, one) for one in each.written)]


def readers(value: Any) -> list[Any]:
    """The tapes that read or write the memory of a value."""
    return [
        each for each in pending()
        if any(type(one) is type(value) and may_share(one, value) for one in [*each.slots.values()])
    ]  # fmt: skip


def may_share(one: Any, other: Any) -> bool:
    """Whether two values may share memory."""
    if type(one) is np.ndarray is type(other):
        return np.may_share_memory(one, other)
    return type(one) is type(other) and on_device().may_share(one, other)
