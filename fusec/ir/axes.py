"""The axes that a program names by number, and the distance of an index from the element's position on each axis."""

from __future__ import annotations

from collections.abc import Iterator

from fusec.ir.expr import Apply, Const, Expr
from fusec.ir.loops import At, Moved, Program, Query
from fusec.ir.walk import bodies_of, expressions, roots_of


def required(program: Program) -> dict[str, int]:
    """Raw array -> the least number of axes that the program needs; "" stands for the iteration space."""
    least: dict[str, int] = {}
    for param, count in _mentions(program):
        least[param] = max(least.get(param, 0), count)
    return least


def _mentions(program: Program) -> Iterator[tuple[str, int]]:
    for expr in expressions(roots_of(*bodies_of(program))):
        match expr:
            case Query(param, _, Const() as axis):
                value = int(axis.value)
                yield param, value + 1 if value >= 0 else 1 << 30  # no array has an axis before the first
            case Moved(_, axes):
                yield "", max(axes) + 1
            case At(param, index) if len(index) > 1:
                yield param, len(index)


def knows_axes(program: Program) -> bool:
    """Whether a program asks for more of the iteration space than the number of an element, and of all elements."""
    found = expressions(roots_of(*bodies_of(program)))
    return any(isinstance(each, Query) and not each.param and each.what not in ("index", "size") for each in found)


def position_of(expr: Expr) -> tuple[int, int] | None:
    """The axis and the distance of an element's coordinate that a constant shifts."""
    match expr:
        case Query("", "coordinate", Const(value=axis)):
            return int(axis), 0
        case Apply("add", (Query("", "coordinate", Const(value=axis)), Const(value=distance))):
            return int(axis), int(distance)
    return None


def distances_of(index: tuple[Expr, ...]) -> tuple[int, ...] | None:
    """The distance of an index from the element's position, for every axis in order."""
    found = [position_of(part) for part in index]
    if any(part is None or part[0] != axis for axis, part in enumerate(found)):
        return None
    return tuple(part[1] for part in found if part is not None)
