"""Run by test_stub_driver.py where libcuda is the stand-in: scans of device arrays, end to end."""

from dataclasses import replace

import numpy as np
import pytest
from stub import emitted_twin

import fusec
from fusec.generated import Kernel, Layout
from fusec.runtime import cuda
from fusec.runtime.cuda import nvrtc

ADD = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")


@pytest.fixture(scope="module", autouse=True)
def _host_twins():
    real = nvrtc.compile_text

    def compile_both(source, name, goal):
        image = real(source, name, goal)
        return replace(image, code=emitted_twin(image.code, Kernel(name, "cuda", (), source, Layout(1))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvrtc, "compile_text", compile_both)
        yield


def test_device_arrays_are_scanned_in_one_kernel_or_three():
    x = np.random.default_rng(0).normal(size=20_000).astype("f4")
    for each, axis in ((x, 0), (x[:3000], 0), (x.reshape(400, 50), 0)):
        assert ADD(cuda.from_numpy(each), axis=axis, stream=4096).numpy().tobytes() == ADD(each, axis=axis).tobytes()


def test_outputs_may_be_given_and_be_the_input():
    x = np.random.default_rng(1).normal(size=3000).astype("f4")
    there, out = cuda.from_numpy(x), cuda.from_numpy(np.zeros_like(x))
    assert ADD(there, out=out) is out
    assert ADD(there, out=there) is there
    for each in (out, there):
        assert each.numpy().tobytes() == ADD(x).tobytes()
