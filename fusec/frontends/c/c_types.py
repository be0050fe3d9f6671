"""C's type names, and the front end's knowledge of a declared type."""

from __future__ import annotations

from fusec.base.dtypes import (
    BFLOAT16,
    BOOL,
    BY_NAME,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)  # fmt: skip
from fusec.base.records import dataclass
from fusec.ir.expr import Pointer, Struct, Type


@dataclass(frozen=True, slots=True)
class Void:
    """The type of a function that returns nothing."""


@dataclass(frozen=True, slots=True)
class Auto:
    """A type to be taken from the initialiser."""


@dataclass(frozen=True, slots=True)
class PointerTo:
    """A declared pointer or reference; its initialiser determines the address space of its target."""

    element: DType | Struct
    const: bool
    reference: bool = False


@dataclass(frozen=True, slots=True)
class RawOf:
    """The type of a raw array, which only a parameter of a function template can have."""

    array: str


CType = DType | Struct | PointerTo | Void | Auto | RawOf

_COMPONENTS = {
    "char": INT8, "uchar": UINT8, "short": INT16, "ushort": UINT16, "int": INT32, "uint": UINT32, "long": INT64,
    "ulong": UINT64, "longlong": INT64, "ulonglong": UINT64, "float": FLOAT32, "double": FLOAT64,
}  # fmt: skip
VECTORS = {  # CUDA's vector types
    f"{name}{count}": Struct(f"{name}{count}", tuple((axis, dtype) for axis in "xyzw"[:count]))
    for name, dtype in _COMPONENTS.items()
    for count in (1, 2, 3, 4)
}

NAMED: dict[str, DType | Struct] = {
    **BY_NAME,
    **VECTORS,
    "int8_t": INT8, "int16_t": INT16, "int32_t": INT32, "int64_t": INT64, "uint8_t": UINT8, "uint16_t": UINT16,
    "uint32_t": UINT32, "uint64_t": UINT64, "size_t": UINT64, "ssize_t": INT64, "ptrdiff_t": INT64, "intptr_t": INT64,
    "uintptr_t": UINT64, "index_t": INT64, "uint": UINT32, "uchar": UINT8, "ushort": UINT16, "ulong": UINT64,
    "longlong": INT64, "ulonglong": UINT64, "half": FLOAT16, "__half": FLOAT16, "__half_t": FLOAT16,
    "bfloat16": BFLOAT16, "__nv_bfloat16": BFLOAT16, "cuComplex": COMPLEX64, "cuFloatComplex": COMPLEX64,
    "cuDoubleComplex": COMPLEX128, "IndexT": INT64,
}  # fmt: skip

_INTEGERS = {
    "char": INT8, "signed char": INT8, "unsigned char": UINT8, "short": INT16, "unsigned short": UINT16, "int": INT32,
    "unsigned int": UINT32, "long": INT64, "unsigned long": UINT64,
}  # fmt: skip


def builtin(words: str) -> DType | Void | Auto | None:
    """The type of a combination of C's type words in any order, as on 64-bit Linux; None if it is not a type."""
    match words:
        case "void":
            return Void()
        case "auto":
            return Auto()
        case "bool":
            return BOOL
        case "float":
            return FLOAT32
        case "double":
            return FLOAT64
    parts = words.split()
    if not set(parts) <= {"signed", "unsigned", "char", "short", "int", "long"} or {"signed", "unsigned"} <= set(parts):
        return None
    sizes = [part for part in parts if part in ("char", "short", "long")]
    counts = [parts.count(part) for part in ("signed", "unsigned", "int", "char", "short")]
    if max(counts) > 1 or len(set(sizes)) > 1 or len(sizes) > 2 or ("char" in parts and "int" in parts):
        return None
    sign = "unsigned " if "unsigned" in parts else "signed " if parts.count("signed") and "char" in parts else ""
    return _INTEGERS[sign + (sizes[0] if sizes else "int")]


def show(given: CType | Type) -> str:
    """A type in the words of an error message."""
    match given:
        case DType(name=name) | Struct(name=name):
            return name
        case PointerTo(element=Struct(name=name)):
            return f"a pointer to {name}"
        case PointerTo(element=element) | Pointer(element=element):
            return f"a pointer to {element}"
        case Void():
            return "void"
        case Auto():
            return "auto"
        case RawOf(array=array):
            return f"raw array '{array}'"
