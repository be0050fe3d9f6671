"""Which axes a program names by number: what its arrays and its iteration space must have at least."""

from __future__ import annotations

from collections.abc import Iterator

from fusec.ir.expr import Const, Expr
from fusec.ir.loops import At, Moved, Program, Query
from fusec.ir.walk import expressions, operands, statements


def required(program: Program) -> dict[str, int]:
    """Raw array -> the least number of axes the program needs it to have; "" stands for the iteration space."""
    least: dict[str, int] = {}
    for param, count in _mentions(program):
        least[param] = max(least.get(param, 0), count)
    return least


def _mentions(program: Program) -> Iterator[tuple[str, int]]:
    bodies = (program.body, *(function.body for function in program.functions))
    roots: list[Expr] = [root for body in bodies for stmt in statements(body) for root in operands(stmt)]
    for expr in expressions(roots):
        match expr:
            case Query(param, _, Const() as axis):
                value = int(axis.value)
                yield param, value + 1 if value >= 0 else 1 << 30  # no array has an axis before the first
            case Moved(_, axes):
                yield "", max(axes) + 1
            case At(param, index) if len(index) > 1:
                yield param, len(index)
