"""Scans of arrays of any shape, layout and dtype: NumPy's integers, and its sums within the bound."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec

EXTENTS = st.sampled_from([0, 1, 2, 5, 31, 32, 33, 64, 65, 130])


@st.composite
def arrays(draw):
    shape = tuple(draw(st.lists(EXTENTS, min_size=1, max_size=3)))
    if np.prod(shape) > 20000:
        shape = (shape[0], 3)
    dtype = draw(st.sampled_from(["i1", "i4", "u8", "f4", "f8"]))
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    x = (rng.normal(size=shape) * 40).astype(dtype)
    if draw(st.booleans()):
        x = x.T
    steps = tuple(slice(None, None, draw(st.sampled_from([1, 1, 2, -1]))) for _ in x.shape)
    return x[steps]


@settings(max_examples=40, deadline=None)
@given(arrays(), st.data())
def test_cumulative_sums_are_those_of_numpy(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    found, wanted = fusec.cumsum(x, axis=axis), np.cumsum(x, axis=axis)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    if x.dtype.kind == "f":
        sizes = np.cumsum(np.abs(x), axis=axis, dtype="f8") + np.finfo(x.dtype).tiny
        exact = np.cumsum(x, axis=axis, dtype=np.longdouble)
        assert (np.abs(found - exact) <= 140 * np.finfo(x.dtype).eps * sizes).all()
        high = np.maximum.accumulate(x, axis=axis)
        np.testing.assert_array_equal(fusec.cummax(x, axis=axis), high)
    else:
        np.testing.assert_array_equal(found, wanted)
