"""Exactly rounded sums and products in NumPy: rounding to odd, fused multiply-add, the upper half of a product.

A value rounded to odd (truncated, with the last bit set if anything was lost) to at least two bits more than wanted
rounds to nearest afterwards as the exact value would: Boldo and Melquiond, "Emulation of FMA and correctly rounded
sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57 (2008).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Float64 = NDArray[np.float64]

_SPLITTER = 2.0**27 + 1  # Veltkamp's constant: halves of 26 bits
_FAR = 200  # binary places by which the smaller term is out of reach of rounding, yet far from any limit


def _two_sum(a: Float64, b: Float64) -> tuple[Float64, Float64]:
    """(s, e) with s the rounded sum and s + e exactly a + b (Knuth); no overflow assumed."""
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def add_to_odd(a: Float64, b: Float64) -> Float64:
    """The sum rounded to odd; infinities and nan as in plain addition."""
    total, error = _two_sum(a, b)
    even = (np.atleast_1d(total).view(np.uint64) & np.uint64(1) == 0).reshape(np.shape(total))
    inexact = np.isfinite(total) & (error != 0) & ~np.isnan(error)
    return np.where(inexact & even, np.nextafter(total, np.copysign(np.inf, error)), total)


def to_odd_float32(value: Float64) -> NDArray[np.float32]:
    """A float64 rounded to odd in float32; beyond the largest float32 the result is the largest one, not infinity."""
    nearest = np.asarray(value.astype(np.float32))
    error = value - nearest.astype(np.float64)
    even = (np.atleast_1d(nearest).view(np.uint32) & np.uint32(1) == 0).reshape(nearest.shape)
    inexact = (error != 0) & np.isfinite(value)
    return np.where(inexact & even, np.nextafter(nearest, np.copysign(np.inf, error).astype(np.float32)), nearest)


def integer_to_odd(value: Array) -> Float64:
    """A 64-bit integer rounded to odd in float64; its upper 53 and lower 11 bits are each exact."""
    upper = (value >> 11) << 11
    return add_to_odd(upper.astype(np.float64), (value - upper).astype(np.float64))


# --- fused multiply-add ----------------------------------------------------------------------------------------


def fma(a: Array, b: Array, c: Array) -> Array:
    """Compute a * b + c with one rounding, for float32 or float64 operands."""
    a, b, c = np.broadcast_arrays(a, b, c)
    with np.errstate(all="ignore"):
        return _fma64(a, b, c) if a.dtype == np.float64 else _fma32(a, b, c)


def _fma32(a: Array, b: Array, c: Array) -> Array:
    """The product of two float32 is exact in float64, and so is every exponent: 53 bits rounded to odd do."""
    product = a.astype(np.float64) * b.astype(np.float64)
    return add_to_odd(product, c.astype(np.float64)).astype(np.float32)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    finite_factors = np.isfinite(a) & np.isfinite(b)
    nonzero_product = finite_factors & (a != 0) & (b != 0)
    result = np.asarray(a * b + c)  # exact where a factor is zero, infinite or nan, or c is nan
    result = np.where(finite_factors & np.isinf(c), c, result)  # where the product alone would overflow to infinity
    result = np.where((c == 0) & nonzero_product, a * b, result)  # keeps the sign of a product that underflows
    ordinary = nonzero_product & np.isfinite(c) & (c != 0)
    if ordinary.any():
        result[ordinary] = _fma_ordinary(a[ordinary], b[ordinary], c[ordinary])
    return result


def _fma_ordinary(a: Float64, b: Float64, c: Float64) -> Float64:
    """Finite operands, none zero: sum the significands near 1, scale at the end, redo results near the lower limit."""
    (ma, ea), (mb, eb), (mc, ec) = np.frexp(a), np.frexp(b), np.frexp(c)
    product_exponent = ea.astype(np.int64) + eb
    distance = ec - product_exponent
    near = np.clip(distance, -_FAR, _FAR)
    scale = np.where(distance > _FAR, ec - _FAR, product_exponent)
    total = _product_plus(ma, mb, np.ldexp(mc, near))
    result: Float64 = np.ldexp(total, scale.astype(np.int32))
    # A subnormal result has fewer than 53 bits, so `total` is rounded already and would be rounded twice.
    risky = (total != 0) & (np.frexp(total)[1] + scale <= -1021)
    for lane in np.flatnonzero(risky):
        result[lane] = _fma_exact(a[lane], b[lane], c[lane])
    return result


def _product_plus(a: Float64, b: Float64, c: Float64) -> Float64:
    """Compute a * b + c rounded once where nothing can over- or underflow (Fmac of the paper)."""
    high = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low
    inner, inner_error = _two_sum(c, low)
    outer, outer_error = _two_sum(high, inner)
    return outer + add_to_odd(outer_error, inner_error)


def _split(value: Float64) -> tuple[Float64, Float64]:
    """Two halves of at most 26 bits that sum to the value (Veltkamp)."""
    shifted = _SPLITTER * value
    high = shifted - (shifted - value)
    return high, value - high


def _fma_exact(a: float, b: float, c: float) -> float:
    """By rational arithmetic; the division of Python's integers is correctly rounded, subnormals included."""
    from fractions import Fraction  # hardly ever needed

    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return exact.numerator / exact.denominator


# --- wide products ---------------------------------------------------------------------------------------------


def multiply_high(a: Array, b: Array) -> Array:
    """The upper half of the double-width product of two integers of one dtype."""
    bits = 8 * a.dtype.itemsize
    if bits < 64:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return np.asarray((a.astype(wide) * b.astype(wide)) >> wide(bits)).astype(a.dtype)
    high = _multiply_high_unsigned(a.astype(np.uint64), b.astype(np.uint64))
    if a.dtype.kind == "u":
        return high
    # A negative operand reads as itself plus 2**64: take the other operand off the upper half again.
    correction = np.where(a < 0, b, 0) + np.where(b < 0, a, 0)
    return np.asarray(high.astype(np.int64) - correction)


def _multiply_high_unsigned(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Schoolbook on 32-bit halves; no partial sum exceeds 64 bits."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return np.asarray(a_high * b_high + (middle >> half) + (other >> half))
