"""Peel borders: separate the elements whose neighbours all exist from those at a border.

Of a program that asks in a branch how far its element is from the ends of the axes, as stencils do, two parts come
without that branch: for the interior, and for elements at an end of an outer axis only. Loops over these move along the
last axis without a test, from element to element of each row that they read.
"""

from __future__ import annotations

from fusec.base.dtypes import BOOL
from fusec.base.records import dataclass
from fusec.ir import loops as ir
from fusec.ir.axes import position_of
from fusec.ir.expr import Apply, Const, Expr, const
from fusec.ir.walk import Body, bodies_of, expressions, fixed_names, map_expressions, operands, rewriter, statements
from fusec.passes.eliminate_dead_code import eliminate_dead_code
from fusec.passes.merge import merge_declarations

TRUE, FALSE = const(True, BOOL), const(False, BOOL)


@dataclass(frozen=True)
class Peeled:
    """Parts of a program. An element may be computed more than once, with the same result."""

    low: tuple[int, ...]  # along each axis, how many elements at its start are not of the interior
    high: tuple[int, ...]  # likewise at its end
    interior: ir.Program  # for elements of the interior
    edge: ir.Program  # for elements that are inside along the last axis, but not along the others


def peel_borders(program: ir.Program, ndim: int) -> Peeled | None:
    """The parts of a program, or None if it has no such branch or does more than store its results.

    Requires: a program after all passes. ndim: of the iteration space.
    Ensures: where each part is for, it does what the program does.
    """
    if not _only_stores_results(program):
        return None
    for at, stmt in enumerate(program.body):
        if not isinstance(stmt, ir.If):
            continue
        reach = _reach(stmt.condition, ndim)
        if reach is None:
            continue
        before, after = program.body[:at], program.body[at + 1 :]
        low, high = reach
        inside = _with(program, _plain((*before, *stmt.then, *after), (0, 0), -1))
        edge = _with(program, _plain((*before, *stmt.orelse, *after), (low[-1], high[-1]), ndim - 1))
        return Peeled(low, high, inside, edge)
    return None


def _with(program: ir.Program, body: Body) -> ir.Program:
    part = ir.Program(program.name, program.params, body, program.functions, program.source)
    return eliminate_dead_code(merge_declarations(part))


def _only_stores_results(program: ir.Program) -> bool:
    """Whether running an element again changes nothing: it reads nothing that it or another one writes."""
    outputs = {param.name for param in program.params if isinstance(param, ir.ArrayParam) and param.written}
    if any(isinstance(param, ir.ArrayParam) and param.raw and param.written for param in program.params):
        return False
    seen: set[Expr] = set()
    for stmt in (each for body in bodies_of(program) for each in statements(body)):
        match stmt:
            case ir.Store(pointer):
                if not isinstance(pointer, ir.Element):
                    return False
            case (
                ir.Declare()
                | ir.Assign()
                | ir.SetField()
                | ir.If()
                | ir.While()
                | ir.Break()
                | ir.Continue()
                | ir.Return()
            ):
                pass
            case _:
                return False
        for expr in expressions(operands(stmt), seen):
            match expr:
                case ir.Load(ir.Element(name) | ir.Moved(name)) if name in outputs:
                    return False
    return True


# --- the branch ----------------------------------------------------------------------------------------------------


def _reach(condition: Expr, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """How far from both ends of each axis a condition wants an element, if that is all it says."""
    low, high = [0] * ndim, [0] * ndim
    pending = [condition]
    while pending:
        match pending.pop():
            case Apply("logical_and", args):
                pending += args
            case Apply("greater_equal", (ir.Query("", "coordinate", Const(value=axis)), Const(value=least))):
                low[int(axis)] = max(low[int(axis)], int(least))
            case Apply(
                "less",
                (
                    ir.Query("", "coordinate", Const(value=axis)),
                    Apply("subtract", (ir.Query("", "shape", Const(value=other)), Const(value=rest))),
                ),
            ) if axis == other:
                high[int(axis)] = max(high[int(axis)], int(rest))
            case _:
                return None
    return (tuple(low), tuple(high)) if any(low) or any(high) else None


# --- what is known away from the ends ------------------------------------------------------------------------------


def _plain(body: Body, reach: tuple[int, int], axis: int) -> Body:
    """The statements with positions in place of locals that hold them, and tests along an axis decided.

    reach: how many elements before and after are known to exist along the axis.
    """
    fixed = fixed_names(body)
    known: dict[str, Expr] = {}

    def change(expr: Expr) -> Expr:
        match expr:
            case ir.Local(name) if name in known:
                return known[name]
            case Apply("greater_equal", (left, Const(value=bound))):
                at = position_of(left)
                return TRUE if at and at[0] == axis and at[1] + reach[0] >= int(bound) else expr
            case Apply("less", (left, ir.Query("", "shape", Const(value=other)))) if int(other) == axis:
                at = position_of(left)
                return TRUE if at and at[0] == axis and at[1] <= reach[1] else expr
            case Apply("maximum", (left, Const(value=bound))):
                at = position_of(left)
                return left if at and at[0] == axis and at[1] + reach[0] >= int(bound) else expr
            case Apply(
                "minimum", (left, Apply("subtract", (ir.Query("", "shape", Const(value=other)), Const(value=one))))
            ):
                at = position_of(left)
                return left if at and at[0] == axis == int(other) and at[1] + int(one) <= reach[1] + 1 else expr
            case Apply("logical_and", (left, right)) if TRUE in (left, right):
                return right if left == TRUE else left
            case Apply("where", (condition, then, orelse)) if condition in (TRUE, FALSE):
                return then if condition == TRUE else orelse
        return expr

    def walked(block: Body) -> Body:
        result: list[ir.Stmt] = []
        for stmt in block:
            if isinstance(stmt, ir.If):
                condition = rewriter(change)(stmt.condition)
                result.append(ir.If(condition, walked(stmt.then), walked(stmt.orelse), line=stmt.line))
                continue
            (new,) = map_expressions((stmt,), rewriter(change))
            if isinstance(new, ir.Declare) and new.name in fixed and new.value is not None and position_of(new.value):
                known[new.name] = new.value
                continue
            result.append(new)
        return tuple(result)

    return walked(body)
