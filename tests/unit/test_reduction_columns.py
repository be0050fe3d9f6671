"""Columns that are reduced together on the CPU: those on both sides of the reduced axis, with the bits of the order."""

from __future__ import annotations

import itertools
import re
from math import prod

import numpy as np
import pytest

import fusec
from fusec.arguments.layouts import View
from fusec.base.dtypes import FLOAT64
from fusec.kinds import columns
from fusec.kinds.columns import by_chunks, in_vectors
from fusec.kinds.reduction import Operand, PhaseRules, phases
from fusec.kinds.rows import BLOCK_BYTES, RowKind
from fusec.runtime.cpu import machine


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


@pytest.mark.parametrize("count", [3, 6, 31])
def test_memory_that_is_asked_for_ahead_changes_nothing(count, monkeypatch):
    monkeypatch.setattr(machine, "last_level_cache_bytes", lambda: 0)
    x = np.random.default_rng(0).normal(size=(1234, count + 1))
    for given in (x[:, 1:], x[::-1, :-1], x[:5, 1:], np.ascontiguousarray(x)):
        assert np.array_equal(fusec.sum(given, axis=1), np.add.accumulate(given, 1)[:, -1])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("given", [(3, 1, 2), (1, 3, 2), (3, 3, 1), (3, 3, 3)], ids=str)
@pytest.mark.sampled(3)
def test_rows_that_share_elements_have_the_same_totals_in_any_turn(given, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    left = rng.normal(size=(given[0], 1, 70_000)).astype(dtype)[:, :, :2:-1]
    right = rng.normal(size=(given[1], given[2], 70_000)).astype(dtype)[::-1, :, 3:]
    where = rng.random(left.shape[2]) < 0.5
    found = []
    for limit in (0, 1 << 60):
        monkeypatch.setattr(columns, "NEAR", limit)
        product = fusec.ReductionKernel("T x, T y", "T z", "x * y", "a + b", "z = a", "0")
        found.append((product(left, right, axis=2), product(left, right, axis=2, where=where)))
    assert np.array_equal(*(each for each, _ in found))
    assert np.array_equal(*(each for _, each in found))
    assert np.allclose(found[0][0], (left * right).sum(2), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
@pytest.mark.parametrize("shape", [(2, 9, 50, 4), (1, 3, 64, 3), (3, 22, 150, 2), (2, 6, 130, 17)], ids=str)
def test_few_columns_beside_each_other_are_walked_down_in_turn(shape, dtype):
    outer, many, inside, few = shape
    rng = np.random.default_rng(0)
    left = rng.integers(-99, 99, (outer, many, inside)).astype(dtype)[:, :, :, None]
    right = (rng.integers(-99, 99, (outer, inside, few)).astype(dtype) / 7).astype(dtype)[:, None]
    chunks = [slice(start, start + 64) for start in range(0, inside, 64)]
    parts = [np.add.accumulate((left * right)[:, :, chunk], 2, dtype)[:, :, -1] for chunk in chunks]
    assert np.array_equal(fusec.fuse(lambda x, y: (x * y).sum(2, dtype=dtype))(left, right), sum(parts[1:], parts[0]))
    place = fusec.fuse(lambda x, y: (x - y).argmax(2))(left, right)
    assert np.array_equal(place, (left - right).argmax(2))


def test_rows_take_turns_only_if_they_share_what_no_cache_holds():
    rules = PhaseRules(RowKind(64), [("stored", "given", FLOAT64)])

    def takes_turns(shape, axes, *rows):
        given = [Operand(f"x{at}", View(0, shape, row, FLOAT64), row, False) for at, row in enumerate(rows)]
        found = phases(shape, axes, given, rules)[0]
        return by_chunks(found, {each.name: 8 for each in given}).layout.by_chunks

    assert takes_turns((3, 70_000), (1,), (560_000, 8), (0, 8))
    assert not takes_turns((3, 70_000), (1,), (560_000, 8), (560_008, 8))
    assert not takes_turns((3, 7_000), (1,), (56_000, 8), (0, 8))
    assert not takes_turns((70_000, 3), (0,), (24, 8), (8, 0))


def test_columns_before_and_after_the_reduced_axis_are_one_axis():
    rules = PhaseRules(RowKind(64), [("stored", "given", FLOAT64)])

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
@pytest.mark.sampled(5)
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
        (phase, *_) = phases(shape, (axis,), operands, PhaseRules(RowKind(64), [("stored", "given", FLOAT64)]))
        return in_vectors(phase, {"x", "y"}, {"w"}).layout.strips

    assert walked((100, 4, 3), 2, x=(24, 0, 8), y=(0, 24, 8), z=(32, 8, 0))
    assert not walked((100, 4, 3), 2, x=(24, 0, 8), y=(0, 24, 8), z=(8, 800, 0))
    assert not walked((5000, 3), 0, x=(24, 8), y=(0, 8), z=(0, 8))


def test_rows_shorter_than_a_line_are_walked_with_others():
    def walked(columns, **rows):
        shape = (100, 4, columns)
        operands = [Operand(name, View(0, shape, row, FLOAT64), row, name == "z") for name, row in rows.items()]
        (phase, *_) = phases(shape, (1,), operands, PhaseRules(RowKind(64), [("stored", "given", FLOAT64)]))
        return in_vectors(phase, {"x"}, {"w"}).layout.strips

    assert walked(7, x=(224, 56, 8), z=(56, 0, 8))
    assert walked(7, x=(224, 56, 8), w=(280, 56, 8), z=(56, 0, 8))
    assert not walked(8, x=(256, 64, 8), z=(64, 0, 8))
    assert not walked(7, x=(224, 56, 0), z=(56, 0, 8))


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "f8", "c16"])
@pytest.mark.parametrize("shape", [(100, 2, 3), (70, 5, 7), (33, 32, 2), (4, 40, 3, 5), (40, 33, 3)], ids=str)
@pytest.mark.sampled(5)
def test_short_rows_are_reduced_and_stored_again(dtype, shape):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "?" else 20, (*shape[:-1], shape[-1] + 1)).astype(dtype)
    fused = fusec.fuse(lambda x: (x == x.max(-2, keepdims=True), np.maximum(x, x.min(-2, keepdims=True)), x.sum(-2)))
    for given in (x[..., 1:], x[..., :-1].copy(), x[::-1, ..., :0:-1], x[:, ::2, ..., 1:]):
        high, low = given.max(-2, keepdims=True), given.min(-2, keepdims=True)
        expected = given == high, np.maximum(given, low), given.sum(-2)
        for found, wanted in zip(fused(given), expected, strict=True):
            assert found.dtype == wanted.dtype
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("shape", [(50, 2, 3, 2), (40, 3, 5, 4), (7, 9, 40, 3)], ids=str)
def test_windows_are_pooled(dtype, shape):
    x = np.random.default_rng(0).integers(0, 99, (shape[0] + 3, *shape[1:])).astype(dtype)
    pool = fusec.fuse(lambda x: (x.max(axis=(1, 3)), x.sum(axis=(1, 3))))
    for given in (x, x[3:], x[::-1, :, ::-1]):
        for found, wanted in zip(pool(given), (given.max(axis=(1, 3)), given.sum(axis=(1, 3))), strict=True):
            assert np.array_equal(found, wanted)


def test_results_along_the_axis_leave_what_lies_between_them():
    kernel = fusec.fuse(lambda x, out: np.subtract(x, x.max(1, keepdims=True), out=out))
    x, out = np.random.default_rng(0).normal(size=(100_000, 4, 3)), np.zeros((100_000, 4, 5))
    kernel(x, out[..., 1:4])
    assert np.array_equal(out[..., 1:4], x - x.max(1, keepdims=True))
    assert not out[..., 0].any()
    assert not out[..., 4].any()


@pytest.mark.parametrize("count", [64, 1024, 2000, 64 * 70 + 1])
def test_long_rows_that_repeat_are_added_as_rows(count):
    """Bits are those of rows in memory, whichever inputs several rows share."""
    x, weights = np.random.default_rng(0).normal(size=(3, count)), np.random.default_rng(1).random(count)
    for left, right in ((x[:, None], x), (x[:2, None], x[:, None].swapaxes(0, 1)), (x[:, None, :], weights)):
        found = fusec.fuse(lambda a, b, w: (a * b * w).sum(-1))(left, right, weights)
        assert np.array_equal(found, fusec.sum(left * right * weights, axis=-1))


def test_rows_that_inputs_do_not_lie_along_are_columns():
    def walked(*rows, count=5000):
        operands = [Operand(f"x{at}", View(0, (3, 4, count), row, FLOAT64), row, False) for at, row in enumerate(rows)]
        return phases((3, 4, count), (2,), operands, PhaseRules(RowKind(64), [("stored", "given", FLOAT64)]))[0]

    assert walked((40000, 0, 8), (0, 40000, 8)).is_last
    assert walked((40000, 0, 8), (0, 40000, 8), (0, 0, 8)).is_last
    assert not walked((8, 0, 24), (0, 40000, 8)).is_last
    assert not walked((500, 0, 8), (0, 500, 8), count=63).is_last


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "i2", "f4", "f8"])
@pytest.mark.parametrize("count", [2, 3, 4, 7, 31])
@pytest.mark.sampled(5)
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


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2"])
def test_bools_of_rows_fill_vectors(dtype):
    """The lanes of an accumulator are those of the order; vectors have as many of them as fit."""
    x = np.random.default_rng(0).integers(0, 90, (3, 50_007)).astype(dtype)
    x[1, 50_006], x[2, 777] = 100, 100
    found = fusec.fuse(
        lambda x: ((x > 99).any(axis=1), (x < 99).all(), (x == 100).any(axis=1, keepdims=True) & (x > 0))
    )
    for given in (x, x[:, :40_000], x[:, 100:101], x[:, ::-1], x[:2, 5:]):
        has = given.max(axis=1) > 99
        expected = has, not has.any(), has[:, None] & (given > 0)
        for one, wanted in zip(found(given), expected, strict=True):
            assert np.array_equal(one, wanted)


def test_vectors_of_bools_have_more_lanes_than_those_of_their_elements(monkeypatch, capsys):
    monkeypatch.setenv("FUSEC_DEBUG", "2")
    lanes = []
    for texts in (("T x", "bool z", "x > 9", "a | b", "z = a", "false"), ("T x", "T z", "x", "a + b", "z = a", "0")):
        assert fusec.ReductionKernel(*texts)(np.ones((2, 5000)), axis=1)[0] == (0 if "bool z" in texts else 5000)
        lanes.append(int(re.search(r"accumulators in vectors of (\d+)", capsys.readouterr().err)[1]))
    assert lanes[0] > lanes[1]


def test_threads_of_rows_hold_no_more_than_registers_have_room_for():
    for held, extent, chunks in itertools.product((0, 4, 8, 16, 200, 600, 5000), (1000, 2236, 4096), (3, 3000)):
        sharing = RowKind(64, held=held).sharing("whole", extent, chunks)
        if sharing.segments and sharing.rounds:
            slots = sharing.rounds // sharing.segments
            assert slots * sharing.segments == sharing.rounds >= -(-extent // 64)
            assert slots == 1 or slots * held <= BLOCK_BYTES
