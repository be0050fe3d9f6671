"""Logarithms: exponent and fraction f, then a polynomial in f or the series of 2 atanh(s) in s = f / (2 + f)."""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32
from fusec.math.constants import parts
from fusec.math.exponential import fallen
from fusec.math.formats import (
    INF,
    NAN,
    SplitFloat,
    constant_pair,
    estrin,
    format_of,
    horner,
    power_of_two,
    scale,
    split_exponent,
)
from fusec.math.pairs import Pair, choose, quick_sum, two_product, two_sum
from fusec.math.value import Term, fma, where


def log_limits(x: Term, result: Term) -> Term:
    """`result` for positive finite x, and what every logarithm gives elsewhere."""
    usual = where(x < INF, result, x)  # +inf and nan give themselves
    return where(x < 0.0, NAN, where(x.eq(0.0), -INF, usual))


def log(x: Term) -> Term:
    """The natural logarithm.

    Greatest error seen: float32 0.95 ulp (all arguments), float64 0.78 ulp.
    """
    split = split_exponent(x)
    near = _log_single(split) if x.dtype == FLOAT32 else _log_double(split)
    return log_limits(x, near)


def _log_single(split: SplitFloat) -> Term:
    """A polynomial in the fraction."""
    f = split.fraction
    near = fma(horner("log", f), f * f, f)
    return fma(split.exponent, parts("ln2", f.dtype)[0], near)


def _log_double(split: SplitFloat) -> Term:
    """F - f^2/2 + s (f^2/2 + R(s^2)), s = f / (2 + f): the great terms are exact or nearly so."""
    f, count = split.fraction, split.exponent
    high, low, _ = parts("ln2", f.dtype)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    corrected = fma(s, half_square + z * horner("atanh_series", z), count * low)
    return fma(count, high, f - (half_square - corrected))


def log_pair(f: Pair, exponent: Term) -> Pair:
    """Exponent * ln 2 + log(1 + f), relative error about 2^-(digits + 11); f in [-1/3, 1/3] or a little beyond."""
    below = quick_sum(f.hi.like(2.0), f.hi)
    below = Pair(below.hi, below.lo + f.lo)
    inverse = 1.0 / below.hi
    first = f.hi * inverse
    rest = fma(-first, below.hi, f.hi) + fma(-first, below.lo, f.lo)
    s = quick_sum(first, rest * inverse)
    z = two_product(s.hi, s.hi)
    z = Pair(z.hi, fma(s.hi + s.hi, s.lo, z.lo))
    third = (s * z) * _series(z.hi)
    near = quick_sum(s.hi + s.hi, third.hi)
    near = Pair(near.hi, near.lo + (third.lo + (s.lo + s.lo)))
    ln2 = constant_pair("ln2", f.hi)
    whole = two_product(exponent, ln2.hi)
    total = two_sum(whole.hi, near.hi)
    return quick_sum(total.hi, total.lo + (near.lo + fma(exponent, ln2.lo, whole.lo)))


def _series(z: Term) -> Pair:
    """(2 atanh(s) - 2 s) / s^3 of z = s^2."""
    leading = constant_pair("two_thirds", z)
    series = quick_sum(leading.hi, z * horner("atanh_series_2", z))
    return Pair(series.hi, series.lo + leading.lo)


def log_of(x: Term) -> Pair:
    """log(x) as a pair, for positive finite x."""
    split = split_exponent(x)
    return log_pair(Pair(split.fraction, x.like(0.0)), split.exponent)


def log1p(x: Term) -> Term:
    """log(1 + x), accurate near 0.

    Greatest error seen: float32 0.90 ulp (all arguments), float64 0.87 ulp.
    """
    form = format_of(x)
    total = two_sum(x.like(1.0), x)
    split = split_exponent(total.hi)
    # total.lo is not 0 only where |exponent| <= digits or x is so great that it does not matter
    low = where(x < 2.0 ** (2 * form.mantissa), total.lo * split.unit, 0.0)
    fraction = quick_sum(split.fraction, low)
    near = _log1p_near(fraction, split.exponent)
    limited = where(x < INF, near, x)
    limited = where(x < -1.0, NAN, where(x.eq(-1.0), -INF, limited))
    return where(abs(x) < form.tiny, x, limited)  # keeps -0.0 and subnormals


def _log1p_near(f: Pair, count: Term) -> Term:
    """The float64 method of log with a fraction of two parts."""
    high, low, _ = parts("ln2", f.hi.dtype)
    s = f.hi / (f.hi + 2.0)
    z = s * s
    half_square = f.hi * f.hi * 0.5
    corrected = fma(s, half_square + z * horner("atanh_series", z), fma(count, low, f.lo - f.hi * f.lo))
    return fma(count, high, f.hi - (half_square - corrected))


def log2(x: Term) -> Term:
    """The logarithm to base 2; exact at powers of two.

    Greatest error seen: float32 0.51 ulp (all arguments), float64 0.51 ulp.
    """
    split = split_exponent(x)
    near = log_pair(Pair(split.fraction, x.like(0.0)), x.like(0.0)) * constant_pair("log2e", x)
    total = two_sum(split.exponent, near.hi)
    return log_limits(x, total.hi + (total.lo + near.lo))


def log10(x: Term) -> Term:
    """The logarithm to base 10; exact at powers of ten.

    Greatest error seen: float32 0.51 ulp (all arguments), float64 0.51 ulp.
    """
    return log_limits(x, (log_of(x) * constant_pair("log10e", x)).value())


def _log1p_of_exp(distance: Pair, times: Pair | None = None) -> Pair:
    """log(1 + e^distance) [times a constant] for a distance <= 0; relative error about 2^-(digits + 4).

    With p = e^distance it is 2 atanh(s), s = p / (2 + p) <= 1/3; where p is tiny, p itself.
    """
    form = format_of(distance.hi)
    falling, tiny = fallen(distance), -form.mantissa - 4
    p, power = falling.bounded(tiny - 1), falling.power
    below = quick_sum(p.hi.like(2.0), p.hi)
    inverse = 1.0 / below.hi
    first = p.hi * inverse
    rest = (fma(-first, below.hi, p.hi) + (p.lo - first * (below.lo + p.lo))) * inverse
    square = first * first
    third = estrin("atanh_third", square) * (square * first)
    near = quick_sum(first + first, (rest + rest) + third)
    if times is not None:
        near, power = near * times, power * times
        power = quick_sum(power.hi, power.lo)
    # below the normal numbers one number is scaled, so that it is rounded once
    factor = where(falling.exponent > 1 - form.bias, power_of_two(falling.exponent), 0.0)
    small = Pair(scale(power.hi, falling.exponent), power.lo * factor)
    return choose(falling.exponent < tiny, small, near)


def _distance(x: Term, y: Term) -> Pair:
    """-|x - y|; 0 for equal infinities."""
    gap = two_sum(x, -y)
    gap = choose(x < y, gap, -gap)
    known = gap.hi > -INF
    return Pair(where(x.eq(y), 0.0, gap.hi), where(known & x.ne(y), gap.lo, 0.0))


def _added(x: Term, y: Term, rest: Pair) -> Term:
    """The greater of x and y, plus the rest; infinities and nan give themselves."""
    larger = where(x < y, y, x)
    head = two_sum(larger, rest.hi)
    near = where(abs(larger) < INF, head.hi + (head.lo + rest.lo), larger)
    return where(x.ne(x), x, where(y.ne(y), y, near))


def logaddexp(x: Term, y: Term) -> Term:
    """log(e^x + e^y), without overflow; equal infinities give themselves.

    Where the result nearly cancels (x and y negative, the sum of powers near 1) the error is small against x, not
    against the result.
    """
    return _added(x, y, _log1p_of_exp(_distance(x, y)))


def logaddexp2(x: Term, y: Term) -> Term:
    """log2(2^x + 2^y), as logaddexp."""
    gap = _distance(x, y)
    least = -2.0 * format_of(x).bias
    bounded = choose(gap.hi < least, Pair(x.like(least), x.like(0.0)), gap)  # the product of an infinity would be nan
    return _added(x, y, _log1p_of_exp(bounded * constant_pair("ln2", x), times=constant_pair("log2e", x)))


def softplus(x: Term) -> Term:
    """log(1 + e^x).

    Greatest error seen: float32 0.80 ulp (all arguments), float64 0.79 ulp.
    """
    rest = _log1p_of_exp(Pair(-abs(x), x.like(0.0)))
    larger = where(x > 0.0, x, 0.0)
    head = two_sum(larger, rest.hi)
    return where(abs(x) < INF, head.hi + (head.lo + rest.lo), where(x < 0.0, 0.0, x))
