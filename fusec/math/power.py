"""Powers and roots."""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32
from fusec.math.body import call, guard, write
from fusec.math.exponential import clamp
from fusec.math.formats import INF, NAN, copy_sign, flip_sign, format_of, horner, power_of_two, vanishing
from fusec.math.pairs import Pair, two_product
from fusec.math.tabulated import exp2_by_table, exp2_of_product, log2_by_table, times
from fusec.math.value import Term, fma, sqrt, trunc, where


def pow_(x: Term, y: Term) -> Term:
    """x^y as 2^(y log2 |x|) by tables; special cases as in C99, Annex F.

    Greatest error seen: float32 0.82 ulp, float64 0.78 ulp.
    """
    form, size = format_of(x), abs(x)
    power, exponent = exp2_of_product(log2_by_table(size), y)
    result = power.value()
    near = abs(exponent) < form.bias - 1.25  # the result is certainly normal
    infinity = (2 * form.bias + 1) << form.mantissa
    normal = x.bits - (1 << form.mantissa) < infinity - (1 << form.mantissa)  # x is, and positive
    limits = write(f"fusec_pow_limits_{x.dtype}", (x.dtype,) * 4, _power_limits)
    return guard(~(normal & near), call(limits, x, y, result, exponent), result)


def cube(x: Term) -> Term:
    """x^3, with the error of the square.

    Errs by at most 0.501 ulp, and by 1 ulp where the other part of the sum is subnormal.
    """
    form, square = format_of(x), two_product(x, x)
    # the error's part overflows before the cube does, and is nan behind an infinite square
    bounded = square.hi < 2.0 ** form.pick(86, 683)
    return fma(square.hi, x, where(bounded, square.lo * x, 0.0))


def _power_far(size: Term, y: Term) -> Term:
    """size^y for any positive finite size and finite y, whatever the result."""
    form = format_of(size)
    up = form.mantissa + 1
    small = size < form.tiny
    logarithm = log2_by_table(where(small, size * 2.0**up, size), where(small, size.like(-float(up)), 0.0))
    # the logarithm next to 1 is at least 2^-digits, so beyond this all over- or underflows
    far = 2.0 ** form.pick(34, 66)
    exponent = times(logarithm, clamp(y, -far, far))
    bounded = clamp(exponent.hi, float(vanishing(form)), form.bias + 2.0)
    rest = where(bounded.eq(exponent.hi), exponent.lo, 0.0)
    return exp2_by_table(Pair(bounded, rest)).any_value()


def _power_limits(x: Term, y: Term, result: Term, exponent: Term) -> Term:
    """|x|^y for finite x and y other than 0, and C99's values and signs elsewhere.

    result: it, if x is normal and the exponent of 2 that it comes to is not near the limits.
    """
    form, size, falling = format_of(x), abs(x), y < 0.0
    is_good = (size >= form.tiny) & (abs(exponent) < form.bias - 1.25)
    far = write(f"fusec_pow_far_{x.dtype}", (x.dtype,) * 2, _power_far)
    result = guard(~is_good, call(far, size, y), result)
    result = where(size.eq(0.0), where(falling, x.like(INF), 0.0), result)
    result = where(size.eq(INF), where(falling, x.like(0.0), INF), result)
    endless = where((size > 1.0) ^ falling, x.like(INF), 0.0)
    result = where(abs(y).eq(INF), where(size.eq(1.0), 1.0, endless), result)
    whole, half = trunc(y).eq(y), y * 0.5
    odd = whole & trunc(half).ne(half) & (abs(y) < INF)
    result = flip_sign(result, where(odd, x, 0.0))
    result = where((x < 0.0) & ~whole & (size < INF), NAN, result)
    result = where(x.ne(x) | y.ne(y), NAN, result)
    return where(x.eq(1.0) | y.eq(0.0), 1.0, result)


def rsqrt(x: Term) -> Term:
    """1 / sqrt(x), one correction after the quotient.

    Greatest error seen: float32 0.99 ulp (all arguments), float64 0.99 ulp.
    """
    form = format_of(x)
    up = 2 * (form.mantissa // 2 + 1)
    small = x < form.tiny
    scaled = where(small, x * 2.0**up, x)  # so that residues stay normal
    root = sqrt(scaled)
    first = 1.0 / root
    error = fma(-root, root, scaled) / (root + root)
    rest = fma(-first, root, 1.0) - first * error
    near = fma(first, rest, first)
    return where((x > 0.0) & (x < INF), where(small, near * 2.0 ** (up // 2), near), first)


def cbrt(x: Term) -> Term:
    """The real cube root, from a polynomial for m^(-1/3), Newton steps and one exact residue.

    Greatest error seen: float32 0.50 ulp (all arguments), float64 0.51 ulp.
    """
    form = format_of(x)
    size = abs(x)
    up = 3 * (form.mantissa // 3 + 1)
    small = size < form.tiny
    bits = where(small, size * 2.0**up, size).signed_bits
    exponent = (bits >> form.mantissa) - form.bias
    # rint((exponent - 1) / 3) is floor(exponent / 3), for the fractions are 0 and 1/3 on either side
    shifted = fma(exponent.to(form.dtype) - 1.0, 1.0 / 3.0, form.magic)
    third = shifted.signed_bits - form.magic_bits
    m = (bits - (third + third + third << form.mantissa)).bitcast(form.dtype)  # in [1, 8)
    inverse = horner("cbrt", m)
    for _ in range(2 if form.dtype == FLOAT32 else 3):  # relative error 2^-7, 2^-13, 2^-25, 2^-49
        inverse = inverse * fma(m * inverse * inverse, inverse * (-1.0 / 3.0), 4.0 / 3.0)
    guess = m * inverse * inverse
    square = two_product(guess, guess)
    residue = fma(-square.lo, guess, fma(-square.hi, guess, m))
    root = fma(residue * inverse * inverse, 1.0 / 3.0, guess)
    scaled = root * power_of_two(third) * where(small, x.like(2.0 ** -(up // 3)), 1.0)
    return copy_sign(where((size > 0.0) & (size < INF), scaled, size), x)


def hypot(x: Term, y: Term) -> Term:
    """sqrt(x^2 + y^2) without undue over- or underflow; inf if either is infinite.

    Greatest error seen: 0.502 ulp, and 0.76 ulp next to subnormal results.
    """
    form = format_of(x)
    root, total = _root_of_squares(x, y)
    least = (form.bias + int(form.pick(-80, -900))) << form.mantissa  # so that errors of the squares are normal
    near = total.bits - least < ((2 * form.bias - 3) << form.mantissa) - least
    zero = ((x.bits | y.bits) << 1).eq(0)
    far = write(f"fusec_hypot_far_{x.dtype}", (x.dtype,) * 2, _hypot_far)
    return guard(~(near | zero), call(far, x, y), root)


def _root_of_squares(x: Term, y: Term) -> tuple[Term, Term]:
    """sqrt(x^2 + y^2), and the sum; both squares and their errors are normal or 0."""
    form = format_of(x)
    one, other = two_product(x, x), two_product(y, y)
    total = one.hi + other.hi
    larger, smaller = where(one.hi < other.hi, other.hi, one.hi), where(one.hi < other.hi, one.hi, other.hi)
    root = sqrt(total)
    rest = fma(-root, root, total) + ((smaller - (total - larger)) + (one.lo + other.lo))
    # half the reciprocal of the root, to 5 % from its bits and to 0.3 % after a step, is enough for less than an ulp
    bits = (2 * form.bias - 2 << form.mantissa) + int(0.899 * 2.0**form.mantissa)
    half = (bits - root.bits).bitcast(form.dtype)
    change = rest * half
    return root + fma(change, fma(-(root + root), half, 1.0), change), total


def _hypot_far(x: Term, y: Term) -> Term:
    """The same for all numbers."""
    form = format_of(x)
    high, low = abs(x), abs(y)
    larger = where(high < low, low, high)
    great, small = larger > 2.0 ** (form.bias // 2 - 2), larger < 2.0 ** -(form.bias // 2 - form.mantissa - 4)
    shift = 2.0 ** (form.bias // 2 + form.mantissa)
    factor = where(great, 1.0 / shift, where(small, x.like(shift), 1.0))
    root, _ = _root_of_squares(x * factor, y * factor)
    root = root * where(great, shift, where(small, x.like(1.0 / shift), 1.0))
    root = where(x.ne(x) | y.ne(y), NAN, root)
    return where(high.eq(INF) | low.eq(INF), INF, root)
