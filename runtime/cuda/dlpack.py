"""Reading DLPack capsules (https://dmlc.github.io/dlpack/latest/c_api.html), versions before 1.0 and 1.x."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order

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


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


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
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major > 1:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is newer than 1.x")
        return _contents(managed.tensor, bool(managed.flags & _READ_ONLY))
    if _is_valid(capsule, b"dltensor"):
        return _contents(_Tensor.from_address(_pointer(capsule, b"dltensor")), readonly=False)
    raise BufferError("__dlpack__ gave no DLPack capsule")


def _signed(nbytes: int) -> int:
    """A stride, also one of CuPy's that is negative: it divides -40 by 8 as 2^64 - 40 (CuPy 14.2)."""
    return (nbytes + (1 << 63)) % (1 << 64) - (1 << 63)


def _contents(tensor: _Tensor, readonly: bool) -> Contents:
    dtype = _TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    nbytes = max(1, tensor.bits * tensor.lanes // 8)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(_signed(tensor.strides[axis] * nbytes) for axis in range(tensor.ndim))
    else:
        strides = strides_in_order(shape, range(len(shape)), nbytes)
    return Contents(
        pointer=(tensor.data or 0) + tensor.byte_offset,
        shape=shape,
        strides=strides,
        dtype=dtype,
        kind=f"DLPack code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes",
        device_type=tensor.device_type,
        device=tensor.device_id,
        readonly=readonly,
    )
