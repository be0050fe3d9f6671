"""The median, by selection: NumPy's partition finds the elements in the middle without sorting the others."""

from __future__ import annotations

from math import prod

import numpy as np

from fusec import dtypes
from fusec.dtypes import FLOAT64, STORAGE_FLOATS, compute_type
from fusec.errors.arguments import OutShapeMismatch, UnsupportedDtype
from fusec.errors.reductions import NotReducible
from fusec.operands import Array, cure_for, host_array, wrapper_of
from fusec.planned import briefly
from fusec.reductions.arguments import array_of
from fusec.reductions.binding import Axis, normalised

__all__ = ["median"]


@briefly
def median(x: object, axis: Axis = None, out: object = None, *, keepdims: bool = False) -> object:
    """The element in the middle of those of each total in order, or the mean of two; nan if one of them is nan.

    Integers give float64. The work is NumPy's partition, on one thread and for arrays in host memory.
    """
    given, _ = array_of(x, "median")
    array = host_array(given, "x", "median")  # refuses arrays on a device
    row = dtypes.from_numpy(array.dtype)
    if row is None:
        raise UnsupportedDtype("median", "x", str(array.dtype), cure_for(array.dtype)).at()
    if row.is_complex:
        raise NotReducible("median", row.name, "complex numbers have no order; pass abs(x), or a part").at()
    result = row if row.is_float else FLOAT64
    axes = normalised("median", axis, array.shape)
    kept = [along for along in range(array.ndim) if along not in axes]
    rows = array.transpose(*kept, *axes).reshape(
        *(array.shape[along] for along in kept), prod(array.shape[along] for along in axes)
    )
    values = _middle(rows.astype(compute_type(row).numpy) if row in STORAGE_FLOATS else rows).astype(result.numpy)
    if keepdims:
        values = np.expand_dims(values, axes)
    if out is None:
        wrap = wrapper_of((given,))
        return values if wrap is None else wrap(values)
    target = host_array(out, "out", "median")
    if target.shape != values.shape:
        raise OutShapeMismatch("median", "out", target.shape, values.shape).at()
    target[...] = values
    return out


def _middle(rows: Array) -> Array:
    """The medians of the last axis."""
    count = rows.shape[-1]
    kind = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float64)
    if count == 0:
        return np.full(rows.shape[:-1], np.nan, kind)
    low, high = (count - 1) // 2, count // 2
    ordered = np.partition(rows, (low, high, count - 1), axis=-1)  # nan comes last
    with np.errstate(all="ignore"):
        below, above = ordered[..., low].astype(kind), ordered[..., high].astype(kind)
        found = below if low == high else np.divide(np.add(below, above), 2, dtype=kind)
    last = ordered[..., -1]
    return np.where(last != last, kind.type(np.nan), found)
