"""Calls that are recorded again are found by what was passed: equal calls only."""

import numpy as np
import pytest

import fusec.xp as xp
from fusec.xp import operators, recording, signatures
from fusec.xp.tape import Tape

X = np.arange(1.0, 13).reshape(3, 4)
CALLS = {
    "where": lambda x, y, n: xp.where(x > y, x, n),
    "sum": lambda x, y, n: xp.sum(x, axis=n),
    "keepdims": lambda x, y, n: x.max(axis=n, keepdims=True),
    "astype": lambda x, y, n: x.astype(n),
    "index": lambda x, y, n: x[n],
    "concat": lambda x, y, n: xp.concat([x, y] if n else [y, x]),
    "reshape": lambda x, y, n: xp.reshape(x, n),
    "ufunc": lambda x, y, n: np.copysign(x, n),
    "function": lambda x, y, n: np.roll(x, n),
    "transposed": lambda x, y, n: x.T[n],
}
ARGUMENTS = {
    "where": [0.0, -0.0, 0, 1, 1.0, True, np.float32(1), float("nan"), 1j],
    "sum": [None, 0, 1, (0, 1), -1],
    "keepdims": [None, 0, 1, (0, 1), [0][0]],
    "astype": [np.float32, "f4", np.dtype("f8"), bool, ">f8", np.int8],
    "index": [
        0, slice(1), slice(0, 1), slice(None, None, -1), None, ..., (0, 1), (slice(0, 1), 1), (slice(0, True), 1),
        np.int64(1), [0, 2], (..., None), np.array([1, 0]),
    ],
    "concat": [0, 1],
    "reshape": [12, (12,), (4, 3), (3, 4), [2, 6], (-1, 2)],
    "ufunc": [1.0, -1.0, 0.0, -0.0, 2],
    "function": [1, 2, True, (1,)],
    "transposed": [0, 1, slice(1, 3), slice(1, None)],
}  # fmt: skip


def same(found, wanted):
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tobytes() == wanted.tobytes() or np.array_equal(found, wanted, equal_nan=True)
    if wanted.dtype.kind == "f":
        assert np.array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sampled(3)
def test_arguments_that_are_equal_and_not_the_same_are_told_apart(name):
    call = CALLS[name]
    for _ in range(3):
        for each in ARGUMENTS[name]:
            x, y = xp.asarray(X) + 0.5, xp.asarray(X[::-1].copy())
            same(call(x, y + x * 0, each), call(xp.asarray(X + 0.5), xp.asarray(X[::-1].copy()), each))
            x = xp.asarray(X) + 0.5
            made = [call(x, x * 2, one) for one in (each, each)]
            same(made[0], made[1])


def test_a_step_that_was_taken_before_runs_no_function_again(monkeypatch):
    def steps():
        x = xp.asarray(X) * 2
        return [xp.sum(x, axis=0), x[1:, None], x.astype(np.float32), xp.concat([x, x]), np.exp2(x), x.reshape(-1), x.T]

    wanted = [np.asarray(each) for each in steps()]
    monkeypatch.setattr(recording, "_recorded", None)
    for found, each in zip(steps(), wanted, strict=True):
        same(found, each)


def test_a_call_that_looks_at_elements_is_not_found_again():
    for at in (0, 2, 1):
        x, i = xp.asarray(X) + 1, xp.asarray(at)
        y = x + i  # it is on the tape, as a value
        same(x[i], X[at] + 1)
        same(y, X + 1 + at)


def test_arrays_with_values_are_told_apart_by_their_places():
    a, b = xp.asarray(X), xp.asarray(X[::-1].copy())
    for first, second in ((a, b), (b, a), (a, a)):
        x = first * 1 + second
        same(xp.where(x > 0, first, second), first)
        x = first * 1 + second
        same(xp.where(x > 100, first, second), second)


def test_writes_between_equal_calls_are_seen():
    for _ in range(3):
        x = xp.asarray(X) * 1
        before = xp.sum(x)
        x[0] = 100.0
        after = xp.sum(x)
        x[0, :2] = 0.0
        assert [float(before), float(after), float(xp.sum(x))] == [78.0, 468.0, 268.0]


def test_promotion_is_checked_though_the_call_was_recorded_before():
    def joined():
        x = xp.asarray([1, 2]) + 0
        y = xp.asarray([0.5, 1.5]) + x
        return xp.concat([x, y])

    same(joined(), [1, 2, 1.5, 3.5])
    same(joined(), [1, 2, 1.5, 3.5])
    x = xp.asarray([1, 2]) + 0
    y = xp.asarray([0.5, 1.5]) + x
    with xp.flags(promotion="standard"), pytest.raises(TypeError, match="no common dtype"):
        xp.concat([x, y])


def test_errors_of_a_call_come_each_time():
    for _ in range(3):
        x = xp.asarray(X) + 1
        with pytest.raises(IndexError):
            x[7]
        with pytest.raises(ValueError, match="axis 5"):
            xp.sum(x, axis=5)
        same(x, X + 1)


def joined(x, y, number, is_swapped):
    """An operation on arrays of two tapes; the second tape may have operands of the first one."""
    left = xp.sin(x * 2 + 1) - x
    right = (number - y) * x if number else y * y
    found = right - left if is_swapped else left - right
    return found * left, right


def test_tapes_that_are_joined_again_have_the_values_of_now():
    for repeat in range(3):
        for number in (0, 2.5, -1):
            for shared in (False, True):
                for is_swapped in (False, True):
                    a, b = X + repeat, X[::-1] * 3
                    x, y = xp.asarray(a), xp.asarray(a if shared else b)
                    found = joined(x, x if shared else y, number, is_swapped)
                    b = a if shared else b
                    right = (number - b) * a if number else b * b
                    left = np.sin(a * 2 + 1) - a
                    wanted = (right - left if is_swapped else left - right) * left
                    np.testing.assert_allclose(np.asarray(found[0]), wanted, rtol=1e-13)
                    np.testing.assert_allclose(np.asarray(found[1]), right, rtol=1e-13)


def test_writes_of_a_tape_that_is_joined_are_seen():
    for repeat in range(3):
        x, y = xp.array(X + repeat), xp.asarray(X)
        before, view = x * 2, x[1:]
        view += y[1:]
        after = (y + 1) + x
        np.testing.assert_array_equal(np.asarray(before), (X + repeat) * 2)
        np.testing.assert_array_equal(np.asarray(after)[1:], (2 * X + 1 + X + repeat)[1:])
        np.testing.assert_array_equal(np.asarray(after)[0], (X + 1 + X + repeat)[0])


def test_a_join_that_was_made_before_takes_no_single_steps(monkeypatch):
    def program():
        x, y = xp.asarray(X), xp.asarray(X[::-1].copy())
        return (x * 2 + 1) - 3 * y

    monkeypatch.setattr(operators, "WRITTEN", [])  # other tests may have left writes that nobody looked at
    wanted = np.asarray(program())
    monkeypatch.setattr(Tape, "take", None)
    monkeypatch.setattr(operators, "operated", None)
    np.testing.assert_array_equal(np.asarray(program()), wanted)


def test_a_float_before_an_array_is_told_from_a_float_with_its_value():
    """In keys of calls, an array's place stands where a float has its value."""
    values = np.arange(6.0)
    for given in ((0.5, None), (3.0,)):
        x = xp.asarray(values) + 1.0
        y = x + x
        bounds = [y if each is None else each for each in given]
        expected = [2 * values + 2 if each is None else each for each in given]
        assert (
            np.asarray(xp.clip(x, *bounds)).tolist()
            == np.clip(values + 1, *expected, *[None] * (2 - len(given))).tolist()
        )


def test_calls_of_arrays_on_several_tapes_run_no_function_again(monkeypatch):
    def calls():
        for at in range(6):
            x, y = xp.asarray(X), xp.asarray(X[::-1].copy())
            z = x * 2
            yield [
                lambda z, x, y: xp.where(z > 3, x + 1, y / 3), lambda z, x, y: xp.concat([z, y + 1]),
                lambda z, x, y: xp.where(z > 3, y, 0.5), lambda z, x, y: xp.where(y * 3 > z, 0.5, y),
                lambda z, x, y: xp.clip(z, 0.5, x + 3), lambda z, x, y: np.copysign(z, y - 5),
            ][at](z, x, y)  # fmt: skip

    monkeypatch.setattr(signatures, "WRITTEN", [])  # other tests may have left writes that nobody looked at
    wanted = [np.asarray(each) for each in (*calls(), *calls())][6:]
    monkeypatch.setattr(recording, "_recorded", None)
    for found, each in zip(calls(), wanted, strict=True):
        same(found, each)
