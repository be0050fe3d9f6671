"""NumPy's functions that compare arrays as wholes, on traced arrays; variances without nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.fusion.functions.creation import array
from fusec.fusion.functions.reducing import REDUCTIONS, normalised
from fusec.fusion.functions.routines import reshaped, trace_of, traced
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.tracer import made

FEW = 64  # values that a thread of a device compares with an element


def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    """np.allclose."""
    return _truth(FUNCTIONS["isclose"](a, b, rtol, atol, equal_nan))


def _truth(found: Any) -> Any:
    """Whether all are true: returned as it is, it is a bool of Python, as these functions of NumPy return it."""
    every: Any = np.all(found)
    result = made(every._trace, every._read(), True)
    result._memory.is_python = True
    return result


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """np.array_equal: False for different shapes, else the same."""
    trace = trace_of(a1, a2)
    a1, a2 = traced(a1, trace), traced(a2, trace)
    if a1.shape != a2.shape:
        return False
    same = a1 == a2
    return _truth(same | ((a1 != a1) & (a2 != a2)) if equal_nan else same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """np.array_equiv."""
    trace = trace_of(a1, a2)
    a1, a2 = traced(a1, trace), traced(a2, trace)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return False
    return _truth(a1 == a2)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Any:
    """np.isin: every element is compared with every value; on devices, many values are sorted and searched."""
    del assume_unique, kind
    trace = trace_of(element, test_elements)
    element, values = traced(element, trace), traced(test_elements, trace)
    is_searched = trace.device != "cpu" and values._seen.size > FEW and element.dtype == values.dtype
    found = _is_among(element, values) if is_searched else np.any(element[..., None] == reshaped(values, -1), axis=-1)
    return array(~found if invert else found, order="C")


def _is_among(element: Any, values: Any) -> Any:
    """Whether elements are equal to one of some values."""
    with element._trace.extents.plainly():
        ordered = np.sort(values.reshape(-1))
        place = np.minimum(np.searchsorted(ordered, element), ordered.shape[0] - 1)
        return ordered[place] == element


def _of_numbers(name: str) -> Callable[..., Any]:
    """np.nanvar or np.nanstd: nan where no more numbers are than ddof."""

    def reduce(
        x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
        where: Any = True, mean: Any = None, correction: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        ddof = ddof if correction is np._NoValue else correction
        if x.dtype.kind not in "fc":
            return REDUCTIONS[name](x, axis, dtype, out, ddof, keepdims, where=where, mean=mean)
        axis = normalised(axis, x.ndim)
        numbers = ~np.isnan(x) if where is True or where is np._NoValue else ~np.isnan(x) & where
        found = REDUCTIONS[name](x, axis, dtype, None, ddof, keepdims, where=numbers, mean=mean)
        count = REDUCTIONS["sum"](numbers, axis, keepdims=keepdims)
        found = np.where(count <= ddof, np.nan, found)[()]
        if out is None:
            return found
        out[...] = found
        return out

    return reduce


FUNCTIONS.update(
    {
        "allclose": allclose, "array_equal": array_equal, "array_equiv": array_equiv, "isin": isin,
        "nanvar": _of_numbers("var"), "nanstd": _of_numbers("std"),
    }
)  # fmt: skip
