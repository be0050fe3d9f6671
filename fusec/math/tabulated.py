"""Functions by constant tables: powers and logarithms to base 2 in pairs, the fast way to x^y; others by intervals.

After P. T. P. Tang, "Table-driven implementation of the exponential function in IEEE floating-point arithmetic", 1989,
and "Table-driven implementation of the logarithm function in IEEE floating-point arithmetic", 1990.
"""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.math.formats import constant_pair, format_of, horner, scale
from fusec.math.lookups import INTERVALS, LOG2_START, table
from fusec.math.pairs import Pair, two_product
from fusec.math.value import Term, entry, fma, where

_LOG_BITS, _EXP_BITS = 5, 4  # of an index


def _entry(name: str, index: Term, like: Term) -> Term:
    return entry(table(name, like.dtype), index, like.dtype)


def log2_by_table(x: Term, more: Term | None = None) -> Pair:
    """log2(x) [plus a whole number] for a positive normal x, relative error about 2^-(digits + 9).

    Not normalised: the lower part is up to 2^-16 of 1, or 2^-11 of the upper one; it has the terms of third order.

    x = 2^k z, and r = z f - 1 is exact for the factor f of few digits that the table has for z; log2(x) is then k less
    log2(f), which are exact but for the last part, plus log2(1 + r), of which r - r^2 / 2 is computed in pairs.
    """
    form = format_of(x)
    bits = x.signed_bits
    offset = bits - LOG2_START[x.dtype.name]
    index = offset >> (form.mantissa - _LOG_BITS)
    power = offset & -(1 << form.mantissa)  # k << mantissa
    r = fma((bits - power).bitcast(x.dtype), _entry("log2_inverse", index, x), -1.0)
    half = r * -0.5
    near = fma(half, r, r)
    rest = fma(half, r, r - near)  # exact but for a rounding of this small number
    rest = fma(r * r, r * horner("log_near", r), rest)
    log2e = constant_pair("log2e", x)
    count = power.to(x.dtype)
    if more is not None:
        count = count + more * 2.0**form.mantissa
    whole = fma(count, 2.0**-form.mantissa, _entry("log2_high", index, x))  # exact
    total = fma(near, log2e.hi, whole)
    lost = fma(
        near, log2e.hi, whole - total
    )  # the difference is exact: near * log2e is not greater than whole, or that 0
    low = fma(rest, log2e.hi, fma(near, log2e.lo, _entry("log2_low", index, x)))
    return Pair(total, low + lost)


def times(logarithm: Pair, y: Term) -> Pair:
    """Y times a logarithm, with the roundings of the lower part only."""
    head = two_product(logarithm.hi, y)
    return Pair(head.hi, fma(logarithm.lo, y, head.lo))


@dataclass(frozen=True, slots=True)
class Power:
    """2^(number / 16) * (1 + more), |more| < 0.1; bits: of the first factor, less number << (mantissa - 4)."""

    bits: Term
    more: Term
    number: Term

    def value(self) -> Term:
        """The power, which is certainly a normal number."""
        whole = (self.bits + (self.number << format_of(self.more).mantissa - _EXP_BITS)).bitcast(self.more.dtype)
        return fma(whole, self.more, whole)

    def any_value(self) -> Term:
        """The power, whatever it is, rounded once or, if it is subnormal, twice."""
        broken = Power(self.bits, self.more, self.number & (1 << _EXP_BITS) - 1)
        return scale(broken.value(), self.number >> _EXP_BITS)


def exp2_by_table(x: Pair) -> Power:
    """2^x, relative error half an ulp and 2^-(digits + 5), for |x| up to twice the greatest exponent.

    x need not be normalised, but its lower part is less than 1 / 3.
    """
    shifted = x.value() + _sixteenths(x.hi)
    return _power(shifted, (x.hi - (shifted - _sixteenths(x.hi))) + x.lo)


def exp2_of_product(x: Pair, y: Term) -> tuple[Power, Term]:
    """2^(x y) as exp2_by_table's, and x y to sixteenths; anything where |x y| is beyond twice the greatest exponent.

    What is left of x y needs no pair: it is rounded where it is small.
    """
    shifted = fma(x.value(), y, _sixteenths(y))  # the lower part times y may be a sixteenth and more
    count = shifted - _sixteenths(y)
    return _power(shifted, fma(x.lo, y, fma(x.hi, y, -count))), count


def _sixteenths(like: Term) -> float:
    """Adding it rounds to sixteenths, and leaves their number in the lowest bits."""
    return format_of(like).magic / (1 << _EXP_BITS)


def _power(shifted: Term, rest: Term) -> Power:
    """2^(number / 16 + rest), of the number in the lowest bits of a sum with `_sixteenths`."""
    bits = shifted.signed_bits
    number = bits - shifted.like(_sixteenths(shifted)).signed_bits
    more = fma(rest, horner("exp2_near", rest), _entry("exp2_rest", bits, rest))
    return Power(_entry("exp2_bits", bits, rest).signed_bits, more, number)


def by_intervals(name: str, size: Term) -> Term:
    """A function that rounds to 1 from some limit on, of a float32 >= 0, by a polynomial for each of 16 intervals.

    f(c + d) = f(c) + d P(d), about some c near the middle of the interval; f(c) in the table is nearly exact, and
    d P(d) is small, so that little but the last rounding is lost. In the first interval it is d + d P(d), where d is
    greater than the 0 in the table; elsewhere d is less than f(c).
    """
    rule = INTERVALS[name]
    bounded = where(size > rule.limit, rule.limit, size)
    shifted = bounded + rule.start if rule.scale == 1.0 else fma(bounded, rule.scale, rule.start)
    index = shifted.bits >> rule.dropped
    distance = bounded - _entry(f"{name}_centre", index, size)
    slope = _entry(f"{name}_c{rule.coefficients - 1}", index, size)
    for power in range(rule.coefficients - 2, -1, -1):
        slope = fma(slope, distance, _entry(f"{name}_c{power}", index, size))
    value = _entry(f"{name}_value", index, size)
    return fma(distance, slope, where(distance > value, distance, value))
