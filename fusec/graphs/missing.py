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
    "dot": "write x @ y",
    "copy": "values never change: x itself is one",
    "clip": "write g.apply('minimum', g.apply('maximum', x, low), high), where g is the graph",
}


def absent(value: Any, name: str) -> AttributeError:
    """The error for an attribute of a value."""
    if name in FOLDS:
        cure = f"write x.fold('{FOLDS[name]}', axis)"
    elif name in SCANS:
        cure = f"write x.scan('{SCANS[name]}', axis)"
    elif name in TABLE:
        others = ", y" * (TABLE[name].arity - 1)
        cure = f"write g.apply('{name}', x{others}), where g is the graph"
    else:
        cure = OTHERS.get(name) or did_you_mean(name, [each for each in dir(type(value)) if each[0] != "_"])
    hint = f"\nhint: {cure}" if cure else ""
    return AttributeError(f"a value of a graph has no attribute '{name}'{hint}")


def no_operand(given: object, like: DType) -> FusecError:
    """The error for an operand that is neither a value of a graph nor a number that its dtype holds."""
    cure = "pass a value of the graph, or a Python number that the dtype holds"
    if isinstance(given, np.ndarray):
        cure = f"declare an input for it, or write g.array(values, '{like}') for constants, where g is the graph"
    return GraphTypes(f"{given!r} where {like} is expected", cure).at()
