"""exp and its relatives: reduction by multiples of ln 2, a polynomial, scaling by a power of two."""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.math.coefficients import polynomial
from fusec.math.constants import parts
from fusec.math.formats import constant_pair, format_of, horner, horner_of, power_of_two, scale, vanishing
from fusec.math.pairs import Pair, quick_sum, two_product, two_sum
from fusec.math.value import Term, fma, rint, where


@dataclass(frozen=True, slots=True)
class Reduced:
    """x = count * ln 2 + rest, |rest| <= 0.35; count as a float and as an integer of the same width."""

    count: Term
    integer: Term
    rest: Pair


def reduce(x: Pair) -> Reduced:
    """Reduction of |x| < 1100 (float64) or 140 (float32); x.hi less the upper part of count * ln 2 is exact."""
    form = format_of(x.hi)
    high, low, _ = parts("ln2", form.dtype)
    shifted = fma(x.hi, parts("log2e", form.dtype)[0], form.magic)
    count = shifted - form.magic
    rest = fma(count, -high, x.hi)
    integer = shifted.signed_bits - form.magic_bits
    return Reduced(count, integer, quick_sum(rest, fma(count, -low, x.lo)))


def clamp(x: Term, low: float, high: float) -> Term:
    """X moved into [low, high]; nan stays nan."""
    above = where(x < low, low, x)
    return where(above > high, high, above)


def clamp_exponent(x: Term) -> Term:
    """X moved to where exp under- and overflows but its reduction still works."""
    form = format_of(x)
    return clamp(x, form.pick(-125.0, -786.0), form.pick(89.0, 710.0))


def tail(rest: Term) -> Term:
    """exp(rest) - 1 - rest for a reduced argument."""
    return horner("exp", rest) * (rest * rest)


def exp_rest(rest: Pair) -> Pair:
    """Exp of a reduced argument, relative error about 2^-(digits + 4); not normalised: lo is up to 0.07."""
    head = quick_sum(rest.hi.like(1.0), rest.hi)
    return Pair(head.hi, head.lo + (rest.lo + tail(rest.hi)))


def expm1_rest(rest: Pair) -> Pair:
    """Exp - 1 of a reduced argument as a pair, relative error about 2^-(digits + 5)."""
    half = two_product(rest.hi, rest.hi * 0.5)
    first, *others = polynomial("exp", rest.hi.dtype)
    cubic = horner_of((first - 0.5, *others), rest.hi) * (half.hi + half.hi)
    head = quick_sum(rest.hi, half.hi)
    return Pair(head.hi, head.lo + (rest.lo + half.lo + cubic))


def exp(x: Term) -> Term:
    """e^x.

    Greatest error seen: float32 0.98 ulp (all arguments), float64 0.96 ulp.
    """
    form = format_of(x)
    high, low, _ = parts("ln2", form.dtype)
    y = clamp_exponent(x)
    shifted = fma(y, parts("log2e", form.dtype)[0], form.magic)
    count = shifted - form.magic
    rest = fma(count, -low, fma(count, -high, y))
    near_one = fma(horner("exp", rest), rest * rest, rest) + 1.0
    return scale(near_one, shifted.signed_bits - form.magic_bits)


def exp2(x: Term) -> Term:
    """2^x; exact at integers.

    Greatest error seen: float32 0.79 ulp (all arguments), float64 0.73 ulp.
    """
    form = format_of(x)
    y = clamp(x, float(vanishing(form)), form.bias + 2.0)
    count = rint(y)
    ln2 = constant_pair("ln2", x)
    near = y - count
    product = two_product(near, ln2.hi)
    rest = Pair(product.hi, fma(near, ln2.lo, product.lo))
    return scale(exp_rest(rest).value(), count.to(form.signed))


def exp10(x: Term) -> Term:
    """10^x.

    Greatest error seen: float32 0.79 ulp (all arguments), float64 0.76 ulp.
    """
    form = format_of(x)
    y = clamp(x, form.pick(-54.2, -341.5), form.pick(39.0, 309.0))
    count = rint(y * parts("log2_10", form.dtype)[0])
    high, low, _ = parts("log10_2", form.dtype)
    near, rest = fma(count, -high, y), count * -low  # the first is exact
    ln10 = constant_pair("ln10", x)
    product = two_product(near, ln10.hi)
    low_part = fma(near, ln10.lo, fma(rest, ln10.hi, product.lo))
    return scale(exp_rest(quick_sum(product.hi, low_part)).value(), count.to(form.signed))


def expm1_half(x: Pair) -> Pair:
    """Half of exp(x) - 1, as a pair: the half keeps 2^count from overflowing one step too early."""
    reduced = reduce(x)
    factor = power_of_two(reduced.integer - 1)
    whole = factor - 0.5
    lost = (factor - whole) - 0.5
    near = expm1_rest(reduced.rest)
    head = two_sum(whole, factor * near.hi)
    return Pair(head.hi, head.lo + fma(factor, near.lo, lost))


def expm1(x: Term) -> Term:
    """e^x - 1, accurate near 0.

    Greatest error seen: float32 0.71 ulp (all arguments), float64 0.80 ulp.
    """
    form = format_of(x)
    y = clamp(x, form.pick(-18.0, -38.0), form.pick(89.0, 710.0))
    near = expm1_half(Pair(y, y.like(0.0))).value() * 2.0
    return where(abs(x) < 2.0 ** -(form.mantissa + 2), x, near)  # keeps -0.0 and subnormals


@dataclass(frozen=True, slots=True)
class Fallen:
    """A power as power * 2^exponent."""

    power: Pair
    exponent: Term

    def bounded(self, least: int) -> Pair:
        """The power, or one with this exponent where its own is less."""
        return self.power.scaled(power_of_two(where(self.exponent < least, self.exponent.like(least), self.exponent)))


def fallen(distance: Pair) -> Fallen:
    """E^distance for a distance <= 0."""
    form = format_of(distance.hi)
    least = form.pick(-125.0, -786.0)  # there the power vanishes
    far = distance.hi < least
    reduced = reduce(Pair(where(far, least, distance.hi), where(far, 0.0, distance.lo)))
    loose = exp_rest(reduced.rest)
    return Fallen(quick_sum(loose.hi, loose.lo), reduced.integer)


def sigmoid(x: Term) -> Term:
    """1 / (1 + e^-x), as e^-|x| / (1 + e^-|x|) or its complement, so that nothing overflows.

    Greatest error seen: float32 0.77 ulp (all arguments), float64 0.77 ulp.
    """
    falling = fallen(Pair(-abs(x), x.like(0.0)))
    power, negative = falling.power, x < 0.0
    added = falling.bounded(-4 * format_of(x).mantissa)  # less would be far below the last place of 1
    below = quick_sum(x.like(1.0), added.hi)
    top = where(negative, power.hi, 1.0)
    inverse = 1.0 / below.hi
    quotient = top * inverse
    rest = fma(-quotient, below.hi, top) - quotient * (below.lo + added.lo)
    near = fma(rest + where(negative, power.lo, 0.0), inverse, quotient)
    return scale(near, where(negative, falling.exponent, 0))
