"""Fused functions that read elements chosen by arrays of integers."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec
from fusec.fusion.functions.gathering import check

CUBE, LINE = np.arange(60.0).reshape(3, 4, 5), np.array([0, 2, -1])
COLUMN, TABLE = np.array([[1], [3]]), np.arange(-12.0, 12).reshape(4, 6)


def kernels(function, *args):
    return int(dict(fusec.fuse(function).explain(*args).lines)["kernels"])


def same(function, *args):
    """Compare the result of a function, and what it writes, with those of the fused function."""
    theirs, ours = ([np.copy(each) for each in args] for _ in range(2))
    expected, found = function(*theirs), fusec.fuse(function)(*ours)
    assert type(found) is type(expected)
    assert (found.dtype, found.shape, found.strides) == (expected.dtype, expected.shape, expected.strides)
    np.testing.assert_array_equal(found, expected)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


READS = {
    "rows and a function": (lambda x, i: np.maximum(x[i], 0), (CUBE, LINE), 1),
    "columns": (lambda x, i: x[:, i], (CUBE, LINE), 1),
    "two arrays": (lambda x, i, j: x[i, j] + 1, (CUBE, LINE, COLUMN), 1),
    "arrays apart": (lambda x, i: x[i, :, i], (CUBE, LINE), 1),
    "an ellipsis between": (lambda x, i: x[i, ..., i, :], (CUBE, LINE), 1),
    "slices beside": (lambda x, i: x[1:, ..., i] + 1, (CUBE, LINE), 1),
    "an integer beside": (lambda x, i: x[0, :, i], (CUBE, LINE), 1),
    "None beside": (lambda x, i: x[:, i, None, 0], (CUBE, LINE), 1),
    "slices of the result": (lambda x, j: x[..., j][1:, ::2], (CUBE, COLUMN), 1),
    "of a cheap value": (lambda x, i: (x * 2)[i], (CUBE, LINE), 1),
    "of a value that is costly": (lambda x, i: np.sin(x)[i] * 0, (CUBE, LINE), 2),
    "by a cheap value": (lambda x, i: x[(i + 1) % 3], (CUBE, LINE), 2),
    "lists": (lambda x: x[[0, 2], [1, 1]], (CUBE,), 1),
    "known masks": (lambda x: x[:, [True, False, True, True]], (CUBE,), 1),
    "known grids": (lambda x: x[np.ix_([0, 2], [1, 3])], (CUBE,), 1),
    "take": (lambda x, i: np.take(x, i), (CUBE, LINE), 1),
    "take that wraps": (lambda x, i: np.take(x, i + 7, 1, mode="wrap"), (CUBE, LINE), 2),
    "take that clips": (lambda x, i: x.take(i * 9, -1, mode="clip"), (CUBE, LINE), 2),
    "along an axis": (lambda x: np.take_along_axis(x, np.argmax(x, 1, keepdims=True), 1), (CUBE,), 2),
    "one place": (lambda x, i: x[i[0]], (CUBE, LINE), 1),
    "one element": (lambda x, i: x[i[0], i[1], i[0]], (CUBE, LINE), 1),
    "unsigned": (lambda x, i: x[i.astype("u1") % 2], (CUBE, LINE), 2),
    "of chosen elements": (lambda x, i: x[i[i]], (CUBE, LINE), 2),
    "beside neighbours": (lambda x, i: np.roll(x[i], 1, 0) + x[i], (CUBE, LINE), 2),
    "nothing": (lambda x, i: x[i[:0]], (CUBE, LINE), 1),
}


@pytest.mark.parametrize("name", READS)
def test_elements_are_read_where_an_index_says(name):
    function, args, count = READS[name]
    same(function, *args)
    assert kernels(function, *args) <= count


def test_an_index_out_of_bounds_is_numpys_error_at_every_call():
    fast = fusec.fuse(lambda x, i: x[:, i] * 2)
    for index in (LINE, np.array([1, 4, 0]), LINE, np.array([1, -5, 7])):
        if np.abs(index).max() < 4:
            np.testing.assert_array_equal(fast(CUBE, index), CUBE[:, index] * 2)
            continue
        with pytest.raises(IndexError) as theirs:
            CUBE[:, index]
        with pytest.raises(IndexError) as ours:
            fast(CUBE, index)
        assert str(ours.value) == str(theirs.value)


def test_what_was_written_before_an_error_stays():
    def step(x, i):
        x += 1
        return x[i]

    for call in (step, fusec.fuse(step)):
        x = np.zeros(3)
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
            call(x, np.array([0, 5]))
        assert (x == 1).all()


@pytest.mark.parametrize("call", [
    lambda x, i: x[i, i, i, i], lambda x, i: x[[0, 1], [0, 1, 2]], lambda x, i: x[[7]], lambda x, i: x[i * 1.0],
    lambda x, i: np.take(x, i, 3), lambda x, i: np.take(x, i, mode="wide"), lambda x, i: np.take_along_axis(x, i, 0),
    lambda x, i: x[i, 9], lambda x, i: x[[True, False]], lambda x, i: x[np.empty(0)], lambda x, i: x[["a"]],
    lambda x, i: x[np.array([None])], lambda x, i: x["a"], lambda x, i: x.__setitem__(np.array(1.5), 0),
    lambda x, i: x.__setitem__(i * 1.0, 0), lambda x, i: x.__setitem__(x.sum(), 0), lambda x, i: x.__setitem__("a", 0),
    lambda x, i: x.__setitem__([1.5], 0), lambda x, i: x.__setitem__(np.empty(0), 0),
    lambda x, i: x.__setitem__([True, False], 0),
])  # fmt: skip
def test_errors_are_those_of_numpy(call):
    try:
        call(CUBE, LINE)
    except Exception as theirs:
        with pytest.raises(type(theirs)):
            fusec.fuse(call)(CUBE, LINE)
    else:  # NumPy 2.1 takes any number for a mode
        assert np.lib.NumpyVersion(np.__version__) < "2.2.0"


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data(), st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))
def test_any_index_gives_what_numpy_gives(data, shape):
    x = np.arange(np.prod(shape)).reshape(shape)
    x = x.T if data.draw(st.booleans()) else x
    lengths = data.draw(st.sampled_from([(), (1,), (3,), (2, 3), (0,)]))
    index = []
    for extent in x.shape:
        kind = data.draw(st.sampled_from("aasin"))
        places = st.integers(-extent, extent - 1)
        array = data.draw(st.lists(places, min_size=int(np.prod(lengths)), max_size=int(np.prod(lengths))))
        index.append({"a": np.reshape(array, lengths).astype("i8"), "s": slice(None, None, -1), "i": -1,
                      "n": slice(0, 2)}[kind])  # fmt: skip
    arrays = [each for each in index if isinstance(each, np.ndarray)]

    def read(x, *arrays):
        rest = iter(arrays)
        found = x[tuple(next(rest) if isinstance(each, np.ndarray) else each for each in index)]
        return found + found

    expected, found = read(x, *arrays), fusec.fuse(read)(x, *arrays)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    axes = zip(found.strides, expected.strides, found.shape, strict=True)
    assert not found.size or all(one == other or extent == 1 for one, other, extent in axes)
    np.testing.assert_array_equal(found, expected)


def test_the_bounds_of_an_index():
    for bad in ([3], [0, -4]):
        with pytest.raises(IndexError, match=f"index {bad[-1]} is out of bounds for axis 1 with size 3"):
            check(1, np.array(bad), 3)
    assert check(0, np.array([0, -3, 2]), 3) == ()


def test_indices_that_cannot_be_outside_are_not_looked_at():
    def chosen(table, index):
        return table[index]

    def calls(table, index):
        return [line for line in fusec.fuse(chosen).explain(table, index).lines if line[0] == "library call"]

    index = np.arange(-100, 100, dtype="int8")
    assert not calls(np.arange(256), index.astype("uint8"))
    assert not calls(np.arange(128), index)
    assert calls(np.arange(255), index.astype("uint8"))
    assert calls(np.arange(127), index)


def test_many_indices_are_looked_at_by_a_kernel():
    table, index = np.arange(300.0), np.arange(90_000).reshape(300, 300)[:, ::-1] % 300
    chosen = fusec.fuse(lambda table, index: table[index])
    assert np.array_equal(chosen(table, index), table[index])
    for bad in (300, -301):
        index[299, 3] = bad
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds for axis 0 with size 300"):
            chosen(table, index)


def test_functions_of_a_number_take_it_as_a_row_where_numpys_do():
    def rows(x, axis):
        total = x.sum()
        return np.repeat(total, 2, axis), np.take(total, [0, 0], axis), np.compress([True], total, axis)

    x = np.arange(3.0)
    for axis in (0, -1):
        for found, expected in zip(fusec.fuse(rows)(x, axis), rows(x, axis), strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)
    for function in (np.repeat, lambda x, by, axis: np.roll(x, by, axis), np.delete):
        with pytest.raises(np.exceptions.AxisError, match="out of bounds"):
            fusec.fuse(lambda x, function=function: function(x.sum(), 1, axis=1))(x)


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanstd", "sum", "max", "cumsum", "squeeze", "flip"])
@pytest.mark.parametrize("axis", [None, 0, -1, 1, (0,), ()])
def test_axes_of_numbers_are_refused_where_numpy_refuses_them(name, axis):
    for function in (
        lambda x, n: getattr(np, name)(x.sum(), axis), lambda x, n: getattr(np, name)(n, axis),
        lambda x, n: getattr(np, name)(x.max(keepdims=True)[0, 0, ...], axis),
    ):  # fmt: skip
        x = np.arange(4.0).reshape(2, 2)
        try:
            expected = function(x, 2.0)
        except (TypeError, ValueError) as theirs:
            with pytest.raises(type(theirs)):
                fusec.fuse(function)(x, 2.0)
        else:
            found = fusec.fuse(function)(x, 2.0)
            assert type(found) is type(expected)
            np.testing.assert_array_equal(found, expected, strict=True)


def test_parts_at_indices_that_arrays_hold_are_no_views():
    def doubled(x, i):
        x[i] *= 2
        x[i, 1:] += x[0, 0]
        row = x[i]
        return row + x[i], row.copy()

    def written(x, i):
        row = x[i]
        row += 1
        return row

    def written_in_part(x, i):
        x[i][1:] = 0

    def read_late(x, i):
        row = x[i]
        x[0] = 7
        return row * 2

    def stored_late(x, i):
        row = x[i]
        x[1] = 7
        x[i] = row

    def base_read_late(x, i):
        row = x[i]
        np.negative(row, out=row)
        return x.sum(), x[i] * 1

    x, y = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(3, 2)
    for found, expected in zip(fusec.fuse(doubled)(x, np.int64(1)), doubled(y, np.int64(1)), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(x, y)
    for function in (written, written_in_part, read_late, stored_late, base_read_late):
        with pytest.raises(fusec.FusecTypeError, match="the part of an array at an index that an array holds"):
            fusec.fuse(function)(x, np.int64(1))
        np.testing.assert_array_equal(x, y)
        fusec.fuse(lambda x, i, function=function: function(x.copy(), i))(x, np.array([0, 1]))  # which NumPy copies


def test_views_that_add_axes_are_arrays_of_a_number():
    def views(x):
        return np.broadcast_to(x[0], ()), np.expand_dims(x.sum(), ()), *np.broadcast_arrays(x.sum(), 3), x.sum().T

    x = np.arange(3.0)
    for found, expected in zip(fusec.fuse(views)(x), views(x), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("tiers", ["0", "1"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i * 2_000_000_000],
        lambda x, i: (x[:3] + 1, np.take(x, i * -2_000_000_000) * 2),
        lambda x, i: x[(i * 1e10).astype(np.int64)].sum(),
        lambda x, i: (np.exp(x[:3]), x[i + 10**9]),
    ],
)
def test_no_element_is_read_before_its_index_is_checked(function, tiers, monkeypatch):
    monkeypatch.setenv("FUSEC_TIERS", tiers)
    x = np.arange(16.0)
    fused = fusec.fuse(function)
    for index in (np.array([1, 2, 3]), np.array([1, 2, 3], np.int32)):
        with pytest.raises(IndexError, match="out of bounds"):
            fused(x, index)
    np.testing.assert_array_equal(x, np.arange(16.0))


def test_unsigned_indices_of_64_bits_wrap_as_in_numpy():
    x, index = np.arange(5), np.array([1, 2], np.uint64)
    np.testing.assert_array_equal(fusec.fuse(lambda x, i: (x[-i], x[i]))(x, index), (x[-index], x[index]))


PARTS = {
    "real": lambda c: c.real[None, [0, 1, 2]],
    "imag": lambda c: c.imag[None, [0, 2]],
    "reversed": lambda c: c.real[::-1][None, [0, 1]],
    "two axes": lambda c: c.real[None, None, [1]],
    "table": lambda c: c.real[None, [[0, 1], [1, 0]]],
    "take": lambda c: np.take(c.real[None], [0, 1], axis=1),
    "strided": lambda c: c[::2].real[None, [0, 1]],
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("view", [lambda x: (x, x[1:]), lambda x: (x, x[::-1]), lambda x: (x, x)])
def test_elements_of_a_part_are_taken_before_its_memory_is_written_again(name, view):
    def taken(a, c):
        a *= 2
        c += 1
        found = PARTS[name](c)
        c += 1
        return found, a.sum()

    fast = fusec.fuse(taken)
    for dtype in ("c16", "c8"):
        for _ in range(2):
            ours, theirs = ((np.arange(9) + 1j * np.arange(9)[::-1]).astype(dtype) for _ in range(2))
            for found, expected in zip(fast(*view(ours)), taken(*view(theirs)), strict=True):
                np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(ours, theirs)


TABLES = {
    "linspace": lambda i: np.linspace(0, 1, 4)[i],
    "array": lambda i: np.array([[1.0, 2.0], [3.0, 4.0]])[i % 2, 1],
    "take": lambda i: np.take(np.arange(4.0), i, mode="wrap"),
    "take_along_axis": lambda i: np.take_along_axis(np.array([5, 6, 7]), i, 0),
    "part": lambda i: np.arange(8)[::2][i[:2]],
    "mask": lambda i: np.arange(3)[i > 0].sum(),
    "window": lambda i: [float(each) for each in np.hanning(4)] + [np.hamming(4)[i.argmax()]],
    "frequency": lambda i: np.fft.rfftfreq(i.size)[i[:1] // 2],
    "kind": lambda i: isinstance(np.arange(3), np.ndarray) and type(np.array([1])) is np.ndarray,
}


@pytest.mark.parametrize("name", TABLES)
def test_arrays_that_a_function_makes_are_tables(name):
    function = TABLES[name]
    fast = fusec.fuse(function)
    for index in (np.array([1, 0, 2]), np.array([2, 2, 1, 0])[:3], np.array([0, 1, 1])):
        found, expected = fast(index), function(index)
        np.testing.assert_array_equal(found, expected)
        assert type(found) is type(expected)


def test_arrays_that_a_function_makes_are_returned_as_those_of_numpy():
    for found in fusec.fuse(lambda x: (np.linspace(0, 1, 3), np.array(3.0), np.asarray([1, 2])))(np.ones(2)):
        assert type(found) is np.ndarray
