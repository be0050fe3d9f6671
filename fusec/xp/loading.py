"""Late imports: the modules for arrays on CUDA devices and for failures, with the first of these, and errors with their
lines.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from fusec.base import locks
from fusec.base.rounding_mode import default_rounding
from fusec.errors import FusecError, FusecOverflowError
from fusec.errors.lazy import DevicesDoNotMix


@cache
def on_device() -> Any:
    """The module `fusec.xp.on_device`."""
    with locks.lock, default_rounding():
        from fusec.xp import on_device as found
    return found


@cache
def failures() -> Any:
    """The module `fusec.xp.failures`."""
    with locks.lock, default_rounding():
        return import_module("fusec.xp.failures")  # which is built on what asks for it


@cache
def lines() -> Any:
    """The module `fusec.fusion.trace.lines`."""
    with locks.lock, default_rounding():
        from fusec.fusion.trace import lines as found
    return found


def mixed(left: str, right: str) -> Exception:
    """The error of the user's line for arrays on different devices."""
    return DevicesDoNotMix(left, right).at(lines().here())


def of_number(problem: FusecOverflowError) -> FusecError:
    """The error for a number recorded as an operand of a float array that is larger than all floats."""
    from fusec.errors.arguments import ScalarDoesNotFit
    from fusec.errors.python import NumberTooLarge

    found = problem.error
    if not isinstance(found, ScalarDoesNotFit):
        return problem
    return NumberTooLarge(found.given, found.dtype, "pass a number up to 1.8e308, or math.inf").at()
