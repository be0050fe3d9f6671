"""Errors of reductions and scans (codes F240 to F269). NumPy's own texts where it has them."""

from __future__ import annotations

import numpy as np

from fusec.base.source import Span
from fusec.errors.base import (
    FusecError,
    FusecIndexError,
    FusecTypeError,
    FusecValueError,
    Named,
    OfParameter,
    UserError,
)


class FusecAxisError(FusecValueError, FusecIndexError, np.exceptions.AxisError):
    """A FusecError that is also NumPy's AxisError, and thus an IndexError and a ValueError.

    >>> try:
    ...     fusec.sum(np.ones(3), axis=1)
    ... except fusec.FusecAxisError as error:
    ...     print(error.axis, error.ndim)
    1 1
    """

    def __init__(self, error: UserError, span: Span | None = None) -> None:
        FusecError.__init__(self, error, span)
        self._msg = None
        self.axis, self.ndim = getattr(error, "axis", None), getattr(error, "ndim", None)


class AxisOutOfBounds(UserError, code="F240", exception=FusecAxisError):
    """An axis that the arguments do not have."""

    message = "axis {axis} is out of bounds for array of dimension {ndim}"
    axis: int
    ndim: int
    cure: str


def axis_outside(name: str, axis: int, shape: tuple[int, ...]) -> AxisOutOfBounds:
    """The error for an axis that arguments of this shape do not have."""
    cure = f"the arguments of '{name}' broadcast to shape {shape}"
    return AxisOutOfBounds(axis, len(shape), cure if shape else "a zero-dimensional array has no axes: omit axis=")


class AxisTwice(UserError, code="F241"):
    """An axis that is given twice, perhaps once counted from the end."""

    message = "duplicate value in 'axis': {axis}"
    hint = "give each axis once"
    axis: str


class AxisNotInteger(UserError, code="F242", exception=FusecTypeError):
    """An axis that is not an integer."""

    message = "axis must be {wanted}, not {given}"
    given: str
    wanted: str = "None, an integer or a tuple of integers"
    cure: str = "axis=None reduces all axes, axis=() none of them"


class NothingToReduce(Named, code="F243"):
    """A reduction of no elements that has no identity."""

    message = "zero-size array to reduction operation {name} which has no identity"
    hint = "the shape is {shape}; {cure}, or reduce other axes"
    shape: tuple[int, ...]
    cure: str = "pass at least one element"


class WhereWithoutIdentity(Named, code="F244"):
    """A mask for a reduction or a scan that has no identity to replace the elements left out."""

    message = (
        "{kind} operation '{name}' does not have an identity, so to use a where mask one has to specify 'identity'"
    )
    hint = "define the kernel with identity='...'"
    kind: str = "reduction"


class WhereNotBool(Named, code="F245", exception=FusecTypeError):
    """A mask that is not bool."""

    message = "where= of '{name}' must be bool, not {given}"
    hint = "convert it, e.g. where=mask != 0"
    given: str


class RowsTooLong(Named, code="F246"):
    """Rows that are too long for a kernel whose chunks cannot be combined."""

    message = "'{name}' takes at most {most:element} along the axis it reduces, not {count}"
    hint = "its chunks cannot be combined; reduce in steps"
    most: int
    count: int


class IdentityLost(Named, code="F248", exception=FusecTypeError):
    """An identity, given as a number, that the type of the totals does not hold."""

    message = "identity {given} of '{name}' is not a value of {held}, the type of its totals"
    hint = "pass a number that {held} holds, or a wider reduce_type=; identity='...' is converted as C converts"
    given: str
    held: str


class WhereWithoutInitial(Named, code="F250"):
    """A mask for a minimum or maximum, which has no value if no element is left."""

    message = (
        "reduction operation '{name}' does not have an identity, so to use a where mask one has to specify 'initial'"
    )
    hint = "pass initial=, the value of a total of no elements"


class NoPosition(Named, code="F251"):
    """The position of the maximum or minimum of no elements."""

    message = "attempt to get {name} of an empty sequence"
    hint = "the shape is {shape}"
    shape: tuple[int, ...]


class OnlyNan(Named, code="F252"):
    """The position of the maximum or minimum among nothing but nan."""

    message = "All-NaN slice encountered"
    hint = "{name} skips nan; the function without 'nan' in its name gives the position of the first nan"


class NotReducible(Named, code="F253", exception=FusecTypeError):
    """A dtype for which a reduction is not defined."""

    message = "{name} is not defined for dtype {dtype}"
    dtype: str
    cure: str


class NotOneAxis(Named, code="F254", exception=FusecTypeError):
    """Several axes for a function that works along one."""

    message = "{name} takes one axis{none}, not {given}"
    given: str
    cure: str = "a position counts along one axis, or through all elements in C order"
    none: str = " or None"


class WhereTooLarge(UserError, code="F255"):
    """A mask that does not broadcast to the shape of the arguments."""

    message = "where= of shape {given} does not broadcast to shape {shape}"
    hint = "every element takes part once or not at all"
    given: tuple[int, ...]
    shape: tuple[int, ...]


class NotOneNumber(Named, code="F256", exception=FusecTypeError):
    """An argument that is not one number where one is expected."""

    message = "{keyword}= of '{name}' must be one number, not {given}"
    keyword: str
    given: str
    cure: str


class FlagNotBool(Named, code="F257", exception=FusecTypeError):
    """A keepdims= or reverse= that is neither true nor false."""

    message = "{keyword}= of '{name}' must be True or False, not {given}"
    keyword: str
    given: str
    cure: str


class ContractedAxis(Named, code="F258"):
    """Vectors of different lengths in a dot product, or an axis that differs between them."""

    message = "{name} of shapes {left} and {right} along axis {axis}: {problem}"
    left: tuple[int, ...]
    right: tuple[int, ...]
    axis: int
    problem: str
    cure: str


class CorrectionTwice(Named, code="F259", exception=FusecTypeError):
    """The correction of a variance, given by both of its names."""

    message = "'{name}' got correction= and ddof=, which are two names for one thing"
    hint = "pass one of them; ddof is NumPy's older name"


class UnknownOrder(UserError, code="F247", exception=FusecTypeError):
    """An order of a norm that is not a number."""

    message = "ord= of 'norm' must be a real number, inf or -inf, not {given}"
    hint = (
        "0 counts elements that are not zero, 1 sums absolute values, 2 is the root of the sum of squares ('fro' of a"
        " matrix), inf and -inf are the greatest and the least absolute value, any other p the p-th root of a sum"
    )
    given: str


class DatesRefused(Named, code="F802"):
    """A reduction or scan of dates or durations that NumPy refuses."""

    message = "{name} of {dtype}: {reason}"
    hint = "dates and durations follow NumPy's rules; np.asarray(x).view('int64') gives their numbers"
    dtype: str
    reason: str


class AxisNeeded(Named, code="F260"):
    """A scan of an array without axes, or of one with several axes and no axis=."""

    message = "'{name}' scans one axis of an array of dimension {ndim}, not axis={axis}"
    hint = "pass axis= as one integer; without it, an array must have one dimension"
    axis: str
    ndim: int


class SegmentsNotBool(OfParameter, code="F261", exception=FusecTypeError):
    """Starts of segments that are not bool."""

    message = "'{param}' marks where segments of '{name}' start and must be bool, not {given}"
    hint = "declare it as 'bool {param}', and compare, e.g. keys[1:] != keys[:-1]"
    given: str


class SegmentsUnknown(OfParameter, code="F262"):
    """Segments marked by an input that is not declared."""

    message = "segments='{param}' is not an input of '{name}' that lies along its arrays"
    hint = "declare 'bool {param}' among in_params, not raw"


class ExclusiveWithoutIdentity(Named, code="F263"):
    """An exclusive scan without an identity for its first element."""

    message = "'{name}' is exclusive: its first element would be the identity, and there is none"
    hint = "define the kernel with identity='...', or inclusive=True"


class NoPositionInScan(UserError, code="F264"):
    """A text of a scan that uses its position."""

    message = "a scan has no {word}"
    hint = "pass an array of positions, e.g. numpy.arange(n)"
    word: str
