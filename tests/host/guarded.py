"""Arrays between inaccessible pages, and calls in a child process: what goes astray is an error of the test."""

import ctypes
import mmap
import os
import tempfile
import traceback
from collections.abc import Callable

import numpy as np

PAGE = mmap.PAGESIZE
EDGE = 16 * PAGE  # far strays are blamed on the right array
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class KernelFault(AssertionError):
    """A kernel did what it must not; the text says what, and where."""


class Guarded:
    """A copy of an array in shared memory, aligned to 16 bytes or fewer, that ends just before inaccessible pages.

    array: the view to read results from; it has the strides of the original as far as one block of memory can.
    start, nbytes: the array's memory. low, high: addresses around it that hold nothing else.
    poison: fill with this byte instead of copying.
    """

    def __init__(self, original: np.ndarray, poison: int | None = None, aligned: int = 16) -> None:
        low, high = np.lib.array_utils.byte_bounds(original) if original.size else (0, 0)
        self.nbytes = high - low
        room = -(-max(self.nbytes, 1) // aligned) * aligned
        inside = (room + PAGE - 1) // PAGE * PAGE
        self._memory = mmap.mmap(-1, inside + 2 * EDGE)
        self.low = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self.high = self.low + inside + 2 * EDGE
        for edge in (self.low, self.high - EDGE):
            assert _libc.mprotect(edge, EDGE, 0) == 0, "mprotect failed"
        offset = EDGE + inside - room
        self.start = self.low + offset
        first = offset + (original.__array_interface__["data"][0] - low if original.size else 0)
        self.array = np.ndarray(original.shape, original.dtype, self._memory, first, original.strides)
        if poison is not None:
            ctypes.memset(self.start, poison, self.nbytes)
        elif original.size:
            self.array[...] = original
        self.address = self.low + first


def in_child(work: Callable[[], None]) -> None:
    """Run `work` in a forked child, which shares the memory of Guarded arrays; KernelFault if it dies.

    If `work` raises KernelFault, that is the fault, with its text.
    """
    with tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            os.dup2(log.fileno(), 2)
            code = 1
            try:
                work()
                code = 0
            except KernelFault as fault:
                os.write(2, str(fault).encode())
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        if status:
            log.seek(0)
            said = log.read().decode(errors="replace")
            ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"code {os.WEXITSTATUS(status)}"
            raise KernelFault(said or f"the kernel ended with {ended}")
