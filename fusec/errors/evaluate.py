"""Errors of expressions given as texts to fusec.evaluate (codes F500 to F519)."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecRuntimeError, FusecTypeError, UserError


class FusecSyntaxError(FusecError, SyntaxError, ValueError):
    """A FusecError that is also a SyntaxError, which numexpr raises for one text, and a ValueError, for another."""

    def __init__(self, error: UserError, span: object = None) -> None:
        Exception.__init__(self, error, span)
        self.error, self.span = error, span  # type: ignore[assignment]
        self.msg = str(self)  # what the module traceback shows of a SyntaxError


class FusecKeyError(FusecError, KeyError):
    """A FusecError that is also a KeyError."""


class NotAnExpression(UserError):
    """A text that is no expression, or has what expressions cannot say."""

    code: ClassVar[str] = "F500"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecSyntaxError
    what: str
    cure: str


class ExpressionTooLarge(UserError):
    """A text beyond the bounds."""

    code: ClassVar[str] = "F501"
    message: ClassVar[str] = "the expression is too large: more than {limit} {what}"
    hint: ClassVar[str] = "split it, and pass the results of its parts as arrays"
    exception: ClassVar[type[FusecError]] = FusecSyntaxError
    limit: int
    what: str


class NoTruth(UserError):
    """Python's own logic, which needs one truth for a whole array."""

    code: ClassVar[str] = "F502"
    message: ClassVar[str] = "{what} would need one truth for all elements"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NameNotFound(UserError):
    """A name that neither dictionary nor frame has."""

    code: ClassVar[str] = "F503"
    message: ClassVar[str] = "'{name}' is defined neither where evaluate is called nor in the dictionaries given"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecKeyError
    name: str
    cure: str


class NotANumber(UserError):
    """Text or another object where numbers are needed."""

    code: ClassVar[str] = "F504"
    message: ClassVar[str] = "{what}: fusec computes with numbers only"
    hint: ClassVar[str] = "{cure}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    cure: str


class NegativePower(UserError):
    """An integer to the power of a negative integer; NumPy's text."""

    code: ClassVar[str] = "F505"
    message: ClassVar[str] = "Integers to negative integer powers are not allowed."
    hint: ClassVar[str] = "write 1 / x, or x ** -1.0"


class BadAxis(UserError):
    """An axis that a reduction in a text cannot have."""

    code: ClassVar[str] = "F506"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class BadOption(UserError):
    """A keyword of evaluate with a value that it does not take, or one that there is none of."""

    code: ClassVar[str] = "F507"
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = "{cure}"
    what: str
    cure: str


class CannotCast(UserError):
    """A dtype that becomes another one only by a looser rule than was given."""

    code: ClassVar[str] = "F508"
    message: ClassVar[str] = "Cannot cast {what} from {dtype} to {wanted} according to the rule '{rule}'"
    hint: ClassVar[str] = "pass casting='unsafe', or convert in the expression: {wanted}(x)"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    what: str
    dtype: str
    wanted: str
    rule: str


class NothingBefore(UserError):
    """Something to be evaluated again where nothing has been evaluated."""

    code: ClassVar[str] = "F509"
    message: ClassVar[str] = "this thread has not evaluated or validated an expression yet"
    hint: ClassVar[str] = "call fusec.evaluate or fusec.validate before fusec.re_evaluate"
    exception: ClassVar[type[FusecError]] = FusecRuntimeError


class ArgumentsOfExpression(UserError):
    """A compiled expression called with too many or too few arguments."""

    code: ClassVar[str] = "F510"
    message: ClassVar[str] = "the expression takes {expected} argument(s), given {given}"
    hint: ClassVar[str] = "its names are, in this order: {names}"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    expected: int
    given: int
    names: str
