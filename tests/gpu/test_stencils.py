"""Stencils in strips of rows and columns: the bits of the CPU, wherever lines begin and end."""

import numpy as np
import pytest

import fusec
from fusec.runtime import cuda

FIVE = """
def five(a):
    total = 0 * a[0, 0]
    for i in range(-2, 3):
        for j in range(-2, 3):
            total += a[i, j] * ((3 - abs(i)) * (3 - abs(j)))
    return total / 81
"""
SEVEN = """
def seven(a):
    return a[-1, 0, 0] + a[1, 0, 0] + a[0, -1, 0] + a[0, 1, 0] + a[0, 0, -1] + a[0, 0, 1] - a[0, 0, 0] * 6
"""
PLANES = ((300, 260), (301, 259), (4, 1000), (1000, 5), (5, 8), (1, 1))
SOLIDS = ((20, 33, 64), (9, 40, 67), (3, 3, 3), (1, 50, 8))


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "float16", "complex64"])
@pytest.mark.parametrize("border", ["nearest", "wrap", "constant", "skip"])
@pytest.mark.parametrize("start", [0, 1])
def test_stencils_have_the_bits_of_the_cpu(dtype, border, start):
    """start: elements between the beginning of the memory, which is aligned, and the array."""
    rng = np.random.default_rng(start)
    for text, shapes in ((FIVE, PLANES), (SEVEN, SOLIDS)):
        kernel = fusec.stencil(text, boundary=border)
        for shape in shapes:
            size = int(np.prod(shape))
            memory = (rng.random(start + size) * 40).astype(dtype)
            expected = kernel(memory[start:].reshape(shape))
            found = kernel(cuda.from_numpy(memory)[start:].reshape(shape)).numpy()
            np.testing.assert_array_equal(found.view("uint8"), expected.view("uint8"), f"{text.split()[1]} {shape}")
