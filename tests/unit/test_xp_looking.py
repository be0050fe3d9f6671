"""Evaluating several lazy arrays at once, and looking at what is recorded of them."""

import numpy as np
import pytest

import fusec.xp as xp
from fusec.xp import tape as tapes


@pytest.fixture
def evaluated(monkeypatch):
    """The plans that run, in order."""
    found = []
    results = tapes.Tape._results
    monkeypatch.setattr(
        tapes.Tape, "_results", lambda self, plan, *given: found.append(plan) or results(self, plan, *given)
    )
    return found


def test_arrays_of_several_tapes_are_computed_in_one_plan(evaluated):
    a, b, c = (xp.asarray(np.arange(5.0) + each) for each in range(3))
    x, y, z = a * 2, b + 1, xp.sum(c)
    assert len({id(each._tape) for each in (x, y, z)}) == 3
    found = xp.compute(x, y, z, 4)
    assert len(evaluated) == 1
    assert all(one is other for one, other in zip(found, (x, y, z), strict=False))
    assert [np.asarray(each).tolist() for each in found] == [[0, 2, 4, 6, 8], [2, 3, 4, 5, 6], 20, 4]
    assert xp.compute(*found)[0] is x
    assert len(evaluated) == 1  # values are remembered
    assert xp.compute() == ()


def test_pending_writes_to_what_is_computed_are_done(evaluated):
    own = np.zeros(3)
    x = xp.asarray(own)
    x[1:] = 5
    xp.compute(x, x + 1)
    assert own.tolist() == [0, 5, 5]
    assert len(evaluated) == 1


def test_very_long_tapes_are_computed_apart(evaluated, monkeypatch):
    monkeypatch.setattr("fusec.xp.looking.MOST_STEPS", 10)
    pending = []
    for start in range(4):
        x = xp.asarray(np.full(3, float(start)))
        for _ in range(6):
            x = x + 1
        pending.append(x)
    assert [float(each[0]) for each in xp.compute(*pending)] == [6, 7, 8, 9]
    assert len(evaluated) == 4
