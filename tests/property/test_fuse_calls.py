"""Library calls between kernels, views and writes in any order give NumPy's bits, twice, and change arguments alike."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec

INDEX = [2, 0, 2]


def add_at(x, y):
    np.add.at(x, INDEX, y)


def put_rows(x, y):
    x[INDEX] = y + 1


def add(x, y):
    x += y


def shift(x, y):
    x[1:] = y[:-1]


def sort(x, _):
    x.sort(axis=0)


OPERATIONS = (
    lambda x, y: x @ y, lambda x, y: np.einsum("ij,kj->ik", x, y), lambda x, y: np.sort(x - y), lambda x, _: x.T,
    lambda x, y: np.tensordot(x, y, ([0], [1])), lambda x, _: np.argsort(x, axis=0, kind="stable"), lambda x, y: x * y,
    lambda x, _: x[::-1], lambda x, y: np.maximum(x, y.sum(axis=0)), lambda x, y: np.partition(x ^ y, 1),
    lambda x, y: np.searchsorted(np.sort(x[0]), y), lambda x, y: np.dot(x[:, 0], y)[None] | x, add_at, put_rows, add,
    shift, sort,
)  # fmt: skip
steps = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 20), st.integers(0, 20))
programs = st.lists(steps, min_size=2, max_size=8)


def run(program, *arrays):
    found = list(arrays)
    for function, one, other in program:
        made = function(found[one % len(found)], found[other % len(found)])
        if made is not None:
            found.append(made)
    return found[len(arrays) :]


def check(program, layout):
    fused = fusec.fuse(lambda *arrays: run(program, *arrays))
    for seed in range(2):
        theirs, ours = [], []
        for target in (theirs, ours):
            rng = np.random.default_rng(seed)
            x, y = (rng.integers(-9, 9, (3, 3)).astype(np.int64, order="F" if layout == "F" else "C") for _ in "xy")
            target += [x, x.T if layout == "one" else y[::-1, ::-1] if layout == "reversed" else y]
        expected, found = run(program, *theirs), fused(*ours)
        for mine, wanted in zip((*found, *ours), (*expected, *theirs), strict=True):
            assert mine.dtype == wanted.dtype
            np.testing.assert_array_equal(mine, wanted)


CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
layouts = st.sampled_from(("C", "F", "one", "reversed"))


@settings(max_examples=6, derandomize=True, **CALM)
@given(programs, layouts)
def test_calls_of_libraries_are_in_order_with_kernels(program, layout):
    check(program, layout)


@pytest.mark.slow
@settings(max_examples=300, **CALM)
@given(programs, layouts)
def test_many_calls_of_libraries_are_in_order_with_kernels(program, layout):
    check(program, layout)
