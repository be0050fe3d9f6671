"""Facts about dtypes and constants that several passes share: which dtypes embed, and which number a constant is."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.ir.expr import Const, Expr


def embeds(source: DType, target: DType) -> bool:
    """Whether every value of `source` is a value of `target`, so that converting there and back changes nothing."""
    if source == target:
        return True
    if source.is_complex or target.is_complex:
        return False
    if source.kind == "bool":
        return True
    if target.kind == "bool":
        return False
    if source.is_integer and target.is_integer:
        return integer_range_within(source, target)
    if source.is_integer:
        digits = source.bits - (source.kind == "signed")
        return digits <= target.mantissa + 1 and target.bits >= 32
    if target.is_integer:
        return False
    # float16 and bfloat16 embed in float32 but not in each other; the fp8 types are never targets.
    return source.bits < target.bits and target.bits >= 32


def integer_range_within(source: DType, target: DType) -> bool:
    """Whether an integer type's (or bool's) values all fit an integer type."""
    if source.kind == "bool":
        return True
    if source.kind == target.kind:
        return source.bits <= target.bits
    return source.kind == "unsigned" and source.bits < target.bits


def is_number(value: Expr, number: int) -> bool:
    """Whether the value is a real constant equal to a small integer; a zero must be +0."""
    if not isinstance(value, Const) or value.type.is_complex or value.type.kind == "bool":
        return False
    if value.type.is_integer:
        return value.bits == number % (1 << value.type.bits)
    if number == 0:
        return value.bits == 0
    return bool(value.value == value.type.numpy.type(number))


def is_minus_zero(value: Expr) -> bool:
    """Whether the value is the float constant -0."""
    return isinstance(value, Const) and value.type.is_float and value.bits == 1 << (value.type.bits - 1)


def power_of_two(value: Expr) -> int | None:
    """The exponent if the value is an integer constant that is a power of two (as an unsigned number)."""
    if isinstance(value, Const) and value.type.is_integer and value.bits.bit_count() == 1:
        return value.bits.bit_length() - 1
    return None
