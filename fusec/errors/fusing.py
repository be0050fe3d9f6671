"""Errors of functions that fusec.fuse traces (codes F280 to F289)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecTypeError, UserError


class NeedsValues(UserError):
    """Python's own logic on an array whose values are not known yet."""

    code: ClassVar[str] = "F280"
    message: ClassVar[str] = "{what} needs a Python scalar, but a fused function sees no values of arrays"
    label: ClassVar[str] = "the values are not known here"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NotFusable(UserError):
    """A function that cannot be traced."""

    code: ClassVar[str] = "F281"
    message: ClassVar[str] = "{what} cannot be fused"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NotTraceable(UserError):
    """An argument or a result of a fused function that is no array, number or plain value."""

    code: ClassVar[str] = "F282"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str
