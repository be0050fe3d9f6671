"""Run by test_stub_driver.py where libcuda is the stand-in: repeated calls on what looks like Numba's arrays."""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from under_stub import calls, library
from under_stub_fuse import python_calls

import fusec
from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.runtime import cuda

pytestmark = pytest.mark.usefixtures("host_twins")
X = np.random.default_rng(5).random((6, 40))


class DeviceNDArray:
    """What fusec asks of one of Numba's arrays, in memory of fusec's own. stream: 0, or an object that int() takes."""

    def __init__(self, own, stream=0):
        self.own, self.stream = own, stream
        self.shape, self.strides, self.dtype = own.shape, own.strides, own.dtype
        self.gpu_data = SimpleNamespace(context=SimpleNamespace(device=SimpleNamespace(id=own.device)))

    @property
    def device_ctypes_pointer(self):
        return SimpleNamespace(value=self.own.pointer or None)

    @property
    def __cuda_array_interface__(self):
        stream = int(self.stream) if self.stream != 0 else None
        return {**self.own.__cuda_array_interface__, "stream": stream}


DeviceNDArray.__module__ = "numba.cuda.cudadrv.devicearray"


class Stream(int):
    """Two that are one stream are not equal in Numba."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


def device_array(shape, dtype, strides, stream):
    row = dtypes.from_numpy(dtype)
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    assert strides == strides_in_order(shape, order, row.nbytes)
    return DeviceNDArray(cuda.empty(shape, row, order), stream)


@pytest.fixture
def numba(monkeypatch):
    made = ModuleType("numba.cuda")
    made.gpus, made.external_stream, made.device_array = {0: nullcontext(), 1: nullcontext()}, Stream, device_array
    monkeypatch.setitem(sys.modules, "numba.cuda", made)
    return lambda values, stream=0: DeviceNDArray(cuda.from_numpy(values), stream)


def test_repeated_calls_only_launch(numba):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - 2 * y", "minus_twice")
    fused = fusec.fuse(lambda x, y: np.exp(x) + y)
    for call, wanted in ((kernel, lambda x, y: x - 2 * y), (fused, lambda x, y: np.exp(x) + y)):
        for turn in range(5):
            x, y = numba(X + turn), numba(X)
            found = call(x, y)
            assert type(found) is DeviceNDArray
            np.testing.assert_allclose(found.own.numpy(), wanted(X + turn, X))
            again = call(found, y)  # an array on the legacy stream by that name
            np.testing.assert_allclose(again.own.numpy(), wanted(found.own.numpy(), X))
        assert {"Cuda.run", "describe"}.isdisjoint(python_calls(call, x, y))
    z = numba(X)
    for _ in range(3):
        kernel(x, y, out=z)
    library.stub_log_clear()
    kernel(x, y, out=z)
    assert [each.split()[0] for each in calls()] == ["cuLaunchKernel"]
    np.testing.assert_allclose(z.own.numpy(), X + 4 - 2 * X)


def test_arrays_on_other_streams_are_waited_for(numba):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - 2 * y", "minus_twice")
    for streams in [(0, 0)] * 3 + [(Stream(2), 0), (0, Stream(2)), (Stream(2), Stream(2))] * 2:
        library.stub_log_clear()
        kernel(*(numba(X, stream) for stream in streams))
        assert any("cuEventRecord" in each for each in calls()) == any(streams)


def test_layouts_and_dtypes_are_told_apart(numba):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - 2 * y", "minus_twice")
    for _ in range(3):
        for values in (X, X.astype("f4"), X[:3], X[0], np.zeros((0, 3))):
            found = kernel(numba(values), numba(values))
            np.testing.assert_allclose(found.own.numpy(), -values)
        turned = kernel(*(DeviceNDArray(cuda.from_numpy(X).T) for _ in range(2)))
        np.testing.assert_allclose(turned.own.numpy(), -X.T)
