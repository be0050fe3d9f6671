"""Handles of CUDA's libraries for mathematics: one thread at a time uses one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

Handle = TypeVar("Handle")


class Handles(Generic[Handle]):
    """The handles of a library: each thread has one for each device, which others take when it has ended.

    make: what makes one for a device.
    """

    def __init__(self, make: Callable[[int], Handle]) -> None:
        self.make = make
        self.spare: dict[int, list[Handle]] = {}
        self._leases = threading.local()

    def of(self, device: int) -> Handle:
        """That of this thread."""
        known: dict[Any, _Lease[Handle]] = self._leases.__dict__
        lease = known.get(device)
        if lease is None:
            lease = known[device] = _Lease(self, device)
        return lease.handle


class _Lease(Generic[Handle]):
    """A handle while one thread has it."""

    def __init__(self, handles: Handles[Handle], device: int) -> None:
        self._spare = handles.spare.setdefault(device, [])
        try:
            self.handle = self._spare.pop()
        except IndexError:
            self.handle = handles.make(device)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._spare.append(self.handle)
