"""fusec.random in a traced function: its functions take traced keys and counters, so kernels make the numbers."""

from __future__ import annotations

from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from fusec import random
from fusec.fusion.functions.routines import scalar_function
from fusec.fusion.outside.constants import FUNCTIONS, of_lazy_arrays
from fusec.fusion.trace.tables import CREATION
from fusec.fusion.trace.tracer import Tracer
from fusec.kernels import elementary
from fusec.language.random_checks import checks_range, checks_words


def _converting(kind: type[np.generic]) -> Any:
    """A type of NumPy that converts what is traced too."""
    return lambda x: x.astype(kind) if isinstance(x, Tracer) else kind(x)


def _either(name: str) -> Any:
    """A function of fusec.kernels.elementary, for what is traced that of fused functions."""
    traced = np.log if name == "log" else scalar_function(name)
    plain = getattr(elementary, name)
    return lambda x: traced(x) if isinstance(x, Tracer) else plain(x)


def _on_traced(origin: FunctionType, name: str) -> Any:
    """A function of fusec.random on what is traced; what is not traced is checked as outside of kernels."""
    inner = getattr(origin, "__fusec_origin__", origin)
    made = FunctionType(inner.__code__, _NAMES, name, inner.__defaults__)
    return made if inner is origin else {"philox": checks_words, "integers": checks_range}[name](made)


_KINDS = {each: _converting(getattr(np, each)) for each in ("uint32", "uint64", "int64", "float32", "float64")}
_NAMES: dict[str, Any] = {
    **vars(random), "np": SimpleNamespace(sqrt=np.sqrt, **_KINDS),
    **{name: _either(name) for name, each in vars(random).items()
       if getattr(each, "__module__", None) == elementary.__name__},
}  # fmt: skip
_NAMES |= {
    name: _on_traced(each, name)
    for name, each in vars(random).items()
    if isinstance(each, FunctionType) and each.__module__ == random.__name__
}


class Random(ModuleType):
    """fusec.random, or fusec, as a traced function sees it."""

    def __init__(self, origin: ModuleType) -> None:
        super().__init__(origin.__name__)
        object.__setattr__(self, "_origin", origin)

    def __getattribute__(self, name: str) -> Any:
        return traced(getattr(object.__getattribute__(self, "_origin"), name))


def traced(value: Any) -> Any:
    """The traced version of fusec, fusec.random, or a function of that or of fusec.xp; other objects unchanged."""
    if isinstance(value, ModuleType):
        return Random(value) if value.__name__ in ("fusec", random.__name__) else value
    if isinstance(value, FunctionType) and value.__module__ == random.__name__:
        return _NAMES[value.__name__]
    value = of_lazy_arrays(value)
    return CREATION.get(value, value) if isinstance(value, FUNCTIONS) else value
