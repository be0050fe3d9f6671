"""Remainders: exact for floats of any magnitudes, floored as in Python and NumPy or truncated as in C."""

from __future__ import annotations

from fusec.ir.expr import apply
from fusec.ir.walk import Body
from fusec.math.body import Block, call, write
from fusec.math.formats import INF, NAN, copy_sign, format_of, power_of_two
from fusec.math.value import Value, floor, fma, trunc, where


def fmod(x: Value, y: Value) -> Body:
    """The exact remainder of truncated division, with the sign of x; one or two turns of the loop for usual quotients.

    Each turn takes off a multiple of |y| times a power of two, at least 1/2 of what is left. The quotient is
    underestimated, so the rest stays positive; the fma is exact, for its result is a multiple of the last place of
    the divisor and below 2^digits of them.
    """
    form = format_of(x)
    block = Block()
    rest, size = block.let(abs(x)), block.let(abs(y))
    usable = block.let((rest < INF) & (size > 0.0))

    def turn(inner: Block) -> None:
        divisor = inner.let(_scaled_below(size, rest))
        under = 1.0 - 2.0 ** (1 - form.mantissa)
        times = trunc(rest / divisor * under)
        inner.assign(rest, fma(-where(times < 1.0, 1.0, times), divisor, rest))

    block.loop(usable & (rest >= size), turn)
    return block.finish(where(usable & y.eq(y), copy_sign(rest, x), NAN))


def _scaled_below(size: Value, rest: Value) -> Value:
    """Size * 2^k <= rest, k >= 0, with a quotient below 2^digits unless size is subnormal."""
    form = format_of(size)
    fields = [value.signed_bits >> form.mantissa for value in (rest, size)]
    gap = fields[0] - fields[1] - (form.mantissa - 2)
    count = where(gap > 0, gap, 0)
    half = count >> 1
    return size * power_of_two(half) * power_of_two(count - half)


def _fmod(x: Value, y: Value) -> Value:
    return call(write(f"fusec_fmod_{x.dtype}", (x.dtype, y.dtype), fmod), x, y)


def remainder(x: Value, y: Value) -> Value:
    """Python's %: the remainder of floored division, with the sign of y; x % 0 is 0 for integers, nan for floats."""
    if x.dtype.kind == "unsigned":
        return Value(apply("modulo", x.expr, y.expr))
    if x.dtype.kind == "signed":
        rest = Value(apply("modulo", x.expr, y.expr))
        return where(rest.ne(0) & ((rest ^ y) < 0), rest + y, rest)
    rest = _fmod(x, y)
    moved = where((y < 0.0).ne(rest < 0.0), rest + y, rest)
    return where(rest.eq(0.0), copy_sign(rest, y), moved)


def floor_divide(x: Value, y: Value) -> Value:
    """Python's //: the quotient rounded down; x // 0 is 0 for integers, x / 0 for floats, as in NumPy."""
    if x.dtype.is_integer:
        quotient = Value(apply("quotient", x.expr, y.expr))
        if x.dtype.kind == "unsigned":
            return quotient
        rest = Value(apply("modulo", x.expr, y.expr))
        return where(rest.ne(0) & ((rest ^ y) < 0), quotient - 1, quotient)
    rest = _fmod(x, y)
    quotient = (x - rest) / y  # whole but for its rounding
    quotient = where(rest.ne(0.0) & (y < 0.0).ne(rest < 0.0), quotient - 1.0, quotient)
    down = floor(quotient)
    down = where(quotient - down > 0.5, down + 1.0, down)
    down = where(quotient.eq(0.0), copy_sign(x.like(0.0), x / y), down)
    return where(y.eq(0.0), x / y, down)
