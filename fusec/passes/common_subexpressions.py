"""Common subexpressions: name what one statement uses several times, so that a printer writes it once.

Expressions are interned, so a value used twice is one node; a code generator that prints trees would print it twice,
and with it all below it.
"""

from __future__ import annotations

from functools import cached_property

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr, type_of
from fusec.ir.walk import (
    Body,
    blocks,
    certain,
    declared_names,
    expressions,
    fresh_names,
    inner_first,
    is_harmless,
    operands,
    same,
    with_scopes,
)

DEPTH = 64  # an expression nested deeper than this is cut by a name


def name_common_subexpressions(program: ir.Program) -> ir.Program:
    """Declare a local before a statement for every value that the statement uses more than once or nests too deep.

    Requires: a verified program.
    Ensures: loads and calls happen under the same conditions as before; a loop's condition, evaluated every round,
    keeps its values unnamed; names do not clash with any in the program.
    """
    return with_scopes(program, lambda body, _, taken: _Sharer({*taken, *declared_names(body)}).block(body))


@dataclass
class _Use:
    """The operands of one statement."""

    roots: tuple[Expr, ...]

    @cached_property
    def certain(self) -> set[Expr]:
        """The nodes that the statement evaluates whatever the conditions in it."""
        return set(expressions(self.roots, below=certain))


class _Sharer:
    """Walks one function; `taken` are the names in use."""

    def __init__(self, taken: set[str]) -> None:
        self.fresh = fresh_names("t", taken)
        self.harmless: dict[Expr, bool] = {}

    def block(self, body: Body) -> Body:
        """The statements with declarations of temporaries before those that need them; the same object if none do."""
        result: list[ir.Stmt] = []
        changed = False
        for stmt in body:
            before, new = self.statement(stmt)
            changed = changed or new is not stmt
            result.extend(before)
            result.append(new)
        return tuple(result) if changed else body

    def statement(self, stmt: ir.Stmt) -> tuple[list[ir.Stmt], ir.Stmt]:
        """Declarations, and the statement that uses them."""
        roots = operands(stmt)
        nested = tuple(map(self.block, blocks(stmt)))
        before: list[ir.Stmt] = []
        new = roots
        if not isinstance(stmt, ir.While) and not all(map(_is_leaf, roots)):
            new = self.operands(roots, stmt, before)
        unchanged = new == roots and same(nested, blocks(stmt))
        return before, stmt if unchanged else stmt.rebuild(new, nested)

    def operands(self, roots: tuple[Expr, ...], stmt: ir.Stmt, before: list[ir.Stmt]) -> tuple[Expr, ...]:
        """The operands over names; the declarations are appended to `before`, inner values first."""
        order = list(inner_first(roots))
        if len(order) < DEPTH and not _any_reused(order, roots):
            return roots
        use = _Use(roots)
        named = self.chosen(order, use, isinstance(stmt, ir.CallStatement))
        deepest = DEPTH if len(order) >= DEPTH else len(order) + 1
        if not named and deepest > len(order):
            return roots
        known: dict[Expr, Expr] = {}
        depth: dict[Expr, int] = {}
        for expr in order:
            old = expr.children
            new = tuple([known[child] for child in old])
            found = expr if new == old else expr.rebuild(new)
            deep = 1 + max([depth[child] for child in old], default=0)
            if expr in named or (deep >= deepest and expr not in roots and self.can_be_moved(expr, use)):
                kind = type_of(expr)
                name = self.fresh()
                before.append(ir.Declare(name, kind, found, line=stmt.line))
                found, deep = ir.Local(name, kind), 1
            known[expr], depth[expr] = found, deep
        return tuple([known[root] for root in roots])

    def chosen(self, order: list[Expr], use: _Use, keep_roots: bool) -> set[Expr]:
        """The values to name: printed more than once, and safe to compute before the statement.

        Counts prints, of which a named value needs one and any other as many as its users; outer values come first.
        """
        prints: dict[Expr, int] = dict.fromkeys(order, 0)
        for root in use.roots:
            prints[root] += 1
        named: set[Expr] = set()
        for expr in reversed(order):
            count = min(prints[expr], 2)
            if count > 1 and self.can_be_moved(expr, use) and not (keep_roots and expr in use.roots):
                named.add(expr)
                count = 1
            for child in expr.children:
                prints[child] += count
        return named

    def can_be_moved(self, expr: Expr, use: _Use) -> bool:
        """Whether it may be a local before the statement: values that nothing guards, or that need no guard.

        Addresses stay, for code generators see from an address itself which array it belongs to.
        """
        if _is_leaf(expr) or not isinstance(type_of(expr), DType):
            return False
        return is_harmless(expr, self.harmless) or expr in use.certain


def _is_leaf(expr: Expr) -> bool:
    """Nothing below it that is worth a name."""
    match expr:
        case Const() | ir.Local() | ir.Element() | ir.LocalArray():
            return True
        case ir.Query(_, _, axis):
            return axis is None or isinstance(axis, Const)
        case ir.Field(value):
            return isinstance(value, ir.Local)
        case _:
            return False


def _any_reused(order: list[Expr], roots: tuple[Expr, ...]) -> bool:
    """Whether any node that is no leaf has two users."""
    seen: set[Expr] = set(roots)
    for expr in order:
        for child in expr.children:
            if child in seen and not _is_leaf(child):
                return True
            seen.add(child)
    return len(set(roots)) < len(roots)
