"""Comparisons of positions with numbers, about which most vectors agree: elements are chosen as if each were alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec

ENDS = [-(1 << 63), -(1 << 63) + 5, -70, -1, 0, 3, 64, 100, 1000, (1 << 63) - 70, (1 << 63) - 1]
choose = fusec.ElementwiseKernel(
    "T x, int64 a, int64 b",
    "T less, T most, T other",
    """
    less = i + a < b ? x : 0;
    most = b >= i - a ? x : 1;
    other = 0;
    if (i > a) { long long k = b + i; other = k <= a ? x : 2; }
    """,
    "choose_by_position",
)


@given(st.integers(1, 500), st.sampled_from(ENDS), st.sampled_from(ENDS), st.sampled_from(["uint8", "float64"]))
@settings(max_examples=80, deadline=None)
def test_numbers_of_any_size_choose_elements(n, a, b, dtype):
    x, i = np.arange(n).astype(dtype) + 7, np.arange(n)
    with np.errstate(over="ignore"):
        a, b = np.int64(a), np.int64(b)
        wanted = [np.where(i + a < b, x, 0), np.where(b >= i - a, x, 1)]
        wanted.append(np.where(i > a, np.where(b + i <= a, x, 2), 0))
    for found, each in zip(choose(x, int(a), int(b)), wanted, strict=True):
        assert np.array_equal(found, each)


@given(st.lists(st.integers(1, 150), min_size=2, max_size=5), st.integers(1, 4), st.data())
@settings(max_examples=60, deadline=None)
def test_parts_that_are_joined_stand_one_behind_the_other(lengths, rows, data):
    dtype = data.draw(st.sampled_from(["bool", "uint8", "float32", "float64", "complex64"]))
    shift = data.draw(st.integers(-20, 20))
    random = np.random.default_rng(0)
    parts = [random.integers(0, 99, (rows, length)).astype(dtype) for length in lengths]

    def join(*parts):
        joined = np.concatenate([parts[0] + parts[0], *parts[1:]], axis=1)
        return joined, np.roll(joined, shift, axis=1)[0], np.concatenate([part[0] for part in parts])

    for found, wanted in zip(fusec.fuse(join)(*parts), join(*parts), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("n", [10, 700])
def test_positions_choose_what_is_stored_in_place(n):
    x = np.arange(float(n))
    step = fusec.ElementwiseKernel("int64 low, int64 high", "T x", "if (i >= low && i < high) x = x * 2 + 1")
    wanted = np.where((np.arange(n) >= 3) & (np.arange(n) < 333), x * 2 + 1, x)
    step(3, 333, x)
    assert np.array_equal(x, wanted)


@pytest.mark.parametrize("count", [60, 400])
def test_numbers_that_each_variable_names_twice_are_written_out_in_linear_time(count):
    lines = ["long long a0 = n;", *(f"long long a{k} = a{k - 1} + a{k - 1} - n;" for k in range(1, count))]
    choose = fusec.ElementwiseKernel("T x, int64 n", "T y", "\n".join([*lines, f"y = i < a{count - 1} ? x : 0;"]))
    x = np.arange(1000.0)
    assert np.array_equal(choose(x, 300), np.where(np.arange(1000) < 300, x, 0))
