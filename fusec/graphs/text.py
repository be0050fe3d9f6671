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

import json
import re
from base64 import b64encode
from collections.abc import Sequence

from fusec.frontends.grammar_tables import GRAMMARS, load
from fusec.graphs.extents import Shape, Size
from fusec.graphs.nodes import (
    Accumulated,
    ArrayGraph,
    ArrayInput,
    Bounded,
    Broadcast,
    External,
    Fold,
    Inside,
    Literal,
    Map,
    Near,
    Positions,
    Reshape,
    SizeNumber,
    Slice,
    Strided,
    Take,
    Transpose,
    Update,
)
from fusec.ir.expr import Const, Expr
from fusec.ir.text import constant_text
from fusec.ir.walk import inner_first

MAX_SHOWN = 32
"""How many constants an array is written as; those of larger ones are bytes in base64, little-endian and in C order."""


def print_arrays(graph: ArrayGraph) -> str:
    """The graph's text; it ends with a newline."""
    labels: dict[Expr, str] = {}
    lines = list[str]()
    for value in inner_first([value for _, value in graph.outputs]):
        if isinstance(value, ArrayInput):
            labels[value] = quoted(value.name)
        elif isinstance(value, Const):
            labels[value] = constant_text(value)
        elif isinstance(value, SizeNumber):
            labels[value] = f"size({quoted(str(value.extent))})"
        elif isinstance(value, Near):
            labels[value] = f"near {value.offset} along {value.axis} as {value.mode}"
        elif isinstance(value, Inside):
            labels[value] = f"within {labels[value.value]}"
        else:
            labels[value] = f"%{len(lines) + 1}"
            lines.append(f"    {labels[value]} = {_operation(value, labels)}")
    results = ", ".join(f"{quoted(name)} = {labels[value]}" for name, value in graph.outputs)
    head = f"graph {quoted(graph.name)}({', '.join(map(_input, graph.inputs))}) {{"
    return "\n".join([head, *lines, f"    return {results}", "}"]) + "\n"


def _input(value: ArrayInput) -> str:
    return f"{quoted(value.name)}: {value.type}{_extents(value.shape)}{' donated' if value.donated else ''}"


def _extents(shape: Sequence[Size]) -> str:
    return quoted(f"[{', '.join(map(str, shape))}]")


def quoted(text: str) -> str:
    """A text whose names that are words of the grammar have quotation marks."""
    words = load("graph", GRAMMARS["graph"]).words
    return re.sub(r"[^\W\d]\w*", lambda found: json.dumps(found[0]) if found[0] in words else found[0], text)


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
        case Accumulated(op, _, axis):
            return f"scan {op}({args}) along [{axis}]"
        case Update(_, _, starts, steps, extents):
            return f"update({args}) {_part(starts, steps, extents)}"
        case Strided(_, starts, steps, _, shape):
            return f"strided({args}) {_part(starts, [each for row in steps for each in row], shape)}"
        case Positions(axis, _, shape):
            return f"positions along [{axis}] of {_extents(shape)}"
        case Bounded(_, extent, axis):
            return f"bounded({args}) to {_extents([extent])} along [{axis}]"
        case Literal(data, dtype, shape):
            if len(data) > MAX_SHOWN * dtype.nbytes:
                return f'array {dtype} "{b64encode(data).decode()}" to {_extents(shape)}'
            return f"array({', '.join(map(constant_text, value.elements))}) to {_extents(shape)}"
        case Take(array, outside, index):
            places = ", ".join(labels[each] for each in index)
            return f"take({labels[array]} at {places}) of {_extents(value.shape)} else {labels[outside]}"
        case External("@"):
            return f"matmul({args})"
        case External(function, _, results, at):
            kinds = ", ".join(f"{dtype}{_extents(shape)}" for dtype, shape in results)
            name = quoted(function) if function.isidentifier() else json.dumps(function)
            return f"call {name}({args}) as {kinds} result {at}"
    raise AssertionError(f"a graph has no {type(value).__name__}")


def _part(starts: Sequence[Size], steps: Sequence[int], shape: Shape) -> str:
    return f"from {_extents(starts)} by {_extents(steps)} of {_extents(shape)}"
