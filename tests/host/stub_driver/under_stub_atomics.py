"""Run by test_stub_driver.py where libcuda is the stand-in: atomic updates of small arrays, as calls make them."""

import numpy as np
import pytest
from under_stub import calls, library

import fusec
from fusec.runtime import cuda

pytestmark = pytest.mark.usefixtures("host_twins")
SIZE = 40_003
COUNT = fusec.ElementwiseKernel("T x", "raw B bins", "atomicAdd(&bins[x], 1)", "count")


@fusec.kernel
def extremes(x, y, least, most, counts):
    for i in fusec.grid(len(x)):
        place = x[i]
        fusec.atomic_min(least, place, y[i])
        fusec.atomic_max(most, place, y[i])
        fusec.atomic_add(counts, (place // 4, place % 4), 1)


def values(most: int, dtype: str, size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(most).integers(0, most, size).astype(dtype)


def launched() -> list[str]:
    return [line for line in calls() if "cuLaunchKernel" in line]


@pytest.mark.parametrize(
    ("count", "dtype", "bins", "copied"),
    [
        (1, "uint8", "int32", True),
        (200, "uint8", "int32", True),
        (200, "int32", "int64", True),
        (2000, "uint16", "uint32", True),
        (200, "int16", "int8", True),
        (20_000, "uint16", "int32", False),
        (7, "int32", "float32", False),
    ],
)
def test_histograms_count_every_element(count, dtype, bins, copied):
    x, expected = values(count, dtype), np.arange(count).astype(bins)
    on_device, held = cuda.from_numpy(x), cuda.from_numpy(expected)
    for _ in range(3):  # the third call is a sequence
        library.stub_log_clear()
        COUNT(on_device, held)
        assert ("block 512" in launched()[0]) == copied
        np.add.at(expected, x.astype(int), np.ones((), bins))
    np.testing.assert_array_equal(held.numpy(), expected)


def test_few_elements_go_straight_to_the_array():
    x, held = values(7, "int32", 5000), cuda.from_numpy(np.zeros(7, np.int32))
    COUNT(cuda.from_numpy(x), held)
    assert "block 512" not in launched()[0]
    np.testing.assert_array_equal(held.numpy(), np.bincount(x, minlength=7))


@pytest.mark.parametrize("bounds", ["trust", "check"])
def test_explicit_kernels_update_several_arrays(bounds):
    kernel = fusec.kernel(extremes.__wrapped__, bounds=bounds)
    x, y = values(12, "int64"), values(10**6, "int32") - 500_000
    host = [np.full(12, 3, np.int32), np.full(12, -7, np.int32), np.zeros((3, 4), np.int64)]
    device = [cuda.from_numpy(each) for each in host]
    library.stub_log_clear()
    kernel(cuda.from_numpy(x), cuda.from_numpy(y), *device)
    kernel(x, y, *host)
    for found, wanted in zip(device, host, strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)
    assert ("block 512" in launched()[0]) == (bounds == "trust")
