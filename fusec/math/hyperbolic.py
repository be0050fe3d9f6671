"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32
from fusec.math.constants import parts
from fusec.math.exponential import exp_rest, reduce
from fusec.math.formats import INF, NAN, copy_sign, estrin_of_either, format_of, horner, power_of_two, split_exponent
from fusec.math.logarithm import log_pair
from fusec.math.pairs import Pair, choose, pair_sqrt, quick_sum, reciprocal, two_product, two_sum
from fusec.math.tabulated import by_intervals
from fusec.math.value import Term, fma, where

TANH_SMALL = 0.9  # below it a polynomial; above it the quotient is below 0.3 and so are its errors


def tanh(x: Term) -> Term:
    """The hyperbolic tangent: in float32 by intervals; else an odd polynomial up to 0.9, then 1 - 2 / (e^2x + 1).

    Greatest error seen: float32 0.79 ulp (all arguments), float64 0.97 ulp.
    """
    size = abs(x)
    return copy_sign(by_intervals("tanh", size) if x.dtype == FLOAT32 else _tanh_double(x, size), x)


def _tanh_double(x: Term, size: Term) -> Term:
    """One chain of fma serves both ways."""
    form = format_of(x)
    is_small = size < TANH_SMALL
    bounded = where(size > 19.1, 19.1, size)
    shifted = fma(bounded, 2.0 * parts("log2e", x.dtype)[0], form.magic)
    count = shifted - form.magic
    high, low, _ = parts("ln2", x.dtype)
    rest = fma(count, -low, fma(count, -high, bounded + bounded))
    factor = power_of_two(shifted.signed_bits - form.magic_bits)
    variable, term = where(is_small, x * x, rest), where(is_small, size, rest)
    near = fma(estrin_of_either(is_small, "tanh", "exp", variable), variable * term, term)
    large = 1.0 - 2.0 / fma(near, factor, factor + 1.0)
    return where(is_small, near, large)


def _quarter_powers(size: Term) -> tuple[Pair, Pair]:
    """e^size / 4 and e^-size / 4 for a magnitude, bounded where e^size / 2 overflows."""
    form = format_of(size)
    limit = form.pick(89.5, 710.5)
    reduced = reduce(Pair(where(size > limit, limit, size), size.like(0.0)))
    loose = exp_rest(reduced.rest)
    power = quick_sum(loose.hi, loose.lo)
    falling = -2 - reduced.integer
    least = -4 * form.mantissa  # far below the other's last place
    falling = where(falling < least, falling.like(least), falling)
    return power.scaled(power_of_two(reduced.integer - 2)), reciprocal(power).scaled(power_of_two(falling))


def sinh(x: Term) -> Term:
    """The hyperbolic sine: an odd polynomial up to 1, then (e^x - e^-x) / 2.

    Greatest error seen: float32 0.75 ulp (all arguments), float64 0.72 ulp.
    """
    size = abs(x)
    square = x * x
    small = fma(horner("sinh", square) * square, size, size)
    rising, falling = _quarter_powers(size)
    head = quick_sum(rising.hi, -falling.hi)
    large = (head.hi + (head.lo + (rising.lo - falling.lo))) * 2.0
    return copy_sign(where(size > 1.0, large, small), x)


def cosh(x: Term) -> Term:
    """The hyperbolic cosine, (e^x + e^-x) / 2.

    Greatest error seen: float32 0.68 ulp (all arguments), float64 0.65 ulp.
    """
    rising, falling = _quarter_powers(abs(x))
    head = quick_sum(rising.hi, falling.hi)
    return (head.hi + (head.lo + (rising.lo + falling.lo))) * 2.0


def log_of_pair(x: Pair, more: Term) -> Pair:
    """log(x) + more * ln 2 for a positive pair not near the overflow."""
    split = split_exponent(x.hi)
    return log_pair(quick_sum(split.fraction, x.lo * split.unit), split.exponent + more)


def asinh(x: Term) -> Term:
    """The inverse hyperbolic sine: an odd polynomial up to 1/2, then log(x + sqrt(x^2 + 1)).

    Greatest error seen: float32 0.59 ulp (all arguments), float64 0.57 ulp.
    """
    form = format_of(x)
    size = abs(x)
    square = x * x
    small = fma(horner("asinh", square) * square, size, size)
    great = size > 2.0 ** (form.mantissa + 2)  # where the sum is 2 x
    bounded = where(great, 1.0, size)
    squared = two_product(bounded, bounded)
    below = two_sum(squared.hi, 1.0)
    root = pair_sqrt(quick_sum(below.hi, below.lo + squared.lo))
    zero = x.like(0.0)
    argument = choose(great, Pair(size, zero), root + bounded)
    large = log_of_pair(argument, where(great, x.like(1.0), 0.0)).value()
    return copy_sign(where(size < INF, where(size > 0.5, large, small), size), x)


def acosh(x: Term) -> Term:
    """The inverse hyperbolic cosine, log(1 + t + sqrt(2 t + t^2)) with t = x - 1.

    Greatest error seen: float32 0.51 ulp (all arguments), float64 0.51 ulp.
    """
    form = format_of(x)
    great = x > 2.0 ** (form.mantissa + 2)
    t = where(great, 1.0, x) - 1.0  # exact up to 2; beyond, only the sum below loses
    lost = (where(great, 1.0, x) - t) - 1.0
    square = two_product(t, t)
    head = two_sum(t + t, square.hi)
    inner = quick_sum(head.hi, head.lo + (square.lo + lost * (2.0 + t + t)))
    root = pair_sqrt(inner)
    total = two_sum(root.hi, t)
    first = two_sum(total.hi, 1.0)
    sum_of_all = quick_sum(first.hi, first.lo + (total.lo + (root.lo + lost)))
    argument = choose(great, Pair(x, x.like(0.0)), sum_of_all)
    large = log_of_pair(argument, where(great, x.like(1.0), 0.0)).value()
    return where(x < 1.0, NAN, where(x.eq(1.0), 0.0, where(x < INF, large, x)))


def atanh(x: Term) -> Term:
    """The inverse hyperbolic tangent: an odd polynomial up to 1/2, then log((1 + x) / (1 - x)) / 2.

    Greatest error seen: float32 0.67 ulp (all arguments), float64 0.67 ulp.
    """
    size = abs(x)
    square = x * x
    small = fma(horner("atanh", square) * square, size, size)
    bounded = where(size < 1.0, size, 0.5)
    one = x.like(1.0)
    ratio = quick_sum(one, bounded) / quick_sum(one, -bounded)
    large = log_of_pair(ratio, x.like(0.0)).value() * 0.5
    limited = where(size < 1.0, large, where(size.eq(1.0), x.like(INF), NAN))
    return copy_sign(where(size > 0.5, limited, small), x)
