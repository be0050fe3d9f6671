"""NumPy's functions that round to decimals, on traced arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.frontends.python.types import storage
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions.routines import copied
from fusec.fusion.trace import tracer
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace_values import ArrayValue, laid_out
from fusec.ir.expr import apply


def round_(x: Any, decimals: int = 0, out: Any = None) -> Any:
    """np.round."""
    options = {} if out is None else {"out": out}
    if x.dtype.kind == "b" and decimals:
        raise TypeError("cannot round truth values to decimals")
    if x.dtype.kind in "iu" and decimals >= 0:
        return np.positive(x, **options)
    if x.dtype.kind in "iu":
        scale = 10.0**-decimals
        found = (np.rint(np.true_divide(x, scale)) * scale).astype(x.dtype)
        return found if out is None else np.positive(found, out=out)
    if x.dtype.kind == "c":
        found = _of_parts(x, decimals)
        return found if out is None else np.positive(found, out=out)
    if decimals == 0:
        return np.rint(x, **options)
    scale = 10.0 ** abs(decimals)
    to, back = (np.multiply, np.divide) if decimals > 0 else (np.divide, np.multiply)
    found = back(np.rint(to(x, scale)), scale, **options)
    return copied(found, "A", x) if x.ndim and out is None else found


def fix(x: Any, out: Any = None) -> Any:
    """np.fix."""
    return np.trunc(x, **({} if out is None else {"out": out}))


def _of_parts(x: Any, decimals: int) -> Any:
    """Complex numbers whose parts are rounded."""
    trace, dtype = x._trace, storage(x._read().kind)
    parts = [round_(each, decimals)._read() for each in (x.real, x.imag)]
    scalar = Scalar(dtype, apply("complex", *(each.expr for each in parts)))
    return tracer.made(trace, ArrayValue(scalar, laid_out(x._seen, dtype.numpy)), True)


FUNCTIONS.update({"round": round_, "around": round_, "fix": fix})
METHODS.update({"round": round_})
