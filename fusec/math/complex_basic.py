"""Complex arithmetic, comparison and parts."""

from __future__ import annotations

from fusec.math import basic
from fusec.math.body import call, write
from fusec.math.formats import INF, NAN, copy_sign, format_of
from fusec.math.power import hypot
from fusec.math.value import Term, make_complex, rint, where


def add(x: Term, y: Term) -> Term:
    """X + y."""
    return make_complex(x.real + y.real, x.imag + y.imag)


def subtract(x: Term, y: Term) -> Term:
    """X - y."""
    return make_complex(x.real - y.real, x.imag - y.imag)


def negative(x: Term) -> Term:
    """-x."""
    return make_complex(-x.real, -x.imag)


def multiply(x: Term, y: Term) -> Term:
    """X * y by the schoolbook formula, as NumPy computes it: each product and sum rounded."""
    return make_complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def divide(x: Term, y: Term) -> Term:
    """X / y by Smith's method (R. L. Smith, "Algorithm 116: complex division", 1962), as NumPy computes it."""
    flat = abs(y.real) >= abs(y.imag)
    larger, smaller = where(flat, y.real, y.imag), where(flat, y.imag, y.real)
    ratio = smaller / larger
    unit = 1.0 / (larger + smaller * ratio)
    re = where(flat, x.real + x.imag * ratio, x.real * ratio + x.imag) * unit
    im = where(flat, x.imag - x.real * ratio, x.imag * ratio - x.real) * unit
    zero = larger.eq(0.0) & smaller.eq(0.0)  # a nan real part leaves the imaginary one the larger
    size = abs(larger)
    return make_complex(where(zero, x.real / size, re), where(zero, x.imag / size, im))


def equal(x: Term, y: Term) -> Term:
    """Whether both parts are equal."""
    return x.real.eq(y.real) & x.imag.eq(y.imag)


def not_equal(x: Term, y: Term) -> Term:
    """Whether a part differs."""
    return x.real.ne(y.real) | x.imag.ne(y.imag)


def conj(x: Term) -> Term:
    """The conjugate."""
    return make_complex(x.real, -x.imag)


def norm(x: Term) -> Term:
    """The square of the absolute value."""
    return x.real * x.real + x.imag * x.imag


def square(x: Term) -> Term:
    """X * x, by the same formula as the product."""
    return multiply(x, x)


def reciprocal(x: Term) -> Term:
    """1 / x by Smith's method, as NumPy computes it: nan at 0."""
    flat = abs(x.imag) <= abs(x.real)
    larger, smaller = where(flat, x.real, x.imag), where(flat, x.imag, x.real)
    ratio = smaller / larger
    below = larger + smaller * ratio
    return make_complex(where(flat, 1.0, ratio) / below, -where(flat, ratio, 1.0) / below)


def rint_complex(x: Term) -> Term:
    """Both parts rounded to the nearest integers, halves to even."""
    return make_complex(rint(x.real), rint(x.imag))


def sign(x: Term) -> Term:
    """X / |x|; 0 at 0, nan if either part is nan; one infinite part alone counts, two give nan."""
    form = format_of(x.real)
    endless = abs(x.real).eq(INF) | abs(x.imag).eq(INF)
    unit = [
        where(abs(part).eq(INF), copy_sign(part.like(1.0), part), copy_sign(part.like(0.0), part))
        for part in (x.real, x.imag)
    ]
    re, im = (where(endless, limit, part) for limit, part in zip(unit, (x.real, x.imag), strict=True))
    great = (abs(re) > 2.0 ** (form.bias - 2)) | (abs(im) > 2.0 ** (form.bias - 2))
    small = (abs(re) < form.tiny * 2.0**form.mantissa) & (abs(im) < form.tiny * 2.0**form.mantissa)
    factor = where(great, 0.25, where(small, re.like(2.0 ** (2 * form.mantissa)), 1.0))
    re, im = re * factor, im * factor
    size = call(write(f"fusec_hypot_{re.dtype}", (re.dtype, im.dtype), hypot), re, im)
    both = abs(x.real).eq(INF) & abs(x.imag).eq(INF)
    unknown = both | x.real.ne(x.real) | x.imag.ne(x.imag)
    return make_complex(*(where(unknown, NAN, where(size.eq(0.0), 0.0, part / size)) for part in (re, im)))


def proj(x: Term) -> Term:
    """X, but one infinity for all: inf with a zero of the imaginary part's sign."""
    endless = isinf(x)
    return make_complex(where(endless, INF, x.real), copy_sign(where(endless, 0.0, x.imag), x.imag))


def isnan(x: Term) -> Term:
    """Whether a part is nan."""
    return basic.isnan(x.real) | basic.isnan(x.imag)


def isinf(x: Term) -> Term:
    """Whether a part is infinite, the other one nan or not."""
    return basic.isinf(x.real) | basic.isinf(x.imag)


def isfinite(x: Term) -> Term:
    """Whether both parts are finite."""
    return basic.isfinite(x.real) & basic.isfinite(x.imag)
