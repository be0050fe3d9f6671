"""Work on an NVIDIA device: share of the bandwidth of a copy, and PyTorch in the same rounds.

    python benchmarks/rows_on_cuda.py [--out results/cuda_rows.json] [--seconds 140] [--only softmax,scan]

A copy of as many bytes as a row must move is timed in the same rounds, by events around a batch of calls; results are
allocated by each library. `share` is the copy's time over fusec's, `host` the time that a call of fusec takes until it
returns. Results of fusec are compared with the CPU's by bits, where the arrays are not too large for that. PyTorch's
compiler is left out once its share of the time is used up.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from device_rows import ROWS, Row

ROUNDS, LEAST = 7, 2e-3  # rounds of a row, and seconds of a batch in each
COMPARED = 1 << 24  # elements up to which results are compared with the CPU's


class Timed:
    """A call that is timed in batches. host: seconds that a call takes until it returns."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(5):
            call()
        torch.cuda.synchronize()
        each = (time.perf_counter() - start) / 5
        self.count = max(3, min(200, int(LEAST / each)))
        self.seconds, self.host = float("inf"), float("inf")

    def round(self) -> None:
        """One more batch, behind work that keeps the device busy meanwhile."""
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(300_000 + 100_000 * self.count)  # cycles: launches are ready before the first of them runs
        begin.record()
        start = time.perf_counter()
        for _ in range(self.count):
            self.call()
        self.host = min(self.host, (time.perf_counter() - start) / self.count)
        end.record()
        torch.cuda.synchronize()
        self.seconds = min(self.seconds, begin.elapsed_time(end) / self.count * 1e-3)


def has_same_bits(row: Row, inputs: list[Any], found: Any) -> bool | None:
    """Whether the CPU gives the same bits; None if that would take too long, or NumPy lacks the dtype."""
    if inputs[0].numel() > COMPARED or row.dtype == "bf16" or row.name == "histogram":
        return None
    wanted = row.ours(*[each.cpu().numpy() for each in inputs])
    return np.asarray(wanted).tobytes() == np.ascontiguousarray(found.cpu().numpy()).tobytes()


def measured(row: Row, may_compile: bool) -> dict[str, Any]:
    """One row for all."""
    inputs = row.inputs()
    nbytes = int(inputs[0].numel() * inputs[0].element_size() * row.moved)
    source = torch.empty(max(nbytes // 2, 16), device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: target.copy_(source),
        "fusec": lambda: row.ours(*inputs),
        "eager": lambda: row.theirs(*inputs),
    }
    found: dict[str, Any] = {"name": row.name, "shape": row.shape, "dtype": row.dtype, "bytes": nbytes}
    start = time.perf_counter()
    found["same_bits"] = has_same_bits(row, inputs, row.ours(*inputs))
    found["first"] = time.perf_counter() - start
    if may_compile:
        torch.compiler.reset()
        calls["compiled"] = _compiled(row, inputs)
    timed = {name: Timed(call) for name, call in calls.items()}
    for _ in range(ROUNDS):
        for each in timed.values():
            each.round()
    found["seconds"] = {name: each.seconds for name, each in timed.items()}
    found["host"] = {name: each.host for name, each in timed.items()}
    peers = [found["seconds"][name] for name in ("eager", "compiled") if name in timed]
    found["share"] = found["seconds"]["copy"] / found["seconds"]["fusec"]
    found["of_best_peer"] = min(peers) / found["seconds"]["fusec"]
    return found


def _compiled(row: Row, inputs: list[Any]) -> Callable[[], object]:
    call = torch.compile(row.theirs, dynamic=False)
    call(*inputs)
    return lambda: call(*inputs)


def versions() -> dict[str, str]:
    """Of the libraries that matter here and are installed."""
    found = {}
    for name in ("numpy", "torch", "triton", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Run all rows, and print and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cuda_rows.json")
    parser.add_argument("--seconds", type=float, default=140, help="after which no further row begins")
    parser.add_argument("--compile", type=float, default=60, help="seconds for PyTorch's compiler")
    parser.add_argument("--only", default="", help="rows with one of these in their names")
    options = parser.parse_args()
    start, cells, compiling = time.perf_counter(), [], 0.0
    for row in ROWS:
        began = time.perf_counter()
        if began - start > options.seconds or not any(each in row.name for each in options.only.split(",")):
            continue
        try:
            cell = measured(row, compiling < options.compile)
        except Exception as problem:  # whatever fails is the row's result
            cell = {"name": row.name, "shape": row.shape, "failed": f"{type(problem).__name__}: {problem}"[:300]}
        compiling += time.perf_counter() - began
        cells.append(cell)
        print(json.dumps(cell), flush=True)
    about = {"device": torch.cuda.get_device_name(), "versions": versions()}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"machine": about, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
