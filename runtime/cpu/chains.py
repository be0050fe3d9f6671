"""Chained scans: the driver that puts their pieces together, over the pool of threads; see `chain_text`."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cached_property

from fusec.records import dataclass, field
from fusec.runtime.cpu import jit, threads
from fusec.runtime.cpu.chain_text import chain_text
from fusec.runtime.cpu.grain import Grain
from fusec.runtime.cpu.jit import Store
from fusec.runtime.cpu.processor import processor

_SERIAL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
CROWDED = 1.5  # runnable threads for each processor; a process that does nothing but scan makes it 1
_EACH = Grain(0, 1, 1, 1)  # threads take one block after the other


@dataclass(frozen=True)
class Driver:
    """The code for rows or for columns, for as long as the process lives. store: where the code of threads is kept."""

    address: int
    store: Store | None = field(default=None, repr=False)

    def run(self, job: int, blocks: int, *, shared: bool) -> None:
        """Run all blocks of a job, without the interpreter lock; returns when they are done. shared: by all threads."""
        pool = threads.pool(self.store) if shared else None
        if pool is None:
            self._alone(0, blocks, job)
        else:
            pool.run(self.address, job, blocks, _EACH)

    @cached_property
    def _alone(self) -> Callable[[int, int, int], None]:
        return _SERIAL(self.address)


def is_crowded() -> bool:
    """Whether more runs here than there are processors for.

    A thread that has to stop in the midst of a block makes all others wait, so that a chain takes several times as long
    as kernels whose threads do not wait for each other.
    """
    try:
        return os.getloadavg()[0] > CROWDED * (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows; a system that does not tell
        return False


def driver(*, of_rows: bool, store: Store | None) -> Driver:
    """The driver, compiled at most once in a process."""
    text = chain_text(processor().architecture, of_rows=of_rows)
    return Driver(jit.compile_text("chain", text, store, "short").address, store)
