"""A kernel for a processor without FMA, F16C or wide vectors leaves the bits that one for the host leaves."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fusec
from fusec.base.dtypes import BOOL, COMPUTE_FLOATS, FLOAT16, INTEGERS, STORAGE_FLOATS, DType
from fusec.runtime.cpu import jit

REAL = (BOOL, *INTEGERS, *STORAGE_FLOATS, *COMPUTE_FLOATS)
WORDS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
FOLDER = Path(__file__).parent

LEVELS = ["generic"] + ["sse2"] * (platform.machine() in ("x86_64", "AMD64"))

CALLS_A_RUNTIME = """
declare float @__extendhfsf2(i16)
define void @reads_half(i64 %lo, i64 %hi, ptr %args) {
  %wide = call float @__extendhfsf2(i16 1)
  store float %wide, ptr %args
  ret void
}
"""


def patterns(dtype: DType) -> NDArray[Any]:
    """All values of a type of up to 16 bits; of a wider one all of float16, what lies just beside and between, and some
    of any bits."""
    if dtype == BOOL:
        return np.array([False, True] * 4)
    if dtype.bits <= 16:
        return np.arange(1 << dtype.bits).astype(WORDS[dtype.bits]).view(dtype.numpy)
    drawn = np.random.default_rng(5).integers(0, 256, 1 << 16, np.uint8).view(dtype.numpy)
    if dtype.is_integer:
        return np.concatenate([np.arange(-70000, 70000, 7).astype(dtype.numpy), drawn])
    every = np.arange(1 << 15).astype(np.uint16).view(np.float16)
    finite = every[np.isfinite(every)].astype(dtype.numpy)
    edges = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite[-4:] + 16, every[-1:].astype(dtype.numpy)])
    beside = [np.nextafter(edges, dtype.numpy.type(limit)) for limit in (0, np.inf)]
    sizes = np.concatenate([edges, *beside])
    return np.concatenate([sizes, -sizes, drawn, np.array([np.inf, -np.inf, np.nan], dtype.numpy)])


def bits_of(array: NDArray[Any]) -> NDArray[Any]:
    """The bits of an array's elements, with all nans alike."""
    words = array.view(WORDS[8 * array.itemsize])
    with np.errstate(invalid="ignore"):
        nans = array != array
    return np.where(nans, ~np.zeros_like(words), words)


def results() -> dict[str, NDArray[Any]]:
    """Conversions between all real types, and the arithmetic of each."""
    found = {}
    outputs = ", ".join(f"{target.name} to_{target.name}" for target in REAL)
    body = "; ".join(f"to_{target.name} = x" for target in REAL)
    for source in REAL:
        x = patterns(source)
        converted = fusec.ElementwiseKernel(f"{source.name} x", outputs, body, "converts")(x)
        found |= {f"{source} {target}": bits_of(z) for target, z in zip(REAL, converted, strict=True)}
        if source == BOOL:
            continue
        y = np.random.default_rng(6).permutation(x)
        outcome = fusec.ElementwiseKernel("T x, T y", "T a, T b, T c, T d", ARITHMETIC, "computes")(x, y)
        found |= {f"{source} {op}": bits_of(z) for op, z in zip("+-*/", outcome, strict=True)}
    return found


ARITHMETIC = "a = x + y; b = x - y; c = x * y; d = x / y"


@pytest.fixture(scope="module")
def native() -> dict[str, NDArray[Any]]:
    return results()


@pytest.mark.parametrize("level", LEVELS)
def test_the_processor_does_not_change_the_bits(level: str, native: dict[str, NDArray[Any]], tmp_path: Path) -> None:
    path = str(tmp_path / "found.npz")
    text = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); from test_lesser_processors import *"
    text += f"; np.savez({path!r}, **results())"
    environment = os.environ | {"FUSEC_CPU": level, "FUSEC_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    with np.load(path) as found:
        assert set(found) == set(native)
        for name, wanted in native.items():
            wrong = np.flatnonzero(found[name] != wanted)[:4]
            assert not len(wrong), f"{name} at {wrong}: {found[name][wrong]} instead of {wanted[wrong]}"


def test_native_conversions_are_numpys(native: dict[str, NDArray[Any]]) -> None:
    for target in COMPUTE_FLOATS:
        wanted = patterns(FLOAT16).astype(target.numpy)
        np.testing.assert_array_equal(native[f"{FLOAT16} {target}"], bits_of(wanted))
        with np.errstate(over="ignore"):
            wanted = patterns(target).astype(np.float16)
        np.testing.assert_array_equal(native[f"{target} {FLOAT16}"], bits_of(wanted))


def test_a_function_that_the_process_has_not_is_an_error_of_ours() -> None:
    with pytest.raises(AssertionError, match="calls __extendhfsf2, which this process has not"):
        jit.compile_text("reads_half", CALLS_A_RUNTIME)
