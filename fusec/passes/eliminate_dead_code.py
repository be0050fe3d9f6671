"""Prune: remove locals that nothing reads, and functions that nothing calls."""

from __future__ import annotations

from collections import defaultdict

from fusec.base.records import replace
from fusec.ir.expr import Expr
from fusec.ir.loops import (
    Assign,
    Atomic,
    Call,
    CallStatement,
    Declare,
    DeclareArray,
    Function,
    If,
    Local,
    LocalArray,
    Offset,
    Program,
    SetField,
    Stmt,
    Store,
)
from fusec.ir.walk import Body, blocks, expressions, operands, rebuild, statements, with_bodies


def prune_dead(program: Program) -> Program:
    """Drop dead locals, local arrays only ever written, and unused functions; parameters stay.

    Requires: a verified program.
    Ensures: every remaining local is read by something that has an effect; every function is called.
    """
    program = with_bodies(program, _prune_body)
    functions = _called(program)
    if len(functions) == len(program.functions):
        return program
    return replace(program, functions=functions)


def _called(program: Program) -> tuple[Function, ...]:
    """The functions reachable from the kernel; callees come first, so one pass from the back finds all."""
    wanted = _calls_of(program.body)
    kept = []
    for function in reversed(program.functions):
        if function.name in wanted:
            kept.append(function)
            wanted |= _calls_of(function.body)
    return tuple(reversed(kept))


def _calls_of(body: Body) -> set[str]:
    seen: set[Expr] = set()
    found = (expr for stmt in statements(body) for expr in expressions(operands(stmt), seen))
    return {expr.function for expr in found if isinstance(expr, Call)}


def _prune_body(body: Body) -> Body:
    return _without(body, _live_names(body))


def _live_names(body: Body) -> set[str]:
    """Names whose value reaches a store, an atomic, a call for its effect, a condition or a returned value."""
    feeds: defaultdict[str, set[str]] = defaultdict(set)
    live: set[str] = set()
    for stmt in statements(body):
        target = _target(stmt)
        reads = _names(operands(stmt))
        if target:
            feeds[target] |= reads
        else:
            live |= reads
    waiting = list(live)
    while waiting:
        for name in feeds.pop(waiting.pop(), ()):
            if name not in live:
                live.add(name)
                waiting.append(name)
    return live


def _target(stmt: Stmt) -> str:
    """The local that is all a statement changes, or "" if it does more."""
    match stmt:
        case Declare(name) | DeclareArray(name) | Assign(name) | SetField(name):
            return name
        case Store(pointer):
            while isinstance(pointer, Offset):
                pointer = pointer.pointer
            return pointer.name if isinstance(pointer, LocalArray) else ""
        case _:
            return ""


def _names(roots: tuple[Expr, ...]) -> set[str]:
    return {expr.name for expr in expressions(roots) if isinstance(expr, Local | LocalArray)}


def _without(body: Body, live: set[str]) -> Body:
    """The statements that change something live, or more than a local."""
    result: list[Stmt] = []
    for stmt in body:
        target = _target(stmt)
        if target and target not in live:
            continue
        kept = _trimmed(stmt, live)
        if not (isinstance(kept, If) and not kept.then and not kept.orelse):
            result.append(kept)
    same = len(result) == len(body) and all(new is old for new, old in zip(result, body, strict=True))
    return body if same else tuple(result)


def _trimmed(stmt: Stmt, live: set[str]) -> Stmt:
    """The statement over pruned blocks, without a result that nobody reads."""
    match stmt:
        case Atomic(op, pointer, values, result) if result and result not in live:
            return Atomic(op, pointer, values, line=stmt.line)
        case CallStatement(call, result) if result and result not in live:
            return CallStatement(call, line=stmt.line)
    old = blocks(stmt)
    new = tuple(_without(block, live) for block in old)
    if all(left is right for left, right in zip(new, old, strict=True)):
        return stmt
    return rebuild(stmt, operands(stmt), new)
