"""Estimates of work, and the operations that must not be evaluated for inactive lanes."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr, Lookup, Pointer
from fusec.ir.walk import expressions, inner_first, is_elementary, operands, statements

_EXPENSIVE = {"divide": 4, "sqrt": 4, "quotient": 10, "modulo": 12, "multiply_high": 4}
_LOAD, _ATOMIC, _TURNS = 2, 8, 8  # turns a loop is taken to make


class Costs:
    """Scalar operations of expressions and statements, each expression node counted once.

    turns: that a loop is taken to make. usual: without what elementary functions do for rare arguments only.
    """

    def __init__(self, functions: Iterable[ir.Function], turns: int = _TURNS, usual: bool = False) -> None:
        self._turns = turns
        self._costs: dict[Expr, int] = {}
        self._unsafe: dict[Expr, bool] = {}
        self._calls: dict[str, tuple[int, bool]] = {}
        for function in functions:  # callees come first
            body = function.body
            risky = any(isinstance(kind, Pointer) for _, kind in function.params) or self.has_loop(body)
            is_guarded = usual and is_elementary(function)
            work = [stmt for stmt in body if not (is_guarded and isinstance(stmt, ir.If))]
            self._calls[function.name] = (self.of_body(work), risky or self._reads_memory(body))

    def of(self, root: Expr) -> int:
        """Operations to evaluate an expression."""
        if root not in self._costs:
            self._costs[root] = sum(map(self._own, expressions([root])))
        return self._costs[root]

    def is_unsafe(self, root: Expr) -> bool:
        """Whether it reads memory that need not exist, or may not end, for an inactive lane."""
        for expr in inner_first([root], self._unsafe):
            own = isinstance(expr, ir.Load) and not isinstance(expr.pointer, ir.Element)
            own = own or (isinstance(expr, ir.Call) and self._calls[expr.function][1])
            self._unsafe[expr] = own or any(self._unsafe[child] for child in expr.children)
        return self._unsafe[root]

    def follows_position(self, root: Expr) -> bool:
        """Whether an index is computed by arithmetic alone, without reading memory."""
        return not any(isinstance(expr, ir.Load | ir.Call) for expr in expressions([root]))

    def of_body(self, body: Iterable[ir.Stmt]) -> int:
        """The operations of statements; a loop counts as a few iterations."""
        return min(sum(map(self._statement, body)), 1 << 20)

    def has_loop(self, body: Iterable[ir.Stmt]) -> bool:
        """Whether there is a loop in the statements."""
        return any(isinstance(stmt, ir.While) for stmt in statements(body))

    def is_worth_skipping(self, body: Iterable[ir.Stmt], limit: int) -> bool:
        """Whether a branch around the statements pays off if no lane is active."""
        body = tuple(body)
        return self.has_loop(body) or self._touches_memory(body) or self.of_body(body) > limit

    def _own(self, expr: Expr) -> int:
        match expr:
            case Apply(op=op):
                return _EXPENSIVE.get(op, 1)
            case Lookup():
                return 1
            case ir.Load():
                return _LOAD
            case ir.Call(function=name):
                return self._calls[name][0]
        return 0

    def _statement(self, stmt: ir.Stmt) -> int:
        own = sum(self.of(expr) for expr in operands(stmt))
        match stmt:
            case ir.If(then=then, orelse=orelse):
                return own + 1 + self.of_body(then) + self.of_body(orelse)
            case ir.While(body=body, step=step):
                return self._turns * (own + 1 + self.of_body(body) + self.of_body(step))
            case ir.Atomic():
                return own + _ATOMIC
            case ir.DeclareArray(length=length):
                return own + length
        return own + 1

    def _reads_memory(self, body: Iterable[ir.Stmt]) -> bool:
        for stmt in body:
            if any(self.is_unsafe(expr) for expr in operands(stmt)):
                return True
            if isinstance(stmt, ir.If) and (self._reads_memory(stmt.then) or self._reads_memory(stmt.orelse)):
                return True
        return False

    def _touches_memory(self, body: Iterable[ir.Stmt]) -> bool:
        for stmt in body:
            if isinstance(stmt, ir.Atomic | ir.CallStatement) or any(self.is_unsafe(expr) for expr in operands(stmt)):
                return True
            if isinstance(stmt, ir.Store) and not isinstance(stmt.pointer, ir.Element):
                return True
            if isinstance(stmt, ir.If) and (self._touches_memory(stmt.then) or self._touches_memory(stmt.orelse)):
                return True
        return False
