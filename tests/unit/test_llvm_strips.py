"""Spaces whose last axis is short are walked in strips of the axis before it: every element is the right one."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.arguments import layouts

add = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + 2 * y", "add_in_strips")
SHAPES = [(32, 2), (1000, 3), (45, 4), (2, 33, 3), (3, 2, 40, 2), (5, 600, 2, 3)]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elements_of_short_rows_are_the_right_ones(shape, dtype):
    random = np.random.default_rng(0)
    x = random.integers(0, 50, (*shape[:-1], shape[-1] + 1)).astype(dtype)
    others = [random.integers(0, 50, each).astype(dtype) for each in (shape, shape[-1:], (*shape[:-1], 1))]
    for part in (x[..., 1:], x[..., :0:-1], x[::-1, ..., :-1]):
        for other in (others[0], others[0][..., ::-1], *others[1:3]):
            found = add(part, other)
            assert np.array_equal(found, part + 2 * other)
            assert found.flags.c_contiguous == (part + 2 * other).flags.c_contiguous


def test_ranges_of_threads_begin_and_end_within_short_rows():
    x = np.arange(900_007 * 3.0).reshape(-1, 3)[:, ::-1]
    out = np.empty((900_007, 5))
    add(x, x[0], out[:, 1:4])
    assert np.array_equal(out[:, 1:4], x + 2 * x[0])


def test_only_short_rows_of_a_long_axis_are_strips():
    def is_in_strips(shape, reorder=True):
        strides = [(0, 8), (8 * shape[-1], 8)]
        return layouts.nest(shape, strides, reorder=reorder, merge=True, strips=True).strips

    found = {shape for shape in [(32, 4), (32, 2), (31, 4), (32, 5)] if is_in_strips(shape)}
    assert found == {(32, 4), (32, 2)}
    assert not is_in_strips((32, 4), reorder=False)
