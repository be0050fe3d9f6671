"""Remainders: exact for floats of any magnitudes, floored as in Python and NumPy or truncated as in C."""

from __future__ import annotations

from fusec.ir.expr import apply
from fusec.ir.walk import Body
from fusec.math.body import Block, call, write
from fusec.math.formats import INF, NAN, copy_sign, flip_sign, format_of, power_of_two
from fusec.math.value import Term, floor, fma, trunc, where


def fmod(x: Term, y: Term) -> Body:
    """The exact remainder of truncated division, with the sign of x; one turn of the loop for quotients below 2^digits.

    Each turn takes off a whole multiple of |y| times a power of two. The rounded quotient is at most one too great;
    both the fma and the sum that mends it are exact, for their results are multiples of the divisor's last place and
    not greater than the divisor.
    """
    block = Block()
    rest, size = block.let(abs(x)), block.let(abs(y))
    usable = block.let((rest < INF) & (size > 0.0))

    def turn(inner: Block) -> None:
        divisor = inner.let(_scaled_below(size, rest))
        left = inner.let(fma(-trunc(rest / divisor), divisor, rest))
        inner.assign(rest, where(left < 0.0, left + divisor, left))

    block.loop(usable & (rest >= size), turn)
    return block.finish(where(usable & y.eq(y), copy_sign(rest, x), NAN))


def _scaled_below(size: Term, rest: Term) -> Term:
    """Size * 2^k <= rest, k >= 0, with a quotient below 2^digits; k = 0 for a subnormal rest, whose digits are few."""
    form = format_of(size)
    up = form.mantissa + 1
    small = size < form.tiny
    normal = where(small, size * 2.0**up, size)
    exponents = [value.signed_bits >> form.mantissa for value in (rest, normal)]
    gap = exponents[0] - exponents[1] + where(small, exponents[0].like(up), 0) - (form.mantissa - 2)
    count = where((gap > 0) & (rest >= form.tiny), where(gap > 2 * form.bias, gap.like(2 * form.bias), gap), 0)
    half = count >> 1
    return size * power_of_two(half) * power_of_two(count - half)


def _fmod(x: Term, y: Term) -> Term:
    return call(write(f"fusec_fmod_{x.dtype}", (x.dtype, y.dtype), fmod), x, y)


def remainder(x: Term, y: Term) -> Term:
    """Python's %: the remainder of floored division, with the sign of y; x % 0 is 0 for integers, nan for floats."""
    if x.dtype.kind == "unsigned":
        return Term(apply("modulo", x.expr, y.expr))
    if x.dtype.kind == "signed":
        rest = Term(apply("modulo", x.expr, y.expr))
        return where(rest.ne(0) & ((rest ^ y) < 0), rest + y, rest)
    rest = _fmod(x, y)
    moved = where((y < 0.0).ne(rest < 0.0), rest + y, rest)
    return where(rest.eq(0.0), copy_sign(rest, y), moved)


def floor_divide(x: Term, y: Term) -> Term:
    """Python's //: the quotient rounded down; x // 0 is 0 for integers, x / 0 for floats, as in NumPy."""
    if x.dtype.is_integer:
        quotient = Term(apply("quotient", x.expr, y.expr))
        if x.dtype.kind == "unsigned":
            return quotient
        rest = Term(apply("modulo", x.expr, y.expr))
        return where(rest.ne(0) & ((rest ^ y) < 0), quotient - 1, quotient)
    rest = _fmod(x, y)
    quotient = (x - rest) / y  # whole but for its rounding
    quotient = where(rest.ne(0.0) & (y < 0.0).ne(rest < 0.0), quotient - 1.0, quotient)
    down = floor(quotient)
    down = where(quotient - down > 0.5, down + 1.0, down)
    down = where(quotient.eq(0.0), copy_sign(x.like(0.0), x / y), down)
    return where(y.eq(0.0), x / y, down)


def ieee_remainder(x: Term, y: Term) -> Term:
    """C's remainder: x - y * n for the integer n nearest to x / y, to even at ties; exact.

    r = fmod(|x|, 2|y|) leaves r < 2|y|, and then at most two subtractions of |y| bring it to [-|y|/2, |y|/2].
    Where 2|y| overflows, |x| is below it anyway; where |y| is tiny, doubling r is exact and halving |y| is not.
    """
    form = format_of(x)
    size, unit = abs(x), abs(y)
    tiny = unit < form.tiny * 4.0
    bounded = unit < 2.0**form.bias
    rest = where(bounded, _fmod(size, unit + unit), size + (size - size))
    first = where(tiny, rest + rest > unit, rest > unit * 0.5)
    rest = where(first, rest - unit, rest)
    second = first & where(tiny, rest + rest >= unit, rest >= unit * 0.5)
    rest = where(second, rest - unit, rest)
    return where(y.ne(y), y, flip_sign(rest, x))
