"""Arguments of calls, whether their arrays are on the host or on a device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from fusec.arguments.operands import Array, host_array, is_lent, is_number
from fusec.arguments.operands import dtype_of as row_of
from fusec.base import locks
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order

LOOKS = 256  # dtypes and shapes of device arrays that are remembered


def array_of(x: object, name: str, param: str = "x") -> tuple[object, Array]:
    """The argument as a kernel takes it, and as an array to inspect; numbers are converted to arrays.

    Of an array on a device the second has dtype and shape alone.
    """
    if type(x) is np.ndarray and x.dtype.isnative:
        return x, x
    if isinstance(x, (np.ndarray, list, tuple)) or is_number(x):
        made = np.asarray(x) if is_number(x) else host_array(x, param, name)
        if made.dtype.kind in "SUV":
            row_of(made, param, name)  # refuses NumPy's scalars that are no numbers
        return made, made
    with locks.lock:
        from fusec.runtime import cuda

    seen = cuda.look(x)
    if seen is None and cuda.is_device_array(x):
        found = cuda.describe(x)
        seen = found.dtype, found.shape
    if seen is None:
        made = host_array(x, param, name)
        return (x if is_lent(x) else made), made
    return x, _standing_for(*seen)


def in_one_row(given: Any, array: Array) -> Any:
    """An argument with its elements along one axis, in the same memory; itself if they do not lie in C order.

    given, array: as of `array_of`. Of arrays on devices, those of libraries that kernels know are viewed so.
    """
    if given is array:
        return array.reshape(-1) if array.flags.c_contiguous else array
    with locks.lock:
        from fusec.runtime import cuda

    source = cuda.source_of(given)
    if source is None or source.deliver is not None or array.ndim < 2:  # a view of a JAX array would be a copy
        return given
    dense = strides_in_order(array.shape, range(array.ndim), array.dtype.itemsize)
    return given.ravel() if source.strides(given) == dense else given


@lru_cache(LOOKS)
def _standing_for(row: DType, shape: tuple[int, ...]) -> Array:
    """An array to look at, of one element."""
    return np.broadcast_to(np.empty((), row.numpy), shape)
