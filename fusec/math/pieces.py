"""The pieces of a float: fraction and exponent, integral and fractional part, the distance to its neighbour."""

from __future__ import annotations

from fusec.base.dtypes import FLOAT32, INT32, STORAGE_FLOATS
from fusec.math.basic import exponent_of, nextafter
from fusec.math.formats import INF, copy_sign
from fusec.math.value import Term, trunc, where


def _has_exponent(x: Term) -> Term:
    """Whether x is a finite number other than 0."""
    return x.ne(0.0) & (abs(x) < INF)


def frexp_mantissa(x: Term) -> Term:
    """The fraction m of x = m * 2^e with 1/2 <= |m| < 1; zeros, infinities and nan give themselves."""
    return where(_has_exponent(x), exponent_of(x)[1] * 0.5, x)


def frexp_exponent(x: Term) -> Term:
    """The exponent e of x = m * 2^e with 1/2 <= |m| < 1; 0 for zeros, infinities and nan."""
    exponent = exponent_of(x)[0].to(INT32)
    return where(_has_exponent(x), exponent + 1, 0)


def ilogb(x: Term) -> Term:
    """The binary exponent of |x|; INT32_MAX for infinity, INT32_MIN for 0 and nan, as on most platforms."""
    exponent = exponent_of(x)[0].to(INT32)
    limited = where(abs(x).eq(INF), exponent.like(2**31 - 1), exponent)
    return where(x.eq(0.0) | x.ne(x), limited.like(-(2**31)), limited)


def logb(x: Term) -> Term:
    """The binary exponent of |x| as a float; -inf for 0, inf for infinities."""
    exponent = exponent_of(x)[0].to(x.dtype)
    return where(_has_exponent(x), exponent, where(x.eq(0.0), -INF, abs(x)))


def modf_fraction(x: Term) -> Term:
    """What truncation takes off, with the sign of x; 0 for infinities."""
    rest = where(abs(x).eq(INF), 0.0, x - trunc(x))
    return copy_sign(rest, x)


def spacing(x: Term) -> Term:
    """The distance to the next number away from 0, with the sign of x but positive at zeros; nan for infinities.

    Zeros of eight bits have a sign, as in ml_dtypes; nan where no number is further away and there are no infinities.
    """
    wide = FLOAT32 if x.dtype in STORAGE_FLOATS else x.dtype
    here = x.to(wide)
    if x.dtype.bits == 8:
        return ((x.signed_bits + 1).bitcast(x.dtype).to(wide) - here).to(x.dtype)
    beyond = where(here < 0.0, here.like(-INF), INF).to(x.dtype)
    return (nextafter(x, beyond).to(wide) - here).to(x.dtype)
