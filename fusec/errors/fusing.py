"""Errors of functions that fusec.fuse traces (codes F280 to F289, F700 to F719), and of expressions (F500 to F519)."""

from __future__ import annotations

from fusec.errors.base import (
    Described,
    FusecAttributeError,
    FusecKeyError,
    FusecMemoryError,
    FusecRuntimeError,
    FusecSyntaxError,
    FusecTypeError,
    Named,
    UserError,
)


class NeedsValues(Described, code="F280", exception=FusecTypeError):
    """An operation of Python that needs values of an array that are not known yet."""

    message = "{what} needs values of an array, which are not known while a fused function is traced"
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


class CallOnDevice(UserError, code="F286", exception=FusecTypeError):
    """A call of NumPy's, such as a product, between kernels that run on a device."""

    message = "{name} cannot be called on arrays on a device: {why}"
    label = "called here"
    hint = "split the function here: fuse what comes before and after, and call a library of the device between them"
    name: str
    why: str


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
    hint = (
        "draw them before the call and pass the array, or use fusec.random, whose numbers depend on a key and a counter"
    )
    what: str


class TooLittleMemory(UserError, code="F702", exception=FusecMemoryError):
    """Results or temporaries of a fused function, or a graph, for which the memory does not suffice."""

    message = "not enough memory in {kind} '{name}': {what}"
    label = "it needs more than there is"
    hint = "work on parts of the arrays, or write to arguments (x += y, out[...] = y) in place of new arrays"
    name: str
    what: str
    kind: str = "fused function"


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

    message = "the expression takes {expected:argument}, given {given}"
    hint = "its names are, in this order: {names}"
    expected: int
    given: int
    names: str
