"""Loss of values: integer operations whose exact result exceeds their type, and casts to integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, INT64, STORAGE_FLOATS, UINT32, UINT64, DType, unsigned_of
from fusec.base.records import dataclass
from fusec.ir.expr import Apply, Const, Expr, apply, const, scalar_type

Rule = Callable[[Apply, Expr, Expr], Expr]


@dataclass(frozen=True)
class Loss:
    """An operation that loses its value."""

    op: str  # of the op table; "convert" for a cast
    violated: Expr  # where it does
    values: tuple[Expr, ...]  # its operands
    dtype: DType  # of the result


def losses(expr: Expr) -> Iterator[Loss]:
    """How an expression itself, apart from its operands, may lose its value."""
    match expr:
        case Apply("convert", (Const(),)):
            return  # a constant is what the text says
        case Apply("convert", (value,), kind) if kind.is_integer:
            test = _lost(value, kind)
            if test is not None:
                yield Loss("convert", test, (value,), kind)
        case Apply(op, args, kind) if kind.is_integer and op in RULES:
            test = RULES[op](expr, args[0], args[-1])
            if test is not None:
                yield Loss(op, test, args, kind)


def bits_of(value: Expr) -> Expr:
    """A number in 64 bits for a message: integers are sign-extended, floats stay as they are."""
    dtype = scalar_type(value)
    if dtype in STORAGE_FLOATS:
        return bits_of(apply("convert", value, target=FLOAT32))
    if dtype.is_float:
        word = apply("bitcast", value, target=UINT32 if dtype == FLOAT32 else UINT64)
        return word if dtype == FLOAT64 else apply("convert", word, target=UINT64)
    wide = INT64 if dtype.kind == "signed" else UINT64
    value = value if dtype == wide else apply("convert", value, target=wide)
    return value if wide == UINT64 else apply("bitcast", value, target=UINT64)


# --- when ----------------------------------------------------------------------------------------------------------


def _zero(value: Expr) -> Const:
    return const(0, scalar_type(value))


def _least(value: Expr) -> Const:
    return const(scalar_type(value).limits[0], scalar_type(value))


def _lost(value: Expr, kind: DType) -> Expr | None:
    """When a value is not what it becomes as an integer, fractions apart; None if it always is."""
    given = scalar_type(value)
    if given == BOOL or given.is_complex:
        return None
    if given.is_float:
        return _outside(apply("convert", value, target=FLOAT32) if given in STORAGE_FLOATS else value, kind)
    (low, high), (least, most) = given.limits, kind.limits
    if least <= low and high <= most:
        return None
    found = apply("convert", value, target=kind)
    test = apply("not_equal", apply("convert", found, target=given), value)
    if given.kind == "signed" and kind.kind == "unsigned":
        return apply("logical_or", apply("less", value, _zero(value)), test)
    if given.kind == "unsigned" and kind.kind == "signed":
        return apply("logical_or", apply("less", found, _zero(found)), test)
    return test


def _outside(value: Expr, kind: DType) -> Expr:
    """When a float, truncated, is beyond an integer type, or nan; its limits are powers of two or zero."""
    dtype = scalar_type(value)
    low, high = kind.limits
    least, below = (low - 1, "greater") if abs(low) < 1 << dtype.mantissa else (low, "greater_equal")
    above = apply("less", value, const(float(high + 1), dtype))
    return apply("logical_not", apply("logical_and", apply(below, value, const(float(least), dtype)), above))


def _of_sum(result: Apply, left: Expr, right: Expr) -> Expr:
    if result.type.kind == "unsigned":
        return apply("less", result, left)
    signs = apply("bitwise_and", apply("bitwise_xor", left, result), apply("bitwise_xor", right, result))
    return apply("less", signs, _zero(signs))


def _of_difference(result: Apply, left: Expr, right: Expr) -> Expr:
    if result.type.kind == "unsigned":
        return apply("less", left, right)
    signs = apply("bitwise_and", apply("bitwise_xor", left, right), apply("bitwise_xor", left, result))
    return apply("less", signs, _zero(signs))


def _of_product(result: Apply, left: Expr, right: Expr) -> Expr | None:
    kind = result.type
    if kind.bits < 64:
        wide = INT64 if kind.kind == "signed" else UINT64
        return _lost(apply("multiply", *(apply("convert", each, target=wide) for each in (left, right))), kind)
    high = apply("multiply_high", left, right)
    signs = apply("right_shift", result, const(63, kind)) if kind.kind == "signed" else _zero(result)
    return apply("not_equal", high, signs)


def _of_negation(result: Apply, value: Expr, _: Expr) -> Expr:
    if result.type.kind == "unsigned":
        return apply("not_equal", value, _zero(value))
    return apply("equal", value, _least(value))


def _of_size(result: Apply, value: Expr, _: Expr) -> Expr | None:
    return apply("equal", value, _least(value)) if result.type.kind == "signed" else None


def _of_quotient(result: Apply, left: Expr, right: Expr) -> Expr | None:
    if result.type.kind == "unsigned":
        return None
    return apply("logical_and", apply("equal", left, _least(left)), apply("equal", right, const(-1, result.type)))


def _of_shift(result: Apply, value: Expr, places: Expr) -> Expr:
    return apply("not_equal", apply("right_shift", result, places), value)


def _of_power(result: Apply, base: Expr, exponent: Expr) -> Expr:
    """By the power in float64: of all powers of integers only the limits themselves are within its error of them."""
    low, high = result.type.limits
    value = apply("pow", *(apply("convert", each, target=FLOAT64) for each in (base, exponent)))
    outside = apply("greater_equal", value, const(float(high + 1), FLOAT64))
    return apply("logical_or", outside, apply("less", value, const(float(low), FLOAT64)))


def _of_divisor(result: Apply, _: Expr, __: Expr) -> Expr | None:
    return apply("less", result, _zero(result)) if result.type.kind == "signed" else None


def _of_multiple(result: Apply, left: Expr, right: Expr) -> Expr:
    """By the product of magnitudes that it is."""
    kind = result.type
    part = apply("quotient", _size(left), _size(apply("gcd", left, right)))
    product = apply("multiply", part, _size(right))
    assert isinstance(product, Apply), "its operands are no constants"
    lost = _of_product(product, part, _size(right))
    assert lost is not None, "a product may be too large"
    return apply("logical_or", lost, apply("greater", product, const(kind.limits[1], scalar_type(product))))


def _size(value: Expr) -> Expr:
    """The magnitude as an unsigned number."""
    kind = scalar_type(value)
    if kind.kind == "unsigned":
        return value
    return apply("convert", apply("absolute", value), target=unsigned_of(kind.bits))


def _of_choices(result: Apply, count: Expr, chosen: Expr) -> Expr:
    """By the largest integer, at which they stop, unless that is what there are: to choose 1 of it, or all but 1."""
    most = const(result.type.limits[1], result.type)
    one, rest = (apply("equal", each, const(1, result.type)) for each in (chosen, apply("subtract", count, chosen)))
    exact = apply("logical_and", apply("equal", count, most), apply("logical_or", one, rest))
    return apply("logical_and", apply("equal", result, most), apply("logical_not", exact))


RULES: dict[str, Callable[[Apply, Expr, Expr], Expr | None]] = {
    "add": _of_sum, "subtract": _of_difference, "multiply": _of_product, "square": _of_product,
    "negative": _of_negation, "absolute": _of_size, "quotient": _of_quotient, "floor_divide": _of_quotient,
    "left_shift": _of_shift, "pow": _of_power, "gcd": _of_divisor, "lcm": _of_multiple, "comb": _of_choices,
}  # fmt: skip
