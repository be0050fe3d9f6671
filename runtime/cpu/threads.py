"""The pool of threads that run kernels: one per process, native, started by the first job large enough to share.

Workers never hold the interpreter lock, are detached, and sleep when idle. A forked child begins with none and starts
its own. Where POSIX threads are missing, kernels run on the calling thread.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

from fusec.base import locks
from fusec.base.kernel_abi import CodeStore
from fusec.runtime.cpu import jit
from fusec.runtime.cpu.grain import Grain
from fusec.runtime.cpu.machine import thread_count
from fusec.runtime.cpu.pool_text import RESET_BYTES, SPIN, STATE_BYTES, WORKERS, pool_text
from fusec.runtime.cpu.processor import processor

LINE = 64  # bytes of a cache line
SPINS = 10_000  # pauses before an idle worker sleeps, 0.1 to 0.5 ms

RUN = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_void_p)
"""What runs a kernel by the pool: the pool's state, the kernel, its slots, positions, grain."""


class ThreadPool:
    """The threads of this process; `run_address` and `state_address` let native code use them too."""

    def __init__(self, run_address: int, workers: int) -> None:
        self.run_address = run_address
        self._memory = ctypes.create_string_buffer(STATE_BYTES + LINE)
        self.state_address = -(-ctypes.addressof(self._memory) // LINE) * LINE
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._memory))  # workers look at it until the process is gone
        self._word(WORKERS).value = workers
        self._word(SPIN).value = SPINS
        self._run = RUN(run_address)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_workers)

    def run(self, address: int, slots: int, size: int, grain: Grain) -> None:
        """Run ``void (lo, hi, slots)`` over 0 to `size` in chunks; on one thread if another caller uses the pool."""
        self._run(self.state_address, address, slots, size, grain.address)

    def _word(self, offset: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self.state_address + offset)

    def _forget_workers(self) -> None:
        """In a child process: the parent's threads are not here, and a job that one of them ran never ends."""
        ctypes.memset(self.state_address, 0, RESET_BYTES)


_pools: list[ThreadPool] = []  # none or one


def pool(store: CodeStore | None = None) -> ThreadPool | None:
    """The pool of this process, None if kernels run on one thread; `store` holds its code."""
    if _pools:
        return _pools[0]
    if thread_count() == 1 or not is_supported():
        return None
    code = jit.compile_text("run", pool_text(processor().architecture), store, "least")
    with locks.lock:
        if not _pools:
            _pools.append(ThreadPool(code.address, thread_count() - 1))
        return _pools[0]


@cache
def is_supported() -> bool:
    """True where the process has POSIX threads to call."""
    try:
        process = ctypes.CDLL(None)
        return all(hasattr(process, name) for name in ("pthread_create", "pthread_cond_wait", "sched_yield"))
    except (OSError, TypeError):  # Windows has no handle of the process itself
        return False
