"""Times sums on an NVIDIA device: fusec's ReductionKernel beside CuPy's sum and ReductionKernel, and PyTorch's sum.

    python benchmarks/reductions_on_cuda.py [--out results/cuda_reductions.json]

Times are by events around 20 calls, the least of 5 rounds, results allocated by each library; every result of fusec is
compared with the CPU's by bits. Needs cupy and torch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import torch

import fusec

TEXTS = ("T x", "T y", "x", "a + b", "y = a", "0", "my_sum")
CASES: tuple[tuple[tuple[int, ...], int | None], ...] = (
    ((1 << 28,), None),
    ((10_000_000,), None),
    ((1 << 14, 1 << 14), 0),
    ((1 << 14, 1 << 14), 1),
    ((4096, 1024), 1),
    ((3162, 3162), 0),
    ((3162, 3162), 1),
    ((1_000_000, 3), 0),
    ((1_000_000, 3), 1),
)


def seconds(call: Callable[[], object], count: int = 20, rounds: int = 5) -> float:
    """The least mean time of a call, by events on the legacy default stream."""
    for _ in range(3):
        call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    least = float("inf")
    for _ in range(rounds):
        begin.record()
        for _ in range(count):
            call()
        end.record()
        torch.cuda.synchronize()
        least = min(least, begin.elapsed_time(end) / count * 1e-3)
    return least


def one(shape: tuple[int, ...], axis: int | None, ours: Any, theirs: Any) -> dict[str, Any]:
    """One shape and axis for all."""
    x = torch.rand(shape, device="cuda")
    y = cupy.asarray(x)
    host, device = ours(x.cpu().numpy(), axis=axis), cupy.asnumpy(ours(y, axis=axis))
    calls: dict[str, Callable[[], object]] = {
        "fusec": lambda: ours(y, axis=axis),
        "cupy": lambda: y.sum(axis=axis),
        "cupy kernel": lambda: theirs(y, axis=axis),
        "torch": (lambda: x.sum()) if axis is None else (lambda: x.sum(axis)),
    }
    times = {name: seconds(call) for name, call in calls.items()}
    same = np.asarray(host).tobytes() == np.asarray(device).tobytes()
    return {"shape": shape, "axis": axis, "bytes": x.numel() * 4, "same_bits_as_cpu": same, "seconds": times}


def versions() -> dict[str, str]:
    """Of the libraries that matter here and are installed."""
    found = {}
    for name in ("numpy", "cupy-cuda13x", "torch", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Run all cases and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cuda_reductions.json")
    options = parser.parse_args()
    ours, theirs = fusec.ReductionKernel(*TEXTS), cupy.ReductionKernel(*TEXTS)
    cells = []
    for shape, axis in CASES:
        cells.append(one(shape, axis, ours, theirs))
        speeds = {name: f"{cells[-1]['bytes'] / each / 1e9:.0f} GB/s" for name, each in cells[-1]["seconds"].items()}
        print(
            shape, axis, speeds, "same bits" if cells[-1]["same_bits_as_cpu"] else "OTHER BITS THAN THE CPU", flush=True
        )
    about = {"device": torch.cuda.get_device_name(), "versions": versions()}
    options.out.write_text(json.dumps({"machine": about, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
