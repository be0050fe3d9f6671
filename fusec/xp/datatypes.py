"""Data types, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fusec.errors.lazy import NotADType
from fusec.xp.array import Array
from fusec.xp.calls import DType, Operand, array_of
from fusec.xp.devices import checked
from fusec.xp.documentation import documented
from fusec.xp.promotion import check
from fusec.xp.signatures import CHECKED

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

NAMES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128").split()


class NamedDType:
    """A dtype under its name in the namespace. It is NumPy's dtype, but can be called like NumPy's scalar types.

    NumPy's dtypes cannot be subclassed. So this class wraps one, and has its equality, hash, order and `__class__`.
    There is one difference: NumPy's float64 equals None, and this one does not.

    >>> xp.float32(2.5), xp.float32(xp.asarray([1, 2]))
    (np.float32(2.5), Array([1., 2.], dtype=float32))
    """

    __slots__ = ("dtype",)
    dtype: np.dtype[Any]

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(name)

    @property
    def __class__(self) -> Any:
        return type(self.dtype)

    @__class__.setter
    def __class__(self, _: type) -> None:
        raise TypeError("the class of a dtype is what it is")

    def __call__(self, value: Any = 0, /) -> Any:
        """Convert a number to a scalar of NumPy, or an array to this dtype."""
        if type(value) is Array:
            return value.astype(self.dtype)
        found = self.dtype.type(value)
        return array_of(found) if isinstance(found, np.ndarray) else found

    def __eq__(self, other: object) -> bool:
        return other is not None and bool(self.dtype == other)

    def __lt__(self, other: Any) -> bool:
        return bool(self.dtype < other)

    def __le__(self, other: Any) -> bool:
        return bool(self.dtype <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.dtype > other)

    def __ge__(self, other: Any) -> bool:
        return bool(self.dtype >= other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dtype, name)

    def __reduce__(self) -> Any:
        return _named, (self.dtype.name,)

    def __repr__(self) -> str:
        return repr(self.dtype)

    def __str__(self) -> str:
        return str(self.dtype)


DTYPES = {name: NamedDType(name) for name in NAMES}


def _named(name: str) -> NamedDType:
    return DTYPES[name]


@dataclass(frozen=True)
class FloatInfo:
    """The limits of floating-point numbers; of complex dtypes, those of their parts.

    What NumPy's has beside, such as tiny, is there too.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(np.finfo(self.dtype), name)


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of integers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def dtype_of(given: Any) -> np.dtype[Any]:
    """The dtype of an array, or the dtype itself. Raises NotADType."""
    found = given if isinstance(given, type) else getattr(given, "dtype", given)
    try:
        if found is None or isinstance(found, (bool, int, float, complex)):
            raise TypeError
        dtype: np.dtype[Any] = np.dtype(found)
    except TypeError:
        raise NotADType(repr(given), "a dtype or an array", "write for example xp.float32, or x.dtype").at() from None
    return dtype


@documented
def astype(x: Operand, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Array:
    """The elements as another dtype, which NumPy's conversions give.

    copy: False for the array itself if it has the dtype.

    >>> xp.astype(xp.asarray([1.5, 2.5]), xp.int64)
    Array([1, 2])
    """
    checked(device)
    return array_of(x).astype(dtype_of(dtype), copy=copy)


@documented
def can_cast(from_: Any, to: DType, /) -> bool:
    """Whether a dtype or an array promotes to a dtype.

    from_: a dtype or an array. to: a dtype.

    >>> xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.int16, xp.int8)
    (True, False)
    """
    return bool(np.can_cast(dtype_of(from_), dtype_of(to)))


@documented
def finfo(type: Any, /) -> FloatInfo:  # noqa: A002 - the standard's name
    """The limits of a floating-point dtype: bits, eps, max, min, smallest_normal and dtype.

    type: a dtype or an array, of floating-point or complex numbers; any shape.

    >>> xp.finfo(xp.float32).eps
    1.1920928955078125e-07
    """
    dtype = dtype_of(type)
    if dtype.kind not in "fc":
        raise NotADType(str(dtype), "a floating-point dtype", "iinfo has the limits of integers").at()
    found = np.finfo(dtype)
    limits = {name: float(getattr(found, name)) for name in ("eps", "max", "min", "smallest_normal")}
    return FloatInfo(bits=int(found.bits), dtype=np.dtype(found.dtype), **limits)


@documented
def iinfo(type: Any, /) -> IntegerInfo:  # noqa: A002 - the standard's name
    """The limits of an integer dtype: bits, max, min and dtype.

    type: a dtype or an array of integers; any shape.

    >>> xp.iinfo(xp.int8).max
    127
    """
    dtype = dtype_of(type)
    if dtype.kind not in "iu":
        raise NotADType(str(dtype), "an integer dtype", "finfo has the limits of floating-point numbers").at()
    found = np.iinfo(dtype)
    return IntegerInfo(int(found.bits), int(found.max), int(found.min), dtype)


@documented
def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    kind: a dtype, 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating' or
    'numeric', or a tuple of these, of which one is enough.

    >>> xp.isdtype(xp.float32, ("integral", "real floating"))
    True
    """
    return bool(np.isdtype(dtype_of(dtype), kind))


@documented
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """The dtype that arrays, dtypes and numbers promote to.

    arrays_and_dtypes: at least one is no number, which has no dtype of its own.

    >>> xp.result_type(xp.float32, xp.asarray([1], dtype="int8"), 2.5)
    dtype('float32')
    """
    if CHECKED:
        check("result_type", arrays_and_dtypes)
    return np.result_type(*(each.dtype if isinstance(each, Array) else each for each in arrays_and_dtypes))
