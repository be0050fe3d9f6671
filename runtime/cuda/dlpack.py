"""Reading DLPack capsules (https://dmlc.github.io/dlpack/latest/c_api.html), versions before 1.0 and 1.x."""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import signed_word, strides_in_order

# DLDeviceType
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
ON_DEVICE = (CUDA, CUDA_MANAGED)
DEVICE_KINDS = {4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 11: "ROCm host", 14: "oneAPI", 15: "WebGPU"}

_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY
_TYPES: dict[tuple[int, int], DType] = {  # DLDataTypeCode and bits
    (6, 8): dtypes.BOOL,
    (4, 16): dtypes.BFLOAT16,
    (10, 8): dtypes.FLOAT8_E4M3FN,
    (12, 8): dtypes.FLOAT8_E5M2,
    **{(0, row.bits): row for row in dtypes.SIGNED},
    **{(1, row.bits): row for row in dtypes.UNSIGNED},
    **{(2, row.bits): row for row in (dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64)},
    **{(5, row.bits): row for row in dtypes.COMPLEX},
}


_TENSOR = struct.Struct("=QiiiBBHQQQ")  # DLTensor: data, device, axes, type, shape, strides and offset in bytes
_VERSIONED = struct.Struct("=IIQQQ")  # what DLManagedTensorVersioned has before it: version, manager, deleter, flags


class Contents(NamedTuple):
    """The contents of a capsule; the memory lives as long as the capsule.

    strides: in bytes. kind: the type in words, for messages; dtype is None if fusec has none for it.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType | None
    kind: str
    device_type: int
    device: int
    readonly: bool


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.argtypes, _pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p


def read(capsule: object) -> Contents:
    """Read a capsule without consuming it. Raises BufferError for another capsule or a newer major version."""
    found, readonly = _fields(capsule)
    pointer, shape, strides, (code, bits, lanes), device_type, device = found
    return Contents(
        pointer=pointer,
        shape=shape,
        strides=strides,
        dtype=_TYPES.get((code, bits)) if lanes == 1 else None,
        kind=f"DLPack code {code}, {bits} bits, {lanes} lanes",
        device_type=device_type,
        device=device,
        readonly=readonly,
    )


def mark(capsule: object) -> tuple[int, tuple[object, ...]]:
    """The address of a capsule's array, and all its other facts. Raises what `read` raises."""
    found, _ = _fields(capsule)
    return found[0], found[1:]


_Fields = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, int, int], int, int]
"""Address; shape; strides in bytes; type as code, bits and lanes; kind and number of the device."""


def _fields(capsule: object) -> tuple[_Fields, bool]:
    """The contents of a capsule, and whether its array is read-only."""
    if _is_valid(capsule, b"dltensor_versioned"):
        raw = ctypes.string_at(_pointer(capsule, b"dltensor_versioned"), _VERSIONED.size + _TENSOR.size)
        major, minor, _, _, flags = _VERSIONED.unpack_from(raw)
        if major > 1:
            raise BufferError(f"DLPack {major}.{minor} is newer than 1.x")
        return _of_tensor(raw, _VERSIONED.size), bool(flags & _READ_ONLY)
    if _is_valid(capsule, b"dltensor"):
        return _of_tensor(ctypes.string_at(_pointer(capsule, b"dltensor"), _TENSOR.size), 0), False
    raise BufferError("__dlpack__ gave no DLPack capsule")


def _of_tensor(raw: bytes, at: int) -> _Fields:
    data, device_type, device, ndim, code, bits, lanes, extents, steps, offset = _TENSOR.unpack_from(raw, at)
    nbytes = max(1, bits * lanes // 8)
    numbers = ctypes.c_int64 * ndim
    shape = tuple(numbers.from_address(extents)) if ndim else ()
    if steps:
        # CuPy divides -40 by 8 as 2^64 - 40 (CuPy 14.2)
        strides = tuple([signed_word(step * nbytes) for step in numbers.from_address(steps)])
    else:
        strides = strides_in_order(shape, range(ndim), nbytes)
    return data + offset, shape, strides, (code, bits, lanes), device_type, device
