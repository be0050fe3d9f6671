"""A stable sort keeps the order of zeros of both signs and of nans of any bits, whatever sorts the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fusec
from fusec import xp
from fusec.base.dtypes import ALL, DType

Array = NDArray[Any]


def unlike(dtype: DType, shape: tuple[int, ...], share: float) -> Array:
    """Numbers of which a share are zeros of both signs, and as many nans of different bits."""
    rng = np.random.default_rng(int(10 * share))
    made = (rng.standard_normal(shape) * 50).astype(dtype.numpy)
    drawn = rng.random(shape)
    if share and dtype.is_float:
        made[drawn < 2 * share] = 0
        words = made.view(f"u{dtype.bits // 8}")
        words[drawn < share] ^= 1 << dtype.bits - 1
        nans = words[drawn > 1 - share]
        words[drawn > 1 - share] = np.array(np.nan, dtype.numpy).view(words.dtype) + np.arange(len(nans)) % 7
    return made


def assert_same_bits(found: Any, wanted: Array) -> None:
    found = np.asarray(found)
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("dtype", ALL)
def test_a_sort_that_is_called_stable_is(dtype: DType, share: float) -> None:
    for shape in ((0,), (1,), (3000,), (40, 50), (3, 0), (0, 3), (7, 5, 60)):
        x = unlike(dtype, shape, share)
        for axis in range(-1, len(shape)):
            wanted = np.sort(x, axis, kind="stable")
            fused = fusec.fuse(lambda x, axis=axis: np.sort(x, axis, kind="stable"))
            assert_same_bits(fused(x), wanted)
            assert_same_bits(xp.sort(xp.asarray(x), axis=axis), wanted)
            assert_same_bits(xp.sort(xp.asarray(x), axis=axis, descending=True), np.flip(wanted, axis))
            assert_same_bits(np.sort(xp.asarray(x), axis, kind="stable"), wanted)
        assert_same_bits(xp.sort(xp.asarray(x), axis=None), np.sort(x, None, kind="stable"))


def test_a_method_sorts_in_place_as_stably() -> None:
    @fusec.fuse
    def sort(x: Array) -> None:
        x.sort(kind="stable")

    x = unlike(fusec.base.dtypes.FLOAT64, (5000,), 0.3)
    wanted = np.sort(x, kind="stable")
    sort(x)
    assert_same_bits(x, wanted)
