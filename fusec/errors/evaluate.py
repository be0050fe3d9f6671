"""Errors of the expressions that fusec.evaluate takes (codes F500 to F519)."""

from __future__ import annotations

from fusec.errors.base import (
    Described,
    FusecKeyError,
    FusecRuntimeError,
    FusecSyntaxError,
    FusecTypeError,
    Named,
    UserError,
)


class NotAnExpression(Described, code="F500", exception=FusecSyntaxError):
    """A text that is not an expression of the language."""


class ExpressionTooLarge(UserError, code="F501", exception=FusecSyntaxError):
    """An expression that exceeds the limits."""

    message = "the expression is too large: more than {limit} {what}"
    hint = "split it, and pass the results of its parts as arrays"
    limit: int
    what: str


class NoTruth(Described, code="F502", exception=FusecTypeError):
    """Python's logical operators, which need one truth value for a whole array."""

    message = "{what} would need one truth value for all elements"


class NameNotFound(Named, code="F503", exception=FusecKeyError):
    """A name that neither the dictionaries nor the calling frame define."""

    message = "'{name}' is defined neither where evaluate is called nor in the dictionaries given"
    cure: str


class NotANumber(Described, code="F504", exception=FusecTypeError):
    """A string or another object where numbers are expected."""

    message = "{what}: fusec computes with numbers only"


class NegativePower(UserError, code="F505"):
    """An integer to the power of a negative integer; the message is NumPy's."""

    message = "Integers to negative integer powers are not allowed."
    hint = "write 1 / x, or x ** -1.0"


class BadAxis(Described, code="F506"):
    """An invalid axis of a reduction in an expression."""


class BadOption(Described, code="F507"):
    """An unknown keyword of evaluate, or one with a wrong value."""


class CannotCast(UserError, code="F508", exception=FusecTypeError):
    """A conversion of dtypes that the rule casting= forbids."""

    message = "Cannot cast {what} from {dtype} to {wanted} according to the rule '{rule}'"
    hint = "pass casting='unsafe', or convert in the expression: {wanted}(x)"
    what: str
    dtype: str
    wanted: str
    rule: str


class NothingBefore(UserError, code="F509", exception=FusecRuntimeError):
    """A call of re_evaluate before any call of evaluate or validate."""

    message = "this thread has not evaluated or validated an expression yet"
    hint = "call fusec.evaluate or fusec.validate before fusec.re_evaluate"


class ArgumentsOfExpression(UserError, code="F510", exception=FusecTypeError):
    """A compiled expression called with too many or too few arguments."""

    message = "the expression takes {expected} argument(s), given {given}"
    hint = "its names are, in this order: {names}"
    expected: int
    given: int
    names: str
