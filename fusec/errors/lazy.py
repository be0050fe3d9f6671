"""Errors of the namespace of lazy arrays (codes F770 to F789)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusec.errors.base import (
    Described,
    FusecAttributeError,
    FusecOverflowError,
    FusecRuntimeError,
    FusecTypeError,
    FusecValueError,
    Named,
    UserError,
)


class FusecLinAlgError(FusecValueError, np.linalg.LinAlgError):
    """A FusecError that is also NumPy's LinAlgError, and thus a ValueError.

    >>> try:
    ...     fusec.xp.linalg.inv(np.ones((2, 3)))
    ... except fusec.FusecLinAlgError as error:
    ...     print(error.code)
    F784
    """


class NoSuchDevice(UserError, code="F770"):
    """An unknown device for a new array or for a copy."""

    message = "there is no device {device!r}"
    device: object
    cure: str

    @classmethod
    def among(cls, device: object, known: Sequence[str]) -> NoSuchDevice:
        """The error, given the names of all known devices, that of host memory first."""
        found = "" if len(known) > 1 else "; fusec finds no CUDA device, and python -m fusec doctor says why"
        return cls(device, f"pass {' or '.join(map(repr, known))}{found}")


class DevicesDoNotMix(UserError, code="F776"):
    """Arrays on different devices in one operation."""

    message = "arrays on {left!r} and on {right!r} cannot be in one operation"
    label = "recorded here"
    hint = "copy one of them: x.to_device({left!r})"
    left: str
    right: str


class NotOnDevice(Named, code="F777", exception=FusecTypeError):
    """A function that is not traced, and that CuPy cannot compute, on arrays on a device."""

    message = "{name} cannot be called on arrays on {device!r}: {why}"
    label = "called here"
    hint = "copy the arrays to the host, and the result back: {name}(x.to_device('cpu'))"
    device: str
    why: str


class SilentCopy(UserError, code="F780", exception=FusecTypeError):
    """An array on a device where a NumPy array is needed."""

    message = "an array on {device!r} is not copied to a NumPy array implicitly"
    hint = "write np.asarray(x.to_device('cpu'))"
    device: str


class NoArrowArray(UserError, code="F783", exception=FusecTypeError):
    """An array that Arrow's C data interface has no form for."""

    message = "an array with {what} has no form in Arrow's C data interface"
    hint = "pass one axis of bools, integers or floats: write x.reshape(-1), or x.astype with another dtype"
    what: str


class NeedsCopy(UserError, code="F781"):
    """copy=False for an array that is elsewhere, or that must not be written."""

    message = "{what} needs a copy, which copy=False forbids"
    hint = "leave copy= out"
    what: str


class KindsDoNotMix(Named, code="F771", exception=FusecTypeError):
    """Operands of different kinds while flags(promotion="standard") holds."""

    message = "{name}: {left} and {right} have no common dtype in the standard"
    hint = "convert one of them with astype, or leave the block of flags(promotion='standard')"
    left: str
    right: str


class NoSuchFunction(Named, code="F772", exception=FusecAttributeError):
    """A name that neither the standard has nor NumPy's functions that lazy arrays take."""

    message = "module '{module}' has no attribute '{name}'"
    module: str
    cure: str


class NoSuchArrayAttribute(Named, code="F786", exception=FusecAttributeError):
    """An attribute that other arrays have and lazy arrays lack, or one that cannot be assigned."""

    message = "a lazy array {verb} '{name}'"
    cure: str
    verb: str


class NoArray(Named, code="F773", exception=FusecTypeError):
    """Numbers alone where the standard demands an array among the operands."""

    message = "{name} needs an array among its operands"
    hint = "make one of them an array with asarray"


class NotAFlag(Described, code="F774"):
    """An unknown value of an option of the namespace."""


class NotADType(UserError, code="F775", exception=FusecTypeError):
    """Something that is no dtype of the standard, or one of another kind than the function takes."""

    message = "{given} is not {wanted}"
    hint = "{cure}"
    given: str
    wanted: str
    cure: str


class NotByKey(Named, code="F782", exception=FusecTypeError):
    """A function of random numbers that is called like NumPy's: with parameters, and then a size."""

    message = "xp.random.{name} takes a size and a key before anything else: {reason}"
    reason: str
    cure: str


class NotASize(UserError, code="F778", exception=FusecTypeError):
    """A size of random numbers that is not a shape."""

    message = "random numbers cannot have the size {given}"
    hint = "pass {wanted}"
    given: str
    wanted: str


class NegativeSize(UserError, code="F787"):
    """A size of random numbers that is negative."""

    message = "random numbers cannot have the size {given}"
    hint = "pass numbers that are not negative"
    given: str


class NotHeld(Named, code="F788", exception=FusecOverflowError):
    """A bound of random integers that their dtype does not hold."""

    message = "{name}={given} is too {what} for random integers of {dtype}"
    hint = "pass a number {limit}, or a wider dtype, such as dtype='int64'"
    given: int
    what: str
    dtype: str
    limit: str


class DoesNotFit(Named, code="F779", exception=FusecValueError):
    """A parameter of random numbers that is missing, or has a shape that does not fit."""

    message = "the {name} of random numbers is {given}"
    hint = "pass {wanted}"
    given: str
    wanted: str


class RefusedByNumPy(UserError, code="F784"):
    """What NumPy refuses for these shapes, dtypes, axes or numbers, with its text and the class of its error."""

    message = "{said}"
    said: str
    cure: str = ""


class Failed(UserError, code="F785"):
    """What a function refuses for these elements, such as an index out of range, found when it is evaluated."""

    message = "{said}"
    label = "raised by {name}"
    said: str
    name: str


class BeingComputed(UserError, code="F789", exception=FusecRuntimeError):
    """A look at arrays by what has interrupted their evaluation in the same thread, such as the handler of a signal."""

    message = "these arrays are being computed by the code that was interrupted here"
    label = "used here"
    hint = "use them after this handler has returned, which may set a flag instead"
