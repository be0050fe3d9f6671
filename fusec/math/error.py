"""The error function and its relatives."""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32
from fusec.math.coefficients import polynomial
from fusec.math.exponential import exp_rest, reduce
from fusec.math.formats import (
    INF,
    coefficients_of_either,
    constant_pair,
    copy_sign,
    estrin,
    estrin_of,
    format_of,
    horner,
    horner_of,
    power_of_two,
    scale,
)
from fusec.math.pairs import Pair, quick_sum, two_product, two_sum
from fusec.math.tabulated import by_intervals
from fusec.math.value import Term, fma, where


def erf(x: Term) -> Term:
    """The error function: in float32 by intervals; else x (1 + P(x^2)) up to 1, then 1 - exp(-Q(x)).

    Greatest error seen: float32 0.93 ulp (all arguments), float64 0.83 ulp.
    """
    size = abs(x)
    return copy_sign(by_intervals("erf", size) if x.dtype == FLOAT32 else _erf_double(size, size < 1.0), x)


def _erf_double(size: Term, is_small: Term) -> Term:
    """The exponent is a pair: its rounding would count, where what is missing to 1 is an eighth."""
    variable = where(is_small, fma(size, size, -0.5), where(size > 5.93, size.like(5.93), size))
    first, *others = coefficients_of_either(is_small, "erf_within", "erf_tail", size)
    inner = estrin_of(others, variable)
    product = two_product(inner, variable)
    series = quick_sum(product.hi, first)
    reduced = reduce(Pair(-series.hi, -(series.lo + product.lo)))
    rest = reduced.rest.hi
    power = fma(estrin("exp", rest), rest * rest, rest)  # less 1
    factor = power_of_two(reduced.integer)
    return where(is_small, fma(fma(inner, variable, first), size, size), fma(-power, factor, 1.0 - factor))


def pair_polynomial(name: str, t: Pair) -> Pair:
    """A fitted polynomial whose first coefficients are pairs: the last steps of Horner's scheme in pairs."""
    highs, lows = polynomial(name, t.hi.dtype), polynomial(name + "_low", t.hi.dtype)
    inner = horner_of(highs[len(lows) :], t.hi)
    result = Pair(inner, t.hi.like(0.0))
    for high, low in zip(reversed(highs[: len(lows)]), reversed(lows), strict=True):
        product = result * t
        total = two_sum(product.hi, high)
        result = Pair(total.hi, total.lo + (product.lo + low))
    return quick_sum(result.hi, result.lo)


def _smooth(a: Pair) -> Pair:
    """(1 + 2a) exp(a^2) erfc(a) of a positive bounded pair, a polynomial of (a - k) / (a + k)."""
    form = format_of(a.hi)
    centre = form.pick(2.0, 4.0)
    above, below = two_sum(a.hi, -centre), two_sum(a.hi, centre)
    above, below = quick_sum(above.hi, above.lo + a.lo), quick_sum(below.hi, below.lo + a.lo)
    return pair_polynomial(form.pick_name("erfcx_near", "erfcx"), above / below)


def _erfc_parts(a: Pair) -> tuple[Pair, Term]:
    """Erfc of a positive bounded pair as a normal pair near 1 and the power of two that multiplies it.

    (1 + 2a) exp(a^2) erfc(a) is smooth in t = (a - k) / (a + k), after M. M. Shepherd and J. G. Laframboise,
    "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981.
    """
    square = two_product(a.hi, a.hi)
    reduced = reduce(Pair(-square.hi, -fma(a.hi + a.hi, a.lo, square.lo)))
    loose = exp_rest(reduced.rest)
    line = two_sum(a.hi + a.hi, 1.0)
    line = quick_sum(line.hi, line.lo + (a.lo + a.lo))
    return quick_sum(loose.hi, loose.lo) * _smooth(a) / line, reduced.integer


def erfcx(x: Term) -> Term:
    """The scaled complementary error function exp(x^2) erfc(x); inf far on the left.

    Beyond the fit's range by its asymptotic series (NIST, "Digital library of mathematical functions", 7.12.1); on the
    left as 2 exp(x^2) less the value of the other side.
    """
    form = format_of(x)
    size = abs(x)
    limit = form.pick(10.0, 27.0)
    bounded = where(size > limit, limit, size)
    smooth = _smooth(Pair(bounded, x.like(0.0)))
    line = two_sum(bounded + bounded, 1.0)
    near = smooth / line
    great = where(size > limit, size, limit)
    half_square = 0.5 / great / great
    series = horner_of((-1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0), half_square) * half_square
    head = constant_pair("sqrt_inverse_pi", x)
    quotient = head.hi / great
    rest = fma(-quotient, great, head.hi) + head.lo
    far = quotient + fma(quotient, series, rest / great)
    right = where(size > limit, far, near.value())
    bottom = form.pick(9.39, 26.63)  # there the left side overflows; beyond, the factor's exponent would
    square_of = where(size > bottom, bottom, size)
    square = two_product(square_of, square_of)
    reduced = reduce(Pair(square.hi, square.lo))
    loose = exp_rest(reduced.rest)
    power = quick_sum(loose.hi, loose.lo)
    factor = power_of_two(-reduced.integer)
    less = quick_sum(power.hi, near.hi * -0.5 * factor)
    total = less.hi + (less.lo + fma(near.lo * -0.5, factor, power.lo))
    left = scale(total, reduced.integer + 1)
    beyond = where(x < 0.0, left, where(size.eq(INF), 0.0, right))
    central = two_sum(x.like(1.0), -x)
    middle = Pair(central.hi, fma(horner("erf", x * x), -x, central.lo))
    middle = power.scaled(power_of_two(reduced.integer)) * quick_sum(middle.hi, middle.lo)
    return where(size < 0.5, middle.value(), beyond)


def _erfc_limit(x: Term) -> float:
    """Beyond this erfc vanishes."""
    return format_of(x).pick(11.18, 28.035)


def erfc(x: Term) -> Term:
    """The complementary error function 1 - erf(x), accurate where it is small.

    Greatest error seen: float32 0.80 ulp (all arguments), float64 0.74 ulp.
    """
    size = abs(x)
    limit = _erfc_limit(x)
    near, exponent = _erfc_parts(Pair(where(size > limit, limit, size), x.like(0.0)))
    central = two_sum(x.like(1.0), -x)
    middle = central.hi + fma(horner("erf", x * x), -x, central.lo)
    return where(size < 0.5, middle, _reflected(x < 0.0, near, exponent, 2.0))


def _reflected(left: Term, near: Pair, exponent: Term, whole: float) -> Term:
    """Near * 2^exponent, or `whole` less it on the left side."""
    form = format_of(near.hi)
    right = scale(near.value(), exponent)
    least = -4 * form.mantissa  # far below the last place of `whole`
    factor = power_of_two(where(exponent < least, exponent.like(least), exponent))
    head = quick_sum(near.hi.like(whole), near.hi * -factor)
    return where(left, head.hi + fma(near.lo, -factor, head.lo), right)


def normcdf(x: Term) -> Term:
    """The distribution function of the standard normal law, erfc(-x / sqrt(2)) / 2.

    Greatest error seen: float32 0.78 ulp, float64 0.71 ulp.
    """
    size = abs(x)
    root = constant_pair("sqrt_half", x)
    limit = _erfc_limit(x) * 1.41422
    bounded = where(size > limit, limit, size)
    product = two_product(bounded, root.hi)
    argument = quick_sum(product.hi, fma(bounded, root.lo, product.lo))
    near, exponent = _erfc_parts(argument)
    half = argument.scaled(0.5)
    central = quick_sum(x.like(0.5), half.hi)
    rest = fma(horner("erf", argument.hi * argument.hi), half.hi, half.lo)
    upper = central.hi + (central.lo + rest)
    other = quick_sum(x.like(0.5), -half.hi)
    lower = other.hi + (other.lo - rest)
    middle = where(x > 0.0, upper, lower)
    return where(size < 0.7, middle, _reflected(x > 0.0, near, exponent - 1, 1.0))
