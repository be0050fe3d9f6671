"""Unroll and jam: combine elements of several rows into one piece of work, so that they share their loads."""

from __future__ import annotations

from collections.abc import Callable

from fusec.base.dtypes import INT64
from fusec.ir.axes import distances_of
from fusec.ir.expr import Apply, Const, Expr, const
from fusec.ir.loops import At, Declare, Element, Load, Local, Moved, Program, Query, Store
from fusec.ir.walk import Body, certain, declared_names, expressions, map_expressions, operands, renamed, rewriter


def unroll_and_jam(program: Program, axis: int, rows: int) -> Program | None:
    """The program for an element and the ones after it along an axis; None if it has branches.

    Requires: one that `peel_borders` made, whose raw arrays are not written.
    Ensures: every element gets what it got; what several read from the same place is loaded once.
    """
    if not all(isinstance(stmt, Declare | Store) for stmt in program.body):
        return None
    body: Body = ()
    for row in range(rows):
        mine = renamed(program.body, f"_row{row}")[0] if row else program.body
        body += map_expressions(mine, rewriter(_moved(axis, row)))
    names = {param.name for param in program.params} | {function.name for function in program.functions}
    shared = _with_loads_shared(body, names | declared_names(body))
    return Program(program.name, program.params, shared, program.functions, program.source)


def loads_of(body: Body) -> int:
    """The number of different neighbours that the statements load."""
    seen: set[Expr] = set()
    return sum(_is_neighbour(expr) for stmt in body for expr in expressions(operands(stmt), seen))


def _moved(axis: int, distance: int) -> Callable[[Expr], Expr]:
    """How an expression of one element becomes that of another, further along an axis."""

    def change(expr: Expr) -> Expr:
        match expr:
            case Query("", "coordinate", Const(value=along)) if int(along) == axis:
                return Apply("add", (expr, const(distance, INT64)), INT64)
            case Apply("add", (Apply("add", (Query("", "coordinate") as place, Const() as near)), Const() as far)):
                whole = int(near.value) + int(far.value)
                return place if whole == 0 else Apply("add", (place, const(whole, INT64)), INT64)
            case Element(name, kind):
                return Moved(name, (axis,), (const(distance, INT64),), kind)
        return expr

    return change if distance else lambda expr: expr


def _is_neighbour(expr: Expr) -> bool:
    return isinstance(expr, Load) and isinstance(expr.pointer, At) and distances_of(expr.pointer.index) is not None


def _with_loads_shared(body: Body, taken: set[str]) -> Body:
    """The statements with a name for every neighbour, declared where one is first certain to be loaded."""
    known: dict[Expr, Expr] = {}
    result: list[Declare | Store] = []

    def change(expr: Expr) -> Expr:
        return known.get(expr, expr)

    for stmt in body:
        assert isinstance(stmt, Declare | Store), "a body without branches"
        for expr in reversed(list(expressions(operands(stmt), below=certain))):
            if _is_neighbour(expr) and expr not in known:
                assert isinstance(expr, Load), "a neighbour is loaded"
                name = f"near{len(known)}"
                while name in taken:
                    name += "_"
                known[expr] = Local(name, expr.type)
                result.append(Declare(name, expr.type, expr, line=stmt.line))
        (new,) = map_expressions((stmt,), rewriter(change))
        assert isinstance(new, Declare | Store), "the same kind of statement"
        result.append(new)
    return tuple(result)
