"""Eliminate dead code: remove locals that nothing reads, and functions that nothing calls."""

from __future__ import annotations

from collections import defaultdict

from fusec.base.records import replace
from fusec.ir import loops as ir
from fusec.ir.expr import Expr
from fusec.ir.walk import Body, expressions, map_statements, operands, roots_of, statements, with_bodies


def eliminate_dead_code(program: ir.Program) -> ir.Program:
    """Drop dead locals, local arrays only ever written, and unused functions; parameters stay.

    Requires: a verified program.
    Ensures: every remaining local is read by something that has an effect; every function is called.
    """
    program = with_bodies(program, _prune_body)
    functions = _called(program)
    if len(functions) == len(program.functions):
        return program
    return replace(program, functions=functions)


def _called(program: ir.Program) -> tuple[ir.Function, ...]:
    """The functions reachable from the kernel; callees come first, so one pass from the back finds all."""
    wanted = _calls_of(program.body)
    kept = []
    for function in reversed(program.functions):
        if function.name in wanted:
            kept.append(function)
            wanted |= _calls_of(function.body)
    return tuple(reversed(kept))


def _calls_of(body: Body) -> set[str]:
    return {expr.function for expr in expressions(roots_of(body)) if isinstance(expr, ir.Call)}


def _prune_body(body: Body) -> Body:
    live = _live_names(body)
    return map_statements(body, lambda stmt: _kept(stmt, live))


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


def _target(stmt: ir.Stmt) -> str:
    """The local that is all a statement changes, or "" if it does more."""
    match stmt:
        case ir.Declare(name) | ir.DeclareArray(name) | ir.Assign(name) | ir.SetField(name):
            return name
        case ir.Store(pointer):
            while isinstance(pointer, ir.Offset):
                pointer = pointer.pointer
            return pointer.name if isinstance(pointer, ir.LocalArray) else ""
        case _:
            return ""


def _names(roots: tuple[Expr, ...]) -> set[str]:
    return {expr.name for expr in expressions(roots) if isinstance(expr, ir.Local | ir.LocalArray)}


def _kept(stmt: ir.Stmt, live: set[str]) -> tuple[ir.Stmt, ...]:
    """The statement, if it changes something live or more than a local, without a result that nobody reads."""
    target = _target(stmt)
    if target and target not in live:
        return ()
    match stmt:
        case ir.If(then=(), orelse=()):
            return ()
        case ir.Atomic(op, pointer, values, result) if result and result not in live:
            return (ir.Atomic(op, pointer, values, line=stmt.line),)
        case ir.CallStatement(call, result) if result and result not in live:
            return (ir.CallStatement(call, line=stmt.line),)
        case _:
            return (stmt,)
