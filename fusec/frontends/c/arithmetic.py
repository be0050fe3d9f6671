"""C's operators on typed expressions: conversions, promotions, and the matching op of the table."""

from __future__ import annotations

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, INT32, DType, c_common, c_promote
from fusec.base.ops import COMPARISONS, SYMBOLS
from fusec.base.source import Span
from fusec.errors.checks import constant_comparison
from fusec.errors.language import BadOperands, CannotConvert
from fusec.frontends.c.c_types import show
from fusec.ir.expr import Apply, Const, Expr, Pointer, Struct, apply, const, scalar_type, type_of

BITWISE = ("&", "|", "^")
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
WIDEST = 64  # bits; shifting any integer by this much leaves nothing of it


def dtype_of(value: Expr, span: Span, op: str = "this operator") -> DType:
    """The dtype of a scalar operand. Raises BadOperands for structs and pointers."""
    found = type_of(value)
    match found:
        case DType():
            return found
        case Struct():
            raise BadOperands(op, f"struct {found.name}", "use its fields").at(span)
        case Pointer():
            raise BadOperands(op, show(found), "read the element with * or []").at(span)


def to(value: Expr, dtype: DType) -> Expr:
    """`value` converted to a dtype; a constant is converted at once where that is exact in every target."""
    given = scalar_type(value)
    if given == dtype:
        return value
    if isinstance(value, Const) and _folds(value, given, dtype):
        return const(value.value.item(), dtype)
    if dtype == BOOL:
        return truth(value)
    return apply("convert", value, target=dtype)


def _folds(value: Const, given: DType, dtype: DType) -> bool:
    if given.is_complex or dtype.is_complex or dtype in dtypes.STORAGE_FLOATS or given in dtypes.STORAGE_FLOATS:
        return False
    if given.is_float and dtype.is_integer:
        number = float(value.value)
        return number.is_integer() and 0 <= number < 128  # fits every integer type, so no question of saturation
    return True


def convert(value: Expr, dtype: DType, span: Span) -> Expr:
    """An implicit or explicit conversion. Raises CannotConvert where C++ has none."""
    given = type_of(value)
    if not isinstance(given, DType):
        raise CannotConvert(show(given), dtype.name, "read the element with * or []").at(span)
    if given.is_complex and not dtype.is_complex:
        raise CannotConvert(given.name, dtype.name, "take a part: x.real(), x.imag() or abs(x)").at(span)
    return to(value, dtype)


def truth(value: Expr) -> Expr:
    """A scalar as a condition: ``x != 0``."""
    given = scalar_type(value)
    if given == BOOL:
        return value
    if isinstance(value, Const) and not given.is_complex:
        return const(bool(value.value), BOOL)
    if isinstance(value, Apply) and value.op == "convert" and scalar_type(value.args[0]) == BOOL:
        return value.args[0]
    wide = to(value, c_promote(given))
    return apply("not_equal", wide, const(0, scalar_type(wide)))


def binary(op: str, left: Expr, right: Expr, span: Span) -> Expr:
    """``left op right`` for all operators but the logical ones. Raises BadOperands."""
    a, b = dtype_of(left, span, op), dtype_of(right, span, op)
    if op in ("<<", ">>"):
        return _shift(op, left, right, span)
    common = c_common(a, b)
    x, y = to(left, common), to(right, common)
    if op in COMPARISONS:
        if common.is_complex and op not in ("==", "!="):
            raise BadOperands(op, f"{a} and {b}", "complex values have no order; compare abs(x) or x.real()").at(span)
        _check_bool(op, left, right, span)
        return apply(COMPARISONS[op], x, y)
    if op in BITWISE:
        if not common.is_integer:
            power = "; for a power write pow(a, b)" if op == "^" else ""
            raise BadOperands(op, f"{a} and {b}", f"bitwise operators take integers{power}").at(span)
        return apply(SYMBOLS[op], x, y)
    if common.is_integer and op == "/":
        return apply("quotient", x, y)
    if not common.is_integer and op == "%":
        raise BadOperands(op, f"{a} and {b}", "use fmod(a, b) for floats").at(span)
    return apply(SYMBOLS[op], x, y)


def _check_bool(op: str, left: Expr, right: Expr, span: Span) -> None:
    """Raise ConstantComparison for a bool and a number that tell nothing of each other."""
    if isinstance(left, Const):
        left, right, op = right, left, MIRRORED[op]
    if isinstance(right, Const) and not isinstance(left, Const) and scalar_type(left) == BOOL:
        cure = "count in an int, e.g. (int)x, and compare that"
        problem = None if right.type.is_complex else constant_comparison(op, right.value.item(), cure)
        if problem is not None:
            raise problem.at(span)


def _shift(op: str, left: Expr, right: Expr, span: Span) -> Expr:
    a, b = dtype_of(left, span, op), dtype_of(right, span, op)
    if not c_promote(a).is_integer or not c_promote(b).is_integer:
        raise BadOperands(op, f"{a} and {b}", "shifts take integers").at(span)
    wide = c_promote(a)
    value, count = to(left, wide), to(right, c_promote(b))
    return apply("left_shift" if op == "<<" else "right_shift", value, _count(count, wide))


def _count(count: Expr, wide: DType) -> Expr:
    """A shift count in the dtype of what is shifted; one that does not fit becomes over-wide, not small."""
    given = scalar_type(count)
    if given.bits <= wide.bits:
        return to(count, wide)
    if isinstance(count, Const):
        value = int(count.value)
        return const(value if 0 <= value < WIDEST else WIDEST, wide)
    fits = apply("less", to(count, dtypes.unsigned_of(given.bits)), const(WIDEST, dtypes.unsigned_of(given.bits)))
    return apply("where", fits, to(count, wide), const(WIDEST, wide))


def prefix(op: str, operand: Expr, span: Span) -> Expr:
    """``+x``, ``-x``, ``~x`` and ``!x``. Raises BadOperands."""
    given = dtype_of(operand, span, op)
    if op == "!":
        return apply("logical_not", truth(operand))
    wide = to(operand, c_promote(given))
    match op:
        case "+":
            return wide
        case "-" if isinstance(wide, Const) and not given.is_complex:
            return negated(wide)
        case "-":
            return apply("negative", wide)
        case _:
            if not c_promote(given).is_integer:
                raise BadOperands(op, given.name, "~ takes integers").at(span)
            return apply("bitwise_invert", wide)


def negated(value: Const) -> Const:
    """The constant with the other sign; integers wrap."""
    if value.type.is_integer:
        return const(-int(value.value), value.type)
    return Const(value.bits ^ 1 << (value.type.bits - 1), value.type)


def common_choice(a: DType, b: DType) -> DType:
    """The type of ``c ? a : b``: one of equal types stays, others are promoted as in arithmetic."""
    return a if a == b else c_common(a, b)


def step(value: Expr, op: str, span: Span) -> Expr:
    """The value after ``++`` or ``--``, before it is converted back."""
    given = dtype_of(value, span, op)
    if given == BOOL:
        raise BadOperands(op, "bool", "assign true or false").at(span)
    one = const(1, given if given.is_float or given.is_complex else INT32)
    return binary("+" if op == "++" else "-", value, to(one, c_promote(given)), span)
