"""Times scans on an NVIDIA device: fusec's beside CuPy's cumsum and PyTorch's cumsum, cummax and logcumsumexp.

    python benchmarks/scans_on_cuda.py [--out results/cuda_scans.json]

Times are by events around 20 calls, the least of 5 rounds, results allocated by each library; a copy says what reading
and writing everything once takes. Every result of fusec is compared with the CPU's by bits. Needs cupy and torch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch
from reductions_on_cuda import seconds, versions

import fusec

Shape = tuple[int, ...]
LARGE = 1 << 14
CASES: tuple[tuple[str, Shape, int], ...] = (
    ("cumsum", (1 << 28,), 0),
    ("cumsum", (10_000_000,), 0),
    ("cumsum", (1_000_000,), 0),
    ("cumsum", (LARGE, LARGE), 0),
    ("cumsum", (LARGE, LARGE), 1),
    ("cumsum", (3162, 3162), 0),
    ("cumsum", (3162, 3162), 1),
    ("cumsum", (1_000_000, 64), 0),
    ("cumsum", (1_000_000, 64), 1),
    ("cummax", (1 << 28,), 0),
    ("cummax", (LARGE, LARGE), 1),
    ("logcumsumexp", (1 << 26,), 0),
    ("logcumsumexp", (8192, 8192), 0),
    ("logcumsumexp", (8192, 8192), 1),
    ("recurrence", (1 << 27,), 0),
    ("recurrence", (LARGE, 8192), 1),
)
RECURRENCE = fusec.ScanKernel(
    "float32 p, float32 q", "float32 y", "Line{p, q}", "Line{a.p * b.p, a.q * b.p + b.q}", "y = a.q", None,
    "recurrence", "Line", "struct Line { float p; float q; };",
)  # fmt: skip


def ours_of(name: str, axis: int) -> Callable[..., Any]:
    """Fusec's function of one array; the recurrence takes it as factors and as terms."""
    if name == "recurrence":
        return lambda x: RECURRENCE(x, x, axis=axis)
    return lambda x: getattr(fusec, name)(x, axis=axis)


def one(name: str, shape: Shape, axis: int) -> dict[str, Any]:
    """One function, shape and axis for all."""
    x = torch.rand(shape, device="cuda")
    y, ours = cupy.asarray(x), ours_of(name, axis)
    same = np.asarray(ours(x.cpu().numpy())).tobytes() == cupy.asnumpy(ours(y)).tobytes()
    calls: dict[str, Callable[[], object]] = {"copy": lambda: x.clone(), "fusec": lambda: ours(y)}
    if name == "cumsum":
        calls["cupy"] = lambda: cupy.cumsum(y, axis=axis)
    if name != "recurrence":
        calls["torch"] = lambda: getattr(torch, name)(x, axis)
    times = {}
    for library, call in calls.items():
        try:
            times[library] = seconds(call)
        except Exception as problem:  # no memory, or a shape that a library refuses: the other columns stand
            print(f"{library}: {type(problem).__name__}: {problem}", flush=True)
    cell = {"what": name, "shape": shape, "axis": axis, "bytes": 2 * y.nbytes, "same_bits_as_cpu": same}
    return {**cell, "seconds": times}


def main() -> None:
    """Run all cases and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cuda_scans.json")
    options = parser.parse_args()
    cells = []
    for case in CASES:
        cells.append(one(*case))
        cell = cells[-1]
        speeds = {name: f"{cell['bytes'] / each / 1e9:.0f} GB/s" for name, each in cell["seconds"].items()}
        print(*case, speeds, "same bits" if cell["same_bits_as_cpu"] else "OTHER BITS THAN THE CPU", flush=True)
        cupy.get_default_memory_pool().free_all_blocks()
        torch.cuda.empty_cache()
    about = {"device": torch.cuda.get_device_name(), "versions": versions()}
    options.out.write_text(json.dumps({"machine": about, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
