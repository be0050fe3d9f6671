"""Random reductions of functions as texts, and what functools.reduce makes of them."""

from __future__ import annotations

import ast
import functools
import itertools
import operator
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

COMBINED = ("{a} + {b}", "{a} * {b}", "{a} & {b}", "{a} | {b}", "{a} ^ {b}", "min({a}, {b})", "max({a}, {b})")
LEAVES = ("x", "y", "1", "3", "x", "y")


def expression(random: Random, leaves: int) -> str:
    """An expression over x and y: arithmetic, bits, comparisons, choices."""
    if leaves <= 1:
        return random.choice(LEAVES)
    count = random.randint(1, leaves - 1)
    a, b = expression(random, count), expression(random, leaves - count)
    match random.randrange(3):
        case 0:
            return f"({a} {random.choice(('+', '-', '*', '&', '|', '^'))} {b})"
        case 1:
            return f"({a} if x > y else {b} + 0 * {expression(random, 1)})"
    return f"np.maximum(x, {a} ^ {b})"


def functions(random: Random) -> tuple[str, str]:
    """The functions of a reduction, as texts: what is mapped, part by part, and how each part combines."""
    parts = [(expression(random, random.randint(1, 5)), random.choice(COMBINED)) for _ in range(random.randint(1, 4))]
    mapped = ", ".join(f"x * 0 + {each}" for each, _ in parts)
    combined = ", ".join(op.format(a=f"a[{at}]", b=f"b[{at}]") for at, (_, op) in enumerate(parts))
    return f"lambda x, y: ({mapped},)", f"lambda a, b: ({combined},)"


def in_python(mapping: str, combining: str, arrays: tuple[np.ndarray, ...], axis: int) -> list[tuple]:
    """The totals along an axis, in C order. Raises OverflowError where NumPy refuses a number for its dtype.

    A choice has one type here, np.where's, so that the numbers of both ways must fit it; one of two Python numbers is
    known only as the kernel runs, and all that it may be must fit the dtype that it meets.
    """
    names = {"np": SimpleNamespace(maximum=_maximum), "chosen": _chosen}
    mapped = eval(compile(_Choices().visit(ast.parse(mapping, mode="eval")), "<map>", "eval"), names)
    combined = eval(combining, {})
    length = arrays[0].shape[axis]
    rows = zip(*(np.moveaxis(each, axis, -1).reshape(-1, length) for each in arrays), strict=True)
    with np.errstate(all="ignore"):
        return [functools.reduce(combined, map(mapped, *row)) for row in rows]


class _Choices(ast.NodeTransformer):
    """Calls in place of `a if test else b`."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.Call:
        args = [self.visit(each) for each in (node.test, node.body, node.orelse)]
        return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name("chosen", ast.Load()), args, []), node))


class _Number:
    """A Python integer that is known as a kernel runs. ways: what it may be."""

    __array_ufunc__ = None  # NumPy's scalars leave operators to this class

    def __init__(self, value: int, ways: frozenset[int]) -> None:
        self.value, self.ways = value, ways

    def beside(self, other: Any) -> Any:
        """The number as an operand of another. Raises OverflowError."""
        if not isinstance(other, np.generic):
            return self.value
        return {way: other.dtype.type(way) for way in self.ways}[self.value]


def _ways(number: Any) -> frozenset[int]:
    return number.ways if isinstance(number, _Number) else frozenset((number,))


def _operator(operation: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Any, Any], Any]:
    def apply(number: _Number, other: Any) -> Any:
        operands = (number.beside(other), other.value if isinstance(other, _Number) else other)
        found = operation(*reversed(operands)) if swapped else operation(*operands)
        if isinstance(found, np.generic):
            return found
        pairs = itertools.product(number.ways, _ways(other))
        return _Number(found, frozenset(operation(b, a) if swapped else operation(a, b) for a, b in pairs))

    return apply


for _name in ("add", "sub", "mul", "and", "or", "xor"):
    _operation = getattr(operator, f"__{_name}__")
    setattr(_Number, f"__{_name}__", _operator(_operation, False))
    setattr(_Number, f"__r{_name}__", _operator(_operation, True))


def _maximum(left: np.generic, right: Any) -> Any:
    return np.maximum(left, right.beside(left) if isinstance(right, _Number) else right)


def _chosen(test: bool, *ways: Any) -> Any:
    typed = [each for each in ways if isinstance(each, np.generic)]
    if not typed:
        return _Number(int(getattr(ways[not test], "value", ways[not test])), frozenset().union(*map(_ways, ways)))
    kind = np.result_type(*typed).type
    return [each.beside(typed[0]) if isinstance(each, _Number) else kind(each) for each in ways][not test]
