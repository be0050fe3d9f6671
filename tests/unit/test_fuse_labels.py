"""Fused functions refuse what arrays with labels do in another way than NumPy's arrays."""

import numpy as np
import pytest

import fusec
from fusec.errors import FusecTypeError

X = np.arange(4.0)


class Index:
    def __init__(self, *labels):
        self.labels = labels

    def equals(self, other):
        return self.labels == other.labels


class Frame:
    """What pandas' Series and DataFrames have, as far as fuse looks."""

    axes = ()

    def __init__(self, values, *axes):
        self.values, self.axes = np.asarray(values), [Index(*each) for each in axes]

    def reindex(self):
        raise AssertionError("it is not called")

    def __array__(self, dtype=None, copy=None):
        return self.values


def code_of(call):
    with pytest.raises(FusecTypeError) as caught:
        call()
    return caught.value.code


def test_arrays_of_other_labels_are_refused_at_every_call():
    add = fusec.fuse(lambda left, right: left + right)
    one, same, other = Frame(X, "abcd"), Frame(X, "abcd"), Frame(X, "bcde")
    for _ in range(3):
        np.testing.assert_array_equal(add(one, same), X + X)
        np.testing.assert_array_equal(add(one, X), X + X)
        assert code_of(lambda: add(one, other)) == "F282"
    with pytest.raises(FusecTypeError, match="'left' and 'right' have different labels"):
        add(one, other)
    table = Frame(np.ones((2, 4)), "xy", "abcd")
    np.testing.assert_array_equal(add(table, one), X + np.ones((2, 4)))
    assert code_of(lambda: add(table, other)) == "F282"


def test_labels_of_arrays_from_outside_are_compared_at_every_call():
    held = {"right": Frame(X, "abcd")}
    add = fusec.fuse(lambda left: left + held["right"])
    for _ in range(3):
        np.testing.assert_array_equal(add(Frame(X, "abcd")), X + X)
        np.testing.assert_array_equal(add(X), X + X)
        assert code_of(lambda: add(Frame(X, "bcde"))) == "F282"
    held["right"] = Frame(X, "bcde")
    assert code_of(lambda: add(Frame(X, "abcd"))) == "F282"
    np.testing.assert_array_equal(add(Frame(X, "bcde")), X + X)


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda s, _: s.std(), "'std' without ddof="), (lambda s, _: (s * 2).var(), "'var' without ddof="),
        (lambda s, _: s[1:] - s[:-1], "indexing of a Frame"), (lambda s, _: (s + 1)[0], "indexing of a Frame"),
        (lambda _, t: t.sum(), "'sum' without axis="), (lambda _, t: (t * 2).std(ddof=0), "'std' without axis="),
        (lambda _, t: t.cumsum(), "'cumsum' without axis="), (lambda _, t: np.cumprod(t), "'cumprod' without axis="),
    ],
)  # fmt: skip
def test_what_labels_change_is_refused_by_name(function, what):
    fused = fusec.fuse(function)
    table = np.ones((2, 4))
    fused(X, table)
    with pytest.raises(FusecTypeError, match=what) as caught:
        fused(Frame(X, "abcd"), Frame(table, "xy", "abcd"))
    assert (caught.value.code, bool(caught.value.hint)) == ("F281", True)


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.mean(axis="columns"), lambda t: t.mean("t"), lambda t: t.std(axis="index", ddof=0),
        lambda t: (t * 2).sum(axis=("t", "u")), lambda t: t.cumsum("t"), lambda t: np.max(t, "t"),
        lambda t: np.median(t, axis="columns"),
    ],
)  # fmt: skip
def test_axes_by_names_are_refused_as_labels(function):
    with pytest.raises(FusecTypeError, match=r"with axis=.* of a Frame cannot be fused") as refused:
        fusec.fuse(function)(Frame(np.ones((2, 4)), "xy", "abcd"))
    assert (refused.value.code, "axis=0" in refused.value.hint) == ("F281", True)


def test_bounds_by_names_of_pandas_are_refused_with_those_of_numpy():
    for x in (X, Frame(X, "abcd")):
        with pytest.raises(FusecTypeError, match=r"'clip' with lower=, axis= cannot be fused \[F281\]") as refused:
            fusec.fuse(lambda s: s.clip(lower=2, axis=0))(x)
        assert "min, max" in refused.value.hint
        np.testing.assert_array_equal(fusec.fuse(lambda s: s.clip(min=2))(x), [2, 2, 2, 3])


def test_what_labels_do_not_change_is_fused():
    fused = fusec.fuse(lambda s, t, x: (s.std(ddof=1), s.sum(), t.sum(axis=0), np.std(s), x.std(), x[1:], np.exp(s)))
    table = np.ones((2, 4))
    theirs = fused(X, table, X)
    for one, other in zip(fused(Frame(X, "abcd"), Frame(table, "xy", "abcd"), X), theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_pandas_itself_is_seen():
    pandas = pytest.importorskip("pandas")
    one, other = pandas.Series([1.0, 2.0], ["a", "b"]), pandas.Series([1.0, 2.0], ["b", "c"])
    add = fusec.fuse(lambda left, right: left + right)
    np.testing.assert_array_equal(add(one, one.copy()), one + one)
    assert code_of(lambda: add(one, other)) == "F282"
    assert code_of(lambda: fusec.fuse(lambda s: s.std())(one)) == "F281"
    assert fusec.fuse(lambda s: s.std(ddof=1))(one) == pytest.approx(one.std())
    assert code_of(lambda: fusec.fuse(lambda s: s.clip(lower=2))(one)) == "F281"
    assert code_of(lambda: fusec.fuse(lambda t: t.mean(axis="columns"))(one.to_frame())) == "F281"


def test_dimensions_of_xarray_are_refused_as_axes():
    xarray = pytest.importorskip("xarray")
    table = xarray.DataArray(np.ones((2, 3)), dims=("t", "u"))
    assert code_of(lambda: fusec.fuse(lambda t: t.mean("t"))(table)) == "F281"
    np.testing.assert_array_equal(fusec.fuse(lambda t: t.mean(0))(table), [1, 1, 1])


class Lending:
    """An object whose memory NumPy sees by one protocol."""

    def __init__(self, values, name, is_own):
        self.values = values
        if is_own:
            setattr(self, name, getattr(values, name))


@pytest.mark.parametrize("name", ["__array_interface__", "__array_struct__"])
@pytest.mark.parametrize("is_own", [False, True])
def test_memory_that_numpy_sees_is_read_at_every_call(name, is_own):
    kind = Lending if is_own else type("Of", (Lending,), {name: property(lambda self: getattr(self.values, name))})
    given = kind(X.copy(), name, is_own)
    held = {"given": given}
    twice, outside = fusec.fuse(lambda x: x * 2), fusec.fuse(lambda x: x * held["given"])
    for factor in (1, 2, 3):
        given.values *= factor
        np.testing.assert_array_equal(twice(given), given.values * 2)
        np.testing.assert_array_equal(outside(X), given.values * X)


def test_subclasses_of_arrays_with_operators_of_their_own_are_refused():
    class Own(np.ndarray):
        def __array_ufunc__(self, *_, **__):
            return NotImplemented

    values = np.arange(4.0).reshape(2, 2)
    for given in (values.view(np.matrix), values.view(Own)):
        with pytest.raises(TypeError, match=rf"'a' is an? {type(given).__name__}, which has operators.*F282"):
            fusec.fuse(lambda a: a * a)(given)
        with pytest.raises(TypeError, match=rf"'given' is an? {type(given).__name__}, which has operators.*F282"):
            fusec.fuse(lambda a: a * given)(values)  # noqa: B023
    plain = values.view(type("Plain", (np.ndarray,), {}))
    np.testing.assert_array_equal(fusec.fuse(lambda a: a * a)(plain), values * values)


@pytest.mark.parametrize("key", ["a", ("a", 0)])
def test_labels_as_indices_are_refused_as_labels(key):
    with pytest.raises(FusecTypeError, match="indexing of a Frame cannot be fused") as refused:
        fusec.fuse(lambda table: table[key])(Frame(np.ones((2, 4)), "xy", "abcd"))
    assert refused.value.code == "F281"


def test_methods_that_only_libraries_of_labels_have_name_the_function():
    with pytest.raises(AttributeError, match="F283") as refused:
        fusec.fuse(lambda x: x.median())(X)
    assert refused.value.hint == "write np.median(x)"
    with pytest.raises(TypeError, match=r"^dot\(\) missing 1 required"):
        fusec.fuse(lambda x: x.dot())(X)


def test_a_write_to_what_only_reads_as_an_array_says_so():
    values = X.copy()
    values.flags.writeable = False
    with pytest.raises(ValueError, match="read-only: a Frame is read as an array; write to its copy"):
        fusec.fuse(lambda x: x.__iadd__(1.0))(Frame(values, "abcd"))
