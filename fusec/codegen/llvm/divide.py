"""Integer division made total, and fast on vectors: through floats wherever their quotient is exact.

A vector unit has no integer division. By a literal or an argument `invariant` multiplies. By others the float quotient
of integers below 2**p, truncated, is exact when the float has more than p significant bits: a quotient that is no
integer lies at least 1/divisor from the next one, and rounding moves it by less.
"""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.codegen.llvm.invariant import Reciprocal, quotient_by, reciprocal_of
from fusec.codegen.llvm.values import Builder, Value, integer

_EXACT_IN_DOUBLE = 1 << 52


def divide(b: Builder, args: list[Value], dtype: DType) -> Value:
    """C's quotient, toward zero; x / 0 is 0 and INT_MIN / -1 wraps."""
    quotient, _ = _positions(b, args, dtype) or (None, None)
    return quotient or _total(b, args, dtype)


def modulo(b: Builder, args: list[Value], dtype: DType) -> Value:
    """C's remainder, with the sign of the dividend; x % 0 is 0."""
    value, divisor = args
    if not value.varying and not divisor.varying:
        safe, by_zero = _guarded(b, value, divisor, dtype)
        rest = b.binary("srem" if dtype.kind == "signed" else "urem", value, safe)
        return b.select(by_zero, integer(0, value.type), rest)
    return quotient_and_rest(b, args, dtype)[1]


def quotient_and_rest(b: Builder, args: list[Value], dtype: DType) -> tuple[Value, Value]:
    """C's quotient and remainder, of one division."""
    found = _positions(b, args, dtype)
    if found is not None:
        return found
    value, divisor = args
    quotient = _total(b, args, dtype)
    rest = b.binary("sub", value, b.binary("mul", quotient, divisor))
    if not divisor.literal:
        zero = integer(0, value.type)
        rest = b.select(b.compare("icmp eq", divisor, zero), zero, rest)
    return quotient, rest


def _guarded(b: Builder, value: Value, divisor: Value, dtype: DType) -> tuple[Value, Value]:
    """A divisor that no dividend fails with, and whether the given one was zero."""
    literal = divisor.literal
    if literal not in (None, 0, -1):
        return divisor, Value("i1", "false")
    llvm = value.type
    by_zero = b.compare("icmp eq", divisor, integer(0, llvm))
    bad = by_zero
    if dtype.kind == "signed":  # INT_MIN / 1 is what INT_MIN / -1 wraps to
        lowest = b.compare("icmp eq", value, integer(1 << dtype.bits - 1, llvm))
        bad = b.binary("or", bad, b.binary("and", lowest, b.compare("icmp eq", divisor, integer(-1, llvm))))
    return b.select(bad, integer(1, llvm), divisor), by_zero


def _total(b: Builder, args: list[Value], dtype: DType) -> Value:
    value, divisor = args
    signed = dtype.kind == "signed"
    if not _is_cheap(divisor, dtype):
        by = reciprocal_of(b, value, divisor, dtype)
        if by is not None:
            return _by_reciprocal(b, value, by, signed)
    safe, by_zero = _guarded(b, value, divisor, dtype)
    if not (value.varying or divisor.varying) or _is_cheap(divisor, dtype):
        quotient = b.binary("sdiv" if signed else "udiv", value, safe)
    elif dtype.bits == 64:
        quotient = _divide_64(b, value, safe, signed)
    else:
        quotient = _through_float(b, value, safe, signed, "float" if dtype.bits <= 16 else "double")
    return b.select(by_zero, integer(0, value.type), quotient)


def _by_reciprocal(b: Builder, value: Value, by: Reciprocal, signed: bool) -> Value:
    """Of magnitudes, with the sign of the quotient where it is -1 as all bits: (x ^ sign) - sign is x or -x."""
    if not signed:
        return b.select(by.is_zero, integer(0, value.type), quotient_by(b, value, by))
    sign = b.binary("ashr", value, integer(int(value.type[1:]) - 1, value.type))
    found = quotient_by(b, b.binary("sub", b.binary("xor", value, sign), sign), by)
    sign = b.binary("xor", sign, by.sign)
    found = b.binary("sub", b.binary("xor", found, sign), sign)
    return b.select(by.is_zero, integer(0, value.type), found)


def _is_cheap(divisor: Value, dtype: DType) -> bool:
    """Division by a literal becomes shifts, or below 64 bits a multiplication."""
    literal = divisor.literal
    return bool(literal) and (dtype.bits < 64 or abs(literal or 0).bit_count() == 1)


def _through_float(b: Builder, value: Value, divisor: Value, signed: bool, llvm: str) -> Value:
    into, out = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    quotient = b.binary("fdiv", b.cast(into, value, llvm), b.cast(into, divisor, llvm))
    if int(value.type[1:]) >= 32:
        return b.cast(out, quotient, value.type)
    return b.cast("trunc", b.cast("fptosi", quotient, "i32"), value.type)  # every 16-bit quotient fits int32


def _divide_64(b: Builder, value: Value, divisor: Value, signed: bool) -> Value:
    """Through float64 while all lanes fit its significand, else lane by lane."""
    value, divisor = b.spread(value), b.spread(divisor)
    fits = b.binary("and", _is_small(b, value, signed), _is_small(b, divisor, signed))
    outside = b.any_lane(b.invert(fits))
    fast, slow, done = b.label("fast"), b.label("slow"), b.label("done")
    b.fork(outside, slow, fast)
    b.place(fast)
    quick = _through_float(b, value, divisor, signed=True, llvm="double")
    b.jump(done)
    b.place(slow)
    full = b.binary("sdiv" if signed else "udiv", value, divisor)
    b.jump(done)
    b.place(done)
    kind = b.vector_type("i64")
    return Value("i64", b.let(f"phi {kind} [ {quick.text}, %{fast} ], [ {full.text}, %{slow} ]"), varying=True)


def _is_small(b: Builder, value: Value, signed: bool) -> Value:
    """Lanes below 2**52 in magnitude."""
    if signed:
        value = b.binary("add", value, integer(_EXACT_IN_DOUBLE))
    return b.compare("icmp ult", value, integer(2 * _EXACT_IN_DOUBLE if signed else _EXACT_IN_DOUBLE))


# --- positions -------------------------------------------------------------------------------------------------

_SHIFT = 18  # lanes < 2**8: numbers below 2**9 by divisors up to 2**8 are exact through a reciprocal of 18 bits


def _positions(b: Builder, args: list[Value], dtype: DType) -> tuple[Value, Value] | None:
    """Quotient and remainder of consecutive positions by a uniform divisor, or None: one scalar division for all lanes.

    With `rest` the remainder of the first lane, lane l carries (rest + l) / divisor. Where the divisor is at least
    the number of lanes, that is 1 from some lane on; the same lane is found with the number of lanes as divisor.
    """
    value, divisor = args
    linear = value.linear
    if linear is None or linear.hint or divisor.varying or linear.step != 1 or linear.low is None or linear.low < 0:
        return None
    assert b.lanes <= 256, "the reciprocal is exact for at most 256 lanes"
    by_zero = b.compare("icmp eq", divisor, integer(0, value.type))
    size = b.intrinsic("abs", divisor, extra="i1 false") if dtype.kind == "signed" else divisor
    size = b.select(by_zero, integer(1, value.type), size)
    base = Value(value.type, linear.base)
    first, rest = b.binary("udiv", base, size), b.binary("urem", base, size)
    short = "i32" if linear.within(0, (1 << 31) - 1 - b.lanes) else value.type
    carry = _carries(b, rest, size)
    quotient = b.cast_integer(b.binary("add", b.cast_integer(first, short), b.cast_integer(carry, short)), value.type)
    lanes = Value(short, b.iota(short), varying=True)
    taken = b.binary("mul", b.cast_integer(carry, short), b.cast_integer(size, short))
    rest = b.cast_integer(b.binary("sub", b.binary("add", b.cast_integer(rest, short), lanes), taken), value.type)
    if dtype.kind == "signed" and (divisor.literal is None or divisor.literal < 0):
        negated = b.binary("sub", integer(0, value.type), quotient)
        quotient = b.select(b.compare("icmp slt", divisor, integer(0, value.type)), negated, quotient)
    if divisor.literal:
        return quotient, rest
    zero = integer(0, value.type)
    return b.select(by_zero, zero, quotient), b.select(by_zero, zero, rest)


def _carries(b: Builder, rest: Value, size: Value) -> Value:
    """(rest + l) / size for every lane l, as int32; rest < size."""
    lanes = integer(b.lanes, rest.type)
    is_large = b.compare("icmp uge", size, lanes)
    ahead = b.intrinsic("umin", b.binary("sub", size, rest), lanes)
    rest = b.cast_integer(b.select(is_large, b.binary("sub", lanes, ahead), rest), "i32")
    size = b.cast_integer(b.select(is_large, lanes, size), "i32")
    reciprocal = b.binary("add", b.binary("udiv", integer(1 << _SHIFT, "i32"), size), integer(1, "i32"))
    total = b.binary("add", rest, Value("i32", b.iota("i32"), varying=True))
    return b.binary("lshr", b.binary("mul", total, reciprocal), integer(_SHIFT, "i32"))
