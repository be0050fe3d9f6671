"""Complex arithmetic, comparison and parts."""

from __future__ import annotations

from fusec.math.value import Value, make_complex, where


def add(x: Value, y: Value) -> Value:
    """X + y."""
    return make_complex(x.real + y.real, x.imag + y.imag)


def subtract(x: Value, y: Value) -> Value:
    """X - y."""
    return make_complex(x.real - y.real, x.imag - y.imag)


def negative(x: Value) -> Value:
    """-x."""
    return make_complex(-x.real, -x.imag)


def multiply(x: Value, y: Value) -> Value:
    """X * y by the schoolbook formula, as NumPy computes it: each product and sum rounded."""
    return make_complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def divide(x: Value, y: Value) -> Value:
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


def equal(x: Value, y: Value) -> Value:
    """Whether both parts are equal."""
    return x.real.eq(y.real) & x.imag.eq(y.imag)


def not_equal(x: Value, y: Value) -> Value:
    """Whether a part differs."""
    return x.real.ne(y.real) | x.imag.ne(y.imag)


def conj(x: Value) -> Value:
    """The conjugate."""
    return make_complex(x.real, -x.imag)


def norm(x: Value) -> Value:
    """The square of the absolute value."""
    return x.real * x.real + x.imag * x.imag
