"""Native entries of reductions: calls that come again store what the first one did, and nowhere else."""

import numpy as np
import pytest

import fusec

FLIPS = [np.s_[..., ::-1], np.s_[::-1], np.s_[:, ::-1, ::-1], np.s_[::-1, ::2, ::-1]]


@pytest.fixture(scope="module")
def greatest():
    return fusec.ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", name="greatest")


@pytest.mark.parametrize("flip", FLIPS)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("keepdims", [False, True])
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
