"""Runs PTX on NumPy: what NVRTC made of a kernel, over all threads of a launch, every access checked.

``module = ptx.load(text)``; ``ptx.launch(module, entry, grid, block, args)``.
"""

from ptx.faults import (
    BarrierDivergence,
    Misaligned,
    OutOfBounds,
    PtxFault,
    SharedRace,
    StepLimit,
    Undefined,
    Uninitialised,
    Unsupported,
    WarpDivergence,
)
from ptx.launch import Order, launch, load, memory_of, run
from ptx.syntax import Module

__all__ = [
    "BarrierDivergence",
    "Misaligned",
    "Module",
    "Order",
    "OutOfBounds",
    "PtxFault",
    "SharedRace",
    "StepLimit",
    "Undefined",
    "Uninitialised",
    "Unsupported",
    "WarpDivergence",
    "launch",
    "load",
    "memory_of",
    "run",
]
