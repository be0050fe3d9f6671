"""Circular functions: reduction by multiples of pi / 2 to a pair, polynomials on [-pi / 4, pi / 4].

Common arguments are reduced by Cody and Waite's method with fma, huge ones by that of M. Payne and R. Hanek ("Radian
reduction for trigonometric functions", 1983) in integers, in functions of their own that are called only when needed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from fusec.base.dtypes import FLOAT32, INT64, UINT64
from fusec.base.records import dataclass
from fusec.math.body import call, guard, write
from fusec.math.constants import TWO_OVER_PI, TWO_OVER_PI_BITS, parts
from fusec.math.formats import INF, NAN, constant_pair, flip_sign, format_of, horner
from fusec.math.pairs import Pair, choose, quick_sum, two_product
from fusec.math.value import Term, fma, multiply_high, rint, trunc, where


@dataclass(frozen=True, slots=True)
class Angle:
    """An angle: `quadrant` (an integer; only its two lowest bits count) times pi / 2 plus `rest`."""

    quadrant: Term
    rest: Pair


def usual_limit(x: Term) -> float:
    """Up to here `reduce_usual` leaves the rest accurate; the count makes the first step exact."""
    return format_of(x).pick(2.0**17, 2.0**38)


def reduce_usual(size: Term) -> Angle:
    """Reduction of a magnitude below the usual limit: three parts of pi / 2, the second step's error carried along."""
    form = format_of(size)
    first, second, third = parts("half_pi", form.dtype)
    shifted = fma(size, parts("two_over_pi", form.dtype)[0], form.magic)
    count = shifted - form.magic
    exact = fma(count, -first, size)
    rest = exact - count * second
    # exact is a multiple of the product's last place: so is its difference to rest, which is exact therefore
    lost = fma(count, -second, exact - rest)
    return Angle(shifted.bits, Pair(rest, fma(count, -third, lost)))


def window(offset: Term, width: int, wanted: int) -> list[Term]:
    """`wanted` words of `width` bits of 2 / pi from the bit `offset` on, after one word of zeros."""
    assert offset.dtype == UINT64, "the window is cut with 64-bit shifts"
    count = TWO_OVER_PI_BITS // width
    mask = (1 << width) - 1
    greatest = {32: 4, 64: 16}[width]  # the greatest offset, in words
    digits = [0] + [TWO_OVER_PI >> (width * (count - 1 - i)) & mask for i in range(count - 1)]
    words = [offset.like(word) for word in digits[: greatest + wanted + 1]]
    index, step = offset >> (width.bit_length() - 1), 16 if width == 64 else 4
    while step:
        taken = (index & step).ne(0)
        words = [where(taken, words[min(i + step, len(words) - 1)], words[i]) for i in range(step + wanted)]
        step >>= 1
    shift = offset & (width - 1)
    if width == 32:
        return [(((a << 32) | b) << shift) >> 32 & mask for a, b in pairwise(words)][:wanted]
    return [(a << shift) | (b >> (64 - shift)) for a, b in pairwise(words)][:wanted]


def reduce_huge(size: Term) -> Angle:
    """Reduction of any finite magnitude above the usual limit, from the product with a window of 2 / pi."""
    form = format_of(size)
    bits = size.bits.to(UINT64)
    whole = (bits & (1 << form.mantissa) - 1) | 1 << form.mantissa
    width = form.dtype.bits
    # size = whole * 2^e; quarters of a turn need 2 / pi * 2^(e - 2) after the binary point
    offset = (bits >> form.mantissa) + (width - 2 - form.bias - form.mantissa)
    high, middle, low = window(offset, width, 3)
    if form.dtype == FLOAT32:
        return _angle_single((whole * high << 32) + whole * middle + (whole * low >> 32), size)
    middle_product = whole * middle
    lower = middle_product + multiply_high(whole, low)
    carry = where(lower < middle_product, lower.like(1), 0)
    return _angle_double(whole * high + multiply_high(whole, middle) + carry, lower, size)


def _quarters(turn: Term) -> tuple[Term, Term]:
    """The nearest quadrant of a fraction of a turn of 64 bits, and the signed rest in the same unit."""
    quadrant = (turn + (1 << 61)) >> 62
    return quadrant, (turn - (quadrant << 62)).bitcast(INT64)


def _angle_single(turn: Term, like: Term) -> Angle:
    quadrant, rest = _quarters(turn)
    high = rest.to(FLOAT32)
    low = (rest - high.to(INT64)).to(FLOAT32)
    quarter = constant_pair("half_pi", like).scaled(2.0**-62)
    return Angle(quadrant.to(format_of(like).unsigned), Pair(high, low) * quarter)


def _angle_double(turn: Term, lower: Term, like: Term) -> Angle:
    quadrant, rest = _quarters(turn)
    below = rest < 0
    # the magnitude, but for one unit of 2^-128, so that no small value is left over from two great ones
    upper, lower = where(below, ~rest, rest).bitcast(UINT64), where(below, ~lower, lower)
    middle = ((upper & 0x7FF) << 53) | (lower >> 11)
    tops = (1 << 64) - 0x800  # 53 bits: their conversion is exact
    high, low = (upper & tops).to(like.dtype), (middle & tops).to(like.dtype) * 2.0**-53
    least = (((middle & 0x7FF) << 11) | (lower & 0x7FF)).to(like.dtype) * 2.0**-64
    head = quick_sum(high, low)
    size = Pair(head.hi, head.lo + least) * constant_pair("half_pi", like).scaled(2.0**-62)
    return Angle(quadrant, choose(below, -size, size))


def sine_pair(rest: Pair, careful: bool = False) -> Pair:
    """Sin of a reduced angle; `careful` regards the roundings within the second term as well."""
    x = rest.hi
    square = x * x
    series = horner("sin", square)
    if not careful:
        return Pair(x, fma(series * square, x, rest.lo))
    product = two_product(series, square)
    lost = fma(series, fma(x, x, -square), product.lo)
    return Pair(x, fma(product.hi, x, fma(lost, x, rest.lo)))


def cosine_pair(rest: Pair, careful: bool = False) -> Pair:
    """Cos of a reduced angle; `careful` regards the rounding of the square as well."""
    x = rest.hi
    square = x * x
    half = square * 0.5
    head = 1.0 - half
    lost = (1.0 - head) - half
    if careful:
        lost = fma(fma(x, x, -square), -0.5, lost)
    return Pair(head, lost + fma(horner("cos", square), square * square, x * -rest.lo))


def turned(angle: Angle, quadrants: int) -> Term:
    """Sin of the angle moved on by a number of quadrants."""
    quadrant = angle.quadrant + quadrants if quadrants else angle.quadrant
    odd = (quadrant & 1).ne(0)
    chosen = choose(odd, cosine_pair(angle.rest), sine_pair(angle.rest)).value()
    width = chosen.dtype.bits
    return (chosen.bits ^ ((quadrant & 2) << (width - 2))).bitcast(chosen.dtype)


def tangent(angle: Angle) -> Term:
    """Tan of the angle, from the quotient of pairs."""
    sine, cosine = sine_pair(angle.rest, careful=True), cosine_pair(angle.rest, careful=True)
    odd = (angle.quadrant & 1).ne(0)
    above, below = choose(odd, -cosine, sine), choose(odd, sine, cosine)
    above, below = quick_sum(above.hi, above.lo), quick_sum(below.hi, below.lo)
    quotient = above.hi / below.hi
    rest = fma(-quotient, below.hi, above.hi) + fma(-quotient, below.lo, above.lo)
    corrected = quotient + rest / below.hi
    return where(quotient.eq(0.0), quotient, corrected)


def sine_of(angle: Angle) -> Term:
    """Sin of the angle."""
    return turned(angle, 0)


def cosine_of(angle: Angle) -> Term:
    """Cos of the angle."""
    return turned(angle, 1)


Of = Callable[[Angle], Term]


def _huge(of: Of) -> Callable[[Term], Term]:
    """The formula for huge magnitudes, infinities and nan."""
    return lambda size: where(size < INF, of(reduce_huge(where(size < INF, size, usual_limit(size)))), NAN)


def _at_any_size(name: str, of: Of, size: Term) -> Term:
    """The function of a magnitude; huge ones take a function of their own."""
    rare = write(f"fusec_{name}_huge_{size.dtype}", (size.dtype,), _huge(of))
    return guard(size >= usual_limit(size), call(rare, size), of(reduce_usual(size)))


def sin(x: Term) -> Term:
    """The sine.

    Greatest error seen: float32 0.86 ulp (all arguments), float64 0.80 ulp.
    """
    return flip_sign(_at_any_size("sin", sine_of, abs(x)), x)


def cos(x: Term) -> Term:
    """The cosine.

    Greatest error seen: float32 0.86 ulp (all arguments), float64 0.84 ulp.
    """
    return _at_any_size("cos", cosine_of, abs(x))


def tan(x: Term) -> Term:
    """The tangent.

    Greatest error seen: float32 0.96 ulp (all arguments), float64 0.90 ulp.
    """
    return flip_sign(_at_any_size("tan", tangent, abs(x)), x)


def half_turns(size: Term) -> Angle:
    """Size * pi reduced, for a finite magnitude; all floats above 2^(digits) are even numbers of half turns."""
    form = format_of(size)
    bounded = where(size < 2.0 ** (form.mantissa + 1), size, 0.0)
    count = rint(bounded + bounded)
    near = fma(count, -0.5, bounded)  # exact
    pi = constant_pair("pi", size)
    product = two_product(near, pi.hi)
    return Angle(count.to(form.signed).bitcast(form.unsigned), quick_sum(product.hi, fma(near, pi.lo, product.lo)))


def sinpi(x: Term) -> Term:
    """sin(pi x); +-0 with the sign of x at whole numbers.

    Greatest error seen: float32 1.00 ulp (all arguments), float64 1.00 ulp.
    """
    size = abs(x)
    near = turned(half_turns(size), 0)
    near = where(trunc(size).eq(size), 0.0, near)
    return where(size < INF, flip_sign(near, x), NAN)


def cospi(x: Term) -> Term:
    """cos(pi x); +0 at half-odd numbers.

    Greatest error seen: float32 0.82 ulp (all arguments), float64 0.81 ulp.
    """
    size = abs(x)
    near = turned(half_turns(size), 1)
    return where(size < INF, where(near.eq(0.0), 0.0, near), NAN)


def sinc(x: Term) -> Term:
    """sin(pi x) / (pi x), as NumPy's sinc; 1 at 0.

    Greatest error seen: float32 0.97 ulp (all arguments), float64 0.86 ulp.
    """
    size = abs(x)
    angle = half_turns(size)
    odd = (angle.quadrant & 1).ne(0)
    sine, cosine = sine_pair(angle.rest), cosine_pair(angle.rest)
    loose = choose(odd, cosine, sine)
    above = quick_sum(loose.hi, loose.lo)
    product = two_product(size, constant_pair("pi", x).hi)
    below = quick_sum(product.hi, fma(size, constant_pair("pi", x).lo, product.lo))
    quotient = (above / below).value()
    signed = (quotient.bits ^ ((angle.quadrant & 2) << (x.dtype.bits - 2))).bitcast(x.dtype)
    form = format_of(x)
    near = where(trunc(size).eq(size), 0.0, signed)
    near = where(size < 2.0 ** -(form.mantissa // 2 + 2), 1.0, near)
    return where(size < INF, near, where(size.eq(INF), 0.0, x))
