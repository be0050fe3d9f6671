"""Kernels give their bits whatever state of arithmetic the calling thread is in."""

import ctypes
import platform
import subprocess
import sys

import pytest

X86 = platform.machine() in ("x86_64", "AMD64")
SCRIPT = """
import ctypes, numpy as np, fusec
libm = ctypes.CDLL("libm.so.6")
k = fusec.ElementwiseKernel("T x, T y", "T z", "z = x / y + exp(x)", "k")
x = np.linspace(0.1, 3, 300_000).astype("f4")
tiny = np.arange(1, 300_001, dtype="u4").view("f4")
add = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
before = [k(x, x[::-1]).tobytes(), add(tiny, tiny).tobytes(), fusec.sum(x).tobytes()]
for mode in (0x400, 0x800, 0xC00):  # down, up, to zero
    assert libm.fesetround(mode) == 0
    for _ in range(3):
        assert [k(x, x[::-1]).tobytes(), add(tiny, tiny).tobytes(), fusec.sum(x).tobytes()] == before, mode
    assert libm.fegetround() == mode
"""


@pytest.mark.skipif(not X86 or sys.platform != "linux", reason="sets the rounding mode by glibc on x86-64")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_rounding_mode_of_the_caller_does_not_matter(threads, tmp_path):
    try:
        ctypes.CDLL("libm.so.6")
    except OSError:
        pytest.skip("no glibc here")
    settings = {"FUSEC_NUM_THREADS": threads, "FUSEC_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
