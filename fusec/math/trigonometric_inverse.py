"""Inverse circular functions."""

from __future__ import annotations

from fusec.math.body import call, guard, write
from fusec.math.formats import INF, NAN, constant_pair, copy_sign, format_of, horner
from fusec.math.pairs import Pair, choose, quick_sum, two_product, two_sum
from fusec.math.value import Term, fma, sqrt, where


def _atan_quotient(above: Pair, below: Pair, base: Pair) -> Term:
    """Base + atan(above / below) for a quotient of at most tan(pi / 8) in magnitude."""
    quotient = above.hi / below.hi
    rest = (fma(-quotient, below.hi, above.hi) + (above.lo - quotient * below.lo)) / below.hi
    square = quotient * quotient
    tail = fma(horner("atan", square) * square, quotient, rest)
    head = quick_sum(base.hi, quotient)
    return head.hi + (head.lo + (base.lo + tail))


def _atan_ratio(y: Term, x: Term) -> Term:
    """atan(y / x) for y >= 0, x > 0, in one division: y / x, (y - x) / (y + x) or -x / y by its size."""
    zero = x.like(0.0)
    steep, middle = y > x * 2.414213562373095, y > x * 0.41421356237309503
    above = choose(steep, Pair(-x, zero), choose(middle, two_sum(y, -x), Pair(y, zero)))
    below = choose(steep, Pair(y, zero), choose(middle, two_sum(y, x), Pair(x, zero)))
    half, quarter = constant_pair("half_pi", x), constant_pair("quarter_pi", x)
    base = choose(steep, half, choose(middle, quarter, Pair(zero, zero)))
    return _atan_quotient(above, below, base)


def atan(x: Term) -> Term:
    """The arc tangent.

    Greatest error seen: float32 0.83 ulp (all arguments), float64 0.76 ulp.
    """
    form = format_of(x)
    size = abs(x)
    limit = 2.0 ** (form.mantissa + 10)  # beyond it is pi / 2, and cubes of 1 / x would underflow
    bounded = where(size > limit, limit, size)
    near = _atan_ratio(bounded, x.like(1.0))
    return copy_sign(where(x.ne(x) | (size < form.tiny), size, near), x)


def atan2(y: Term, x: Term) -> Term:
    """The angle of the point (x, y), in [-pi, pi]; C99's values at zeros and infinities.

    Greatest error seen: float32 0.86 ulp, float64 0.79 ulp.
    """
    form = format_of(x)
    high, low = abs(y), abs(x)
    endless = high.eq(INF) & low.eq(INF)
    high, low = where(endless, 1.0, high), where(endless, 1.0, low)
    # scaled so that neither sum over- nor the products' residues underflow; what is lost then is below half an ulp
    great = (high > 2.0 ** (form.bias - 2)) | (low > 2.0 ** (form.bias - 2))
    small = (high < 2.0 ** -(form.bias // 2)) & (low < 2.0 ** -(form.bias // 2))
    factor = where(great, 2.0**-4, where(small, x.like(2.0 ** (form.bias // 2)), 1.0))
    high, low = high * factor, low * factor
    left = x.signed_bits < 0
    result = _angle(high, low, left)
    return where(x.ne(x) | y.ne(y), NAN, copy_sign(result, y))


def _angle(high: Term, low: Term, left: Term) -> Term:
    """The angle of (low, high), both positive or 0, or of its mirror image at the vertical axis."""
    zero = low.like(0.0)
    form = format_of(low)
    steep, middle = high > low * 2.414213562373095, high > low * 0.41421356237309503
    above = choose(steep, Pair(-low, zero), choose(middle, two_sum(high, -low), Pair(high, zero)))
    below = choose(steep, Pair(high, zero), choose(middle, two_sum(high, low), Pair(low, zero)))
    half, quarter, pi = constant_pair("half_pi", low), constant_pair("quarter_pi", low), constant_pair("pi", low)
    base = choose(steep, half, choose(middle, quarter, Pair(zero, zero)))
    mirrored = choose(steep, half, choose(middle, _three(quarter), pi))
    base = choose(left, mirrored, base)
    above = choose(left, -above, above)
    usual = _atan_quotient(above, below, base)
    axis = where(left, pi.hi, 0.0)
    may_be_tiny = ~left & (high * 2.0 ** (form.bias - 3) < low) & (high > 0.0)
    tiny = write(f"fusec_atan2_tiny_{low.dtype}", (low.dtype,) * 3, _if_tiny)
    usual = guard(may_be_tiny, call(tiny, high, low, usual), usual)
    usual = where(high.eq(0.0), axis, usual)
    usual = where(low.eq(0.0) & (high > 0.0), half.hi, usual)
    usual = where(high.eq(INF), half.hi, usual)
    return where(low.eq(INF), axis, usual)


def _if_tiny(high: Term, low: Term, angle: Term) -> Term:
    """The quotient if it is subnormal, so that it is rounded once, else the angle."""
    quotient = high / low
    return where(quotient < format_of(low).tiny, quotient, angle)


def _three(quarter: Pair) -> Pair:
    """3 pi / 4."""
    product = two_product(quarter.hi, quarter.hi.like(3.0))
    return quick_sum(product.hi, fma(quarter.lo, 3.0, product.lo))


def asin(x: Term) -> Term:
    """Arc sine: a polynomial up to 1/2; beyond, the half-angle formula brings the argument there.

    Greatest error seen: float32 0.63 ulp (all arguments), float64 0.61 ulp.
    """
    form = format_of(x)
    size = abs(x)
    large = size > 0.5
    root, square = _half_angle(size)
    argument = where(large, root.hi, size)
    z = where(large, square, size * size)
    tail = horner("asin", z) * z
    half = constant_pair("half_pi", x)
    twice = root.hi + root.hi
    head = quick_sum(half.hi, -twice)
    beyond = head.hi + (head.lo + (half.lo - (fma(tail, twice, root.lo + root.lo))))
    near = fma(tail, argument, argument)
    result = where(size < form.tiny, size, where(size > 1.0, NAN, where(large, beyond, near)))
    return copy_sign(result, x)


def _half_angle(size: Term) -> tuple[Pair, Term]:
    """sqrt((1 - size) / 2) as a pair, and its square, which is exact."""
    square = (1.0 - size) * 0.5
    root = sqrt(where(square > 0.0, square, 0.0))
    rest = fma(-root, root, square) / (root + root)
    return Pair(root, where(root > 0.0, rest, 0.0)), square


def acos(x: Term) -> Term:
    """The arc cosine: pi / 2 - asin(x) up to 1/2, 2 asin(sqrt((1 - |x|) / 2)) or its complement to pi beyond.

    Greatest error seen: float32 0.61 ulp (all arguments), float64 0.61 ulp.
    """
    size = abs(x)
    large = size > 0.5
    root, square = _half_angle(size)
    z = where(large, square, size * size)
    tail = horner("asin", z) * z
    half, pi = constant_pair("half_pi", x), constant_pair("pi", x)
    head = two_sum(half.hi, -x)
    near = head.hi + (head.lo + (half.lo - tail * x))
    twice = root.hi + root.hi
    angle = quick_sum(twice, fma(tail, twice, root.lo + root.lo))
    back = two_sum(pi.hi, -angle.hi)
    behind = back.hi + (back.lo + (pi.lo - angle.lo))
    return where(size > 1.0, NAN, where(large, where(x < 0.0, behind, angle.hi + angle.lo), near))
