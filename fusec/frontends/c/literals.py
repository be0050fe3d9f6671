"""Literals and named constants, typed as C does."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT32, UINT64, DType
from fusec.errors.language import BadNumber, NotSupported
from fusec.frontends.c import syntax as s
from fusec.ir.expr import Const, const

NUMBER = re.compile(
    r"(?P<hexfloat>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+)(?P<hexsuffix>[fFlL]?)"
    r"|(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)(?P<suffix>[fFlL]?)"
    r"|(?P<integer>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<marks>[uUlLzZ]*)"
)
MAX_SHOWN = 80  # characters of a number in a message
SUFFIXES = re.compile(r"(?:u|)(?:l|ll|z|)|(?:l|ll|z)u")
ESCAPES = {"n": 10, "t": 9, "r": 13, "0": 0, "\\": 92, "'": 39, '"': 34, "a": 7, "b": 8, "f": 12, "v": 11}

CONSTANTS: dict[str, Const] = {
    **{f"M_{name}": const(value, FLOAT64) for name, value in {
        "E": math.e, "LOG2E": 1.4426950408889634, "LOG10E": 0.4342944819032518, "LN2": math.log(2),
        "LN10": 2.302585092994046, "PI": math.pi, "PI_2": math.pi / 2, "PI_4": math.pi / 4, "1_PI": 1 / math.pi,
        "2_PI": 2 / math.pi, "2_SQRTPI": 1.1283791670955126, "SQRT2": math.sqrt(2), "SQRT1_2": math.sqrt(0.5),
    }.items()},
    "INFINITY": const(math.inf, FLOAT32), "NAN": const(math.nan, FLOAT32), "HUGE_VAL": const(math.inf, FLOAT64),
    "CUDART_INF": const(math.inf, FLOAT64), "CUDART_NAN": const(math.nan, FLOAT64),
    "CUDART_INF_F": const(math.inf, FLOAT32), "CUDART_NAN_F": const(math.nan, FLOAT32),
    "CUDART_PI": const(math.pi, FLOAT64), "CUDART_PI_F": const(math.pi, FLOAT32),
    "CUDART_SQRT_TWO": const(math.sqrt(2), FLOAT64), "CUDART_MAX_NORMAL_F": const(3.4028234663852886e38, FLOAT32),
    "CUDART_MIN_DENORM": const(5e-324, FLOAT64), "CUDART_MIN_DENORM_F": const(2.0**-149, FLOAT32),
    "CHAR_BIT": const(8, INT32), "SCHAR_MIN": const(-128, INT32), "SCHAR_MAX": const(127, INT32),
    "CHAR_MIN": const(-128, INT32), "CHAR_MAX": const(127, INT32), "UCHAR_MAX": const(255, INT32),
    "SHRT_MIN": const(-(2**15), INT32), "SHRT_MAX": const(2**15 - 1, INT32), "USHRT_MAX": const(2**16 - 1, INT32),
    "INT_MIN": const(-(2**31), INT32), "INT_MAX": const(2**31 - 1, INT32), "UINT_MAX": const(2**32 - 1, UINT32),
    "LONG_MIN": const(-(2**63), INT64), "LONG_MAX": const(2**63 - 1, INT64), "ULONG_MAX": const(2**64 - 1, UINT64),
    "LLONG_MIN": const(-(2**63), INT64), "LLONG_MAX": const(2**63 - 1, INT64), "ULLONG_MAX": const(2**64 - 1, UINT64),
    **{f"INT{b}_MIN": const(-(2 ** (b - 1)), INT64 if b == 64 else INT32) for b in (8, 16, 32, 64)},
    **{f"INT{b}_MAX": const(2 ** (b - 1) - 1, INT64 if b == 64 else INT32) for b in (8, 16, 32, 64)},
    "UINT8_MAX": const(2**8 - 1, INT32), "UINT16_MAX": const(2**16 - 1, INT32),
    "UINT32_MAX": const(2**32 - 1, UINT32), "UINT64_MAX": const(2**64 - 1, UINT64),
    "SIZE_MAX": const(2**64 - 1, UINT64), "PTRDIFF_MAX": const(2**63 - 1, INT64), "PTRDIFF_MIN": const(-(2**63), INT64),
    "FLT_MAX": const(3.4028234663852886e38, FLOAT32), "FLT_MIN": const(2.0**-126, FLOAT32),
    "FLT_EPSILON": const(2.0**-23, FLOAT32), "DBL_MAX": const(1.7976931348623157e308, FLOAT64),
    "DBL_MIN": const(2.0**-1022, FLOAT64), "DBL_EPSILON": const(2.0**-52, FLOAT64), "FLT_DIG": const(6, INT32),
    "DBL_DIG": const(15, INT32), "FLT_MANT_DIG": const(24, INT32), "DBL_MANT_DIG": const(53, INT32),
}  # fmt: skip


def number(node: s.Numeral, single: bool = False) -> Const:
    """A number literal; single: floats without suffix are float32. Raises BadNumber."""
    text = node.text.replace("'", "")
    found = NUMBER.fullmatch(text)
    if found is None:
        raise BadNumber(_shown(node), "").at(node.span)
    if found["integer"]:
        return _integer(node, found["integer"], found["marks"].lower())
    digits, suffix = (found["hexfloat"], found["hexsuffix"]) if found["hexfloat"] else (found["float"], found["suffix"])
    try:
        value = float.fromhex(digits) if found["hexfloat"] else float(digits)
    except OverflowError:
        raise BadNumber(_shown(node), ": no float type holds it", "write INFINITY if that is meant").at(
            node.span
        ) from None
    if suffix.lower() == "f" or (single and not suffix):
        return const(_to_single(value, digits), FLOAT32)
    return const(value, FLOAT64)


def _to_single(value: float, digits: str) -> float:
    """The float32 nearest to the decimal digits; `value`, the nearest float64, may sit half-way where they do not."""
    with np.errstate(over="ignore"):
        near = np.float32(value)
    if not math.isfinite(near) or digits[:2].lower() == "0x" or float(near) == value:
        return float(near)
    other = np.nextafter(near, np.float32(math.inf if value > float(near) else -math.inf), dtype=np.float32)
    if not math.isfinite(other) or Fraction(value) * 2 != Fraction(float(near)) + Fraction(float(other)):
        return float(near)
    exact = Decimal(digits)  # takes any count of digits, which int and Fraction do not
    if exact == Decimal(value):
        return float(near)
    return float(max(near, other) if exact > Decimal(value) else min(near, other))


def _integer(node: s.Numeral, digits: str, marks: str) -> Const:
    if not SUFFIXES.fullmatch(marks):
        raise BadNumber(_shown(node), "").at(node.span)
    if len(digits) > 70:  # 2**64 in binary has 67 characters
        raise BadNumber(_shown(node), ": no integer type holds it", "the largest is 18446744073709551615").at(node.span)
    decimal = not (digits[0] == "0" and len(digits) > 1)
    try:
        value = int(digits, 0) if decimal or digits[1] in "xXbB" else int(digits, 8)
    except ValueError:
        raise BadNumber(_shown(node), "", "a number that starts with 0 is octal: digits 0 to 7").at(node.span) from None
    unsigned, wide = "u" in marks, "l" in marks or "z" in marks
    for dtype in (INT32, UINT32, INT64, UINT64):
        is_unsigned = dtype.kind == "unsigned"
        if (wide and dtype.bits == 32) or (unsigned and not is_unsigned):
            continue
        if decimal and is_unsigned and not unsigned and dtype != UINT64:  # C keeps decimals signed if it can
            continue
        if value < 2 ** (dtype.bits - (not is_unsigned)):
            return const(value, dtype)
    raise BadNumber(_shown(node), ": no integer type holds it", "the largest is 18446744073709551615").at(node.span)


def _shown(node: s.Numeral) -> str:
    """A number for a message, which has no use for thousands of digits."""
    return node.text if len(node.text) <= MAX_SHOWN else f"{node.text[:20]}...{node.text[-8:]}"


def constant(name: str, single: bool = False) -> Const:
    """A constant of the math header by name; single: those that stand for a literal without suffix are float32."""
    found = CONSTANTS[name]
    return const(found.value, FLOAT32) if single and name.startswith("M_") and found.type == FLOAT64 else found


def character(node: s.Character) -> Const:
    """A character literal, of type char (int8). Raises NotSupported for more than one character."""
    inner = node.text[1:-1]
    if len(inner) == 1 and ord(inner) < 128:
        return const(ord(inner), INT8)
    if inner[0] == "\\":
        if inner[1:] in ESCAPES:
            return const(ESCAPES[inner[1:]], INT8)
        if re.fullmatch(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3})", inner):
            return const(int(inner[2:], 16) if inner[1] == "x" else int(inner[1:], 8), INT8)
    raise NotSupported("this character is", "write one ASCII character or its number").at(node.span)


def word(node: s.Word) -> Const:
    """``true`` or ``false``."""
    return const(node.word == "true", BOOL)


def limit(dtype: DType, member: str) -> Const | None:
    """``numeric_limits<dtype>::member``, None if there is no such member."""
    if dtype.is_integer or dtype == BOOL:
        bits = 1 if dtype == BOOL else dtype.bits
        low = -(2 ** (bits - 1)) if dtype.kind == "signed" else 0
        high = 2 ** (bits - (dtype.kind == "signed")) - 1
        zero = dict.fromkeys(("epsilon", "infinity", "quiet_NaN", "denorm_min"), 0)
        table = {"max": high, "min": low, "lowest": low, **zero}
        return const(table[member], dtype) if member in table else None
    if dtype.is_complex:
        return None
    info = np.finfo(dtype.numpy) if dtype.name.startswith("float") and dtype.bits > 8 else None
    if info is None:
        import ml_dtypes  # only for the types that NumPy does not know

        info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    table = {
        "max": info.max, "min": info.tiny, "lowest": info.min, "epsilon": info.eps, "infinity": math.inf,
        "quiet_NaN": math.nan, "signaling_NaN": math.nan, "denorm_min": info.smallest_subnormal,
    }  # fmt: skip
    return const(table[member], dtype) if member in table else None
