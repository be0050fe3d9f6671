"""Linear algebra in fused functions: LAPACK computes between kernels, vector norms are kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.errors.fusing import NotFusable
from fusec.fusion.functions.creation import asarray
from fusec.fusion.functions.libraries import LibraryFunction
from fusec.fusion.functions.numpy_source import on_traced
from fusec.fusion.functions.reducing import normalised
from fusec.fusion.functions.routines import reshaped, trace_of, traced
from fusec.fusion.trace.conditions import require_extents
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.trace import here
from fusec.fusion.trace.tracer import Tracer

_ARRAYS = {
    1: ("cholesky", "det", "eigh", "eigvalsh", "inv", "qr", "slogdet", "svd", "svdvals"), 2: ("solve",),
}  # fmt: skip
"""Functions of LAPACK, by how many operands they have."""
_NEVER_RAISE = ("det", "slogdet")
_OF_NUMPY = ("cross", "diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot")
_OPERANDS = ("a", "x", "b")
_CALLS: dict[str, Callable[..., Any]] = {
    name: LibraryFunction(
        getattr(np.linalg, name), f"np.linalg.{name}", tuple(range(operands)), _OPERANDS, name not in _NEVER_RAISE
    )
    for operands, names in _ARRAYS.items()
    for name in names
}


# --- what is composed of others ---------------------------------------------------------------------------------------


def inverses_or_nan(x: Any) -> Any:
    """The inverses of matrices, nan for those of singular ones."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        if x.ndim > 2:
            return np.stack([inverses_or_nan(each) for each in x])
        return np.full_like(x, np.nan, dtype=np.result_type(x, np.float32))


_inverse_or_nan = LibraryFunction(inverses_or_nan, "np.linalg.cond")


def cond(x: Any, p: Any = None) -> Any:
    """np.linalg.cond."""
    if x.ndim > 1 and x.size == 0:
        raise np.linalg.LinAlgError("cond is not defined on empty arrays")
    if p is None or p in (2, -2):
        values = _CALLS["svd"](x, compute_uv=False)
        most, least = values[..., 0], values[..., -1]
        found = least / most if p == -2 else most / least
    else:
        inverse = _inverse_or_nan(x)
        found = norm(x, p, (-2, -1)) * norm(inverse, p, (-2, -1))
        found = found.astype(inverse.real.dtype)
    is_known = np.isnan(found) & ~np.isnan(x).any(axis=(-2, -1))
    return np.where(is_known, found.dtype.type(np.inf), found)[()]


_ranks = on_traced(np.linalg.matrix_rank, {"svd": _CALLS["svd"], "asarray": asarray})


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # noqa: N803
    """np.linalg.matrix_rank; that of a vector or a number is whether one of its elements is not 0."""
    if np.ndim(A) < 2:
        return np.any(A != 0).astype(int)
    return _ranks(A, tol, hermitian, rtol=rtol)


def _chain_order(arrays: Any) -> Any:
    """Which products of NumPy's multi_dot come first; other extents may want another order."""
    for each in arrays:
        if isinstance(each, Tracer):
            require_extents(each, range(each.ndim))
    order = np.linalg.multi_dot.__wrapped__.__globals__["_multi_dot_matrix_chain_order"]  # type: ignore[attr-defined]
    return order([getattr(each, "_seen", each) for each in arrays])


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002 - NumPy's name
    """np.linalg.norm."""
    x = x if x.dtype.kind in "fc" else x.astype(float)
    axes = normalised(axis, x.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        return _root_of_squares(x, axes, keepdims)
    if len(axes) == 1:
        return _of_vectors(x, ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _of_matrices(x, ord, axes, keepdims)


def _root_of_squares(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
    return np.sqrt(squares.sum(axis=axes, keepdims=keepdims))


def _of_vectors(x: Any, order: Any, axis: int, keepdims: bool) -> Any:
    if order is None or order == 2:
        return _root_of_squares(x, (axis,), keepdims)
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order '{order}' for vectors")
    if order == 0:
        return (x != 0).astype(np.abs(x).dtype).sum(axis=axis, keepdims=keepdims)
    size = np.abs(x)
    if abs(order) == np.inf:
        return size.max(axis=axis, keepdims=keepdims) if order > 0 else size.min(axis=axis, keepdims=keepdims)
    if order == 1:
        return size.sum(axis=axis, keepdims=keepdims)
    total = (size**order).sum(axis=axis, keepdims=keepdims)
    return total ** np.reciprocal(order, dtype=total.dtype)


def _of_matrices(x: Any, order: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes
    if row == column:
        raise ValueError("Duplicate axes given.")
    if order in (None, "fro", "f"):
        return _root_of_squares(x, axes, keepdims)
    if order in (1, -1, np.inf, -np.inf):
        along, then = (row, column) if abs(order) == 1 else (column, row)
        total = np.abs(x).sum(axis=along, keepdims=True)
        found = total.max(axis=then, keepdims=True) if order > 0 else total.min(axis=then, keepdims=True)
    elif order in (2, -2, "nuc"):
        values = FUNCTIONS["linalg.svd"](np.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        found = {2: values.max, -2: values.min, "nuc": values.sum}[order](axis=-1)
        found = np.expand_dims(found, tuple(sorted(axes)))
    else:
        raise ValueError("Invalid norm order for matrices.")
    return found if keepdims else np.squeeze(found, axes)[()]


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:  # noqa: A002
    """np.linalg.vector_norm."""
    axes = normalised(axis, x.ndim)
    rest = [at for at in range(x.ndim) if at not in axes]
    flat = np.moveaxis(x, axes, range(len(axes)))
    flat = reshaped(flat, (-1, *(x.shape[at] for at in rest))) if len(axes) != 1 else flat
    found = norm(flat, ord, 0)
    return reshaped(found, tuple(1 if at in axes else x.shape[at] for at in range(x.ndim))) if keepdims else found


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:  # noqa: A002
    """np.linalg.matrix_norm."""
    return norm(x, ord, (-2, -1), keepdims)


def _numpys(name: str) -> Callable[..., Any]:
    """A function of numpy.linalg that numpy has too; these have their own axes."""

    def call(*args: Any, **options: Any) -> Any:
        known = FUNCTIONS.get(name)
        if name == "outer" and any(traced(each, trace_of(*args)).ndim != 1 for each in args):
            raise ValueError("Input arrays must be one-dimensional")
        if name in ("diagonal", "trace"):
            options = {"axis1": -2, "axis2": -1, **options}
        if name == "vecdot" or name == "matmul":
            return getattr(np, name)(*args, **options)
        if known is None:
            raise NotFusable(f"np.linalg.{name}", "call it before or after the fused function").at(here())
        return known(*args, **options)

    return call


def _as_it_is(a: Any) -> tuple[Any, Callable[[Any], Any]]:
    """An array, and what makes results be of its kind."""
    return asarray(a), lambda found: found


_IN_SOURCE: dict[str, Callable[..., Any]] = {
    "linalg.pinv": on_traced(np.linalg.pinv, {"svd": _CALLS["svd"], "asarray": asarray, "_makearray": _as_it_is}),
    "linalg.matrix_power": on_traced(np.linalg.matrix_power, {"inv": _CALLS["inv"], "asanyarray": asarray}),
    "linalg.multi_dot": on_traced(
        np.linalg.multi_dot, {"asanyarray": asarray, "_multi_dot_matrix_chain_order": _chain_order}
    ),
    "linalg.matrix_rank": matrix_rank, "linalg.cond": cond,
}  # fmt: skip
FUNCTIONS.update(
    {f"linalg.{name}": each for name, each in _CALLS.items()}
    | _IN_SOURCE
    | {f"linalg.{name}": _numpys(name) for name in _OF_NUMPY}
    | {
        "linalg.norm": norm, "linalg.vector_norm": vector_norm, "linalg.matrix_norm": matrix_norm,
    }
)  # fmt: skip
