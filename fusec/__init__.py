"""fusec: an array compiler. One kernel text runs on the CPU and translates to CUDA C and Metal.

>>> import numpy as np, fusec
>>> saxpy = fusec.ElementwiseKernel("float32 a, float32 x, float32 y", "float32 z", "z = a * x + y", "saxpy")
>>> saxpy(2.0, np.arange(3, dtype="float32"), np.ones(3, "float32"))
array([1., 3., 5.], dtype=float32)
"""

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING

from fusec.base import locks, public
from fusec.base.rounding_mode import default_rounding
from fusec.errors import base as errors_base
from fusec.errors.base import *  # noqa: F403
from fusec.errors.interpreter import explained
from fusec.version import VERSION

if TYPE_CHECKING:
    from fusec import graph, random, xp
    from fusec.errors.lazy import FusecLinAlgError
    from fusec.errors.reductions import FusecAxisError
    from fusec.fusion.evaluate import NumExpr, evaluate, re_evaluate, validate
    from fusec.fusion.fuse import fuse
    from fusec.kernels.decorators import elementwise, kernel, stencil
    from fusec.kernels.elementwise_kernel import ElementwiseKernel
    from fusec.kernels.explain import explain
    from fusec.kernels.reduction_decorator import reduction
    from fusec.kernels.reduction_kernel import ReductionKernel
    from fusec.kernels.scan_kernel import ScanKernel
    from fusec.kernels.simulate import simulate
    from fusec.kernels.vectorize import vectorize
    from fusec.language.intrinsics import (
        atomic_add,
        atomic_and,
        atomic_cas,
        atomic_exchange,
        atomic_max,
        atomic_min,
        atomic_or,
        atomic_xor,
        barrier,
        block_index,
        grid,
        local,
        shared,
        thread_index,
    )
    from fusec.library.cumulative import *  # noqa: F403
    from fusec.library.median import *  # noqa: F403
    from fusec.library.normalisation import *  # noqa: F403
    from fusec.library.reductions import *  # noqa: F403
    from fusec.xp.array import Array

__version__ = VERSION

_folder = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_folder, "grammar")):  # a bare checkout has grammar/ and runtime/ beside fusec/
    globals()["__path__"].append(os.path.dirname(_folder))

__all__ = [
    "Array",
    "ElementwiseKernel",
    "FusecAxisError",
    "FusecLinAlgError",
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
    "barrier",
    "block_index",
    "elementwise",
    "evaluate",
    "explain",
    "fuse",
    "graph",
    "grid",
    "kernel",
    "local",
    "random",
    "re_evaluate",
    "reduction",
    "shared",
    "simulate",
    "stencil",
    "thread_index",
    "validate",
    "vectorize",
    "xp",
]
__all__ += errors_base.__all__

HOMES = {
    "errors.reductions": "FusecAxisError",  # a class of NumPy, which `import fusec` does without
    "errors.lazy": "FusecLinAlgError",
    "kernels.decorators": "elementwise kernel stencil",
    "fusion.evaluate": "NumExpr evaluate re_evaluate validate",
    "fusion.fuse": "fuse",
    "language.intrinsics": "atomic_add atomic_and atomic_cas atomic_exchange atomic_max atomic_min atomic_or "
    "atomic_xor barrier block_index grid local shared thread_index",
    "kernels.elementwise_kernel": "ElementwiseKernel",
    "library.reductions": "all any argmax argmin count_nonzero logsumexp max mean mean_var min minmax mulsum "
    "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum nanvar norm prod ptp std sum var vecdot",
    "kernels.reduction_decorator": "reduction",
    "kernels.reduction_kernel": "ReductionKernel",
    "library.normalisation": "layer_norm log_softmax softmax",
    "library.median": "median",
    "library.cumulative": "cummax cummin cumprod cumsum cumulative_prod cumulative_sum logcumsumexp",
    "kernels.scan_kernel": "ScanKernel",
    "kernels.explain": "explain",
    "kernels.simulate": "simulate",
    "kernels.vectorize": "vectorize",
    "xp.array": "Array",
}
"""Which module each public name is imported from, when it is first asked for.

The reductions and scans by name are not in `__all__`: a star import would hide Python's sum, min, max, any and all.
"""


public.LATER["fuse"] = lambda: _module("fusion.fuse").fuse

if not TYPE_CHECKING:  # a type checker would take every name for one that there is

    def __getattr__(name: str) -> object:
        """Import what a public name stands for when it is first asked for, so that `import fusec` stays light."""
        if name in ("graph", "random", "xp"):
            return _module(name)
        for module, names in HOMES.items():
            if name in names.split():
                return globals().setdefault(name, getattr(_module(module), name))
        raise AttributeError(_unknown(name))


def _unknown(name: str) -> str:
    """What to say of a name that fusec has not, with what to use instead."""
    from fusec.base.diagnostics import did_you_mean
    from fusec.errors.alternatives import INSTEAD

    cure = INSTEAD.get(name) or did_you_mean(name, __dir__())
    return f"module 'fusec' has no attribute {name!r}{'; ' * bool(cure)}{cure}"


def _module(name: str) -> ModuleType:
    try:
        with locks.lock, default_rounding():
            return importlib.import_module(f"fusec.{name}")
    except ImportError as error:
        told = explained(error)
        if told is None:
            raise
        raise told from error


def __dir__() -> list[str]:
    """The public names, those not imported yet included, and Python's own."""
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *" ".join(HOMES.values()).split()})
