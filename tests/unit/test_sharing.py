"""Transforms and sorts along an axis that threads share: NumPy's bits, its errors and its error state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from fusec.fusion.functions import sharing

SHAPES = [(70, 500), (2, 3, 7000), (3, 2, 90, 80), (40_000,), (2, 40_000)]
ONE_AXIS = [
    np.fft.fft,
    np.fft.ifft,
    np.fft.rfft,
    np.fft.irfft,
    np.fft.hfft,
    np.fft.ihfft,
    np.sort,
    np.argsort,
    np.median,
]
ALL_AXES = [
    np.fft.fft2,
    np.fft.ifft2,
    np.fft.rfft2,
    np.fft.irfft2,
    np.fft.fftn,
    np.fft.ifftn,
    np.fft.rfftn,
    np.fft.irfftn,
]


@pytest.fixture(autouse=True)
def three_threads(monkeypatch):
    monkeypatch.setattr(sharing, "thread_count", lambda: 3)
    sharing._pool.cache_clear()
    yield
    sharing._pool.cache_clear()


def equal(found, wanted):
    return (found.dtype, found.shape) == (wanted.dtype, wanted.shape) and found.tobytes() == wanted.tobytes()


@given(st.sampled_from(ONE_AXIS), st.sampled_from(SHAPES), st.data(), st.sampled_from(["float32", "float64", "int64"]))
@settings(max_examples=80, deadline=None)
def test_parts_have_the_bits_of_the_whole(function, shape, data, dtype):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = (100 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    x = x[tuple(slice(None, None, data.draw(st.sampled_from([1, -1]))) for _ in shape)]
    run = fusec.fuse(lambda x: function(x, axis=axis) * 2)
    assert equal(run(x), function(x, axis=axis) * 2)


@given(st.sampled_from(ALL_AXES), st.sampled_from(SHAPES[:3]), st.data())
@settings(max_examples=40, deadline=None)
def test_transforms_along_several_axes_are_numpys(function, shape, data):
    axes = data.draw(st.permutations(range(-len(shape), 0)).map(lambda all_of_them: tuple(all_of_them[:2])))
    x = np.random.default_rng(0).normal(size=shape)
    x = x + 1j if "r" not in function.__name__ or "irfft" in function.__name__ else x
    assert equal(fusec.fuse(lambda x: function(x, axes=axes))(x), function(x, axes=axes))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_parts_are_the_whole_in_order(shape, threads):
    x = np.arange(np.prod(shape)).reshape(shape)
    for axis in range(-len(shape), len(shape)):
        parts = sharing.parts_of(x, axis, threads)
        found = [part.of(x) for part in parts]
        assert sum(each.size for each in found) in (0, x.size)
        assert all(each.shape[axis] == shape[axis] for each in found)
        assert threads > 1 or not parts


def test_the_first_error_is_raised_and_the_error_state_is_that_of_the_call():
    x = np.full((400, 400), np.nan)
    with pytest.raises(ValueError, match="kth"):
        fusec.fuse(lambda x: np.partition(x, 500, axis=1))(x)

    def of_rows(a, axis=-1):
        return np.log(a)

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        sharing.shared(of_rows)(np.zeros((400, 400)))
