"""The text of a graph of arrays: a line for each value, operands before what uses them; `parse` reads it back.

::

    graph affine(x: float32[n, 4], b: float32[4] donated) {
        %1 = multiply(x, float32(2.0))
        %2 = add(%1, b)
        %3 = fold add(%2) along [1]
        %4 = reshape(%3) to [n]
        return total = %4, y = %2
    }
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.graphs.extents import Shape, Size
from fusec.graphs.nodes import (
    ArrayGraph,
    ArrayInput,
    Broadcast,
    External,
    Fold,
    Map,
    Reshape,
    SizeNumber,
    Slice,
    Transpose,
    Update,
)
from fusec.ir.expr import Const, Expr
from fusec.ir.text import constant_text
from fusec.ir.walk import inner_first


def print_arrays(graph: ArrayGraph) -> str:
    """The graph's text; it ends with a newline."""
    labels: dict[Expr, str] = {}
    lines = list[str]()
    for value in inner_first([value for _, value in graph.outputs]):
        if isinstance(value, ArrayInput):
            labels[value] = value.name
        elif isinstance(value, Const):
            labels[value] = constant_text(value)
        elif isinstance(value, SizeNumber):
            labels[value] = f"size({value.extent})"
        else:
            labels[value] = f"%{len(lines) + 1}"
            lines.append(f"    {labels[value]} = {_operation(value, labels)}")
    results = ", ".join(f"{name} = {labels[value]}" for name, value in graph.outputs)
    head = f"graph {graph.name}({', '.join(map(_input, graph.inputs))}) {{"
    return "\n".join([head, *lines, f"    return {results}", "}"]) + "\n"


def _input(value: ArrayInput) -> str:
    return f"{value.name}: {value.type}{_extents(value.shape)}{' donated' if value.donated else ''}"


def _extents(shape: Sequence[Size]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _operation(value: Expr, labels: dict[Expr, str]) -> str:
    args = ", ".join(labels[each] for each in value.children)
    match value:
        case Map(op, _, dtype):
            return f"{op}({args})" + (f" to {dtype}" if op in ("convert", "bitcast") else "")
        case Slice(_, starts, steps, _, shape):
            return f"slice({args}) {_part(starts, steps, shape)}"
        case Transpose(_, axes):
            return f"transpose({args}) by {_extents(axes)}"
        case Reshape():
            return f"reshape({args}) to {_extents(value.shape)}"
        case Broadcast():
            return f"broadcast({args}) to {_extents(value.shape)}"
        case Fold(op, _, axes):
            return f"fold {op}({args}) along {_extents(axes)}"
        case Update(_, _, starts, steps, extents):
            return f"update({args}) {_part(starts, steps, extents)}"
        case External(function, _, results, at):
            kinds = ", ".join(f"{dtype}{_extents(shape)}" for dtype, shape in results)
            return f"call {function}({args}) as {kinds} result {at}"
    raise AssertionError(f"a graph has no {type(value).__name__}")


def _part(starts: Sequence[Size], steps: Sequence[int], shape: Shape) -> str:
    return f"from {_extents(starts)} by {_extents(steps)} of {_extents(shape)}"
