"""Errors of functions that fusec.fuse traces (codes F280 to F289, F700 to F719)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecAttributeError, FusecError, FusecTypeError, UserError


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


class NoSuchAttribute(UserError):
    """An attribute that arrays do not have."""

    code: ClassVar[str] = "F283"
    message: ClassVar[str] = "an array in a fused function has no attribute '{name}'"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecAttributeError
    name: str
    cure: str


class AltersOutside(UserError):
    """A change of something from outside that is no assignment to a name, an attribute or an array."""

    code: ClassVar[str] = "F700"
    message: ClassVar[str] = "a fused function changes {what}, but later calls would not"
    label: ClassVar[str] = "{where}"
    hint: ClassVar[str] = "return the new value, and let the caller store it"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    where: str = "changed here"


class DrawsNumbers(UserError):
    """Random numbers of a generator with a state, which would be drawn when the function is traced, and never again."""

    code: ClassVar[str] = "F701"
    message: ClassVar[str] = "{what} in a fused function would draw its numbers once, when the function is traced"
    label: ClassVar[str] = "random numbers"
    hint: ClassVar[str] = "pass them as an argument, or use fusec.random, whose numbers depend on a key and a counter"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
