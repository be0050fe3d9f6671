"""Lazy arrays while the handlers of signals raise errors, or use the arrays themselves."""

import signal
import sys
import threading
import time

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.dispatch.interception import intercepted
from fusec.dispatch.notes import Notes
from fusec.xp.operators import RECORDERS
from fusec.xp.recording import Recorded

STEPS = {
    "in place": "x += 1",
    "element": "x[0] = 7",
    "part": "x[1:] = x[:-1] * 1",
    "out": "np.add(x, 1, out=x)",
    "view": "v = x[::-1]; v += 1",
    "operator": "y = x + 1; z = -y",
    "function": "y = xp.clip(x, 0.0, 2.0) if xp else 0",
    "beside others": "y = x + held",
    "join": "y = (held * 2) + x",
    "places": "x[xp.asarray(np.array([1, 2])) if xp else [1, 2]] = 5",
    "mask": "x[x > 2] = 0",
}
ALWAYS = ("in place", "element", "view", "operator", "function", "beside others")
SIGNALS = ("call", "c_return")  # where signals are handled
LEAVING = ("__exit__", "release", "_acquire_restore")  # of locks: no signal is handled between a block and these


def some(names, chosen):
    """Parameters, of which the default run takes some."""
    return [each if each in chosen else pytest.param(each, marks=pytest.mark.slow) for each in names]


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    """Operators are Python's."""
    for each in RECORDERS:
        for name in each.names:
            monkeypatch.setattr(Recorded.kind, name, each.run)


def at_event(count, events, handle, run):
    """Call a function, and another one at one of the events that Python tells meanwhile. Whether there were so many."""
    left = count

    def profile(frame, event, called):
        nonlocal left
        code = frame.f_code  # an error in a generator that is closed is not raised
        if event == "c_call" and called.__name__ in LEAVING:
            return
        if event in events and "/fusec/" in code.co_filename and code.co_name != "<genexpr>":
            left -= 1
            if left == 0:
                sys.setprofile(None)
                handle()

    sys.setprofile(profile)
    try:
        run()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left <= 0


def evaluated(x):
    """The elements of an array, which come soon."""
    found = []
    thread = threading.Thread(target=lambda: found.append(np.asarray(x).tolist()), daemon=True)
    thread.start()
    thread.join(20)
    assert found, "the evaluation has not ended"
    return found[0]


def scene(code, is_lazy):
    """An array with pending steps, and a function that takes further ones."""
    x, held = np.arange(6.0), np.ones(6)
    names = {"x": xp.asarray(x) if is_lazy else x, "np": np, "xp": xp if is_lazy else None}
    names["held"] = xp.asarray(held) if is_lazy else held
    exec("x += 1; x[0] = 5", names)
    return names["x"], lambda: exec(code, names)


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", some(STEPS, ALWAYS))
def test_an_interrupt_leaves_arrays_as_they_were_or_has_the_step_taken(step):
    code = compile(STEPS[step], "step", "exec")
    results = []
    for is_run in (False, True):
        x, run = scene(code, False)
        if is_run:
            run()
        results.append(x.tolist())
    for _ in range(3):
        x, run = scene(code, True)
        run()
        assert evaluated(x) == results[1]
    count = 1
    while True:
        x, run = scene(code, True)
        is_there = at_event(count, (*SIGNALS, "c_call"), interrupt, run)
        assert evaluated(x) in results
        exec("x += 1", {"x": x})
        assert (np.asarray(x) - 1).tolist() in results
        if not is_there:
            break
        count += 1
    assert count > 5


@pytest.mark.parametrize("work", some(["x += 10", "y = x * 2; x[1] += 10", "x += 10; float(x[0])"], ["x += 10"]))
@pytest.mark.parametrize(
    "step", some(["in place", "view", "operator", "function", "beside others", "join", "out"], ["in place", "function"])
)
def test_a_handler_that_uses_an_array_takes_its_steps_and_none_is_lost(step, work):
    code, more = compile(STEPS[step], "step", "exec"), compile(work, "work", "exec")
    x, run = scene(code, False)
    run()
    alone = x.tolist()
    exec(more, {"x": x})
    expected, count = x.tolist(), 1
    for _ in range(3):
        scene(code, True)[1]()
    while True:
        x, run = scene(code, True)
        is_there = at_event(count, SIGNALS, lambda x=x: exec(more, {"x": x}), run)
        assert evaluated(x) == (expected if is_there else alone)
        if not is_there:
            break
        count += 1
    assert count > 5


@pytest.mark.parametrize(
    "look",
    [lambda x: x.tolist(), lambda x: x.__iadd__(10), lambda x: (xp.asarray(np.ones(6)) * 2) + x],
    ids=["value", "write", "join"],
)
def test_a_handler_that_uses_an_array_being_computed_gets_an_error_and_none_waits_for_ever(look):
    codes, count = set(), 1
    while True:
        x, run = scene("float(x[1])", True)
        y = x * 2

        def handle(x=x, y=y):
            for each in (x, y):
                try:
                    look(each)
                except fusec.FusecError as problem:
                    codes.add(problem.code)

        is_there = at_event(count, SIGNALS, handle, run)
        assert evaluated(x)[1:] in ([2.0, 3, 4, 5, 6], [12.0, 13, 14, 15, 16])
        assert evaluated(y)[1:] in ([4.0, 6, 8, 10, 12], [14.0, 16, 18, 20, 22])
        if not is_there:
            break
        count += 1
    assert codes == {"F789"}


def test_a_handler_computes_arrays_while_calls_of_kernels_are_only_noted():
    x = xp.asarray(np.arange(3.0)) * 2 + 1
    with intercepted(Notes()):
        assert x.tolist() == [1, 3, 5]
    for count in range(1, 400, 9):  # an array of which totals are traced
        x, y = xp.asarray(np.arange(3.0)) * 2 + 1, xp.asarray(np.arange(float(3 + count))) * 1
        at_event(count, ("call",), x.tolist, lambda y=y: xp.cumsum(y))
        assert x.tolist() == [1, 3, 5]


def test_an_error_of_a_handler_that_used_an_array_being_computed_is_raised():
    count, codes = 1, []
    while True:
        x, run = scene("float(x[1])", True)

        def try_it(run=run):
            try:
                run()
            except fusec.FusecError as problem:
                codes.append(problem.code)

        seen, errors = len(codes), []

        def handle(x=x, errors=errors):
            try:
                x.tolist()
            except fusec.FusecError as problem:
                errors.append(problem)
                raise

        is_there = at_event(count, ("call",), handle, try_it)
        assert len(codes) - seen == len(errors)
        assert evaluated(x)[1] == 2
        if not is_there:
            break
        count += 1
    assert {*codes} == {"F789"}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["x += 1", "x[0] += 1; x[1:] += 1", "x[...] = x + 1"])
def test_arrays_can_be_evaluated_after_signals_at_any_time(step):
    code, random = compile(step, "step", "exec"), np.random.default_rng(5)
    before = signal.signal(signal.SIGALRM, lambda *_: interrupt())
    end = time.monotonic() + 5
    try:
        while time.monotonic() < end:
            x = xp.asarray(np.zeros(50))
            names = {"x": x}
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(2e-5, 4e-4))
                while True:
                    exec(code, names)
            except KeyboardInterrupt:
                pass
            assert evaluated(x)[2] >= 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
