"""Every primitive op on NumPy arrays, exactly as the op table defines it: the reference for all targets.

Lanes are independent; operands broadcast. Nothing here warns, whatever the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, STORAGE_FLOATS, DType, from_numpy, real_type
from fusec.base.ops import TABLE
from fusec.ir import rounding
from fusec.ir.expr import Const

Array = NDArray[Any]


def look_up(entries: Sequence[Const], index: Array) -> Array:
    """The entries of a constant table, selected by the low bits of integers."""
    table = np.array([entry.value for entry in entries])
    return np.asarray(table[index & (len(entries) - 1)])


def evaluate(op: str, args: Sequence[Array], target: DType) -> Array:
    """Apply a primitive op to arrays of lanes; the result has dtype `target`.

    Raises AssertionError for an op that `fusec.math` defines: such an op has no meaning before it is expanded.
    """
    row = TABLE[op]
    assert row.primitive, f"op {op} is defined by fusec.math; expand the program before evaluating it"
    assert len(args) == row.arity, f"op {op} takes {row.arity} operands, got {len(args)}"
    with np.errstate(all="ignore"):
        if op == "convert":
            return convert(args[0], target)
        if op == "bitcast":
            return bitcast(args[0], target)
        if op == "where":
            return np.where(args[0], args[1], args[2]).astype(target.numpy, copy=False)
        source = _row(args[0])
        if source in STORAGE_FLOATS:
            widened = [convert(arg, FLOAT32) for arg in args]
            return convert(np.asarray(_RULES[op](*widened)), target)
        rules = _COMPLEX_RULES if source.is_complex and op in _COMPLEX_RULES else _RULES
        return np.asarray(rules[op](*args)).astype(target.numpy, copy=False)


def _row(array: Array) -> DType:
    found = from_numpy(array.dtype)
    assert found is not None, f"no dtype row for {array.dtype}"
    return found


# --- conversions -----------------------------------------------------------------------------------------------


def convert(value: Array, target: DType) -> Array:
    """`value` as `target`: floats to integers truncate and saturate (nan to 0); all rounding happens once."""
    source = _row(value)
    if source == target:
        return value
    with np.errstate(all="ignore"):
        if target == BOOL:
            return np.asarray(value != source.numpy.type(0))
        if target.is_complex:
            return _to_complex(value, source, target)
        if source.is_complex:
            return convert(np.asarray(value.real), target)
        if target.is_integer and source.is_float:
            return _float_to_integer(value.astype(np.float64), target)
        if target in STORAGE_FLOATS:
            return _to_storage_float(value, source, target)
        return value.astype(target.numpy)


def _to_complex(value: Array, source: DType, target: DType) -> Array:
    part = real_type(target)
    if source.is_complex:
        return _pair(convert(np.asarray(value.real), part), convert(np.asarray(value.imag), part))
    return _pair(convert(value, part), np.zeros((), part.numpy))


def _float_to_integer(value: NDArray[np.float64], target: DType) -> Array:
    """Exact for every float: float64 holds all narrower ones, and both limits are powers of two or zero."""
    limits = np.iinfo(target.numpy)
    below = value <= float(limits.min)
    above = value >= float(limits.max + 1)
    inside = np.where(below | above | np.isnan(value), 0.0, value)
    wide = inside.astype(np.uint64 if target.kind == "unsigned" else np.int64).astype(target.numpy)
    wide = np.where(below, target.numpy.type(limits.min), wide)
    return np.where(above, target.numpy.type(limits.max), wide)


def _to_storage_float(value: Array, source: DType, target: DType) -> Array:
    """Round once: what float32 cannot hold passes through it rounded to odd, which keeps the nearest narrow float."""
    if source.is_integer and source.bits == 64:
        value = rounding.to_odd_float32(rounding.integer_to_odd(value))
    elif source == FLOAT64 or (source.is_integer and source.bits == 32):
        value = rounding.to_odd_float32(value.astype(np.float64))
    return value.astype(np.float32).astype(target.numpy)


def bitcast(value: Array, target: DType) -> Array:
    """The same bits as another dtype of the same width; a bool is a byte that is 0 or 1."""
    flat = np.atleast_1d(value)
    flat = flat.view(np.uint8) != 0 if target == BOOL else flat.view(target.numpy)
    return np.asarray(flat.reshape(value.shape))


# --- integers --------------------------------------------------------------------------------------------------


def _quotient(a: Array, b: Array) -> Array:
    """Toward zero; x / 0 is 0 and INT_MIN / -1 wraps."""
    if a.dtype.kind == "u":
        return np.asarray(np.where(b == 0, a.dtype.type(0), a // np.where(b == 0, b.dtype.type(1), b)))
    # Magnitudes as unsigned numbers: |INT_MIN| has one there.
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    size = _quotient(np.abs(a).astype(unsigned), np.abs(b).astype(unsigned)).astype(a.dtype)
    return np.asarray(np.where((a < 0) != (b < 0), -size, size))


def _modulo(a: Array, b: Array) -> Array:
    """The sign of the dividend; x % 0 is 0."""
    return np.asarray(np.where(b == 0, a.dtype.type(0), a - _quotient(a, b) * b))


def _left_shift(a: Array, count: Array) -> Array:
    inside = (count >= 0) & (count < 8 * a.dtype.itemsize)
    shifted = np.left_shift(a, np.where(inside, count, 0).astype(a.dtype))
    return np.asarray(np.where(inside, shifted, a.dtype.type(0)))


def _right_shift(a: Array, count: Array) -> Array:
    """A count outside the width leaves only copies of the sign; that is a shift by width - 1, but 0 if unsigned."""
    bits = 8 * a.dtype.itemsize
    inside = (count >= 0) & (count < bits)
    shifted = np.right_shift(a, np.where(inside, count, bits - 1).astype(a.dtype))
    return np.where(inside, shifted, a.dtype.type(0)) if a.dtype.kind == "u" else np.asarray(shifted)


_ONES_IN_BYTE = np.array([byte.bit_count() for byte in range(256)], np.int32)


def _count_ones(a: Array) -> Array:
    octets = np.ascontiguousarray(np.atleast_1d(a)).view(np.uint8).reshape(*np.shape(np.atleast_1d(a)), -1)
    return np.asarray(_ONES_IN_BYTE[octets].sum(axis=-1, dtype=np.int32)).reshape(a.shape)


def _count_leading_zeros(a: Array) -> Array:
    """Smear the highest one to the right, then count what is left clear."""
    bits = 8 * a.dtype.itemsize
    smeared = a.astype(np.dtype(f"u{a.dtype.itemsize}"))
    distance = 1
    while distance < bits:
        smeared = smeared | (smeared >> smeared.dtype.type(distance))
        distance *= 2
    return np.int32(bits) - _count_ones(np.asarray(smeared))


# --- complex ---------------------------------------------------------------------------------------------------


def _pair(real: Array, imag: Array) -> Array:
    """A complex array from its parts; assignment, for `re + 1j*im` is wrong where a part is infinite."""
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imag
    return result


def _complex_multiply(a: Array, b: Array) -> Array:
    """By parts: what NumPy computes where it does not use fused instructions."""
    return _pair(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def _complex_divide(a: Array, b: Array) -> Array:
    """Smith's method as NumPy has it: divide by the larger part first; 0 in both parts gives inf or nan by part."""
    wide = np.abs(b.real) >= np.abs(b.imag)
    larger, smaller = np.where(wide, b.real, b.imag), np.where(wide, b.imag, b.real)
    first, second = np.where(wide, a.real, a.imag), np.where(wide, a.imag, a.real)
    ratio = smaller / larger
    scale = a.real.dtype.type(1) / (larger + smaller * ratio)
    cross = np.where(wide, second - first * ratio, first * ratio - second)
    zero = (b.real == 0) & (b.imag == 0)
    nought = np.abs(b.real)
    real = np.where(zero, a.real / nought, (first + second * ratio) * scale)
    imag = np.where(zero, a.imag / nought, cross * scale)
    return _pair(real, imag)


# --- the rules -------------------------------------------------------------------------------------------------

_RULES: dict[str, Callable[..., Any]] = {
    **{row.name: getattr(np, row.reference) for row in TABLE.values() if row.primitive and row.reference},
    "quotient": _quotient,
    "modulo": _modulo,
    "fma": rounding.fma,
    "multiply_high": rounding.multiply_high,
    "left_shift": _left_shift,
    "right_shift": _right_shift,
    "count_ones": _count_ones,
    "count_leading_zeros": _count_leading_zeros,
    "complex": _pair,
}

_COMPLEX_RULES: dict[str, Callable[..., Any]] = {"multiply": _complex_multiply, "divide": _complex_divide}
