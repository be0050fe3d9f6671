"""Uniform access to the parts of statements and expressions, for passes that treat most nodes alike."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial, wraps
from itertools import count
from operator import attrgetter, is_
from typing import TypeVar

from fusec.base.records import replace
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr

Body = tuple[ir.Stmt, ...]
Found = TypeVar("Found")

ON_DEMAND = frozenset({"where", "logical_and", "logical_or"})  # ops that evaluate all but the first operand if wanted


operands: Callable[[ir.Stmt], tuple[Expr, ...]] = attrgetter("children")
"""The expressions that a statement itself evaluates, in order, without those of nested statements."""

blocks: Callable[[ir.Stmt], tuple[Body, ...]] = attrgetter("blocks")
"""The statement lists nested directly in a statement."""


def map_expressions(body: Body, change: Callable[[Expr], Expr]) -> Body:
    """The statements with every operand replaced by `change` of it; the same object if nothing changed."""
    result: list[ir.Stmt] = []
    changed = False
    for stmt in body:
        old = operands(stmt)
        new = tuple([change(expr) for expr in old])
        old_nested = blocks(stmt)
        new_nested = tuple([map_expressions(block, change) for block in old_nested])
        unchanged = new == old and same(new_nested, old_nested)
        changed = changed or not unchanged
        result.append(stmt if unchanged else stmt.rebuild(new, new_nested))
    return tuple(result) if changed else body


def map_statements(body: Body, change: Callable[[ir.Stmt], Iterable[ir.Stmt]]) -> Body:
    """The statements with each replaced by what `change` makes of it, nested ones first; the same object if none is."""
    result: list[ir.Stmt] = []
    for stmt in body:
        result.extend(change(map_blocks(stmt, lambda block: map_statements(block, change))))
    return body if same(result, body) else tuple(result)


def map_blocks(stmt: ir.Stmt, change: Callable[[Body], Body]) -> ir.Stmt:
    """The statement with every nested list replaced by `change` of it; the same object if none is."""
    old = blocks(stmt)
    if not old:
        return stmt
    new = tuple([change(block) for block in old])
    return stmt if same(new, old) else stmt.rebuild(operands(stmt), new)


def same(new: Sequence[object], old: Sequence[object]) -> bool:
    """Whether two sequences hold the very same objects."""
    return len(new) == len(old) and all(map(is_, new, old))


def with_bodies(program: ir.Program, change: Callable[[Body], Body]) -> ir.Program:
    """The program with the body of the kernel and of every function replaced by `change` of it."""
    functions = tuple(with_body(function, change(function.body)) for function in program.functions)
    return _with_parts(program, change(program.body), functions)


def _with_parts(program: ir.Program, body: Body, functions: tuple[ir.Function, ...]) -> ir.Program:
    if body is program.body and same(functions, program.functions):
        return program
    return replace(program, body=body, functions=functions)


def rewritten(program: ir.Program, change: Callable[[Expr], Expr]) -> ir.Program:
    """The program with `change` applied to every node of every expression, operands first."""
    rewrite = rewriter(change)
    return with_bodies(program, lambda body: map_expressions(body, rewrite))


def with_scopes(
    program: ir.Program,
    change: Callable[[Body, frozenset[str], frozenset[str]], Body],
    but: Callable[[ir.Function], bool] | None = None,
) -> ir.Program:
    """As `with_bodies`, for changes that need names; functions of which `but` holds stay.

    change: from a body, what it knows as numbers by name, and the names that mean something outside it.
    """
    outside = frozenset([each.name for each in (*program.params, *program.functions)])
    scalars = frozenset(param.name for param in program.params if isinstance(param, ir.ScalarParam))
    functions = []
    for function in program.functions:
        names = frozenset([name for name, _ in function.params])
        body = function.body if but and but(function) else change(function.body, names, outside | names)
        functions.append(with_body(function, body))
    return _with_parts(program, change(program.body, scalars, outside), tuple(functions))


def with_body(function: ir.Function, body: Body) -> ir.Function:
    """The function with another body; the same object if it is the same body."""
    if body is function.body:
        return function
    return ir.Function(function.name, function.params, function.result, body, function.text)


def is_elementary(function: ir.Function) -> bool:
    """Whether fusec.math wrote the function: its arithmetic is exact as written, whatever a kernel allows."""
    return function.name.startswith("fusec_")


def statements(body: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
    """Every statement, nested ones included, in textual order."""
    pending = list(body)[::-1]
    while pending:
        stmt = pending.pop()
        yield stmt
        for block in blocks(stmt)[::-1]:
            pending += block[::-1]


def roots_of(*bodies: Iterable[ir.Stmt]) -> list[Expr]:
    """The expressions that statements evaluate themselves, nested ones included, in textual order."""
    return [root for body in bodies for stmt in statements(body) for root in operands(stmt)]


def bodies_of(program: ir.Program) -> tuple[Body, ...]:
    """The statements of the kernel and of every function."""
    return (program.body, *(function.body for function in program.functions))


def expressions(
    roots: Iterable[Expr], seen: set[Expr] | None = None, below: Callable[[Expr], Iterable[Expr]] | None = None
) -> Iterator[Expr]:
    """Every distinct expression below the roots, each before its operands; `seen` ones are left out and added.

    below: which operands to go on with, if not all.
    """
    seen = set() if seen is None else seen
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            yield expr
            stack.extend(expr.children if below is None else below(expr))


def certain(expr: Expr) -> tuple[Expr, ...]:
    """The operands that are evaluated whatever the first one is."""
    return expr.children[:1] if isinstance(expr, Apply) and expr.op in ON_DEMAND else expr.children


def inner_first(roots: Iterable[Expr], known: Container[Expr] = ()) -> Iterator[Expr]:
    """Every distinct expression below the roots after its operands, left ones first; `known` ones are left out."""
    seen: set[Expr] = set()
    stack: list[Expr | None] = []
    stack += [*roots][::-1]
    while stack:
        expr = stack.pop()
        if expr is None:  # what comes next has its operands behind it
            expr = stack.pop()
            assert expr is not None, "put here below"
            yield expr
        elif expr not in seen and expr not in known:
            seen.add(expr)
            children = expr.children
            if children:
                stack += (expr, None, *children[::-1])
            else:
                yield expr


def kept(find: Callable[[Expr, list[Found]], Found]) -> Callable[[Expr], Found]:
    """A fact of expressions, found once for each node and kept with it. find: from what holds of the operands."""
    name = find.__name__
    known = _Having(name)

    @wraps(find)
    def fact(root: Expr) -> Found:
        found: Found | None = getattr(root, name, None)
        if found is None:
            parts = [getattr(child, name, None) for child in root.children]
            for expr in inner_first([root], known) if None in parts else (root,):
                found = find(expr, [getattr(child, name) for child in expr.children])
                object.__setattr__(expr, name, found)  # which needs no dict, as expr.__dict__ does
            assert found is not None, "the root comes last"
        return found

    return fact


class _Having:
    """The expressions that have an attribute."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __contains__(self, expr: object) -> bool:
        return hasattr(expr, self.name)


def uses_of(roots: Iterable[Expr]) -> dict[Expr, int]:
    """How often each expression occurs as a root or operand."""
    roots = list(roots)
    uses = dict.fromkeys(expressions(roots), 0)
    for expr in roots:
        uses[expr] += 1
    for expr in list(uses):
        for child in expr.children:
            uses[child] += 1
    return uses


def is_harmless(expr: Expr, known: dict[Expr, bool]) -> bool:
    """No load, call or query in it: it may be evaluated where it was not before. known: what was found before."""
    found = known.get(expr)
    if found is None:
        found = not isinstance(expr, ir.Load | ir.Call | ir.Query) and all(
            is_harmless(each, known) for each in expr.children
        )
        known[expr] = found
    return found


def locals_of(roots: Iterable[Expr]) -> set[str]:
    """The locals that expressions read."""
    return {expr.name for expr in expressions(roots) if isinstance(expr, ir.Local)}


def fresh_names(prefix: str, taken: Container[str] = ()) -> Callable[[], str]:
    """A function that makes names with numbers that nothing in a function has."""
    names = (f"{prefix}{number}" for number in count(1))
    return partial(next, (name for name in names if name not in taken))


def declared_names(body: Body) -> set[str]:
    """The names of all locals and local arrays of a function."""
    return {stmt.name for stmt in statements(body) if isinstance(stmt, ir.Declare | ir.DeclareArray)}


def changed_by(stmt: ir.Stmt) -> str:
    """The local that a statement gives another value than the one of its declaration, or ""."""
    match stmt:
        case (
            ir.Assign(name)
            | ir.SetField(name)
            | ir.Shuffle(name)
            | ir.Atomic(result=name)
            | ir.AtomicLoad(name)
            | ir.CallStatement(result=name)
        ):
            return name
        case _:
            return ""


def changed_names(body: Iterable[ir.Stmt]) -> set[str]:
    """Locals that get another value after their declaration."""
    return set(map(changed_by, statements(body))) - {""}


def fixed_names(body: Body, params: Iterable[str] = ()) -> set[str]:
    """Parameters and locals that have one value."""
    return {*params, *declared_names(body)} - changed_names(body)


def rewriter(change: Callable[[Expr], Expr], known: dict[Expr, Expr] | None = None) -> Callable[[Expr], Expr]:
    """A function that applies `change` to every node of an expression, operands first, and remembers the results.

    known: results to begin with.
    """
    known = {} if known is None else known

    def rewrite(expr: Expr) -> Expr:
        found = known.get(expr)
        if found is None:
            old = expr.children
            if old:
                new = tuple([rewrite(child) for child in old])
                found = change(expr if new == old else expr.rebuild(new))  # expressions compare by identity
            else:
                found = change(expr)
            known[expr] = found
        return found

    return rewrite


def renamed(body: Body, suffix: str) -> tuple[Body, Callable[[Expr], Expr]]:
    """The statements with all declared locals renamed, and the same renaming for further expressions."""
    declared = declared_names(body)
    if not declared:
        return body, lambda expr: expr

    def change(expr: Expr) -> Expr:
        match expr:
            case ir.Local(name, kind) if name in declared:
                return ir.Local(name + suffix, kind)
            case ir.LocalArray(name, place) if name in declared:
                return ir.LocalArray(name + suffix, place)
            case _:
                return expr

    def named(stmt: ir.Stmt) -> tuple[ir.Stmt]:
        match stmt:
            case ir.Declare(name) | ir.DeclareArray(name) | ir.Assign(name) | ir.SetField(name) if name in declared:
                return (replace(stmt, name=name + suffix),)
            case ir.AtomicLoad(name) | ir.Shuffle(name) if name in declared:
                return (replace(stmt, result=name + suffix),)
            case ir.Atomic(result=name) | ir.CallStatement(result=name) if name in declared:
                return (replace(stmt, result=name + suffix),)
            case _:
                return (stmt,)

    rewrite = rewriter(change)
    return map_statements(map_expressions(body, rewrite), named), rewrite
