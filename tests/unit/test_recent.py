"""Tables with a limit forget what was used least recently, and nothing else."""

import random
import threading

import numpy as np
import pytest

import fusec
from fusec.base import recent
from fusec.base.recent import Recent
from fusec.compiler import disk_cache as cache_module
from fusec.dispatch.host import HOST, Host
from fusec.dispatch.spec import MAX_PLANS
from fusec.runtime.cpu import jit


def test_a_table_keeps_what_was_used_last() -> None:
    rng = random.Random(7)
    for limit in (1, 2, 5, 16):
        table, order = Recent[int, str](limit), list[int]()  # the law: keys from the least to the most recently used
        for _ in range(600):
            key = rng.randrange(2 * limit + 1)
            found = table.get(key)
            assert found == (str(key) if key in order else None)
            if found is None:
                assert table.keep(key, str(key)) == str(key)
            order = [each for each in order if each != key] + [key]
            del order[:-limit]
            assert sorted(table.values()) == sorted(map(str, order))


def test_the_least_recently_used_value_is_found_without_a_look_at_all_others(monkeypatch) -> None:
    steps, pop = [], recent.heappop
    monkeypatch.setattr(recent, "heappop", lambda heap: steps.append(1) or pop(heap))
    table = Recent[int, int](500)
    for key in range(5000):
        table.keep(key, key)
        table.get(key // 2)
    assert len(table) == 500
    assert len(steps) <= 2 * 5000


def test_what_is_kept_first_stays() -> None:
    table = Recent[str, object](4)
    first, second = object(), object()
    assert table.keep("a", first) is first
    assert table.keep("a", second) is first
    table["a"] = second
    assert table.get("a") is second
    table.clear()
    assert len(table) == 0
    assert table.get("a") is None


def test_threads_share_a_table() -> None:
    table, wrong = Recent[int, int](32), list[int]()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(4000):
            key = rng.randrange(64)
            found = table.get(key)
            if (table.keep(key, -key) if found is None else found) != -key:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert len(table) <= 32


def test_a_plan_that_is_used_outlives_many_shapes(monkeypatch) -> None:
    made = []
    monkeypatch.setattr(Host, "plan", lambda *args, real=Host.plan: made.append(1) or real(*args))
    kernel = fusec.ElementwiseKernel("T x", "T y", "y = -x", "recently_negated")
    used = np.ones((4, 4))[:, ::2]
    kernel(used)
    assert len(made) == 1
    for number in range(1, MAX_PLANS + 50):
        kernel(np.ones((2, 2 * number))[:, ::2])
        kernel.planned((used,))
    assert len(made) == MAX_PLANS + 50
    assert len(kernel.plans[HOST]) == MAX_PLANS


@fusec.stencil
def recently_apart(a):
    return a[-1, 0] - a[1, 0]


ALL_SORTS = {
    "elementwise": lambda a: fusec.ElementwiseKernel("T x, T z", "T y", "y = x * z", "recent_product")(
        a[:, ::2], a[:, :1]
    ),
    "stencil": recently_apart,
    "reduction": lambda a: fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "recent_total")(a, axis=0),
    "scan": lambda a: fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", "0", "recent_running")(a),
    "built in": lambda a: fusec.softmax(a, axis=1),
    "evaluate": lambda a: fusec.evaluate("sum(a * 2, axis=1)", {"a": a}),
}


@pytest.mark.parametrize("sort", ALL_SORTS)
@pytest.mark.parametrize("cache", ["0", "1"])
def test_machine_code_is_looked_for_once_whatever_the_shapes(sort, cache, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FUSEC_CACHE", cache)
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path))
    run = ALL_SORTS[sort]
    asked = []
    for owner, name in ((jit, "emit"), (jit, "load_object"), (cache_module.Cache, "get")):
        real = getattr(owner, name)
        monkeypatch.setattr(
            owner, name, lambda *args, real=real, name=name: asked.append((name, *map(str, args[:3]))) or real(*args)
        )
    for rows in range(4, 24):
        run(np.ones((rows, 2 * rows)))
    asked = [each for each in asked if each[2] != "definition"]
    assert len(asked) == len(set(asked))
    assert len(asked) < 12


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (-0.0, 0.0), (0j, complex(0.0, -0.0))])
def test_equal_numbers_of_other_bits_are_other_kernels(first, second) -> None:
    def made(k):
        return fusec.reduction(map=lambda x: x, combine=lambda a, b: a + b, finish=lambda a: 1 / (a * k), identity=0)

    x = np.ones(3)
    for k in (first, second, first):
        with np.errstate(all="ignore"):
            expected = np.asarray(1 / (np.float64(3) * k))
        np.testing.assert_array_equal(made(k)(x), expected)
