"""Argument checks of fusec.random outside of kernels; kernels do not check."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from fusec.base.diagnostics import instance_of
from fusec.errors.arguments import BadRange, NotInWord, NotWhole

Number = Any
WORD, SIGNED = (0, (1 << 64) - 1), (-(1 << 63), (1 << 63) - 1)
WIDEST = 1 << 32  # what two words of random bits are spread over


def checks_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """`philox`, whose arguments must fit their words."""

    @wraps(function)
    def checked(key: Number, counter: Number, stream: Number = 0) -> Any:
        for name, value in (("key", key), ("counter", counter), ("stream", stream)):
            whole(value, name, WORD)
        return function(key, counter, stream)

    checked.__fusec_origin__ = function  # type: ignore[attr-defined]
    return checked


def checks_range(function: Callable[..., Any]) -> Callable[..., Any]:
    """`integers`, whose range must hold at least one number and at most 2^32."""

    @wraps(function)
    def checked(key: Number, counter: Number, low: Number, high: Number, stream: Number = 0) -> Any:
        in_range(low, high)
        return function(key, counter, low, high, stream)

    checked.__fusec_origin__ = function  # type: ignore[attr-defined]
    return checked


def whole(value: Number, name: str, bounds: tuple[int, int]) -> None:
    """Raise NotWhole for anything but whole numbers, and NotInWord for numbers out of bounds."""
    low, high = bounds
    if type(value) is int:
        if not low <= value <= high:
            raise NotInWord(name, str(value), *bounds).at()
        return
    if _is_traced(value):
        return
    try:
        found = np.asarray(value)
    except Exception as problem:  # ragged lists, and whatever other libraries raise
        raise NotWhole(name, instance_of(value)).at() from problem
    if not found.size and not hasattr(value, "dtype"):
        return  # an empty list, which NumPy takes for floats
    if found.dtype.kind == "f" and isinstance(value, list | tuple):
        found = np.asarray(value, object)  # NumPy takes 0 and 2**64 - 1 together for floats
    if found.dtype.kind not in "bui":
        if not found.size:
            raise NotWhole(name, f"an array of {found.dtype}").at()
        for each in found.ravel().tolist():
            if found.dtype != object or not isinstance(each, int | np.integer):
                raise NotWhole(name, repr(each)).at()
            whole(int(each), name, bounds)
    elif found.size and found.dtype.kind != "b":
        for extreme in (int(found.min()), int(found.max())):
            whole(extreme, name, bounds)


def in_range(low: Number, high: Number) -> None:
    """Raise BadRange if the range is empty, or wider than 2^32."""
    whole(low, "low", SIGNED)
    whole(high, "high", SIGNED)
    if _is_traced(low) or _is_traced(high):
        return
    ends = np.broadcast_arrays(np.asarray(low, np.int64), np.asarray(high, np.int64))
    count = ends[1].astype(np.uint64) - ends[0].astype(np.uint64)
    wrong = (ends[0] >= ends[1]) | (count > WIDEST)
    if wrong.any():
        at = int(np.argmax(wrong))
        first, last = int(ends[0].ravel()[at]), int(ends[1].ravel()[at])
        narrow = "pass low < high: high itself is never drawn"
        raise BadRange(
            first,
            last,
            narrow
            if first >= last
            else "a range holds at most 2**32 numbers: draw " + "uniform64, or combine the words of philox",
        ).at()


def _is_traced(value: object) -> bool:
    """Whether a fused function is traced, where values are not known."""
    return hasattr(value, "__fusec_tracer__")
