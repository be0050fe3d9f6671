"""Columns that are reduced together on the CPU: those on both sides of the reduced axis, with the bits of the order."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import fusec
from fusec.arguments.layouts import View
from fusec.base.dtypes import FLOAT64
from fusec.kinds.reduction import Operand, PhaseRules, phases


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(50, 3, 20), (64, 3, 32), (9, 40, 7)], ids=str)
def test_few_columns_are_walked_with_those_of_other_rows(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    for given in (x, x[::-1, :, ::-1], x[:, ::2]):
        upwards = given[tuple(slice(None, None, -1 if stride < 0 else 1) for stride in given.strides)]
        parts = np.add.accumulate(upwards, 2)[:, :, -1]
        assert np.array_equal(fusec.sum(given, axis=(0, 2)), np.add.accumulate(parts, 0)[-1])


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8"])
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
    for given in (usual, usual[:, :, ::-1], usual[:1]) * 6:
        assert np.array_equal(fused(given), given.sum(axis=(0, 2)))
        given += 1
    plans = [plan for plans in fused._plans.values() for plan in plans]
    assert any(plan.native is not None for plan in plans)
