"""Other libraries' functions by the names of fusec's ops; what is not installed is left out."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fusec.base.dtypes import BY_NAME
from tools.accuracy.functions import Row

Function = Callable[..., Any]
SAME = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh".split()
INVERSES = {f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh".split()}


@cache
def installed() -> dict[str, str]:
    """Version of each peer that is installed."""
    found = {}
    for name in ("numpy", "scipy", "jax", "torch", "numba"):
        try:
            found[name] = importlib.import_module(name).__version__
        except ImportError:
            continue
    return found


def evaluators(row: Row, dtype: str) -> dict[str, Callable[..., np.ndarray]]:
    """Peers that have the function in this dtype."""
    sources = {"numpy": _numpy, "jax": _jax, "torch": _torch, "numba": _numba}
    found = {}
    for name, source in sources.items():
        function = source().get(row.op) if name in installed() else None
        if function is not None and _accepts(function, row.arity, dtype):
            found[name] = _of_row(function)
    return found


def _accepts(function: Function, arity: int, dtype: str) -> bool:
    """Whether a peer's function takes this dtype and gives it back."""
    one = BY_NAME[dtype].numpy.type(0.5)
    try:
        return bool(np.asarray(function(*[np.array([one] * 4)] * arity)).dtype == one.dtype)
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return False


def _of_row(function: Function) -> Callable[..., np.ndarray]:
    def evaluate(_: Row, *arguments: np.ndarray) -> np.ndarray:
        return np.asarray(function(*arguments))

    return evaluate


@cache
def _scipy() -> dict[str, Function]:
    """What NumPy has not."""
    if "scipy" not in installed():
        return {}
    special: Any = importlib.import_module("scipy.special")
    names = "erf erfc erfcx erfinv erfcinv gamma i0 i1 j0 j1 y0 y1 exp10".split()
    found = {name: getattr(special, name) for name in names}
    return {
        **found,
        "lgamma": special.gammaln,
        "sigmoid": special.expit,
        "normcdf": special.ndtr,
        "normcdfinv": special.ndtri,
    }


@cache
def _numpy() -> dict[str, Function]:
    own = {
        name: getattr(np, name)
        for name in (*SAME, "cbrt", "sinc", "hypot", "logaddexp", "logaddexp2", "deg2rad", "rad2deg")
    }
    own.update({op: getattr(np, name) for op, name in INVERSES.items()})
    return {**_scipy(), **own, "atan2": np.arctan2, "pow": np.power}


@cache
def _torch() -> dict[str, Function]:
    torch: Any = importlib.import_module("torch")
    table = {name: getattr(torch, name) for name in (*SAME, *INVERSES)}
    table.update({name: getattr(torch, name) for name in "sigmoid erf erfc erfinv lgamma sinc rsqrt i0".split()})
    table.update(
        {name: getattr(torch, name) for name in "pow atan2 hypot logaddexp logaddexp2 deg2rad rad2deg".split()}
    )
    special = torch.special
    table.update(i1=special.i1, normcdf=special.ndtr, normcdfinv=special.ndtri)
    table["softplus"] = torch.nn.functional.softplus
    table.update({f"{a}{b}": getattr(special, f"bessel_{a}{b}") for a in "jy" for b in "01"})
    return {op: _through_torch(torch, function) for op, function in table.items()}


def _through_torch(torch: Any, function: Function) -> Function:
    return lambda *arguments: function(*(torch.from_numpy(each) for each in arguments)).numpy()


@cache
def _jax() -> dict[str, Function]:
    jax: Any = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    numpy, special = jax.numpy, importlib.import_module("jax.scipy.special")
    table = {
        name: getattr(numpy, name)
        for name in (*SAME, "cbrt", "sinc", "hypot", "logaddexp", "logaddexp2", "deg2rad", "rad2deg")
    }
    table.update({op: getattr(numpy, name) for op, name in INVERSES.items()})
    table.update({name: getattr(special, name) for name in "erf erfc erfinv gamma i0 i1".split()})
    table.update(lgamma=special.gammaln, normcdf=special.ndtr, normcdfinv=special.ndtri)
    table.update(sigmoid=jax.nn.sigmoid, softplus=jax.nn.softplus, rsqrt=jax.lax.rsqrt)
    table.update(atan2=numpy.arctan2, pow=numpy.power)
    return {op: jax.jit(function) for op, function in table.items()}


@cache
def _numba() -> dict[str, Function]:
    numba: Any = importlib.import_module("numba")
    names = {name: name for name in (*SAME, *INVERSES, "erf", "erfc", "gamma", "lgamma", "atan2", "hypot", "pow")}
    table = {op: getattr(math, name) for op, name in names.items()}
    return {
        op: _vectorised(numba, function, 2 if op in ("atan2", "hypot", "pow") else 1) for op, function in table.items()
    }


def _vectorised(numba: Any, function: Function, arity: int) -> Function:
    """A loop over elements that numba compiles for each dtype."""

    @cache
    def compiled() -> Function:
        if arity == 1:
            return numba.vectorize(lambda x: function(x))  # type: ignore[no-any-return]
        return numba.vectorize(lambda x, y: function(x, y))  # type: ignore[no-any-return]

    return lambda *arguments: compiled()(*arguments)
