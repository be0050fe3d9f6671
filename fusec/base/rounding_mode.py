"""The default floating-point modes for everything that makes kernels, whatever the modes of the calling thread.

Note [Modes]: rounding and the flushing of subnormals are modes of a thread. Python's numbers, NumPy's conversions and
LLVM's parsing follow them, so a text compiled while a library rounds down would have other constants, and the disk
cache would keep them for processes that round to nearest. Texts are therefore read, folded, generated and compiled
under `default_rounding`, a few us; calls of compiled kernels do not come here, their machine code guards itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

ROOM = 1024  # bytes, above every fenv_t


@contextmanager
def default_rounding() -> Iterator[None]:
    """Round to nearest and keep subnormal numbers until the block ends or raises; also a decorator.

    Does nothing where the C library's floating-point environment is not known.
    """
    enter = _enter()
    if enter is None:
        yield
        return
    leave = enter()
    try:
        yield
    finally:
        leave()


@lru_cache(maxsize=1)
def _enter() -> Callable[[], Callable[[], object]] | None:
    """What sets the usual modes of this thread and returns what sets those from before."""
    mac = sys.platform == "darwin"
    known = sys.platform == "linux" and os.uname().machine in ("x86_64", "aarch64")  # glibc's and musl's FE_DFL_ENV: -1
    if not (mac or known):
        return None
    import ctypes  # NumPy imports it too, but `import fusec` shall not

    try:
        library = ctypes.CDLL(None)
        read, write = library.fegetenv, library.fesetenv
        default = ctypes.c_void_p(-1)
        if mac:
            default = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, "_FE_DFL_ENV")))
    except (AttributeError, OSError, ValueError):
        return None

    def enter() -> Callable[[], object]:
        before = ctypes.create_string_buffer(ROOM)
        if read(before) != 0:
            return lambda: None
        write(default)
        return lambda: write(before)

    return enter
