"""cvt: between all types, with rounding and saturation (PTX ISA, "Data Movement and Conversion Instructions: cvt")."""

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np

from fusec.ir import rounding
from ptx.faults import Unsupported
from ptx.floats import flushed, saturated, toward
from ptx.syntax import WIDTHS
from ptx.types import NUMPY

Array = np.ndarray
Convert = Callable[..., Array]

_WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_FP8 = {"e4m3x2": (np.dtype(ml_dtypes.float8_e4m3fn), 448.0), "e5m2x2": (np.dtype(ml_dtypes.float8_e5m2), 57344.0)}
_PACKED = {"f16x2": "f16", "bf16x2": "bf16"}


def converter(opcode: tuple[str, ...]) -> Convert:
    """The function of a cvt instruction: its sources as the named source type, the result as the named result type."""
    target, source, modifiers = opcode[-2], opcode[-1], opcode[1:-2]
    if target in _FP8:
        return _to_fp8(target, source, modifiers)
    if source in _FP8:
        return _from_fp8(target, source)
    if target in _PACKED:
        half = converter(("cvt", *modifiers, _PACKED[target], source))
        return lambda high, low: _pack(half(high), half(low))
    if target[0] in "us" and source[0] in "us":
        return _between_integers(target, "sat" in modifiers)
    if target[0] in "us":
        return _to_integer(target, source, modifiers)
    if source[0] in "us":
        return _from_integer(target, modifiers)
    return _between_floats(target, source, modifiers)


# --- integers ------------------------------------------------------------------------------------------------------


def _between_integers(target: str, is_clamped: bool) -> Convert:
    to = NUMPY[target]

    def convert(x: Array) -> Array:
        if is_clamped:
            info, own = np.iinfo(to), np.iinfo(x.dtype)
            x = np.clip(x, max(info.min, own.min), min(info.max, own.max))
        return x.astype(to)

    return convert


def _to_integer(target: str, source: str, modifiers: tuple[str, ...]) -> Convert:
    """Saturates. nan gives 0, but from f64 or to 64 bits the pattern 100...0."""
    to = NUMPY[target]
    info = np.iinfo(to)
    whole = next((_WHOLE[each] for each in modifiers if each in _WHOLE), None)
    if whole is None:
        raise Unsupported(f"a conversion of {source} to {target} without a rounding")
    is_pattern = source == "f64" or WIDTHS[target] == 8
    for_nan = (1 << (info.bits - 1)) if is_pattern else 0
    for_nan = for_nan - (1 << info.bits) if for_nan > info.max else for_nan
    above = 2.0 ** (info.bits - (info.min < 0))

    def convert(x: Array) -> Array:
        if "ftz" in modifiers and x.dtype == np.float32:
            x = flushed(x)
        rounded = whole(x.astype(np.float64))
        is_high, is_low = rounded >= above, rounded < float(info.min)
        inside = np.where(is_high | is_low | np.isnan(rounded), 0.0, rounded).astype(to)
        limited = np.where(is_high, to.type(info.max), np.where(is_low, to.type(info.min), inside))
        return np.where(np.isnan(rounded), to.type(for_nan), limited)

    return convert


def _from_integer(target: str, modifiers: tuple[str, ...]) -> Convert:
    to, mode = NUMPY[target], _mode(modifiers)

    def convert(x: Array) -> Array:
        if mode == "rn":
            near = x.astype(to) if to.itemsize >= 4 else rounding.integer_to_odd(x.astype(np.int64)).astype(to)
            if to.itemsize < 4 and x.dtype == np.uint64:
                near = rounding.integer_to_odd(x).astype(to)
        else:
            near = np.array([toward(Fraction(int(each)), to.type(each), mode) for each in x], to)
        return saturated(near) if "sat" in modifiers else near

    return convert


# --- floats --------------------------------------------------------------------------------------------------------


def _mode(modifiers: tuple[str, ...]) -> str:
    return next((each for each in modifiers if each in ("rn", "rz", "rm", "rp", "rna")), "rn")


def _between_floats(target: str, source: str, modifiers: tuple[str, ...]) -> Convert:
    to, mode = NUMPY[target], _mode(modifiers)
    whole = next((_WHOLE[each] for each in modifiers if each in _WHOLE), None)

    def convert(x: Array) -> Array:
        if "ftz" in modifiers and x.dtype == np.float32:
            x = flushed(x)
        if whole is not None:
            x = whole(x)
        result = _rounded(x, to, mode)
        if "satfinite" in modifiers:
            result = _within(result, to)
        if "relu" in modifiers:
            result = np.where(result > 0, result, np.where(np.isnan(result), result, to.type(0)))
        if "sat" in modifiers:
            result = saturated(result)
        return flushed(result) if "ftz" in modifiers and to == np.float32 else result

    return convert


def _rounded(x: Array, to: np.dtype, mode: str) -> Array:
    """In the mode asked for; bfloat16 goes through float32 rounded to odd, since it takes float64 in two roundings."""
    if to == NUMPY["bf16"] and x.dtype == np.float64:
        x = rounding.to_odd_float32(x)
    near = x.astype(to)
    if mode == "rn" or to.itemsize >= x.dtype.itemsize:
        return near
    near = np.array(near)
    for lane in np.flatnonzero(np.isfinite(x)):
        near[lane] = toward(Fraction(float(x[lane])), near[lane], mode)
    return near


def _within(x: Array, to: np.dtype) -> Array:
    """Infinities become the largest finite numbers."""
    top = ml_dtypes.finfo(to).max
    return np.where(np.isinf(x), np.copysign(top, x).astype(to), x)


def _pack(high: Array, low: Array) -> Array:
    raw = np.dtype(f"u{high.dtype.itemsize}")
    wide = np.dtype(f"u{2 * high.dtype.itemsize}")
    return high.view(raw).astype(wide) << wide.type(8 * raw.itemsize) | low.view(raw).astype(wide)


def _to_fp8(target: str, source: str, modifiers: tuple[str, ...]) -> Convert:
    """cvt.rn.satfinite.e4m3x2.f32 d, high, low, or from one f16x2."""
    to, top = _FP8[target]
    if "satfinite" not in modifiers:
        raise Unsupported("a conversion to fp8 without .satfinite")

    def narrow(x: Array) -> Array:
        return np.clip(x, x.dtype.type(-top), x.dtype.type(top)).astype(to)

    if source == "f32":
        return lambda high, low: _pack(narrow(high), narrow(low))
    if source != "f16x2":
        raise Unsupported(f"a conversion of {source} to fp8")

    def convert(both: Array) -> Array:
        low, high = (part.astype(np.uint16).view(np.float16) for part in (both & np.uint32(0xFFFF), both >> 16))
        return _pack(narrow(high), narrow(low))

    return convert


def _from_fp8(target: str, source: str) -> Convert:
    """cvt.rn.f16x2.e4m3x2: exact."""
    own, _ = _FP8[source]
    if target != "f16x2":
        raise Unsupported(f"a conversion of fp8 to {target}")

    def convert(both: Array) -> Array:
        low, high = (part.astype(np.uint8).view(own) for part in (both & np.uint16(0xFF), both >> 8))
        return _pack(high.astype(np.float16), low.astype(np.float16))

    return convert
