"""Functions of NumPy's whose results depend on values in shape or dtype: on devices they are computed at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.base import dtypes
from fusec.errors.targets import CudaMathRefused
from fusec.fusion.devices import device_linear, recipes
from fusec.runtime import cuda
from fusec.runtime.cuda import CudaArray, solvers


def of(function: Any) -> Callable[..., Any] | None:
    """What computes a function of NumPy's on arrays of fusec; None if nothing here does."""
    return _FUNCTIONS.get(function)


def _new(like: CudaArray, shape: Sequence[int], dtype: Any) -> CudaArray:
    row = dtypes.from_numpy(np.dtype(dtype))
    assert row is not None, "kernels write known dtypes"
    return cuda.empty(tuple(shape), row, None, like.device, like.stream)


def _eigenvalues(function: Any, a: CudaArray, has_vectors: bool) -> list[CudaArray]:
    """Eigenvalues, and vectors if wanted, complex ones. Raises LinAlgError, CudaMathMissing, CudaMathRefused."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype.char in "eE":
        function(np.broadcast_to(np.zeros((), a.dtype), a.shape))  # raises what NumPy raises
    if not solvers.has_general_eigenvalues():
        raise CudaMathRefused("cuSOLVER", "find eigenvalues of any matrix", "it is older than that of CUDA 12.8").at()
    dtype = np.result_type(a.dtype, np.complex64)
    made = [_new(a, a.shape[:-1], dtype)] + ([_new(a, a.shape, dtype)] if has_vectors else [])
    given = [cuda.describe(each, a.stream) for each in (a, *made)]
    recipe = device_linear.general([*map(recipes.form_of, given)], a.device)
    recipes.run(recipe, given, a.device, a.stream)
    return made


def _eig(a: CudaArray) -> Any:
    return tuple(_eigenvalues(np.linalg.eig, a, True))


def _eigvals(a: CudaArray) -> Any:
    return _eigenvalues(np.linalg.eigvals, a, False)[0]


_FUNCTIONS: dict[Any, Callable[..., Any]] = {np.linalg.eig: _eig, np.linalg.eigvals: _eigvals}
