"""Writes to elements that integer arrays choose: NumPy's results, also for repeated indices, and its errors."""

import numpy as np
import pytest

import fusec

X = np.arange(12.0).reshape(4, 3)
I, J = np.array([0, 2, 0, -1]), np.array([1, 1, 1, 0])  # noqa: E741 - as in formulas


def set_rows(x, i, j):
    x[i, j] = [1, 2, 3, 4]
    x[i] = j[:, None] * 2.5
    x[1:, [0, 2]] = 7
    return x[::-1]


def add(x, i, j):
    np.add.at(x, i, 1)
    np.add.at(x, (i, j), j)
    np.multiply.at(x, (slice(None), [0, 0]), 3)
    np.negative.at(x, (1, 0))


def put(x, i, j):
    np.put(x, i, j)
    x.put([5, 7], -1.5)
    np.put_along_axis(x, j[:, None], 9, axis=1)


def of_a_value(x, i, j):
    y = x * 2
    np.subtract.at(y, i, j[:, None])
    y[j] = 3
    return y + x


def of_a_view(x, i, j):
    x.T[j, i] = 1
    x[::2, 1:][[0, 1], [1, 0]] = -1
    np.maximum.at(x[:, 1], i, 50)


def totals(x, i, j):
    return np.add.reduceat(x, [0, 2, 1]), np.multiply.reduceat(x, [0, 1], axis=1), np.add.outer(j, i)


@pytest.mark.parametrize("function", [set_rows, add, put, of_a_value, of_a_view, totals])
def test_elements_that_arrays_choose_are_written(function):
    fused = fusec.fuse(function)
    for x, i, j in ((X, I, J), (X.astype("f4"), I[::-1], J), (np.asfortranarray(X), I, J % 3)):
        theirs, ours = x.copy(order="K"), x.copy(order="K")
        expected, found = function(theirs, i, j), fused(ours, i, j)
        np.testing.assert_array_equal(ours, theirs)
        for our, their in zip(found or (), expected or (), strict=True) if isinstance(found, tuple) else ():
            np.testing.assert_array_equal(our, their)
        if isinstance(found, np.ndarray):
            np.testing.assert_array_equal(found, expected)


def test_an_index_out_of_bounds_leaves_all_as_it_was():
    def function(x, i):
        x += 1
        np.add.at(x, i, 5)
        x *= 2

    fused = fusec.fuse(function)
    for i in (I, np.array([1, 4]), np.array([3, 3])):
        theirs, ours = X.copy(), X.copy()
        if i.max() < 4:
            function(theirs, i)
            fused(ours, i)
        else:
            with pytest.raises(IndexError, match="out of bounds"):
                function(theirs, i)
            with pytest.raises(IndexError, match="out of bounds"):
                fused(ours, i)
        np.testing.assert_array_equal(ours, theirs)


def test_what_cannot_be_written_is_refused_as_numpy_does():
    with pytest.raises(ValueError, match="read-only"):
        fusec.fuse(lambda x, i: np.add.at(np.broadcast_to(x, (2, 4, 3)), i, 1))(X, I)
    with pytest.raises(ValueError, match="shape mismatch"):
        fusec.fuse(lambda x, i: x.__setitem__(i, np.ones(2)))(X.copy(), I)


def at_the_largest(x, i):
    x[x[:, 0].argmax()] = 0
    x[1, x[1].argmax()] += 5
    x[np.unravel_index(x.argmin(), x.shape)] = x.sum()


def at_a_number(x, i):
    x[i] *= 2
    x[..., i] = x[..., 0] + 1
    x[i, [0, 1]] = i
    return x[i]


@pytest.mark.parametrize("i", [np.array(2), np.array(-1, np.int8), np.int32(1), 0], ids=repr)
@pytest.mark.parametrize("function", [at_the_largest, at_a_number])
@pytest.mark.sampled(3)
def test_elements_are_written_at_an_index_that_an_array_holds(function, i):
    fused = fusec.fuse(function)
    for start in (X, X + 1, X[::-1], np.asfortranarray(X)):
        theirs, ours = start.copy(order="K"), start.copy(order="K")
        expected, found = function(theirs, i), fused(ours, i)
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(found, expected)


def test_an_array_that_holds_no_index_is_refused_as_numpy_does():
    def store(x, i):
        x[i] = 0

    for i in (np.array(4), np.array(-5), np.int64(7)):
        x = X.copy()
        with pytest.raises(IndexError, match="out of bounds"):
            fusec.fuse(store)(x, i)
        np.testing.assert_array_equal(x, X)


def count_up(x, i):
    x[i] += 1


def set_to_own(x, i):
    x[i] = x[::-1][: i.size]


def add_twice(x, i):
    np.add.at(x, i, 2)
    np.subtract.at(x, i[1:], x[1])


def set_between(x, i):
    x *= 2
    x[i] = 1
    x += x[0]


def set_and_sum(x, i):
    x[i] = 3
    return x.sum()


def permute(x, i):
    x[x % x.size] = i.max()


def reads_indices_first():
    """Whether NumPy reads an index before it writes to the memory of the index, as fusec does; NumPy 2.1 does not."""
    memory, expected = (np.arange(99)[::-1].copy() for _ in range(2))
    expected[expected[20:60].copy()] = 1
    memory[memory[20:60]] = 1
    return bool((memory == expected).all())


CALLS = range(8 if reads_indices_first() else 7)


@pytest.mark.parametrize("function", [count_up, set_to_own, add_twice, set_between, set_and_sum, permute])
def test_an_array_that_a_call_changes_in_place_is_changed_as_numpy_does(function):
    fused = fusec.fuse(function)
    rng = np.random.default_rng(0)
    for call in CALLS:  # the first calls, and those of native code
        memory = rng.integers(0, 100, 300)
        x, i = memory[:200], rng.integers(-150, 150, 60)
        x, i = (x[::-2], i % 100) if call == 6 else (x, i)
        i = memory[20:60] if call == 7 else i  # it shares the memory that is written
        theirs_memory = memory.copy()
        start = theirs_memory[:200]
        theirs = start[::-2] if call == 6 else start
        expected = function(theirs, theirs_memory[20:60] if call == 7 else i)
        found = fused(x, i)
        np.testing.assert_array_equal(memory, theirs_memory)
        assert expected is found is None or found == expected
        before = memory.copy()
        if call < 6 and function is not permute:
            with pytest.raises(IndexError, match="out of bounds"):
                fused(x, np.append(i, 200))
            if function in (count_up, set_to_own, set_and_sum):
                np.testing.assert_array_equal(memory, before)
