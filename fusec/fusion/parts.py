"""Real and imaginary parts of traced arrays: views of complex ones, which are read and written through them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from fusec.base.dtypes import real_type
from fusec.frontends.python.values import Scalar
from fusec.fusion.routines import full_like, scalar_function
from fusec.fusion.tables import FUNCTIONS
from fusec.fusion.trace import constant
from fusec.fusion.trace_values import ArrayValue, Step
from fusec.fusion.tracer import Tracer, made
from fusec.ir.expr import apply


class Part(Tracer):
    """A part of a complex array. whole: the array; name: real or imag."""

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


Part.__name__ = Part.__qualname__ = "ndarray"  # in messages of Python's and NumPy's


def _part(name: str) -> Callable[..., Any]:
    def part(x: Any) -> Any:
        value = x._read()
        if value.is_weak:
            return made(x._trace, x._trace.computed(attrgetter(name), [value]), True)
        if x.dtype.kind == "c":
            return scalar_function(name)(x) if x._is_scalar else Part(x, name)
        if name == "real":
            return x
        found = made(x._trace, constant(0, value.dtype), True) if x._is_scalar else full_like(x, 0, order="A")
        found._seen.flags.writeable = False
        return found

    return part


FUNCTIONS.update({name: _part(name) for name in ("real", "imag")})
