"""Native entries of reductions: calls that come again store what the first one did, and nowhere else."""

import gc
import threading

import numpy as np
import pytest

import fusec
from fusec.dispatch import native_entries

FLIPS = [np.s_[..., ::-1], np.s_[::-1], np.s_[:, ::-1, ::-1], np.s_[::-1, ::2, ::-1]]


@pytest.fixture(scope="module")
def greatest():
    return fusec.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", name="greatest")


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.sampled(5)
def test_repeated_reductions_of_flipped_arrays_give_numpys_totals(greatest, flip, axis, keepdims):
    x = np.random.default_rng(0).integers(-99, 99, (6, 8, 10)).astype(np.int32)[flip]
    expected = x.max(axis=axis, keepdims=keepdims)
    found = [greatest(x, axis=axis, keepdims=keepdims) for _ in range(5)]
    for each in found:
        np.testing.assert_array_equal(each, expected)


@pytest.mark.parametrize("flip", FLIPS)
def test_repeated_reductions_into_given_arrays_touch_nothing_else(greatest, flip):
    x = np.random.default_rng(1).integers(-99, 99, (6, 8, 10)).astype(np.int32)[flip]
    expected = x.max(axis=0)
    around = np.full((3, *expected.shape), 1234, np.int32)
    for _ in range(5):
        around[1] = 0
        greatest(x, out=around[1], axis=0)
        np.testing.assert_array_equal(around[1], expected)
        assert (around[::2] == 1234).all()


def test_repeated_fused_reductions_of_flipped_arrays_give_numpys_totals():
    fused = fusec.fuse(lambda x: np.max(x, axis=0, keepdims=True))
    x = np.random.default_rng(2).integers(-4, 5, (2, 3, 4)).astype(np.int8)[..., ::-1]
    found = [fused(x) for _ in range(6)]
    for each in found:
        np.testing.assert_array_equal(each, x.max(axis=0, keepdims=True))


@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_repeated_reductions_by_several_kernels_are_of_the_arrays_given_then(dtype):
    scaled = fusec.ReductionKernel("T x, T k", "T y, T z", "x * k", "a + b", "y = a; z = -a", "0", name="scaled")
    rng = np.random.default_rng(3)
    buffer = np.zeros(40_008, np.uint8)
    for size in (9000, 8194, 9000, 4500, 9000):
        for step in (1, -1, 2):
            for factor in (2, 3):
                x = rng.integers(-9, 9, size * abs(step)).astype(dtype)[::step]
                y, z = scaled(x, factor)
                assert (y, z) == (factor * x.sum(), -factor * x.sum())
                assert fusec.sum(x) == x.sum()
                table = x.reshape(2, -1)
                np.testing.assert_array_equal(fusec.sum(table, axis=1, keepdims=True), table.sum(1, keepdims=True))
    for start in (0, 1, 0, 3):  # an array at an odd address lies like one at an even one
        x = buffer[start : start + 4 * 9000].view("f4")
        x[:] = 1
        assert fusec.sum(x) == 9000


def test_threads_that_repeat_a_reduction_by_several_kernels_do_not_meet():
    arrays = [np.full(20_000, number) for number in range(4)]
    wrong = []

    def work(x):
        wrong.extend(found for _ in range(300) if (found := fusec.sum(x)) != 20_000 * x[0])

    threads = [threading.Thread(target=work, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_addresses_are_what_numpy_says():
    from fusec.runtime.cpu import fastcall

    for x in (np.ones(3), np.arange(5)[::-2], np.zeros(()), np.zeros((0, 3)), np.ones(4, ">i2")[1:]):
        assert fastcall.address_reader()(x) == x.ctypes.data == fastcall._slow_address(x)


@pytest.mark.parametrize("most", [0, native_entries.MOST_BYTES])
def test_several_kernels_as_one_give_the_bits_of_kernels_one_after_the_other(most, monkeypatch):
    """With several outputs and parts, a number, given outputs; areas are used again by later calls of other sizes."""
    monkeypatch.setattr(native_entries, "MOST_BYTES", most)  # 0: none are joined
    texts = (
        "T x, T k", "T y, int64 n", "Two{x * k, 1}", "Two{a.s + b.s, a.n + b.n}", "y = a.s; n = a.n", "Two{0, 0}",
        "two", "Two", True, "struct Two { float s; long long n; };",
    )  # fmt: skip
    kernel = fusec.ReductionKernel(*texts)
    rng = np.random.default_rng(5)
    for shape, axis in (((300, 50), 0), ((9000,), None), ((300, 50), 0), ((5, 20_000), 1), ((9000,), None)):
        x = rng.normal(size=shape).astype("f4")
        wanted = fusec.ReductionKernel(*texts)(x, 2.5, axis=axis)  # its first call: kernel by kernel
        given = tuple(np.empty_like(each) for each in wanted)
        for _ in range(4):
            found = kernel(x, 2.5, axis=axis)
            kernel(x, 2.5, axis=axis, out=given)
            for each in (found, given):
                assert [part.tobytes() for part in each] == [part.tobytes() for part in wanted]


def test_kernels_that_are_joined_are_freed_with_what_they_keep():
    resource = pytest.importorskip("resource")
    x = np.ones((3000, 300), "f4")

    def use():
        kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "freed")
        return [kernel(x, axis=0) for _ in range(4)]  # 56 KB between the kernels

    for _ in range(20):
        use()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        use()
    gc.collect()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 6000  # of KB; 11 MB if nothing were freed
