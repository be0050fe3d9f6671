"""Memory for outputs is aligned and never shared by two arrays that are alive, however it was freed."""

import contextlib
import gc
import itertools
import random
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusec
from fusec.runtime.cpu import memory, processor

SIZES = [0, 1, 1000, 10_000, 100_000, memory.LARGE // 8, 1_500_000]
FLOAT64 = np.dtype(np.float64)


@pytest.fixture(autouse=True)
def _fresh_pool() -> Iterator[None]:
    memory.pool_clear()
    yield
    memory.pool_clear()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("make", [memory.empty, memory.zeros])
def test_arrays_are_what_was_asked_for(size: int, make: type) -> None:
    array = make((size,), FLOAT64)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype, array.flags.c_contiguous, array.flags.writeable) == ((size,), FLOAT64, True, True)
    if array.nbytes >= memory.SMALL:
        assert array.ctypes.data % memory.ALIGNMENT == 0
    array[...] = 1
    assert (array == 1).all()


@pytest.mark.parametrize("size", SIZES)
def test_zeros_are_zero_even_in_memory_used_before(size: int) -> None:
    for _ in range(3):
        array = memory.zeros((size,), FLOAT64)
        assert not array.any()
        array[...] = np.nan
        del array


@pytest.mark.parametrize("scale", [1, 40])
@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_axes_lie_in_the_order_asked_for(axes: tuple[int, ...], scale: int) -> None:
    shape = (2 * scale, 3 * scale, 5 * scale)
    array = memory.empty(shape, FLOAT64, axes)
    assert array.shape == shape
    assert array.transpose(axes).flags.c_contiguous


@pytest.mark.parametrize("make", [memory.empty, memory.zeros])
@pytest.mark.parametrize("shape", [(1 << 50,), (1 << 62,), (1 << 80,), (1 << 40, 1 << 40), (0, 1 << 70)])
def test_what_no_machine_holds_is_a_memory_error(shape: tuple[int, ...], make: type) -> None:
    for axes in (None, tuple(reversed(range(len(shape))))):
        with pytest.raises(MemoryError):
            make(shape, FLOAT64, axes)


def test_no_memory_for_a_compilation_is_an_error_and_not_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(nbytes: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    kernel = fusec.ElementwiseKernel("float64 x", "float64 y", "y = x * 1.2345 + 6.789", "unheard_of")
    x = np.ones(3)
    with monkeypatch.context() as patched:
        patched.setattr(memory, "_pages", refuse)
        with pytest.raises(MemoryError, match=r"no memory (to compile|for the code of) unheard_of"):
            kernel(x)
        with pytest.raises(MemoryError, match="not enough memory in fused function 'unheard_of_too'"):
            fusec.fuse(lambda x: x * 1.2345 + 6.789, name="unheard_of_too")(x)
    np.testing.assert_array_equal(kernel(x), x * 1.2345 + 6.789)


def test_no_memory_to_load_llvm_is_told_from_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(nbytes: int) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    with pytest.raises(fusec.FusecRuntimeError, match="llvmlite"):
        processor._processor("unheard of")
    monkeypatch.setattr(memory, "_pages", refuse)
    with pytest.raises(MemoryError, match="no memory to load LLVM"):
        processor._processor("unheard of")


def test_memory_nobody_refers_to_is_used_again() -> None:
    first = memory.empty((200_000,), FLOAT64)
    address = first.ctypes.data
    del first
    assert memory.empty((199_000,), FLOAT64).ctypes.data == address, "the same size class"


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[5:],
        lambda array: array.reshape(100, -1).T[3],
        lambda array: array.view(np.int32)[::2],
        memoryview,
        lambda array: np.frombuffer(array.data, np.uint8),
        lambda array: np.asarray(array[::-1]).view(np.matrix),
        lambda array: np.lib.stride_tricks.sliding_window_view(array, 3)[7],
        lambda array: np.from_dlpack(array),
        lambda array: iter(array.reshape(2, -1)),
        lambda array: array.base,
    ],
)
def test_any_view_keeps_memory_from_reuse(view: type) -> None:
    array = memory.empty((200_000,), FLOAT64)
    address = array.ctypes.data
    kept = view(array)
    del array
    assert memory.empty((200_000,), FLOAT64).ctypes.data != address
    idle = memory.pool_info().idle_regions
    del kept
    assert memory.pool_info().idle_regions == idle + 1


@given(st.randoms(use_true_random=False))
def test_living_arrays_never_share_memory(rng: random.Random) -> None:
    living: list[np.ndarray] = []
    for mark in range(40):
        if living and rng.random() < 0.4:
            living.pop(rng.randrange(len(living)))
        array = memory.empty((rng.choice([40_000, 41_000, 90_000]),), FLOAT64)
        array[...] = mark
        living.append(array[rng.randrange(100) :] if rng.random() < 0.5 else array)
    assert all((array == array[0]).all() for array in living)
    assert len({array[0] for array in living}) == len(living)


def test_arrays_in_cycles_come_back_too() -> None:
    cycle: list[object] = [memory.empty((200_000,), FLOAT64)]
    cycle.append(cycle)
    idle = memory.pool_info().idle_regions
    del cycle
    gc.collect()
    assert memory.pool_info().idle_regions == idle + 1


def test_threads_share_the_pool() -> None:
    wrong: list[int] = []

    def work(mark: int) -> None:
        for size in range(40_000, 45_000, 100):
            array = memory.empty((size,), FLOAT64)
            array[...] = mark
            if (array != mark).any():
                wrong.append(mark)

    workers = [threading.Thread(target=work, args=(mark,)) for mark in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []
    info = memory.pool_info()
    assert info.reused > info.fresh - 8


def test_idle_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory._pool, "bound", 3 << 20)
    arrays = [memory.empty((1 << 17,), FLOAT64) for _ in range(8)]
    assert memory.pool_info().idle_bytes == 0
    arrays.clear()
    assert 2 << 20 <= memory.pool_info().idle_bytes <= 3 << 20
    del arrays
    memory.pool_clear()
    assert memory.pool_info().idle_bytes == memory.pool_info().idle_regions == 0


def test_idle_memory_ages(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.empty((1 << 17,), FLOAT64)
    assert memory.pool_info().idle_regions == 1
    now = memory.time.monotonic()
    monkeypatch.setattr(memory.time, "monotonic", lambda: now + memory.IDLE_SECONDS + 2)
    assert memory.pool_info().idle_regions == 0


def test_the_process_ends_cleanly_with_outputs_alive_anywhere() -> None:
    script = """
import builtins, sys, threading, numpy as np
from fusec.runtime.cpu import memory
kept = [memory.empty((100_000,), np.dtype("f8")) for _ in range(5)]
builtins.kept = kept.pop()
sys.kept = kept.pop()
threading.kept = kept.pop()[3:]
cycle = [kept.pop()]; cycle.append(cycle)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@given(st.integers(memory.LARGE, 1 << 40))
def test_size_classes_waste_little(nbytes: int) -> None:
    size = memory.size_class(nbytes)
    assert nbytes <= size <= nbytes * 9 / 8 + 4096
    assert memory.size_class(size) == size


class Interrupted:
    """A lock that an interrupt leaves locked when it is taken by hand; `with` is safe from that."""

    def __init__(self) -> None:
        self.inner = threading.Lock()
        self.locked = self.inner.locked

    def acquire(self, blocking: bool = True) -> None:
        self.inner.acquire(blocking)
        raise KeyboardInterrupt

    def __enter__(self) -> bool:
        return self.inner.__enter__()

    def __exit__(self, *problem: object) -> None:
        self.inner.release()


def test_an_interrupt_while_memory_comes_back_leaves_no_lock_locked() -> None:
    pool = memory.RegionPool(1 << 30)
    pool.lock = Interrupted()
    region = memory._Region(memory.HUGE)
    with contextlib.suppress(KeyboardInterrupt):
        pool.give_back(region)
    assert not pool.lock.locked()
    assert pool.take(memory.HUGE, zeroed=False).region is region
