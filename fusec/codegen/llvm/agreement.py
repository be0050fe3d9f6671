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
from fusec.ir.walk import expressions, operands, statements

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
                if position in known.positions and number in known.numbers:
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
    """Facts about expressions of a program. Each is found once, since an expression may be part of thousands."""

    def __init__(self, program: Program, ndim: int) -> None:
        self.last = ndim - 1
        self.scalars = {param.name for param in program.params if isinstance(param, ir.ScalarParam)}
        self.values = dict(_single(program.body))
        self.known: dict[Expr, Expr] = {}
        self.positions: set[Expr] = set()
        """Expressions, written out, that grow by one from lane to lane."""
        self.numbers: set[Expr] = set()
        """Expressions, written out: simple integers that are the same all along a row."""

    def written_out(self, root: Expr) -> Expr:
        """An expression without the variables that have one value only."""
        pending = [root]
        while pending:
            expr = pending[-1]
            value = self.values.get(expr.name) if isinstance(expr, ir.Local) else None
            parts = expr.children if value is None else (value,)
            missing = [each for each in parts if each not in self.known]
            pending += missing
            if not missing:
                self.known[pending.pop()] = self._whole(expr) if value is None else self.known[value]
        return self.known[root]

    def _whole(self, given: Expr) -> Expr:
        """An expression whose parts are written out. Notes the facts about it."""
        expr = given.rebuild(tuple(self.known[each] for each in given.children)) if given.children else given
        if self._is_position(expr):
            self.positions.add(expr)
        if self._is_number(expr):
            self.numbers.add(expr)
        return expr

    def _is_position(self, expr: Expr) -> bool:
        match expr:
            case Query(param="", what="index"):
                return True
            case Query(param="", what="coordinate", axis=Const(bits=axis)):
                return axis == self.last
            case Apply(op="add", args=(left, right), type=kind) if kind == INT64:
                pairs = (left, right), (right, left)
                return any(one in self.positions and other in self.numbers for one, other in pairs)
            case Apply(op="subtract", args=(left, right), type=kind) if kind == INT64:
                return left in self.positions and right in self.numbers
        return False

    def _is_number(self, expr: Expr) -> bool:
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
                return self.numbers.issuperset(args)
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
