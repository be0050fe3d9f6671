"""Definite assignment: the locals that may be read before the program has assigned them."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr
from fusec.ir.walk import expressions, operands

Names = frozenset[str]


def read_first(body: tuple[ir.Stmt, ...], names: Names) -> set[str]:
    """The locals among some that are read on a path on which nothing was assigned to them."""
    analysis = _Analysis(names)
    analysis.run(body, frozenset())
    return analysis.early


def used(roots: Iterable[Expr]) -> set[str]:
    """The locals that expressions read, arrays among them."""
    return {each.name for each in expressions(roots) if isinstance(each, ir.Local | ir.LocalArray)}


class _Analysis:
    """Walks forward with the set of names assigned on every path; None where control does not come, and all are."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.early: set[str] = set()
        self.exits: list[tuple[list[Names | None], list[Names | None]]] = []  # (breaks, continues) of loops around
        self.cache: dict[Expr, Names] = {}

    def run(self, body: tuple[ir.Stmt, ...], state: Names | None) -> Names | None:
        """The state after statements."""
        for statement in body:
            if state is None:
                return None
            state = self._step(statement, state)
        return state

    def _step(self, statement: ir.Stmt, state: Names) -> Names | None:
        if not isinstance(statement, ir.While):
            for value in operands(statement):
                self._read(value, state)
        match statement:
            case ir.Assign(name=name) | ir.Atomic(result=name) | ir.CallStatement(result=name) if name in self.names:
                return state | {name}
            case ir.SetField(name=name):
                return state
            case ir.If(then=then, orelse=orelse):
                return _meet(self.run(then, state), self.run(orelse, state))
            case ir.While():
                return self._loop(statement, state)
            case ir.Break():
                self.exits[-1][0].append(state)
                return None
            case ir.Continue():
                self.exits[-1][1].append(state)
                return None
            case ir.Return():
                return None
            case _:
                return state

    def _loop(self, loop: ir.While, state: Names) -> Names | None:
        """A loop; assignments of earlier rounds only add to the state, so one walk with the first round's is enough."""
        endless = isinstance(loop.condition, Const) and loop.condition.bits != 0
        if loop.test_first:
            self._read(loop.condition, state)
        self.exits.append(([], []))
        after = self.run(loop.body, state)
        breaks, continues = self.exits.pop()
        for each in continues:
            after = _meet(after, each)
        after = self.run(loop.step, after)
        if not loop.test_first and after is not None:
            self._read(loop.condition, after)
        left: Names | None = None if endless else state if loop.test_first else after
        for each in breaks:
            left = _meet(left, each)
        return left

    def _read(self, value: Expr, state: Names) -> None:
        self.early |= self._locals(value) - state

    def _locals(self, value: Expr) -> Names:
        """The names of interest that an expression reads."""
        known = self.cache.get(value)
        if known is None:
            known = self.cache[value] = self.names & used((value,))
        return known


def _meet(a: Names | None, b: Names | None) -> Names | None:
    if a is None or b is None:
        return b if a is None else a
    return a & b
