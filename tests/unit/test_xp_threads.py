"""Lazy arrays that several threads record and evaluate."""

import sys
import threading
import time
import types

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.base import locks
from fusec.xp import tracing, writes


@pytest.fixture
def hasty():
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_together(work, count=8):
    """Run a function of the thread's number in threads that begin together, and raise what one of them raises."""
    begin, failed = threading.Barrier(count), []

    def run(mine):
        begin.wait()
        try:
            work(mine)
        except BaseException as problem:
            failed.append(problem)

    threads = [threading.Thread(target=run, args=(mine,), daemon=True) for mine in range(count)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads)
    if failed:
        raise failed[0]


WRITES = {
    "rows": lambda x, mine, step: x.__setitem__(mine, x[mine] + step),
    "rows in place": lambda x, mine, step: x[mine].__iadd__(step),
    "elements": lambda x, mine, step: x.__setitem__((mine, slice(None)), x[mine, :] * 1 + step),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_threads_that_write_disjoint_rows_all_write_them(write, hasty):
    for extent in (5, 6):
        x = xp.zeros((8, extent))

        def work(mine, x=x):
            for step in range(10):
                write(x, mine, step + mine)

        run_together(work)
        assert np.asarray(x).tolist() == [[45 + 10 * mine] * extent for mine in range(8)]


def test_threads_that_wait_to_record_do_not_trace_all_steps_once_more(monkeypatch):
    x, traced, take = xp.asarray(np.arange(1033.0)), [], tracing.TapeRun.take
    for step in range(20):
        x = x + float(step)
    xp.roll(x, 9)
    monkeypatch.setattr(tracing.TapeRun, "take", lambda run, *given: (traced.append(run), take(run, *given))[1])
    with locks.lock:
        found = [None] * 6
        threads = [
            threading.Thread(target=lambda at=at: found.__setitem__(at, xp.roll(x, at)), daemon=True) for at in range(6)
        ]
        for each in threads:
            each.start()
        time.sleep(0.1)
    for each in threads:
        each.join(60)
    assert [float(each[0]) for each in found] == [190.0, *range(1222, 1217, -1)]
    assert len(traced) <= 20 + 6 + 2


def test_a_write_is_taken_again_as_it_was_recorded_whatever_threads_did_meanwhile(monkeypatch):
    write = writes.write

    def elsewhere(function, target, *given):
        tape = target._tape
        tape.leaf(np.zeros(2), xp.zeros(2)._form)
        tape.evaluate()
        write(function, target, *given)

    def program(function):
        x = xp.zeros(1031) + 1
        function(x, x * 2)
        return x[-1].tolist()

    for function in (lambda x, y: x.__iadd__(y), lambda x, y: x.__setitem__(..., y)):
        with monkeypatch.context() as patch:
            patch.setattr(writes, "write", elsewhere)
            expected = program(function)
        assert program(function) == expected


def test_numbers_are_taken_while_another_thread_imports_numpys_masked_arrays(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy.ma", types.ModuleType("numpy.ma"))
    assert fusec.sum([1.0, 2.0]) == 3
