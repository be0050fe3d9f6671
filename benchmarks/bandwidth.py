"""How fast this machine moves memory at the moment: the bound against which every cell is reported."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

ARRAYS = {"copy": 2, "triad": 3}  # arrays that cross the memory bus, counted without the read for ownership
Move = Callable[[np.ndarray, np.ndarray, np.ndarray], Callable[[], object]]  # what to call for these arrays


def aligned(n: int) -> np.ndarray:
    """A float32 array of ones that starts on a cache line."""
    raw = np.empty(4 * n + 64, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + 4 * n].view(np.float32)
    array[:] = 1
    return array


class Bandwidth:
    """Measures bytes per second of copy or triad; `source` says by what means."""

    def __init__(self, threads: int) -> None:
        library = compiled()
        self.source = "NumPy, one thread" if library is None else "C"
        self.moves: dict[str, list[Move]] = {}
        for kind in ARRAYS:
            if library is None:
                self.moves[kind] = [numpy_copy if kind == "copy" else numpy_triad]
            else:
                names = [kind, f"{kind}_streaming"]
                known = [name for name in names if hasattr(library, name)]
                self.moves[kind] = [bound(library, name, count) for name in known for count in sorted({1, threads})]

    def measure(self, n: int, kind: str, seconds: float = 0.1) -> float:
        """The best bytes per second seen within about `seconds`, over arrays of n float32."""
        n = max(1024, n // 16 * 16)
        x, y, z = aligned(n), aligned(n), aligned(n)
        best, batch = float("inf"), max(1, 1_000_000 // n)
        for move in self.moves[kind]:
            call = move(z, x, y)
            call()
            end = time.perf_counter() + seconds / len(self.moves[kind])
            while True:
                start = time.perf_counter()
                for _ in range(batch):
                    call()
                best = min(best, (time.perf_counter() - start) / batch)
                if time.perf_counter() > end:
                    break
        return ARRAYS[kind] * 4 * n / best


def bound(library: ctypes.CDLL, name: str, threads: int) -> Move:
    """A function of stream.c with its number of threads fixed."""
    function = getattr(library, name)
    function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int64, ctypes.c_int]
    return lambda z, x, y: partial(function, z.ctypes.data, x.ctypes.data, y.ctypes.data, z.size, threads)


def numpy_copy(z: np.ndarray, x: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """The copy without a C compiler."""
    return partial(np.copyto, z, x)


def numpy_triad(z: np.ndarray, x: np.ndarray, y: np.ndarray) -> Callable[[], object]:
    """The nearest thing to a triad that NumPy does in one pass."""
    return partial(np.add, x, y, z)


def compiled() -> ctypes.CDLL | None:
    """stream.c as a shared library, or None without a C compiler that knows OpenMP."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "stream.so"
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
        source = Path(__file__).with_name("stream.c")
        done = subprocess.run([compiler, *flags, str(source), "-o", str(library)], capture_output=True, check=False)
        return ctypes.CDLL(str(library)) if done.returncode == 0 else None
