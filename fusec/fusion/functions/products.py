"""Products of vectors and matrices in fused functions, which BLAS computes between kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from fusec.fusion.functions.libraries import LibraryFunction
from fusec.fusion.functions.routines import reshaped, trace_of, traced
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.tracer import Tracer

A_B = ("a", "b")
GUFUNCS = frozenset(name for name, each in vars(np).items() if isinstance(each, np.ufunc) and each.signature)
"""The ufuncs of whole vectors and matrices."""


def _of_ufunc(ufunc: np.ufunc, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """np.matmul, vecdot, matvec, vecmat: a call of a ufunc of whole vectors and matrices."""
    if len(args) > ufunc.nin:
        args, options = args[: ufunc.nin], {**options, "out": args[ufunc.nin]}
    return LibraryFunction(ufunc, f"np.{ufunc.__name__}", tuple(range(ufunc.nin)))(*args, **options)


def _or_multiplied(function: Callable[..., Any]) -> Callable[..., Any]:
    """A product that multiplies if one of its operands is a number."""
    of_arrays = LibraryFunction(function, f"np.{function.__name__}", (0, 1), A_B)

    @wraps(of_arrays, assigned=(), updated=())
    def product(a: Any, b: Any, out: Any = None) -> Any:
        if not np.ndim(a) or not np.ndim(b):
            pair = [_as_array(each) for each in (a, b)]
            return np.multiply(*pair, order="C", **({} if out is None else {"out": out}))
        return of_arrays(a, b, **({} if out is None else {"out": out}))

    return product


def _as_array(given: Any) -> Any:
    """An operand whose dtype counts even if it is a number of Python."""
    return given.astype(given.dtype) if isinstance(given, Tracer) else np.asarray(given)[()]


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """np.outer."""
    trace = trace_of(a, b)
    one, other = (reshaped(traced(each, trace), -1) for each in (a, b))
    return np.multiply(one[:, None], other[None, :], **({} if out is None else {"out": out}))


FUNCTIONS.update(
    {
        "dot": _or_multiplied(np.dot), "inner": _or_multiplied(np.inner), "outer": outer,
        "vdot": LibraryFunction(np.vdot, "np.vdot", (0, 1), A_B),
        "tensordot": LibraryFunction(np.tensordot, "np.tensordot", (0, 1), A_B),
    }
)  # fmt: skip
METHODS.update({"dot": FUNCTIONS["dot"], "_product": _of_ufunc})
