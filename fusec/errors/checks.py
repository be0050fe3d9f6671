"""What kernels find when they are checked as they run (codes F380 to F389)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecIndexError, FusecRuntimeError, UserError


class IndexOutside(UserError):
    """An index that lies outside its array, found as the kernel ran."""

    code: ClassVar[str] = "F380"
    message: ClassVar[str] = "kernel '{kernel}': {index} of '{array}' is outside its {limit} elements"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecIndexError
    kernel: str
    array: str
    index: str
    limit: int
    element: str
    cure: str = "indices count from 0; a variable that is negative does not count from the end"


class AssertionFailed(UserError):
    """An assertion that did not hold, found as the kernel ran."""

    code: ClassVar[str] = "F381"
    message: ClassVar[str] = "kernel '{kernel}': an assertion does not hold"
    label: ClassVar[str] = "in element {element}"
    hint: ClassVar[str] = "fusec.simulate runs the kernel in Python, where print and a debugger work"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError
    kernel: str
    element: str


class CannotCheck(UserError):
    """A kernel whose accesses cannot be checked, since it computes with addresses."""

    code: ClassVar[str] = "F382"
    message: ClassVar[str] = "kernel '{kernel}' moves pointers, whose bounds nobody knows"
    hint: ClassVar[str] = "index the arrays themselves, x[i], or run it without checks"
    kernel: str


class UnknownCheck(UserError):
    """A way of checking that there is none of."""

    code: ClassVar[str] = "F383"
    message: ClassVar[str] = "{where} is {given}"
    hint: ClassVar[str] = "{cure}"
    where: str
    given: str
    cure: str = '"check" turns checks on, "trust" off; for all kernels there is FUSEC_CHECK=bounds'
