"""What lazy arrays do besides their functions: evaluation, sharing, memory, threads, errors."""

import copy
import gc
import itertools
import pickle
import re
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.base.recent import Recent
from fusec.xp import claims, tracing
from fusec.xp import tape as tapes
from fusec.xp.recording import MAX_STEPS
from fusec.xp.trie import TRIE, TapeState

PAGE = (Path(__file__).parents[2] / "docs" / "lazy_arrays.md").read_text()


def is_pending(array):
    return array._tape is not None


def test_nothing_is_computed_before_someone_looks():
    x = xp.asarray(np.arange(6.0))
    y = (x + 1) * 2
    z = xp.sum(y)
    assert is_pending(y)
    assert is_pending(z)
    assert y.shape == (6,)
    assert float(z) == 42
    assert not is_pending(y)  # it is in use, and was computed on the way
    assert not is_pending(z)


def test_what_nobody_uses_any_more_is_no_output(monkeypatch):
    x = xp.asarray(np.arange(6.0))
    y = xp.exp(x + 1) * 2 + x
    lives = []
    planned = tapes.Tape.planned
    monkeypatch.setattr(tapes.Tape, "planned", lambda self, *given: lives.append(given[1]) or planned(self, *given))
    y.compute()
    assert [len(each) for each in lives] == [1]


def test_a_repeated_graph_is_not_traced_again(monkeypatch):
    def step(x, number):
        return xp.max(x * number + 1) - x

    x = xp.asarray(np.arange(7.0))
    step(x, 2.0).compute()
    monkeypatch.setattr(tracing.TapeRun, "take", None)
    assert np.asarray(step(x, 5.0)).tolist() == [31.0 - each for each in range(7)]
    assert np.asarray(step(xp.asarray(np.ones(7)), 0.5)).tolist() == [0.5] * 7


def test_writes_to_arrays_that_share_memory_are_not_planned_again(monkeypatch):
    def step(u):
        u[1:-1] = (u[:-2] + u[2:]) / 2
        return u.compute()

    ours, theirs = xp.asarray(np.arange(9.0) ** 2), np.arange(9.0) ** 2
    step(ours)
    monkeypatch.setattr(tracing.TapeRun, "take", None)
    step(ours)
    for _ in range(2):
        theirs[1:-1] = (theirs[:-2] + theirs[2:]) / 2
    assert np.asarray(ours).tolist() == theirs.tolist()


def test_a_number_that_decides_about_the_operation_is_part_of_it():
    x = xp.asarray([1.0, 2.0, 3.0])
    assert np.asarray(x**2).tolist() == [1, 4, 9]
    assert np.asarray(x**3).tolist() == [1, 8, 27]
    assert np.asarray(x ** (x - 1)).tolist() == [1, 2, 9]


def test_an_array_that_numpy_changes_before_it_is_looked_at():
    own = np.arange(3.0)
    shared, apart = xp.asarray(own) + 1, xp.asarray(own, copy=True) + 1
    own[0] = 10
    assert np.asarray(shared).tolist() == [11, 2, 3]  # as the page says
    assert np.asarray(apart).tolist() == [1, 2, 3]


def test_two_tapes_that_write_are_joined():
    a, b = xp.asarray(np.arange(4.0)), xp.asarray(np.arange(4.0) + 10)
    p, q = a * 2, b * 3
    a[0] = 100
    b[1] = 200
    a += p
    b += q
    assert np.asarray(a + b).tolist() == [140, 236, 54, 61]
    assert np.asarray(p + q).tolist() == [30, 35, 40, 45]
    assert np.asarray(a).tolist() == [100, 3, 6, 9]


def test_a_write_through_a_view_that_is_recorded():
    x = xp.asarray(np.ones(3))
    other = x * 5
    view = np.reshape(x, -1)
    view[[0, -1]] = 0
    assert np.asarray(x).tolist() == [0, 1, 0]
    assert np.asarray(other).tolist() == [5, 5, 5]


def test_numbers_that_do_not_fit_are_refused_where_they_stand_also_in_known_steps():
    x = xp.asarray(np.array([1, 2], "u1"))
    for known in (x, x + 1):
        assert np.asarray(known + 5 - 5).tolist() == np.asarray(known).tolist()
        pending = known + 7
        with pytest.raises(OverflowError):
            known + 300
        with pytest.raises(OverflowError):
            300 - known
        assert np.asarray(known < 300).all()
        assert np.asarray(pending).tolist() == [each + 7 for each in np.asarray(known)]


def test_comparisons_with_what_is_no_number():
    x = xp.asarray([1, 2]) + 1
    for other in (None, "text"):
        assert np.asarray(x == other).tolist() == [False, False]
        assert np.asarray(x != other).tolist() == [True, True]
    with pytest.raises(TypeError, match="unsupported operand"):
        x + None
    assert np.asarray(-x).tolist() == [-2, -3]


def test_read_only_arrays_are_not_written():
    own = np.arange(3.0)
    own.flags.writeable = False
    x = xp.asarray(own)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1
    assert float(xp.sum(x)) == 3


def test_errors_come_where_the_operation_is_written():
    x = xp.asarray(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"broadcast|shape"):
        x + xp.asarray(np.ones(4))
    with pytest.raises((ValueError, IndexError)):
        xp.sum(x, axis=5)
    with pytest.raises(TypeError):
        x + "text"
    assert np.asarray(x + 1).tolist() == [[2, 2, 2], [2, 2, 2]]  # nothing of that is left


def test_negative_powers_of_integers_are_refused_where_they_stand():
    x = xp.asarray([1, 2, 3])
    assert np.asarray(x**2).tolist() == [1, 4, 9]  # this exponent says nothing about others
    for raised in (lambda: x**-1, lambda: (x + 1) ** -2, lambda: xp.pow(x, -1), lambda: np.power(x, -1)):
        with pytest.raises(fusec.FusecValueError, match=r"(?s)negative integer powers.*F505.*test_lazy_arrays"):
            raised()
    assert np.asarray(x**-1.0).tolist() == [1, 1 / 2, 1 / 3]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, RuntimeError])
def test_an_evaluation_that_fails_can_be_repeated(error, monkeypatch):
    x = xp.asarray(np.arange(3.0))
    y = x * 2
    z = y + x

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(tapes.Tape, "results", fail)
        with pytest.raises(error):
            z.compute()
    assert is_pending(z)
    w = z + y
    assert np.asarray(w).tolist() == [0, 5, 10]
    assert np.asarray(z).tolist() == [0, 3, 6]


def test_memory_goes_with_the_arrays():
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            own = np.zeros(1000)
            gone = weakref.ref(own)
            x = xp.asarray(own)
            y = xp.sqrt(x) + 1
            z = y * x
            del own, x, y, z
            assert gone() is None
    finally:
        gc.enable()


def centred_rows(x, y):
    z = (x - xp.mean(x, axis=0)) * 0.5
    return xp.sum(xp.maximum(z, y), axis=1)


def written_rows(x, y):
    z = x + y
    z[1:] += x[1:]
    return z


def smoothed(x, y):
    return 0.25 * (x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1]) - y[1:-1, 1:-1]


@pytest.mark.parametrize("program", [centred_rows, written_rows, smoothed, lambda x, y: xp.concat([x, xp.exp(y)])])
def test_arrays_of_other_extents_need_no_new_trace(monkeypatch, program):
    def of(rows, columns):
        x, y = (np.random.default_rng(seed).normal(size=(rows, columns)) for seed in range(2))
        return np.asarray(program(xp.asarray(x), xp.asarray(y)))

    of(11, 13)
    with monkeypatch.context() as patch:
        patch.setattr(tapes.Tape, "traced_to", None)
        found = [of(size, size + 7) for size in (31, 32, 47)]
    monkeypatch.setattr(tapes.Tape, "_foreseen", lambda *_: None)
    monkeypatch.setattr(tapes.Tape, "_resized", lambda *_: None)
    monkeypatch.setattr(TRIE, "root", TapeState(None, None, ()))
    monkeypatch.setattr(TRIE, "plans", Recent(10))
    for size, rows in zip((31, 32, 47), found, strict=True):
        np.testing.assert_array_equal(rows, of(size, size + 7))


def test_explained_arrays_of_other_extents_have_their_own_bytes():
    for size in (300, 400):
        x = xp.asarray(np.ones(size))
        np.asarray(x * 2 - 1)
        found = x * 2 - 1
        assert xp.explain(found).bytes_moved == 16 * size


def test_kinds_are_bounded(monkeypatch):
    monkeypatch.setattr("fusec.xp.trie.MAX_NODES", 40)
    for size in range(1, 60):
        x = xp.asarray(np.ones((size,) * (1 + size % 3)))
        for _ in range(size % 5):
            x = x + 1.0
        assert xp.roll(x, size).tolist() == x.tolist()
        kinds = [TRIE.root.kind]
        for each in kinds:
            kinds += each.leaves.values()
            kinds += [rule.behind for rules in each.rules.values() for rule in rules]
        assert len(kinds) <= 41


def test_the_trie_is_bounded(monkeypatch):
    monkeypatch.setattr("fusec.xp.trie.MAX_NODES", 20)
    for size in range(1, 30):
        x = xp.asarray(np.ones(size))
        assert float(xp.sum(x + 1)) == 2 * size
        assert TRIE.nodes <= 20


def test_steps_that_are_refused_for_all_extents_are_bounded(monkeypatch):
    monkeypatch.setattr("fusec.xp.trie.MAX_NODES", 60)
    for size in range(1, 80):
        x = xp.asarray(np.ones(size))
        assert np.array2string(x + 1) == np.array2string(np.ones(size) + 1)
        assert xp.array2string(x, precision=size) == np.array2string(np.ones(size))
        entries, states = 0, [TRIE.root]
        for state in states:
            entries += len(state) + len(state.refused)
            states += [each[0] for each in state.values() if type(each[0]) is TapeState and each[0].parent is state]
        assert entries <= 60


def test_plans_are_bounded_and_made_again(monkeypatch):
    monkeypatch.setattr(TRIE.plans, "limit", 3)
    plans = []
    for size in (*range(200, 210), 200):
        x = xp.asarray(np.ones(size)) + 1
        plans.append(weakref.ref(x._tape.plan()))
        assert float(xp.sum(x)) == 2 * size
        del x
    gc.collect()
    assert sum(each() is not None for each in plans) <= 3


@pytest.mark.parametrize(
    "law",
    [
        lambda x, i: x * float(i) + 1,
        lambda x, i: xp.where(x > i, x, float(i)),
        lambda x, i: xp.clip(x, -1.0, float(i)),
        lambda x, i: np.maximum(x, float(i)),
        lambda x, i: x.__iadd__(i),
        lambda x, i: x.__setitem__(0, float(i)),
        lambda x, i: x.__setitem__(i % 50, float(i)),
    ],
)
@pytest.mark.sampled(3)
def test_evaluations_leave_nothing_behind(law):
    def run(numbers):
        x = xp.asarray(np.ones(50))
        for each in numbers:
            y = law(x, each)
            (x if y is None else y).compute()

    run(range(300))
    tracemalloc.start()
    held = []
    for begin in range(300, 1500, 300):  # in some of these, kernels are compiled, or become one sequence
        run(range(begin, begin + 300))
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert min(now - before for before, now in itertools.pairwise(held)) < 6000  # 20 bytes an evaluation


def test_a_long_loop_is_evaluated_on_its_way():
    x = xp.asarray(np.zeros(3))
    for _ in range(10 * MAX_STEPS):
        x = x + 1
        assert x._tape.node.depth <= MAX_STEPS + 2
    assert np.asarray(x).tolist() == [10 * MAX_STEPS] * 3


def test_threads_record_and_evaluate_shared_arrays():
    base = xp.asarray(np.arange(50.0)) + 1
    found = [[] for _ in range(8)]

    def work(mine, seed):
        for step in range(60):
            z = base * 2.0 + float(step) - base
            if (step + seed) % 3 == 0:
                z.compute()
            mine.append(z)

    threads = [threading.Thread(target=work, args=(mine, seed)) for seed, mine in enumerate(found)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert not any(each.is_alive() for each in threads)
    for mine in found:
        for step, z in enumerate(mine):
            np.testing.assert_array_equal(np.asarray(z), np.arange(50.0) + 1 + step)


def test_a_place_that_an_interrupted_thread_took_is_given_back(monkeypatch):
    monkeypatch.setattr(claims, "PATIENCE", 50)
    x = xp.asarray(np.arange(3.0)) + 1
    tape = x._tape
    tape.slots[tape.node.count] = object()  # taken, and the tape was never moved
    assert np.asarray(x * 2).tolist() == [2, 4, 6]


def test_numpy_records_too():
    x = xp.asarray(np.arange(4.0))
    y = np.sin(x) + np.ones(4) * x
    assert isinstance(y, xp.Array)
    assert is_pending(y)
    assert isinstance(np.concatenate([x, y]), xp.Array)
    out = np.empty(4)
    assert np.add(x, 1, out=out) is out
    assert out.tolist() == [1, 2, 3, 4]
    target = xp.asarray(np.zeros(4))
    assert np.add(x, 1, out=target) is target
    assert np.asarray(target).tolist() == [1, 2, 3, 4]
    np.copyto(target, 7)
    assert np.asarray(target).tolist() == [7] * 4


def test_functions_of_fusec_take_and_give_lazy_arrays():
    x = xp.asarray(np.arange(6.0).reshape(2, 3))

    @fusec.fuse
    def both(a, others):
        return a.sum(1), {"more": a + others[0]}

    twice = fusec.ElementwiseKernel("float64 x", "float64 y", "y = 2 * x", "twice")
    totals, rest = both(x + 1, [x])
    for each in (totals, rest["more"], twice(x), fusec.sum(x, axis=0), fusec.evaluate("x + 1", {"x": x})):
        assert isinstance(each, xp.Array)
    assert np.asarray(totals).tolist() == [6, 15]
    assert np.asarray(twice(x + 1)).tolist() == [[2, 4, 6], [8, 10, 12]]


def test_copies_and_pickles_are_values():
    x = xp.asarray(np.arange(3.0)) * 2
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), xp.asarray(x, copy=True)):
        made[0] = 9
        assert np.asarray(made).tolist() == [9, 2, 4]
    assert np.asarray(x).tolist() == [0, 2, 4]


def test_the_example_of_the_page_for_users_of_numpy_prints_what_it_says(capsys):
    page = (Path(__file__).parents[2] / "docs" / "from_numpy.md").read_text()
    ((text, printed),) = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", page, re.DOTALL)
    exec(compile(text, "from_numpy.md", "exec"), {})
    assert capsys.readouterr().out == printed


def test_chunks_of_dask_are_lazy_arrays():
    array = pytest.importorskip("dask.array")
    base = pytest.importorskip("dask.base")
    values = np.arange(24.0).reshape(6, 4)
    x = xp.asarray(values)
    chunks = array.from_array(x, chunks=(3, 2))
    assert type(chunks._meta) is xp.Array
    found = (array.exp(chunks / 10) + chunks.T.T).map_blocks(lambda each: each.compute()).compute()
    assert type(found) is xp.Array
    np.testing.assert_allclose(np.asarray(found), np.exp(values / 10) + values, rtol=1e-14)
    for found in (chunks - x[:1], x[:1] - chunks):
        np.testing.assert_array_equal(np.abs(np.asarray(found.compute())), values - values[:1])
    for join in (array.concatenate, array.stack):
        np.testing.assert_array_equal(np.asarray(join([chunks, chunks]).compute()), join([values, values]).compute())
    np.testing.assert_allclose(np.asarray(array.tensordot(chunks, chunks.T, 1).compute()), values @ values.T)
    np.testing.assert_allclose(np.asarray(array.einsum("ij,kj->ik", chunks, chunks).compute()), values @ values.T)
    assert base.tokenize(x) == base.tokenize(xp.asarray(values.copy())) != base.tokenize(x + 1)


def test_sizes_in_memory_count_the_elements():
    assert sys.getsizeof(xp.zeros(1000)) - sys.getsizeof(xp.zeros(0)) == 8000


def test_the_examples_of_the_page_print_what_it_says(capsys):
    blocks = re.findall(r"```python\n((?:(?!```).)*)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 5
    names = {}
    for text, printed in blocks:
        exec(compile(text, "lazy_arrays.md", "exec"), names)
        assert capsys.readouterr().out == printed
    assert f"more than {MAX_STEPS} steps" in PAGE


def test_verbs_of_fused_functions_take_lazy_arrays_by_their_values():
    @fusec.fuse
    def scaled(x):
        return x * 2 + 1

    values = np.array([1.0, 2.0, 3.0])
    x = xp.asarray(values)
    assert str(scaled.explain(x)) == str(scaled.explain(values))
    assert str(scaled.graph(x)) == str(scaled.graph(values))
    assert scaled.source("cuda", x).startswith("// scaled: 1 launch")
    scaled.compile(x)
    assert scaled(x).tolist() == [3, 5, 7]
