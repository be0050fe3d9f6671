"""Sums and products of integers as they are without a width, to find those that wrap."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.dtypes import from_numpy
from fusec.errors.checks import TotalWraps
from fusec.source import Span

NAMES = {"add": "sum", "multiply": "product"}
HALF = 32  # bits: sums of so many of each element fit 64


def check_totals(name: str, op: str, values: np.ndarray[Any, Any], axes: tuple[int, ...] | None, span: Span) -> None:
    """Raise TotalWraps if a sum or a product of integers is beyond their dtype; others are left alone.

    values: what is combined, in the dtype of the totals. axes: along which, None for all.
    """
    dtype = from_numpy(values.dtype)
    if dtype is None or not dtype.is_integer or op not in NAMES or not values.size:
        return
    exact = np.asarray(_sums(values, axes) if op == "add" else _products(values, axes), dtype=object)
    info = np.iinfo(values.dtype)
    wraps = np.asarray((exact < info.min) | (exact > info.max), bool)
    if wraps.any():
        at = tuple(map(int, np.unravel_index(int(wraps.argmax()), wraps.shape)))
        total, count = int(exact[at]), values.size // exact.size
        shown = f" is {total}," if abs(total) >> 128 == 0 else " is"
        wrapped = int(np.asarray(total % (1 << dtype.bits), np.uint64).astype(f"u{dtype.nbytes}").view(values.dtype))
        what = f"the {NAMES[op]} of {count} elements{shown}"
        element = str(at) if len(at) > 1 else str(at[0] if at else 0)
        raise TotalWraps(name, what, dtype.name, str(wrapped), element).at(span)


def _sums(values: np.ndarray[Any, Any], axes: tuple[int, ...] | None) -> Any:
    """Exact, whatever the dtype."""
    if values.dtype.itemsize * 8 <= HALF:
        return values.sum(axes, np.int64).astype(object)
    high, low = values >> HALF, values & (1 << HALF) - 1
    wide = values.dtype.type
    return high.sum(axes, wide).astype(object) * (1 << HALF) + low.sum(axes, wide).astype(object)


def _products(values: np.ndarray[Any, Any], axes: tuple[int, ...] | None) -> Any:
    return np.multiply.reduce(values.astype(object), axes)
