"""Graphs of array operations, made by calls instead of a trace: for libraries that use fusec as their compiler.

>>> from fusec import graph
>>> affine = graph.Graph("affine")
>>> x, b = affine.input("x", "float32", ("n", 3)), affine.input("b", "float32", (3,))
>>> affine.output((x * 2 + b).sum(axis=1), "total")
>>> print(affine)
graph affine(x: float32[n, 3], b: float32[3]) {
    %1 = multiply(x, float32(2.0))
    %2 = add(%1, b)
    %3 = fold add(%2) along [1]
    %4 = reshape(%3) to [n]
    return total = %4
}
>>> affine.compile()(np.ones((2, 3), "float32"), np.arange(3, dtype="float32"))
array([9., 9.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fusec.fusion  # noqa: F401 - it compiles graphs
from fusec.graphs.building import Graph, GraphValue
from fusec.graphs.extents import Extent, size
from fusec.graphs.parse import parse_arrays

__all__ = ["Extent", "Graph", "GraphValue", "parse", "size"]


def parse(text: str, functions: Mapping[str, Callable[..., object]] | None = None) -> Graph:
    """The graph of a text, as str(graph) prints it. Raises GraphSyntax, GraphTypes and GraphShapes with the place.

    functions: those that the graph calls, by their names in the text; calls of NumPy's need none.

    >>> from fusec import graph
    >>> print(graph.parse("graph double(x: int32[n]) { %1 = add(x, x) return y = %1 }"))
    graph double(x: int32[n]) {
        %1 = add(x, x)
        return y = %1
    }
    """
    from fusec.fusion.graphs.graph_libraries import NumpyCalls

    return Graph.of(parse_arrays(text, NumpyCalls(functions or {})))


def __dir__() -> list[str]:
    """The public names, and Python's own."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
