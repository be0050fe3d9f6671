"""What PTX's integer instructions compute, on NumPy arrays of the instruction's type.

Source: PTX ISA, "Integer Arithmetic Instructions", "Logic and Shift Instructions", "Data Movement" (prmt).
"""

import numpy as np

from fusec.ir.rounding import multiply_high
from ptx.faults import Undefined
from ptx.types import SIGNED, UNSIGNED

Array = np.ndarray


def _unsigned(x: Array) -> Array:
    return x.view(UNSIGNED[x.dtype.itemsize])


def _bits(x: Array) -> int:
    return 8 * x.dtype.itemsize


# --- arithmetic ----------------------------------------------------------------------------------------------------


def clamped_add(a: Array, b: Array) -> Array:
    """add.sat.s32: the sum limited to the type."""
    info = np.iinfo(a.dtype)
    return np.clip(a.astype(np.int64) + b.astype(np.int64), info.min, info.max).astype(a.dtype)


def clamped_subtract(a: Array, b: Array) -> Array:
    """sub.sat.s32: the difference limited to the type."""
    info = np.iinfo(a.dtype)
    return np.clip(a.astype(np.int64) - b.astype(np.int64), info.min, info.max).astype(a.dtype)


def multiply_wide(a: Array, b: Array) -> Array:
    """mul.wide: the whole product, twice as wide."""
    wide = (SIGNED if a.dtype.kind == "i" else UNSIGNED)[2 * a.dtype.itemsize]
    return a.astype(wide) * b.astype(wide)


def multiply_high_half(a: Array, b: Array) -> Array:
    """mul.hi: the upper half of the product."""
    return multiply_high(*np.broadcast_arrays(a, b))


def multiply_24(a: Array, b: Array) -> Array:
    """mul24.lo: the low 32 bits of the product of the low 24 bits of each."""
    eight = a.dtype.type(8)
    return ((a << eight) >> eight) * ((b << eight) >> eight)


def _nonzero(b: Array) -> None:
    if (b == 0).any():
        raise Undefined("integer division by zero")


def divide(a: Array, b: Array) -> Array:
    """div: toward zero; the lowest number over -1 stays itself. Raises Undefined for a zero divisor."""
    _nonzero(b)
    if a.dtype.kind == "u":
        return a // b
    quotient = _magnitude(a) // _magnitude(b)
    return np.where((a < 0) != (b < 0), 0 - quotient, quotient).view(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """rem: with the sign of the dividend. Raises Undefined for a zero divisor."""
    _nonzero(b)
    if a.dtype.kind == "u":
        return a % b
    rest = _magnitude(a) % _magnitude(b)
    return np.where(a < 0, 0 - rest, rest).view(a.dtype)


def _magnitude(x: Array) -> Array:
    """The absolute value, unsigned, so that the lowest number has one."""
    raw = _unsigned(x)
    return np.where(x < 0, 0 - raw, raw)


def absolute(a: Array) -> Array:
    """abs: the lowest number stays itself."""
    return _magnitude(a).view(a.dtype)


def negate(a: Array) -> Array:
    """neg: wraps."""
    return (0 - _unsigned(a)).astype(UNSIGNED[a.dtype.itemsize]).view(a.dtype)


def absolute_difference(a: Array, b: Array, c: Array) -> Array:
    """sad: c + |a - b|."""
    return c + np.where(a < b, b - a, a - b)


def dot(a: Array, b: Array, c: Array) -> Array:
    """dp4a: c plus the dot product of four bytes; a and b bring the signs of their bytes by their type."""
    total = c.astype(np.int64)
    for byte in range(4):
        total = total + _byte(a, byte) * _byte(b, byte)
    return total.astype(np.uint64).astype(np.uint32).view(c.dtype)


def _byte(x: Array, number: int) -> Array:
    raw = (_unsigned(x) >> np.uint32(8 * number)).astype(np.uint8)
    return raw.view(np.int8 if x.dtype.kind == "i" else np.uint8).astype(np.int64)


# --- bits ----------------------------------------------------------------------------------------------------------


def shift_left(a: Array, count: Array) -> Array:
    """shl: counts beyond the width clear everything."""
    bits = _bits(a)
    kept = np.minimum(count, bits - 1).astype(a.dtype)
    return np.where(count >= bits, a.dtype.type(0), a << kept)


def shift_right(a: Array, count: Array) -> Array:
    """shr: counts beyond the width leave the sign, or zero."""
    bits = _bits(a)
    shifted = a >> np.minimum(count, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(count >= bits, a.dtype.type(0), shifted)


def _funnel_count(count: Array, clamp: bool) -> Array:
    return (np.minimum(count, 32) if clamp else count & np.uint32(31)).astype(np.uint64)


def _joined(low: Array, high: Array) -> Array:
    return high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)


def funnel_left(low: Array, high: Array, count: Array, clamp: bool) -> Array:
    """shf.l: the upper word of high:low shifted left."""
    by = np.uint64(32) - _funnel_count(count, clamp)
    return (_joined(low, high) >> by).astype(np.uint32)


def funnel_right(low: Array, high: Array, count: Array, clamp: bool) -> Array:
    """shf.r: the lower word of high:low shifted right."""
    return (_joined(low, high) >> _funnel_count(count, clamp)).astype(np.uint32)


def logic3(a: Array, b: Array, c: Array, table: int) -> Array:
    """lop3: bit by bit, the entry of the table that the three bits number."""
    result = np.zeros_like(a | b | c)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def permute(a: Array, b: Array, selector: Array, mode: str) -> Array:
    """prmt: four bytes chosen from the eight of b:a; in the default mode bit 3 of a choice spreads the byte's sign."""
    both = _joined(a, b)
    result = np.zeros_like(a | b | selector)
    for place in range(4):
        choice = _choice(selector, place, mode)
        byte = (both >> ((choice & np.uint32(7)).astype(np.uint64) * np.uint64(8))).astype(np.uint8)
        spread = np.where(byte >= 128, np.uint8(255), np.uint8(0))
        byte = np.where(choice & np.uint32(8), spread, byte)
        result = result | byte.astype(np.uint32) << np.uint32(8 * place)
    return result


def _choice(selector: Array, place: int, mode: str) -> Array:
    """The choice for one byte of prmt; the modes of PTX ISA's table take two bits of the selector."""
    two = selector & np.uint32(3)
    match mode:
        case "":
            return selector >> np.uint32(4 * place) & np.uint32(15)
        case "f4e":
            return two + np.uint32(place)
        case "b4e":
            return (two - np.uint32(place)) & np.uint32(7)
        case "rc8":
            return two
        case "ecl":
            return np.maximum(two, np.uint32(place))
        case "ecr":
            return np.minimum(two, np.uint32(place))
        case "rc16":
            return (two & np.uint32(1)) * np.uint32(2) + np.uint32(place & 1)
    raise AssertionError(f"prmt has no mode {mode}")


def extract(a: Array, position: Array, length: Array) -> Array:
    """bfe: a field of bits; signed ones are extended with the field's top bit, or the number's where it ends before."""
    bits = _bits(a)
    at, count = (position & np.uint32(255)).astype(np.int64), (length & np.uint32(255)).astype(np.int64)
    raw = _unsigned(a)
    field = shift_right(raw, at) & _mask(count, raw)
    if a.dtype.kind == "u":
        return field
    top = np.clip(at + count - 1, 0, bits - 1).astype(raw.dtype)
    is_negative = (raw >> top & raw.dtype.type(1)).astype(bool) & (count > 0)
    return np.where(is_negative, field | ~_mask(np.minimum(count, np.maximum(bits - at, 0)), raw), field).view(a.dtype)


def insert(a: Array, b: Array, position: Array, length: Array) -> Array:
    """bfi: the low bits of a put into b."""
    at, count = position & np.uint32(255), (length & np.uint32(255)).astype(np.int64)
    mask = shift_left(_mask(count, a), at)
    return b & ~mask | shift_left(a, at) & mask


def _mask(count: Array, like: Array) -> Array:
    """As many ones as counted, at the low end."""
    one = np.ones(np.broadcast_shapes(np.shape(count), like.shape), like.dtype)
    return shift_left(one, count) - one


def count_ones(a: Array) -> Array:
    """popc."""
    return np.bitwise_count(_unsigned(a)).astype(np.uint32)


def leading_zeros(a: Array) -> Array:
    """clz."""
    return np.uint32(_bits(a) - 1) - highest_bit(_unsigned(a))


def highest_bit(a: Array) -> Array:
    """bfind: the place of the highest bit that differs from the sign; 2**32 - 1 if there is none."""
    raw = _unsigned(a)
    if a.dtype.kind == "i":
        raw = np.where(a < 0, ~raw, raw)
    spread = raw
    for step in (1, 2, 4, 8, 16, 32):
        if step < _bits(a):
            spread = spread | spread >> raw.dtype.type(step)
    return np.bitwise_count(spread).astype(np.uint32) - np.uint32(1)


def reverse(a: Array) -> Array:
    """brev: bits in the opposite order."""
    as_bytes = np.ascontiguousarray(a).view(np.uint8).reshape(-1, a.dtype.itemsize)
    bits = np.unpackbits(as_bytes, axis=1, bitorder="little")
    return np.packbits(bits[:, ::-1], axis=1, bitorder="little").copy().view(a.dtype)[:, 0]


def bit_mask(position: Array, length: Array, clamp: bool) -> Array:
    """bmsk: ones from a position on; wrapped modulo 32 or clamped."""
    if not clamp:
        position, length = position & np.uint32(31), length & np.uint32(31)
    one = np.ones(1, np.uint32)
    return shift_left(shift_left(one, length) - one, position)
