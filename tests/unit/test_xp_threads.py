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
from fusec.xp import operators, sharing, tracing, writes
from tests.support.threads import run_together

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


def test_an_array_may_be_computed_as_soon_as_other_threads_find_its_tape(monkeypatch):
    def elsewhere():
        for each in sharing.readers(x._value):
            each.evaluate()

    monkeypatch.setattr(operators, "WRITTEN", [])
    add = next(each.run for each in operators.RECORDERS if each.function is np.add and not each.is_swapped)
    x = xp.asarray(np.arange(1049.0))
    for other in (1.5, xp.asarray(np.ones(1049))):
        add(x, other)  # so that the step is known
        monkeypatch.setattr(operators, "forget_some", elsewhere)
        found = add(x, other)
        tape = found._tape
        assert tape is None
        assert float(found[3]) == 3 + float(np.max(other))
