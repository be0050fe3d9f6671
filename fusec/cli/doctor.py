"""The findings of `fusec doctor`: versions, processor, threads, cache, GPUs, and whether a kernel runs."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import BuiltinFunctionType
from typing import NamedTuple

import numpy as np

from fusec.base.diagnostics import counted
from fusec.errors.base import FusecError
from fusec.version import VERSION


class Finding(NamedTuple):
    """One line of the report; a fault keeps kernels from running on the CPU."""

    topic: str
    text: str
    is_fault: bool = False


def examine() -> list[Finding]:
    """All findings, in the order of the report. Compiles and runs one kernel."""
    return [
        Finding("fusec", VERSION),
        Finding("Python", f"{platform.python_version()} {sys.implementation.name}, {platform.platform(terse=True)}"),
        Finding("pages", f"{_pages()}; messages call them docs/"),
        Finding("NumPy", np.__version__),
        Finding("llvmlite", f"{_version('llvmlite')}, LLVM {_llvm()}"),
        Finding("lark", _version("lark")),
        Finding("ml_dtypes", _version("ml_dtypes")),
        *_asked("processor", _processor),
        *_asked("threads", _threads),
        *_asked("cache", _cache, fault=True),
        *_asked("CPU", _trial, fault=True),
        *_asked("CUDA compiler", _nvrtc),
        *_asked("CUDA products", lambda: _library("cuBLAS")),
        *_asked("CUDA transforms", lambda: _library("cuFFT")),
        *_asked("CUDA linear algebra", lambda: _library("cuSOLVER")),
        *_asked("CUDA device", _device),
        Finding("Metal", "kernels compile to text; there is no runtime yet"),
    ]


def _asked(topic: str, question: Callable[[], str], fault: bool = False) -> Iterator[Finding]:
    """The answer, or the first line of the error that came instead and its cure."""
    try:
        yield Finding(topic, question())
    except FusecError as error:
        cure = error.error.text("hint")
        yield Finding(topic, f"none: {error.error.text()}{f' ({cure})' if cure else ''}", fault)


def _pages() -> Path:
    """The folder with the documentation: of a wheel within the package, of a checkout beside it."""
    package = Path(__file__).parents[1]
    return next((each for each in (package / "docs", package.parent / "docs") if each.is_dir()), package / "docs")


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _llvm() -> str:
    try:
        import llvmlite.binding as llvm
    except (ImportError, OSError):
        return "not available"
    return ".".join(map(str, llvm.llvm_version_info))


def _processor() -> str:
    from fusec.runtime.cpu.processor import processor

    found = processor()
    wide = ("avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma", "f16c", "neon", "sve")
    features = {feature[1:] for feature in found.features.split(",") if feature.startswith("+")}
    named = ", ".join(name for name in wide if name in features)
    return f"{found.name} ({found.triple}), vectors of {found.vector_bits} bits{'; ' + named if named else ''}"


def _threads() -> str:
    from fusec.runtime.cpu import machine

    count, cache = machine.thread_count(), machine.last_level_cache_bytes()
    return f"{count} (FUSEC_NUM_THREADS changes it); last-level cache {cache / (1 << 20):.3g} MiB"


def _cache() -> str:
    from fusec.compiler.disk_cache import default_cache

    store = default_cache()
    if store is None:
        return "off (FUSEC_CACHE=0, or there is no folder that only its owner can write)"
    entries = store.list()
    return f"{store.path}: {counted(len(entries), 'entry', 'entries')}, {sum(entry.size for entry in entries):,} bytes"


def _trial() -> str:
    """Compile and run a kernel, and compare with NumPy."""
    from fusec.kernels.elementwise_kernel import ElementwiseKernel

    x = np.arange(1000, dtype=np.float32)
    start = time.perf_counter()
    kernel = ElementwiseKernel("float32 x", "float32 z", "z = x * 2 + 1", "doctor")
    result = np.asarray(kernel(x))
    first = time.perf_counter() - start
    assert np.array_equal(result, x * 2 + 1), "a kernel gave a wrong result on this machine"
    best = min(_timed(lambda: kernel(x)) for _ in range(200))
    entry = "the native entry" if isinstance(kernel._fast, BuiltinFunctionType) else "Python"
    times = f"first call {1e3 * first:.1f} ms, then {1e6 * best:.2f} us through {entry}"
    return f"a kernel ran and gave NumPy's result: {times}"


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _library(name: str) -> str:
    from fusec.runtime.cuda.libraries import math_library

    return f"{name}, {math_library(name.lower())._name}"


def _nvrtc() -> str:
    from fusec.runtime.cuda import nvrtc

    major, minor = nvrtc.version()
    return f"NVRTC {major}.{minor}, for sm_{', sm_'.join(map(str, nvrtc.supported()))}"


def _device() -> str:
    from fusec.runtime.cuda import driver

    count = driver.initialise()
    found = driver.device(driver.current_ordinal())
    return f"{count} found; number {found.ordinal} is {found.arch} with {found.multiprocessors} multiprocessors"
