"""Estimates of work, and the operations that must not be evaluated for inactive lanes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr, Lookup, Pointer
from fusec.ir.walk import blocks, expressions, inner_first, is_elementary, operands, statements

_EXPENSIVE = {
    "divide": 4,
    "sqrt": 4,
    "quotient": 10,
    "modulo": 12,
    "floor_divide": 22,
    "remainder": 14,
    "multiply_high": 4,
}
_LOAD, _ATOMIC, _TURNS = 2, 8, 8  # turns a loop is taken to make


class StmtWork(NamedTuple):
    """What a statement does, those nested in it included."""

    stmt: ir.Stmt  # kept, so that no other statement gets its id
    cost: int
    is_unsafe: bool  # it reads memory that need not exist, or may not end, for an inactive lane
    is_heavy: bool  # it does so, or touches memory other than current elements


class Costs:
    """Scalar operations of expressions and statements, each expression node counted once.

    turns: that a loop is taken to make. usual: without what elementary functions do for rare arguments only. bodies:
    those of the program, whose locals indices may have.
    """

    def __init__(
        self,
        functions: Iterable[ir.Function],
        turns: int = _TURNS,
        usual: bool = False,
        bodies: Iterable[Iterable[ir.Stmt]] = (),
    ) -> None:
        self._turns = turns
        self._loaded = loaded_locals(bodies)
        self._costs: dict[Expr, int] = {}
        self._unsafe: dict[Expr, bool] = {}
        self._calls: dict[str, tuple[int, bool]] = {}
        self._works: dict[int, StmtWork] = {}
        for function in functions:  # callees come first
            body = function.body
            risky = any(isinstance(kind, Pointer) for _, kind in function.params)
            is_guarded = usual and is_elementary(function)
            work = [stmt for stmt in body if not (is_guarded and isinstance(stmt, ir.If))]
            risky = risky or any(self._work(stmt).is_unsafe for stmt in body)
            self._calls[function.name] = (self.of_body(work), risky)

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
        return not is_loaded(root, self._loaded) and not any(isinstance(expr, ir.Call) for expr in expressions([root]))

    def of_body(self, body: Iterable[ir.Stmt]) -> int:
        """The operations of statements; a loop counts as a few iterations."""
        return min(sum(self._work(stmt).cost for stmt in body), 1 << 20)

    def is_worth_skipping(self, body: Iterable[ir.Stmt], limit: int) -> bool:
        """Whether a branch around the statements pays off if no lane is active."""
        works = [self._work(stmt) for stmt in body]
        return any(work.is_heavy for work in works) or sum(work.cost for work in works) > limit

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

    def _work(self, stmt: ir.Stmt) -> StmtWork:
        """Found once for each statement: those of a long chain of branches are asked for at each link."""
        if id(stmt) not in self._works:
            nested = [self._work(each) for block in blocks(stmt) for each in block]
            unsafe = isinstance(stmt, ir.While) or any(map(self.is_unsafe, operands(stmt)))
            unsafe = unsafe or any(work.is_unsafe for work in nested)
            stores = isinstance(stmt, ir.Store) and not isinstance(stmt.pointer, ir.Element)
            heavy = unsafe or stores or isinstance(stmt, ir.Atomic | ir.CallStatement)
            heavy = heavy or any(work.is_heavy for work in nested)
            self._works[id(stmt)] = StmtWork(stmt, self._statement(stmt), unsafe, heavy)
        return self._works[id(stmt)]

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


def loaded_locals(bodies: Iterable[Iterable[ir.Stmt]]) -> set[str]:
    """The locals that are declared with something read from memory."""
    found: set[str] = set()
    for stmt in (stmt for body in bodies for stmt in statements(body)):
        if isinstance(stmt, ir.Declare) and stmt.value is not None and is_loaded(stmt.value, found):
            found.add(stmt.name)
    return found


def is_loaded(root: Expr, loaded: set[str]) -> bool:
    """Whether a value depends on memory. loaded: the locals that do."""
    found = expressions([root])
    return any(isinstance(each, ir.Load) or (isinstance(each, ir.Local) and each.name in loaded) for each in found)
