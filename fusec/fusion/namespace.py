"""NumPy as an argument of a fused function: arrays that it creates belong to the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.fusion import elementwise, tracer
from fusec.fusion.constants import NUMPY
from fusec.fusion.tables import METHODS
from fusec.fusion.trace import Trace, constant
from fusec.fusion.trace_values import ArrayValue, laid_out


class Namespace:
    """NumPy, except for the functions that create arrays without operands."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        return getattr(NUMPY, name)

    def __eq__(self, other: object) -> bool:
        return other is np or other is NUMPY or (isinstance(other, Namespace) and other._trace is self._trace)

    def __hash__(self) -> int:
        return hash(np)

    def _full(self, shape: Any, value: Any, dtype: Any, order: str = "C") -> Any:
        row = elementwise.known_dtype(dtype)
        filled = self._trace.adapted(tracer._operand(self._trace, value), row)
        seen = laid_out(np.broadcast_to(np.empty(()), shape), row.numpy, order)
        return tracer.made(self._trace, ArrayValue(filled.scalar, seen))

    def zeros(self, shape: Any, dtype: Any = float, order: str = "C", **_: Any) -> Any:
        """np.zeros."""
        return self._full(shape, 0, dtype, order)

    empty = zeros

    def ones(self, shape: Any, dtype: Any = float, order: str = "C", **_: Any) -> Any:
        """np.ones."""
        return self._full(shape, 1, dtype, order)

    def full(self, shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **_: Any) -> Any:
        """np.full."""
        if dtype is None:
            dtype = elementwise.result_type([tracer._operand(self._trace, fill_value)]).numpy
        return self._full(shape, fill_value, dtype, order)

    def asarray(self, given: Any, dtype: Any = None, *, copy: bool | None = None, **_: Any) -> Any:
        """np.asarray."""
        if not isinstance(given, tracer.Tracer):
            found = np.asarray(given, dtype)
            if found.ndim:
                return tracer.made(self._trace, tracer._operand(self._trace, found))
            row = elementwise.known_dtype(found.dtype)
            return tracer.made(self._trace, constant(found[()], row))
        result = tracer.made(self._trace, given._read()) if given._is_scalar else given  # an array of the number
        result = result if dtype is None else result.astype(dtype, copy=False)
        return result.copy() if copy and result is given else result

    def __dir__(self) -> list[str]:
        return dir(np)


METHODS["__array_namespace__"] = Namespace
