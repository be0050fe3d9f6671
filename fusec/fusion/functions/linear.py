"""Linear algebra in fused functions: LAPACK computes between kernels, vector norms are kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.errors.fusing import NotFusable
from fusec.fusion.functions.libraries import LibraryFunction
from fusec.fusion.functions.reducing import normalised
from fusec.fusion.functions.routines import reshaped, trace_of, traced
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.trace import here

_ARRAYS = {
    1: ("cholesky", "cond", "det", "eigh", "eigvalsh", "inv", "matrix_rank", "pinv", "qr", "slogdet", "svd", "svdvals"),
    2: ("solve",),
}  # by how many operands they have
_NEVER_RAISE = ("det", "slogdet")
_OF_NUMPY = ("cross", "diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot")
_OPERANDS = ("a", "x", "A", "b", "tol", "rcond", "rtol")


def matrix_power(a: Any, n: Any) -> Any:
    """np.linalg.matrix_power; the first power is the array itself."""
    is_square = a.ndim > 1 and a.shape[-1] == a.shape[-2]
    return a if is_square and n == 1 else _matrix_power(a, n)


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


_matrix_power = LibraryFunction(np.linalg.matrix_power, "np.linalg.matrix_power", (0,), ("a",), may_raise=True)
FUNCTIONS.update(
    {
        f"linalg.{name}": LibraryFunction(
            getattr(np.linalg, name), f"np.linalg.{name}", tuple(range(operands)), _OPERANDS, name not in _NEVER_RAISE
        )
        for operands, names in _ARRAYS.items()
        for name in names
    }
    | {f"linalg.{name}": _numpys(name) for name in _OF_NUMPY}
    | {
        "linalg.multi_dot": LibraryFunction(np.linalg.multi_dot, "np.linalg.multi_dot", (0,), ("arrays",)),
        "linalg.matrix_power": matrix_power, "linalg.norm": norm, "linalg.vector_norm": vector_norm,
        "linalg.matrix_norm": matrix_norm,
    }
)  # fmt: skip
