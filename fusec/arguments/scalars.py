"""Numbers passed by value: the bits of a parameter's slot, or an error."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from fusec.base.diagnostics import shown_number
from fusec.base.dtypes import FLOAT64, INT64, DType
from fusec.errors.arguments import ScalarDoesNotFit, ScalarOfWrongKind
from fusec.errors.reductions import FlagNotBool

Number = bool | int | float | complex
SCALAR_TYPES = (bool, int, float, complex, np.generic)
_AS_DOUBLE, _AS_INTEGER = struct.Struct("=d"), struct.Struct("=q")


def encode(value: object, dtype: DType, param: str, kernel: str) -> tuple[int, ...]:
    """The value as one signed 64-bit slot (two for complex128), with its bits in the low bytes.

    A number converts if nothing is lost but float precision: integers must be in range, floats given for integers
    whole. Raises ScalarDoesNotFit or ScalarOfWrongKind.
    """
    number = value.item() if isinstance(value, (np.bool_, np.number)) and value.dtype.kind != "m" else value

    def refuse(kind: str) -> NoReturn:
        raise _refusal(kind, value, dtype, param, kernel)

    exact = _as_kind(number, dtype, refuse)
    if isinstance(exact, int):  # as below, in a fifth of the time
        bits = exact & ((1 << dtype.bits) - 1)
        return (bits - (bits >> 63 << 64),)
    if dtype == FLOAT64:
        return _AS_INTEGER.unpack(_AS_DOUBLE.pack(exact))
    with np.errstate(over="ignore", under="ignore"):  # beyond the largest float32 lies inf, as in C
        raw = np.asarray(exact).astype(dtype.numpy).tobytes()
    return tuple(
        int.from_bytes(raw[at : at + 8].ljust(8, b"\0"), "little", signed=True) for at in range(0, len(raw), 8)
    )


def _refusal(kind: str, value: object, dtype: DType, param: str, kernel: str) -> Exception:
    if kind == "range":
        return ScalarDoesNotFit(kernel, param, shown_number(value), dtype.name, _range_of(value, dtype)).at()
    return ScalarOfWrongKind(kernel, param, shown_number(value), dtype.name).at()


def _range_of(value: object, dtype: DType) -> str:
    if not dtype.is_integer:
        return "the largest float64 is 1.8e308, and kernels do not compute with larger integers"
    info = np.iinfo(dtype.numpy)
    also = isinstance(value, int) and dtype == INT64 and 0 < value < 1 << 64
    return f"{dtype} holds {info.min} to {info.max}" + ("; np.uint64(...) passes a larger one" if also else "")


FLAGS = {
    "keepdims": "keepdims=True keeps the reduced axes, with one element each",
    "reverse": "reverse=True begins at the end of the axis",
}


def flag(given: object, keyword: str, kernel: str) -> bool:
    """The value of an option that is true or false: a bool, or an integer as one. Raises FlagNotBool."""
    if isinstance(given, (bool, np.bool_)):
        return bool(given)
    try:
        return bool(operator.index(given))  # type: ignore[arg-type]
    except TypeError as reason:
        raise FlagNotBool(kernel, keyword, repr(given), FLAGS[keyword]).at() from reason


def as_array(value: object, param: str, kernel: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """A number as a zero-dimensional array. Raises ScalarDoesNotFit for Python integers beyond int64."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise _refusal("range", value, INT64, param, kernel)
    return np.asarray(value)


def _as_kind(number: object, dtype: DType, refuse: Callable[[str], NoReturn]) -> Number:
    """The number as a Python value of the dtype's kind; calls `refuse` with "range" or "kind" if it is none."""
    match dtype.kind:
        case "bool":
            if not isinstance(number, (bool, int, float, complex)) or number != number:
                refuse("kind")
            return bool(number)
        case "signed" | "unsigned":
            return _as_integer(number, dtype, refuse)
        case "float":
            if isinstance(number, complex) or not isinstance(number, (bool, int, float)):
                refuse("kind")
            return _as_float(number, refuse)
        case "complex":
            if isinstance(number, complex):
                return number
            if not isinstance(number, (bool, int, float)):
                refuse("kind")
            return complex(_as_float(number, refuse))


def _as_integer(number: object, dtype: DType, refuse: Callable[[str], NoReturn]) -> int:
    if isinstance(number, float) and math.isfinite(number) and number.is_integer():
        number = int(number)
    if not isinstance(number, int):
        refuse("kind")
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "signed" else 0
    if not low <= number < low + (1 << dtype.bits):
        refuse("range")
    return int(number)


def _as_float(number: bool | int | float, refuse: Callable[[str], NoReturn]) -> float:
    try:
        return float(number)
    except OverflowError:  # an int beyond the largest float64
        refuse("range")
