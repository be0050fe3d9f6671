"""Formulas to function bodies: values that are used more than once or nested too deeply become named locals.

Expressions are interned, so a formula is a graph in which shared values are shared nodes; `Block` writes it down as
declarations in the order of their dependence. Without this a printed body would repeat shared values exponentially.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.ir.expr import Expr, Type, type_of
from fusec.ir.loops import Assign, Call, Declare, Function, If, Local, Return, Stmt, While
from fusec.ir.walk import Body, expressions, fresh_names, inner_first, roots_of, uses_of
from fusec.math.value import Term

NESTING = 24  # a value nested deeper than this gets a name, which keeps printed lines and printers' recursion short


class Guarded(Expr):
    """`rare` where the condition holds, else `usual`; unlike `where`, the rare value costs nothing if no lane needs it.

    Exists only inside formulas: `Block` writes it as a declaration and an If.
    """

    condition: Expr
    rare: Expr
    usual: Expr
    type: Type


def guard(condition: Term, rare: Term, usual: Term) -> Term:
    """A Guarded value; `rare` should be a call, whose arguments are computed in any case."""
    return Term(Guarded(condition.expr, rare.expr, usual.expr, usual.dtype))


def local(name: str, dtype: Type) -> Term:
    """The current value of a parameter or local."""
    return Term(Local(name, dtype))


Formula = Callable[..., "Term | Body"]

_called: dict[str, Function] = {}
_lock = threading.Lock()


@cache
def write(name: str, types: tuple[DType, ...], formula: Formula) -> Function:
    """The function of that name which computes `formula` of its parameters x, y, z, w."""
    params = tuple(zip("xyzw", types, strict=False))
    found = formula(*(local(param, dtype) for param, dtype in params))
    body = Block().finish(found) if isinstance(found, Term) else found
    last = body[-1]
    assert isinstance(last, Return), f"{name} must end by returning its value"
    assert last.value is not None, f"{name} must return a value"
    return Function(name, params, type_of(last.value), body)


def callees(function: Function) -> tuple[Function, ...]:
    """The functions that `function` calls, directly or not, each once and before its callers."""
    found: dict[str, Function] = {}
    for expr in expressions(roots_of(function.body)):
        if isinstance(expr, Call):
            for callee in (*callees(_called[expr.function]), _called[expr.function]):
                found.setdefault(callee.name, callee)
    return tuple(found.values())


def call(function: Function, *args: Term) -> Term:
    """The result of another function, which `callees` of the calling one will find."""
    assert function.result is not None, f"{function.name} returns nothing"
    with _lock:
        known = _called.setdefault(function.name, function)
    assert known == function, f"two functions are called {function.name}"
    return Term(Call(function.name, tuple(arg.expr for arg in args), function.result))


@dataclass
class Block:
    """A list of statements being written; nested blocks share the fresh names of their function."""

    fresh: Callable[[], str] = field(default_factory=lambda: fresh_names("t"))
    statements: list[Stmt] = field(default_factory=list)

    def let(self, value: Term) -> Term:
        """Declare a local that starts as `value`; it may be assigned later."""
        written = self._write(value.expr)
        return self._declare(written, type_of(value.expr))

    def assign(self, variable: Term, value: Term) -> None:
        """Give a local declared by `let` another value."""
        assert isinstance(variable.expr, Local), "only a local can be assigned"
        self.statements.append(Assign(variable.expr.name, self._write(value.expr)))

    def loop(self, condition: Term, body: Callable[[Block], None]) -> None:
        """Repeat what `body` writes while the condition, a formula over locals, holds."""
        inner = Block(self.fresh)
        body(inner)
        self.statements.append(While(condition.expr, tuple(inner.statements)))

    def when(self, condition: Term, body: Callable[[Block], None]) -> None:
        """Run what `body` writes if the condition holds."""
        written = self._write(condition.expr)
        inner = Block(self.fresh)
        body(inner)
        self.statements.append(If(written, tuple(inner.statements)))

    def finish(self, value: Term) -> tuple[Stmt, ...]:
        """Return `value`; the complete body."""
        self.statements.append(Return(self._write(value.expr)))
        return tuple(self.statements)

    def _declare(self, value: Expr, dtype: Type) -> Term:
        name = self.fresh()
        self.statements.append(Declare(name, dtype, value))
        return local(name, dtype)

    def _write(self, root: Expr) -> Expr:
        """Declare what must have a name below `root`; what remains of `root` itself."""
        uses = uses_of([root])
        done: dict[Expr, Expr] = {}
        height: dict[Expr, int] = {}
        for node in inner_first([root]):
            written = node.rebuild(tuple(done[child] for child in node.children)) if node.children else node
            tall = 1 + max((height[child] for child in node.children), default=-1)
            if isinstance(written, Guarded):
                written, tall = self._write_guarded(written), 0
            elif node is not root and node.children and (uses[node] > 1 or tall >= NESTING):
                written, tall = self._declare(written, type_of(node)).expr, 0
            done[node], height[node] = written, tall
        return done[root]

    def _write_guarded(self, value: Guarded) -> Expr:
        chosen = self._declare(value.usual, value.type).expr
        assert isinstance(chosen, Local)
        self.statements.append(If(value.condition, (Assign(chosen.name, value.rare),)))
        return chosen
