"""Errors about lazy arrays: of the catalogue, of NumPy's class and with its text, at the line that records."""

import pickle
import re
import traceback

import numpy as np
import pytest

import fusec.xp as xp
from fusec import (
    FusecAttributeError,
    FusecAxisError,
    FusecError,
    FusecIndexError,
    FusecLinAlgError,
    FusecTypeError,
    FusecValueError,
)
from fusec.errors.alternatives import LAZY_ARRAY

A = np.arange(12.0).reshape(3, 4)
X = xp.asarray(A)
READ_ONLY = np.ones(3)
READ_ONLY.setflags(write=False)

WHEN_RECORDED = {
    "reshape": lambda xp, x: xp.reshape(x, (5, 5)),
    "method": lambda xp, x: x.reshape(5, 5),
    "matmul": lambda xp, x: x @ x,
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 2)),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (0, 0)),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=7),
    "squeeze": lambda xp, x: xp.squeeze(x, axis=0),
    "concat": lambda xp, x: xp.concat([x, x[:, :1].T]),
    "flip": lambda xp, x: xp.flip(x, axis=4),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 5),
    "integer key": lambda xp, x: x[3],
    "integer key of a pending array": lambda xp, x: (x + 1)[3],
    "integer keys": lambda xp, x: x[0, 4],
    "many keys": lambda xp, x: x[0, 0, 0],
    "float key": lambda xp, x: x[0.5],
    "mask": lambda xp, x: x[x[:2] > 0],
    "invert": lambda xp, x: ~x,
    "logic": lambda xp, x: x & 1,
    "negated bools": lambda xp, x: -(x > 2),
    "no elements": lambda xp, x: xp.max(x[:0]),
    "inv": lambda xp, x: xp.linalg.inv(x),
    "solve": lambda xp, x: xp.linalg.solve(x[:, :3], x[0]),
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=1),
    "a negative extent": lambda xp, x: xp.ones(-1),
    "too large": lambda xp, x: xp.ones((2**40, 2**40)),
    "ragged": lambda xp, x: xp.asarray([[1, 2], [3]]),
    "no dtype": lambda xp, x: xp.zeros(3, dtype="nonsense"),
    "a large integer": lambda xp, x: xp.full(3, 300, dtype=xp.int8),
    "bool": lambda xp, x: bool(x),
    "if": lambda xp, x: 1 if x > 2 else 0,
    "int": lambda xp, x: int(x),
    "float": lambda xp, x: float(x),
    "complex": lambda xp, x: complex(x),
    "index": lambda xp, x: range(3)[x],
    "item": lambda xp, x: x.item(),
    "len": lambda xp, x: len(xp.asarray(1.0)),
    "iter": lambda xp, x: iter(xp.asarray(1.0)),
    "read-only": lambda xp, x: xp.asarray(READ_ONLY).__setitem__(0, 1),
    "read-only sum": lambda xp, x: xp.asarray(READ_ONLY).__iadd__(1),
    "a view that is read-only": lambda xp, x: xp.broadcast_to(x, (2, 3, 4)).__setitem__(0, 1),
    "text": lambda xp, x: x.__setitem__(0, "a"),
    "complex into floats": lambda xp, x: x.__setitem__(0, 1j),
    "floats into integers": lambda xp, x: xp.arange(4).__iadd__(1.5),
}


@pytest.mark.parametrize("run", WHEN_RECORDED.values(), ids=WHEN_RECORDED)
def test_errors_have_numpys_class_and_text_and_show_the_line_that_records(run):
    with pytest.raises((ValueError, TypeError, IndexError, OverflowError)) as numpys:
        run(np, A.copy())
    with pytest.raises(FusecError) as caught:
        run(xp, xp.asarray(A.copy()))
    known = next(each for each in type(numpys.value).__mro__ if each.__module__ != "numpy._core._exceptions")
    assert isinstance(caught.value, known)
    assert str(caught.value).startswith(str(numpys.value))
    assert caught.value.span.file.name == __file__
    assert caught.value.span.text.startswith('"')  # a line of the table above
    assert caught.value.__suppress_context__


def test_an_axis_error_knows_its_axis():
    with pytest.raises(FusecAxisError) as caught:
        xp.fft.fft(X, axis=4)
    assert (caught.value.axis, caught.value.ndim) == (4, 2)


def gathered(x, at):
    return x[at]  # recorded here


FAILING = {
    "gather": (lambda x: gathered(x, xp.arange(4) + 2), FusecIndexError, "return x[at]  # recorded here"),
    "inverse": (lambda x: xp.linalg.inv(x[:, :3] * 0), FusecLinAlgError, '"inverse": '),
    "Cholesky": (lambda x: xp.linalg.cholesky(-x[:, :3]), FusecLinAlgError, '"Cholesky": '),
}


@pytest.mark.parametrize(("run", "kind", "line"), FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("look", [repr, np.asarray, xp.compute, lambda x: x.compute(), lambda x: xp.sort(x).compute()])
def test_what_fails_for_its_elements_shows_the_line_that_recorded_it(run, kind, line, look):
    found = run(X) * 2
    for _ in range(2):  # it stays pending
        with pytest.raises(kind, match=r"raised by") as caught:
            look(found)
        assert caught.value.code == "F785"
        assert caught.value.span.text.startswith(line)


@pytest.mark.parametrize(
    ("call", "name", "hint"),
    [
        (lambda: xp.sum(X, axes=1), "'sum' takes no keyword 'axes'", "did you mean 'axis'?"),
        (lambda: X.sum(axes=1), "'sum' takes no keyword 'axes'", "did you mean 'axis'?"),
        (lambda: xp.zeros(3, dtpye=float), "'zeros' takes no keyword 'dtpye'", "did you mean 'dtype'?"),
        (lambda: xp.asarray(A, dtpye=float), "'asarray' takes no keyword 'dtpye'", "did you mean 'dtype'?"),
        (lambda: xp.sin(X, outt=X), "'sin' takes no keyword 'outt'", "did you mean 'out'?"),
        (lambda: xp.add(X, X, outt=X), "'add' takes no keyword 'outt'", "did you mean 'out'?"),
        (lambda: xp.fft.fft(X, m=2), "'fft' takes no keyword 'm'", "a call takes n=, axis= and norm="),
        (lambda: xp.linalg.svd(X, full_matrix=False), "'svd' takes no", "did you mean 'full_matrices'?"),
        (lambda: xp.median(X, axes=0), "'median' takes no keyword 'axes'", "did you mean 'axis'?"),
        (lambda: X.astype(float, coppy=False), "'astype' takes no keyword 'coppy'", "did you mean 'copy'?"),
    ],
)
def test_unknown_keywords_are_refused_with_those_that_there_are(call, name, hint):
    with pytest.raises(FusecTypeError, match=name) as caught:
        call()
    assert caught.value.code == "F201"
    assert caught.value.hint.startswith(hint)
    assert caught.value.span.file.name == __file__


@pytest.mark.parametrize("call", [lambda name: xp.zeros(3, dtype=name), lambda name: X.astype(name)])
def test_a_misspelt_dtype_is_told(call):
    with pytest.raises(FusecTypeError, match="data type 'flaot32' not understood") as caught:
        call("flaot32")
    assert caught.value.hint == "did you mean 'float32'?"
    with pytest.raises(FusecTypeError) as caught:
        call("nonsense")
    assert caught.value.hint.startswith("known dtypes: bool, int8")


@pytest.mark.parametrize(
    "call",
    [
        lambda: X + np.longdouble(1),
        lambda: X * np.ones(4, np.longdouble),
        lambda: xp.asarray(np.array([1, None], object)),
        lambda: xp.zeros(3, dtype=object),
        lambda: X.astype(np.longdouble),
        lambda: xp.mean(X, dtype=np.longdouble),
        lambda: np.sum(X, dtype=object),
    ],
)
def test_dtypes_that_are_not_held_are_refused_at_their_line(call):
    with pytest.raises(FusecTypeError, match="is not a dtype of lazy arrays") as caught:
        call()
    assert caught.value.span.text.startswith("lambda")


@pytest.mark.parametrize("given", [[1, 2], (1.0,), np.ones(3, "f4")])
def test_a_copy_that_is_forbidden_names_what_needs_it(given):
    with pytest.raises(FusecValueError, match=f"the conversion of an? {type(given).__name__} needs a copy"):
        xp.asarray(given, dtype=xp.float64, copy=False)


def test_errors_of_the_users_code_stay_as_they_are():
    class Broken:
        def __array__(self, *args, **options):
            raise ValueError("broken")

    with pytest.raises(ValueError, match=r"^broken$") as caught:
        xp.asarray(Broken())
    assert not isinstance(caught.value, FusecError)


@pytest.mark.parametrize("order", "<>")
def test_byte_orders_are_converted(order):
    for kind in ("i2", "u8", "f4", "f8", "c8", "f2"):
        swapped = np.arange(4).astype(order + kind)
        found = xp.asarray(swapped)
        assert found.dtype.isnative
        assert found.dtype == swapped.dtype.newbyteorder("=")
        target = xp.zeros(4, dtype=found.dtype)
        target[...] = swapped
        for each in (found, target, xp.zeros(4, dtype=found.dtype) + swapped):
            assert np.array_equal(each, swapped)


def test_errors_can_be_pickled():
    with pytest.raises(FusecAxisError) as caught:
        xp.flip(X, axis=4)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))


def again(x, at):
    return x[at] * 2  # recorded again


def once_more(x, at):
    return x[at] * 2  # recorded once more


@pytest.mark.parametrize("size", [4, 7])
def test_equal_programs_of_several_lines_fail_at_their_own(size):
    x, at = xp.asarray(np.arange(float(size))), xp.arange(3)
    for run, line in ((again, "recorded again"), (once_more, "recorded once more"), (again, "recorded again")):
        good = run(x, at)
        bad = run(x, at + size)
        assert np.array_equal(good, np.arange(3) * 2.0)
        for found in (bad, again(x, at) + once_more(x, at) + bad):
            with pytest.raises(FusecIndexError) as caught:
                found.compute()
            assert caught.value.span.text.endswith(line)


@pytest.mark.parametrize(
    "run", [lambda x: x - [1, 2, 3, 4], lambda x: (4.0, 3.0, 2.0, 1.0) / x, lambda x: [[2]] ** x, lambda x: x < [5] * 4]
)
def test_lists_are_operands_of_operators_as_in_numpy(run):
    for x in (X, X + 0):
        assert np.array_equal(run(x), run(A + 0), equal_nan=True)
        assert np.asarray(run(x)).dtype == run(A).dtype


def test_ragged_lists_are_refused_as_operands():
    with pytest.raises(FusecValueError, match=r"inhomogeneous") as caught:
        X * [[1, 2], [3]]
    assert caught.value.code == "F784"


def frames_of(problem):
    """The files of fusec and NumPy among the frames of a traceback, from the user's on."""
    return [each.filename for each in traceback.extract_tb(problem.__traceback__) if "/fusec/" in each.filename]


@pytest.mark.parametrize("run", WHEN_RECORDED.values(), ids=WHEN_RECORDED)
def test_errors_when_recorded_show_few_frames_but_the_users(run):
    for x in (X, X + 0):
        with pytest.raises(FusecError) as caught:
            run(xp, x)
        assert len(frames_of(caught.value)) <= 4
        assert caught.value.__suppress_context__


@pytest.mark.parametrize("run", [each[0] for each in FAILING.values()], ids=FAILING)
@pytest.mark.parametrize("look", [repr, np.asarray, xp.compute, lambda x: bool(x[0]), xp.unique_values])
def test_errors_when_evaluated_show_few_frames_but_the_users(run, look):
    with pytest.raises(FusecError) as caught:
        look(run(X))
    assert len(frames_of(caught.value)) <= 4
    assert caught.value.__suppress_context__


def test_all_frames_are_shown_for_debugging(monkeypatch):
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    with pytest.raises(FusecError) as caught:
        xp.sum(X + 0, axis=7)
    assert len(frames_of(caught.value)) > 8


@pytest.mark.parametrize("name", LAZY_ARRAY)
def test_attributes_of_other_arrays_say_what_to_write_instead(name):
    for array in (X, X + 1):
        assert not hasattr(array, name)
        assert name not in dir(array)
        with pytest.raises(FusecAttributeError, match=f"a lazy array has no '{name}'") as caught:
            getattr(array, name)
        assert caught.value.hint


@pytest.mark.parametrize(
    ("run", "kind", "text", "hint"),
    [
        (lambda: setattr(X, "shape", (12,)), AttributeError, "cannot be given another 'shape'", "reshape"),
        (lambda: round(X, 1), TypeError, "__round__", "xp.round"),
        (lambda: format(X, ".3f"), TypeError, "Array.__format__", "tolist"),
        (lambda: X.__delitem__(0), ValueError, "cannot delete", "xp.delete"),
        (lambda: xp.asarray(10**30), TypeError, "1000000000000000000000000000000 is not an integer of", r"float\(x\)"),
        (lambda: xp.asarray([1, 2**70]), TypeError, "1180591620717411303424 is not an integer of 64", r"float\(x\)"),
        (lambda: xp.asarray(None), TypeError, "None is not a number", "nan"),
        (lambda: xp.sum([1.0, None]), TypeError, "None is not a number", "nan"),
        (lambda: xp.asarray({1, 2}), TypeError, "a set is not an array", r"list\(x\)"),
        (lambda: xp.add(X, {1: 2}), TypeError, "a dict is not an array", r"list\(x.values\(\)\)"),
        (lambda: xp.compute(object()), TypeError, "an object is not an array", "pass an array"),
        (lambda: xp.where(X > 0, X), ValueError, "either both or neither", r"xp\.where\(condition, x1, x2\)"),
        (lambda: xp.random.choice(10, 3), AttributeError, "choice", r"integers.*permutation"),
        (lambda: xp.random.default_rng(3), AttributeError, "default_rng", "every draw takes a key"),
        (lambda: xp.random.integers(3, 1, 0, 300, dtype="u1"), OverflowError, "high=300 is too large", "up to 256"),
        (lambda: xp.random.integers(3, 1, -1, 9, dtype="u1"), OverflowError, "low=-1 is too small", "of 0 or more"),
        (lambda: xp.random.integers(3, 1, 0, 2**64), OverflowError, "high=18446744073709551616 of", "reduce"),
        (lambda: xp.random.permutation(X, 1, dtype="f4"), TypeError, "takes no keyword 'dtype'", "a call takes"),
        (lambda: xp.random.uniform(-3, 1), ValueError, "cannot have the size -3", "not negative"),
        (lambda: xp.random.uniform((2, -3), 1), ValueError, r"cannot have the size \(2, -3\)", "not negative"),
    ],
)
def test_mistakes_of_users_of_other_libraries_have_hints(run, kind, text, hint):
    with pytest.raises(kind, match=text) as caught:
        run()
    assert isinstance(caught.value, FusecError)
    assert re.search(hint, caught.value.hint)


def test_pow_with_a_modulus_is_refused_in_python_s_words():
    with pytest.raises(TypeError, match=r"for \*\* or pow\(\): 'Array', 'int', 'int'"):
        pow(X, 2, 3)


@pytest.mark.parametrize("number", [0.5, 1.5, -2.25, 7, np.float32(1.25), 12345])
@pytest.mark.parametrize("digits", [None, 0, 1, -1])
def test_arrays_without_axes_round_as_numpys_scalars(number, digits):
    theirs, x = np.asarray(number)[()], xp.asarray(number)
    assert round(x, digits) == round(theirs, digits)
    assert isinstance(round(x), int)


@pytest.mark.parametrize(
    "make",
    [
        lambda xp, x: xp.mgrid[0:3, 0:2], lambda xp, x: xp.mgrid[0:1:5j], lambda xp, x: xp.r_[x, 0, 4:6],
        lambda xp, x: xp.c_[x, x * 2], lambda xp, x: xp.ogrid[0:3, 0:2][1], lambda xp, x: xp.r_["0,2", x, x],
    ],
)  # fmt: skip
def test_numpys_makers_by_key_make_lazy_arrays(make):
    own = np.arange(3.0)
    for x in (xp.asarray(own), xp.asarray(own - 1) + 1):
        found = make(xp, x)
        assert type(found) is xp.Array
        assert found.dtype == make(np, own).dtype
        np.testing.assert_array_equal(np.asarray(found), make(np, own))


VIEWS = {
    "flip": np.flip, "T": lambda x: x.T, "axis": lambda x: np.expand_dims(x, 0), "slice": lambda x: (x + 0, x[::-1])[1],
}  # fmt: skip
STORES = {
    "item": lambda x: x.__setitem__(0, 1), "list": lambda x: x.__setitem__([0], 1), "at": lambda x: np.add.at(x, 0, 1),
    "sum": lambda x: x.__iadd__(1), "out": lambda x: np.add(x, 1, out=x), "sort": lambda x: x.sort(),
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
def test_writes_through_views_of_read_only_arrays_are_refused_whatever_was_recorded_before(view, store):
    for is_writeable in (True, False, True, False):
        memory = np.arange(3.0)
        memory.flags.writeable = is_writeable
        x = xp.asarray(memory)
        part = view(x)
        if is_writeable:
            store(part)
            x.compute()
        else:
            with pytest.raises(ValueError, match=r"(?s)read-only \[F784\].*test_xp_refusals.*write to a copy"):
                store(part)
            assert x.tolist() == memory.tolist() == [0, 1, 2]
            assert part.ravel().tolist() in ([0, 1, 2], [2, 1, 0])
