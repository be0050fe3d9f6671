"""Sums of products along windows on devices: np.convolve and np.correlate, each element by a loop of one thread."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fusec.fusion.functions.composing import called
from fusec.fusion.functions.routines import trace_of, traced
from fusec.fusion.trace.tables import CREATION, FUNCTIONS
from fusec.kernels.elementwise_kernel import ElementwiseKernel

_MODES = ("valid", "same", "full")


@cache
def _kernel() -> ElementwiseKernel:
    """The sums at places in the longer row where the shorter one begins, which may be outside."""
    body = """
        long long first = max(-start, 0LL), end = min((long long)v.shape()[0], (long long)a.shape()[0] - start);
        T total = 0;
        for (long long j = first; j < end; j++) total = total + a[start + j] * v[j];
        y = total;
    """
    return ElementwiseKernel("int64 start, raw T a, raw T v", "T y", body, "windows")


def convolve(a: Any, v: Any, mode: Any = "full") -> Any:
    """np.convolve; None for what NumPy refuses."""
    return _summed(a, v, mode, is_turned=True)


def correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    """np.correlate; None for what NumPy refuses."""
    return _summed(a, v, mode, is_turned=False)


def _summed(a: Any, v: Any, mode: Any, is_turned: bool) -> Any:
    trace = trace_of(a, v)
    one, other = traced(a, trace), traced(v, trace)
    if mode not in _MODES or any(each.ndim > 1 or not each._seen.size for each in (one, other)):
        return None
    with trace.extents.plainly():
        kind = FUNCTIONS["result_type"](one, other)
        one, other = (each.reshape(-1).astype(kind) for each in (one, other))
        other = other[::-1] if is_turned else np.conj(other) if kind.kind == "c" else other
        is_swapped = one.shape[0] < other.shape[0]
        if is_swapped:
            one, other = (other[::-1], one[::-1]) if is_turned else (other, one)
        long, short = one.shape[0], other.shape[0]
        before = {"valid": 0, "same": short // 2, "full": short - 1}[mode]
        extent = {"valid": long - short + 1, "same": long, "full": long + short - 1}[mode]
        start = traced(CREATION[np.arange](-before, extent - before), trace)
        found = called(_kernel(), (start, one, other), {})
        return found[::-1] if is_swapped and not is_turned else found
