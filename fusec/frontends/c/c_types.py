"""C's type names, and the front end's knowledge of a declared type."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, BY_NAME, FLOAT32, FLOAT64, DType, signed_of, unsigned_of
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


def _dtypes(text: str) -> dict[str, DType]:
    """Names of dtypes, written as ``name=dtype``."""
    return {name: BY_NAME[dtype] for name, dtype in (each.split("=") for each in text.split())}


SCALARS = _dtypes(  # C's scalars by names of one word, as CUDA's vector types and intrinsics have them
    "char=int8 uchar=uint8 short=int16 ushort=uint16 int=int32 uint=uint32 long=int64 ulong=uint64 longlong=int64"
    " ulonglong=uint64 half=float16 float=float32 double=float64"
)
VECTORS = {  # CUDA's vector types
    f"{name}{count}": Struct(f"{name}{count}", tuple((axis, dtype) for axis in "xyzw"[:count]))
    for name, dtype in SCALARS.items()
    if name != "half"
    for count in (1, 2, 3, 4)
}
NAMED: dict[str, DType | Struct] = {**BY_NAME, **VECTORS, **_dtypes(
    "int8_t=int8 int16_t=int16 int32_t=int32 int64_t=int64 uint8_t=uint8 uint16_t=uint16 uint32_t=uint32"
    " uint64_t=uint64 size_t=uint64 ssize_t=int64 ptrdiff_t=int64 intptr_t=int64 uintptr_t=uint64 index_t=int64"
    " uint=uint32 uchar=uint8 ushort=uint16 ulong=uint64 longlong=int64 ulonglong=uint64 half=float16 __half=float16"
    " __half_t=float16 bfloat16=bfloat16 __nv_bfloat16=bfloat16 cuComplex=complex64 cuFloatComplex=complex64"
    " cuDoubleComplex=complex128 IndexT=int64"
)}  # fmt: skip
_BITS = {"char": 8, "short": 16, "int": 32, "long": 64}


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
    bits = _BITS[sizes[0] if sizes else "int"]
    return unsigned_of(bits) if "unsigned" in parts else signed_of(bits)


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
