"""Fusing never changes the result: random programs of array operations give NumPy's shapes, dtypes and bits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec
from tests.property.array_programs import arrays, programs
from tests.support.array_programs import copies, leaves_signs_open, run

CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
arguments = st.lists(arrays, min_size=1, max_size=3)


def check(program: Any, given_arrays: Any) -> None:
    mine = copies(given_arrays)
    with np.errstate(all="ignore"):
        expected = run(program, list(given_arrays))
        found = fusec.fuse(lambda *xs: run(program, list(xs)))(*mine)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert type(ours) is type(theirs)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
        numbers = ~np.isnan(theirs)
        if leaves_signs_open(program):
            numbers &= theirs != 0
        if theirs.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(ours)[numbers], np.signbit(theirs)[numbers])


@settings(max_examples=25, derandomize=True, **CALM)
@given(programs, arguments)
def test_fusing_never_changes_the_result(program, given_arrays):
    check(program, given_arrays)


@pytest.mark.slow
@settings(max_examples=1000, **CALM)
@given(programs, arguments)
def test_fusing_never_changes_the_result_of_many(program, given_arrays):
    check(program, given_arrays)


VIEWS = (..., slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2))


@settings(max_examples=12, derandomize=True, **CALM)
@given(st.sampled_from(VIEWS), st.sampled_from(VIEWS), st.sampled_from(VIEWS))
def test_arguments_that_share_memory_are_read_and_written_in_order(first, second, third):
    def step(x, y, z):
        shorter = min(len(x), len(y), len(z))
        x, y, z = x[:shorter], y[:shorter], z[:shorter]
        late = x * 2 + z
        x += y
        y[...] = x - z
        return x + y + z, late

    fused = fusec.fuse(step)
    for _ in range(2):
        theirs, ours = np.arange(12), np.arange(12)
        expected = step(theirs[first], theirs[second], theirs[third])
        found = fused(ours[first], ours[second], ours[third])
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(found, expected)


STARTS = st.tuples(st.integers(0, 7), st.sampled_from([1, 1, 2, -1]))
CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("+*=r")), min_size=1, max_size=6)
LAST = np.zeros(4)


def changed(views: Any, changes: Any, shift: Any) -> Any:
    """What is read while some views, the last one from outside, are written one after the other."""
    found = []
    for target, source, change in changes:
        into, value = (LAST if each == 3 else views[each] for each in (target, source))
        if change == "+":
            into += value
        elif change == "*":
            into *= shift
        elif change == "=":
            into[...] = value - shift
        else:
            found.append(into * 3 + value)
    return found


@settings(max_examples=15, derandomize=True, **CALM)
@given(CHANGES, st.lists(st.tuples(STARTS, STARTS, STARTS, STARTS), min_size=2, max_size=3))
def test_any_arguments_may_share_memory(changes, calls):
    global LAST
    fused = fusec.fuse(lambda views, shift: changed(views, changes, shift))
    for starts in (*calls, *calls):
        results = []
        for run_it in (fused, lambda views, shift: changed(views, changes, shift)):
            room = np.arange(20.0)
            *views, LAST = [room[start + 6 :: step][:4] for start, step in starts]
            results.append([*run_it(views, 2), room])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, theirs)
