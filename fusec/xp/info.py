"""What the namespace offers, as the standard has libraries ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.xp import devices
from fusec.xp.datatypes import DTYPES, NamedDType
from fusec.xp.forms import Device

STANDARD = {name: dtype for name, dtype in DTYPES.items() if name != "float16"}
DEFAULTS = {
    "real floating": "float64", "complex floating": "complex128", "integral": "int64", "indexing": "int64"
}  # fmt: skip
MAX_AXES = 64


class Info:
    """What the namespace offers: capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Which parts of the standard there are that a library may leave out.

        >>> xp.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_AXES}

    def default_device(self) -> Device:
        """Where new arrays are.

        >>> xp.__array_namespace_info__().default_device()
        'cpu'
        """
        return devices.checked(None)

    def devices(self) -> tuple[Device, ...]:
        """All devices of this machine.

        >>> "cpu" in xp.__array_namespace_info__().devices()
        True
        """
        return devices.devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, NamedDType]:
        """The dtypes of new arrays on a device, by kind. Raises FusecValueError if there is no such device.

        >>> xp.__array_namespace_info__().default_dtypes()["integral"]
        dtype('int64')
        """
        devices.checked(device)
        return {kind: DTYPES[name] for kind, name in DEFAULTS.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, NamedDType]:
        """The standard's dtypes that a device has, by name.

        kind: only those of a kind, as `isdtype` takes it. Raises FusecValueError if there is no such device.

        >>> [*xp.__array_namespace_info__().dtypes(kind="real floating")]
        ['float32', 'float64']
        """
        devices.checked(device)
        return {name: dtype for name, dtype in STANDARD.items() if kind is None or np.isdtype(dtype.dtype, kind)}


def __array_namespace_info__() -> Info:  # noqa: N807 - the standard's name
    """What the namespace offers: capabilities, devices and dtypes.

    >>> xp.__array_namespace_info__().default_device()
    'cpu'
    """
    return Info()
