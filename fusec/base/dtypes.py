"""Data types: one row per dtype, and the promotion rules derived from kind and width.

Storage follows NumPy; bfloat16 and the two fp8 types are those of ml_dtypes, imported when first asked for.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fusec.base import locks
from fusec.base.diagnostics import did_you_mean
from fusec.base.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Kind = Literal["bool", "signed", "unsigned", "float", "complex"]


_ROWS: dict[tuple[str, Kind, int, int], DType] = {}


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """A scalar type: its Array API name, kind, storage width, and for floats the stored width of the mantissa.

    Equal types are one object, so they compare and hash by identity, also after pickling.
    """

    name: str
    kind: Kind
    bits: int  # storage width; a complex type counts both parts, a bool is stored in 8
    mantissa: int = 0  # explicitly stored significand bits of the float (or of each complex part), else 0

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return self.bits // 8

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.kind in ("signed", "unsigned")

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        low = -(1 << (self.bits - 1)) if self.kind == "signed" else 0
        return low, low + (1 << self.bits) - 1

    @property
    def is_float(self) -> bool:
        """True for real floating-point types, storage-only ones included."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.kind == "complex"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype of the storage."""
        return _numpy_dtype(self.name)

    def __new__(cls, name: str, kind: Kind, bits: int, mantissa: int = 0) -> DType:
        """The one object for these values."""
        return _ROWS.setdefault((name, kind, bits, mantissa), object.__new__(cls))

    def __reduce__(self) -> tuple[type[DType], tuple[str, Kind, int, int]]:
        return DType, (self.name, self.kind, self.bits, self.mantissa)

    def __repr__(self) -> str:
        return self.name


BOOL = DType("bool", "bool", 8)
INT8, INT16, INT32, INT64 = (DType(f"int{b}", "signed", b) for b in (8, 16, 32, 64))
UINT8, UINT16, UINT32, UINT64 = (DType(f"uint{b}", "unsigned", b) for b in (8, 16, 32, 64))
FLOAT8_E4M3FN = DType("float8_e4m3fn", "float", 8, 3)
FLOAT8_E5M2 = DType("float8_e5m2", "float", 8, 2)
FLOAT16 = DType("float16", "float", 16, 10)
BFLOAT16 = DType("bfloat16", "float", 16, 7)
FLOAT32 = DType("float32", "float", 32, 23)
FLOAT64 = DType("float64", "float", 64, 52)
COMPLEX64 = DType("complex64", "complex", 64, 23)
COMPLEX128 = DType("complex128", "complex", 128, 52)

SIGNED = (INT8, INT16, INT32, INT64)
UNSIGNED = (UINT8, UINT16, UINT32, UINT64)
INTEGERS = SIGNED + UNSIGNED
STORAGE_FLOATS = (FLOAT8_E4M3FN, FLOAT8_E5M2, FLOAT16, BFLOAT16)  # compute in float32, round once at the store
COMPUTE_FLOATS = (FLOAT32, FLOAT64)
COMPLEX = (COMPLEX64, COMPLEX128)
ALL = (BOOL, *INTEGERS, *STORAGE_FLOATS, *COMPUTE_FLOATS, *COMPLEX)
BY_NAME = {dtype.name: dtype for dtype in ALL}


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        with locks.lock:
            import ml_dtypes  # optional weight: only programs that use these types pay for it

        extended: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return extended
    return np.dtype(name)


def cure_for(name: str) -> str:
    """What to do about a name that no dtype has."""
    return did_you_mean(name, BY_NAME) or f"known dtypes: {', '.join(BY_NAME)}"


def from_numpy(dtype: DTypeLike) -> DType | None:
    """The row of a native-endian NumPy dtype (or anything that np.dtype accepts); None if fusec has no such dtype."""
    return _row_of(np.dtype(dtype))


@lru_cache(maxsize=64)
def _row_of(found: np.dtype[Any]) -> DType | None:
    """The row of a dtype, whose name NumPy takes 10 us to make up."""
    if not found.isnative:
        return None
    if found.name in BY_NAME:
        return BY_NAME[found.name]
    if found.kind in "iu" and found.itemsize in (1, 2, 4, 8):  # longlong and friends
        return BY_NAME[("int" if found.kind == "i" else "uint") + str(8 * found.itemsize)]
    return None


def compute_type(dtype: DType) -> DType:
    """The dtype in which arithmetic on `dtype` happens: float32 for narrow floats, `dtype` itself otherwise."""
    return FLOAT32 if dtype in STORAGE_FLOATS else dtype


def real_type(dtype: DType) -> DType:
    """The type of the parts of a complex type; a real type itself."""
    return {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(dtype, dtype)


def complex_type(dtype: DType) -> DType:
    """The complex type whose parts hold `dtype`: complex128 for float64 and wide integers, else complex64."""
    if dtype.is_complex:
        return dtype
    return COMPLEX64 if compute_type(dtype) == FLOAT32 else COMPLEX128


def signed_of(bits: int) -> DType:
    """The signed integer of that width."""
    return BY_NAME[f"int{bits}"]


def unsigned_of(bits: int) -> DType:
    """The unsigned integer of that width."""
    return BY_NAME[f"uint{bits}"]


def c_promote(dtype: DType) -> DType:
    """C's integer promotion; narrow floats are promoted to float32, in which they compute."""
    if dtype.kind == "bool" or (dtype.is_integer and dtype.bits < 32):
        return INT32
    return compute_type(dtype)


def c_common(left: DType, right: DType) -> DType:
    """C's usual arithmetic conversions, extended to complex as thrust::complex does."""
    a, b = c_promote(left), c_promote(right)
    if a.is_complex or b.is_complex:
        part = c_common(real_type(a), real_type(b))
        return complex_type(part) if part.is_float else COMPLEX64
    if a.is_float or b.is_float:
        return max((t for t in (a, b) if t.is_float), key=lambda t: t.bits)
    if a.bits != b.bits:
        return max((a, b), key=lambda t: t.bits)
    return a if a.kind == "unsigned" else b


def promote(left: DType, right: DType) -> DType | None:
    """NumPy 2's promotion of arrays, of which the Array API's table is a subset; None if there is no common type."""
    try:
        return from_numpy(np.promote_types(left.numpy, right.numpy))
    except TypeError:
        return None
