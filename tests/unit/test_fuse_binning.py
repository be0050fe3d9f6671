"""Searches in few known numbers, and histograms of few bins, which kernels do: NumPy's results for all values."""

import numpy as np
import pytest

import fusec

EDGES = {
    "rising": ([0, 0.25, 0.5, 1], "f8"),
    "integers": ([0, 2, 5], "i8"),
    "falling": ([3, 2.5, -1], "f8"),
    "all the same": ([1, 1, 1], "i1"),
    "one": ([0.0], "f8"),
    "infinite": ([-np.inf, 0, np.inf], "f8"),
    "small": ([0.1, 0.3], "f4"),
}
DTYPES = ["f4", "f8", "i1", "i8", "u4", "u8", "f2"]


def _values(dtype):
    found = (np.random.default_rng(0).normal(size=(5, 6)) * 3).astype(dtype)
    if found.dtype.kind == "f":
        found[0] = np.nan, np.inf, -np.inf, -0.0, 0, 0.25
        found[1, :4] = 0.5, 1, 0.1, 0.3
    return found


def _agree(function, x):
    fused = fusec.fuse(function)
    for _ in range(3):
        for one, other in zip(np.atleast_1d(fused(x)), np.atleast_1d(function(x)), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
            assert one.strides == other.strides
    return fused


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
@pytest.mark.sampled(5)
def test_few_known_numbers_are_searched_by_comparing(edges, dtype):
    x, (numbers, kind) = _values(dtype), edges
    rising = sorted(numbers)

    def found(x):
        places = [np.digitize(x, np.array(numbers, kind), right) for right in (False, True)]
        return places + [np.searchsorted(np.array(rising, kind), x, side) for side in ("left", "right")]

    for each in (x, x.T, x[::2, ::-1], x[0], x[:0]):
        fused = _agree(found, each)
    assert ("np.digitize" in str(fused.explain(each))) == (dtype in ("u8", "f2"))


def test_numbers_out_of_order_are_refused_as_numpy_refuses_them():
    with pytest.raises(ValueError, match="monotonic"):
        fusec.fuse(lambda x: np.digitize(x, [0, 2, 1]))(np.ones(3))
    _agree(lambda x: np.digitize(x, [0, 1, np.nan]), np.ones(3))
    _agree(lambda x: np.searchsorted([2, 1, 3], x), np.arange(5))


RANGES = [(0, 1), (-2, 3.5), [0.0, 7.0], (1, 1), (1e8, 1e8 + 1), (-1e308, 1e308), (0, 300), (-1e-300, 1e-300)]


def _counted(function, x):
    try:
        return [*function(x)]
    except (ValueError, IndexError) as problem:
        return [type(problem)]


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u4", "f2"])
@pytest.mark.parametrize("bins", [1, 4, 15])
@pytest.mark.sampled(5)
def test_few_bins_are_counted_by_comparing(dtype, bins):
    x = _values(dtype)
    for place in RANGES:

        def function(x, place=place):
            return np.histogram(x, bins, place)

        found, expected = _counted(fusec.fuse(function), x), _counted(function, x)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
            assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


def test_what_a_histogram_makes_can_be_written_and_searched():
    def function(x):
        counts, edges = np.histogram(x, 5, range=(0, 1))
        edges += 0.5
        counts[0] = 7
        return counts, edges, np.digitize(x, edges)

    fused, rng = fusec.fuse(function), np.random.default_rng(1)
    for size in (100, 0, 7, 100):
        x = rng.normal(size=size)
        for _ in range(3):
            for one, other in zip(fused(x), function(x), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
                one[...] = 0  # changes no later call
    assert "np." not in str(fused.explain(x))
