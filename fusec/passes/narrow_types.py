"""Narrow types: compute in a smaller type where the result is the same to the last bit.

C's rules make ``x * 2.0`` of a float32 x a float64 product and every sum of bytes an int32 sum; rounded or truncated
back at once, both equal the operation in the small type, of which a vector holds more.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL, COMPUTE_FLOATS, FLOAT32, FLOAT64, INT16, INT32, UINT32, DType
from fusec.base.ops import COMPARISONS
from fusec.ir.expr import Apply, Const, Expr, const, convert, scalar_type
from fusec.ir.loops import Program
from fusec.ir.walk import rewritten
from fusec.passes.exact import embeds
from fusec.passes.simplify import simplify_expression

# Rounding to 53 bits and then to 24 equals rounding once for these, as 53 >= 2 * 24 + 2 (S. A. Figueroa, "When is
# double rounding innocuous?", 1995). Subnormal float32 results: sums are exact, products are exact in float64, and a
# quotient differs from every midpoint by more than 2**-48 of itself.
_INNOCUOUS = frozenset({"add", "subtract", "multiply", "divide", "sqrt"})
_EXACT = frozenset({"negative", "absolute", "floor", "ceil", "trunc", "rint"})
_COMPARISONS = frozenset(COMPARISONS.values())
_LOW_BITS = frozenset(  # the lower bits of these depend on the lower bits of the operands alone
    {"add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"}
)


def narrow_types(program: Program) -> Program:
    """Replace operations on widened values by the same operations on the values themselves.

    Requires: a verified, simplified program.
    Ensures: the same bits (those of nan aside).
    """
    return rewritten(program, narrow_expression)


def narrow_expression(expr: Expr) -> Expr:
    """One node whose operands are narrowed."""
    match expr:
        case Apply("convert", (Apply() as inner,), target) if not target.is_complex:
            return _narrow_conversion(inner, target) or simplify_expression(expr)
        case Apply(op, (left, right)) if op in _COMPARISONS:
            return _narrow_comparison(op, left, right) or expr
        case Apply(op, (value,), kind) if op in _EXACT and kind == FLOAT64:
            small = _as_float32(value)
            return convert(Apply(op, (small,), FLOAT32), FLOAT64) if small is not None else expr
        case Apply("multiply", (left, right), kind) if kind.is_integer and kind.bits == 64:
            return _narrow_product(left, right, kind) or expr
        case Apply("where", (condition, then, orelse), kind) if kind == FLOAT64:
            return _narrow_choice(condition, then, orelse) or expr
        case _:
            return expr


def _narrow_conversion(inner: Apply, target: DType) -> Expr | None:
    """The conversion of an operation's result, as an operation on smaller operands."""
    if target == FLOAT32 and inner.type == FLOAT64 and inner.op in _INNOCUOUS:
        small = [_as_float32(arg) for arg in inner.args]
        found = tuple(arg for arg in small if arg is not None)
        return Apply(inner.op, found, FLOAT32) if len(found) == len(small) else None
    if target.is_integer and inner.type.is_integer and target.bits < inner.type.bits and inner.op in _LOW_BITS:
        return _as_integer(inner, target, {})
    return None


def _as_float32(value: Expr) -> Expr | None:
    """The float32 that equals a float64 value on every run, if there is one."""
    match value:
        case Const():
            small = const(value.value, FLOAT32)
            return small if const(small.value, FLOAT64) is value else None
        case Apply("convert", (inner,)):
            source = scalar_type(inner)
            return convert(inner, FLOAT32) if not source.is_complex and embeds(source, FLOAT32) else None
    return None


def _narrow_choice(condition: Expr, then: Expr, orelse: Expr) -> Expr | None:
    """A choice between widened values; two constants stay, for that gains nothing."""
    if isinstance(then, Const) and isinstance(orelse, Const):
        return None
    left, right = _as_float32(then), _as_float32(orelse)
    if left is None or right is None:
        return None
    return convert(Apply("where", (condition, left, right), FLOAT32), FLOAT64)


def _narrow_comparison(op: str, left: Expr, right: Expr) -> Expr | None:
    """Widening keeps order, so values of one source type compare as they are."""
    source = _widened_from(left) or _widened_from(right)
    if source is None:
        return None
    small_left, small_right = _before_widening(left, source), _before_widening(right, source)
    if small_left is None or small_right is None:
        return None
    return Apply(op, (small_left, small_right), BOOL)


def _widened_from(value: Expr) -> DType | None:
    match value:
        case Apply("convert", (inner,), target):
            source = scalar_type(inner)
            usable = source.is_integer or source in COMPUTE_FLOATS
            return source if usable and embeds(source, target) else None
    return None


def _before_widening(value: Expr, source: DType) -> Expr | None:
    """The value of type `source` that this one was widened from."""
    match value:
        case Const():
            small = const(_number(value), source)
            return small if const(_number(small), value.type) is value else None
        case Apply("convert", (inner,)) if scalar_type(inner) == source:
            return inner
    return None


def _number(value: Const) -> int | float:
    """A real constant as the Python number it is."""
    return int(value.value) if value.type.is_integer else float(value.value)


def _narrow_product(left: Expr, right: Expr, kind: DType) -> Expr | None:
    """A 64-bit product of 16-bit values fits 32 bits, whose product costs a vector a third.

    It also keeps from LLVM 22 the product of sign-extended int16 of which the x86 back end shifts the wrong bits in.
    """
    sources = _short_source(left), _short_source(right)
    if None in sources or (isinstance(left, Const) and isinstance(right, Const)):
        return None
    middle = INT32 if any(source is not None and source.kind == "signed" for source in sources) else UINT32
    small = tuple(
        const(_number(value), middle) if isinstance(value, Const) else convert(value.children[0], middle)
        for value in (left, right)
    )
    return convert(Apply("multiply", small, middle), kind)


def _short_source(value: Expr) -> DType | None:
    """The type of at most 16 bits that an integer value was widened from."""
    match value:
        case Const():
            return INT16 if -(1 << 15) <= _number(value) < 1 << 15 else None
        case Apply("convert", (inner,)):
            source = scalar_type(inner)
            return source if (source.is_integer and source.bits <= 16) or source == BOOL else None
    return None


def _as_integer(value: Expr, target: DType, known: dict[Expr, Expr | None]) -> Expr | None:
    """The lower bits of an integer value, computed in `target`, or None if part of it needs the wider type."""
    if value not in known:
        known[value] = _lower_bits(value, target, known)
    return known[value]


def _lower_bits(value: Expr, target: DType, known: dict[Expr, Expr | None]) -> Expr | None:
    match value:
        case Const():
            return const(int(value.value), target)
        case Apply("convert", (inner,)):
            source = scalar_type(inner)
            small = (source.is_integer and source.bits <= target.bits) or source == BOOL
            return convert(inner, target) if small else None
        case Apply(op, args) if op in _LOW_BITS:
            found = tuple(_as_integer(arg, target, known) for arg in args)
            small_args = tuple(arg for arg in found if arg is not None)
            return Apply(op, small_args, target) if len(small_args) == len(args) else None
        case Apply("where", (condition, then, orelse)):
            left, right = _as_integer(then, target, known), _as_integer(orelse, target, known)
            if left is None or right is None:
                return None
            return Apply("where", (condition, left, right), target)
        case _:
            return None
