"""CuPy's own tests and kernels, where a checkout of the public repository cupy/cupy is at hand: FUSEC_CUPY=path."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKOUT = os.environ.get("FUSEC_CUPY")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHECKOUT is None, reason="FUSEC_CUPY does not name a checkout of cupy/cupy"),
]


def test_cupys_own_tests_pass_on_numpy_arrays():
    assert subprocess.call([sys.executable, str(HERE / "run_cupy_tests.py"), str(CHECKOUT)]) == 0


def test_every_portable_kernel_of_cupy_has_text_for_every_target():
    assert subprocess.call([sys.executable, str(HERE / "cupy_kernels.py"), str(CHECKOUT)]) == 0
