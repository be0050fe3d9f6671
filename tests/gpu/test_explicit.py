"""Explicit kernels on the GPU: the bits of the CPU, atomics that lose nothing, and checks that name the same index."""

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.runtime import cuda


@fusec.kernel
def draw(single, double, gauss, whole, key):
    for i, j in fusec.grid(single.shape):
        counter = i * single.shape[1] + j
        single[i, j] = fusec.random.uniform32(key, counter)
        double[i, j] = fusec.random.normal64(key, counter, 1)
        gauss[i, j] = fusec.random.normal32(key, counter, 2)
        whole[i, j] = fusec.random.integers(key, counter, -3, 7, 3)


@fusec.kernel
def histogram(x, bins, extremes):
    for i in fusec.grid(x.size):
        fusec.atomic_add(bins, x.flat[i] % 16, 1)
        fusec.atomic_max(extremes, 0, x.flat[i])
        fusec.atomic_min(extremes, 1, x.flat[i])


@fusec.kernel
def medians(image, out):
    rows, columns = out.shape
    for i, j in fusec.grid((rows, columns)):
        kept = fusec.local(9, np.uint8)
        for k in range(9):
            kept[k] = image[i + k // 3, j + k % 3]
        for last in range(8, 3, -1):
            for k in range(last):
                if kept[k] > kept[k + 1]:
                    kept[k], kept[k + 1] = kept[k + 1], kept[k]
        out[i, j] = kept[4]


@fusec.kernel(bounds="check")
def gather(x, places, out):
    for i in fusec.grid(out.size):
        assert places[i] != 77
        out[i] = x[places[i]]


def compare(kernel, *args):
    """Run on both; all arrays are left with the same bits."""
    there = [cuda.from_numpy(each) if isinstance(each, np.ndarray) else each for each in args]
    kernel(*there)
    kernel(*args)
    for array, device in zip(args, there, strict=True):
        if isinstance(array, np.ndarray):
            np.testing.assert_array_equal(device.numpy(), array, strict=True)


@pytest.mark.parametrize("shape", [(1, 1), (3, 257), (100, 1000)])
def test_random_numbers_are_those_of_the_host(shape):
    arrays = [np.zeros(shape, dtype) for dtype in ("float32", "float64", "float32", "int64")]
    compare(draw, *arrays, 2024)
    assert len(np.unique(arrays[1])) == arrays[1].size


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_atomic_updates_lose_nothing(dtype):
    x = np.random.default_rng(1).integers(0, 100_000, (300, 1001)).astype(dtype)
    bins = np.zeros(16, dtype)
    compare(histogram, x, bins, np.array([0, 1 << 20], dtype))
    np.testing.assert_array_equal(bins, np.bincount(x.ravel().astype("int64") % 16, minlength=16))


def test_local_arrays_and_loops():
    compare(medians, np.random.default_rng(2).integers(0, 256, (70, 131), "uint8"), np.zeros((68, 129), "uint8"))


def test_checks_find_the_index_outside():
    x, out = np.arange(10.0), np.zeros(1000)
    places = np.arange(1000) % 10
    compare(gather, x, places, out)
    for place, message in (
        (10, "index 10 of 'x' is outside its 10 elements"),
        (-1, "index -1 of 'x'"),
        (77, "assertion"),
    ):
        wrong = places.copy()
        wrong[517] = place
        with pytest.raises(FusecError, match=message) as caught:
            gather(*map(cuda.from_numpy, (x, wrong, out)))
        assert "in element 517" in str(caught.value)
