"""What to write for attributes and operands of arrays that values of graphs do not have or take."""

from __future__ import annotations

from typing import Any

import numpy as np

from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import DType
from fusec.base.ops import TABLE
from fusec.errors import FusecError
from fusec.errors.graphs import GraphTypes

CHOOSE = "write g.apply('where', condition, x, y), where g is the graph"
FOLDS = {"max": "maximum", "min": "minimum", "prod": "multiply", "amax": "maximum", "amin": "minimum"}
SCANS = {"cumsum": "add", "cumprod": "multiply"}
OTHERS = {
    "mean": "divide x.sum(axis) by g.number('n').astype(x.dtype), where g is the graph and n the size of the axis",
    "any": "write x.fold('maximum', axis)",
    "all": "write x.fold('minimum', axis)",
    "flatten": "write x.reshape(-1)",
    "ravel": "write x.reshape(-1)",
    "size": "x.shape has the extents, and g.number('n') is a size as a value, where g is the graph",
    **dict.fromkeys(("dot", "matmul"), "write x @ y"),
    **dict.fromkeys(("sum", "reshape", "transpose"), "call the method of the value, as in x.sum(axis)"),
    "copy": "values never change: x itself is one",
    "clip": "write g.apply('minimum', g.apply('maximum', x, low), high), where g is the graph",
}


ANY = "use operators and methods of values, g.apply, or g.call, which calls functions of NumPy, where g is the graph"
OPERATORS = {
    "power": "pow",
    **dict.fromkeys("add subtract multiply divide floor_divide remainder bitwise_and bitwise_or bitwise_xor".split()),
    **dict.fromkeys("left_shift right_shift less less_equal greater greater_equal equal not_equal".split()),
}  # fmt: skip
"""NumPy's functions for operators; ops of other names."""


class UnlikeArrays:
    """What NumPy cannot make an array of: its functions raise GraphTypes, and its numbers leave operators to it."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        name = ufunc.__name__
        is_operator = name in OPERATORS and method == "__call__" and not options
        if is_operator and len(args) == 2 and not isinstance(args[0], UnlikeArrays):
            number = args[0][()] if isinstance(args[0], np.ndarray) else args[0]  # as NumPy passes its numbers
            return args[1]._binary(OPERATORS[name] or name, number, swapped=True)
        raise _not_of_numpy(name)

    def __array_function__(self, function: Any, *_: object) -> Any:
        raise _not_of_numpy(function.__name__)

    def __array__(self, *_: object, **__: object) -> Any:
        cure = "values have no elements before a call of the compiled function; g.array makes one of constants"
        raise GraphTypes("a NumPy array of a value of a graph", cure).at()


def _not_of_numpy(name: str) -> FusecError:
    """The error for a function of NumPy that is given a value of a graph."""
    return GraphTypes(f"np.{name} of a value of a graph", _cure(OPERATORS.get(name) or name) or ANY).at()


def _cure(name: str) -> str | None:
    """What to write for an attribute or function of some name."""
    if name in FOLDS:
        return f"write x.fold('{FOLDS[name]}', axis)"
    if name in SCANS:
        return f"write x.scan('{SCANS[name]}', axis)"
    if name in TABLE:
        return f"write g.apply('{name}', {', '.join('xyz'[: TABLE[name].arity])}), where g is the graph"
    return OTHERS.get(name)


def absent(value: Any, name: str) -> AttributeError:
    """The error for an attribute of a value."""
    cure = _cure(name) or did_you_mean(name, [each for each in dir(type(value)) if each[0] != "_"])
    hint = f"\nhint: {cure}" if cure else ""
    return AttributeError(f"a value of a graph has no attribute '{name}'{hint}")


def no_operand(given: object, like: DType) -> FusecError:
    """The error for an operand that is neither a value of a graph nor a number that its dtype holds."""
    cure = "pass a value of the graph, or a Python number that the dtype holds"
    if isinstance(given, np.ndarray):
        cure = f"declare an input for it, or write g.array(values, '{like}') for constants, where g is the graph"
    return GraphTypes(f"{given!r} where {like} is expected", cure).at()
