"""Bessel functions of orders 0 and 1: polynomials up to 8, asymptotic forms beyond."""

from __future__ import annotations

from fusec.math.body import call, write
from fusec.math.error import pair_polynomial
from fusec.math.exponential import exp_rest, reduce
from fusec.math.formats import INF, NAN, constant_pair, copy_sign, flip_sign, format_of, horner, scale
from fusec.math.logarithm import log_of
from fusec.math.pairs import Pair, pair_sqrt, quick_sum, reciprocal, two_product, two_sum
from fusec.math.trigonometric import cos, sin
from fusec.math.value import Term, fma, sqrt, where


def _modified(order: int, size: Term) -> Term:
    """I of a magnitude: a polynomial in x^2 / 4 up to 8, e^x / sqrt(x) times one in 16 / x - 1 beyond."""
    form = format_of(size)
    zero = size.like(0.0)
    limit = form.pick(95.0, 720.0)
    small = size <= 8.0
    near_x, far_x = where(small, size, 8.0), where(small, 8.0, where(size > limit, limit, size))
    square = two_product(near_x * 0.5, near_x * 0.5)
    near = pair_polynomial(f"i{order}", square)
    if order == 1:
        near = near * (near_x * 0.5)
    x = Pair(far_x, zero)
    v = (Pair(zero + 16.0, zero) / x) + -1.0
    reduced = reduce(x)
    loose = exp_rest(reduced.rest)
    far = quick_sum(loose.hi, loose.lo) * pair_polynomial(f"i{order}_far", v) / pair_sqrt(x)
    return where(small, near.value(), scale(far.value(), reduced.integer))


def i0(x: Term) -> Term:
    """The modified Bessel function of order 0.

    Greatest error seen: float32 0.68 ulp, float64 0.70 ulp.
    """
    size = abs(x)
    return where(size < INF, _modified(0, size), size)


def i1(x: Term) -> Term:
    """The modified Bessel function of order 1.

    Greatest error seen: float32 0.68 ulp, float64 0.67 ulp.
    """
    form = format_of(x)
    size = abs(x)
    near = where(size < 2.0 ** -(form.mantissa // 2 + 2), size * 0.5, _modified(1, size))
    return copy_sign(where(size < INF, near, size), x)


def _near(order: int, x: Term) -> Pair:
    """J of 0 <= x <= 8, with its two zeros as factors, so that the error stays relative to the value."""
    square = two_product(x, x)
    first, second = (constant_pair(f"j{order}_{which}", x) for which in ("first", "second"))
    value = pair_polynomial(f"j{order}", square.scaled(2.0**-5) + -1.0) * (square - first) * (square - second)
    return value * x if order == 1 else value


def _near_second(order: int, x: Term) -> Term:
    """Y of 0 < x <= 8: its logarithm and pole apart, a polynomial."""
    regular = pair_polynomial(f"y{order}", two_product(x, x).scaled(2.0**-5) + -1.0)
    singular = log_of(x) * _near(order, x)
    if order == 1:
        regular = regular * x
        singular = singular - reciprocal(Pair(x, x.like(0.0)))
    return (regular + singular * constant_pair("two_over_pi", x)).value()


def _far(order: int, x: Term, second: bool) -> Term:
    """J or Y of x >= 8 by Hankel's form: P and Q times the sum and difference of sin x and cos x, over sqrt(pi x)."""
    sine = call(write(f"fusec_sin_{x.dtype}", (x.dtype,), sin), x)
    cosine = call(write(f"fusec_cos_{x.dtype}", (x.dtype,), cos), x)
    eighth = 8.0 / x
    u = eighth * eighth
    p = pair_polynomial(f"bessel_p{order}", Pair(u, x.like(0.0))).value()
    q = horner(f"bessel_q{order}", u) * eighth
    total, gap = two_sum(sine, cosine), two_sum(sine, -cosine)
    if order == 0:
        first, other = (gap, total) if second else (total, -gap)
    else:
        first, other = (-total, gap) if second else (gap, total)
    wave = fma(p, first.hi, fma(q, other.hi, p * first.lo))
    return wave * 0.5 / sqrt(x * constant_pair("quarter_pi", x).hi)  # a quarter, for pi x might overflow


def j0(x: Term) -> Term:
    """The Bessel function of the first kind, order 0.

    The error is below 4 * 2^-digits of the amplitude sqrt(2 / (pi x)), or of the value where that is greater.
    """
    return _first_kind(0, abs(x))


def j1(x: Term) -> Term:
    """The Bessel function of the first kind, order 1.

    The error is below 4 * 2^-digits of the amplitude sqrt(2 / (pi x)), or of the value where that is greater.
    """
    form = format_of(x)
    near = flip_sign(_first_kind(1, abs(x)), x)
    return where(abs(x) < 2.0 ** -(form.mantissa // 2 + 2), x * 0.5, near)


def _first_kind(order: int, size: Term) -> Term:
    small = size <= 8.0
    near = _near(order, where(small, size, 8.0)).value()
    far = _far(order, where(small, 8.0, size), second=False)
    return where(small, near, where(size < INF, far, where(size.eq(INF), 0.0, size)))


def y0(x: Term) -> Term:
    """The Bessel function of the second kind, order 0; -inf at 0, nan below.

    The error is below 4 * 2^-digits of the amplitude sqrt(2 / (pi x)), or of the value where that is greater.
    """
    return _second_kind(0, x)


def y1(x: Term) -> Term:
    """The Bessel function of the second kind, order 1; -inf at 0, nan below.

    The error is below 4 * 2^-digits of the amplitude sqrt(2 / (pi x)), or of the value where that is greater.
    """
    form = format_of(x)
    tiny = x < 2.0**-form.mantissa
    pole = -constant_pair("two_over_pi", x).hi / x
    return where(tiny & (x > 0.0), pole, _second_kind(1, x))


def _second_kind(order: int, x: Term) -> Term:
    form = format_of(x)
    least = form.tiny * 2.0 ** (2 * form.mantissa)  # nothing but the logarithm is left there
    small, tiny = x <= 8.0, x < least
    near = _near_second(order, where(small & (x >= least), x, least if order == 0 else 1.0))
    if order == 0:
        positive = where(tiny & (x > 0.0), x, 1.0)
        bottom = (log_of(positive) - constant_pair("log2_less_euler", x)) * constant_pair("two_over_pi", x)
        near = where(tiny, bottom.value(), near)
    far = _far(order, where(small, 8.0, x), second=True)
    result = where(small, near, where(x < INF, far, where(x.eq(INF), 0.0, x)))
    return where(x < 0.0, NAN, where(x.eq(0.0), -INF, result))
