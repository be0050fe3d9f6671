"""Times 3x3 stencils and transposed operands on an NVIDIA device beside copies, CuPy and PyTorch, eager and compiled.

    python benchmarks/stencils_on_cuda.py [--out results/cuda_stencils.json]

Times are by events around 20 calls, the least of 5 rounds, results allocated by each library; every result of fusec is
compared with the CPU's by bits. Needs cupy and torch.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cupy
import cupyx.scipy.ndimage
import numpy as np
import torch
from reductions_on_cuda import seconds, versions
from stencils import TEXTS, WEIGHTS, around

import fusec

BORDERS = ("constant", "nearest", "wrap")
TORCH = {"float32": torch.float32, "uint8": torch.uint8}


def stencil(dtype: str, side: int, boundary: str) -> dict[str, Any]:
    """The Laplacian of a square image for all."""
    kernel = fusec.stencil(TEXTS["laplacian"], boundary=boundary, names={"np": np})
    x = (torch.rand((side, side), device="cuda") * 255).to(TORCH[dtype])
    y = cupy.asarray(x)
    weights = cupy.asarray(np.array(WEIGHTS), y.dtype)
    small = y[:700, :900].copy()
    same = np.array_equal(kernel(small.get()), cupy.asnumpy(kernel(small)))
    compiled = torch.compile(around, dynamic=False)
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: x.clone(),
        "fusec": lambda: kernel(y),
        "torch.compile": lambda: compiled(x),
    }
    if side <= 4096:
        calls["cupyx"] = lambda: cupyx.scipy.ndimage.correlate(y, weights, mode=boundary)
    times = {name: seconds(call) for name, call in calls.items()}
    what = f"laplacian {dtype} {boundary}"
    return {"what": what, "shape": (side, side), "bytes": 2 * y.nbytes, "same_bits_as_cpu": same, "seconds": times}


def transposed(dtype: str, side: int) -> dict[str, Any]:
    """x.T + y of square matrices for all."""
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    a, b = ((torch.rand((side, side), device="cuda") * 100).to(TORCH[dtype]) for _ in range(2))
    x, y = cupy.asarray(a), cupy.asarray(b)
    small = x[:700, :900].copy(), y[:900, :700].copy()
    found, expected = kernel(small[0].T, small[1]), kernel(small[0].get().T, small[1].get())
    compiled = torch.compile(lambda a, b: a.T + b, dynamic=False)
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: a.clone(),
        "fusec": lambda: kernel(x.T, y),
        "cupy": lambda: x.T + y,
        "torch": lambda: a.T + b,
        "torch.compile": lambda: compiled(a, b),
    }
    times = {name: seconds(call) for name, call in calls.items()}
    same = np.array_equal(cupy.asnumpy(found), expected)
    return {
        "what": f"x.T + y {dtype}",
        "shape": (side, side),
        "bytes": 3 * x.nbytes,
        "same_bits_as_cpu": same,
        "seconds": times,
    }


def main() -> None:
    """Run all cases and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "cuda_stencils.json")
    options = parser.parse_args()
    cases = [(stencil, dtype, side, border) for dtype in TORCH for side in (4096, 16384) for border in BORDERS]
    cells = [make(*rest) for make, *rest in (*cases, *((transposed, dtype, 16384) for dtype in TORCH))]
    for cell in cells:
        moved = {
            name: (2 * cell["bytes"] / 3 if name == "copy" and "T" in cell["what"] else cell["bytes"]) / each / 1e9
            for name, each in cell["seconds"].items()
        }
        speeds = {name: f"{each:.0f} GB/s" for name, each in moved.items()}
        print(
            cell["what"], cell["shape"], speeds, "same bits" if cell["same_bits_as_cpu"] else "OTHER BITS", flush=True
        )
    about = {"device": torch.cuda.get_device_name(), "versions": versions()}
    options.out.write_text(json.dumps({"machine": about, "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
