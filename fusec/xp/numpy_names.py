"""NumPy's functions beyond the standard, by their names: recorded where they are traced, else computed at once.

What is not in a table here is refused: a function of NumPy's that were called all the same could write into memory that
arrays share, or give back arrays that are not lazy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from fusec.base.diagnostics import did_you_mean
from fusec.errors.lazy import NoSuchFunction
from fusec.xp.array import WRITES_FIRST, Array
from fusec.xp.calls import change, into
from fusec.xp.recording import eager, record, wrapped
from fusec.xp.refusals import refusing
from fusec.xp.signatures import repeated
from fusec.xp.ufuncs import recorded_ufunc

EAGER = frozenset(
    "apply_along_axis argwhere array2string array_repr array_str bincount compress einsum_path extract"
    " flatnonzero histogram2d histogramdd histogram_bin_edges intersect1d lstsq linalg.eig linalg.lstsq"
    " linalg.tensorinv linalg.tensorsolve mask_indices poly polydiv polyfit polymul real_if_close roots save savetxt"
    " savez savez_compressed setdiff1d setxor1d trim_zeros union1d unique".split()
)
"""Their results depend on values: shapes, dtypes or texts."""

MAKING = frozenset(
    "asanyarray ascontiguousarray asfortranarray bartlett blackman diag_indices frombuffer fromfunction fromiter"
    " geomspace genfromtxt hamming hanning identity indices kaiser loadtxt logspace require tri tril_indices"
    " triu_indices".split()
)  # fmt: skip
"""They make arrays of numbers; of lazy arrays, those that are traced are recorded, others computed at once."""

OF_FORMS = frozenset(
    "broadcast_shapes can_cast common_type iscomplexobj isrealobj min_scalar_type ndim promote_types shape size".split()
)
"""They look at shapes and dtypes alone."""

CHANGING = frozenset(each.__name__ for each in WRITES_FIRST)
"""They change their first argument."""

VIEWS = frozenset("diagonal fliplr flipud ravel rollaxis rot90 swapaxes transpose".split())
"""Functions of one array whose results share its memory."""

PARTS = frozenset("array_split dsplit hsplit split vsplit".split())
"""Functions of one array whose results, in a list, share its memory."""

PLAIN = frozenset(
    "bool_ complexfloating dtype errstate euler_gamma floating generic geterr get_printoptions index_exp inexact"
    " integer intp ndindex number printoptions s_ set_printoptions seterr signedinteger uintp unsignedinteger".split()
)
"""What has nothing to do with arrays."""

BY_KEY = frozenset("c_ mgrid ogrid r_".split())
"""They make arrays of a key, and compute those that are in it."""

RENAMED = {
    "half": "float16", "single": "float32", "double": "float64", "float": "float64", "float_": "float64",
    "csingle": "complex64", "cdouble": "complex128", "complex": "complex128", "complex_": "complex128",
    "cfloat": "complex128", "byte": "int8", "short": "int16", "intc": "int32", "int": "int64", "int_": "int64",
    "long": "int64", "longlong": "int64", "ubyte": "uint8", "ushort": "uint16", "uintc": "uint32", "uint": "uint64",
    "ulong": "uint64", "ulonglong": "uint64", "trapz": "trapezoid", "product": "prod", "cumproduct": "cumprod",
    "in1d": "isin", "row_stack": "vstack", "alltrue": "all", "sometrue": "any", "round_": "round", "NaN": "nan",
    "Inf": "inf", "infty": "inf", "PINF": "inf", "Infinity": "inf", "ndarray": "Array",
}  # fmt: skip
"""Names of C's types, Python's types and older releases of NumPy, and what is meant."""

TABLES = EAGER | MAKING | OF_FORMS | CHANGING | PLAIN | BY_KEY


@cache
def _traced() -> frozenset[str]:
    """The functions that are traced; what traces them is imported when someone asks for the first of them."""
    from fusec.fusion.fuse import LOADED
    from fusec.fusion.trace.tables import FUNCTIONS

    assert LOADED
    return frozenset(FUNCTIONS)


def names(prefix: str = "") -> list[str]:
    """All names that `fallback` finds in a module of NumPy's."""
    module = np if not prefix else getattr(np, prefix.rstrip("."))
    known = {each.removeprefix(prefix) for each in (*_traced(), *TABLES) if each.startswith(prefix)}
    if not prefix:
        known |= {name for name in dir(np) if isinstance(getattr(np, name), np.ufunc)} | {"lib"}
    return sorted(name for name in known if "." not in name and (hasattr(module, name)))


def fallback(name: str, module: str, origin: Any, prefix: str, own: Iterable[str]) -> Any:
    """What a module has of that name beside the standard's functions. Raises NoSuchFunction."""
    found = _found(name, origin, prefix) if name[:1] != "_" else None
    if found is None:
        known = set() if name[:1] == "_" else {*own, *names(prefix)}
        raise NoSuchFunction(name, module, _cure(name, module, origin, known)).at()
    return found


def _cure(name: str, module: str, origin: Any, known: set[str]) -> str:
    """The hint for a missing name."""
    if name[:1] == "_":
        return ""
    if RENAMED.get(name) in known:
        return f"write {module}.{RENAMED[name]}"
    if callable(given := getattr(origin, name, None)) and not isinstance(given, type):
        converting = "where it takes arrays, pass np.asarray(x); xp.asarray(y) makes a lazy array of what it returns"
        return f"call {origin.__name__}.{name}: {converting}"
    return did_you_mean(name, known) or f"dir({module}) lists what there is"


def _found(name: str, origin: Any, prefix: str) -> Any:
    full, given = prefix + name, getattr(origin, name, None)
    if full == "lib":
        path = "lib.stride_tricks.sliding_window_view"
        window = np.lib.stride_tricks.sliding_window_view
        return SimpleNamespace(stride_tricks=StrideTricks(sliding_window_view=_recorded(window, path)))
    if given is None:
        return None
    if isinstance(given, np.ufunc):
        return recorded_ufunc(given)
    if full in BY_KEY:
        return ByKey(given)
    if full in PLAIN or (prefix and isinstance(given, type) and issubclass(given, Exception)):
        return given
    return _recorded(given, full) if full in TABLES or full in _traced() else None


class StrideTricks(SimpleNamespace):
    """The functions of numpy.lib.stride_tricks that make views without strides."""

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        cure = "slices, reshape, broadcast_to and lib.stride_tricks.sliding_window_view make views without strides"
        raise NoSuchFunction(name, "fusec.xp.lib.stride_tricks", cure).at()


class ByKey:
    """An object of NumPy's that makes arrays of a key, such as `r_`."""

    def __init__(self, origin: Any) -> None:
        self._origin = origin

    @refusing
    def __getitem__(self, key: Any) -> Any:
        return eager(self._origin.__getitem__, (key,), {})


def _recorded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of NumPy's that lazy arrays take."""
    run = repeated(_runner(function, name))
    run.__name__ = run.__qualname__ = function.__name__
    run.__doc__ = function.__doc__
    return run


def _runner(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    if name in OF_FORMS:
        return lambda *args, **options: function(*map(_stand_in, args), **options)
    if name in CHANGING:
        return lambda target, *args, **options: change(function, target, args, options)
    if name in VIEWS:
        return lambda x, *args, **options: _lazy(x)._viewed(function, *args, **options)
    if name in PARTS:
        return lambda x, *args, **options: _parts(function, _lazy(x), args, options)

    def run(*args: Any, **options: Any) -> Any:
        if name in EAGER or not _has_lazy((args, *options.values())):
            return eager(function, args, options)
        if "out" in options:
            return into(function, options.pop("out"), args, options)
        return record(function, *args, **options)

    return run


def _lazy(x: Any) -> Array:
    return x if type(x) is Array else wrapped(x)


def _parts(function: Callable[..., Any], x: Array, args: tuple[Any, ...], options: dict[str, Any]) -> list[Array]:
    found = eager(function, (x, *args), options) if x._tape is None else record(function, x, *args, **options)
    return [*found]


def _has_lazy(given: Any) -> bool:
    if isinstance(given, (tuple, list)):
        return any(map(_has_lazy, given))
    return type(given) is Array


def _stand_in(given: Any) -> Any:
    """An array of NumPy's with the shape and dtype of a lazy one, and with hardly any memory."""
    return np.broadcast_to(np.empty((), given.dtype), given.shape) if type(given) is Array else given
