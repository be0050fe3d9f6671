"""The module for arrays on CUDA devices, which is imported with the first of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from fusec.base import locks
from fusec.base.rounding_mode import default_rounding
from fusec.errors.lazy import DevicesDoNotMix


@cache
def on_device() -> Any:
    """The module `fusec.xp.on_device`."""
    with locks.lock, default_rounding():
        from fusec.xp import on_device as found
    return found


def mixed(left: str, right: str) -> Exception:
    """The error of the user's line for arrays on different devices."""
    with locks.lock, default_rounding():
        from fusec.fusion.trace.lines import here
    return DevicesDoNotMix(left, right).at(here())
