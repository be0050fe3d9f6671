"""Comparisons of the position along a row with numbers: nearly all vectors lie on one side of such a number.

Joined, rolled and padded arrays are chosen from by such comparisons. Where the first lane of a vector and its last one
agree about each, all lanes do, and what is chosen is read by plain loads, without a mask.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.base.dtypes import INT64
from fusec.codegen.llvm.values import Builder, Value
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr
from fusec.ir.loops import Program, Query
from fusec.ir.walk import expressions, inner_first, operands, statements

_MOST = 12  # comparisons of a program, each of which costs some instructions for a vector
_ORDERS = ("less", "less_equal", "greater", "greater_equal")
_ARITHMETIC = ("add", "subtract", "multiply", "minimum", "maximum")
_SINGLE = (ir.Return, ir.While, ir.Atomic, ir.Shuffle)  # lanes go their own ways, or are asked for

Comparison = tuple[Expr, Expr, Expr]  # as it stands in the program; its position, and itself without local variables


def comparisons_of(program: Program, ndim: int) -> tuple[Comparison, ...]:
    """Those of a program's own statements; none of a program that lanes leave, or that has too many."""
    body = list(statements(program.body))
    if any(isinstance(stmt, _SINGLE) for stmt in body):
        return ()
    known = _Facts(program, ndim)
    found: dict[Expr, Comparison] = {}
    for expr in expressions(each for stmt in body for each in operands(stmt)):
        if isinstance(expr, Apply) and expr.op in _ORDERS and expr not in found:
            sides = [known.written_out(each) for each in expr.args]
            for position, number in (sides, sides[::-1]):
                if known.is_position(position) and known.is_number(number):
                    found[expr] = expr, position, expr.rebuild(tuple(sides))
    return tuple(found.values()) if len(found) <= _MOST else ()


def all_agree(b: Builder, first: list[Value], last: list[Value]) -> Value:
    """Whether lanes agree, given positions and outcomes of comparisons, in turn, of the first lane and the last."""
    found = Value("i1", "true")
    for at in range(0, len(first), 2):
        grows = b.compare("icmp sle", first[at], last[at])  # the position did not wrap
        same = b.compare("icmp eq", first[at + 1], last[at + 1])
        found = b.binary("and", found, b.binary("and", grows, same))
    return found


class _Facts:
    """What is known of expressions of a program."""

    def __init__(self, program: Program, ndim: int) -> None:
        self.last = ndim - 1
        self.scalars = {param.name for param in program.params if isinstance(param, ir.ScalarParam)}
        self.values = dict(_single(program.body))

    def written_out(self, root: Expr) -> Expr:
        """An expression without the variables that have one value only."""
        known: dict[Expr, Expr] = {}
        for expr in inner_first([root]):
            if isinstance(expr, ir.Local) and expr.name in self.values:
                known[expr] = self.written_out(self.values[expr.name])
            else:
                known[expr] = expr.rebuild(tuple(known[child] for child in expr.children)) if expr.children else expr
        return known[root]

    def is_position(self, expr: Expr) -> bool:
        """Whether an expression grows by one from lane to lane."""
        match expr:
            case Query(param="", what="index"):
                return True
            case Query(param="", what="coordinate", axis=Const(bits=axis)):
                return axis == self.last
            case Apply(op="add", args=(left, right), type=kind) if kind == INT64:
                pairs = (left, right), (right, left)
                return any(self.is_position(one) and self.is_number(other) for one, other in pairs)
            case Apply(op="subtract", args=(left, right), type=kind) if kind == INT64:
                return self.is_position(left) and self.is_number(right)
        return False

    def is_number(self, expr: Expr) -> bool:
        """Whether an expression is an integer that is the same all along a row, and simple."""
        match expr:
            case Const(type=kind):
                return kind == INT64
            case ir.Local(name=name, type=kind):
                return name in self.scalars and kind == INT64
            case Query(what="shape" | "size", axis=None | Const()):
                return True
            case Query(param="", what="coordinate", axis=Const(bits=axis)):
                return axis != self.last
            case Apply(op=op, args=args, type=kind) if op in _ARITHMETIC and kind == INT64:
                return all(map(self.is_number, args))
        return False


def _single(body: Iterable[ir.Stmt]) -> Iterable[tuple[str, Expr]]:
    """Variables that get one value, where they are declared."""
    seen: dict[str, list[Expr | None]] = {}
    for stmt in statements(body):
        if isinstance(stmt, ir.Declare | ir.Assign):
            seen.setdefault(stmt.name, []).append(stmt.value)
        elif getattr(stmt, "result", ""):
            seen.setdefault(stmt.result, []).append(None)  # type: ignore[attr-defined]
    for name, values in seen.items():
        if len(values) == 1 and values[0] is not None:
            yield name, values[0]
