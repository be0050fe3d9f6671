"""Exact functions: choice, sign and class of numbers, neighbours, scaling, and the cheapest arithmetic."""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32, STORAGE_FLOATS
from fusec.math.formats import INF, copy_sign, format_of, power_of_two
from fusec.math.value import Term, trunc, where


def minimum(x: Term, y: Term) -> Term:
    """The lesser; for floats nan if either is nan, and -0.0 is less than 0.0."""
    if not x.dtype.is_float:
        return where(y < x, y, x)
    return where(x.eq(y), (x.bits | y.bits).bitcast(x.dtype), where((x < y) | x.ne(x), x, y))


def maximum(x: Term, y: Term) -> Term:
    """The greater; for floats nan if either is nan, and 0.0 is greater than -0.0."""
    if not x.dtype.is_float:
        return where(y > x, y, x)
    return where(x.eq(y), (x.bits & y.bits).bitcast(x.dtype), where((x > y) | x.ne(x), x, y))


def fmin(x: Term, y: Term) -> Term:
    """C's fmin: the lesser, or the one that is not nan."""
    return where(y.ne(y), x, where(x.ne(x), y, minimum(x, y))) if x.dtype.is_float else minimum(x, y)


def fmax(x: Term, y: Term) -> Term:
    """C's fmax: the greater, or the one that is not nan."""
    return where(y.ne(y), x, where(x.ne(x), y, maximum(x, y))) if x.dtype.is_float else maximum(x, y)


def clip(x: Term, low: Term, high: Term) -> Term:
    """X moved into [low, high]: the Array API's, where nan stays and the upper bound counts if the bounds cross."""
    return minimum(maximum(x, low), high)


def square(x: Term) -> Term:
    """X * x."""
    return x * x


def reciprocal(x: Term) -> Term:
    """1 / x."""
    return 1.0 / x


def heaviside(x: Term, at_zero: Term) -> Term:
    """0 left of 0, 1 right of it, `at_zero` there; nan gives nan."""
    step = where(x.eq(0.0), at_zero, where(x < 0.0, x.like(0.0), 1.0))
    return where(x.ne(x), x, step)


def sign(x: Term) -> Term:
    """-1, 0 or 1; nan gives nan."""
    if x.dtype.kind == "unsigned":
        return where(x.ne(0), x.like(1), 0)
    result = where(x > 0, x.like(1), where(x < 0, x.like(-1), 0))
    return where(x.ne(x), x, result) if x.dtype.is_float else result


def signbit(x: Term) -> Term:
    """Whether the sign bit is set."""
    return x.signed_bits < 0


def isnan(x: Term) -> Term:
    """Whether x is nan."""
    return x.ne(x)


def isinf(x: Term) -> Term:
    """Whether x is infinite."""
    return abs(x).eq(INF)


def isfinite(x: Term) -> Term:
    """Whether x is neither infinite nor nan."""
    return abs(x) < INF


def copysign(x: Term, y: Term) -> Term:
    """The magnitude of x with the sign of y."""
    return copy_sign(x, y)


def round_(x: Term) -> Term:
    """The nearest integer, halves away from zero."""
    whole = trunc(x)
    away = where(abs(x - whole) >= 0.5, copy_sign(x.like(1.0), x), 0.0)  # the difference is exact
    return copy_sign(where(abs(x) < INF, whole + away, x), x)


def nextafter(x: Term, y: Term) -> Term:
    """The next number after x towards y, of the type of both, narrow floats included."""
    wide = FLOAT32 if x.dtype in STORAGE_FLOATS else x.dtype
    here, there, bits = x.to(wide), y.to(wide), x.signed_bits
    outward = (there > here).eq(here > 0.0)
    stepped = (bits + where(outward, bits.like(1), -1)).bitcast(x.dtype)
    sign = y.signed_bits & bits.like(-1 << (x.dtype.bits - 1))
    least = (sign | 1).bitcast(x.dtype)  # the least subnormal, with the sign of y
    moved = where(here.eq(0.0), least, stepped)
    unordered = here.ne(here) | there.ne(there)
    return where(unordered, (here + there).to(x.dtype), where(here.eq(there), y, moved))


def ldexp(x: Term, n: Term) -> Term:
    """X * 2^n, rounded once."""
    form = format_of(x)
    far = 2 * (form.bias + 2 * form.mantissa)  # what every number over- or underflows by
    count = n
    if n.dtype.bits > 8:  # 8 bits cannot reach so far
        count = where(count > far, count.like(far), count)
        count = where(count < -far, count.like(-far), count) if n.dtype.kind == "signed" else count
    exponent, significand = exponent_of(x)
    total = exponent + count.to(form.signed)
    least, greatest = 1 - form.bias, form.bias
    normal = where(total < least, total.like(least), where(total > greatest, total.like(greatest), total))
    beyond = total - normal
    beyond = where(beyond > 1, beyond.like(1), beyond)
    beyond = where(beyond < -form.mantissa - 3, beyond.like(-form.mantissa - 3), beyond)
    scaled = significand * power_of_two(normal) * power_of_two(beyond)  # the first product is exact
    return where((abs(x) < INF) & x.ne(0.0), scaled, x)


def exponent_of(x: Term) -> tuple[Term, Term]:
    """Binary exponent and significand in [1, 2), which has the sign, of a finite x other than 0."""
    form = format_of(x)
    up = form.mantissa + 1
    small = abs(x) < form.tiny
    bits = where(small, x * 2.0**up, x).signed_bits
    mask = 2 * form.bias + 1
    exponent = ((bits >> form.mantissa) & mask) - form.bias
    significand = (bits & ~(mask << form.mantissa)) | form.bias << form.mantissa
    return exponent - where(small, exponent.like(up), 0), significand.bitcast(x.dtype)
