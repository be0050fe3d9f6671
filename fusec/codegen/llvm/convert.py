"""Conversions between dtypes as LLVM instructions: each rounds once, saturates where the op table says so.

Narrow floats are held as their bits. What float32 cannot hold reaches them through float32 rounded to odd, which
keeps the nearest narrow float (Boldo and Melquiond, IEEE Transactions on Computers 57, 2008).
"""

from __future__ import annotations

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.records import dataclass, replace
from fusec.codegen.llvm.values import Builder, Linear, Operand, Value, integer, register_type, zero_of


def convert(b: Builder, value: Operand, source: DType, target: DType) -> Operand:
    """`value` of dtype `source` as dtype `target`, complex types included."""
    if source == target:
        return value
    if target == dtypes.BOOL and source.is_complex:
        parts = [convert_real(b, part, dtypes.real_type(source), dtypes.BOOL) for part in value]
        return (b.binary("or", parts[0], parts[1]),)
    if target.is_complex:
        part = dtypes.real_type(target)
        if source.is_complex:
            return tuple(convert_real(b, item, dtypes.real_type(source), part) for item in value)
        return (convert_real(b, value[0], source, part), Value(register_type(part), "0.0"))
    return (convert_real(b, value[0], dtypes.real_type(source), target),)


def convert_real(b: Builder, value: Value, source: DType, target: DType) -> Value:
    """A real value (or bool) as another real dtype."""
    if source == target:
        return value
    if target == dtypes.BOOL:
        return _to_bool(b, value, source)
    if source == dtypes.BOOL:
        return _from_bool(b, value, target)
    if source.is_integer:
        return _from_integer(b, value, source, target)
    if source in dtypes.STORAGE_FLOATS:
        return convert_real(b, widen(b, value, source), dtypes.FLOAT32, target)
    if target.is_integer:
        return _float_to_integer(b, value, target)
    if target in dtypes.STORAGE_FLOATS:
        return narrow(b, _to_odd(b, value) if source == dtypes.FLOAT64 else value, target)
    return b.cast("fpext" if target == dtypes.FLOAT64 else "fptrunc", value, register_type(target))


def _to_bool(b: Builder, value: Value, source: DType) -> Value:
    if source in dtypes.STORAGE_FLOATS:  # anything but the two zeros; e4m3fn has no infinity, but the bits decide alike
        magnitude = b.binary("shl", value, integer(1, value.type))
        return b.compare("icmp ne", magnitude, integer(0, value.type))
    kind = "fcmp une" if source.is_float else "icmp ne"
    return b.compare(kind, value, Value(value.type, zero_of(value.type)))


def _from_bool(b: Builder, value: Value, target: DType) -> Value:
    if target.is_integer:
        return b.cast("zext", value, register_type(target))
    if target in dtypes.STORAGE_FLOATS:
        one = {dtypes.FLOAT16: 0x3C00, dtypes.BFLOAT16: 0x3F80, dtypes.FLOAT8_E4M3FN: 0x38, dtypes.FLOAT8_E5M2: 0x3C}[
            target
        ]
        llvm = register_type(target)
        return b.select(value, integer(one, llvm), integer(0, llvm))
    return b.cast("uitofp", value, register_type(target))


# --- from integers ---------------------------------------------------------------------------------------------


def _from_integer(b: Builder, value: Value, source: DType, target: DType) -> Value:
    if target.is_integer:
        return resize(b, value, source, register_type(target), target.kind == "signed")
    if target in dtypes.STORAGE_FLOATS:
        if source.bits < 32:
            return narrow(b, b.cast(_int_to_float(source), value, "float"), target)
        if source.bits == 32:
            return narrow(b, _to_odd(b, b.cast(_int_to_float(source), value, "double")), target)
        return narrow(b, _long_to_odd(b, value, source), target)
    return _integer_to_float(b, value, source, target)


def _int_to_float(source: DType) -> str:
    return "sitofp" if source.kind == "signed" else "uitofp"


def _integer_to_float(b: Builder, value: Value, source: DType, target: DType) -> Value:
    if value.varying and value.type == "i64" and value.linear and not value.linear.hint:
        # A position known to fit 32 bits converts at twice the width and without 64-bit vectors.
        signed = value.linear.within(-(1 << 31), (1 << 31) - 1)
        if signed or value.linear.within(0, (1 << 32) - 1):
            short = resize(b, value, source, "i32", signed=signed)
            return b.cast("sitofp" if signed else "uitofp", short, register_type(target))
    return b.cast(_int_to_float(source), value, register_type(target))


def resize(b: Builder, value: Value, source: DType, llvm: str, signed: bool) -> Value:
    """An integer at another width, wrapping; positions stay symbolic where that is exact. signed: of the result."""
    bits, wanted = int(value.type[1:]), int(llvm[1:])
    linear = value.linear if value.varying else None
    if linear is not None:
        low, high = (-(1 << wanted - 1), (1 << wanted - 1) - 1) if signed else (0, (1 << wanted) - 1)
        kept = replace(linear, low=None, high=None) if not linear.within(low, high) else linear
    if bits == wanted:
        return value if linear is None else replace(value, linear=kept)
    op = "trunc" if wanted < bits else ("sext" if source.kind == "signed" else "zext")
    if linear is None:
        return b.cast(op, value, llvm)
    base = b.let(f"{op} {value.type} {linear.base} to {llvm}")
    if op == "trunc" or (kept.low is not None and not linear.hint and (op == "sext" or kept.low >= 0)):
        return Value(llvm, "", varying=True, linear=replace(kept, base=base, hint=False))
    exact = b.cast(op, value, llvm)
    if op == "zext":
        return exact
    # Lanes past the point where the narrow type wraps are no positions of an array: the address hint leaves them out.
    return replace(exact, linear=Linear(base, linear.step, hint=True))


def _long_to_odd(b: Builder, value: Value, source: DType) -> Value:
    """A 64-bit integer as float32 rounded to odd."""
    llvm = value.type
    negative = b.compare("icmp slt", value, integer(0, llvm)) if source.kind == "signed" else None
    size = value if negative is None else b.intrinsic("abs", value, extra="i1 false")
    # From 2**53 on, the lower 11 bits fold into the last of those above, which float64 holds.
    large = b.compare("icmp ugt", size, integer((1 << 53) - 1, llvm))
    lost = b.compare("icmp ne", b.binary("and", size, integer((1 << 11) - 1, llvm)), integer(0, llvm))
    folded = b.binary("or", b.binary("lshr", size, integer(11, llvm)), b.cast("zext", lost, llvm))
    odd_large = b.binary("fmul", b.cast("uitofp", folded, "double"), Value("double", "2048.0"))
    exact_small = b.cast("uitofp", b.select(large, integer(0, llvm), size), "double")
    result = _to_odd(b, b.select(large, odd_large, exact_small))
    if negative is None:
        return result
    return b.select(negative, Value("float", b.let(f"fneg {b.typed(result)}"), result.varying), result)


# --- from floats -----------------------------------------------------------------------------------------------


def _float_to_integer(b: Builder, value: Value, target: DType) -> Value:
    """Truncate and saturate by comparisons: the saturating intrinsics of LLVM 22 come apart into scalars on x86.

    Both limits (the upper one excluded) are powers of two or zero, which every float type holds.
    """
    signed = target.kind == "signed"
    low, beyond = (-(1 << target.bits - 1), 1 << target.bits - 1) if signed else (0, 1 << target.bits)
    bottom, top, zero = (Value(value.type, f"{limit}.0") for limit in (low, beyond, 0))
    inside = b.select(b.compare("fcmp olt", value, top), value, zero)  # nan is not below anything: 0
    inside = b.select(b.compare("fcmp ogt", inside, bottom), inside, bottom)
    llvm = register_type(target)
    if target.bits < 32:
        whole = b.cast("trunc", b.cast("fptosi", inside, "i32"), llvm)
    else:
        whole = b.cast("fptosi" if signed else "fptoui", inside, llvm)
    return b.select(b.compare("fcmp oge", value, top), integer(beyond - 1, llvm), whole)


def _to_odd(b: Builder, value: Value) -> Value:
    """A float64 rounded to odd in float32; beyond the largest float32 that is the largest one."""
    nearest = b.cast("fptrunc", value, "float")
    back = b.cast("fpext", nearest, "double")
    inexact = b.compare("fcmp one", back, value)
    away = b.compare("fcmp ogt", b.intrinsic("fabs", back), b.intrinsic("fabs", value))
    bits = b.cast("bitcast", nearest, "i32")
    truncated = b.binary("sub", bits, b.cast("zext", away, "i32"))
    return b.cast("bitcast", b.binary("or", truncated, b.cast("zext", inexact, "i32")), "float")


# --- narrow floats ---------------------------------------------------------------------------------------------


def widen(b: Builder, value: Value, source: DType) -> Value:
    """The bits of a narrow float as float32, exactly."""
    if source == dtypes.FLOAT16:
        return (
            b.cast("fpext", b.cast("bitcast", value, "half"), "float")
            if b.options.half_casts
            else _widen_half(b, value)
        )
    if source == dtypes.BFLOAT16:
        return b.cast("bitcast", b.binary("shl", b.cast("zext", value, "i32"), integer(16, "i32")), "float")
    if source == dtypes.FLOAT8_E5M2:  # the upper byte of a float16
        return widen(b, b.binary("shl", b.cast("zext", value, "i16"), integer(8, "i16")), dtypes.FLOAT16)
    assert source == dtypes.FLOAT8_E4M3FN, f"no narrow float {source}"
    return _widen_e4m3(b, value)


def _widen_half(b: Builder, value: Value) -> Value:
    """By integers; the difference of two normal floats makes a normal float of a subnormal, exactly."""
    bits = b.cast("zext", value, "i32")
    magnitude = b.binary("shl", b.binary("and", bits, integer(0x7FFF, "i32")), integer(13, "i32"))
    is_last = b.compare("icmp uge", magnitude, integer(31 << 23, "i32"))  # inf and nan: exponent 31 becomes 255
    rebias = b.select(is_last, integer(255 - 31 << 23, "i32"), integer(127 - 15 << 23, "i32"))
    least_normal = integer(127 - 14 << 23, "i32")
    raised = b.cast("bitcast", b.binary("add", magnitude, least_normal), "float")
    small = b.cast("bitcast", b.binary("fsub", raised, b.cast("bitcast", least_normal, "float")), "i32")
    is_small = b.compare("icmp ult", magnitude, integer(1 << 23, "i32"))
    size = b.select(is_small, small, b.binary("add", magnitude, rebias))
    sign = b.binary("shl", b.binary("and", bits, integer(0x8000, "i32")), integer(16, "i32"))
    return b.cast("bitcast", b.binary("or", size, sign), "float")


def _widen_e4m3(b: Builder, value: Value) -> Value:
    """Shifted into a float16 the exponent is 8 too small, subnormals included; 0x7F is nan."""
    wide = b.cast("sext", value, "i16")
    magnitude = b.binary("shl", b.binary("and", wide, integer(0x7F, "i16")), integer(7, "i16"))
    bits = b.binary("or", magnitude, b.binary("and", wide, integer(0x8000, "i16")))
    scaled = b.binary("fmul", widen(b, bits, dtypes.FLOAT16), Value("float", "256.0"))
    is_nan = b.compare("icmp eq", magnitude, integer(0x7F << 7, "i16"))
    sign = b.binary("and", b.cast("sext", value, "i32"), integer(1 << 31, "i32"))
    nan = b.cast("bitcast", b.binary("or", sign, integer(0x7FC00000, "i32")), "float")
    return b.select(is_nan, nan, scaled)


def narrow(b: Builder, value: Value, target: DType) -> Value:
    """A float32 rounded to nearest even as the bits of a narrow float."""
    if target == dtypes.FLOAT16 and b.options.half_casts:
        return b.cast("bitcast", b.cast("fptrunc", value, "half"), "i16")
    if target == dtypes.BFLOAT16:
        return _narrow_bfloat16(b, value)
    return _narrow_by_integers(b, value, target)


def _narrow_bfloat16(b: Builder, value: Value) -> Value:
    """Integer rounding: the instruction some processors have flushes subnormals."""
    bits = b.cast("bitcast", value, "i32")
    even = b.binary("and", b.binary("lshr", bits, integer(16, "i32")), integer(1, "i32"))
    rounded = b.binary("add", bits, b.binary("add", even, integer(0x7FFF, "i32")))
    upper = b.cast("trunc", b.binary("lshr", rounded, integer(16, "i32")), "i16")
    return b.select(b.compare("fcmp uno", value, value), integer(0x7FC0, "i16"), upper)


@dataclass(frozen=True, slots=True)
class _Codes:
    """A narrow float without its sign: stored digits, exponent bias; codes of the largest, of larger ones, of nan."""

    digits: int
    bias: int
    largest: int
    beyond: int
    nan: int


_CODES = {
    dtypes.FLOAT16: _Codes(10, 15, 0x7BFF, 0x7C00, 0x7E00),
    dtypes.FLOAT8_E4M3FN: _Codes(3, 7, 0x7E, 0x7F, 0x7F),
    dtypes.FLOAT8_E5M2: _Codes(2, 15, 0x7B, 0x7C, 0x7E),
}


def _narrow_by_integers(b: Builder, value: Value, target: DType) -> Value:
    """Integer rounding where the result is normal, a float addition that rounds where it is not."""
    codes, llvm = _CODES[target], register_type(target)
    kept, bias = codes.digits, codes.bias
    bits = b.cast("bitcast", value, "i32")
    magnitude = b.binary("and", bits, integer(0x7FFFFFFF, "i32"))
    even = b.binary("and", b.binary("lshr", magnitude, integer(23 - kept, "i32")), integer(1, "i32"))
    rounded = b.binary("add", magnitude, b.binary("add", even, integer((1 << 22 - kept) - 1, "i32")))
    normal = b.binary("sub", b.binary("lshr", rounded, integer(23 - kept, "i32")), integer(127 - bias << kept, "i32"))
    # Added to `anchor`, whose last place is the smallest subnormal, a smaller number rounds to a count of those.
    anchor = 127 + 24 - bias - kept << 23
    summed = b.binary("fadd", b.cast("bitcast", magnitude, "float"), b.cast("bitcast", integer(anchor, "i32"), "float"))
    small = b.binary("sub", b.cast("bitcast", summed, "i32"), integer(anchor, "i32"))
    is_small = b.compare("icmp ult", magnitude, integer(127 - bias + 1 << 23, "i32"))
    code = b.select(is_small, small, normal)
    is_beyond = b.compare("icmp ugt", code, integer(codes.largest, "i32"))
    code = b.select(is_beyond, integer(codes.beyond, "i32"), code)
    code = b.select(b.compare("fcmp uno", value, value), integer(codes.nan, "i32"), code)
    sign_bit = integer(1 << target.bits - 1, "i32")
    sign = b.binary("and", b.binary("lshr", bits, integer(32 - target.bits, "i32")), sign_bit)
    return b.cast("trunc", b.binary("or", code, sign), llvm)


# --- bits ------------------------------------------------------------------------------------------------------


def bitcast(b: Builder, value: Value, source: DType, target: DType) -> Value:
    """The same bits as another real dtype of the same width; a bool is a byte that is 0 or 1."""
    if source == target:
        return value
    if source == dtypes.BOOL:
        return b.cast("zext", value, "i8")
    if target == dtypes.BOOL:
        return b.compare("icmp ne", value, integer(0, value.type))
    return b.cast("bitcast", value, register_type(target))
