"""Arithmetic on unevaluated sums hi + lo of two floats, about twice the precision of one.

The error-free sums are those of Knuth and Dekker; products use fma (T. J. Dekker, "A floating-point technique for
extending the available precision", 1971; Joldes, Muller, Popescu, "Tight and rigorous error bounds for basic building
blocks of double-word arithmetic", 2017).
"""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.math.value import Term, fma, sqrt, where


@dataclass(frozen=True, slots=True)
class Pair:
    """The exact value hi + lo; normalised pairs have |lo| <= ulp(hi) / 2 or nearly so."""

    hi: Term
    lo: Term

    def __add__(self, other: Pair | Term | float) -> Pair:
        if isinstance(other, Pair):
            total = two_sum(self.hi, other.hi)
            return quick_sum(total.hi, total.lo + (self.lo + other.lo))
        total = two_sum(self.hi, self.hi.like(other))
        return quick_sum(total.hi, total.lo + self.lo)

    def __neg__(self) -> Pair:
        return Pair(-self.hi, -self.lo)

    def __sub__(self, other: Pair) -> Pair:
        return self + -other

    def __mul__(self, other: Pair | Term) -> Pair:
        if isinstance(other, Pair):
            product = two_product(self.hi, other.hi)
            return quick_sum(product.hi, fma(self.hi, other.lo, fma(self.lo, other.hi, product.lo)))
        product = two_product(self.hi, other)
        return quick_sum(product.hi, fma(self.lo, other, product.lo))

    def __truediv__(self, other: Pair) -> Pair:
        quotient = self.hi / other.hi
        rest = fma(-quotient, other.hi, self.hi) + fma(-quotient, other.lo, self.lo)
        return quick_sum(quotient, rest / other.hi)

    def scaled(self, factor: Term | float) -> Pair:
        """Both parts times a power of two."""
        return Pair(self.hi * factor, self.lo * factor)

    def value(self) -> Term:
        """The nearest single float."""
        return self.hi + self.lo


def two_sum(x: Term, y: Term | float) -> Pair:
    """X + y exactly, for any order of magnitudes."""
    y = x.like(y)
    total = x + y
    part = total - x
    return Pair(total, (x - (total - part)) + (y - part))


def quick_sum(x: Term, y: Term) -> Pair:
    """X + y exactly, if the exponent of x is at least that of y."""
    total = x + y
    return Pair(total, y - (total - x))


def two_product(x: Term, y: Term) -> Pair:
    """X * y exactly, unless it over- or underflows."""
    product = x * y
    return Pair(product, fma(x, y, -product))


def pair_sqrt(x: Pair) -> Pair:
    """The square root; 0 at 0."""
    root = sqrt(x.hi)
    rest = (fma(-root, root, x.hi) + x.lo) / (root + root)
    return quick_sum(root, where(x.hi.eq(0.0), 0.0, rest))


def reciprocal(x: Pair) -> Pair:
    """1 / x."""
    first = 1.0 / x.hi
    rest = fma(-first, x.hi, 1.0) - first * x.lo
    return quick_sum(first, first * rest)


def choose(condition: Term, then: Pair, otherwise: Pair) -> Pair:
    """`then` if the condition holds, else `otherwise`."""
    return Pair(where(condition, then.hi, otherwise.hi), where(condition, then.lo, otherwise.lo))
