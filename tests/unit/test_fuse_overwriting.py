"""Writes that other writes replace, and fills that writes cover, take no kernel; what somebody sees of them stays."""

from __future__ import annotations

import numpy as np
import pytest

import fusec


def in_parts(x, y):
    out = np.empty((len(x), 2), x.dtype)
    first, second = out[..., 0], out[..., 1]
    np.multiply(x, y, out=first)
    first -= y
    np.add(x, 1, out=second)
    second *= x
    return out


def accumulated(x, y):
    for factor in (1, 2, 3):
        x[1:3] += factor * y[1:3]
    return x


def seen_between(x, y):
    out = np.zeros((2, len(x)), x.dtype)
    out[0] = x * y
    middle = out + 1
    out[0] -= y
    out[1] = x
    return out, middle


def made_of_what_changes(x, y):
    out = np.zeros(len(x), x.dtype)
    out[2:] = x[2:] * 2
    x[:] = y
    out[2:] += x[2:]
    return out


def partly_filled(x, y):
    out = np.ones((3, len(x)), x.dtype)
    out[0] = x
    out[2] = y
    return out


def filled_with_other_extents(x, y):
    out = np.zeros((len(x), len(y)), x.dtype)
    for column in range(3):
        out[:, column] = x
    return out


PROGRAMS = [in_parts, accumulated, seen_between, made_of_what_changes, partly_filled]


@pytest.mark.parametrize("dtype", ["float64", "float16", "uint8"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_overwrite_give_the_bits_of_numpy(program, dtype):
    fused, random = fusec.fuse(program), np.random.default_rng(0)
    for size in (3, 1001):
        x, y = random.integers(0, 9, (2, size)).astype(dtype)
        given, ours = (x.copy(), y.copy()), (x.copy(), y.copy())
        np.testing.assert_array_equal(np.asarray(fused(*ours)), np.asarray(program(*given)))
        np.testing.assert_array_equal(ours, given)


def test_parts_that_are_computed_in_place_are_one_kernel():
    x, y = np.random.default_rng(0).normal(size=(2, 50))
    assert fusec.explain(fusec.fuse(in_parts), x, y).kernels == 1
    a, b = np.random.default_rng(0).normal(size=(2, 40, 3))
    assert fusec.explain(fusec.fuse(lambda a, b: np.cross(a, b)), a, b).kernels == 1


@pytest.mark.parametrize("columns", [3, 5, 2])
def test_a_fill_is_left_out_only_for_extents_that_writes_cover(columns):
    fused = fusec.fuse(filled_with_other_extents)
    x = np.arange(7.0)
    for width in (3, max(columns, 3), 3):
        y = np.zeros(width)
        np.testing.assert_array_equal(fused(x, y), filled_with_other_extents(x, y))


def test_a_write_to_an_argument_stays_before_a_call_that_may_raise():
    def program(x, matrix):
        x[0] = 7
        np.linalg.inv(matrix)
        x[0] = 8

    x = np.zeros(2)
    with pytest.raises(np.linalg.LinAlgError):
        fusec.fuse(program)(x, np.zeros((2, 2)))
    assert x[0] == 7
