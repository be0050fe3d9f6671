"""Marks every test here `gpu` and skips it, with the reason, where no NVIDIA device answers.

With FUSEC_STUB_KERNELS set (tests/host/stub_driver) the same tests run on the stand-in driver, those marked
`hardware` left out: that checks the tests and all of fusec but the machine code.
"""

import ctypes
import os
import sys
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else JAX takes most of the memory of every test

HERE = Path(__file__).parent
ON_STAND_IN = "FUSEC_STUB_KERNELS" in os.environ


def pytest_configure(config):
    config.addinivalue_line("markers", "hardware: means nothing on a stand-in driver")


def reason_to_skip() -> str:
    from fusec.errors import FusecError
    from fusec.runtime import cuda

    try:
        cuda.device(0)
    except FusecError as error:
        return str(error).splitlines()[0]
    return ""


def pytest_collection_modifyitems(items):
    here = [item for item in items if HERE in item.path.parents]
    reason = reason_to_skip() if here else ""
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif ON_STAND_IN and item.get_closest_marker("hardware"):
            item.add_marker(pytest.mark.skip(reason="needs a real device, not a stand-in"))


@pytest.fixture(scope="session", autouse=True)
def _host_twins():
    """On the stand-in, give every cubin a twin compiled for the host."""
    if not ON_STAND_IN:
        yield
        return
    sys.path[:0] = [str(HERE.parent / "host"), str(HERE.parent / "host" / "stub_driver")]
    import stub

    with stub.host_twins():
        yield


@pytest.fixture
def strided():
    """A function that puts a NumPy view on the device with the very same strides, negative and zero ones included."""
    from fusec.runtime import cuda

    class View:
        def __init__(self, array):
            reach = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True) if extent]
            low, high = sum(min(0, each) for each in reach), sum(max(0, each) for each in reach)
            nbytes = 0 if array.size == 0 else high - low + array.itemsize
            start = array.__array_interface__["data"][0] + low
            self.block = cuda.from_numpy(np.frombuffer(ctypes.string_at(start, nbytes), np.uint8))
            self.host, self.low, self.dtype = array, low, array.dtype
            self.shape, self.strides = array.shape, array.strides

        @property
        def __cuda_array_interface__(self):
            return {
                "shape": self.shape,
                "strides": self.strides,
                "typestr": self.dtype.str,
                "data": (self.block.pointer - self.low if self.host.size else 0, False),
                "stream": self.block.stream,
                "version": 3,
            }

        def numpy(self):
            if not self.host.size:
                return self.host
            back = self.block.numpy()
            return np.ndarray(self.shape, self.dtype, back.data, -self.low, self.strides).copy()

    return View
