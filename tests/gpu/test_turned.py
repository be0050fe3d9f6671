"""Arrays that run along another axis than the result: they go through shared memory, and keep the bits of the CPU."""

import ml_dtypes
import numpy as np
import pytest

import fusec
from fusec.runtime import cuda

COMBINE = ("T x, T y, int32 c", "T z, int32 d", "z = x + (T)2 * y; if (c % 3 == 0) { continue; } d = c", "combine")
DTYPES = ["uint8", "float32", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(70, 45), (3, 40, 33), (33, 3, 64)])
@pytest.mark.parametrize("axes", ["swapped", "reversed"])
def test_turned_arrays_have_the_bits_of_the_cpu(dtype, shape, axes, strided):
    rng = np.random.default_rng(0)
    order = (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2) if axes == "swapped" else range(len(shape))[::-1]
    turned = [rng.integers(0, 100, shape).astype(dtype).transpose(order) for _ in range(2)]
    whole = rng.integers(0, 100, turned[0].shape).astype("int32")
    names = ("out0", "out1")
    kernel = fusec.ElementwiseKernel(*COMBINE)
    expected = dict(zip(names, (np.zeros(whole.shape, dtype), np.zeros(whole.shape, "int32")), strict=True))
    found = {name: strided(array.copy()) for name, array in expected.items()}
    kernel(*turned, whole, *expected.values())
    for _ in range(2):
        kernel(*map(strided, turned), cuda.from_numpy(whole), *found.values())
    for name in names:
        np.testing.assert_array_equal(found[name].numpy(), expected[name])
    long_sides = min(shape[-2:] if axes == "swapped" else (shape[0], shape[-1])) >= 32
    assert ("x_tile[" in kernel.source("cuda")) is long_sides


def test_any_block_size_turns_squares(strided):
    x, y = np.random.default_rng(0).random((2, 90, 90), np.float32)
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - y", "difference")
    for size in (1, 32, 100, 1024):
        found = kernel(strided(x.T), cuda.from_numpy(y), block_size=size)
        np.testing.assert_array_equal(found.numpy(), x.T - y)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", ml_dtypes.bfloat16, "int16", bool])
@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_narrow_arrays_turn_in_words_wherever_lines_begin(dtype, start):
    """start: elements between the beginning of the memory, which is aligned, and that of the arrays."""
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y", "product")
    rng = np.random.default_rng(start)
    for rows, columns, gap in ((68, 132, 0), (45, 70, 0), (64, 64, 3), (300, 197, 0), (1000, 32, 4), (64, 128, 0)):
        pitch = columns + gap
        memory = [rng.integers(0, 2 if dtype is bool else 11, start + rows * pitch).astype(dtype) for _ in range(2)]

        def views(x, y, rows=rows, columns=columns, pitch=pitch):
            x = x[start:].reshape(rows, pitch)[:, :columns].T
            return x, y[start : start + rows * columns].reshape(columns, rows)

        expected = kernel(*views(*memory))
        found = kernel(*views(*map(cuda.from_numpy, memory)))
        np.testing.assert_array_equal(found.numpy(), expected)
    assert ("in_words" in kernel.source("cuda")) is (start == 0)  # whether the last arrays are aligned
