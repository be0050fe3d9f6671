"""Floats times powers of two: elementary functions write them as two products, and AVX-512 computes them at once.

`fusec.math.formats.scale` multiplies by two powers, each of which is a float; the first product is exact, so that the
result is rounded once, as VSCALEF rounds it: the bits are the same, in 4 or 5 instructions in place of 9.
"""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32, FLOAT64, DType
from fusec.codegen.llvm.values import Builder, Value, bit_width, constant, integer, joined, registers
from fusec.ir.expr import Apply, Const, Expr, scalar_type
from fusec.ir.loops import Function
from fusec.ir.walk import is_elementary, map_expressions, rewriter, with_body
from fusec.math.formats import FORMATS, vanishing

SCALE = "scale"
"""The op (x, n) of x * 2^n, which only `scaled` makes: no table has it, and no pass sees it."""

_FIELDS = {FLOAT32: (23, 127), FLOAT64: (52, 1023)}  # bits of the mantissa, and the exponent field of 1
_REGISTER = 512


def scaled(functions: tuple[Function, ...], permutes: int) -> tuple[Function, ...]:
    """The functions with the op `SCALE` in place of products by two powers, where the target has AVX-512.

    Only elementary functions promise that the first product is exact. permutes: as `Builder` has it.
    """
    if permutes < _REGISTER:
        return functions
    rewrite = rewriter(lambda expr: _scaled(expr) or expr)
    return tuple(
        with_body(each, map_expressions(each.body, rewrite)) if is_elementary(each) else each for each in functions
    )


def _scaled(expr: Expr) -> Expr | None:
    match expr:
        case Apply("multiply", (Apply("multiply", (value, first)), second)) if scalar_type(expr) in _FIELDS:
            half, rest = _exponent(first), _exponent(second)
            match rest:
                case Apply("subtract", (whole, taken)) if taken is half:
                    return Apply(SCALE, (value, whole), scalar_type(expr))
    return None


def _exponent(power: Expr) -> Expr | None:
    """The n of 2^n, made by its bits."""
    mantissa, one = _FIELDS[scalar_type(power)]
    match power:
        case Apply("bitcast", (Apply("left_shift", (Apply("add", (n, Const(bits=bias))), Const(bits=count))),)):
            return n if (bias, count) == (one, mantissa) else None
    return None


def scale(b: Builder, args: list[Value], dtype: DType) -> Value:
    """X * 2^n for an x near 1."""
    x, n = args
    if x.varying:
        n = b.spread(n)
        return _by_registers(b, _present(b, x, n, dtype), b.cast("sitofp", n, x.type), _REGISTER // dtype.bits)
    half = b.binary("ashr", n, integer(1, n.type))
    for power in (half, b.binary("sub", n, half)):
        x = b.binary("fmul", x, _power(b, power, dtype))
    return x


def _present(b: Builder, x: Value, n: Value, dtype: DType) -> Value:
    """X, and 0 where the result is: results that underflow take a hundred times as long. nan stays nan."""
    least = vanishing(FORMATS[dtype]) + 1
    nothing = b.binary("fmul", x, constant(0, dtype)[0])
    return b.select(b.compare("icmp sgt", n, integer(least, n.type)), x, nothing)


def _by_registers(b: Builder, x: Value, n: Value, length: int) -> Value:
    vector, mask = f"<{length} x {x.type}>", f"i{length}"
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if x.type == 'float' else 'pd'}.{_REGISTER}"
    rest = f"{vector} zeroinitializer", f"{mask} -1", "i32 4"  # all lanes, rounded by the mode in force
    pairs = zip(registers(b, x.text, x.type, length), registers(b, n.text, n.type, length), strict=True)
    found = [b.call(vector, name, f"{vector} {left}", f"{vector} {right}", *rest) for left, right in pairs]
    return Value(x.type, joined(b, found, x.type, length), varying=True)


def _power(b: Builder, n: Value, dtype: DType) -> Value:
    """2^n for an n in the range of normal exponents."""
    mantissa, one = _FIELDS[dtype]
    assert bit_width(n.type) == dtype.bits, "exponents are as wide as their floats"
    field = b.binary("add", n, integer(one, n.type))
    bits = b.binary("shl", field, integer(mantissa, n.type))
    return b.cast("bitcast", bits, "float" if dtype == FLOAT32 else "double")
