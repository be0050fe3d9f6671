"""Errors of reductions (codes F240 to F259). NumPy's own texts where it has them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from fusec.base.source import Span
from fusec.errors.base import FusecError, FusecIndexError, FusecTypeError, FusecValueError, UserError


class FusecAxisError(FusecValueError, FusecIndexError, np.exceptions.AxisError):
    """A FusecError that is also NumPy's AxisError, and with that an IndexError and a ValueError."""

    def __init__(self, error: UserError, span: Span | None = None) -> None:
        Exception.__init__(self, error, span)
        self.error, self.span = error, span
        self._msg = None
        self.axis, self.ndim = getattr(error, "axis", None), getattr(error, "ndim", None)


class AxisOutOfBounds(UserError):
    """An axis that the arguments do not have."""

    code: ClassVar[str] = "F240"
    message: ClassVar[str] = "axis {axis} is out of bounds for array of dimension {ndim}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecAxisError
    axis: int
    ndim: int
    cure: str


def axis_outside(name: str, axis: int, shape: tuple[int, ...]) -> AxisOutOfBounds:
    """The error for an axis that arguments of this shape do not have."""
    cure = f"the arguments of '{name}' broadcast to shape {shape}"
    return AxisOutOfBounds(axis, len(shape), cure if shape else "an array of dimension 0 has no axes: leave axis= out")


class AxisTwice(UserError):
    """An axis that is named twice, perhaps once from the front and once from the back."""

    code: ClassVar[str] = "F241"
    message: ClassVar[str] = "duplicate value in 'axis': {axis}"
    hint: ClassVar[str] = "name each axis to reduce once"
    axis: str


class AxisNotInteger(UserError):
    """An axis that is no integer."""

    code: ClassVar[str] = "F242"
    message: ClassVar[str] = "axis must be {wanted}, not {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    given: str
    wanted: str = "None, an integer or a tuple of integers"
    cure: str = "axis=None reduces all axes, axis=() none of them"


class NothingToReduce(UserError):
    """No elements, and no identity to give instead."""

    code: ClassVar[str] = "F243"
    message: ClassVar[str] = "zero-size array to reduction operation {name} which has no identity"
    hint: ClassVar[str] = "the shape is {shape}; {cure}, or reduce other axes"
    name: str
    shape: tuple[int, ...]
    cure: str = "pass at least one element"


class WhereWithoutIdentity(UserError):
    """Elements left out of a reduction that has nothing to put in their place."""

    code: ClassVar[str] = "F244"
    message: ClassVar[str] = (
        "reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'identity'"
    )
    hint: ClassVar[str] = "define the kernel with identity='...'"
    name: str


class WhereNotBool(UserError):
    """A mask of another type."""

    code: ClassVar[str] = "F245"
    message: ClassVar[str] = "where= of '{name}' must be bool, not {given}"
    hint: ClassVar[str] = "make it bool, e.g. where=mask != 0"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str


class RowsTooLong(UserError):
    """A kernel that keeps every row to itself, given longer rows than one chunk."""

    code: ClassVar[str] = "F246"
    message: ClassVar[str] = "'{name}' takes at most {most} elements along the axis it reduces, not {count}"
    hint: ClassVar[str] = "its chunks cannot be combined; reduce in steps"
    name: str
    most: int
    count: int


class IdentityLost(UserError):
    """An identity, given as a number, that is no value of the totals."""

    code: ClassVar[str] = "F248"
    message: ClassVar[str] = "identity {given} of '{name}' is not a value of {held}, the type of its totals"
    hint: ClassVar[str] = (
        "pass a number that {held} holds, or a wider reduce_type=; identity='...' is converted as C converts"
    )
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str
    held: str


class WhereWithoutInitial(UserError):
    """Elements left out of a least or greatest element, so that there may be none."""

    code: ClassVar[str] = "F250"
    message: ClassVar[str] = (
        "reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'"
    )
    hint: ClassVar[str] = "pass initial=, the value of a total of no elements"
    name: str


class NoPosition(UserError):
    """The place of the greatest or least of no elements."""

    code: ClassVar[str] = "F251"
    message: ClassVar[str] = "attempt to get {name} of an empty sequence"
    hint: ClassVar[str] = "the shape is {shape}"
    name: str
    shape: tuple[int, ...]


class OnlyNan(UserError):
    """The place of the greatest or least number where there are only nan."""

    code: ClassVar[str] = "F252"
    message: ClassVar[str] = "All-NaN slice encountered"
    hint: ClassVar[str] = "{name} skips nan; its namesake without 'nan' gives the place of the first one"
    name: str


class NotReducible(UserError):
    """A dtype that a reduction has no meaning for."""

    code: ClassVar[str] = "F253"
    message: ClassVar[str] = "{name} is not defined for dtype {dtype}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    dtype: str
    cure: str


class NotOneAxis(UserError):
    """Several axes for what works along one, or one and the same."""

    code: ClassVar[str] = "F254"
    message: ClassVar[str] = "{name} takes one axis{none}, not {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str
    cure: str = "positions count along one axis, or through all elements in C order"
    none: str = " or None"


class WhereTooLarge(UserError):
    """A mask with more elements than what it selects from."""

    code: ClassVar[str] = "F255"
    message: ClassVar[str] = "where= of shape {given} does not broadcast to shape {shape}"
    hint: ClassVar[str] = "every element takes part once or not at all"
    given: tuple[int, ...]
    shape: tuple[int, ...]


class NotOneNumber(UserError):
    """An array, or something else, where one number is expected."""

    code: ClassVar[str] = "F256"
    message: ClassVar[str] = "{keyword}= of '{name}' must be one number, not {given}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    keyword: str
    given: str
    cure: str


class KeepdimsNotBool(UserError):
    """Something for keepdims= that is neither true nor false."""

    code: ClassVar[str] = "F257"
    message: ClassVar[str] = "keepdims= of '{name}' must be True or False, not {given}"
    hint: ClassVar[str] = "keepdims=True keeps the reduced axes, with one element each"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str


class ContractedAxis(UserError):
    """Vectors of different lengths in a dot product, or an axis that is not the same one of both."""

    code: ClassVar[str] = "F258"
    message: ClassVar[str] = "{name} of shapes {left} and {right} along axis {axis}: {problem}"
    hint: ClassVar[str] = "{cure}"
    name: str
    left: tuple[int, ...]
    right: tuple[int, ...]
    axis: int
    problem: str
    cure: str


class CorrectionTwice(UserError):
    """A variance's correction by both of its names."""

    code: ClassVar[str] = "F259"
    message: ClassVar[str] = "'{name}' got correction= and ddof=, which are two names for one thing"
    hint: ClassVar[str] = "pass one of them; ddof is NumPy's older name"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str


class UnknownOrder(UserError):
    """An order of a norm that is no number."""

    code: ClassVar[str] = "F247"
    message: ClassVar[str] = "ord= of 'norm' must be a real number, inf or -inf, not {given}"
    hint: ClassVar[str] = (
        "0 counts elements that are not zero, 1 sums absolute values, 2 is the root of the sum of squares ('fro' of a"
        " matrix), inf and -inf are the greatest and the least absolute value, any other p the p-th root of a sum"
    )
    exception: ClassVar[type[FusecError]] = FusecTypeError
    given: str


class DatesRefused(UserError):
    """A reduction or scan of dates or durations that NumPy refuses."""

    code: ClassVar[str] = "F802"
    message: ClassVar[str] = "{name} of {dtype}: {reason}"
    hint: ClassVar[str] = "dates and durations have NumPy's rules; x.view('int64') computes on their numbers"
    name: str
    dtype: str
    reason: str
