"""A child of a process works, whatever the other threads of that process were doing when it was forked."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PROLOGUE = """
import faulthandler, os, threading
import numpy as np
import fusec
DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "c8", "c16", "?")
def in_child(work):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(10, exit=True)
        try:
            work()
        finally:
            os._exit(0)
    if os.waitpid(child, 0)[1]:
        print("the child hangs", flush=True)
        os._exit(1)
def define(number, name):
    return fusec.ElementwiseKernel("T x", "T z", f"z = x * T({number % 100})" + "+ x" * (number // 100), name)
"""

NEW_KERNELS = """
def compile_on():
    number = 0
    while True:
        number += 1
        define(number, "parent")(np.ones(3))
threading.Thread(target=compile_on, daemon=True).start()
for number in range(12):
    in_child(lambda: define(number, "child")(np.ones(3)))
os._exit(0)
"""

ONE_KERNEL = """
kernel = define(0, "shared")
def call(shape):
    for dtype in DTYPES:
        for _ in range(3):  # the later calls make native entries
            kernel(np.ones(shape, dtype))
def compile_on():
    global kernel
    number = 0
    while True:
        number += 1
        kernel = define(number, "shared")
        call(4)
threading.Thread(target=compile_on, daemon=True).start()
for number in range(4):
    in_child(lambda: call((2, 3)[: number % 2 + 1]))
os._exit(0)
"""


@pytest.mark.parametrize("script", [NEW_KERNELS, ONE_KERNEL], ids=["new kernels", "one kernel"])
def test_a_child_compiles_though_the_parent_did(script: str, tmp_path: Path) -> None:
    environment = {**os.environ, "FUSEC_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROLOGUE + script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr


@pytest.mark.parametrize("module", ["fusec.base.locks", "fusec.runtime.cpu.memory"])
def test_a_fork_that_began_before_an_import_releases_nothing(module: str) -> None:
    script = f"""
import importlib, os
os.register_at_fork(before=lambda: importlib.import_module({module!r}))
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_child_allocates_though_another_thread_was_in_the_pool() -> None:
    script = """
import os, signal, threading
import numpy as np
from fusec.runtime.cpu import memory
held, forked = threading.Event(), threading.Event()
def hold():
    with memory._pool.lock:
        held.set()
        forked.wait(5)
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(5)
    memory.empty((10**6,), np.dtype("f8"))[...] = 1
    os._exit(0)
forked.set()
raise SystemExit(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_a_child_computes_what_another_thread_had_begun_to_compute() -> None:
    script = """
import os, signal, threading
import numpy as np
import fusec.xp as xp
from fusec.xp.claims import Owner
x = xp.asarray(np.ones(3)) + 1
held, forked = threading.Event(), threading.Event()
def hold():
    owner = Owner()
    x._tape.frozen(owner)
    held.set()
    forked.wait(20)
    x._tape.release(owner)
threading.Thread(target=hold).start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(x.tolist() != [2, 2, 2])
status = os.waitpid(child, 0)[1]
forked.set()
raise SystemExit(status or x.tolist() != [2, 2, 2])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_llvm_is_entered_under_the_lock_only_by_the_ends_of_its_objects_too() -> None:
    script = """
import gc
import numpy as np
from llvmlite.binding import ffi
import fusec
from fusec.base import locks as forking
from fusec.runtime.cpu import jit
owned = []
ffi.register_lock_callback(lambda: owned.append(forking.llvm._is_owned()), lambda: None)
kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y", "k")
for shape in ((3,), (300_000,), (300, 400)):
    for _ in range(3):
        kernel(np.ones(shape), np.ones(shape[::-1]).T)
kernel.source("asm")
for make in (jit.emit, jit.assembly):
    make("f", "define void @f() { ret void }")
gc.collect()
print(len(owned) > 100, all(owned))
"""
    environment = {**os.environ, "FUSEC_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, timeout=100)
    assert done.stdout.split()[:2] == ["True", "True"], done.stderr
