"""Constants as C literals that denote exactly their bits."""

from __future__ import annotations

import numpy as np

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, DType, real_type
from fusec.codegen.c_family.pieces import POSTFIX, PRIMARY, UNARY, Piece
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Spelling
from fusec.ir.expr import Const

_LONGEST = 24  # characters of a decimal literal beyond which the hexadecimal one reads no worse


def literal(value: Const, spelling: Spelling, *, loose: bool = False) -> Piece:
    """A constant. loose: its context converts it to its dtype, so a plain int suffices."""
    dtype = value.type
    if dtype == BOOL:
        return Piece("true" if value.bits else "false", PRIMARY)
    if dtype.is_integer:
        return _integer(int(value.value), dtype, spelling, loose)
    if dtype.is_complex:
        return _complex(value, spelling)
    if dtype in (FLOAT32, FLOAT64):
        return _float(value, spelling)
    return _storage_float(value, spelling)


def integer(value: int) -> Piece:
    """A plain int."""
    return Piece(str(value), PRIMARY if value >= 0 else UNARY)


def _integer(value: int, dtype: DType, spelling: Spelling, loose: bool) -> Piece:
    fits_int = -(1 << 31) < value < (1 << 31)
    if dtype.bits < 32 or (dtype.kind == "signed" and dtype.bits == 32 and fits_int) or (loose and fits_int):
        return integer(value)
    suffix = ("u" if dtype.kind == "unsigned" else "") + (spelling.long_suffix if dtype.bits == 64 else "")
    if value == -(1 << (dtype.bits - 1)):  # its digits alone do not fit the type
        return Piece(f"(-{-value - 1}{suffix} - 1)", PRIMARY)
    return Piece(f"{value}{suffix}", PRIMARY if value >= 0 else UNARY)


def _float(value: Const, spelling: Spelling) -> Piece:
    """The shortest decimal if it reads back to the same bits even by way of double, else hexadecimal, else by bits."""
    scalar = value.value
    number = float(scalar)
    if not np.isfinite(number):
        return _not_finite(value, spelling)
    suffix = "f" if value.type == FLOAT32 else ""
    digits = _shortest(scalar)
    exact = float(digits) == number if value.type == FLOAT64 else np.float32(float(digits)) == scalar
    smallest = float(np.finfo(value.type.numpy).tiny)
    if abs(number) < smallest and number != 0.0:  # subnormal: not left to a compiler that may flush it
        return Piece(_bits(value, spelling), POSTFIX)
    text = digits if exact and len(digits) <= _LONGEST else _hexadecimal(number)
    return Piece(text + suffix, UNARY if text.startswith("-") else PRIMARY)


def _shortest(scalar: np.generic) -> str:
    text = str(scalar)
    return text if any(char in text for char in ".en") else text + ".0"


def _hexadecimal(number: float) -> str:
    """As float.hex, without the zeros at the end of the fraction."""
    mantissa, exponent = number.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}" if "." in mantissa else number.hex()


def _bits(value: Const, spelling: Spelling) -> str:
    return spelling.float_bits[value.type].format(f"0x{value.bits:0{value.type.bits // 4}x}")


def _not_finite(value: Const, spelling: Spelling) -> Piece:
    """An infinity or nan; the sign stands apart so that the digits fit a signed integer."""
    top = 1 << (value.type.bits - 1)
    if value.bits & top:
        return Piece("-" + _bits(Const(value.bits ^ top, value.type), spelling), UNARY)
    return Piece(_bits(value, spelling), POSTFIX)


def _complex(value: Const, spelling: Spelling) -> Piece:
    part = real_type(value.type)
    mask = (1 << part.bits) - 1
    real = _float(Const(value.bits & mask, part), spelling).text
    imag = _float(Const(value.bits >> part.bits, part), spelling).text
    return Piece(f"{COMPLEX_STRUCTS[value.type]}{{{real}, {imag}}}", POSTFIX)


def _storage_float(value: Const, spelling: Spelling) -> Piece:
    carrier = spelling.carrier(value.type)
    digits = f"0x{value.bits:0{value.type.bits // 4}x}"
    if carrier != value.type:
        return Piece(f"({spelling.type(carrier)}){digits}", UNARY)
    return Piece(spelling.float_bits[value.type].format(digits), POSTFIX)
