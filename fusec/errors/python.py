"""Errors in functions written in Python (codes F170 to F199)."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.errors.base import Described, FusecOverflowError, FusecTypeError, Named, OfParameter, UserError


class NotInSubset(Described, code="F170"):
    """Python that a kernel cannot say."""

    message = "{what} not part of the Python subset"


class NotPython(UserError, code="F171"):
    """Text that is no Python at all."""

    message = "not Python: {reason}"
    reason: str
    cure: str = "check the line, and the brackets before it"


class BadIndentation(UserError, code="F172"):
    """A line that ends a block but is not in line with any before."""

    message = "the indentation of this line matches no block around it"
    hint = "indent by four spaces for every block; a tab counts to the next multiple of eight"


class NoSource(UserError, code="F173", exception=FusecTypeError):
    """A function whose text cannot be read."""

    message = "the source of {function} cannot be read: {reason}"
    hint = "pass the text itself: fusec.elementwise('''def {name}(...): ...''')"
    function: str
    reason: str
    name: str


class NotAFunction(Described, code="F174", exception=FusecTypeError):
    """Something decorated that is no plain function, or a text that defines none."""


class TypeChanges(Named, code="F175", exception=FusecTypeError):
    """A variable that has different types on different ways to the same place."""

    message = "'{name}' is {first} on one path through this statement and {second} on another"
    label = "'{name}' must have one type after this"
    hint = "{first} in line {first_line}, {second} in line {second_line}: convert one, e.g. {cure}"
    first: str
    first_line: int
    second: str
    second_line: int
    cure: str


class MaybeUnassigned(Named, code="F176"):
    """A variable that has no value on some way to where it is read."""

    message = "'{name}' may have no value here"
    hint = "line {line} assigns it, but not on every path to this place: assign it before the {where}"
    line: int
    where: str


class ReturnsDiffer(Named, code="F177", exception=FusecTypeError):
    """Returns of different types or numbers of values."""

    message = "'{name}' returns {first} in line {first_line} and {second} in line {second_line}"
    first: str
    first_line: int
    second: str
    second_line: int
    cure: str


class NoReturn(Named, code="F178"):
    """A function that can end without a value."""

    message = "'{name}' can end without returning a value"
    cure: str = "end every path through it with 'return value'"


class NumberTooLarge(UserError, code="F179", exception=FusecOverflowError):
    """A Python integer that the dtype it meets cannot hold; int64 if it meets none."""

    message = "Python integer {value} out of bounds for {dtype}"
    value: str
    dtype: str
    cure: str


class NotACapture(Named, code="F180", exception=FusecTypeError):
    """A name from outside the function that stands for nothing that a kernel can hold."""

    message = "'{name}' is {given}, which a kernel cannot use"
    given: str
    cure: str


class BadAnnotation(UserError, code="F181", exception=FusecTypeError):
    """An annotation that names no dtype."""

    message = "annotation '{annotation}' is not a dtype"
    annotation: str
    cure: str


class NoDtype(UserError, code="F182", exception=FusecTypeError):
    """Operands without a dtype that NumPy would give to both."""

    message = "{op} of {types} has no dtype"
    op: str
    types: str
    cure: str


class BadParameter(Described, code="F183"):
    """A parameter that a kernel cannot have."""


class BadTarget(Described, code="F184"):
    """Something that cannot be assigned to."""

    message = "cannot assign to {what}"


class CannotUnpack(UserError, code="F185"):
    """A value that has another number of parts than targets."""

    message = "cannot unpack {given} into {wanted} names"
    given: str
    wanted: int
    cure: str


class BadLoop(Described, code="F186"):
    """A loop over something that is no range."""


class ArgumentMissing(OfParameter, code="F187", exception=FusecTypeError):
    """A call without an argument that has no default."""

    message = "{name}() is missing the argument '{param}'"
    cure: str


def argument_missing(name: str, param: str, params: Sequence[str]) -> ArgumentMissing:
    """The error for a call without one of its arguments, which a method looks for in its object."""
    cure = f"its parameters are: {', '.join(params)}"
    if params[0] in ("self", "cls"):
        cure = f"it is never bound to an object: leave '{params[0]}' out and write @staticmethod above the decorator"
    return ArgumentMissing(name, param, cure)


class UnexpectedArgument(Named, code="F188", exception=FusecTypeError):
    """An argument that a function does not take, or takes once only."""

    message = "{name}() does not take {given!r} like this"
    given: str
    cure: str


class CannotStore(Named, code="F189", exception=FusecTypeError):
    """An output whose dtype cannot hold the results."""

    message = "cannot store results of {name}() of dtype {dtype} in an array of {wanted}"
    hint = "convert in the function: return np.{wanted}(value)"
    dtype: str
    wanted: str


class StencilRadius(UserError, code="F190"):
    """A stencil that leaves out the border without saying how wide that is."""

    message = "boundary='skip' needs offsets that are known"
    hint = "write numbers as offsets, or choose another boundary"


class BadBoundary(Described, code="F191"):
    """A boundary or axes that a stencil does not have."""


class StencilShapes(OfParameter, code="F192"):
    """Arrays of a stencil that do not have one shape."""

    message = "array '{param}' of stencil '{name}' has shape {given}, not {shape}"
    hint = "arrays whose neighbours are read must have the shape of the result: use np.broadcast_to"
    given: tuple[int, ...]
    shape: tuple[int, ...]


class PartsDiffer(UserError, code="F193", exception=FusecTypeError):
    """Functions of a reduction that do not agree on what is accumulated."""

    message = "{first}, but {second}"
    first: str
    second: str
    cure: str


class BadReduction(Described, code="F194", exception=FusecTypeError):
    """A reduction whose functions do not have the shape of map, combine and finish."""
