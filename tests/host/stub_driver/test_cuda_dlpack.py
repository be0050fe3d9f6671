"""DLPack capsules are read as their specification says; these are made by hand, without any driver."""

import ctypes

import numpy as np
import pytest

from fusec.base import dtypes
from fusec.runtime import cuda
from fusec.runtime.cuda import dlpack

NAME, VERSIONED = b"dltensor", b"dltensor_versioned"
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.argtypes, new_capsule.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object


class Tensor(ctypes.Structure):
    """The C struct DLTensor."""

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


class Versioned(ctypes.Structure):
    """The C struct DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


class Producer:
    """Offers one hand-made tensor on device 3."""

    def __init__(self, code=2, bits=32, shape=(2, 3), strides=None, **fields):
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.managed = Versioned(major=fields.pop("major", 1), flags=fields.pop("flags", 0))
        tensor = self.managed.tensor
        tensor.data, tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 4096, len(shape), code, bits, 1
        tensor.device_type, tensor.device_id = 2, 3
        tensor.shape = self.shape
        if self.strides:
            tensor.strides = self.strides
        for name, value in fields.items():
            setattr(tensor, name, value)

    def __dlpack_device__(self):
        return (self.managed.tensor.device_type, self.managed.tensor.device_id)

    def __dlpack__(self, *, stream=None, max_version=None):
        return new_capsule(ctypes.addressof(self.managed), VERSIONED, None)


class Older(Producer):
    """A producer from before DLPack 1.0."""

    def __dlpack__(self, *, stream=None):
        return new_capsule(ctypes.addressof(self.managed.tensor), NAME, None)


@pytest.mark.parametrize("producer", [Producer, Older])
def test_both_kinds_of_capsule_say_the_same(producer):
    seen = cuda.describe(producer(strides=(1, -2), byte_offset=64))
    assert (seen.pointer, seen.shape, seen.strides) == (4160, (2, 3), (4, -8))
    assert cuda.describe(producer(strides=((2**64 - 12) // 4, 1))).strides == (-12, 4)  # as CuPy has it
    assert (seen.dtype, seen.device, seen.readonly, seen.stream) == (dtypes.FLOAT32, 3, False, None)


def test_missing_strides_mean_c_order():
    assert cuda.describe(Producer(shape=(2, 3, 4))).strides == (48, 16, 4)
    assert cuda.describe(Producer(shape=(2, 0, 4))).strides == (16, 16, 4)
    assert cuda.describe(Producer(shape=())).strides == ()


@pytest.mark.parametrize(
    ("code", "bits", "row"),
    [
        (0, 8, dtypes.INT8), (0, 64, dtypes.INT64), (1, 16, dtypes.UINT16), (2, 16, dtypes.FLOAT16),
        (2, 64, dtypes.FLOAT64), (4, 16, dtypes.BFLOAT16), (5, 64, dtypes.COMPLEX64), (5, 128, dtypes.COMPLEX128),
        (6, 8, dtypes.BOOL), (10, 8, dtypes.FLOAT8_E4M3FN), (12, 8, dtypes.FLOAT8_E5M2),
    ],
)  # fmt: skip
def test_type_codes(code, bits, row):
    assert cuda.describe(Producer(code, bits)).dtype == row


@pytest.mark.parametrize(
    "fields", [{"code": 3}, {"bits": 128}, {"lanes": 4}, {"code": 0, "bits": 4}, {"code": 7, "bits": 8}]
)
def test_types_that_fusec_lacks_are_named(fields):
    with pytest.raises(TypeError, match=r"a CUDA array of type DLPack code .* is not supported"):
        cuda.describe(Producer(**fields))


def test_the_read_only_flag_counts():
    assert cuda.describe(Producer(flags=1)).readonly


def test_a_newer_major_version_is_refused():
    with pytest.raises(TypeError, match=r"DLPack 2\.0 is newer than 1\.x"):
        cuda.describe(Producer(major=2))


@pytest.mark.parametrize(
    ("kind", "is_device"), [(1, False), (2, True), (3, False), (8, False), (10, False), (13, True)]
)
def test_the_device_type_decides_what_is_a_device_array(kind, is_device):
    assert cuda.is_device_array(Producer(device_type=kind)) == is_device


@pytest.mark.parametrize("kind", [1, 3])
def test_host_memory_is_refused_pinned_or_not(kind):
    with pytest.raises(TypeError, match="in host memory cannot be used together with CUDA arrays"):
        cuda.describe(Producer(device_type=kind))


def test_something_that_is_no_capsule_is_refused():
    with pytest.raises(BufferError, match="no DLPack capsule"):
        dlpack.read("capsule")


@pytest.mark.parametrize("value", [3, "text", None, [1.0], object()])
def test_other_objects_are_no_device_arrays(value):
    assert not cuda.is_device_array(value)
    with pytest.raises(TypeError, match="neither __dlpack__ nor __cuda_array_interface__"):
        cuda.describe(value)


def test_a_tensor_that_must_not_be_shared_gives_its_own_reason():
    class Tensor:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")

    assert cuda.is_device_array(Tensor())
    with pytest.raises(TypeError, match="requires grad"):
        cuda.describe(Tensor())


def test_numpy_arrays_are_host_arrays():
    assert not cuda.is_device_array(np.zeros(3))
