"""Where the time of everyday programs goes on an NVIDIA device: kernels by name, host time, and time to the result.

    python benchmarks/profile_on_cuda.py [--out results/cuda_profile.json] [--elements 1000000] [program ...]

The kernels of one call of fusec come from CUPTI by PyTorch's profiler. `host` is the time that a call takes until it
returns, `device` that of the device alone, when launches wait for it, and `call` the time until results are there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]

import cupy  # noqa: E402
import torch  # noqa: E402
from programs import arguments, mapped  # noqa: E402

import fusec  # noqa: E402
from tests.programs.program import PROGRAMS  # noqa: E402

NAMES = ("accuracy", "attention_by_products", "batch_norm_in_training", "correlation_matrix", "batch_norm")
CALLS, ROUNDS = 50, 7


def kernels(call: Callable[[], object]) -> list[dict[str, Any]]:
    """What runs on the device in a call, in order, in microseconds."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    found = [each for each in profile.events() if each.device_type == torch.autograd.DeviceType.CUDA]
    found.sort(key=lambda each: each.time_range.start)
    last = found[len(found) * 2 // 3 :]
    begin = last[0].time_range.start if last else 0
    return [
        {"name": each.name[:80], "start": each.time_range.start - begin, "took": each.time_range.elapsed_us()}
        for each in last
    ]


def times(call: Callable[[], object]) -> dict[str, float]:
    """Host, device and whole time of a call in microseconds, the least of all rounds."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    least = {"host": float("inf"), "device": float("inf"), "call": float("inf")}
    for _ in range(ROUNDS):
        torch.cuda._sleep(20_000_000)
        begin.record()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        least["host"] = min(least["host"], (time.perf_counter() - start) / CALLS * 1e6)
        end.record()
        torch.cuda.synchronize()
        least["device"] = min(least["device"], begin.elapsed_time(end) / CALLS * 1e3)
        for _ in range(CALLS):
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            least["call"] = min(least["call"], (time.perf_counter() - start) * 1e6)
    return least


def main() -> None:
    """Profile the programs, and print and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cuda_profile.json")
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("programs", nargs="*", default=NAMES)
    options = parser.parse_args()
    cells = []
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        for name in options.programs:
            program = PROGRAMS[name]
            here = mapped(arguments(program, options.elements), cupy.asarray)
            run = fusec.fuse(program.function)
            call = lambda run=run, here=here: run(*here)  # noqa: E731
            for _ in range(5):
                call()
            torch.cuda.synchronize()
            shapes = [each.shape for each in here if hasattr(each, "shape")]
            cell = {"name": name, "shapes": shapes, "microseconds": times(call), "kernels": kernels(call)}
            cells.append(cell)
            print(json.dumps(cell), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"device": torch.cuda.get_device_name(), "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
