"""Plain constants that a traced function may take or read, distinguished exactly."""

from __future__ import annotations

import functools
import operator
import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Any

import numpy as np

from fusec.arguments.operands import host_array
from fusec.base.diagnostics import with_article
from fusec.errors.fusing import DrawsNumbers, NotTraceable
from fusec.frontends.capture.frozen_globals import ROOTS
from fusec.fusion.trace.tables import CREATION
from fusec.fusion.trace.trace import here
from fusec.fusion.trace.tracer import Tracer

LIBRARIES = ROOTS | sys.stdlib_module_names | {"pandas", "xarray", "polars", "sklearn", "skimage"}
NUMBERS = (int, float, complex)
"""Types of Python's numbers; bool is a constant."""

BY_VALUE = (type(None), bool, str, bytes, type(...), type(NotImplemented))
CALLABLES = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType,
    types.ClassMethodDescriptorType, np.ufunc, operator.itemgetter, operator.attrgetter, operator.methodcaller,
    type(np.sum),
)  # fmt: skip
OPERATORS = tuple(f"__{name}__" for name in "add sub mul truediv pow array_ufunc array_function".split())
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, type(np.linspace))
JOINING = type(np.r_).__base__ or type(np.r_)  # of np.r_ and np.c_
READ = frozenset((types.FunctionType, types.ModuleType, type))
KEPT = functools._lru_cache_wrapper
VALUES = frozenset("datetime decimal fractions ipaddress pathlib re uuid".split())
"""Modules whose objects do not change, and are told apart by their values."""
INERT = frozenset("fusec logging zoneinfo".split())
"""Modules whose objects have nothing that results depend on."""
OF_CYTHON = "_cython_"  # with which modules begin whose objects are functions of Cython
DRAWING = ("numpy.random", "random")
MAX_KNOWN = 256  # constants among the arguments of one function
DICTS = (dict, OrderedDict)
PROTOCOLS = ("__array__", "__dlpack__", "__array_interface__", "__array_struct__", "__cuda_array_interface__")


class KnownConstants(dict[int, tuple[Any, Hashable]]):
    """Constants and their keys by identity, which stays theirs while they are here."""

    def keep(self, given: dict[int, tuple[Any, Hashable]]) -> None:
        """Add some, in place of the others if those are many."""
        if len(self) > MAX_KNOWN:
            self.clear()
        self.update(given)


class Traced:
    """A function made by fuse; a trace that meets it calls the wrapped function."""

    _function: Callable[..., Any]


class Same:
    """A key that belongs to one object only."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def exact(value: Any) -> Hashable | None:
    """A key of this constant only: 0.0 is not -0.0, and 1 is not True. None if it is not a plain constant."""
    kind = type(value)
    if kind in BY_VALUE or kind is int or isinstance(value, np.dtype):
        return kind, value
    if kind is float or kind is complex:
        return kind, repr(value)
    if isinstance(value, np.generic):
        return None if value.dtype.hasobject else (kind, value.dtype, value.tobytes())
    if kind in (slice, range):
        return _all(kind, (value.start, value.stop, value.step))
    if kind in (tuple, list) or is_named_tuple(value):
        return _all(kind, value)
    if kind in DICTS:
        names, items = _all(kind, value), _all(kind, value.values())
        return None if names is None or items is None else (names, items)
    if kind in (set, frozenset):
        found = frozenset(exact(each) for each in value)
        return None if None in found else (kind, found)
    if is_user_made(value):
        return None
    if isinstance(value, Hashable) and kind.__module__.partition(".")[0] in VALUES:
        return kind, value
    return Same(value) if is_fixed(value) else None


def is_lasting(value: object, key: object) -> bool:
    """Whether this key of a constant is right as long as it is the same object. Structured dtypes can change."""
    return isinstance(key, Same) or type(value) in BY_VALUE or (isinstance(value, np.dtype) and value.isbuiltin == 1)


def is_read(value: object) -> bool:
    """Whether a function, module or class is the user's, which calls read anew."""
    return type(value) in READ and not is_of_library(value)


def key_of(value: Any) -> Hashable | None:
    """The same for the keys of a dictionary, where classes are constants."""
    return Same(value) if is_user_made(value) else exact(value)


def is_user_made(value: object) -> bool:
    """Whether a class or module is the user's, so that its attributes are read."""
    return isinstance(value, (type, types.ModuleType)) and not is_of_library(value)


def _all(kind: type, values: Any) -> Hashable | None:
    found = [exact(each) for each in values]
    return None if None in found else (kind, *found)


def is_fixed(value: object) -> bool:
    """Whether a value is identified by its identity: a module, a type, a function of a library."""
    if isinstance(value, (types.ModuleType, type, Enum, np.finfo, np.iinfo, *CALLABLES)):
        return True
    if isinstance(value, (types.FunctionType, KEPT)):
        return is_of_library(value)
    module = type(value).__module__.partition(".")[0]
    return (module in INERT and not isinstance(value, functools.partial)) or module.startswith(OF_CYTHON)


def is_of_library(value: object) -> bool:
    """Whether a function, class or module belongs to a library, which is assumed not to change."""
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return str(name).partition(".")[0] in LIBRARIES


def is_named_tuple(value: object) -> bool:
    """Whether it is a named tuple, which is created from its items."""
    return isinstance(value, tuple) and hasattr(value, "_fields") and hasattr(value, "_make")


def maker_of(kind: Any) -> Callable[[Any], Any]:
    """The function that creates a container from its items, a dictionary from its pairs."""
    found: Callable[[Any], Any] = kind._make if issubclass(kind, tuple) and kind is not tuple else kind
    return found


def copied(value: Any) -> Any:
    """A container with the same items that does not change with the original; immutable ones are returned unchanged."""
    return type(value)(value) if isinstance(value, (list, dict, set)) else value


def is_same(container: Any, before: Any) -> bool:
    """Whether a container has the same items as before."""
    if isinstance(container, (set, frozenset)):
        return bool(container == before)
    if isinstance(container, dict):
        pairs = zip(container.items(), before.items(), strict=False)
        return len(container) == len(before) and all(a == c and b is d for (a, b), (c, d) in pairs)
    return len(container) == len(before) and all(map(operator.is_, container, before))


def changed_key(container: dict[Any, Any], before: dict[Any, Any]) -> Any:
    """The first key of a dictionary whose item was another one before; None if there is none."""
    return next((key for key, value in container.items() if key not in before or before[key] is not value), None)


def is_mutable(value: object) -> bool:
    """Whether a constant may change and still be the same object."""
    return isinstance(value, (list, dict, set)) or (isinstance(value, tuple) and any(map(is_mutable, value)))


def has_tracers(container: Any) -> bool:
    """Whether an item of a container belongs to a trace."""
    return any(isinstance(each, Tracer) for each in (container.values() if isinstance(container, dict) else container))


def is_number(value: object) -> bool:
    """Whether kernels can take a value as a number: a Python or NumPy number, but not a Python bool."""
    return type(value) in NUMBERS or (isinstance(value, np.generic) and value.dtype.kind in "iufcb")


def refuse_random(value: object) -> None:
    """Raise DrawsNumbers for functions that draw random numbers, because they would be drawn only once."""
    names: list[object] = [value.__name__] if isinstance(value, types.ModuleType) else []
    if not names:  # a module is not asked, which may search for what it lacks
        owner = getattr(value, "__self__", None)
        owner = value if owner is None or isinstance(owner, types.ModuleType) else owner
        names = [getattr(owner, "__module__", None), type(owner).__module__]
    for module in DRAWING:
        if any(str(name) == module or str(name).startswith(f"{module}.") for name in names):
            shown = getattr(value, "__name__", type(value).__name__)
            raise DrawsNumbers(shown if shown.startswith(DRAWING) else f"{module}.{shown}").at(here())


class NumPy(types.ModuleType):
    """numpy, numpy.fft or fusec.xp as a traced function sees it. Raises DrawsNumbers for random numbers of NumPy.

    Arrays are traced there, so that what NumPy and fusec.xp have in common is NumPy's.
    """

    def __getattribute__(self, name: str) -> Any:
        origin = origin_of(self)
        if name == "random" and origin is np:
            raise DrawsNumbers("numpy.random").at(here())
        is_shared = origin is not np.fft and name != "random" and hasattr(np, name)
        found = getattr(np if is_shared else origin, name)
        if found is np.fft:
            return FFT
        return CREATION.get(found, found) if isinstance(found, (*FUNCTIONS, JOINING)) else found

    def __eq__(self, other: object) -> bool:
        return self is other or other is origin_of(self)

    def __hash__(self) -> int:
        return hash(origin_of(self))


def origin_of(namespace: NumPy) -> types.ModuleType:
    """The module that a traced function sees as a namespace."""
    return sys.modules[object.__getattribute__(namespace, "__name__")]


NUMPY, FFT, LAZY = map(NumPy, ("numpy", "numpy.fft", "fusec.xp"))


def namespace_of(value: object) -> NumPy | None:
    """What a traced function sees of a module that has NumPy's functions; None for anything else."""
    if not isinstance(value, types.ModuleType):
        return None
    if value is np or value is NUMPY or value is sys.modules.get("cupy"):
        return NUMPY
    return LAZY if value is LAZY or value is sys.modules.get("fusec.xp") else None


def of_lazy_arrays(value: Any) -> Any:
    """A function of fusec.xp as LAZY has it; other objects unchanged."""
    namespace = sys.modules.get("fusec.xp")
    if namespace is None or not isinstance(value, types.FunctionType):
        return value
    name = value.__name__
    return getattr(LAZY, name) if vars(namespace).get(name) is value else value


def has_stand_in(value: object) -> bool:
    """Whether a container, such as a function's defaults, has something of which a traced function sees another."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return any(namespace_of(each) is not None or _is_replaced(each) or has_stand_in(each) for each in items)


def _is_replaced(value: Any) -> bool:
    return isinstance(value, FUNCTIONS) and (value in CREATION or of_lazy_arrays(value) is not value)


def is_array(value: object) -> bool:
    """Whether a value is an array by one of the protocols of other libraries."""
    if isinstance(value, (type, types.ModuleType)):
        return False
    own = getattr(value, "__dict__", ())  # an instance may say it for itself
    return any(name in own or hasattr(type(value), name) for name in PROTOCOLS)


def is_sparse(value: object) -> bool:
    """Whether a value is a sparse matrix, which is none of NumPy's arrays."""
    return all(hasattr(type(value), name) for name in ("toarray", "nnz", "dtype"))


def is_on_device(value: Any) -> bool:
    """Whether an array of another library is not in host memory."""
    try:
        if hasattr(value, "__cuda_array_interface__"):
            return True
    except Exception:  # PyTorch's answer for a tensor that requires a gradient: on the device, but not shared
        return True
    if not hasattr(value, "__dlpack__"):
        return False
    where = getattr(value, "__dlpack_device__", None)
    return where is None or where()[0] != 1  # kDLCPU


def foreign(value: Any, name: str, function: str = "fuse") -> np.ndarray[Any, Any]:
    """The present contents of another library's array, or of another class or byte order; foreign memory is read only.

    Raises UnsupportedArgument, and NotTraceable for a class of arrays with operators of its own.
    """
    found, kind = host_array(value, name, function), type(value)
    if isinstance(value, np.ndarray):
        if any(getattr(kind, each) is not getattr(np.ndarray, each) for each in OPERATORS):
            what = f"'{name}' is {with_article(kind.__name__)}, which has operators of its own"
            raise NotTraceable(what, "pass np.asarray(x), to compute with plain arrays").at()
        if value.dtype.isnative:
            return found
    found = found.view()
    found.flags.writeable = False  # of copies too, where what is written would be lost
    return found
