"""The values of a function's names at its decoration, which later calls keep using."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, ModuleType

import numpy as np

from fusec.base import dtypes
from fusec.frontends.capture.namespace import OuterScopes, closure_of

NUMBERS = (bool, int, float, complex, np.generic, tuple, list, np.ndarray)
MAX_TABLE = 4096  # elements of an array, list or tuple that a kernel has as a table
ROOTS = frozenset(
    "numpy math cmath builtins scipy cupy cupyx jax torch fusec array_api_compat array_api_strict ml_dtypes".split()
)
"""Libraries whose functions fusec knows."""


class Fixed:
    """A function that a decorated one calls, with what its own names stood for then."""

    def __init__(self, function: FunctionType) -> None:
        self.__fusec_origin__, self.kept = function, dict[str, object]()
        self.__name__, self.__module__ = function.__name__, function.__module__


def frozen_globals(origin: object) -> dict[str, object]:
    """What the names in a function stand for now, but for its own, and for arrays too large for a table."""
    if not isinstance(origin, FunctionType):
        return {}
    found = _globals_of(origin, {})
    found.pop(origin.__name__, None)  # what was called so before, if anything
    return found


def now_known(missing: tuple[tuple[FunctionType, str], ...]) -> bool:
    """Whether one of the names that nothing defined is defined by now."""
    return any(OuterScopes(closure_of(each), each.__globals__).find(name) is not None for each, name in missing)


def _globals_of(function: FunctionType, seen: dict[FunctionType, Fixed]) -> dict[str, object]:
    code = function.__code__
    names = set(code.co_names).difference(code.co_freevars)
    found: Mapping[str, object] = {name: function.__globals__[name] for name in names & function.__globals__.keys()}
    found = {**found, **closure_of(function)}
    return {name: _fixed(value, seen) for name, value in found.items() if _is_constant(value)}


def frozen(value: object) -> object:
    """The value, arrays and lists copied, so that later changes of them are none of it."""
    match value:
        case np.ndarray():
            return value.copy() if value.size <= MAX_TABLE else value
        case list() if type(value) is list:
            return list(map(frozen, value)) if len(value) <= MAX_TABLE else value
        case tuple() if type(value) is tuple:
            return tuple(map(frozen, value))
    return value


def _fixed(value: object, seen: dict[FunctionType, Fixed]) -> object:
    if isinstance(value, (np.ndarray, list, tuple)):
        return frozen(value)
    if not isinstance(value, FunctionType) or str(value.__module__).partition(".")[0] in ROOTS:
        return value
    if value not in seen:
        seen[value] = Fixed(value)
        seen[value].kept.update(_globals_of(value, seen))
    return seen[value]


def _is_constant(value: object) -> bool:
    if isinstance(value, np.ndarray) and value.size > MAX_TABLE:
        return False
    kinds = (*NUMBERS, ModuleType, np.dtype, dtypes.DType)
    return value is None or isinstance(value, kinds) or callable(value) or hasattr(value, "__fusec_origin__")
