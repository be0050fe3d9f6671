"""Quotients by a constant, rounded as IEEE's division does: a product with the reciprocal, and one correction.

P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990: for r = 1/c rounded and
q within a unit of x/c, the residue x - qc is exact, and q + (x - qc) r rounds as x/c. N. Brisebarre, J.-M. Muller and
S. Raina, "Accelerating correctly rounded floating-point division when the divisor is known in advance", 2004: x times
a reciprocal of two parts has too small an error to round differently, except for a few x that can be tested.

Note [Ends of the range]: there are no branches for exceptional x, so these must come out of the same operations.
- Infinities: the residue is nan, for which `where` gives a number; q is infinite already.
- Zeros: the residue is +0, and its product with -r is -0, to which either zero adds as it stands. The parts of a
  reciprocal have one sign, so that q has the sign of x.
- Subnormal results: the residue must be exact. It is a multiple of the least number if c is whole. Else x and c are
  multiplied by a power of two that makes c whole; where that overflows the residue counts as 0, for then the reciprocal
  of two parts alone is enough. Results are at least 1/(2 odd) units from the middle between two numbers, or 1/c if c is
  even, while an error of the reciprocal moves them by less.
- Ties: x/c can lie in the middle only if c is even and the result subnormal. The quotient by the odd part is then exact
  and rounds to even when it is halved. The reciprocal is rounded down, so that half a unit of residue moves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import floor

import numpy as np

from fusec.base.records import dataclass
from fusec.math.body import Formula
from fusec.math.formats import INF, Format
from fusec.math.value import Term, fma, where

NEAR = 32  # binary places from 1 within which neither a scaled operand nor a part of a reciprocal leaves its range


@dataclass(frozen=True, slots=True)
class Divisor:
    """odd * 2^power, for numbers of so many digits."""

    odd: int
    power: int
    digits: int

    @property
    def value(self) -> Fraction:
        """The number."""
        return self.odd * Fraction(2) ** self.power

    def rounded(self, exact: Fraction, down: bool = False) -> Fraction:
        """The number of as many digits that is nearest to a positive one, or the next one below."""
        places = self.digits - exact.numerator.bit_length() + exact.denominator.bit_length()
        places -= exact * Fraction(2) ** places >= 2**self.digits
        unit: Fraction = Fraction(2) ** -places
        return (floor if down else round)(exact / unit) * unit

    def parts(self, exact: Fraction) -> tuple[Fraction, Fraction]:
        """A positive number as the sum of two, the first of which is not greater."""
        first = self.rounded(exact, down=True)
        return first, self.rounded(exact - first)


def by_constant(form: Format, number: float) -> Formula | None:
    """The formula for x / number, a positive number that is no power of two; None if only a division is as exact."""
    above, below = number.as_integer_ratio()
    power = (above & -above).bit_length() - below.bit_length()
    divisor = Divisor(above >> max(power, 0), power, form.mantissa + 1)
    if power < 0:
        fits = 2.0**-NEAR < number < 2.0**NEAR and _all_round(divisor)
        return partial(_by_fraction, divisor) if fits else None
    if divisor.odd >> divisor.digits - 3 or above >> divisor.digits - 2:
        return None
    return partial(_by_even if power else _by_odd, divisor)


def _by_odd(c: Divisor, x: Term) -> Term:
    inverse = float(c.rounded(1 / c.value))
    return _corrected(x * inverse, float(c.value), inverse, x)


def _corrected(near: Term, divisor: float, inverse: float, x: Term) -> Term:
    """`near`, a quotient of x, corrected by its residue."""
    least = -float(np.finfo(x.dtype.numpy).max)
    residue = fma(near, divisor, -x)
    return fma(where(residue > least, residue, least), -inverse, near)


def _by_even(c: Divisor, x: Term) -> Term:
    """The quotient by the odd part o, which is exact where x / c is a tie, halved; see Note [Ends of the range].

    For n digits, a reciprocal with an error of up to 2^-(n + 1) is enough. Of one in two parts, the product with the
    second may lose half the least number. Ties are k o for multiples k of 2^(power - 1) below 2^(n + power - 1) / o,
    and these times the second part are below a half, or at least half an ulp away from what rounds so far.
    """
    inverse = c.rounded(Fraction(1, c.odd))
    is_near = abs(inverse * c.odd - 1) <= Fraction(1, 2 << c.digits)
    whole = _product(x, (inverse, Fraction(0)) if is_near else c.parts(Fraction(1, c.odd)))
    return _corrected(whole * 2.0**-c.power, float(c.value), float(c.rounded(1 / c.value, down=True)), x)


def _product(x: Term, parts: tuple[Fraction, Fraction]) -> Term:
    first, second = map(float, parts)
    return fma(x, first, x * second) if second else x * first


def _by_fraction(c: Divisor, x: Term) -> Term:
    near = _product(x, c.parts(1 / c.value))
    residue = fma(near, float(c.odd), x * -(2.0**-c.power))
    return fma(where(abs(residue) < INF, residue, 0.0), -float(c.rounded(Fraction(1, c.odd))), near)


def _all_round(c: Divisor) -> bool:
    """Whether a reciprocal of two parts is enough for all dividends, if results are normal."""
    first, second = c.parts(Fraction(1, c.odd))
    return all(
        c.rounded(x * first + c.rounded(x * second)) == c.rounded(Fraction(x, c.odd)) for x in _hardest(c.odd, c.digits)
    )


def _hardest(odd: int, digits: int) -> Iterator[int]:
    """The dividends of so many digits whose quotients are within 2^(1 - digits) units of a middle.

    With the divisor d moved up to as many digits, x 2^places and d times a middle of digits + 1 digits, which is odd,
    differ by at most 4, and by an odd multiple of the power of two in d.
    """
    free = digits - odd.bit_length()
    for places in (digits, digits + 1):
        step = 1 << places - free
        for gap in (-3, -1, 1, 3):
            if abs(gap) << free <= 4:
                least = gap * pow(odd, -1, step) % step
                for middle in range(least + (1 << digits) // step * step, 2 << digits, step):
                    yield (odd * middle - gap << free) >> places
