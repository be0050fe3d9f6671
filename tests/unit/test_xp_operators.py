"""Operators as builtins: they take the steps that Python's functions take, and leave the same behind."""

import gc
import inspect
import operator
import sys
import weakref

import numpy as np
import pytest

import fusec.xp as xp
from fusec import fuse
from fusec.runtime.cpu import fastcall
from fusec.xp import native, operators
from fusec.xp.operators import RECORDERS
from tests.support.threads import run_together


@pytest.fixture(scope="module", autouse=True)
def builtins():
    native.install()
    assert all(each.builtin is not None for each in RECORDERS)


def operands(dtype):
    """Pairs for a dtype: on one tape, with a value that the tape has or not, of two tapes, and with numbers."""
    values = np.arange(1, 7).astype(dtype)
    x, other = xp.asarray(values), xp.asarray(values[::-1].copy())
    on_tape = x * x
    yield on_tape, on_tape + x
    yield on_tape, x
    yield on_tape, other
    yield on_tape, values
    yield on_tape, other * other
    yield x, on_tape
    yield x, other
    for number in (2, -3, 10**30, 0.5, float("nan"), True, 1 + 2j, np.float32(3), "text", None, [1, 2, 3, 4, 5, 6]):
        yield on_tape, number
        yield x, number


def outcome(function, given):
    """The state and what the new slots hold; or the error."""
    try:
        found = function(*given)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(found, xp.Array) or found._tape is None:
        return type(found), None
    tape = found._tape
    node = tape.node
    assert tape.slots[found._at]() is found
    return node, found._at, found._form, [tape.slots[at] for at in node.numbers()], sorted(tape.slots)


@pytest.mark.parametrize("dtype", ["f4", "i2", "?"])
@pytest.mark.filterwarnings("ignore")
def test_builtins_take_the_steps_of_pythons_functions(dtype):
    shown = [each for each in RECORDERS if each.names]
    assert len(shown) >= 30
    for each in shown:
        for pair in zip(operands(dtype), operands(dtype), strict=True):
            given = [one if each.operands == 2 else one[:1] for one in pair]
            for _ in range(2):  # the first of them may be traced
                theirs, ours = outcome(each.run, given[0]), outcome(each.builtin, given[1])
                if theirs[0] is type(None):
                    break
                assert str(ours) == str(theirs)
                assert ours[0] is theirs[0]


def test_arrays_with_values_come_to_known_tapes_without_pythons_functions():
    def program():
        x, y, z = (xp.asarray(np.arange(6.0) + at) for at in range(3))
        tape = x * x
        return (z - tape) * y + tape

    native.WRITTEN[:] = []  # other tests may have left writes that nobody looked at
    for _ in range(2):
        wanted = np.asarray(program())
    called = set()
    sys.setprofile(lambda frame, event, _: event == "call" and called.add(frame.f_code.co_filename))
    try:
        found = program()
    finally:
        sys.setprofile(None)
    assert operators.__file__ not in called
    np.testing.assert_array_equal(np.asarray(found), wanted)


def played(name, seed):
    """What programs of operators leave: the state of each array's tape, its place, and how tapes are shared."""
    generator = np.random.default_rng(seed)
    known = {each.names[0]: each for each in RECORDERS if each.names}
    chosen = [known[each] for each in ("__add__", "__rsub__", "__mul__", "__neg__")]
    values = [np.arange(1.0, 5.0) + at for at in range(4)]
    found = [xp.asarray(values[at % 4]) for at in range(5)]
    for _ in range(30):
        each = chosen[generator.integers(len(chosen))]
        left, right, kind = generator.integers(len(found)), generator.integers(len(found)), generator.integers(4)
        given = (found[left], 0.5 if kind == 0 else values[right % 4] if kind == 1 else found[right])
        found.append(getattr(each, name)(*given[: each.operands]))
        if generator.integers(3) == 0:
            found.pop(generator.integers(len(found)))
        if generator.integers(12) == 0:
            found[generator.integers(len(found))].compute()
    tapes = list({id(each._tape): each._tape for each in found if each._tape is not None}.values())
    left = [(each.node, sorted(each.slots), [*each.places.values()], each.is_closed) for each in tapes]
    places = [None if each._tape is None else (tapes.index(each._tape), each._at, each._form) for each in found]
    for each in tapes:
        assert all(each.slots[at] is not None for at in range(each.node.count))
        assert [id(each.slots[at]) for at in each.places.values()] == [*each.places]
    return left, places, [np.asarray(each).tolist() for each in found]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(3)
def test_programs_leave_the_same_tapes(seed):
    for _ in range(2):  # what meets for the first time is taken over step by step
        theirs, ours = played("run", seed), played("builtin", seed)
        for mine, other in zip(ours[0], theirs[0], strict=True):
            assert mine[0] is other[0]
            assert mine[1:] == other[1:]
        assert ours[1:] == theirs[1:]


def test_builtins_hold_what_they_record_no_longer_than_it_lives():
    values = np.arange(5.0)
    x = xp.asarray(values) + 1.0
    y = x * 2.0
    gone = [weakref.ref(y), weakref.ref(y._tape)]
    counts = [sys.getrefcount(each) for each in (values, np.multiply, x._form)]
    for _ in range(200):
        z = xp.asarray(values) + 1.0
        z = (z * 2.0 - z) * values
        with pytest.raises(TypeError):
            z @ "text"
    del x, y, z
    assert [each() for each in gone] == [None, None]
    after = [sys.getrefcount(each) for each in (values, np.multiply)]
    assert max(abs(one - other) for one, other in zip(after, counts, strict=False)) < 20


def test_builtins_are_methods_as_pythons_functions_are():
    x = xp.asarray(np.ones(3))
    assert [*inspect.signature(x.__add__).parameters] == ["other"]
    assert [*inspect.signature(xp.Array.__neg__).parameters] == ["self"]
    with pytest.raises(TypeError):
        x.__add__()
    with pytest.raises(TypeError):
        x.__add__(1, 2)
    with pytest.raises(TypeError):
        x.__add__(other_one=1)
    assert x.__add__("text") is NotImplemented


def test_writes_and_eager_blocks_are_seen():
    memory = np.arange(4.0)
    x = xp.asarray(memory)
    y = x * 2.0
    x += 1.0
    assert np.asarray((x * 2.0) - y).tolist() == [2, 2, 2, 2]
    with xp.eager():
        assert (x * 2.0)._tape is None


def run_in_threads(work, count):
    found = [[] for _ in range(count)]
    run_together(lambda seed: work(found[seed], seed), count)
    return found


@pytest.mark.usefixtures("hasty")
def test_threads_record_by_builtins_on_one_tape():
    x = xp.asarray(np.arange(20.0)) * 1.0

    def work(mine, seed):
        for step in range(150):
            mine.append((x + float(step)) * 2.0 - x)
            if step % 7 == seed:
                mine[-1].compute()

    for mine in run_in_threads(work, 6):
        for step, each in enumerate(mine):
            np.testing.assert_array_equal(np.asarray(each), (np.arange(20.0) + step) * 2 - np.arange(20.0))


@pytest.mark.usefixtures("hasty")
def test_threads_join_tapes_that_others_record_on():
    for repeat in range(10):
        values = [np.arange(3.0) + repeat + at for at in range(6)]
        shared = [xp.asarray(each) * 1.0 for each in values]

        def work(mine, seed, values=values, shared=shared):
            generator = np.random.default_rng(seed)
            for step in range(20):
                one, other = generator.integers(6, size=2)
                mine.append((shared[one] + shared[other] * 2.0, values[one] + values[other] * 2.0))
                if step % 5 == seed:
                    mine[-1][0].compute()

        for mine in run_in_threads(work, 4):
            for each, wanted in mine:
                np.testing.assert_array_equal(np.asarray(each), wanted)


def test_an_interpreter_of_another_layout_keeps_pythons_functions(monkeypatch):
    monkeypatch.setattr(fastcall, "objection_to_build", lambda: "objects have an unknown header")
    monkeypatch.setattr(operators, "RECORDERS", [])
    before = vars(xp.Array)["__add__"]
    native.install()
    assert vars(xp.Array)["__add__"] is before


class Evaluates:
    """Garbage whose finalizer looks at an array."""

    def __init__(self, array, write):
        self.array, self.write, self.itself = array, write, self

    def __del__(self):
        if self.write:
            self.array[0] = 9.0
        self.array.compute()


@pytest.mark.parametrize("write", [False, True])
def test_collections_of_garbage_that_evaluate_operands_do_no_harm(write):
    values = np.arange(5.0)
    x, before = xp.asarray(values), gc.get_threshold()
    wanted = values * 2 + 1 + 1
    gc.set_threshold(3, 1, 1)
    try:
        for _ in range(150):
            y = x * 2
            Evaluates(y, write)
            z = y + 1
            found = np.asarray(z + 1)
            assert np.array_equal(found[1:], wanted[1:])
            assert found[0] in (wanted[0], 11)
    finally:
        gc.set_threshold(*before)


@pytest.mark.parametrize("name", ["_tape", "_at"])
def test_arrays_that_lack_an_attribute_raise(name):
    x = xp.asarray(np.arange(5.0))
    for operate in (lambda y: y + 1.0, lambda y: y + x, lambda y: -y):
        y = x * 2
        delattr(y, name)
        with pytest.raises(AttributeError):
            operate(y)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "u2"])
@pytest.mark.parametrize("exponent", [2, 3, 2.0, 3.0, 0.5, -1, -1.0, 7, -3])
@pytest.mark.sampled(5)
def test_constant_exponents_cost_and_give_what_they_do_in_fused_functions(dtype: str, exponent: float) -> None:
    given = (np.arange(1, 40) / 4 + (0.25j if dtype[0] == "c" else 0)).astype(dtype)
    if dtype[0] in "iu" and str(exponent) in ("-1", "-3"):
        with pytest.raises((ValueError, OverflowError), match=r"negative|out of bounds"):
            xp.asarray(given) ** exponent
        return
    wanted = np.asarray(fuse(lambda x: x**exponent)(given))
    x = xp.asarray(given)
    for found in (x**exponent, xp.pow(x, exponent)):
        assert found.dtype == (given**exponent).dtype
        assert np.array_equal(np.asarray(found), wanted)
    if found.dtype == given.dtype:
        again = xp.asarray(given.copy())
        again **= exponent
        assert np.array_equal(np.asarray(again), wanted)


def test_squares_are_products() -> None:
    x = xp.asarray(np.array([0 - 103.3j, 45j]))
    assert np.array_equal(np.asarray(xp.imag(x**2)), [0, 0])
    y = xp.asarray(np.linspace(0, 1))
    assert "pow" not in str(xp.explain(y**2 + y**0.5 - y**-1))


class Foreign:
    """An operand that answers ufuncs by itself, as arrays of other libraries do."""

    def __array_ufunc__(self, ufunc, method, *args, out=None, **options):
        assert method == "__call__"
        return ufunc(*[5.0 if each is self else np.asarray(each) for each in args], **options)


class Silent:
    """An operand that takes no part in ufuncs, and answers for itself."""

    __array_ufunc__ = None

    def __eq__(self, other):
        return "equal"

    def __ne__(self, other):
        return "other"

    def __radd__(self, other):
        return "sum"


def test_operands_of_other_libraries_answer_as_with_numpys_arrays():
    for module in (np, xp):
        x = module.zeros(3)
        for function in (operator.iadd, operator.isub, operator.imul, operator.ipow):
            found = function(x, Foreign())
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, function(np.zeros(3), 5.0))
        np.testing.assert_array_equal(x + Foreign(), np.full(3, 5.0))
        np.testing.assert_array_equal(x == Foreign(), np.full(3, False))
        assert [x == Silent(), x != Silent(), x + Silent()] == ["equal", "other", "sum"]
