"""Block programs on the GPU: the bits of the CPU, of few blocks and of many, and checks that name the index."""

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.runtime import cuda


@fusec.kernel(block=(16, 16))
def matmul(a, b, c):
    for i, j in fusec.grid(c.shape):
        left = fusec.shared((16, 16), np.float64)
        right = fusec.shared((16, 17), np.float64)
        ty, tx = fusec.thread_index()
        total = 0.0
        for start in range(0, a.shape[1], 16):
            left[ty, tx] = a[i, start + tx]
            right[tx, ty] = b[start + ty, j]
            fusec.barrier()
            for k in range(16):
                total += left[ty, k] * right[tx, k]
            fusec.barrier()
        c[i, j] = total


@fusec.kernel(block=(32, 32))
def transpose(a, out):
    rows, columns = a.shape
    for i, j in fusec.grid((-(-rows // 32) * 32, -(-columns // 32) * 32)):
        tile = fusec.shared((32, 33), np.float32)
        ty, tx = fusec.thread_index()
        by, bx = fusec.block_index()
        if i < rows and j < columns:
            tile[ty, tx] = a[i, j]
        fusec.barrier()
        if bx * 32 + ty < columns and by * 32 + tx < rows:
            out[bx * 32 + ty, by * 32 + tx] = tile[tx, ty]


@fusec.kernel(block=256)
def prefix_sums(x, out, totals, n):
    for i in fusec.grid(-(-n // 256) * 256):
        both = fusec.shared((2, 256), np.float32)
        t, now, d = fusec.thread_index(), 0, 1
        both[0, t] = x[i] if i < n else np.float32(0)
        fusec.barrier()
        while d < 256:
            value = both[now, t]
            if t >= d:
                value += both[now, t - d]
            now = 1 - now
            both[now, t] = value
            fusec.barrier()
            d *= 2
        if t == 255:
            totals[fusec.block_index()] = both[now, t]
        if i >= n:
            continue
        out[i] = both[now, t]


@fusec.kernel(block=1024)
def histogram(x, bins, extremes):
    for i in fusec.grid(x.size):
        counts = fusec.shared(64, np.int32)
        ends = fusec.shared(2, np.float32)
        t = fusec.thread_index()
        if t < 64:
            counts[t] = 0
        if t < 2:
            ends[t] = np.float32(np.inf) if t == 0 else np.float32(-np.inf)
        fusec.barrier()
        fusec.atomic_add(counts, int(x.flat[i]) % 64, 1)
        fusec.atomic_min(ends, 0, x.flat[i])
        fusec.atomic_max(ends, 1, x.flat[i])
        fusec.barrier()
        if t < 64:
            fusec.atomic_add(bins, t, counts[t])
        if t == 64:
            fusec.atomic_min(extremes, 0, ends[0])
            fusec.atomic_max(extremes, 1, ends[1])


@fusec.kernel(block=(4, 8, 8))
def box(a, out):
    """A mean over neighbours, whose halo the threads load together; float16 in shared memory."""
    for i, j, k in fusec.grid(out.shape):
        tile = fusec.shared((6, 10, 10), np.float16)
        z, y, x = fusec.thread_index()
        at = (z * 8 + y) * 8 + x
        while at < 600:
            tile[at // 100, at // 10 % 10, at % 10] = a[i - z + at // 100, j - y + at // 10 % 10, k - x + at % 10]
            at += 256
        fusec.barrier()
        total = np.float32(0)
        for dz in range(3):
            for dy in range(3):
                for dx in range(3):
                    total += tile[z + dz, y + dy, x + dx]
        out[i, j, k] = total / np.float32(27)


@fusec.kernel(block=128, bounds="check")
def gather(x, places, out):
    for i in fusec.grid(out.size):
        near = fusec.shared(128, np.int64)
        near[fusec.thread_index()] = places[i]
        for _ in range(2):
            fusec.barrier()
        out[i] = x[near[127 - fusec.thread_index()]]
        fusec.barrier()


def compare(kernel, *args):
    """Run on both, twice; all arrays are left with the same bits."""
    there = [cuda.from_numpy(each) if isinstance(each, np.ndarray) else each for each in args]
    for _ in range(2):
        kernel(*there)
        kernel(*args)
    for array, device in zip(args, there, strict=True):
        if isinstance(array, np.ndarray):
            np.testing.assert_array_equal(device.numpy(), array, strict=True)


@pytest.mark.parametrize("shape", [(16, 16, 16), pytest.param((160, 48, 272), marks=pytest.mark.hardware)])
def test_tiles_of_a_product(shape):
    rng = np.random.default_rng(1)
    rows, inner, columns = shape
    a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    c = np.zeros((rows, columns))
    compare(matmul, a, b, c)
    np.testing.assert_allclose(c, a @ b)


@pytest.mark.parametrize("shape", [(1, 1), (40, 33), pytest.param((1000, 4099), marks=pytest.mark.hardware)])
def test_tiles_read_the_other_way_round(shape):
    a = np.random.default_rng(2).random(shape, dtype="f4")
    out = np.zeros(shape[::-1], "f4")
    compare(transpose, a, out)
    np.testing.assert_array_equal(out, a.T)


@pytest.mark.parametrize("n", [1, 255, 257, pytest.param(1_000_003, marks=pytest.mark.hardware)])
def test_prefix_sums_of_blocks(n):
    x = np.random.default_rng(3).normal(size=n).astype("f4")
    compare(prefix_sums, x, np.zeros_like(x), np.zeros(-(-n // 256), "f4"), n)


@pytest.mark.parametrize("columns", [2, pytest.param(777, marks=pytest.mark.hardware)])
def test_updates_of_shared_arrays_lose_nothing(columns):
    x = np.random.default_rng(4).uniform(0, 1000, (1024, columns)).astype("f4")
    bins, extremes = np.zeros(64, "i4"), np.array([np.inf, -np.inf], "f4")
    compare(histogram, x, bins, extremes)
    np.testing.assert_array_equal(bins, 2 * np.bincount(x.ravel().astype("i8") % 64, minlength=64))
    assert extremes.tolist() == [x.min(), x.max()]


def test_blocks_of_three_axes():
    a = np.random.default_rng(5).integers(0, 99, (10, 18, 26)).astype("f4")
    compare(box, a, np.zeros((8, 16, 24), "f4"))


def test_checks_find_the_index_outside_and_barriers_are_met():
    x, out, places = np.arange(10.0), np.zeros(1280), np.arange(1280) % 10
    compare(gather, x, places, out)
    places[517] = 10
    with pytest.raises(FusecError, match="index 10 of 'x' is outside its 10 elements") as caught:
        gather(*map(cuda.from_numpy, (x, places, out)))
    assert f"in element {512 + 127 - 5}" in str(caught.value)


def test_block_size_is_the_kernels_own():
    x = cuda.from_numpy(np.zeros((32, 32), "f4"))
    with pytest.raises(FusecError, match="block_size"):
        transpose(x, cuda.from_numpy(np.zeros((32, 32), "f4")), block_size=64)


@pytest.mark.hardware
def test_more_blocks_than_a_device_runs_at_once():
    x = np.arange(1 << 24, dtype="f4").reshape(4096, 4096) % 1009
    compare(transpose, x, np.zeros_like(x))
