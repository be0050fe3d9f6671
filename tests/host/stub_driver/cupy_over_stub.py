"""A stand-in for CuPy where libcuda is one too: arrays in memory of the driver, on which NumPy computes."""

import ctypes
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np

from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.runtime import cuda

MISSING = {"percentile"}
SAID = ("ndim", "size", "nbytes")
CURRENT = [SimpleNamespace(ptr=0)]


class UnownedMemory:
    def __init__(self, pointer, nbytes, owner, device):
        self.ptr, self.size, self.owner, self.device_id = pointer, nbytes, owner, device


class MemoryPointer:
    def __init__(self, memory, offset):
        self.mem, self.ptr, self.device_id = memory, memory.ptr + offset, memory.device_id

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


class ndarray:
    def __init__(self, shape, dtype=float, memptr=None, strides=None):
        self.base = None
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)
        self.strides = strides or strides_in_order(self.shape, range(len(self.shape)), self.dtype.itemsize)
        if memptr is None:
            own = cuda.empty(self.shape, dtypes.from_numpy(self.dtype))
            memptr = MemoryPointer(UnownedMemory(own.pointer, 0, own, own.device), 0)
        self.data, self.device = memptr, SimpleNamespace(id=memptr.device_id)

    ndim, size, nbytes = (property(lambda self, name=name: getattr(self.seen(), name)) for name in SAID)

    @property
    def __cuda_array_interface__(self):
        data = {"data": (self.data.ptr, False), "stream": CURRENT[-1].ptr or 1, "version": 3}
        return {**data, "shape": self.shape, "strides": self.strides, "typestr": self.dtype.str}

    def seen(self):
        reach = [(extent - 1) * step for extent, step in zip(self.shape, self.strides, strict=True)]
        low, high = sum(min(0, each) for each in reach), sum(max(0, each) for each in reach) + self.dtype.itemsize
        block = (ctypes.c_char * (high - low)).from_address(self.data.ptr + low)
        return np.ndarray(self.shape, self.dtype, block, -low, self.strides)

    def get(self):
        return self.seen().copy()

    def reshape(self, *shape):
        return asarray(self.seen().reshape(*shape))

    def __matmul__(self, other):
        return np.matmul(self, other)

    def transpose(self, axes):
        shape, strides = ([each[axis] for axis in axes] for each in (self.shape, self.strides))
        return ndarray(shape, self.dtype, self.data, tuple(strides))

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if not all(isinstance(each, (ndarray, int, float)) for each in inputs):
            return NotImplemented
        return asarray(getattr(ufunc, method)(*map(_seen, inputs), **options))

    def __array_function__(self, function, types, args, options):
        if function.__name__ in MISSING or not all(issubclass(each, ndarray) for each in types):
            return NotImplemented
        found = function(*map(_seen, args), **options)
        if not isinstance(found, tuple):
            return asarray(found)
        return getattr(found, "_make", tuple)(map(asarray, found))


ndarray.__module__ = "cupy"


def _seen(value):
    return value.seen() if isinstance(value, ndarray) else value


def asarray(values):
    host = np.asarray(values)
    made = ndarray(host.shape, host.dtype)
    if host.size:
        made.seen()[...] = host
    return made


@contextmanager
def from_external(stream):
    _, pointer = stream.__cuda_stream__()
    CURRENT.append(SimpleNamespace(ptr=pointer))
    try:
        yield
    finally:
        CURRENT.pop()


def module():
    """What stands for CuPy in sys.modules."""
    cupy = ModuleType("cupy")
    cupy.ndarray, cupy.asarray, cupy.empty = ndarray, asarray, ndarray
    cupy.cuda = SimpleNamespace(
        UnownedMemory=UnownedMemory, MemoryPointer=MemoryPointer, Stream=SimpleNamespace(from_external=from_external),
        Device=nullcontext,
        get_current_stream=lambda device=0: CURRENT[-1],
    )  # fmt: skip
    return cupy
