"""The median, by selection: NumPy's partition finds the middle elements without sorting the others."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from fusec.arguments.annotations import Arrays, Axes
from fusec.arguments.operands import Array, host_array, scalars_of, wrapper_of
from fusec.arguments.scalars import flag
from fusec.base.dtypes import FLOAT64, STORAGE_FLOATS, compute_type
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import normalised
from fusec.dispatch.spec import CallOptions
from fusec.errors.arguments import TypeMismatch
from fusec.library.dates import Dated, is_dated, output_of
from fusec.library.documentation import built_in
from fusec.library.dtype_rules import asked, ordered, row_of

__all__ = ["median"]


@built_in
def median(x: Arrays, axis: Axes = None, out: Any = None, *, keepdims: bool = False) -> Any:
    """The middle element in sorted order, or the mean of the two middle elements; nan if an element is nan.

    Integers give float64. out: of floats or complex numbers. The work is NumPy's partition, on one thread and for
    arrays in host memory.
    """
    given, _ = array_of(x, "median")
    array = host_array(given, "x", "median")  # refuses arrays on a device
    if is_dated(array.dtype):
        return scalars_of(
            Dated("median", array.dtype).run((array,), out, CallOptions(axis, flag(keepdims, "keepdims", "median")))[0]
        )
    row = ordered(array.dtype, "median")
    result = row if row.is_float else FLOAT64
    axes = normalised("median", axis, array.shape)
    kept = [along for along in range(array.ndim) if along not in axes]
    rows = array.transpose(*kept, *axes).reshape(
        *(array.shape[along] for along in kept), prod(array.shape[along] for along in axes)
    )
    values = _middle(rows.astype(compute_type(row).numpy) if row in STORAGE_FLOATS else rows).astype(result.numpy)
    if flag(keepdims, "keepdims", "median"):
        values = np.expand_dims(values, axes)
    if out is None:
        wrap = wrapper_of((given,))
        return scalars_of(values) if wrap is None else wrap(values)
    target = output_of(values.shape, out, "median")
    row = row_of(target.dtype, "median", "out")
    if asked("median", result, (None, target.dtype)) != row:
        reason, cure = f"the medians are {result}", f"pass an array of {result}, or one of complex numbers"
        raise TypeMismatch("median", "out", row.name, result.name, reason, cure).at()
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
