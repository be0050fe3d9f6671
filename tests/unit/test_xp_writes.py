"""Writes to lazy arrays: at other extents, beside what fails, and by several threads."""

import numpy as np
import pytest

import fusec.xp as xp
from fusec.xp.joining import absorb
from fusec.xp.tape import Tape


def put(x, y):
    x[1:] = y


def put_sum(x, y):
    x[:-1] += y


def put_result(x, y):
    np.multiply(y, 3.0, out=x[1:])


@pytest.mark.parametrize("change", [put, put_sum, put_result])
def test_parts_take_at_other_extents_what_numpys_take(change, monkeypatch):
    for extents in ((6, 5), (6, 4), (7, 5), (6, 1), (12, 11), (12, 4)):
        own, value = np.ones(extents[0]), np.arange(float(extents[1])) + 3
        x, y = xp.asarray(own, copy=True), xp.asarray(value)
        total = xp.sum(x)
        raised = []
        for one, other in ((own, value), (x, y)):
            try:
                change(one, other)
            except ValueError:
                raised.append(one is x)
        assert raised in ([], [False, True]), extents
        assert np.asarray(x).tolist() == own.tolist()
        assert float(total) == extents[0]
    monkeypatch.setattr(Tape, "_traced_to", None)
    x = xp.ones(15)
    change(x, xp.ones(14))


@pytest.mark.parametrize(
    "law",
    [
        lambda x: xp.linalg.inv(x) * 10**400,
        lambda x: (xp.sum(x, axis=0) * 1.0) * 10**400,
        lambda x: xp.sum(xp.sort(x, axis=0) * 2.0, axis=0) / -(10**400),
        lambda x: xp.sum(x, axis=0) * 2.0 + (xp.max(x) - 10**400),
    ],
)
def test_writes_before_a_number_that_does_not_fit_are_stored_once(law):
    own = 2 * np.eye(3)
    x = xp.asarray(own)
    x += 1.0
    failed = law(x)
    for _ in range(3):
        with pytest.raises(OverflowError, match=r"\(1329 bits\) out of bounds for float64 \[F179\]"):
            failed.compute()
        assert own.tolist() == (2 * np.eye(3)).tolist()
    del failed
    x *= 2.0
    assert np.asarray(x).tolist() == own.tolist() == (4 * np.eye(3) + 2).tolist()


def test_tapes_are_joined_while_another_thread_adds_an_array_to_one():
    class Places(dict):
        def get(self, key):
            other.places.setdefault(-1, 0)
            return super().get(key)

    x, y = (xp.asarray(np.arange(3.0)) + each for each in range(2))
    tape, other = x._tape, y._tape
    tape.places = Places(tape.places)
    absorb(tape, other)
    assert (x * y).tolist() == [0, 2, 6]
