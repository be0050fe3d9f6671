"""Sums of bools and narrow integers are exact, however long, though chunks are added in few bits."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import BOOL, INT8, INT16, UINT8, UINT16, DType

SHAPES = ((0,), (1,), (4095,), (70_001,), (300_000,), (3, 5000), (5000, 3), (100, 100, 7))


@pytest.mark.parametrize("dtype", [BOOL, INT8, UINT8, INT16, UINT16])
def test_sums_of_the_ends_of_a_range_are_exact(dtype: DType) -> None:
    ends = (False, True) if dtype == BOOL else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for x in (*(np.full(shape, end, dtype.numpy) for end in ends), rng.choice(ends, shape).astype(dtype.numpy)):
            for axis in (None, *range(len(shape))):
                found = fusec.fuse(lambda x, axis=axis: (x.sum(axis), (x != 0).sum(axis), x[::2].sum(axis)))(x)
                for ours, theirs in zip(found, (x.sum(axis), (x != 0).sum(axis), x[::2].sum(axis)), strict=True):
                    assert ours.dtype == theirs.dtype
                    np.testing.assert_array_equal(ours, theirs)


def test_a_chunk_of_bools_is_added_in_16_bits() -> None:
    count = fusec.fuse(np.count_nonzero)
    x = np.ones(100_000, np.bool_)
    assert count(x) == 100_000
    assert "x i16>" in count.source("llvm", x)
    of_floats = fusec.fuse(lambda x: np.count_nonzero(x > 0))
    assert of_floats(np.ones(100_000)) == 100_000
    assert "x i16>" not in of_floats.source("llvm", np.ones(100_000))
