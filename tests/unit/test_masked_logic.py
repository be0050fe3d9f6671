"""Choices between a number and its sign given to another, in loops, where LLVM 22 mistakes them on AVX-512."""

from __future__ import annotations

import numpy as np
import pytest

import fusec

ELEMENTS, STEPS, STRIDE = 640, 20, 50021
LOOP = """
    unsigned long long bits = 0;
    for (int k = 0; k < count; ++k) {{
        unsigned p = (unsigned)i + (unsigned)k * 4096u;
        float x = __uint_as_float((unsigned)(p * step));
        float s = fabs(x);
        float r = {choice};
        double g = (double)r;
        if (g == g) {{ bits += __float_as_uint(r) * (2 * p + 1); }}
    }}
    z = bits;
"""
MERGED = "__uint_as_float((__float_as_uint(s * 0.5f + 1) & 0x7fffffff) | (__float_as_uint(x) & 0x80000000))"


@pytest.mark.parametrize("choice", ["s > 1 ? x : copysign(s * 0.5f + 1, x)", f"s > 1 ? x : {MERGED}"])
def test_a_sign_given_within_a_choice_is_exact_in_loops(choice: str) -> None:
    kernel = fusec.ElementwiseKernel("uint64 step, int32 count", "uint64 z", LOOP.format(choice=choice), "signs")
    found = kernel(np.full(ELEMENTS, STRIDE, np.uint64), np.full(ELEMENTS, STEPS, np.int32))
    wanted = np.zeros(ELEMENTS, np.uint64)
    for k in range(STEPS):
        p = (np.arange(ELEMENTS) + k * 4096).astype(np.uint32)
        x = (p.astype(np.uint64) * STRIDE).astype(np.uint32).view(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(x)
            r = np.where(size > 1, x, np.copysign(size * np.float32(0.5) + 1, x))
        wanted += np.where(np.isnan(r), 0, r.view(np.uint32) * (2 * p + 1)).astype(np.uint64)
    np.testing.assert_array_equal(found, wanted)
