"""The parameters of a floating-point format, and the pieces of a float: exponent, significand, scaling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from fusec.base.dtypes import FLOAT32, FLOAT64, DType, signed_of, unsigned_of
from fusec.base.records import dataclass
from fusec.math.coefficients import polynomial
from fusec.math.constants import parts
from fusec.math.pairs import Pair
from fusec.math.value import Term, fma, where

INF = float("inf")
NAN = float("nan")
LONGEST_CHAIN = 8  # coefficients, by Horner's scheme at the end of Estrin's


@dataclass(frozen=True, slots=True)
class Format:
    """A format by its dtype; its significands have mantissa + 1 digits, the hidden one included."""

    dtype: DType

    @property
    def mantissa(self) -> int:
        """Stored significand bits."""
        return self.dtype.mantissa

    @property
    def bias(self) -> int:
        """Exponent bias, also the greatest exponent."""
        return (1 << (self.dtype.bits - 2 - self.mantissa)) - 1

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return float(2.0 ** (1 - self.bias))

    @property
    def signed(self) -> DType:
        """The signed integer of the same width."""
        return signed_of(self.dtype.bits)

    @property
    def unsigned(self) -> DType:
        """The unsigned integer of the same width."""
        return unsigned_of(self.dtype.bits)

    @property
    def sign_bit(self) -> int:
        """The bits of -0.0."""
        return 1 << (self.dtype.bits - 1)

    @property
    def magic(self) -> float:
        """1.5 * 2^mantissa: adding it rounds a small number to an integer, which then stands in the lowest bits."""
        return float(1.5 * 2.0**self.mantissa)

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`."""
        return (self.mantissa + self.bias << self.mantissa) + (1 << (self.mantissa - 1))

    def pick(self, single: float, double: float) -> float:
        """One of two numbers by format."""
        return single if self.dtype == FLOAT32 else double

    def pick_name(self, single: str, double: str) -> str:
        """One of two names by format."""
        return single if self.dtype == FLOAT32 else double


FORMATS = {dtype: Format(dtype) for dtype in (FLOAT32, FLOAT64)}


def format_of(x: Term) -> Format:
    """The format of a float value."""
    return FORMATS[x.dtype]


def constant_pair(name: str, x: Term) -> Pair:
    """A split constant in the format of x."""
    first, second, _ = parts(name, x.dtype)
    return Pair(x.like(first), x.like(second))


def horner(name: str, x: Term) -> Term:
    """A fitted polynomial at x, one fma a coefficient."""
    return horner_of(polynomial(name, x.dtype), x)


def horner_of(coefficients: Sequence[Term | float], x: Term) -> Term:
    """A polynomial at x, lowest power first."""
    result = x.like(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        result = fma(result, x, coefficient)
    return result


def estrin(name: str, x: Term) -> Term:
    """A fitted polynomial at x by few dependent steps, which matters where a function is all that a loop does."""
    return estrin_of([x.like(coefficient) for coefficient in polynomial(name, x.dtype)], x)


def coefficients_of_either(first_holds: Term, first: str, second: str, x: Term) -> list[Term]:
    """The coefficients of one of two fitted polynomials: choosing them costs less than a second polynomial."""
    pairs = zip_longest(polynomial(first, x.dtype), polynomial(second, x.dtype), fillvalue=0.0)
    return [where(first_holds, x.like(a), b) for a, b in pairs]


def estrin_of_either(first_holds: Term, first: str, second: str, x: Term) -> Term:
    """One of two fitted polynomials at x."""
    return estrin_of(coefficients_of_either(first_holds, first, second, x), x)


def estrin_of(coefficients: list[Term], x: Term) -> Term:
    """A polynomial at x, lowest power first, after G. Estrin, "Organization of computer systems", 1960.

    Neighbours are joined by x, then by x^2, and so on until a short chain is left for Horner's scheme. The first two
    coefficients stay out of it, so that the greatest roundings are those of Horner's scheme for all of them.
    """
    first, second, *rest = coefficients
    base = x
    while len(rest) > LONGEST_CHAIN:
        joined = [fma(b, base, a) for a, b in zip(rest[::2], rest[1::2], strict=False)]
        rest = joined + rest[2 * len(joined) :]
        base = base * base
    result = rest[-1]
    for coefficient in rest[-2::-1]:
        result = fma(result, base, coefficient)
    return fma(fma(result, x, second), x, first)


def with_sign(magnitude: Term, sign: Term) -> Term:
    """`magnitude`, which must not be negative, with the sign bit of `sign`."""
    mask = format_of(sign).sign_bit
    return (magnitude.bits | (sign.bits & mask)).bitcast(magnitude.dtype)


def copy_sign(magnitude: Term, sign: Term) -> Term:
    """The magnitude of one float with the sign bit of another.

    Applied after choices: LLVM 22 mistakes where(c, copy_sign(y, x), x) on AVX-512 (its issue 157929, VPTERNLOG).
    """
    return with_sign(abs(magnitude), sign)


def flip_sign(x: Term, sign: Term) -> Term:
    """x, negated where the sign bit of `sign` is set."""
    mask = format_of(x).sign_bit
    return (x.bits ^ (sign.bits & mask)).bitcast(x.dtype)


def power_of_two(n: Term) -> Term:
    """2^n for an integer n (of the float's width) in the range of normal exponents."""
    form = next(form for form in FORMATS.values() if form.signed == n.dtype)
    return ((n + form.bias) << form.mantissa).bitcast(form.dtype)


def vanishing(form: Format) -> int:
    """The least exponent of `scale`, where it makes 0 of anything.

    It is so small that the result would be 0 even if a number near 1 were as great as 2^digits.
    """
    return -form.bias - 2 * form.mantissa - 7


def scale(x: Term, n: Term) -> Term:
    """X * 2^n for a number near 1, rounded once; n: from `vanishing`, or one less, to as much above 0.

    The factors are chosen such that the second one is 0 for the least n: products that underflow take CPUs a hundred
    times as long, and exp(-inf) is common.
    """
    form = format_of(x)
    first = (n >> 1) + (form.bias + vanishing(form) // 2)
    return x * power_of_two(first) * power_of_two(n - first)


@dataclass(frozen=True, slots=True)
class SplitFloat:
    """x = (1 + fraction) * 2^exponent with the fraction in [-1/3, 1/3]; both floats, the exponent whole.

    unit: 2^-exponent, unless it or x is subnormal; then a finite number.
    """

    exponent: Term
    fraction: Term
    unit: Term


def split_exponent(x: Term) -> SplitFloat:
    """Exponent and fraction of a positive finite x, subnormals included."""
    form = format_of(x)
    up = form.mantissa + 1
    small = x < form.tiny
    normal = where(small, x * 2.0**up, x)
    bits = normal.signed_bits
    # subtracting the bits of 2/3 makes the exponent field count from significands of 2/3 instead of 1
    exponent = (bits - two_thirds_bits(form)) >> form.mantissa
    moved = exponent << form.mantissa
    fraction = (bits - moved).bitcast(form.dtype) - 1.0
    inverse = (form.bias << form.mantissa) - moved
    unit = where(inverse < 0, inverse.like(0), inverse).bitcast(form.dtype)
    return SplitFloat(exponent.to(form.dtype) - where(small, x.like(float(up)), 0.0), fraction, unit)


def two_thirds_bits(form: Format) -> int:
    """The bits of 2/3, rounded down."""
    return (form.bias - 1 << form.mantissa) + (1 << form.mantissa) // 3
