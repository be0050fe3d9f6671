"""Upper halves of products of integers, on vectors without such an instruction."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.codegen.llvm.values import Builder, Value, integer


def multiply_high(b: Builder, args: list[Value], dtype: DType) -> Value:
    """The upper half of the product, of twice the width."""
    if dtype.bits == 64 and any(value.varying for value in args):
        return _multiply_high_halves(b, args, dtype)
    # LLVM 22 for x86 takes the upper half of a product of vectors of sign-extended int16 for a logical shift of the
    # 32-bit product, which has no copies of the sign; zero-extended int32 do not come to that.
    corrected = dtype.kind == "signed" and dtype.bits == 32 and any(value.varying for value in args)
    extend = "zext" if corrected or dtype.kind == "unsigned" else "sext"
    narrow, wide = f"i{dtype.bits}", f"i{2 * dtype.bits}"
    product = b.binary("mul", b.cast(extend, args[0], wide), b.cast(extend, args[1], wide))
    result = b.cast("trunc", b.binary("lshr", product, integer(dtype.bits, wide)), narrow)
    return _without_signs(b, result, args, dtype) if corrected else result


def _without_signs(b: Builder, result: Value, args: list[Value], dtype: DType) -> Value:
    """The signed upper half from the unsigned one.

    A negative operand reads as itself plus 2**bits, which adds the other operand to the upper half.
    """
    x, y = (b.spread(value) for value in args)
    for sign, size in ((x, y), (y, x)):
        copies = b.binary("ashr", sign, integer(dtype.bits - 1, f"i{dtype.bits}"))
        result = b.binary("sub", result, b.binary("and", copies, size))
    return result


def _multiply_high_halves(b: Builder, args: list[Value], dtype: DType) -> Value:
    """Schoolbook on 32-bit halves, since 128-bit vectors come apart into scalars; no partial sum exceeds 64 bits."""
    x, y = args  # the halves of a uniform one are found once
    half, low = integer(32), integer((1 << 32) - 1)
    x_low, x_high = b.binary("and", x, low), b.binary("lshr", x, half)
    y_low, y_high = b.binary("and", y, low), b.binary("lshr", y, half)
    carry = b.binary("lshr", b.binary("mul", x_low, y_low), half)
    middle = b.binary("add", b.binary("mul", x_high, y_low), carry)
    other = b.binary("add", b.binary("mul", x_low, y_high), b.binary("and", middle, low))
    upper = b.binary("add", b.binary("mul", x_high, y_high), b.binary("lshr", middle, half))
    result = b.binary("add", upper, b.binary("lshr", other, half))
    return _without_signs(b, result, [x, y], dtype) if dtype.kind == "signed" else result
