"""Value numbering: compute once what several statements compute from the same values."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Lookup, type_of
from fusec.ir.walk import (
    Body,
    blocks,
    certain,
    declared_names,
    expressions,
    fixed_names,
    fresh_names,
    is_elementary,
    operands,
    with_scopes,
)

WORTH = 4  # operations below which computing again reads better than another name and costs no more
WEIGHTS = {"divide": 4, "sqrt": 4, "quotient": 8, "modulo": 8, "convert": 0, "bitcast": 0}
CALL = 10


def number_values(program: ir.Program) -> ir.Program:
    """Name a value at its first certain computation if a later statement computes it again, and read the name there.

    Only values that depend on nothing but constants, the position and locals that never change.
    Requires: a verified program. Ensures: every value is what it was; nothing is computed where it was not before.
    """
    return with_scopes(
        program, lambda body, params, taken: _Reuser(body, params, taken).rewritten(), but=is_elementary
    )  # elementary functions name what they share themselves


class _Reuser:
    """One function: where each value is computed first, and which values come again.

    fixed: locals with one value. first: value -> the statement that is certain to compute it before its other users,
    by number in the order of the walk. again: the values to name.
    """

    def __init__(self, body: Body, params: frozenset[str], reserved: frozenset[str]) -> None:
        self.body = body
        self.fixed = fixed_names(body, params)
        self.fresh = fresh_names("v", {*reserved, *declared_names(body)})
        self.first: dict[Expr, int] = {}
        self.again: set[Expr] = set()
        self.costs: dict[Expr, int] = {}
        self.names: dict[Expr, ir.Local] = {}

    def rewritten(self) -> Body:
        """The body with values reused; the same object if there are none."""
        self.look(self.body, {}, 0)
        if not self.again:
            return self.body
        return self.block(self.body, 0)[0]

    # --- looking ---------------------------------------------------------------------------------------------------

    def look(self, body: Body, above: dict[Expr, int], number: int) -> int:
        """Note first computations and repetitions; `above`: values certain to be there, with their statements."""
        known = dict(above)
        for stmt in body:
            for root in values_of(stmt):
                self.match(root, known, number)
            if not isinstance(stmt, ir.While):  # its condition runs every round, so nothing can stand before it for all
                for root in values_of(stmt):
                    self.register(root, known, number)
            number += 1
            for nested in blocks(stmt):
                number = self.look(nested, known, number)
        return number

    def match(self, root: Expr, known: dict[Expr, int], number: int) -> None:
        """Note what an earlier statement computes, but for what is within that."""
        stack, seen = [root], set()
        while stack:
            expr = stack.pop()
            at = known.get(expr, number)
            if at != number:
                self.again.add(expr)
                self.first[expr] = at
            elif expr not in seen:
                seen.add(expr)
                stack.extend(expr.children)

    def register(self, root: Expr, known: dict[Expr, int], number: int) -> None:
        """Note what a statement is certain to compute."""
        for expr in expressions([root], below=certain):
            if expr not in known and self.cost(expr) >= WORTH and isinstance(type_of(expr), DType):
                known[expr] = number

    def cost(self, expr: Expr) -> int:
        """Operations of a value that never changes; a large negative number for any other."""
        found = self.costs.get(expr)
        if found is None:
            below = sum(self.cost(child) for child in expr.children)
            found = self.costs[expr] = max(below + self.weight(expr), -(1 << 40))
        return found

    def weight(self, expr: Expr) -> int:
        """What one node adds."""
        match expr:
            case Const() | ir.Field() | ir.Make() | ir.Query():
                return 0
            case ir.Local(name):
                return 0 if name in self.fixed else -(1 << 40)
            case Apply(op):
                return WEIGHTS.get(op, 1)
            case Lookup():
                return 1
            case ir.Call(_, args) if all(isinstance(type_of(arg), DType) for arg in args):
                return CALL
            case _:
                return -(1 << 40)

    # --- rewriting -------------------------------------------------------------------------------------------------

    def block(self, body: Body, number: int) -> tuple[Body, int]:
        """The statements over names, and the number of the statement after them."""
        result: list[ir.Stmt] = []
        for stmt in body:
            before: list[ir.Stmt] = []
            own = self.own_name(stmt, number)
            new = tuple(self.value(root, number, before, stmt.line, root is own) for root in values_of(stmt))
            if isinstance(stmt, ir.CallStatement):
                new = (stmt.call if new == stmt.call.children else stmt.call.rebuild(new),)
            if own is not None and isinstance(stmt, ir.Declare):
                self.names[own] = ir.Local(stmt.name, stmt.type)
            number += 1
            nested = []
            for part in blocks(stmt):
                outside = dict(self.names)  # what a nested list declares is not seen after it
                inner, number = self.block(part, number)
                self.names = outside
                nested.append(inner)
            result += [*before, stmt.rebuild(new, tuple(nested))]
        return tuple(result), number

    def own_name(self, stmt: ir.Stmt, number: int) -> Expr | None:
        """The value that a declaration of a fixed local names by itself."""
        match stmt:
            case ir.Declare(name, _, Expr() as value) if name in self.fixed and value in self.again:
                return value if self.first[value] == number and value not in self.names else None
            case _:
                return None

    def value(self, expr: Expr, number: int, before: list[ir.Stmt], line: int, keep: bool = False) -> Expr:
        """The expression over names; those that are due here are declared in `before`."""
        if expr in self.names:
            return self.names[expr]
        children = tuple(self.value(child, number, before, line) for child in expr.children)
        new = expr if children == expr.children else expr.rebuild(children)
        if keep or expr not in self.again or self.first[expr] != number:
            return new
        local = ir.Local(self.fresh(), type_of(expr))
        before.append(ir.Declare(local.name, local.type, new, line=line))
        self.names[expr] = local
        return local


def values_of(stmt: ir.Stmt) -> tuple[Expr, ...]:
    """The expressions whose values names can stand for: of a call for its effect, the arguments alone."""
    return stmt.call.children if isinstance(stmt, ir.CallStatement) else operands(stmt)
