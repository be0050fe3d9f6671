"""Graphs that update donated inputs: in place, with the values that all other results have without."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec import graph


def heat_in_place(u, r):
    u[1:-1] += r * (u[2:] - 2 * u[1:-1] + u[:-2])


def from_the_old(u, r):
    old = u.copy()
    u[1:-1] = (old[:-2] + old[2:]) * r
    u[0] = old[-1]
    return old.sum()


def with_results_of_before(u, r):
    before = u + r
    u[0] = u[1]
    doubled = u * 2
    u[::2] = doubled[::2]
    return before, doubled, u[::-1] + before


def one_after_the_other(u, r):
    for at in range(1, 4):
        u[at] = (u[at - 1] + u[at + 1]) * r
    return u.mean()


@pytest.mark.parametrize("function", [heat_in_place, from_the_old, with_results_of_before, one_after_the_other])
def test_updates_go_straight_into_donated_arrays(function):
    given, fused = (np.arange(8.0) ** 2, 0.25), fusec.fuse(function)
    made = fused.graph(*given)
    compiled = graph.parse(str(made)).compile()
    for start in (0.0, 3.0, 7.0):
        mine, theirs = given[0] + start, given[0] + start
        wanted, found = function(theirs, given[1]), compiled(mine, given[1])
        found = found if isinstance(found, tuple) else (found,)
        assert found[0] is mine
        np.testing.assert_array_equal(mine, theirs)
        wanted = wanted if isinstance(wanted, tuple) else () if wanted is None else (wanted,)
        for ours, their in zip(found[1:], wanted, strict=True):
            np.testing.assert_array_equal(ours, their)
    assert compiled.explain(*given).kernels == fused.explain(*given).kernels


def test_updates_of_one_array_for_several_outputs_keep_each_other_apart():
    g = graph.Graph("apart")
    u, v = g.input("u", "int64", ("n",), donated=True), g.input("v", "int64", ("n",), donated=True)
    first = u.updated((slice(1, None),), v[:-1])
    g.output(first.updated((0,), 7), "u")
    g.output(first.updated((slice(0, 2),), first[2:4]), "third")
    g.output(v.updated((slice(0, 2),), u[1:3]), "v")
    g.output(u, "before")
    compiled = g.compile()
    for start in (0, 5):
        a, b = np.arange(5) + start, np.arange(5) * 10 + start
        stepped = np.concatenate([a[:1], b[:-1]])
        wanted = [np.r_[7, stepped[1:]], np.r_[stepped[2:4], stepped[2:]], np.r_[a[1:3], b[2:]], a.copy()]
        found = compiled(a, b)
        assert found[0] is a
        assert found[2] is b
        for ours, their in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(ours, their)
