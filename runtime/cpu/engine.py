"""Kernels as executables: compiled or loaded from bytes, and run by the pool of threads."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cached_property

from fusec.base.kernel_abi import CodeStore, Kernel
from fusec.base.records import dataclass, field, replace
from fusec.runtime.cpu import jit, threads
from fusec.runtime.cpu.grain import SHARE, Grain, grain_of
from fusec.runtime.cpu.machine import thread_count
from fusec.runtime.cpu.processor import processor

_SERIAL = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class Executable:
    """A kernel in memory, for as long as the process lives.

    address: of ``void (i64 lo, i64 hi, ptr slots)``. object_bytes: what `load` takes. store: where code that serves
    all kernels (threads, calls) is kept. runner: address of what runs it by the pool in place of the pool's own
    ``void (ptr pool, ptr function, ptr slots, i64 size, ptr grain)``, 0 for that.
    """

    kernel: Kernel
    address: int
    object_bytes: bytes = field(repr=False)
    grain: Grain = field(repr=False)
    store: CodeStore | None = field(default=None, repr=False)
    runner: int = 0

    def run(self, slots: int, size: int) -> None:
        """Run all positions from 0 to `size`, without the interpreter lock; return when they are done.

        slots: address of the arguments, one int64 for each of `kernel.slots`; numbers lie in the low bytes.
        """
        if size > self.grain.serial_below:
            pool = threads.pool(self.store)
            if self.runner:
                threads.RUN(self.runner)(pool and pool.state_address, self.address, slots, size, self.grain.address)
                return
            if pool is not None:
                pool.run(self.address, slots, size, self.grain)
                return
        self._alone(0, size, slots)

    @cached_property
    def _alone(self) -> Callable[[int, int, int], None]:
        return _SERIAL(self.address)


def compile(kernel: Kernel, *, store: CodeStore | None = None) -> Executable:  # noqa: A001 - the word of the trade
    """The executable of a kernel for the LLVM target, from the store if it was compiled before."""
    assert kernel.target == "llvm", f"{kernel.name} is a kernel for {kernel.target}"
    return _executable(kernel, jit.compile_text(kernel.name, _text(kernel), store, _effort(kernel)), store)


def compile_object(kernel: Kernel) -> bytes:
    """The object of a kernel, which `load` turns into an executable, in this process or another."""
    assert kernel.target == "llvm", f"{kernel.name} is a kernel for {kernel.target}"
    return jit.emit(kernel.name, _text(kernel), _effort(kernel))


def load(kernel: Kernel, object_bytes: bytes, *, store: CodeStore | None = None) -> Executable:
    """The executable of a kernel compiled earlier; compiles it again if the object is for another target."""
    found = jit.load_object(kernel.name, _text(kernel), object_bytes, _effort(kernel))
    if found is None:
        return compile(kernel, store=store)
    return _executable(kernel, found, store)


def assembly(kernel: Kernel) -> str:
    """The assembly of a kernel for this machine."""
    return jit.assembly(kernel.name, _text(kernel), _effort(kernel))


def with_grain(executable: Executable, elements: int, together: int = 1) -> Executable:
    """The same executable, for positions that each stand for this many elements.

    together: positions that one thread should take at least, since they lie side by side.
    """
    return replace(executable, grain=grain_of(executable.kernel, elements, together))


def with_rows(executable: Executable, columns: int, size: int) -> Executable:
    """The same executable for rows of this many columns; a chunk is a number of columns.

    size: of the space; where it has too few rows for all threads, chunks are what they were.
    """
    together = executable.kernel.rows * columns
    if executable.kernel.rows == 1 or together * thread_count() * SHARE > size:
        return executable
    return with_grain(executable, 1, together)


def fingerprint() -> str:
    """Names the compiler and the processor. An object belongs to one fingerprint, which must be in its cache key."""
    return jit.target_id()


# Note [State of arithmetic]: a thread may round another way, or flush subnormal numbers to zero, as code built with
# -ffast-math makes the thread do that loads it. A kernel must not see it, so its entry looks at the state, some 4 ns,
# and where that is unusual sets the usual one meanwhile. 65472, or 0xFFC0: all of MXCSR but its flags. All of AArch64's
# FPCR is modes, 0 the usual ones; flags are in FPSR. Calls between two states are not inlined, since LLVM would be free
# to move arithmetic out of there. The text for AArch64 compiles, but has not yet run on such a processor.
_ENTRY_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @"{name}"(i64 %lo, i64 %hi, ptr %args) nounwind {{
  %before = alloca i32
  %usual = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %before)
  %state = load i32, ptr %before
  %mode = and i32 %state, 65472
  %plain = icmp eq i32 %mode, 8064
  br i1 %plain, label %as_is, label %changed
as_is:
  tail call void @"{name}.body"(i64 %lo, i64 %hi, ptr %args)
  ret void
changed:
  store i32 8064, ptr %usual
  call void @llvm.x86.sse.ldmxcsr(ptr %usual)
  call void @"{name}.body"(i64 %lo, i64 %hi, ptr %args) noinline
  call void @llvm.x86.sse.ldmxcsr(ptr %before)
  ret void
}}
"""


_ENTRY_AARCH64 = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define void @"{name}"(i64 %lo, i64 %hi, ptr %args) nounwind {{
  %before = call i64 @llvm.aarch64.get.fpcr()
  %plain = icmp eq i64 %before, 0
  br i1 %plain, label %as_is, label %changed
as_is:
  tail call void @"{name}.body"(i64 %lo, i64 %hi, ptr %args)
  ret void
changed:
  call void @llvm.aarch64.set.fpcr(i64 0)
  call void @"{name}.body"(i64 %lo, i64 %hi, ptr %args) noinline
  call void @llvm.aarch64.set.fpcr(i64 %before)
  ret void
}}
"""
ENTRIES = {"x86_64": _ENTRY_X86, "i686": _ENTRY_X86, "aarch64": _ENTRY_AARCH64, "arm64": _ENTRY_AARCH64}


def _text(kernel: Kernel) -> str:
    """The kernel's text, behind an entry that sees to the state of arithmetic where it is known how."""
    entry = ENTRIES.get(processor().architecture)
    return kernel.source if entry is None else guarded(kernel, entry)


def guarded(kernel: Kernel, entry: str) -> str:
    """The kernel's text, with an entry of its name."""
    head = re.compile(rf'^define void @"?{re.escape(kernel.name)}"?\(', re.MULTILINE)
    body, count = head.subn(lambda _: f'define internal void @"{kernel.name}.body"(', kernel.source)
    assert count == 1, f"{kernel.name} is defined once"
    return body + entry.format(name=kernel.name)


def _effort(kernel: Kernel) -> jit.Effort:
    """Vectors that the generator has written need no vectoriser; scalar loops get all that there is."""
    return "short" if kernel.lanes > 1 else "full"


def _executable(kernel: Kernel, found: jit.LoadedCode, store: CodeStore | None) -> Executable:
    return Executable(kernel, found.address, found.object_bytes, grain_of(kernel), store)
