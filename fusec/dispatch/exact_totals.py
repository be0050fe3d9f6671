"""Exact sums and products of integers without a width, to find those that wrap."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fusec.base.dtypes import DType, from_numpy
from fusec.base.source import Span
from fusec.errors.checks import TotalWraps

NAMES = {"add": "sum", "multiply": "product"}
HALF = 32  # bits: sums of so many of each element fit 64


def check_totals(
    name: str, op: str, values: np.ndarray[Any, Any], axes: tuple[int, ...] | None, span: Span | None
) -> None:
    """Raise TotalWraps if a sum or a product of integers exceeds their dtype; other totals are accepted.

    values: what is combined, in the dtype of the totals. axes: along which, None for all.
    """
    dtype = from_numpy(values.dtype)
    if dtype is None or not dtype.is_integer or op not in NAMES or not values.size:
        return
    exact = np.asarray(_sums(values, axes) if op == "add" else _products(values, axes), dtype=object)
    _compare(name, f"the {NAMES[op]} of {values.size // exact.size} elements", exact, dtype, span)


class RunningOrder(NamedTuple):
    """The order of running totals."""

    axis: int
    is_exclusive: bool  # elements do not count towards their own total
    is_reverse: bool


def check_running(name: str, op: str, values: np.ndarray[Any, Any], order: RunningOrder) -> None:
    """The same for running totals."""
    dtype = from_numpy(values.dtype)
    assert dtype is not None, "kernels made the values"
    axis, is_exclusive, is_reverse = order
    if values.size:
        ufunc = np.add if op == "add" else np.multiply
        ordered = (np.flip(values, axis) if is_reverse else values).astype(object)
        exact = ufunc.accumulate(ordered, axis)
        if is_exclusive:
            exact = np.insert(np.delete(exact, -1, axis), 0, 0, axis)
        _compare(name, f"the running {NAMES[op]}", np.flip(exact, axis) if is_reverse else exact, dtype, None)


def _compare(name: str, total_of: str, exact: np.ndarray[Any, Any], dtype: DType, span: Span | None) -> None:
    """Raise TotalWraps for the first exact total that a dtype does not hold."""
    info = np.iinfo(dtype.numpy)
    wraps = np.asarray((exact < info.min) | (exact > info.max), bool)
    if wraps.any():
        at = tuple(map(int, np.unravel_index(int(wraps.argmax()), wraps.shape)))
        total = int(exact[at])
        shown = f" is {total}," if abs(total) >> 128 == 0 else " is"
        wrapped = int(np.asarray(total % (1 << dtype.bits), np.uint64).astype(f"u{dtype.nbytes}").view(dtype.numpy))
        element = str(at) if len(at) > 1 else str(at[0] if at else 0)
        raise TotalWraps(name, total_of + shown, dtype.name, str(wrapped), element).at(span)


def _sums(values: np.ndarray[Any, Any], axes: tuple[int, ...] | None) -> Any:
    """Exact, whatever the dtype."""
    if values.dtype.itemsize * 8 <= HALF:
        return values.sum(axes, np.int64).astype(object)
    high, low = values >> HALF, values & (1 << HALF) - 1
    wide = values.dtype.type
    return high.sum(axes, wide).astype(object) * (1 << HALF) + low.sum(axes, wide).astype(object)


def _products(values: np.ndarray[Any, Any], axes: tuple[int, ...] | None) -> Any:
    return np.multiply.reduce(values.astype(object), axes)
