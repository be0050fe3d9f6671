"""Writes to chosen elements on devices: each element of an array takes what is written to it, one after the other.

The places to which is written are sorted, in the order of the writes where they are equal, and a kernel finds what
belongs to each element. So the order of additions is NumPy's, and of several values for one element the last one stays.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fusec.fusion.functions.composing import called
from fusec.fusion.functions.routines import traced
from fusec.fusion.trace.tables import CREATION, FUNCTIONS
from fusec.kernels.elementwise_kernel import ElementwiseKernel

_STEPS = {"stored": "v", "add": "total + v", "subtract": "total - v", "multiply": "total * v"}


@cache
def _kernel(step: str) -> ElementwiseKernel:
    """What writes to each element in turn. p: sorted places; k: which value belongs to each."""
    body = f"""
        long long count = p.shape()[0], low = 0, high = count;
        while (low < high) {{
            long long middle = (low + high) / 2;
            if (p[middle] < i) low = middle + 1; else high = middle;
        }}
        T total = x;
        for (; low < count && p[low] == i; low++) {{
            T v = w[k[low]];
            total = {_STEPS[step]};
        }}
        y = total;
    """
    return ElementwiseKernel("T x, raw int64 p, raw int64 k, raw T w", "T y", body, f"{step}_in_turn")


def changed(function: Any, x: Any, *args: Any, **options: Any) -> Any:
    """What a function that writes to chosen elements makes of an array; None if kernels do not compute it."""
    ufunc = getattr(function, "__self__", None)
    name = ufunc.__name__ if isinstance(ufunc, np.ufunc) else "stored"
    if name not in _STEPS or len(args) != 2:
        return None
    with x._trace.extents.plainly():
        values, own = traced(args[1], x._trace), _places(x)
        if function is np.put_along_axis:
            axis = options["axis"]
            places = np.take_along_axis(own.reshape(-1) if axis is None else own, args[0], axis)
        elif function is np.put:
            if options.get("mode", "raise") != "raise" or not values.size:
                return None
            places = own.reshape(-1)[traced(args[0], x._trace).reshape(-1)]
            values = values.reshape(-1)[traced(CREATION[np.arange](places.size), x._trace) % values.size]
        else:
            places = own[args[0]]
        if name != "stored" and FUNCTIONS["result_type"](x, args[1]) != x.dtype:
            return None
        if not places.size or (values.dtype.kind == "c" and x.dtype.kind != "c"):
            return None if places.size else x
        return _in_turn(name, x, places, values)


def _places(x: Any) -> Any:
    """The place of each element in C order."""
    return traced(CREATION[np.arange](x.size), x._trace).reshape(x.shape)


def _in_turn(name: str, x: Any, places: Any, values: Any) -> Any:
    """What an array becomes. Raises ValueError."""
    try:
        values = np.broadcast_to(values.reshape(values.shape[max(0, values.ndim - places.ndim) :]), places.shape)
    except ValueError:
        shapes = f"{values.shape} could not be broadcast to indexing result of shape {places.shape}"
        raise ValueError(f"shape mismatch: value array of shape {shapes}") from None
    places = places.reshape(-1)
    order = np.argsort(places, kind="stable")
    return called(_kernel(name), (x, places[order], order, values.astype(x.dtype).reshape(-1)), {})
