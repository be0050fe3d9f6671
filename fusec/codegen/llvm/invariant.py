"""Vectors of integers divided by one number, a literal or an argument: by a product with its reciprocal.

Granlund and Montgomery, Division by Invariant Integers using Multiplication (1994): for dividends below 2**N and a
divisor d, with l = ceil(log2 d), the factor floor(2**N (2**l - d) / d) + 1, which is 2**N less than a reciprocal of
N + 1 bits, gives the exact quotient. Signed dividends have magnitudes up to 2**(N-1), for which N bits are enough.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from fusec.base.dtypes import UINT16, UINT32, UINT64, DType
from fusec.codegen.llvm.high_products import multiply_high
from fusec.codegen.llvm.values import FALSE, TRUE, Builder, Value, bit_width, integer

_DTYPES = {16: UINT16, 32: UINT32, 64: UINT64}
_ARGUMENT = re.compile(r"%a\d+")  # as `KernelSlots` names them


class Reciprocal(NamedTuple):
    """What the quotient by a divisor is made of: uniform unsigned numbers.

    short: that it serves magnitudes up to 2**(N-1) only. size: the divisor's magnitude, 1 in place of 0. sign: all bits
    are those of the divisor's sign. is_zero: of the divisor.
    """

    factor: Value
    log: Value
    size: Value
    sign: Value
    is_zero: Value
    short: bool


def reciprocal_of(b: Builder, value: Value, divisor: Value, dtype: DType) -> Reciprocal | None:
    """The reciprocal of a divisor that all turns share, or None.

    Of other literals LLVM takes care: it knows the instructions for them, but for 64 bits.
    """
    if not value.varying or divisor.varying:
        return None
    literal, short = divisor.literal, dtype.kind == "signed" or dtype.bits < 16
    if literal is None:
        if not _ARGUMENT.fullmatch(divisor.text):
            return None
        return _at_top(b, ("reciprocal", divisor, dtype), lambda: _of_argument(b, divisor, dtype, short))
    if dtype.bits < 64 or literal == 0:
        return None
    return _of_literal(literal, divisor.type, dtype, short)


def quotient_by(b: Builder, size: Value, by: Reciprocal) -> Value:
    """The quotient of magnitudes by that of the divisor, also 1 in place of 0."""
    narrow, wide = size.type, by.factor.type
    size = b.cast("zext", size, wide)
    high = multiply_high(b, [size, by.factor], _DTYPES[bit_width(wide)])
    one = integer(1, wide)
    less = b.binary("sub", by.log, one) if by.log.literal is None else integer(max(by.log.literal - 1, 0), wide)
    if by.short:
        found = b.binary("lshr", high, _at_least_0(b, less))
        is_one = b.compare("icmp eq", by.size, integer(1, narrow))
        if by.size.literal is not None:
            is_one = TRUE if by.size.literal == 1 else FALSE
        return b.cast_integer(b.select(is_one, size, found), narrow)
    rest = b.binary("lshr", b.binary("sub", size, high), b.intrinsic("umin", by.log, one))
    return b.binary("lshr", b.binary("add", high, rest), _at_least_0(b, less))


def _at_least_0(b: Builder, value: Value) -> Value:
    return value if value.literal is not None else b.intrinsic("smax", value, integer(0, value.type))


def _at_top(b: Builder, key: tuple[object, ...], make: Callable[[], Reciprocal]) -> Reciprocal:
    """What is made of arguments, once for all turns."""
    if key not in b.invariants:
        lines, b.lines = b.lines, b.top
        b.invariants[key] = make()
        b.lines = lines
    found: Reciprocal = b.invariants[key]
    return found


def _of_literal(literal: int, llvm: str, dtype: DType, short: bool) -> Reciprocal:
    is_negative = dtype.kind == "signed" and literal < 0
    size = -literal if is_negative else literal % (1 << dtype.bits)
    log = (size - 1).bit_length()
    factor = (1 << dtype.bits) * ((1 << log) - size) // size + 1
    if short:
        factor = (1 << dtype.bits - 1 + log) // size + 1
    numbers = [integer(each, llvm) for each in (factor, log, size, -1 if is_negative else 0)]
    return Reciprocal(numbers[0], numbers[1], numbers[2], numbers[3], FALSE, short)


def _of_argument(b: Builder, divisor: Value, dtype: DType, short: bool) -> Reciprocal:
    narrow, bits = divisor.type, max(dtype.bits, 16)
    wide, signed = f"i{bits}", dtype.kind == "signed"
    is_zero = b.compare("icmp eq", divisor, integer(0, narrow))
    sign = b.binary("ashr", divisor, integer(dtype.bits - 1, narrow)) if signed else integer(0, narrow)
    size = b.intrinsic("abs", divisor, extra="i1 false") if signed else divisor
    size = b.select(is_zero, integer(1, narrow), size)
    whole = b.cast("zext", size, "i64")
    less = b.binary("sub", whole, integer(1))
    log = b.binary("sub", integer(64), b.intrinsic("ctlz", less, extra="i1 false"))
    factor = _quotient_128(b, whole, less) if bits == 64 else _quotient_of_shifted(b, whole, log, bits)
    factor = b.cast_integer(factor, wide)
    if short:
        factor = b.binary("add", b.binary("lshr", factor, integer(1, wide)), integer(1 << bits - 1, wide))
    factor = b.binary("add", factor, integer(1, wide))
    return Reciprocal(factor, b.cast_integer(log, wide), size, sign, is_zero, short)


def _quotient_of_shifted(b: Builder, size: Value, log: Value, bits: int) -> Value:
    """2**bits (2**log - size) / size, of numbers of at most 32 bits."""
    above = b.binary("sub", b.binary("shl", integer(1), log), size)
    return b.binary("udiv", b.binary("shl", above, integer(bits)), size)


def _quotient_128(b: Builder, size: Value, less: Value) -> Value:
    """2**64 (2**log - size) / size: a long division by two digits of 32 bits, of the divisor moved up to bit 63.

    Knuth, The Art of Computer Programming, volume 2, 4.3.1, algorithm D.
    """
    moved = b.binary("shl", size, b.intrinsic("ctlz", size, extra="i1 false"))
    is_power = b.compare("icmp eq", b.binary("and", size, less), integer(0))
    above = b.select(is_power, integer(0), b.binary("sub", integer(0), moved))
    first, above = _digit(b, above, moved)
    second, _ = _digit(b, above, moved)
    return b.binary("or", b.binary("shl", first, integer(32)), second)


def _digit(b: Builder, above: Value, divisor: Value) -> tuple[Value, Value]:
    """The next digit of `above` times 2**32 by the divisor, and the rest: the guess is at most two too great."""
    half = integer(32)
    upper, lower = b.binary("lshr", divisor, half), b.binary("and", divisor, integer((1 << 32) - 1))
    digit = b.binary("udiv", above, upper)
    rest = b.binary("sub", above, b.binary("mul", digit, upper))
    for _ in range(2):
        # A rest of 33 bits is not below any product of two digits.
        is_short = b.compare("icmp ult", rest, integer(1 << 32))
        over = b.compare("icmp ugt", b.binary("mul", digit, lower), b.binary("shl", rest, half))
        over = b.binary("and", is_short, over)
        digit = b.select(over, b.binary("sub", digit, integer(1)), digit)
        rest = b.select(over, b.binary("add", rest, upper), rest)
    left = b.binary("sub", b.binary("shl", above, half), b.binary("mul", digit, divisor))
    return digit, left
