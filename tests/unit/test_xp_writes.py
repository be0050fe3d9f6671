"""Writes to lazy arrays: at other extents, beside what fails, and by several threads."""

import inspect
import linecache
import sys
import threading
import time
from contextlib import contextmanager
from functools import cache
from weakref import ref

import numpy as np
import pytest

import fusec.xp as xp
from fusec.fusion.trace.trace import RECORDING
from fusec.xp import sharing
from fusec.xp.joining import absorb
from fusec.xp.tape import Tape


@contextmanager
def slowly_joined(monkeypatch, *tapes):
    """A block that runs while another thread joins two tapes, before each step of one."""
    go, begun = threading.Event(), threading.Event()

    def slowly(take):
        def taken(tape, *given):
            if threading.current_thread() is other:
                begun.set()
                go.wait(10)
            return take(tape, *given)

        return taken

    def go_on():
        time.sleep(0.05)
        go.set()

    monkeypatch.setattr(Tape, "leaf", slowly(Tape.leaf))
    monkeypatch.setattr(Tape, "take", slowly(Tape.take))
    monkeypatch.setattr("fusec.xp.joining.has_taken", lambda *_: False)
    other = threading.Thread(target=absorb, args=tapes)
    threads = [other, threading.Thread(target=go_on)]
    other.start()
    assert begun.wait(10)
    threads[1].start()
    yield
    for each in threads:
        each.join(10)


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
    monkeypatch.setattr(Tape, "traced_to", None)
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
        assert own.tolist() == (2 * np.eye(3) + 1).tolist()
    del failed
    x *= 2.0
    assert np.asarray(x).tolist() == own.tolist() == (4 * np.eye(3) + 2).tolist()


def test_what_is_written_while_tapes_are_joined_is_seen(monkeypatch):
    x, one = xp.zeros(4), xp.ones(4)
    longer = ((one * 2.0 + 1.0) * 3.0 + 1.0) * 2.0
    x += one
    with slowly_joined(monkeypatch, longer._tape, sharing.writers(x._value)[0]):
        assert np.asarray(x).tolist() == [1] * 4
    assert (x + longer).tolist() == [21] * 4
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize("write", [lambda x: x.fill(7.0), lambda x: np.put(x, [9], 7.0), lambda x: x.sort()])
def test_what_was_read_has_the_old_elements_while_tapes_are_joined(write, monkeypatch):
    x, one = xp.asarray(np.arange(50.0)[::-1].copy()), xp.ones(50)
    longer = ((one * 2.0 + 1.0) * 3.0 + 1.0) * 2.0
    before = x * 2.0
    with slowly_joined(monkeypatch, longer._tape, before._tape):
        write(x)
        x.compute()
    assert before.tolist() == [*range(98, -2, -2)]
    assert longer.tolist() == [20] * 50


def test_what_was_read_has_the_old_elements_if_another_thread_looks_at_a_write_at_once(monkeypatch):
    come_to = Tape.came_to

    def come(tape, after, held):
        is_taken = come_to(tape, after, held)
        if after.writes:
            tape.evaluate()
        return is_taken

    monkeypatch.setattr(Tape, "came_to", come)
    x = xp.zeros(3)
    before = x + 1.0
    x += 5.0
    assert before.tolist() == [1] * 3
    assert x.tolist() == [5] * 3


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


def test_failed_writes_that_nobody_can_look_at_are_given_up(monkeypatch):
    evaluated, evaluate = [], Tape.evaluate
    monkeypatch.setattr(Tape, "evaluate", lambda tape, *given: evaluated.append(tape) or evaluate(tape, *given))
    seen, own = [], np.zeros((2, 2))
    for count in range(3 * sharing.MAX_WRITTEN):
        x = xp.zeros((3, 2, 2))[1] if count % 2 else xp.zeros((2, 2))
        if count == 1:
            x = xp.asarray(own)
        if count in (4, 9):
            seen.append(x if count == 4 else x[1:])
        x[...] = xp.linalg.inv(xp.asarray(np.zeros((2, 2)) if count < 2 * sharing.MAX_WRITTEN else np.eye(2)))
    del x
    assert len(evaluated) == len(set(map(id, evaluated)))
    assert len(sharing.WRITTEN) <= 2 * sharing.MAX_WRITTEN
    failed = [each for each in sharing.WRITTEN if each in evaluated and each.has_failed]
    assert len(failed) <= 3
    for each in (*seen, xp.asarray(own)):
        with pytest.raises(np.linalg.LinAlgError):
            each.compute()


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "?", "c8"])
@pytest.mark.parametrize(
    "number",
    [
        np.float64("nan"),
        np.float32("-inf"),
        np.float64(1e30),
        np.complex64("nan"),
        np.int64(-(2**40)),
        np.uint64(2**63),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_numpys_numbers_that_elements_cannot_be_are_refused_where_they_are_written(dtype, number):
    for write in (
        lambda target: target.__setitem__(..., number),
        lambda target: target.__setitem__(1, number),
        lambda target: target.__setitem__((slice(1, None), 0), number),
        lambda target: target.fill(number),
    ):
        theirs = np.zeros((2, 3), dtype)
        try:
            write(theirs)
            raised = ()
        except (ValueError, OverflowError) as error:
            raised = type(error)
        for ours in (xp.asarray(np.zeros((2, 3), dtype)), xp.zeros((2, 3), dtype=dtype) * np.ones((), dtype)):
            if raised:
                with pytest.raises(raised):
                    write(ours)
            else:
                write(ours)
            np.testing.assert_array_equal(np.asarray(ours), theirs)


def test_tapes_that_begin_while_others_are_forgotten_are_known(monkeypatch):
    x = xp.zeros(3)
    begun = []
    monkeypatch.setattr(sharing, "TAPES", [lambda: begun.append(x + 1.0)])
    monkeypatch.setattr("fusec.xp.tape.TAPES", sharing.TAPES)
    monkeypatch.setattr("fusec.xp.operators.TAPES", sharing.TAPES)
    sharing.TAPES.append(lambda: sharing.TAPES.append(ref(begun[0]._tape)))
    sharing.forget()
    x += 5.0
    x.compute()
    assert begun[0].tolist() == [1] * 3


@pytest.mark.parametrize("key", [slice(None), slice(None, None, -1), slice(1, None, 2), slice(2, 2), (..., 1)])
def test_views_see_writes_among_many_that_wait(key):
    values = [np.arange(4.0) + at for at in range(40)]
    arrays = [xp.asarray(each) for each in values]
    views = [xp.asarray(each[key]) for each in values]  # of the same memory, which no array knows
    for at, each in enumerate(arrays):
        each[1:] *= at
    for at, each in enumerate(views):
        wanted = np.arange(4.0) + at
        wanted[1:] *= at
        assert np.array_equal(each + 0, wanted[key])


def steps(u, count):
    for _ in range(count):
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
        u[0] = u[1]
        u[..., -1] = u[:, 0]
    return u


@pytest.mark.parametrize("shape", [(9, 7), (3, 2), (64, 5)])
def test_writes_to_parts_of_arrays_with_values_are_recorded(shape):
    start = np.random.default_rng(7).random(shape)
    expected, x = steps(start.copy(), 3), xp.asarray(start.copy())
    view = x[1:, ::-1]
    steps(x, 3)
    assert xp.memory_stats().pending
    assert xp.explain(x).kernels
    assert any(np.may_share_memory(each, x._value) for tape in sharing.WRITTEN for each in tape.written)
    np.testing.assert_array_equal(np.asarray(view), expected[1:, ::-1])
    np.testing.assert_array_equal(np.asarray(steps(x, 2)), steps(expected, 2))


def test_reads_of_many_parts_beside_a_write_are_not_traced_one_by_one(monkeypatch):
    own, found = np.arange(60.0), np.zeros(60)
    x, y = xp.asarray(own.copy()), xp.asarray(found.copy())
    traced = []
    after = Tape.traced_to
    monkeypatch.setattr(Tape, "traced_to", lambda self, *given: [traced.append(1), after(self, *given)][1])
    counts = []
    for at in range(60):
        own += 1
        found[at : at + 1] = own[at : at + 1]
        x += 1
        y[at : at + 1] = x[at : at + 1]
        counts.append(len(traced))
    np.testing.assert_array_equal(np.asarray(y), found)
    assert counts[-1] == counts[20]


@pytest.mark.parametrize("dtype", [np.int64, "u4", xp.float32, np.dtype("i2"), "c16", "?", None])
@pytest.mark.parametrize("is_computed", [True, False])
def test_view_reinterprets_bits_as_numpys_does(dtype, is_computed):
    own = np.arange(24.0).reshape(3, 8)[:, :4]
    x = xp.asarray(own.copy()) if is_computed else xp.asarray(own / 2) * 2
    wanted = [] if dtype is None else [np.dtype(dtype)]
    expected, found = own.copy().view(*wanted), x.view() if dtype is None else x.view(dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(found), expected)
    found[:] = found * 0
    assert not np.asarray(x).any()


@pytest.mark.parametrize("dtype", [">f8", "M8[s]", "O", "V8"])
def test_views_of_dtypes_that_are_not_held_are_refused(dtype):
    with pytest.raises(TypeError):
        xp.ones(3).view(dtype)


def test_views_whose_elements_do_not_fit_raise_numpys_error():
    for x in (xp.ones(3, dtype="f4"), xp.ones(3, dtype="f4") + 1):
        with pytest.raises(ValueError, match=r"divisor|multiple"):
            x.view("f8")


class Tick(Exception):
    """What a handler raises that interrupts an evaluation."""


@cache
def is_with(file, line):
    """Whether a line begins a block that takes a lock, say: no signal is handled between its end and the release."""
    return linecache.getline(file, line).lstrip().startswith("with ")


def interrupted_at(count, run):
    """Call a function; interrupt it at one of the lines that Python runs meanwhile. Whether it was interrupted."""
    left = count

    def trace(frame, event, _):
        nonlocal left
        file = frame.f_code.co_filename
        yields = event == "return" and frame.f_code.co_flags & inspect.CO_GENERATOR  # where no signal is handled
        if event in ("line", "return") and "/fusec/" in file and not (yields or is_with(file, frame.f_lineno)):
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise Tick
        return trace

    sys.settrace(trace)
    try:
        run()
    except Tick:
        return True
    finally:
        sys.settrace(None)
    return left <= 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("repeats", "is_native", "step"),
    [
        (0, True, 17), (3, True, 5), (3, False, 5),
        *[pytest.param(*each, marks=pytest.mark.slow) for each in ((0, True, 3), (3, True, 1), (3, False, 1))],
    ],
)  # fmt: skip
def test_writes_happen_once_wherever_an_evaluation_is_interrupted(repeats, is_native, step, monkeypatch):
    """step: of how many lines one is interrupted."""
    if not is_native:
        monkeypatch.setattr("fusec.fusion.fused_plan.HASTEN_AT", 10**9)
        monkeypatch.setattr("fusec.fusion.fused_plan.HASTEN_ONE_AT", 10**9)
    number = 2 + is_native + repeats  # so that the plan is another one

    def recorded():
        x, y = xp.asarray(np.arange(12.0)), xp.zeros(6)
        y += 2
        y[1:4] *= xp.sum(x[number:])
        part = y[2:]
        part += 1
        apart = xp.zeros(3)
        apart[1:] += 4
        return y, part, xp.linalg.inv(xp.asarray(np.eye(2)) * xp.sum(y)), apart

    for _ in range(repeats):
        xp.compute(*recorded())
        time.sleep(0.2)  # kernels are compiled
    total = 2 * sum(range(number, 12))
    expected = np.array([2, total, total + 1, total + 1, 3, 3.0])
    at = 1
    while True:
        y, part, inverse, apart = recorded()
        is_interrupted = interrupted_at(at, lambda y=y, apart=apart: xp.compute(apart, y))
        float(inverse[0, 0])
        assert apart.tolist() == [0, 4, 4]
        np.testing.assert_array_equal(np.asarray(y), expected)
        part += 1
        np.testing.assert_array_equal(np.asarray(y)[2:], expected[2:] + 1)
        assert RECORDING.get() is None  # the next call is traced
        if not is_interrupted:
            break
        at += step
    assert at > 30


INTO = {
    "copyto": lambda d, x: np.copyto(d, x),
    "copyto by name": lambda d, x: np.copyto(src=x, dst=d),
    "copyto where": lambda d, x: np.copyto(d, 1, where=x > 1),
    "putmask": lambda d, x: np.putmask(d, x > 1, x),
    "put": lambda d, x: np.put(d, (x[:2] * 0).astype(int), x[:1]),
    "place": lambda d, x: np.place(d, x > 1, [5.0]),
    "put_along_axis": lambda d, x: np.put_along_axis(d, x[:1].astype(int), 7.0, 0),
    "fill_diagonal": lambda d, x: np.fill_diagonal(d[:2].reshape(1, 2), x[1:2]),
    "at": lambda d, x: np.add.at(d, [0, 0], x[:2]),
    "at lazy indices": lambda d, x: np.subtract.at(d, x[:2].astype(int), 1),
    "item": lambda d, x: d.__setitem__(slice(1, None), x[1:]),
    "in place": lambda d, x: d.__iadd__(x),
    "ufunc": lambda d, x: np.add(x, 1, out=d),
    "ufunc by position": lambda d, x: np.multiply(x, 3, d),
    "two results": lambda d, x: np.modf(x, out=(d, np.zeros(3))),
    "reduce": lambda d, x: np.maximum.reduce(np.ones((3, 3)) * x, axis=0, out=d),
    "sum": lambda d, x: np.sum(np.ones((3, 3)) * x, axis=0, out=d),
    "sum by position": lambda d, x: np.sum(np.ones((3, 3)) * x, 0, None, d),
    "sum as method": lambda d, x: (np.ones((3, 3)) * x).sum(axis=0, out=d),
    "clip as method": lambda d, x: x.clip(0, 2, d),
    "take": lambda d, x: np.take(x, [2, 1, 0], out=d),
    "take as method": lambda d, x: x.take([2, 1, 0], out=d),
    "clip": lambda d, x: np.clip(x, 0, 2, out=d),
    "concatenate": lambda d, x: np.concatenate([x[1:], x[:1]], 0, d),
    "median": lambda d, x: np.median(np.ones((3, 3)) * x, 0, d),
    "namespace": lambda d, x: (xp if isinstance(x, xp.Array) else np).add(x, 1, out=d),
}
TARGETS = {
    "plain": lambda: np.zeros(3), "strided": lambda: np.zeros(6)[::-2], "swapped": lambda: np.zeros(3, ">f8"),
    "subclass": lambda: np.zeros(3).view(type("Own", (np.ndarray,), {})),
}  # fmt: skip


@pytest.mark.parametrize("into", INTO.values(), ids=INTO)
def test_what_is_written_to_arrays_of_numpys_is_there_at_once(into):
    values = np.array([0.5, 1.25, 3.0])
    for target in TARGETS.values():
        expected = target()
        result = into(expected, values)
        for begin in (lambda x: x, lambda x: x + 0, lambda x: x.__iadd__(0)):
            found = target()
            given = into(found, begin(xp.asarray(values.copy())))
            assert found.tolist() == expected.tolist() != [0] * 3
            assert (given is found) == (result is expected)


@pytest.mark.parametrize("name", [each for each in INTO if each not in ("item", "fill_diagonal")])
def test_what_was_recorded_of_a_target_is_as_it_was_before_the_write(name):
    values = np.array([0.5, 1.25, 3.0])
    expected = np.ones(3)
    INTO[name](expected, values)
    for is_lazy in (False, True):
        memory = np.zeros(3)
        x = xp.asarray(memory)
        twice = x * 2
        x += 1
        before = x + 1
        if not (is_lazy and name == "at lazy indices"):
            INTO[name](x if is_lazy else memory, xp.asarray(values))
            assert x.tolist() == expected.tolist()
        assert before.tolist() == [2] * 3
        assert twice.tolist() == [0] * 3


def test_imaginary_parts_of_real_arrays_are_zeros_that_are_not_written():
    for x in (xp.ones((2, 2), dtype="int32"), xp.ones(3) * 2, xp.ones((), dtype="float32")):
        part = x.imag
        assert (part.dtype, part.shape, np.asarray(part).any()) == (x.dtype, x.shape, np.False_)
        for write in (lambda x, p: p.__iadd__(1), lambda x, p: p.__setitem__(x > 0, 1), lambda x, p: p.fill(2)):
            with pytest.raises(ValueError, match="read-only"):
                write(x, part)
        assert not np.asarray(x.imag).any()


def of_numbers(X):
    """Augmented assignments to what NumPy has as numbers, other names of which keep their values."""
    x, table = X.asarray([5.0, 1.0, 3.0]), X.asarray([[3, 1], [2, 7]])
    total, seen = x.sum(), []
    for k in range(3):
        total += k
        seen.append(total)
    low = high = x[0]
    low -= 1
    high **= 2
    mean = before = x.mean()
    float(before)
    mean *= 2
    hits = (x > 2).sum()
    hits /= 3
    some = other = (x > 2).any()
    some &= False
    table[0, 1] += 0.75
    table[1] += 1
    small = table.min()
    small <<= 3
    return [*seen, low, high, mean, before, hits, some, other, small, *x, *table[0], *table[1]]


def of_arrays_without_axes(X):
    """The same of arrays without axes, whose other names see what is written."""
    x = X.asarray([5.0, 1.0])
    zero, five, part = X.zeros(()), X.asarray(5.0), x[0, ...]
    others = zero, five, part
    zero += 1
    five **= 2
    part -= 2
    return [*others, *x]


@pytest.mark.parametrize("function", [of_numbers, of_arrays_without_axes])
def test_augmented_assignments_make_new_numbers_and_write_arrays(function):
    wanted = function(np)
    for _ in range(3):
        found = function(xp)
        assert [each.item() for each in found] == [each.item() for each in wanted]
        assert [each.dtype for each in found] == [each.dtype for each in wanted]
    with xp.eager():
        assert [each.item() for each in function(xp)] == [each.item() for each in wanted]


@pytest.mark.parametrize("kind", ["fresh", "copied", "shared", "held", "read"])
def test_writes_that_nobody_can_see_are_given_up_at_a_look(kind):
    theirs = np.zeros(10)
    x = xp.asarray(theirs) if kind == "shared" else xp.array(theirs) if kind == "copied" else xp.zeros(10)
    x[0] = 1
    total = xp.sum(x)
    view = x[:3] if kind == "held" else None
    if kind != "read":
        del total
    del x
    other = xp.asarray(np.arange(3.0))
    for turn in range(2 * sharing.MOST_LOOKS + 1):
        assert (other + turn).tolist() == [turn, turn + 1, turn + 2]
    tapes = [each for each in sharing.WRITTEN if any(len(value) == 10 for value in each.written)]
    assert len(tapes) == (kind == "shared")
    if kind == "held":
        assert view.tolist() == [1, 0, 0]
    if kind == "read":
        assert float(total) == 1
    if kind == "shared":
        assert xp.asarray(theirs)[0] == 1
        assert theirs[0] == 1
