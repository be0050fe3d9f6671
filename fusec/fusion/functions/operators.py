"""Operators of traced arrays: Python's on Python numbers, NumPy's ufuncs on everything else."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fusec.base.dtypes import BOOL
from fusec.errors.fusing import NotFusable
from fusec.frontends.python.arithmetic import PYTHON
from fusec.frontends.python.types import PY_INT
from fusec.fusion.trace import elementwise
from fusec.fusion.trace.numbers import plain
from fusec.fusion.trace.tables import METHODS
from fusec.fusion.trace.trace import constant, here
from fusec.fusion.trace.tracer import Tracer, _operand, made, not_an_operand

_BINARY = {
    "add": ("+", np.add), "sub": ("-", np.subtract), "mul": ("*", np.multiply), "truediv": ("/", np.divide),
    "floordiv": ("//", np.floor_divide), "mod": ("%", np.remainder), "pow": ("**", np.power),
    "lshift": ("<<", np.left_shift), "rshift": (">>", np.right_shift), "and": ("&", np.bitwise_and),
    "or": ("|", np.bitwise_or), "xor": ("^", np.bitwise_xor), "eq": ("==", np.equal), "ne": ("!=", np.not_equal),
    "lt": ("<", np.less), "le": ("<=", np.less_equal), "gt": (">", np.greater), "ge": (">=", np.greater_equal),
}  # fmt: skip
_COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")


def _is_operand(given: Any) -> bool:
    return isinstance(given, (Tracer, bool, int, float, complex, np.generic, np.ndarray, list, tuple))


def _binary(op: str, ufunc: np.ufunc, swapped: bool) -> Callable[[Tracer, Any], Any]:
    def operate(self: Tracer, other: Any) -> Any:
        if not _is_operand(other):
            if op in ("==", "!=") and not self._is_scalar and not hasattr(other, "__array_ufunc__"):
                return _unequal(self, other, op)
            if op in ("==", "!=") or _may_answer(other):
                return NotImplemented
            raise not_an_operand(other, f"{'a number' if self._is_scalar else 'an array'} {op} a value")
        pair = (other, self) if swapped else (self, other)
        left, right = (_operand(self._trace, each) for each in pair)
        if left.is_weak and right.is_weak:
            return made(self._trace, self._trace.computed(PYTHON[op], [left, right]), True)
        if op == "**" and not swapped and self.dtype == np.bool_ and not self._is_scalar and right.kind == PY_INT:
            exponent = other._number("the power of a bool") if isinstance(other, Tracer) else other
            if exponent == 2:
                return np.square(self)  # as NumPy's arrays compute it; the type is another one
        (found,) = elementwise.apply_ufunc(self._trace, ufunc, [left, right])
        return made(self._trace, found, True)

    return operate


def _may_answer(other: Any) -> bool:
    """Whether a value is of a class that may have an operator of its own for arrays."""
    return type(other).__module__ != "builtins"


def _unequal(array: Tracer, other: Any, op: str) -> Any:
    """An array == or != None or a text: the same answer for each element. Raises NotFusable for other objects."""
    if not isinstance(other, (type(None), str, bytes)):
        cure = "compare numbers; `is` tests for identity"
        raise NotFusable(f"an array {op} a value of type {type(other).__name__}", cure).at(here())
    answer = array._trace.combined(constant(op == "!=", BOOL).scalar, [array._read()])
    return made(array._trace, answer, True)


def _in_place(op: str, ufunc: np.ufunc) -> Callable[[Tracer, Any], Any]:
    plain = _binary(op, ufunc, False)

    def operate(self: Tracer, other: Any) -> Any:
        if self._is_scalar:
            return plain(self, other)
        if not _is_operand(other):
            return NotImplemented
        return METHODS["__array_ufunc__"](self._trace, ufunc, "__call__", (self, other), {"out": (self,)})

    return operate


def _unary(function: Callable[[Any], Any], ufunc: np.ufunc) -> Callable[[Tracer], Any]:
    def operate(self: Tracer) -> Any:
        value = self._read()
        if value.is_weak:
            return made(self._trace, self._trace.computed(function, [value]), True)
        (found,) = elementwise.apply_ufunc(self._trace, ufunc, [value])
        return made(self._trace, found, True)

    return operate


def _power(self: Tracer, other: Any, modulo: Any = None) -> Any:
    """`self ** other`, and pow() of three integers."""
    if modulo is None:
        return _binary("**", np.power, False)(self, plain(other))  # known exponents are products
    values = [_operand(self._trace, each) for each in (self, other, modulo) if _is_operand(each)]
    if len(values) != 3 or not all(each.is_weak for each in values):
        return NotImplemented
    return made(self._trace, self._trace.computed(pow, values), True)


for _name, (_op, _ufunc) in _BINARY.items():
    setattr(Tracer, f"__{_name}__", _binary(_op, _ufunc, False))
    if _name not in _COMPARES:
        setattr(Tracer, f"__r{_name}__", _binary(_op, _ufunc, True))
        setattr(Tracer, f"__i{_name}__", _in_place(_op, _ufunc))
_OTHERS: dict[str, Callable[..., Any]] = {
    "pow": _power,
    "neg": _unary(operator.neg, np.negative), "pos": _unary(operator.pos, np.positive),
    "invert": _unary(operator.invert, np.invert), "abs": _unary(abs, np.absolute),
    "divmod": lambda self, other: _divided(self, other), "rdivmod": lambda self, other: _divided(other, self),
}  # fmt: skip


def _divided(left: Any, right: Any) -> Any:
    """divmod(); of two Python numbers, two of them."""
    if all(isinstance(each, (int, float)) and not isinstance(each, np.generic) for each in (left, right)):
        return left // right, left % right
    return np.divmod(left, right)


def _product(swapped: bool) -> Callable[[Tracer, Any], Any]:
    """A matrix product."""

    def operate(self: Tracer, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return np.matmul(other, self) if swapped else np.matmul(self, other)

    return operate


def _product_in_place(self: Tracer, other: Any) -> Any:
    """`self @= other`."""
    if not _is_operand(other):
        return NotImplemented
    return METHODS["_product"](np.matmul, (self, other), {"out": self, "axes": [(-2, -1)] * 3})


_OTHERS |= {"matmul": _product(False), "rmatmul": _product(True), "imatmul": _product_in_place}
for _name, _operator in _OTHERS.items():
    setattr(Tracer, f"__{_name}__", _operator)
