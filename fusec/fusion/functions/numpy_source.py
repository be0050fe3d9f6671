"""NumPy's own functions in Python, run on traced arrays: the order of operations and the rounding are NumPy's.

Their source sees stand-ins for the few functions that make arrays, and for other functions of NumPy's in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import mul
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from fusec.fusion.functions.creation import asarray, tri
from fusec.fusion.trace.numbers import length
from fusec.fusion.trace.tables import CREATION, FUNCTIONS, IN_SOURCE, METHODS

NAMES = (
    "append apply_over_axes array_split average block column_stack common_type corrcoef cov cross diag"
    " diag_indices_from diff dsplit dstack ediff1d geomspace gradient hsplit hstack isclose iscomplex isneginf"
    " isposinf isreal ix_ kron logspace meshgrid nan_to_num polyadd polyder polyint polysub"
    " polyval resize select split tile trace trapezoid tril tril_indices_from triu triu_indices_from unstack unwrap"
    " vander vsplit vstack"
).split()

OF_LISTS = (
    "sum prod mean std var max min amax amin any all ptp argmax argmin median average cumsum cumprod sort".split()
)


class NumPyNames(dict[str, Any]):
    """The global names of a module of NumPy's, as its functions see them here."""

    def __init__(self, origin: dict[str, Any], instead: dict[str, Any]) -> None:
        super().__init__({"len": length})
        self.origin, self.instead = origin, instead

    def __missing__(self, name: str) -> Any:
        found = self[name] = self.instead.get(name) or _standing_in(self.origin[name], self.instead)
        return found


class NumPyModule(ModuleType):
    """A module of NumPy's as its functions see it here."""

    def __init__(self, origin: ModuleType, instead: dict[str, Any]) -> None:
        super().__init__(origin.__name__)
        self._origin, self._instead = origin, instead

    def __getattr__(self, name: str) -> Any:
        return self._instead.get(name) or _standing_in(getattr(self._origin, name), self._instead)


def _standing_in(value: Any, instead: dict[str, Any]) -> Any:
    """What NumPy's source sees in place of a value of one of its modules."""
    if isinstance(value, ModuleType):
        return NumPyModule(value, instead) if value.__name__.partition(".")[0] == "numpy" else value
    if isinstance(value, (BuiltinFunctionType, FunctionType, type)) and value in CREATION:
        return CREATION[value]
    if isinstance(value, FunctionType) and str(value.__module__).partition(".")[0] == "numpy":
        return on_traced(value, instead)
    if isinstance(value, BuiltinFunctionType):  # the inside of a function that dispatches, such as np.concatenate
        outer = getattr(np, value.__name__, None)
        return outer if getattr(outer, "__wrapped__", None) is value else value
    return value


def on_traced(origin: Any, instead: dict[str, Any]) -> Callable[..., Any]:
    """A function of NumPy's in Python that takes traced arrays. instead: of what modules of NumPy's have, by name."""
    origin = origin if isinstance(origin, FunctionType) else origin.__wrapped__
    names = NumPyNames(origin.__globals__, instead)
    made = FunctionType(origin.__code__, names, origin.__name__, origin.__defaults__, origin.__closure__)
    made.__kwdefaults__ = origin.__kwdefaults__
    return made


def _known_to_hold(test: Any) -> bool:
    """What np.any is to source that raises an error if some element is true: no error depends on unknown values."""
    found = METHODS["_ask"](test, "any") if hasattr(test, "_trace") else np.any(test)
    return found is not NotImplemented and bool(found)


def _multiplied(one: Any, other: Any, **options: Any) -> Any:
    """np.multiply, also of shapes."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return tuple(map(mul, one, other))
    return np.multiply(one, other, **options)


_weighted = on_traced(np.average, {"any": _known_to_hold})


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = np._NoValue
) -> Any:
    """np.average, whose source makes a number of extents even where nobody asks for it."""
    if weights is not None:
        return _weighted(a, axis, weights, returned, keepdims=keepdims)
    x = asarray(a)
    found = x.mean(axis, **({} if keepdims is np._NoValue else {"keepdims": keepdims}))
    count = x.size / np.size(found)  # an error where there are no averages
    if not returned:
        return found
    counts = np.full_like(found, count)
    return found, counts if np.ndim(found) else counts[()]


STAND_INS: dict[str, dict[str, Any]] = {
    "geomspace": {"any": _known_to_hold},
    **{name: {"tri": tri} for name in ("tril", "triu")},
    **{name: {"average": average} for name in ("cov", "corrcoef")},
    "kron": {"multiply": _multiplied},
}
FUNCTIONS.update({name: on_traced(getattr(np, name), STAND_INS.get(name, {})) for name in NAMES} | {"average": average})
IN_SOURCE.update(NAMES)


class Joining:
    """np.r_ or np.c_ with traced parts."""

    def __init__(self, origin: Any) -> None:
        self._origin, self._join = origin, on_traced(type(origin).__getitem__, {})

    def __getitem__(self, parts: Any) -> Any:
        found: Any = self._join(self._origin, parts)
        return found


def _of_lists(origin: Any) -> Callable[..., Any]:
    """A function of an array that takes lists of traced arrays too."""

    @wraps(origin)
    def call(a: Any, *args: Any, **options: Any) -> Any:
        return origin(asarray(a) if isinstance(a, (list, tuple)) else a, *args, **options)

    return call


CREATION[np.require] = on_traced(np.require, {})
_joining: Any = Joining  # not called, but indexed
CREATION.update({each: _joining(each) for each in (np.r_, np.c_)})
CREATION.update({each: _of_lists(each) for each in (getattr(np, name) for name in OF_LISTS)})
