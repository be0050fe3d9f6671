"""Errors of expressions given as texts to fusec.evaluate (codes F500 to F519)."""

from __future__ import annotations

from fusec.errors.base import Described, FusecError, FusecRuntimeError, FusecTypeError, Named, UserError


class FusecSyntaxError(FusecError, SyntaxError, ValueError):
    """A FusecError that is also a SyntaxError, which numexpr raises for one text, and a ValueError, for another."""

    def __init__(self, error: UserError, span: object = None) -> None:
        Exception.__init__(self, error, span)
        self.error, self.span = error, span  # type: ignore[assignment]
        self.msg = str(self)  # what the module traceback shows of a SyntaxError


class FusecKeyError(FusecError, KeyError):
    """A FusecError that is also a KeyError."""


class NotAnExpression(Described, code="F500", exception=FusecSyntaxError):
    """A text that is no expression, or has what expressions cannot say."""


class ExpressionTooLarge(UserError, code="F501", exception=FusecSyntaxError):
    """A text beyond the bounds."""

    message = "the expression is too large: more than {limit} {what}"
    hint = "split it, and pass the results of its parts as arrays"
    limit: int
    what: str


class NoTruth(Described, code="F502", exception=FusecTypeError):
    """Python's own logic, which needs one truth for a whole array."""

    message = "{what} would need one truth for all elements"


class NameNotFound(Named, code="F503", exception=FusecKeyError):
    """A name that neither dictionary nor frame has."""

    message = "'{name}' is defined neither where evaluate is called nor in the dictionaries given"
    cure: str


class NotANumber(Described, code="F504", exception=FusecTypeError):
    """Text or another object where numbers are needed."""

    message = "{what}: fusec computes with numbers only"


class NegativePower(UserError, code="F505"):
    """An integer to the power of a negative integer; NumPy's text."""

    message = "Integers to negative integer powers are not allowed."
    hint = "write 1 / x, or x ** -1.0"


class BadAxis(Described, code="F506"):
    """An axis that a reduction in a text cannot have."""


class BadOption(Described, code="F507"):
    """A keyword of evaluate with a value that it does not take, or one that there is none of."""


class CannotCast(UserError, code="F508", exception=FusecTypeError):
    """A dtype that becomes another one only by a looser rule than was given."""

    message = "Cannot cast {what} from {dtype} to {wanted} according to the rule '{rule}'"
    hint = "pass casting='unsafe', or convert in the expression: {wanted}(x)"
    what: str
    dtype: str
    wanted: str
    rule: str


class NothingBefore(UserError, code="F509", exception=FusecRuntimeError):
    """Something to be evaluated again where nothing has been evaluated."""

    message = "this thread has not evaluated or validated an expression yet"
    hint = "call fusec.evaluate or fusec.validate before fusec.re_evaluate"


class ArgumentsOfExpression(UserError, code="F510", exception=FusecTypeError):
    """A compiled expression called with too many or too few arguments."""

    message = "the expression takes {expected} argument(s), given {given}"
    hint = "its names are, in this order: {names}"
    expected: int
    given: int
    names: str
