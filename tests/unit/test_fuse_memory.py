"""Plans are data over slots; temporaries share an arena, which results never see."""

from __future__ import annotations

import copy
import gc
import math
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.fusion import fuse
from fusec.fusion.fused_plan import FusedPlan
from fusec.fusion.memory import host_memory
from fusec.fusion.memory.slots import SlotView


def six(x: Any) -> Any:
    for _ in range(6):
        x = np.exp(-x)[::-1] * 0.5  # only a view is read, so the exponential is stored
    return x


def parts(x: Any) -> Any:
    shifted = np.exp(x - x.sum())
    top, low = shifted[1:], shifted.max(axis=0)
    return top, shifted / low, low, shifted.T[::-1], (x.sum(axis=1), x[::2])


def written(x: Any) -> Any:
    y = np.sqrt(x)
    y[1:] = y[:-1] + 1
    y *= y.sum()
    return y


def inner(x: Any) -> Any:
    power = np.exp(x)[1:-1]
    total = power.sum(axis=0)
    return (np.log(power + total)[:, ::-1] - total[::-1]).sum()


FUNCTIONS = [six, parts, written, inner]


def plan_of(fused: Any) -> FusedPlan:
    ((plan,),) = fused._plans.values()
    return plan  # type: ignore[no-any-return]


def room(nbytes: int) -> int:
    return -(-nbytes // 64) * 64


def flattened(result: Any) -> list[Any]:
    return [each for part in result for each in flattened(part)] if isinstance(result, tuple) else [result]


def test_a_chain_of_kernels_holds_two_temporaries() -> None:
    fused, x = fusec.fuse(six), np.ones((30, 7))
    np.testing.assert_allclose(fused(x), six(x))
    plan = plan_of(fused)
    assert len(plan.steps) == 7
    assert plan.memory.arena_bytes == 2 * room(x.nbytes)


def test_temporaries_of_different_sizes_take_the_smallest_free_place() -> None:
    def function(x: Any) -> Any:
        large = np.exp(x)[::-1] + 1
        small = np.exp(large[0])[::-1] + 1
        return np.exp(np.exp(large)[::-1] + small)

    fused, x = fusec.fuse(function), np.linspace(0, 0.1, 70).reshape(10, 7)
    np.testing.assert_allclose(fused(x), function(x))
    assert plan_of(fused).memory.arena_bytes <= 2 * room(x.nbytes) + room(x[0].nbytes)


@pytest.mark.parametrize("kept", [0, 1 << 30], ids=["released", "kept"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.sampled(3)
def test_results_are_arrays_of_their_own(
    function: Callable[[Any], Any], kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_memory, "KEPT", kept)
    fused, rng, seen = fusec.fuse(function), np.random.default_rng(3), []
    for _ in range(4):
        x = rng.random((6, 6))
        found, wanted = flattened(fused(x)), flattened(function(x.copy()))
        seen.append((found, wanted, x))
    for found, wanted, _ in seen:
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    for at, (found, _, x) in enumerate(seen):
        for each in found:
            others = [other for later, _, y in seen[at + 1 :] for other in (*later, y)]
            assert not any(np.shares_memory(each, other) for other in others)
        assert not any(each is x for each in found)
    plan = plan_of(fused)
    arenas = [own[plan.memory.arena_slot] for own in plan.memory._spare if plan.memory.arena_slot is not None]
    assert len(arenas) == (kept > 0 and plan.memory.arena_slot is not None)
    assert not any(np.shares_memory(each, arena) for found, _, _ in seen for each in found for arena in arenas)


def test_the_peak_of_a_call() -> None:
    fused, x = fusec.fuse(six), np.ones(20_000)
    fused(x)
    fused(x)
    gc.collect()
    tracemalloc.start()
    try:
        result = fused(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= result.nbytes + 2 * x.nbytes + 8192
    assert plan_of(fused).memory._spare == []  # nothing of that size stays


def test_results_of_libraries_are_freed_after_their_last_reader() -> None:
    def function(x: Any) -> Any:
        for _ in range(5):
            x = np.exp(-x @ x)[::-1]
        return x + 1

    fused, x = fusec.fuse(function), np.full((100, 100), 0.1)
    wanted = function(x)
    for _ in range(2):  # at the second call, the kernels between two products become one sequence
        fused(x)
    tracemalloc.start()
    try:
        result = fused(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(result, wanted)
    assert peak <= 4 * x.nbytes + 8192  # a product, two temporaries; or a product and its operands


def test_plans_are_data() -> None:
    fused, x = fusec.fuse(parts), np.random.default_rng(3).random((6, 6))
    fused(x)
    plan = plan_of(fused)
    for step in plan.steps:
        assert all(type(slot) is int for slot in (*step.inputs, *step.outputs))
        assert all(type(view) is SlotView for _, view in step.views)
    assert plan.result.parts[0].view == SlotView(plan.result.parts[0].slot, 48, (5, 6), (48, 8), x.dtype)


LAYS: dict[str, Callable[[Any], Any]] = {
    "C": np.asarray,
    "F": np.asfortranarray,
    "permuted": lambda x: np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1),
    "sliced": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "reversed": lambda x: x[::-1, :, ::-1].copy()[::-1, :, ::-1],
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "read only": lambda x: np.broadcast_to(x, x.shape),
}


@pytest.mark.parametrize("lay", LAYS.values(), ids=LAYS)
def test_returned_views_are_views_of_the_argument(lay: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        return x[1:, ::-1], x.T, x[0], x[:, 1:2, None, 1], np.broadcast_to(x[0, 0], (2, 3)), x[5:], x, np.flip(x)

    fused = fusec.fuse(function)
    for _ in range(2):
        x = lay(np.arange(24.0).reshape(4, 2, 3) + 1)
        for one, other in zip(fused(x), function(x), strict=True):
            np.testing.assert_array_equal(one, other, strict=True)
            assert one.__array_interface__ == other.__array_interface__ or not one.size
            assert one.flags.writeable == other.flags.writeable
    kept = fused(lay(np.full((4, 2, 3), 7.0)))[0]
    gc.collect()
    assert (kept == 7).all()
    if x.flags.writeable:
        fused(x)[0][...] = 5
        assert (x[1:] == 5).all()


def test_an_exception_in_a_number_that_nothing_reads() -> None:
    def function(x: Any, n: int) -> Any:
        1 / n
        return x * n

    fused, x = fusec.fuse(function), np.ones(3)
    for n in (2, 3, 2):
        np.testing.assert_array_equal(fused(x, n), x * n)
    with pytest.raises(ZeroDivisionError):
        fused(x, 0)


def test_what_a_trace_holds_is_printed_without_a_look_at_memory() -> None:
    """A debugger prints local variables. The memory may be freed, be on a device, or have one element only."""
    held: list[Any] = []

    def views(x: Any) -> Any:
        y = x[::2].T
        z = y + 1
        held.extend(each._seen for each in (x, y, z, z.reshape(-1)[1:], z.T))
        return z

    fusec.fuse(views)(np.arange(12.0).reshape(4, 3))
    assert len(held) == 5
    for each in held:
        assert repr(each) == str(each)
        assert repr(each).startswith(f"<outline of an array of float64, shape {each.shape}, ")


def test_calls_at_the_same_time_have_arenas_of_their_own() -> None:
    fused, shape = fusec.fuse(parts), (7, 6)
    given = [np.random.default_rng(seed).random(shape) for seed in range(4)]
    wanted = [flattened(fused(x)) for x in given]
    wrong: list[int] = []

    def call(seed: int) -> None:
        for _ in range(60):
            found = flattened(fused(given[seed]))
            if not all(map(np.array_equal, found, wanted[seed])):
                wrong.append(seed)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert len(plan_of(fused).memory._spare) <= host_memory.MOST_KEPT


def test_a_call_that_fails_leaves_nothing_behind() -> None:
    def function(x: Any, y: Any) -> Any:
        power = np.exp(x)[::-1] + 1
        return np.linalg.inv(power @ y) + power[::-1]

    fused, x, rng = fusec.fuse(function), np.ones((3, 3)), np.random.default_rng(3)
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError):
            fused(x, np.zeros((3, 3)))
        given = rng.random((2, 3, 3))
        np.testing.assert_allclose(fused(*given), function(*given), rtol=1e-9)


def test_plans_for_other_extents_keep_no_array_alive() -> None:
    fused = fusec.fuse(lambda x, y: (x - x.max(), y[1:] * 2 + x[:-1]))
    for n in (5, 6, 7, 8):
        arrays = [np.ones(n), np.ones(n)]
        for _ in range(3):
            results = fused(*arrays)
        kept = [weakref.ref(each) for each in (*arrays, *results)]
        del arrays, results
        gc.collect()  # a trace may leave a circle of frames behind
        assert all(each() is None for each in kept)


def test_memory_is_flat_over_many_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse, "MAX_PLANS", 16)
    fused = fusec.fuse(lambda x: np.sqrt(x[1:] + x[:-1]) * x.shape[0])

    def held_after(start: int) -> int:
        for n in range(start, start + 50):
            fused(np.ones(n))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    held_after(2)
    tracemalloc.start()
    try:
        held = [held_after(start) for start in range(100, 500, 100)]
    finally:
        tracemalloc.stop()
    growth = [later - before for before, later in pairwise(held)]
    assert min(growth) < 1 << 16  # other tables fill up for a while
    assert len(fused._plans) <= 16


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factors = np.full(3, factor)

    @fusec.fuse
    def times(self, x: Any) -> Any:
        return self.factors * x


def test_memory_is_flat_over_many_objects() -> None:
    x, kept = np.ones(3), []
    for number in range(1000):
        scaled = Scaled(number)
        assert scaled.times(x)[0] == number
        kept.append(weakref.ref(scaled))
    del scaled
    assert not any(each() for each in kept)
    assert len(Scaled.times._plans) == 1


def test_many_written_arrays_are_compared_with_all_others_at_every_call():
    def add(arrays, others):
        for array, other in zip(arrays, others, strict=True):
            array += other

    fused = fusec.fuse(add)
    for shift in (0, 50, 25, 0, 290, 25, 0):
        memories = [np.arange(600.0), np.arange(600.0)]
        for call, memory in zip((add, fused), memories, strict=True):
            others = [memory[start : start + 50] for start in range(300, 600, 50)]
            others[2] = memory[400 - shift : 450 - shift]
            call([memory[start : start + 50] for start in range(0, 300, 50)], others)
        assert np.array_equal(*memories), shift


def bridged_sums(p, q, r):
    q += 1
    r += 1
    return p * 3


def bridged_products(p, q, r):
    p += 1
    r *= 2
    q += 1
    p -= 3
    return r + 0


OUTSIDE = np.zeros(5)


def bridged_outside(p, q, r):
    p += r * 0
    q *= 2
    return OUTSIDE + 1


@pytest.mark.parametrize("function", [bridged_sums, bridged_products, bridged_outside])
def test_arrays_apart_that_a_third_one_bridges(function):
    global OUTSIDE
    fused = fusec.fuse(function)
    for orders in ((0, 1, 2), (2, 0, 1), (0, 2, 1), (0, 1, 2)):
        rooms = np.arange(10.0), np.arange(10.0)
        results = []
        for run, room in zip((fused, function), rooms, strict=True):
            views = room[:5], room[5:], room[3:8]
            OUTSIDE = views[orders[2]]
            results.append(run(*(views[at] for at in orders)))
        np.testing.assert_array_equal(*results)
        np.testing.assert_array_equal(*rooms)


def test_frames_are_alike_if_their_numbers_have_the_same_bits() -> None:
    numbers: list[Any] = [
        0.0, -0.0, math.nan, 5.0, 0, False, None, 0j, complex(-0.0, 0.0), np.float32(0), np.float32(-0.0),
        np.float64(0), np.float32("nan"), np.zeros(1), -np.zeros(1), np.full(1, np.nan), np.zeros((1, 1)),
    ]  # fmt: skip
    for place, one in enumerate(numbers):
        for at, other in enumerate(copy.deepcopy(numbers)):
            ours, theirs = (host_memory.HostMemory(None, 0, [each], []) for each in (one, other))
            assert ours.is_like(theirs) == (place == at)
