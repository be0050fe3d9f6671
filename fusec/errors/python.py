"""Errors in functions written in Python (codes F170 to F199)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from fusec.errors.base import FusecError, FusecOverflowError, FusecTypeError, UserError


class NotInSubset(UserError):
    """Python that a kernel cannot say."""

    code: ClassVar[str] = "F170"
    message: ClassVar[str] = "{what} not part of the Python subset"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class NotPython(UserError):
    """Text that is no Python at all."""

    code: ClassVar[str] = "F171"
    message: ClassVar[str] = "not Python: {reason}"
    hint: ClassVar[str] = "{cure}"
    reason: str
    cure: str = "check the line, and the brackets before it"


class BadIndentation(UserError):
    """A line that ends a block but is not in line with any before."""

    code: ClassVar[str] = "F172"
    message: ClassVar[str] = "the indentation of this line matches no block around it"
    hint: ClassVar[str] = "indent by four spaces for every block; a tab counts to the next multiple of eight"


class NoSource(UserError):
    """A function whose text cannot be read."""

    code: ClassVar[str] = "F173"
    message: ClassVar[str] = "the source of {function} cannot be read: {reason}"
    hint: ClassVar[str] = "pass the text itself: fusec.elementwise('''def {name}(...): ...''')"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    function: str
    reason: str
    name: str


class NotAFunction(UserError):
    """Something decorated that is no plain function, or a text that defines none."""

    code: ClassVar[str] = "F174"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class TypeChanges(UserError):
    """A variable that has different types on different ways to the same place."""

    code: ClassVar[str] = "F175"
    message: ClassVar[str] = "'{name}' is {first} on one path through this statement and {second} on another"
    label: ClassVar[str] = "'{name}' must have one type after this"
    hint: ClassVar[str] = "{first} in line {first_line}, {second} in line {second_line}: convert one, e.g. {cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    first: str
    first_line: int
    second: str
    second_line: int
    cure: str


class MaybeUnassigned(UserError):
    """A variable that has no value on some way to where it is read."""

    code: ClassVar[str] = "F176"
    message: ClassVar[str] = "'{name}' may have no value here"
    hint: ClassVar[str] = "line {line} assigns it, but not on every path to this place: assign it before the {where}"
    name: str
    line: int
    where: str


class ReturnsDiffer(UserError):
    """Returns of different types or numbers of values."""

    code: ClassVar[str] = "F177"
    message: ClassVar[str] = "'{name}' returns {first} in line {first_line} and {second} in line {second_line}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    first: str
    first_line: int
    second: str
    second_line: int
    cure: str


class NoReturn(UserError):
    """A function that can end without a value."""

    code: ClassVar[str] = "F178"
    message: ClassVar[str] = "'{name}' can end without returning a value"
    hint: ClassVar[str] = "{cure}"
    name: str
    cure: str = "end every path through it with 'return value'"


class NumberTooLarge(UserError):
    """A Python integer that the dtype it meets cannot hold; int64 if it meets none."""

    code: ClassVar[str] = "F179"
    message: ClassVar[str] = "Python integer {value} out of bounds for {dtype}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecOverflowError
    value: str
    dtype: str
    cure: str


class NotACapture(UserError):
    """A name from outside the function that stands for nothing that a kernel can hold."""

    code: ClassVar[str] = "F180"
    message: ClassVar[str] = "'{name}' is {given}, which a kernel cannot use"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str
    cure: str


class BadAnnotation(UserError):
    """An annotation that names no dtype."""

    code: ClassVar[str] = "F181"
    message: ClassVar[str] = "annotation '{annotation}' is not a dtype"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    annotation: str
    cure: str


class NoDtype(UserError):
    """Operands without a dtype that NumPy would give to both."""

    code: ClassVar[str] = "F182"
    message: ClassVar[str] = "{op} of {types} has no dtype"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    op: str
    types: str
    cure: str


class BadParameter(UserError):
    """A parameter that a kernel cannot have."""

    code: ClassVar[str] = "F183"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class BadTarget(UserError):
    """Something that cannot be assigned to."""

    code: ClassVar[str] = "F184"
    message: ClassVar[str] = "cannot assign to {what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class CannotUnpack(UserError):
    """A value that has another number of parts than targets."""

    code: ClassVar[str] = "F185"
    message: ClassVar[str] = "cannot unpack {given} into {wanted} names"
    hint: ClassVar[str] = "{cure}"
    given: str
    wanted: int
    cure: str


class BadLoop(UserError):
    """A loop over something that is no range."""

    code: ClassVar[str] = "F186"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class ArgumentMissing(UserError):
    """A call without an argument that has no default."""

    code: ClassVar[str] = "F187"
    message: ClassVar[str] = "{name}() is missing the argument '{param}'"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    cure: str


def argument_missing(name: str, param: str, params: Sequence[str]) -> ArgumentMissing:
    """The error for a call without one of its arguments, which a method looks for in its object."""
    cure = f"its parameters are: {', '.join(params)}"
    if params[0] in ("self", "cls"):
        cure = f"it is never bound to an object: leave '{params[0]}' out and write @staticmethod above the decorator"
    return ArgumentMissing(name, param, cure)


class UnexpectedArgument(UserError):
    """An argument that a function does not take, or takes once only."""

    code: ClassVar[str] = "F188"
    message: ClassVar[str] = "{name}() does not take {given!r} like this"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    given: str
    cure: str


class CannotStore(UserError):
    """An output whose dtype cannot hold the results."""

    code: ClassVar[str] = "F189"
    message: ClassVar[str] = "cannot store results of {name}() of dtype {dtype} in an array of {wanted}"
    hint: ClassVar[str] = "convert in the function: return np.{wanted}(value)"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    dtype: str
    wanted: str


class StencilRadius(UserError):
    """A stencil that leaves out the border without saying how wide that is."""

    code: ClassVar[str] = "F190"
    message: ClassVar[str] = "boundary='skip' needs offsets that are known"
    hint: ClassVar[str] = "write numbers as offsets, or choose another boundary"


class BadBoundary(UserError):
    """A boundary or axes that a stencil does not have."""

    code: ClassVar[str] = "F191"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class StencilShapes(UserError):
    """Arrays of a stencil that do not have one shape."""

    code: ClassVar[str] = "F192"
    message: ClassVar[str] = "array '{param}' of stencil '{name}' has shape {given}, not {shape}"
    hint: ClassVar[str] = "arrays whose neighbours are read must have the shape of the result: use np.broadcast_to"
    name: str
    param: str
    given: tuple[int, ...]
    shape: tuple[int, ...]


class PartsDiffer(UserError):
    """Functions of a reduction that do not agree on what is accumulated."""

    code: ClassVar[str] = "F193"
    message: ClassVar[str] = "{first}, but {second}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    first: str
    second: str
    cure: str


class BadReduction(UserError):
    """A reduction whose functions do not have the shape of map, combine and finish."""

    code: ClassVar[str] = "F194"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str
