"""Spaces whose last axis is short are walked in strips of it and the axis before it: every element is the right one."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from fusec.arguments import layouts
from fusec.runtime.cpu.processor import processor
from tests.support.page_ends import at_end_of_page

add = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + 2 * y", "add_in_strips")
SHAPES = [(32, 2), (1000, 3), (45, 4), (2, 33, 3), (3, 2, 40, 2), (5, 600, 2, 3), (500, 7), (40, 32), (3, 100, 17)]
DTYPES = ["uint8", "float32", "float64", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.sampled(5)
def test_elements_of_short_rows_are_the_right_ones(shape, dtype):
    random = np.random.default_rng(0)
    x = random.integers(0, 50, (*shape[:-1], shape[-1] + 1)).astype(dtype)
    planes = random.integers(0, 50, shape[-1:] + shape[:-1]).astype(dtype)
    others = [random.integers(0, 50, each).astype(dtype) for each in (shape, shape[-1:], (*shape[:-1], 1))]
    for part in (x[..., 1:], x[..., :0:-1], x[::-1, ..., :-1], np.moveaxis(planes, 0, -1)):
        for other in (others[0], others[0][..., ::-1], *others[1:], np.ones((1,) * len(shape), dtype)):
            found, wanted = add(part, other), part + np.asarray(2, dtype) * other
            assert np.array_equal(found, wanted)
            assert part.base is not x or found.flags.c_contiguous == wanted.flags.c_contiguous
            around = np.zeros((*shape[:-1], shape[-1] + 3), dtype)
            add(part, other, around[..., 1:-2])
            assert np.array_equal(around[..., 1:-2], wanted)
            assert not around[..., 0].any()
            assert not around[..., -2:].any()


@given(st.integers(32, 3000), st.integers(1, 40), st.integers(1, 3), st.sampled_from(DTYPES), st.data())
@settings(max_examples=60, deadline=None)
def test_arrays_are_changed_in_place(rows, columns, step, dtype, data):
    whole = np.arange(rows * step * (columns + 2)).reshape(rows * step, columns + 2).astype(dtype)
    part = (slice(None, None, step), slice(data.draw(st.integers(0, 2)), columns))
    before = whole.copy()
    scale = whole[part][:, :1].copy()
    add(whole[part], scale, whole[part])
    wanted = before.copy()
    wanted[part] = before[part] + np.asarray(2, dtype) * scale
    assert np.array_equal(whole, wanted)


def repeated(x, y):
    return np.repeat(np.repeat(x, 2, axis=-2), 3, axis=-1) + y


def beside(x, y):
    return np.concatenate([x, 2 * y[..., : x.shape[-1]][..., : x.shape[-2], :]], axis=-1)


def rolled(x, y):
    return np.roll(y, (1, -1), axis=(-2, -1)) * y[..., ::-1]


@pytest.mark.parametrize(
    ("function", "dtype"), [(repeated, "float32"), (beside, "uint8"), (beside, "float64"), (rolled, "complex128")]
)
def test_short_rows_know_their_coordinates(function, dtype):
    random, fused = np.random.default_rng(0), fusec.fuse(function)
    for *outer, columns in [(40, 1), (33, 2), (600, 5), (45, 10), (3, 2, 17, 1), (2, 2, 70, 4)]:
        x = random.integers(0, 50, (*outer, columns)).astype(dtype)
        y = random.integers(0, 50, (*outer[:-1], 2 * outer[-1], 3 * columns)).astype(dtype)
        for other in (y, y[..., ::-1]):
            assert np.array_equal(fused(x, other), function(x, other))


@pytest.mark.skipif(sys.platform != "linux", reason="protects a page by Linux's mprotect")
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64"])
@pytest.mark.parametrize("columns", [2, 3, 4, 5, 7, 8, 12, 17, 40])
def test_nothing_is_read_behind_the_last_row(dtype, columns):
    for gap in (0, 1, 3, 70):
        whole = np.arange(700 * (columns + gap)).reshape(700, -1).astype(dtype)
        for part in (whole[:, gap:], whole[::-1, gap:], whole[::3, gap:], whole[:, -1 : -1 - columns : -1]):
            placed = at_end_of_page(part)
            assert np.array_equal(add(placed, part), part + np.asarray(2, dtype) * part)
            add(placed, part[:1], placed)
            assert np.array_equal(placed, part + np.asarray(2, dtype) * part[:1])


def test_ranges_of_threads_begin_and_end_within_short_rows():
    x = np.arange(900_007 * 3.0).reshape(-1, 3)[:, ::-1]
    out = np.empty((900_007, 5))
    add(x, x[0], out[:, 1:4])
    assert np.array_equal(out[:, 1:4], x + 2 * x[0])


def test_only_short_rows_of_a_long_axis_are_strips():
    def is_in_strips(shape, reorder=True):
        strides = [(0, 8), (8 * shape[-1], 8)]
        return layouts.nest(shape, strides, reorder=reorder, merge=True, strips=True).strips

    short, long = layouts.SHORT, layouts.LONG
    found = {shape for shape in [(long, 4), (long, short), (long - 1, 4), (long, short + 1)] if is_in_strips(shape)}
    assert found == {(long, 4), (long, short)}
    assert is_in_strips((long, 4), reorder=False)
    assert not is_in_strips((long, 1), reorder=False)


def test_no_constant_is_loaded_again_for_each_vector(monkeypatch, tmp_path):
    for name, value in (("FUSEC_CPU", "avx2"), ("FUSEC_DUMP", str(tmp_path)), ("FUSEC_TIERS", "0")):
        monkeypatch.setenv(name, value)
    try:
        processor()
    except fusec.FusecError:
        pytest.skip("this processor is less than avx2")
    exp = fusec.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = exp(x) * exp(y)", "exp_in_strips")
    x = np.ones((300, 8), np.float32)
    exp(x[:, :2], x[:, 2:4])
    (text,) = [path.read_text() for path in tmp_path.glob("*assembly.txt")]
    turns = re.findall(r"(?m)^(\.L\w+):\n((?:(?!\.L).*\n)*?)\tj\w+\t\1$", text)
    vectors = [body for _, body in turns if body.count("vfmadd") > 20]
    assert vectors
    assert not any("broadcast" in body for body in vectors)
