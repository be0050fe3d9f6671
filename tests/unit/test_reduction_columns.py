"""Columns that are reduced together on the CPU: those on both sides of the reduced axis, with the bits of the order."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import fusec
from fusec.arguments.layouts import View
from fusec.base.dtypes import FLOAT64
from fusec.kinds.columns import in_vectors
from fusec.kinds.reduction import Operand, PhaseRules, phases


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(50, 3, 20), (64, 3, 32), (9, 40, 7)], ids=str)
def test_few_columns_are_walked_with_those_of_other_rows(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for given in (x, x[::-1, :, ::-1], x[:, ::2]):
        upwards = given[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in given.strides)]
        parts = np.add.accumulate(upwards, 2)[:, :, -1]
        assert np.array_equal(fusec.sum(given, axis=(0, 2)), np.add.accumulate(parts, 0)[-1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8", "i1", "i2"])
@pytest.mark.parametrize("count", [2, 4, 5, 9, 20, 32])
def test_rows_that_lie_side_by_side_are_added_in_order(count, dtype):
    x = np.random.default_rng(0).integers(-99, 99, (300, count + 2)).astype(dtype) / 7
    x = x.astype(dtype)
    for given in (x[:, :count], x[:, 1:-1][::-1], x[:77, -count:], x[:, :count][:, ::-1]):
        upwards = given[:, ::-1] if given.strides[1] < 0 else given
        assert np.array_equal(fusec.sum(given, axis=1, dtype=dtype), np.add.accumulate(upwards, 1, dtype)[:, -1])


def test_columns_before_and_after_the_reduced_axis_are_one_axis():
    rules = PhaseRules(64, [("stored", "given", FLOAT64)])

    def extents(shape, axes):
        row = tuple(8 * prod(shape[axis + 1 :]) for axis in range(len(shape)))
        given = Operand("x", View(0, shape, row, FLOAT64), row, False)
        return [phase.extents for phase in phases(shape, axes, [given], rules)]

    assert extents((1000, 3, 20), (0, 2))[:2] == [(20, 3000), (1000, 3)]
    assert extents((1000, 3, 5, 4), (0, 2, 3))[:2] == [(20, 3000), (1000, 3)]
    assert extents((7, 50, 90), (1,)) == [(7, 50, 90)]


def test_repeated_calls_over_several_axes_run_all_launches_at_once():
    fused, usual = fusec.fuse(lambda x: x.sum(axis=(0, 2))), np.random.default_rng(0).integers(0, 9, (5, 3, 20))
    for given in (usual, usual[:, :, ::-1], usual[:1]) * 12:
        assert np.array_equal(fused(given), given.sum(axis=(0, 2)))
        given += 1
    plans = [plan for plans in fused._plans.values() for plan in plans]
    assert any(plan.native is not None or plan.entry is not None for plan in plans)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i1"])
@pytest.mark.parametrize("counts", [(40, 3, 4), (300, 7, 5), (1000, 2, 31), (33, 32, 2)], ids=str)
def test_two_axes_of_columns_are_walked_as_one(dtype, counts):
    many, inside, few = counts
    rng = np.random.default_rng(0)
    points, others = (rng.integers(-9, 9, (count, inside)).astype(dtype) for count in (many, few))
    squared = fusec.ReductionKernel("T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = a", "0")
    for left, right in (
        (points, others),
        (points[::-1], others[:, ::-1][:, ::-1]),
        (points, np.asfortranarray(others)),
    ):
        found = squared(left[:, None], right, axis=2)
        assert np.array_equal(found, ((left[:, None] - right) ** 2).sum(2, dtype=dtype))
        assert found.flags.c_contiguous


def test_few_columns_that_do_not_lie_so_are_walked_with_others():
    def walked(shape, axis, **rows):
        operands = [Operand(name, View(0, shape, row, FLOAT64), row, name == "z") for name, row in rows.items()]
        (phase, *_) = phases(shape, (axis,), operands, PhaseRules(64, [("stored", "given", FLOAT64)]))
        layout = in_vectors(phase, {"x", "y"}).layout
        return layout.strips, layout.chunked

    assert walked((100, 4, 3), 2, x=(24, 0, 8), y=(0, 24, 8), z=(32, 8, 0)) == (True, False)
    assert walked((100, 4, 3), 2, x=(24, 0, 8), y=(0, 24, 8), z=(8, 800, 0)) == (False, False)
    assert walked((3, 3, 5000), 2, x=(40000, 0, 8), y=(0, 40000, 8), z=(24, 8, 0)) == (False, True)
    assert walked((5000, 3), 0, x=(24, 8), y=(0, 8), z=(0, 8)) == (False, False)


@pytest.mark.parametrize("count", [64, 1024, 2000, 64 * 70 + 1])
def test_chunks_of_few_columns_are_walked_side_by_side(count):
    """With the bits of their order: sums of 64 elements, then sums of 64 sums."""
    x, weights = np.random.default_rng(0).normal(size=(3, count)), np.random.default_rng(1).random(count)
    found = fusec.fuse(lambda x, w: (x[:, None] * x * w).sum(-1))(x, weights)
    parts = x[:, None] * x * weights
    while parts.shape[-1] > 1:
        starts = range(0, parts.shape[-1], 64)
        parts = np.stack([np.add.accumulate(parts[..., at : at + 64], -1)[..., -1] for at in starts], -1)
    assert np.array_equal(found, parts[..., 0])


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "i2", "f4", "f8"])
@pytest.mark.parametrize("count", [2, 3, 4, 7, 31])
def test_rows_are_stored_side_by_side_again(dtype, count):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 50, (200, count + 3)).astype(dtype)
    distances = fusec.fuse(lambda x: (x != x.max(1, keepdims=True), np.maximum(x, x.min(1, keepdims=True)), x.any(1)))
    for given in (x[:, :count], x[:, 1 : count + 1], x[:70, :count].copy(), x[::-1, count - 1 :: -1], x[:9, :count]):
        high, low = given.max(1, keepdims=True), given.min(1, keepdims=True)
        for found, expected in zip(
            distances(given), (given != high, np.maximum(given, low), given.any(1)), strict=True
        ):
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)
