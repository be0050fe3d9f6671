"""The CPU runtime compiles once, runs every position exactly once, whatever threads and forks do, and ends cleanly."""

import ctypes
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fusec.base.dtypes import INT64
from fusec.base.kernel_abi import Kernel, Layout, Slot, Step
from fusec.compiler.disk_cache import pack_kernel, unpack_kernel
from fusec.errors import FusecError
from fusec.runtime.cpu import engine, grain, jit, machine, threads
from fusec.runtime.cpu.processor import processor

needs_pool = pytest.mark.skipif(not threads.is_supported(), reason="needs POSIX threads")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

COUNT = """\
; adds one to every element, so that a position left out or run twice shows
define void @count(i64 %lo, i64 %hi, ptr %slots) {
entry:
  %x.at = getelementptr i64, ptr %slots, i64 1
  %x = load ptr, ptr %x.at
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %body ]
  %more = icmp slt i64 %i, %hi
  br i1 %more, label %body, label %out
body:
  %at = getelementptr i64, ptr %x, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %i.next = add i64 %i, 1
  br label %loop
out:
  ret void
}
"""
SLOTS = (Slot("size", "", 0, INT64), Slot("pointer", "x", 0, INT64))
KERNEL = Kernel("count", "llvm", SLOTS, COUNT, Layout(1, (("x", (Step.UNIT,)),), aligned=8))


def run_script(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python text in a fresh process that knows COUNT and KERNEL; fail if it hangs."""
    start = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_cpu_runtime import *\n"
    return subprocess.run(
        [sys.executable, "-c", start + text],
        env=os.environ | {"FUSEC_NUM_THREADS": "4"} | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


class Counters:
    """An array and the slots to run COUNT over it."""

    def __init__(self, size: int) -> None:
        self.array = np.zeros(size, np.int64)
        self.block = (ctypes.c_int64 * 2)(size, self.array.ctypes.data)

    def run(self, executable: engine.Executable) -> None:
        executable.run(ctypes.addressof(self.block), len(self.array))


def eager(executable: engine.Executable) -> engine.Executable:
    """The same, but shared among threads however small the work."""
    return replace(executable, grain=grain.Grain(serial_below=0, least=64, most=256, share=4))


# --- compiling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 100_000])
def test_every_position_runs_exactly_once(size: int) -> None:
    counters = Counters(size)
    executable = engine.compile(KERNEL)
    for run in (executable, eager(executable)):
        counters.run(run)
    assert (counters.array == 2).all()


class CountingStore:
    """A store in memory that counts its calls."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        self.hits = 0

    def get(self, kind: str, key: str) -> bytes | None:
        self.hits += (kind, key) in self.kept
        return self.kept.get((kind, key))

    def put(self, kind: str, key: str, payload: bytes, label: str = "") -> None:
        self.kept[kind, key] = payload


def variant(number: int) -> Kernel:
    """A kernel whose text no other test compiles."""
    return replace(KERNEL, source=f"{COUNT}; variant {number}")


def test_threads_that_want_the_same_kernel_get_one_compilation() -> None:
    store = CountingStore()
    found: list[int] = []
    workers = [
        threading.Thread(target=lambda: found.append(engine.compile(variant(1), store=store).address)) for _ in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(found)) == 1
    assert len(found) == 8
    assert len(store.kept) == 1


def test_kernels_of_the_same_name_do_not_meet() -> None:
    twice = replace(KERNEL, source=COUNT.replace("add i64 %old, 1", "add i64 %old, 2"))
    counters = Counters(10)
    for kernel in (KERNEL, twice, KERNEL):
        counters.run(engine.compile(kernel))
    assert (counters.array == 4).all()


def test_an_object_from_the_store_runs_in_a_new_process(tmp_path: Path) -> None:
    script = (
        "from fusec.compiler.disk_cache import Cache; store = Cache(Path(os.environ['STORE']))\n"
        "jit.emit = None if os.environ['HIT'] == '1' else jit.emit\n"
        "counters = Counters(1000); counters.run(engine.compile(KERNEL, store=store)); print(counters.array.sum())"
    )
    for hit in ("0", "1"):
        done = run_script(script, STORE=str(tmp_path), HIT=hit)
        assert done.stdout.strip() == "1000", done.stderr


def test_a_packed_kernel_loads_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = variant(2)
    record = pack_kernel(kernel, engine.compile_object(kernel))
    unpacked = unpack_kernel(record)
    assert unpacked is not None
    monkeypatch.setattr(jit, "emit", None)
    counters = Counters(100)
    counters.run(engine.load(*unpacked))
    assert (counters.array == 1).all()


def test_an_object_of_another_kernel_is_compiled_again() -> None:
    counters = Counters(100)
    counters.run(engine.load(variant(3), engine.compile_object(variant(4))))
    assert (counters.array == 1).all()


@pytest.mark.parametrize("text", ["nonsense", "define void @other() { ret void }", COUNT.replace("ptr %x", "i64 %x")])
def test_a_bad_module_is_an_assertion_not_a_crash(text: str) -> None:
    with pytest.raises(AssertionError, match="count"):
        engine.compile(replace(KERNEL, source=text))


def test_helper_functions_and_globals_of_kernels_do_not_clash() -> None:
    for number in (5, 6):
        text = f"@table = global i64 {number}\n" + COUNT.replace(
            "%new = add i64 %old, 1", "%one = load i64, ptr @table\n  %new = add i64 %old, %one"
        )
        counters = Counters(3)
        counters.run(engine.compile(replace(KERNEL, source=text)))
        assert (counters.array == number).all()


def test_assembly_shows_the_kernel() -> None:
    text = engine.assembly(KERNEL)
    assert "count" in text
    assert "ret" in text


def test_the_processor_can_be_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSEC_CPU", "native")
    native = engine.fingerprint()
    monkeypatch.setenv("FUSEC_CPU", "generic")
    assert processor().vector_bits == 128
    assert engine.fingerprint() != native
    counters = Counters(1000)
    counters.run(engine.compile(KERNEL))
    assert (counters.array == 1).all()
    assert "zmm" not in engine.assembly(KERNEL)
    monkeypatch.setenv("FUSEC_CPU", "z80")
    with pytest.raises(FusecError, match="FUSEC_CPU is 'z80'"):
        processor()


def test_a_machine_without_a_jit_says_what_to_do() -> None:
    done = run_script("sys.modules['llvmlite'] = None; engine.compile(KERNEL)")
    assert "pip install 'llvmlite" in done.stderr
    assert "[F301]" in done.stderr
    forbid = (
        "import llvmlite.binding as llvm\ndef refuse(): raise OSError('policy')\nllvm.check_jit_execution = refuse\n"
    )
    done = run_script(forbid + "engine.compile(KERNEL)")
    assert "policy [F302]" in done.stderr


def test_importing_the_runtime_does_not_import_the_jit() -> None:
    done = run_script("print('llvmlite' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


# --- threads ---------------------------------------------------------------------------------------------------------


@needs_pool
def test_a_hundred_thousand_tiny_jobs_from_eight_threads_and_a_fork_between() -> None:
    done = run_script(STRESS.format(jobs=12_500, workers=8))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["child", "0", "parent", "0"], done.stdout


STRESS = """
run = eager(engine.compile(KERNEL))
sizes = [1, 64, 100, 640, 1000, 3000]
wrong = []
def work(seed, jobs):
    mine = [Counters(size) for size in sizes]
    for number in range(jobs):
        mine[(number * 7 + seed) % len(sizes)].run(run)
        if number == jobs // 2 and seed == 0 and hasattr(os, "fork"):
            fork()
    total = sum(each.array[0] for each in mine)
    if total != jobs or any((each.array != each.array[0]).any() for each in mine):
        wrong.append(seed)
def fork():
    child = os.fork()
    if child == 0:
        for seed in range(2):
            work(seed + 1, 200)
        print("child", len(wrong), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
if not hasattr(os, "fork"):
    print("child 0")
workers = [threading.Thread(target=work, args=(seed, {jobs})) for seed in range({workers})]
for worker in workers: worker.start()
for worker in workers: worker.join()
print("parent", len(wrong))
"""


@needs_pool
@needs_fork
def test_a_child_starts_threads_of_its_own() -> None:
    script = """
def threads_alive():
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 4
def many():
    for _ in range(50):
        Counters(100_000).run(run)
run = eager(engine.compile(KERNEL))
many()
assert threads_alive() >= 4
child = os.fork()
if child == 0:
    before = threads_alive()
    counters = Counters(100_000); counters.run(run)
    good = (counters.array == 1).all() and threads_alive() >= before + (3 if before == 1 else 0)
    os._exit(0 if good else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run_script(script)
    assert done.stdout.strip() == "0", done.stderr


@needs_pool
@pytest.mark.parametrize("ending", ["", "os._exit(0)", "sys.exit(0)", "import gc; del run; gc.collect()"])
def test_the_process_ends_cleanly_with_idle_workers(ending: str) -> None:
    done = run_script(f"run = eager(engine.compile(KERNEL))\nfor _ in range(20): Counters(5000).run(run)\n{ending}\n")
    assert (done.returncode, done.stderr) == (0, "")


@needs_pool
def test_kernels_run_without_the_interpreter_lock() -> None:
    """A kernel that waits for a value that only another Python thread can write ends."""
    text = """\
define void @wait(i64 %lo, i64 %hi, ptr %slots) {
entry:
  %x.at = getelementptr i64, ptr %slots, i64 1
  %x = load ptr, ptr %x.at
  br label %loop
loop:
  %flag = load atomic i64, ptr %x seq_cst, align 8
  %go = icmp ne i64 %flag, 0
  br i1 %go, label %out, label %loop
out:
  ret void
}
"""
    counters = Counters(1)
    executable = engine.compile(replace(KERNEL, name="wait", source=text))
    for run in (executable, eager(executable)):
        counters.array[0] = 0
        waiter = threading.Thread(target=counters.run, args=(run,))
        waiter.start()
        counters.array[0] = 1
        waiter.join(30)
        assert not waiter.is_alive()


def test_the_number_of_threads_can_be_set() -> None:
    done = run_script("print(machine.thread_count(), threads.pool() is None)", FUSEC_NUM_THREADS="1")
    assert done.stdout.split() == ["1", "True"], done.stderr
    for wrong in ("0", "-1", "many"):
        done = run_script("machine.thread_count()", FUSEC_NUM_THREADS=wrong)
        assert f"FUSEC_NUM_THREADS is '{wrong}'" in done.stderr


# --- how work is divided ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [1, 10, 100, 10_000, 10_000_000])
@pytest.mark.parametrize("lanes", [1, 8, 64])
def test_chunks_are_whole_units_and_bounded(cost: int, lanes: int) -> None:
    found = grain.grain_of(replace(KERNEL, cost=cost, lanes=lanes))
    assert 0 < found.least <= found.most
    assert found.least % grain.UNIT == found.most % grain.UNIT == 0
    assert found.most <= max(grain.MOST_ELEMENTS, found.least)
    assert list((ctypes.c_int64 * 5).from_address(found.address)) == [
        found.serial_below,
        found.least,
        found.most,
        found.share,
        found.unit,
    ]


@needs_pool
def test_few_heavy_positions_are_divided_evenly() -> None:
    """Of 1221 positions of 8192 elements, as 10 million make, no thread of 16 waits long for another."""
    done = run_script(
        """
mark = "define void @mark(i64 %lo, i64 %hi, ptr %slots) {" + COUNT.partition("{")[2]
mark = mark.replace("%new = add i64 %old, 1", "%new = sub i64 %hi, %lo")
run = engine.with_grain(engine.compile(replace(KERNEL, name="mark", source=mark, cost=34)), 8192)
counters = Counters(1221)
counters.run(run)
print(1221 / counters.array.max() >= 16 * 8)
""",
        FUSEC_NUM_THREADS="16",
    )
    assert done.stdout == "True\n", done.stderr


def test_costlier_kernels_are_divided_finer() -> None:
    grains = [grain.grain_of(replace(KERNEL, cost=cost)) for cost in (1, 10, 100, 1000)]
    assert [each.serial_below for each in grains] == sorted((each.serial_below for each in grains), reverse=True)
    assert [each.least for each in grains] == sorted((each.least for each in grains), reverse=True)


def test_the_machine_is_described_in_sane_numbers() -> None:
    assert 256 << 10 <= machine.last_level_cache_bytes() <= 4 << 30
    assert 1 <= machine.thread_count() <= machine.MOST_THREADS
    assert machine.memory_bytes() > 64 << 20


def test_nothing_is_disposed_of_as_python_ends(monkeypatch):
    """The engine of a first call in an atexit handler was, too late for llvmlite, which left a traceback."""
    made, disposed = jit.TargetMachine(processor()), []
    for each in (made._engine, made.target, made.quick_target):
        monkeypatch.setattr(type(each), "_dispose", disposed.append)
        each.__del__()
    assert not disposed
