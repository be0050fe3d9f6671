"""Errors of functions that fusec.fuse traces (codes F280 to F289, F700 to F719)."""

from __future__ import annotations

from fusec.errors.base import Described, FusecAttributeError, FusecTypeError, Named, UserError


class NeedsValues(Described, code="F280", exception=FusecTypeError):
    """An operation of Python that needs values of an array that are not known yet."""

    message = "{what} needs a Python scalar, but a fused function does not see the values of arrays"
    label = "the values are not known here"


class NotFusable(Described, code="F281", exception=FusecTypeError):
    """A function that cannot be traced."""

    message = "{what} cannot be fused"


class NotTraceable(Described, code="F282", exception=FusecTypeError):
    """An argument or result of a fused function that is not an array, a number or a constant."""


class NoSuchAttribute(Named, code="F283", exception=FusecAttributeError):
    """An attribute that arrays do not have."""

    message = "an array in a fused function has no attribute '{name}'"
    cure: str


class ComplexIntoReal(UserError, code="F284", exception=FusecTypeError):
    """A complex number stored in an array that does not hold one, which NumPy refuses too."""

    message = "a complex number cannot be stored in an array of {dtype}"
    label = "stored here"
    hint = "store one part of it, such as z.real, or make the array complex128"
    dtype: str


class AltersOutside(UserError, code="F700", exception=FusecTypeError):
    """A change of an outside object other than an assignment to a name, an attribute or an array."""

    message = "a fused function changes {what}, but later calls would not"
    label = "{where}"
    hint = "return the new value, and let the caller store it"
    what: str
    where: str = "changed here"


class DrawsNumbers(UserError, code="F701", exception=FusecTypeError):
    """Random numbers from a generator with a state, which would be drawn only during the trace."""

    message = "{what} in a fused function would draw its numbers only once, when the function is traced"
    label = "random numbers"
    hint = "pass them as an argument, or use fusec.random, whose numbers depend on a key and a counter"
    what: str
