"""Where arrays can be."""

from __future__ import annotations

from typing import Any

from fusec.errors.lazy import NoSuchDevice
from fusec.xp.array import CPU

Device = str
"""The name of a device, such as 'cpu'."""


def devices() -> tuple[Device, ...]:
    """All devices that there are."""
    return (CPU,)


def checked(device: Any) -> Device:
    """The device of that name, the usual one for None. Raises NoSuchDevice."""
    if device is None:
        return CPU
    known = devices()
    if device not in known:
        raise NoSuchDevice(device, ", ".join(map(repr, known))).at()
    return str(device)
