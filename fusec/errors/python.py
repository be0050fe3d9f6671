"""Errors in functions written in Python (codes F170 to F199), and in the files that hold them (F403 and F404)."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.diagnostics import did_you_mean
from fusec.errors.base import Described, FusecOverflowError, FusecTypeError, Named, OfParameter, UserError


class NotInSubset(Described, code="F170"):
    """Python outside of the subset that kernels support."""

    message = "{what} not part of the Python subset"


class NotPython(UserError, code="F171"):
    """A text that is not Python."""

    message = "not Python: {reason}"
    reason: str
    cure: str = "check this line and the brackets before it"


class BadIndentation(UserError, code="F172"):
    """A line whose indentation matches no enclosing block."""

    message = "the indentation of this line matches no enclosing block"
    hint = "indent each block by four spaces; a tab advances to the next multiple of eight"


class NoSource(UserError, code="F173", exception=FusecTypeError):
    """A function whose source cannot be read."""

    message = "the source of {function} cannot be read: {reason}"
    hint = "pass the text itself: fusec.elementwise('''def {name}(...): ...''')"
    function: str
    reason: str
    name: str


class NotAFunction(Described, code="F174", exception=FusecTypeError):
    """A decorated object that is not a plain function, or a text that does not define one."""


class TypeChanges(Named, code="F175", exception=FusecTypeError):
    """A variable whose type depends on the path through the function."""

    message = "'{name}' is {first} on one path through this statement and {second} on another"
    label = "'{name}' must have one type after this"
    hint = "{first} on line {first_line}, {second} on line {second_line}: {cure}"
    first: str
    first_line: int
    second: str
    second_line: int
    cure: str


class MaybeUnassigned(Named, code="F176"):
    """A variable that may be read before it is assigned."""

    message = "'{name}' may have no value here"
    hint = "line {line} assigns it, but not on every path that leads here: assign it before the {where}"
    line: int
    where: str


class ReturnsDiffer(Named, code="F177", exception=FusecTypeError):
    """Return statements that differ in the types or the number of their values."""

    message = "'{name}' returns {first} on line {first_line} and {second} on line {second_line}"
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
    """A Python integer that the dtype of its other operand (int64 if there is none) cannot hold, or a constant."""

    message = "{what} {value} out of bounds for {dtype}"
    value: str
    dtype: str
    cure: str
    what: str = "Python integer"


class NotACapture(Named, code="F180", exception=FusecTypeError):
    """A name from outside the function whose value a kernel cannot use."""

    message = "'{name}' is {given}, which a kernel cannot use"
    given: str
    cure: str


class BadAnnotation(UserError, code="F181", exception=FusecTypeError):
    """An annotation that is not a dtype."""

    message = "annotation '{annotation}' is not a dtype"
    annotation: str
    cure: str


class NoDtype(UserError, code="F182", exception=FusecTypeError):
    """Operands without a common dtype."""

    message = "{op} of {types} has no dtype"
    op: str
    types: str
    cure: str


class BadParameter(Described, code="F183"):
    """An invalid parameter of a function."""


class BadTarget(Described, code="F184"):
    """An invalid target of an assignment."""

    message = "cannot assign to {what}"


class CannotUnpack(UserError, code="F185"):
    """A value with the wrong number of parts for its targets."""

    message = "cannot unpack {given} into {wanted:name}"
    given: str
    wanted: int
    cure: str


class BadLoop(Described, code="F186"):
    """A loop over something other than a range."""


SHOWS_ARGUMENTS = "in Python, source(target, *args)"  # where a dtype does not describe an argument


class ArgumentMissing(OfParameter, code="F187", exception=FusecTypeError):
    """A call without an argument that has no default."""

    message = "{name}() is missing the argument '{param}'"
    cure: str


def argument_missing(name: str, param: str, params: Sequence[str]) -> ArgumentMissing:
    """The error for a call that lacks an argument; a method may lack its object."""
    cure = f"its parameters are: {', '.join(params)}"
    if params[0] in ("self", "cls"):
        cure = f"it is never bound to an object: leave '{params[0]}' out and write @staticmethod above the decorator"
    return ArgumentMissing(name, param, cure)


class UnexpectedArgument(Named, code="F188", exception=FusecTypeError):
    """An argument that a function does not take, or takes only once."""

    message = "{name}() does not take {given}"
    given: str
    cure: str

    @classmethod
    def unknown(cls, name: str, given: str, params: Sequence[str], also: str = "", why: str = "") -> UnexpectedArgument:
        """One whose name is no parameter's; also: what else calls take; why: the reason, if it is a particular one."""
        near = did_you_mean(given, params)
        taken = f"its parameters are: {', '.join(params)}{also}" if params or also else "it names no parameters"
        return cls(name, f"the argument '{given}'", why or f"{near} {taken}".lstrip())

    @classmethod
    def twice(cls, name: str, given: str) -> UnexpectedArgument:
        """One given by position and by name."""
        return cls(name, f"{given} twice", "it was given by position already")


class CannotStore(Named, code="F189", exception=FusecTypeError):
    """An output whose dtype cannot hold the results."""

    message = "cannot store results of {name}() of dtype {dtype} in an array of {wanted}"
    hint = "convert in the function: return np.{wanted}(value)"
    dtype: str
    wanted: str


class StencilRadius(UserError, code="F190"):
    """A stencil that skips a border of unknown width."""

    message = "boundary='skip' needs constant offsets"
    hint = "write numbers as offsets, or choose another boundary"


class BadBoundary(Described, code="F191"):
    """An invalid boundary, or invalid axes, of a stencil."""


class StencilShapes(OfParameter, code="F192"):
    """Arrays of a stencil whose shapes differ."""

    message = "array '{param}' of stencil '{name}' has shape {given}, not {shape}"
    hint = (
        "every indexed parameter is a neighbourhood in the grid, so it has the shape of the result (np.broadcast_to);"
        " pass weights as numbers, or take a tuple or an array of them from outside of the function"
    )
    given: tuple[int, ...]
    shape: tuple[int, ...]


class PartsDiffer(UserError, code="F193", exception=FusecTypeError):
    """Functions of a reduction that disagree about the parts of a total."""

    message = "{first}, but {second}"
    first: str
    second: str
    cure: str


class BadReduction(Described, code="F194", exception=FusecTypeError):
    """A reduction whose functions do not fit the roles map, combine and finish."""


class NoPythonKernels(UserError, code="F403"):
    """A Python file without functions that fusec compiles."""

    message = "{file} defines no kernel"
    hint = "{cure}"
    file: str
    cure: str = "decorate a function at its top level with @fusec.elementwise, @fusec.stencil or @fusec.kernel"


class BadDecorator(Named, code="F404"):
    """A decorator or kernel string whose arguments are unknown until the file runs."""

    message = "this kernel cannot be made without running the file: {problem}"
    hint = "write its arguments as literals, or compile MODULE:KERNEL, which imports the module"
    problem: str
