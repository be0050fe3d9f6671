"""Real and imaginary parts of traced arrays, and views of their bits: the arrays are written through them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from fusec.base.dtypes import DType, real_type
from fusec.errors.fusing import NotFusable
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions.routines import full_like, scalar_function
from fusec.fusion.trace import elementwise
from fusec.fusion.trace.converted import in_other_order
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import bare, constant, here, widened
from fusec.fusion.trace.trace_values import ArrayValue, Step
from fusec.fusion.trace.tracer import Tracer, made
from fusec.ir.expr import Expr, apply, scalar_type


class ComplexPart(Tracer):
    """A part of a complex array. whole: the array; name: real or imag."""

    __slots__ = ("_name", "_whole")

    def __init__(self, whole: Tracer, name: str) -> None:
        def step(array: Any) -> Any:
            return getattr(array, name)

        super().__init__(whole._trace, whole._memory, (*whole._steps, step), step(whole._seen))
        self._whole, self._name = whole, name

    def _read(self) -> ArrayValue:
        value = self._whole._read()
        kind = real_type(value.dtype)
        return ArrayValue(Scalar(kind, apply(self._name, value.expr)), self._seen)

    def _put(self, value: ArrayValue) -> None:
        whole = self._whole._read()
        parts = {name: apply(name, whole.expr) for name in ("real", "imag")} | {self._name: value.expr}
        scalar = Scalar(whole.dtype, apply("complex", parts["real"], parts["imag"]))
        self._whole._put(self._trace.combined(scalar, [whole, value]))

    def _view(self, step: Step, is_scalar: bool = False) -> Tracer:
        return FUNCTIONS[self._name](self._whole._view(step, is_scalar))  # type: ignore[no-any-return]


class Bits(ComplexPart):
    """An array whose bits are read as numbers of another dtype of the same size."""

    __slots__ = ()

    def __init__(self, whole: Tracer, dtype: np.dtype[Any]) -> None:
        def step(array: Any) -> Any:
            return array.view(dtype)

        Tracer.__init__(self, whole._trace, whole._memory, (*whole._steps, step), step(whole._seen))
        self._whole = whole

    def _read(self) -> ArrayValue:
        value, kind = self._whole._read(), elementwise.known_dtype(self.dtype)
        return ArrayValue(Scalar(kind, _cast(value.expr, value.dtype, kind)), self._seen)

    def _put(self, value: ArrayValue) -> None:
        kind = elementwise.known_dtype(self._whole.dtype)
        cast = ArrayValue(Scalar(kind, _cast(value.expr, value.dtype, kind)), value.phantom)
        self._whole._put(self._trace.combined(cast.scalar, [cast]))

    def _view(self, step: Step, is_scalar: bool = False) -> Tracer:
        return Bits(self._whole._view(step, is_scalar), self.dtype)


def _cast(expr: Expr, given: DType, wanted: DType) -> Expr:
    """The bits of a number as a number of another dtype, both in the types that compute them."""
    stored = expr if scalar_type(expr) == given else apply("convert", expr, target=given)
    return widened(apply("bitcast", stored, target=wanted), wanted)


def _refuse_other_order(x: Tracer) -> None:
    """Raise UnsupportedDtype for the bits of an argument in another byte order, or of a copy: its numbers are read."""
    trace, memory = x._trace, x._memory
    leaf = None if memory.value is None else trace.leaves.get(bare(memory.value.expr))  # type: ignore[call-overload]
    buffer = memory.buffer if leaf is None else leaf.buffer
    if buffer is not None and buffer.kind == "argument" and buffer.place in trace.swapped:
        raise in_other_order(trace, buffer.place)


def _viewed(x: Tracer, dtype: Any = None, type: Any = None) -> Tracer:  # noqa: A002 - NumPy's name
    """x.view; of another dtype, if its items have the same size."""
    if dtype is not None:
        _refuse_other_order(x)
    if dtype is None or dtype == x.dtype:
        return x if x._is_scalar else x._view(lambda array: array.view())
    given, wanted = (elementwise.known_dtype(np.dtype(each)) for each in (x.dtype, dtype))
    if type is not None or given.nbytes != wanted.nbytes or {given.kind, wanted.kind} & {"bool", "complex"}:
        raise NotFusable("x.view(...)", "convert with x.astype, or view before the fused function").at(here())
    if x._is_scalar:
        value = x._read()
        return made(x._trace, ArrayValue(Scalar(wanted, _cast(value.expr, given, wanted)), value.phantom), True)
    return Bits(x, wanted.numpy)


for _each in (Bits, ComplexPart):
    _each.__name__ = _each.__qualname__ = "ndarray"  # in messages of Python's and NumPy's


def _part(name: str) -> Callable[..., Any]:
    def part(x: Any) -> Any:
        value = x._read()
        if value.is_weak:
            return made(x._trace, x._trace.computed(attrgetter(name), [value]), True)
        if x.dtype.kind == "c":
            return scalar_function(name)(x) if x._is_scalar else ComplexPart(x, name)
        if name == "real":
            return x
        found = made(x._trace, constant(0, value.dtype), True) if x._is_scalar else full_like(x, 0, order="A")
        found._seen = found._seen.view()
        found._seen.flags.writeable = False
        return found

    return part


METHODS["view"] = _viewed
FUNCTIONS.update({name: _part(name) for name in ("real", "imag")})
