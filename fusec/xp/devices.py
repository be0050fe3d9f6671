"""Where arrays can be."""

from __future__ import annotations

from typing import Any

from fusec.errors.lazy import NoSuchDevice
from fusec.xp.forms import CPU, Device
from fusec.xp.loading import on_device


class DeviceNames(tuple[Device, ...]):
    """The names of devices, to which libraries written for versions of the standard before 2025.12 add lists."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else tuple(self) + other


def devices() -> DeviceNames:
    """All devices of this machine."""
    return DeviceNames((CPU, *on_device().names()))


def checked(device: Any) -> Device:
    """The device of that name, the usual one for None. Raises NoSuchDevice."""
    if device is None or device == CPU:
        return CPU
    known = devices()
    if device not in known:
        from fusec.fusion.trace.lines import here

        raise NoSuchDevice.among(device, known).at(here())
    return Device(device)
