"""Python's operators on typed values: NumPy's result types, and the ops of the table that compute them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import NoneType

from fusec.base.diagnostics import shown_number
from fusec.base.dtypes import BOOL, FLOAT64, INT8, INT64, UINT64, DType
from fusec.base.ops import COMPARISONS, SYMBOLS
from fusec.base.source import Span
from fusec.errors.checks import ConstantComparison, constant_comparison
from fusec.errors.language import BadOperands
from fusec.errors.python import NoDtype
from fusec.frontends.python import types as t
from fusec.frontends.python import values as v
from fusec.ir.expr import Const, Expr, apply, const, scalar_type

BITWISE = ("&", "|", "^")
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
PYTHON: dict[str, Callable[..., v.PythonNumber]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
MAX_BITS = 512  # of integers known now; results beyond are refused


def common(left: v.Scalar, right: v.Scalar, op: str, span: Span) -> tuple[t.Kind, v.Scalar, v.Scalar]:
    """The type that NumPy gives to two operands, and both in it. Raises NoDtype."""
    kind = t.promote(left.type, right.type)
    if kind is None:
        cure = f"convert one, e.g. np.{t.storage(left.type)}(x)"
        raise NoDtype(f"'{op}'", f"{left.type} and {right.type}", cure).at(span)
    return kind, v.adapt(left, kind, span), v.adapt(right, kind, span)


def counted(value: v.Scalar, span: Span) -> v.Scalar:
    """The value; a bool as the integer that NumPy and Python compute with where there is no arithmetic of bools."""
    if not t.is_bool(value.type):
        return value
    return v.adapt(value, t.PY_INT if value.type == t.PY_BOOL else INT8, span)


def binary(op: str, left: v.Scalar, right: v.Scalar, span: Span) -> v.Scalar:
    """``left op right``. Raises BadOperands, NoDtype or NumberTooLarge."""
    folded = _folded(op, left, right, span)
    if folded is not None:
        return folded
    if op in COMPARISONS:
        return compare(op, left, right, span)
    if op in BITWISE or op in ("<<", ">>"):
        return _bits(op, left, right, span)
    if op == "**":
        return power(left, right, span)
    kind, a, b = common(left, right, op, span)
    if op == "/":
        return _divide(kind, a, b, span)
    if op in ("//", "%"):
        return _floored(op, kind, a, b, span)
    if t.is_bool(kind):
        return _of_bools(op, kind, a, b, span)
    return v.Scalar(kind, apply(SYMBOLS[op], a.read(), b.read()))


def _folded(op: str, left: v.Scalar, right: v.Scalar, span: Span) -> v.Scalar | None:
    """The result for two Python numbers that are known, as Python computes it; None if it is no such case.

    Raises NumberTooLarge for integers of more than MAX_BITS.
    """
    a, b = left.literal, right.literal
    if a is None or b is None or op not in PYTHON or isinstance(a, complex) or isinstance(b, complex):
        return None
    if op in ("<<", ">>", "**"):
        if not isinstance(a, int) or not isinstance(b, int) or b < 0:
            return None  # powers of floats are those of the elementary functions
        if not _grows_little(op, a, b):
            raise v.too_large(a, INT64, f"{shown_number(a)} {op} {shown_number(b)}").at(span)
        b = min(b, MAX_BITS + b % 2 if op == "**" else max(a.bit_length(), MAX_BITS))
    try:
        value = PYTHON[op](a, b)
    except (ArithmeticError, TypeError, ValueError):
        return None  # the op itself is total, or refuses it in its own words
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise v.too_large(value, INT64).at(span)
    return v.literal(value)


def _grows_little(op: str, a: int, b: int) -> bool:
    """Whether ``a << b``, ``a >> b`` or ``a ** b`` has not much more than MAX_BITS."""
    if op == ">>" or abs(a) <= (op == "**"):
        return True
    return b <= MAX_BITS and (op == "<<" or b * a.bit_length() <= 2 * MAX_BITS)


def _of_bools(op: str, kind: t.Kind, a: v.Scalar, b: v.Scalar, span: Span) -> v.Scalar:
    """``+`` and ``*`` of two bools: or and and for NumPy's, integers for Python's."""
    if kind == t.PY_BOOL:
        return binary(op, v.adapt(a, t.PY_INT, span), v.adapt(b, t.PY_INT, span), span)
    if op == "-":
        raise BadOperands("-", "two bools", "write a ^ b, or convert one to an integer").at(span)
    return v.Scalar(kind, apply("bitwise_or" if op == "+" else "bitwise_and", a.read(), b.read()))


def _divide(kind: t.Kind, a: v.Scalar, b: v.Scalar, span: Span) -> v.Scalar:
    if isinstance(kind, t.PythonType):
        kind = max(kind, t.PY_FLOAT, key=lambda each: each.rank)
    elif not (kind.is_float or kind.is_complex):
        kind = FLOAT64
    return v.Scalar(kind, apply("divide", v.adapt(a, kind, span).read(), v.adapt(b, kind, span).read()))


def _floored(op: str, kind: t.Kind, a: v.Scalar, b: v.Scalar, span: Span) -> v.Scalar:
    if t.is_complex(kind):
        cure = "complex numbers have no order, so they cannot be rounded down"
        raise BadOperands(op, "complex numbers", cure).at(span)
    a, b = counted(a, span), counted(b, span)
    kind = a.type
    return v.Scalar(kind, apply("floor_divide" if op == "//" else "remainder", a.read(), b.read()))


def power(left: v.Scalar, right: v.Scalar, span: Span) -> v.Scalar:
    """``left ** right``; the exponents that NumPy computes without pow are computed so here."""
    exponent = right.literal
    if left.type == BOOL and right.type == t.PY_INT and exponent == 2:
        left = counted(left, span)  # a square, to NumPy, whose type does not depend on the exponent's
    kind, base, count = common(left, right, "**", span)
    base, count = counted(base, span), counted(count, span)
    kind = base.type
    if t.is_integer(kind) and isinstance(exponent, int) and exponent < 0:
        if kind == t.PY_INT:
            return power(v.adapt(left, t.PY_FLOAT, span), right, span)
        cure = "integers have no negative powers: write 1 / x, or x ** -1.0"
        raise BadOperands("**", f"{kind} and {exponent}", cure).at(span)
    if exponent == 2:
        value = base.read()
        return v.Scalar(kind, apply("multiply", value, value))
    if exponent == 1:
        return base
    if t.is_complex(kind) and exponent in (0.5, -1):
        return v.Scalar(kind, apply("sqrt_complex" if exponent == 0.5 else "reciprocal", base.read()))
    if not t.is_integer(kind) and not t.is_complex(kind):
        if exponent == 0.5:
            return v.Scalar(kind, apply("sqrt", base.read()))
        if exponent == -1:
            return v.Scalar(kind, apply("divide", const(1, t.carrier(kind)), base.read()))
    return v.Scalar(kind, apply("pow", base.read(), count.read()))


# --- bits ---------------------------------------------------------------------------------------------------------


def _bits(op: str, left: v.Scalar, right: v.Scalar, span: Span) -> v.Scalar:
    kind, a, b = common(left, right, op, span)
    if not t.is_integer(kind) and not t.is_bool(kind):
        power = "; a power is x ** y" if op == "^" else ""
        raise BadOperands(op, f"{left.type} and {right.type}", f"these are for integers and bools{power}").at(span)
    if op in BITWISE:
        return v.Scalar(kind, apply(SYMBOLS[op], a.read(), b.read()))
    a, b = counted(a, span), counted(b, span)
    kind = a.type
    return v.Scalar(kind, apply("left_shift" if op == "<<" else "right_shift", a.read(), b.read()))


# --- comparisons ----------------------------------------------------------------------------------------------------


def compare(op: str, left: v.Scalar, right: v.Scalar, span: Span) -> v.Scalar:
    """A comparison; integers of any widths and signs are compared as the numbers they are. Raises BadOperands."""
    left, right = _wide(left, right), _wide(right, left)
    python = isinstance(left.type, t.PythonType) and isinstance(right.type, t.PythonType)
    answer: t.Kind = t.PY_BOOL if python else BOOL
    outside = _beyond(op, left, right) or _beyond(MIRRORED[op], right, left)
    if outside is not None:
        return v.Scalar(answer, const(outside[0], BOOL))
    problem = constant_answer(op, left, right)
    if problem is not None:
        raise problem.at(span)
    kinds = (left.type, right.type)
    if all(isinstance(kind, DType) and kind.is_integer and kind.bits == 64 for kind in kinds) and kinds[0] != kinds[1]:
        return v.Scalar(answer, _mixed_signs(op, left.read(), right.read()))
    kind, a, b = common(left, right, op, span)
    if t.is_complex(kind) and op not in ("==", "!="):
        cure = "complex numbers have no order; compare abs(x) or x.real"
        raise BadOperands(op, f"{left.type} and {right.type}", cure).at(span)
    return v.Scalar(answer, apply(COMPARISONS[op], a.read(), b.read()))


def _wide(value: v.Scalar, other: v.Scalar) -> v.Scalar:
    """A Python integer that is compared: int64 if the kernel computes it, since the other dtype may not hold it."""
    if value.type != t.PY_INT or value.literal is not None or value.uses is not None:
        return value
    return v.Scalar(INT64, value.expr) if isinstance(other.type, DType) and t.is_integer(other.type) else value


def constant_answer(op: str, left: v.Scalar, right: v.Scalar) -> ConstantComparison | None:
    """The error for a bool and a number known now that tell nothing of each other, if they are such."""
    if t.is_bool(right.type):
        left, right, op = right, left, MIRRORED[op]
    number = right.literal
    if number is None and isinstance(right.expr, Const):
        number = right.expr.value.item()
    if not t.is_bool(left.type) or left.literal is not None or isinstance(number, (complex, NoneType)):
        return None
    cure = "a sum of bools is a bool, as in NumPy: convert them first, e.g. int8(x)"
    return constant_comparison(op, number, cure)


def _beyond(op: str, value: v.Scalar, bound: v.Scalar) -> tuple[bool] | None:
    """The answer for an integer and an integer literal that its dtype cannot hold; None if it can."""
    number = bound.literal
    if not isinstance(number, int) or not t.is_integer(value.type):
        return None
    dtype = t.carrier(value.type)
    if v.holds(dtype, number):
        return None
    return (bool(PYTHON[op](0, 1 if number > 0 else -1)),)


def _mixed_signs(op: str, left: Expr, right: Expr) -> Expr:
    """Int64 and uint64 compared: a negative number is less than all of the others."""
    if scalar_type(left) == UINT64:
        return _mixed_signs(MIRRORED[op], right, left)
    negative = apply("less", left, const(0, INT64))
    alike = apply(COMPARISONS[op], v.converted(left, UINT64), right)
    return apply("where", negative, const(op in ("<", "<=", "!="), BOOL), alike)


# --- one operand ----------------------------------------------------------------------------------------------------


def prefix(op: str, value: v.Scalar, span: Span) -> v.Scalar:
    """``+x``, ``-x``, ``~x`` or ``not x``. Raises BadOperands."""
    if op == "not":
        return v.Scalar(t.PY_BOOL, apply("logical_not", condition(value)), None)
    number, kind = value.literal, value.type
    if number is not None and (op != "~" or isinstance(number, int)):
        return v.literal({"-": operator.neg, "+": operator.pos, "~": operator.invert}[op](number))  # type: ignore[operator]
    if kind == t.PY_BOOL:
        return prefix(op, v.adapt(value, t.PY_INT, span), span)
    if op == "~":
        if kind == BOOL:
            return v.Scalar(kind, apply("logical_not", value.read()))
        if not t.is_integer(kind):
            raise BadOperands("~", str(kind), "~ is for integers and bools").at(span)
        return v.Scalar(kind, apply("bitwise_invert", value.read()))
    if kind == BOOL:
        raise BadOperands(op, "bool", "write ~x or not x, or convert it to an integer").at(span)
    return value if op == "+" else v.Scalar(kind, apply("negative", value.read()))


def condition(value: v.Scalar) -> Expr:
    """A value as a condition: bools as they are, numbers if they are not zero."""
    if value.literal is not None:
        return const(bool(value.literal), BOOL)
    return v.truth(value.read())


def choose(test: Expr, then: v.Scalar, orelse: v.Scalar, span: Span) -> v.Scalar:
    """``then if test else orelse``, of the type that np.where gives it. Raises NoDtype."""
    kind, a, b = common(then, orelse, "if else", span)
    if isinstance(test, Const):
        return a if test.value else b
    if a.literal is not None and a == b:
        return a
    return v.Scalar(kind, apply("where", test, a.read(), b.read()))
