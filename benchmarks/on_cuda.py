"""Times fusec beside its peers on an NVIDIA GPU in one run, and writes results/NAME.json and results/NAME.md.

    python benchmarks/on_cuda.py --out benchmarks/results/cuda_h200.json
    python benchmarks/on_cuda.py --only saxpy,gelu_erf --peers fusec,torch --skip first,calls

All libraries share one process and the same inputs. In every round of a cell all take a turn, the first one rotating,
and so does a device-to-device copy that moves the same number of bytes: the bound of a kernel that only moves memory.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import cuda_table
import numpy as np
import torch
from cuda.bindings import driver
from cuda_work import PEERS, WORK, Call, Tensor, Work

import fusec
from fusec.base import dtypes
from fusec.runtime import cuda

PACKAGES = "numpy cuda-core cuda-bindings nvidia-cuda-nvrtc cupy-cuda13x torch triton jax numba numba-cuda".split()
LAUNCHES = 100_000


def machine() -> dict[str, Any]:
    """What a reader needs to judge the numbers."""
    query = "--query-gpu=name,driver_version,memory.total"
    found = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True, check=False)
    versions = {"fusec": fusec.__version__}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": dt.date.today().isoformat(),
        "device": found.stdout.strip().splitlines()[0],
        "arch": cuda.device(0).arch,
        "python": platform.python_version(),
        "versions": versions,
    }


# --- bandwidth -------------------------------------------------------------------------------------------------------


def moved(inputs: tuple[Tensor, ...], work: Work) -> int:
    """Bytes that must cross the memory bus: all inputs once, gaps of less than a sector included, and the outputs."""
    shape = torch.broadcast_shapes(*(each.shape for each in inputs))
    read = 0
    for each in inputs:
        gap = min((step for step, extent in zip(each.stride(), each.shape, strict=True) if extent > 1), default=1)
        read += each.numel() * min(32, gap * each.itemsize)
    return read + work.outputs * int(np.prod(shape)) * inputs[0].itemsize


def copier(nbytes: int) -> Call:
    """A copy that reads and writes `nbytes` together."""
    source, target = (torch.ones(nbytes // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
    stream = driver.CUstream(1)

    def call() -> Any:
        driver.cuMemcpyDtoDAsync(target.data_ptr(), source.data_ptr(), nbytes // 2, stream)
        return target

    return call


def by_events(call: Call, repeats: int) -> float:
    """Seconds a call, by events on the legacy default stream."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / repeats * 1e-3


def by_clock(call: Call, repeats: int) -> float:
    """Seconds a call, by the host's clock until the last result is there: JAX has streams of its own."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(repeats):
        last = call()
    wait(last)
    return (time.perf_counter() - start) / repeats


def wait(result: Any) -> None:
    """Until JAX has made a result."""
    for each in result if isinstance(result, tuple) else (result,):
        each.block_until_ready()


def sample(result: Any, at: np.ndarray) -> list[np.ndarray]:
    """Some elements of each output as float64."""
    parts = result if isinstance(result, (tuple, list)) else (result,)
    found = []
    for part in parts:
        tensor = (
            part
            if isinstance(part, torch.Tensor)
            else torch.from_dlpack(part)
            if hasattr(part, "__dlpack__")
            else torch.as_tensor(part, device="cuda")
        )
        found.append(tensor.reshape(-1)[torch.from_numpy(at).cuda()].double().cpu().numpy())
    return found


class NumPyNames:
    """NumPy and the error function."""

    def __getattr__(self, name: str) -> Any:
        import math

        return np.vectorize(math.erf, otypes=[np.float64]) if name == "erf" else getattr(np, name)


def expected(work: Work, inputs: tuple[Tensor, ...], at: np.ndarray) -> list[np.ndarray]:
    """The same elements by NumPy in float64; integers wrap."""
    shape = torch.broadcast_shapes(*(each.shape for each in inputs))
    picked = [each.expand(shape)[np.unravel_index(at, shape)].double().cpu().numpy() for each in inputs]
    found = work.compute(NumPyNames(), *picked)
    parts = found if isinstance(found, tuple) else (found,)
    return [part if work.dtype.is_floating_point else part.astype(np.int8).astype(np.float64) for part in parts]


def time_cell(work: Work, n: int, names: list[str], rounds: int) -> dict[str, Any]:
    """One workload at one size for all peers."""
    inputs = work.inputs(n, work.dtype)
    nbytes = moved(inputs, work)
    elements = int(np.prod(torch.broadcast_shapes(*(each.shape for each in inputs))))
    at = np.linspace(0, elements - 1, min(elements, 5000)).astype(np.int64)
    want = expected(work, inputs, at)
    calls: dict[str, Call] = {"copy": copier(nbytes)}
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            call = PEERS[name](work, inputs)
            if call is None:
                continue
            result = call()
            torch.cuda.synchronize()
            got = sample(result, at)
            error = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(got, want, strict=True))
            found[name] = {"error": error, "right": bool(error <= work.tolerance)}
            calls[name] = call
        except Exception as problem:
            found[name] = {"failed": f"{type(problem).__name__}: {problem}"[:200]}
    repeats = max(5, min(200, int(4e-3 / max(nbytes / 4e12, 4e-6))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    for turn in range(-1, rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            took = (by_clock if name == "jax" else by_events)(calls[name], repeats if turn >= 0 else 3)
            if turn >= 0:
                times[name].append(took)
    for name, took in times.items():
        found.setdefault(name, {}).update(median=statistics.median(took), min=min(took))
    copy = found.pop("copy")
    del calls, inputs
    free()
    return {
        "work": work.label,
        "note": work.note,
        "n": elements,
        "bytes": nbytes,
        "copy": copy["median"],
        "peers": found,
    }


def free() -> None:
    """Give cached memory back, so that every cell starts alike."""
    gc.collect()
    torch.cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


# --- calls -----------------------------------------------------------------------------------------------------------


def small_calls() -> dict[str, Callable[[], Any]]:
    """One call on 32 elements of float32, in every library's own arrays; adders make one pass, kernels x * 2 + y."""
    x, y, z = (torch.ones(32, device="cuda") for _ in range(3))
    texts = ("float32 x, float32 y", "float32 z", "z = x * 2 + y", "saxpy")
    kernel, kernel_own, kernel_cupy, kernel_other = (fusec.ElementwiseKernel(*texts) for _ in range(4))
    a, b, c = (cuda.from_numpy(np.ones(32, "f4")) for _ in range(3))
    calls: dict[str, Callable[[], Any]] = {
        "fusec, PyTorch tensors, out given": lambda: kernel(x, y, z),
        "fusec, PyTorch tensors": lambda: kernel(x, y),
        "fusec, its own arrays, out given": lambda: kernel_own(a, b, c),
        "fusec, its own arrays": lambda: kernel_own(a, b),
        "torch.add, out given": lambda: torch.add(x, y, out=z),
        "torch.add": lambda: torch.add(x, y),
        "torch x * 2 + y": lambda: x * 2 + y,
    }
    try:
        import cupy

        p, q, r = (cupy.ones(32, "f4") for _ in range(3))
        theirs = cupy.ElementwiseKernel(*texts)
        calls |= {
            "fusec, CuPy arrays, out given": lambda: kernel_cupy(p, q, r),
            "fusec, CuPy arrays": lambda: kernel_cupy(p, q),
            "cupy.ElementwiseKernel, out given": lambda: theirs(p, q, r),
            "cupy.ElementwiseKernel": lambda: theirs(p, q),
            "cupy.add, out given": lambda: cupy.add(p, q, r),
        }
    except ImportError:
        pass
    try:
        import jax

        s, t = (jax.numpy.ones(32, "f4") for _ in range(2))
        jitted = jax.jit(lambda s, t: s * 2 + t)
        calls |= {"jax.jit": lambda: jitted(s, t), "fusec, JAX arrays": lambda: kernel_other(s, t)}
    except ImportError:
        pass
    try:
        if not hasattr(np, "row_stack"):
            np.row_stack = np.vstack  # as in cuda_work.py
        from numba import cuda as numba_cuda

        @numba_cuda.jit
        def saxpy(x, y, z):
            i = numba_cuda.grid(1)
            if i < z.size:
                z[i] = x[i] * np.float32(2) + y[i]

        d = [numba_cuda.as_cuda_array(each) for each in (x, y, z)]
        configured = saxpy[1, 256]
        calls |= {
            "numba.cuda.jit, out given": lambda: configured(*d),
            "fusec, Numba arrays, out given": lambda: kernel_other(*d),
        }
    except ImportError:
        pass
    compiled = torch.compile(lambda x, y: x * 2 + y, dynamic=False)
    calls["torch.compile"] = lambda: compiled(x, y)
    return calls


def time_calls(rounds: int = 3) -> dict[str, Any]:
    """Seconds a call over many launches and one synchronise; the least of a few rounds."""
    result: dict[str, Any] = {}
    for name, call in small_calls().items():
        try:
            for _ in range(5):
                call()
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(200):
                call()
            count = max(1000, min(LAUNCHES // rounds, int(0.5 / ((time.perf_counter() - start) / 200))))
            times = []
            for _ in range(rounds):
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(count):
                    last = call()
                if name == "jax.jit":
                    wait(last)
                torch.cuda.synchronize()
                times.append((time.perf_counter() - start) / count)
            result[name] = {"min": min(times), "median": statistics.median(times), "launches": count * rounds}
        except Exception as problem:
            result[name] = {"failed": f"{type(problem).__name__}: {problem}"[:200]}
        print(f"call  {name:<36} {result[name]}", flush=True)
    start = time.perf_counter()
    for _ in range(20_000):
        cuda.empty((1 << 20,), dtypes.INT8)
    result["cuda.empty of 1 MiB and its release"] = {"min": (time.perf_counter() - start) / 20_000}
    print("empty ", result["cuda.empty of 1 MiB and its release"])
    return result


def time_first_calls(names: list[str], repeats: int = 3) -> dict[str, Any]:
    """Fresh processes: import, and the first call with an empty and a filled cache."""
    program = str(Path(__file__).with_name("cuda_first_call.py"))
    bytecode = {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "benchmark-bytecode")}  # as installed packages
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | bytecode
    result: dict[str, Any] = {}
    for name in names:
        rows: dict[str, list[dict[str, float]]] = {"cold": [], "warm": []}
        for _ in range(repeats):
            with tempfile.TemporaryDirectory() as home:
                for kind in rows:
                    done = subprocess.run(
                        [sys.executable, program, name, home],
                        env=environment,
                        capture_output=True,
                        text=True,
                        timeout=120,
                        check=False,
                    )
                    if done.returncode:
                        result[name] = {"failed": done.stderr.strip()[-300:]}
                        break
                    rows[kind].append(json.loads(done.stdout.splitlines()[-1]))
        if name not in result:
            result[name] = {
                "import": min(row["import"] for kind in rows.values() for row in kind),
                **{kind: min(row["first"] for row in found) for kind, found in rows.items()},
            }
        print("first", name, result[name], flush=True)
    return result


def parse() -> Any:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)

    def names(text: str) -> list[str]:
        return text.split(",")

    parser.add_argument("--peers", type=names, default=list(PEERS))
    parser.add_argument("--only", type=names, help="names of workloads")
    parser.add_argument("--skip", type=names, default=[], help="of first, calls, work")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cuda.json")
    return parser.parse_args()


def show(cell: dict[str, Any]) -> None:
    """One line of progress: share of the copy's speed."""
    parts = [f"{cell['work']:<20} n={cell['n']:<10} copy {cell['bytes'] / cell['copy'] / 1e9:5.0f} GB/s "]
    for name, entry in cell["peers"].items():
        if "failed" in entry:
            parts.append(f"{name} FAILED {entry['failed'][:80]}")
        else:
            parts.append(f"{name} {100 * cell['copy'] / entry['median']:.1f}%{'' if entry['right'] else ' WRONG'}")
    print("  ".join(parts), flush=True)


def main() -> None:
    """Run what was asked for; the JSON is written after every part."""
    options = parse()
    run: dict[str, Any] = {"machine": machine(), "cells": []}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    torch.set_grad_enabled(False)
    if "calls" not in options.skip:
        run["calls"] = time_calls()
    for work in WORK if "work" not in options.skip else ():
        if options.only is None or work.name in options.only:
            for n in work.sizes:
                run["cells"].append(time_cell(work, n, options.peers, options.rounds))
                show(run["cells"][-1])
                options.out.write_text(json.dumps(run, indent=1) + "\n")
    if "first" not in options.skip:
        run["first_calls"] = time_first_calls(["fusec", "cupy", "torch.compile", "jax", "numba"])
    options.out.write_text(json.dumps(run, indent=1) + "\n")
    cuda_table.write(options.out)


if __name__ == "__main__":
    main()
