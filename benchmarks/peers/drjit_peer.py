"""Dr.Jit's LLVM backend. It has flat arrays only, so workloads about layouts do not apply."""

from __future__ import annotations

import ctypes.util
import os

if "DRJIT_LIBLLVM_PATH" not in os.environ:
    found = next(filter(None, (ctypes.util.find_library(f"LLVM-{version}") for version in (15, 16, 17, 14, 19))), None)
    if found:
        os.environ["DRJIT_LIBLLVM_PATH"] = found

import drjit
from drjit import llvm
from workloads import ITERATIONS, Arrays, Workload

from peers import Prepared


def mandelbrot(cx, cy):
    zero = drjit.zeros(llvm.Float, drjit.width(cx))
    state = (zero, zero, drjit.zeros(llvm.Int, drjit.width(cx)))

    def inside(zx, zy, count):
        return (zx * zx + zy * zy <= 4) & (count < ITERATIONS)

    def step(zx, zy, count):
        return zx * zx - zy * zy + cx, 2 * zx * zy + cy, count + 1

    return drjit.while_loop(state, inside, step)[2]


class Library:
    """Dr.Jit."""

    def __init__(self, threads: int) -> None:
        self.version = drjit.__version__
        drjit.set_thread_count(threads)
        drjit.eval(llvm.Float(1) + 1)  # finds out here, not in the first cell, that there is no libLLVM

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        if work.group in ("layout", "reduction", "stencil") or work.name == "call_sum":
            return None
        kind = llvm.Float64 if work.dtype == "float64" else llvm.Float
        inputs = [kind(operand.ravel()) for operand in operands]
        drjit.eval(inputs)
        drjit.sync_thread()
        last = [None]

        def call() -> None:
            last[0] = mandelbrot(*inputs) if work.integer else work.compute(drjit, *inputs)
            drjit.eval(last[0])
            drjit.sync_thread()

        return call, lambda: tuple(t.numpy() for t in (last[0] if isinstance(last[0], tuple) else (last[0],)))
