"""Arrays between inaccessible pages, and calls in a child process: what goes astray is an error of the test."""

import ctypes
import mmap
import os
import tempfile
from collections.abc import Callable

import numpy as np

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """A copy of an array in shared memory, 16-byte aligned, that ends just before an inaccessible page.

    array: the view to read results from; it has the strides of the original as far as one block of memory can.
    """

    def __init__(self, original: np.ndarray) -> None:
        low, high = np.lib.array_utils.byte_bounds(original) if original.size else (0, 0)
        nbytes = max(high - low, 1)
        room = (nbytes + 15) // 16 * 16
        pages = (room + PAGE - 1) // PAGE
        self._memory = mmap.mmap(-1, (pages + 2) * PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        for edge in (base, base + (pages + 1) * PAGE):
            assert _libc.mprotect(edge, PAGE, 0) == 0, "mprotect failed"
        start = (pages + 1) * PAGE - room
        first = start + (original.__array_interface__["data"][0] - low if original.size else 0)
        self.array = np.ndarray(original.shape, original.dtype, self._memory, first, original.strides)
        if original.size:
            self.array[...] = original
        self.address = base + first


def in_child(work: Callable[[], None]) -> None:
    """Run `work` in a forked child, which shares the memory of Guarded arrays; AssertionError if it dies."""
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            os.dup2(log.fileno(), 2)
            code = 1
            try:
                work()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status:
            log.seek(0)
            said = log.read().decode(errors="replace")
            ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.WEXITSTATUS(status)}"
            raise AssertionError(f"the kernel ended with {ended}\n{said}")
