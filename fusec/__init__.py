"""fusec: an array compiler. One kernel text runs on the CPU and comes out as CUDA C and Metal.

>>> import numpy as np, fusec
>>> saxpy = fusec.ElementwiseKernel("float32 a, float32 x, float32 y", "float32 z", "z = a * x + y", "saxpy")
>>> saxpy(2.0, np.arange(3, dtype="float32"), np.ones(3, "float32"))
array([1., 3., 5.], dtype=float32)
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from fusec import forking
from fusec.errors import (
    FusecError,
    FusecIndexError,
    FusecMemoryError,
    FusecRuntimeError,
    FusecTypeError,
    FusecValueError,
)
from fusec.version import VERSION

if TYPE_CHECKING:
    from fusec import random
    from fusec.decorators import elementwise, kernel, stencil
    from fusec.evaluation import NumExpr, evaluate, re_evaluate, validate
    from fusec.fusing.fused import fuse
    from fusec.intrinsics import (
        atomic_add,
        atomic_and,
        atomic_cas,
        atomic_exchange,
        atomic_max,
        atomic_min,
        atomic_or,
        atomic_xor,
        grid,
        local,
    )
    from fusec.kernels import ElementwiseKernel
    from fusec.reductions.builtin import *  # noqa: F403
    from fusec.reductions.kernels import ReductionKernel
    from fusec.reductions.normalise import *  # noqa: F403
    from fusec.reductions.selection import *  # noqa: F403
    from fusec.scans.cumulative import *  # noqa: F403
    from fusec.scans.kernels import ScanKernel
    from fusec.simulation import simulate
    from fusec.vectorizing import vectorize

__version__ = VERSION

__all__ = [
    "ElementwiseKernel",
    "FusecError",
    "FusecIndexError",
    "FusecMemoryError",
    "FusecRuntimeError",
    "FusecTypeError",
    "FusecValueError",
    "NumExpr",
    "ReductionKernel",
    "ScanKernel",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xor",
    "elementwise",
    "evaluate",
    "fuse",
    "grid",
    "kernel",
    "local",
    "random",
    "re_evaluate",
    "simulate",
    "stencil",
    "validate",
    "vectorize",
]

# By module; not in __all__, since a star import would hide Python's sum, min, max, any and all.
REDUCTIONS = {
    "builtin": "all any argmax argmin count_nonzero logsumexp max mean mean_var min minmax mulsum nanargmax nanargmin "
    "nanmax nanmean nanmin nanprod nanstd nansum nanvar norm prod ptp std sum var vecdot",
    "normalise": "layer_norm log_softmax softmax",
    "selection": "median",
}


SCANS = {
    "cumulative": "cummax cummin cumprod cumsum cumulative_prod cumulative_sum logcumsumexp",
    "kernels": "ScanKernel",
}


def __getattr__(name: str) -> object:
    """Import the kernels when first asked for, so that tools that only read a module of fusec stay light."""
    if name == "ElementwiseKernel":
        with forking.lock:
            from fusec.kernels import ElementwiseKernel

        return ElementwiseKernel
    if name == "ReductionKernel":
        with forking.lock:
            from fusec.reductions.kernels import ReductionKernel

        return ReductionKernel
    if name == "fuse":
        with forking.lock:
            from fusec.fusing.fused import fuse

        return fuse
    if name in ("elementwise", "kernel", "stencil"):
        with forking.lock:
            from fusec import decorators

        return getattr(decorators, name)
    if name == "vectorize":
        with forking.lock:
            from fusec.vectorizing import vectorize

        return vectorize
    if name == "simulate":
        with forking.lock:
            from fusec.simulation import simulate

        return simulate
    if name in ("NumExpr", "evaluate", "re_evaluate", "validate"):
        with forking.lock:
            from fusec import evaluation

        globals()[name] = getattr(evaluation, name)  # so that calls do not come here again, which takes a microsecond
        return globals()[name]
    if name in ("grid", "local", "random") or name.startswith("atomic_"):
        from importlib import import_module

        with forking.lock:
            module = import_module("fusec.random" if name == "random" else "fusec.intrinsics")
        if name == "random" or hasattr(module, name):
            return module if name == "random" else getattr(module, name)
    for part, names in REDUCTIONS.items():
        if name in names.split():
            with forking.lock:
                found = getattr(importlib.import_module(f"fusec.reductions.{part}"), name)
            return globals().setdefault(name, found)
    for part, names in SCANS.items():
        if name in names.split():
            with forking.lock:
                found = getattr(importlib.import_module(f"fusec.scans.{part}"), name)
            return globals().setdefault(name, found)
    raise AttributeError(f"module 'fusec' has no attribute {name!r}")


class _Package(ModuleType):
    """What this package is: its `kernel` is the decorator, also once the module of that name has been imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name == "kernel" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    """The public names, those not imported yet included."""
    return sorted({*globals(), *__all__, *" ".join((*REDUCTIONS.values(), *SCANS.values())).split()})
