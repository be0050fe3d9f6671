"""Functions of NumPy's whose results depend on values in shape or dtype: on devices they are computed at once.

They take arrays of fusec's own, which wait for the legacy stream alone. What they do not compute is NotImplemented.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fusec.errors.targets import CudaMathRefused
from fusec.fusion.at_once import choices, counting, indexing, sets
from fusec.fusion.at_once.choices import new
from fusec.fusion.devices import device_linear, recipes
from fusec.runtime import cuda
from fusec.runtime.cuda import CudaArray, solvers


def of(function: Any) -> Callable[..., Any] | None:
    """What computes a function of NumPy's, or a method, on arrays of fusec; None if nothing here does.

    function: a method is a partial function, whose first argument is the name; what writes may be wrapped.
    """
    if isinstance(function, partial):
        return _METHODS.get(function.args[0])
    return _FUNCTIONS.get(function) or _FUNCTIONS.get(getattr(function, "__wrapped__", None))


def _eigenvalues(function: Any, a: CudaArray, has_vectors: bool) -> list[CudaArray]:
    """Eigenvalues, and vectors if wanted, complex ones. Raises LinAlgError, CudaMathMissing, CudaMathRefused."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype.char in "eE":
        function(np.broadcast_to(np.zeros((), a.dtype), a.shape))  # raises what NumPy raises
    if not solvers.has_general_eigenvalues():
        raise CudaMathRefused("cuSOLVER", "find eigenvalues of any matrix", "it is older than that of CUDA 12.8").at()
    dtype = np.result_type(a.dtype, np.complex64)
    made = [new(a, a.shape[:-1], dtype)] + ([new(a, a.shape, dtype)] if has_vectors else [])
    given = [cuda.describe(each, a.stream) for each in (a, *made)]
    recipe = device_linear.general([*map(recipes.form_of, given)], a.device)
    recipes.run(recipe, given, a.device, a.stream)
    return made


def _eig(a: CudaArray) -> Any:
    return tuple(_eigenvalues(np.linalg.eig, a, True))


def _eigvals(a: CudaArray) -> Any:
    return _eigenvalues(np.linalg.eigvals, a, False)[0]


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.linalg.eig: _eig, np.linalg.eigvals: _eigvals, operator.getitem: indexing.getitem,
    operator.setitem: indexing.setitem, np.bincount: counting.bincount,
    np.repeat: counting.repeat,
    np.nonzero: choices.nonzero, np.flatnonzero: choices.flatnonzero,
    np.argwhere: choices.argwhere, np.extract: choices.extract, np.compress: choices.compress,
    np.unique: sets.unique, np.union1d: sets.union, np.intersect1d: sets.intersection,
    np.setdiff1d: sets.difference, np.setxor1d: sets.symmetric_difference,
}  # fmt: skip
_METHODS: dict[str, Callable[..., Any]] = {
    "nonzero": choices.nonzero,
    "repeat": counting.repeat,
    "compress": lambda x, condition, *args, **options: choices.compress(condition, x, *args, **options),
    "tobytes": lambda x, *args, **options: x.numpy().tobytes(*args, **options),
}
