"""Uniform access to the parts of statements and expressions, for passes that treat most nodes alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fusec.base.records import replace
from fusec.ir.expr import Expr
from fusec.ir.loops import (
    Assign,
    Atomic,
    Barrier,
    Break,
    Call,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
    Function,
    If,
    Local,
    LocalArray,
    Program,
    Return,
    SetField,
    Shuffle,
    Stmt,
    Store,
    While,
)

Body = tuple[Stmt, ...]


def operands(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions a statement itself evaluates, in order; those of nested statements are not among them."""
    match stmt:
        case Declare(_, _, value) | Return(value):
            return () if value is None else (value,)
        case DeclareArray(_, _, _, values):
            return values
        case Assign(_, value) | SetField(_, _, value) | Shuffle(_, value):
            return (value,)
        case Store(pointer, value):
            return (pointer, value)
        case Atomic(_, pointer, values):
            return (pointer, *values)
        case CallStatement(call):
            return (call,)
        case If(condition) | While(condition):
            return (condition,)
        case _:
            return ()


def blocks(stmt: Stmt) -> tuple[Body, ...]:
    """The statement lists nested directly in a statement."""
    match stmt:
        case If(_, then, orelse):
            return (then, orelse)
        case While(_, body, step):
            return (body, step)
        case _:
            return ()


def rebuild(stmt: Stmt, exprs: tuple[Expr, ...], nested: tuple[Body, ...]) -> Stmt:
    """The same statement over other operands and nested lists, given in the order of `operands` and `blocks`."""
    line = stmt.line
    match stmt:
        case Declare(name, kind):
            return Declare(name, kind, exprs[0] if exprs else None, line=line)
        case DeclareArray(name, element, length):
            return DeclareArray(name, element, length, exprs, stmt.space, line=line)
        case Assign(name):
            return Assign(name, exprs[0], line=line)
        case SetField(name, part):
            return SetField(name, part, exprs[0], line=line)
        case Store():
            return Store(exprs[0], exprs[1], line=line)
        case Atomic(op, _, _, result):
            return Atomic(op, exprs[0], exprs[1:], result, line=line)
        case Shuffle(result, _, distance):
            return Shuffle(result, exprs[0], distance, line=line)
        case CallStatement(_, result):
            assert isinstance(exprs[0], Call), "a call statement needs a call"
            return CallStatement(exprs[0], result, line=line)
        case If():
            return If(exprs[0], nested[0], nested[1], line=line)
        case While():
            return While(exprs[0], nested[0], nested[1], stmt.test_first, line=line)
        case Return():
            return Return(exprs[0] if exprs else None, line=line)
        case Break() | Continue() | Barrier():
            return stmt
        case _:
            raise AssertionError(f"unknown statement {stmt}")


def map_expressions(body: Body, change: Callable[[Expr], Expr]) -> Body:
    """The statements with every operand replaced by `change` of it; the same object if nothing changed."""
    result: list[Stmt] = []
    changed = False
    for stmt in body:
        old = operands(stmt)
        new = tuple([change(expr) for expr in old])
        old_nested = blocks(stmt)
        new_nested = tuple([map_expressions(block, change) for block in old_nested])
        same = new == old and all(map(_is, new_nested, old_nested))
        changed = changed or not same
        result.append(stmt if same else rebuild(stmt, new, new_nested))
    return tuple(result) if changed else body


def _is(left: object, right: object) -> bool:
    return left is right


def with_bodies(program: Program, change: Callable[[Body], Body]) -> Program:
    """The program with the body of the kernel and of every function replaced by `change` of it."""
    functions = tuple(with_body(function, change(function.body)) for function in program.functions)
    body = change(program.body)
    if body is program.body and all(map(_is, functions, program.functions)):
        return program
    return replace(program, body=body, functions=functions)


def with_body(function: Function, body: Body) -> Function:
    """The function with another body; the same object if it is the same body."""
    if body is function.body:
        return function
    return Function(function.name, function.params, function.result, body, function.text)


def is_elementary(function: Function) -> bool:
    """Whether fusec.math wrote the function: its arithmetic is exact as it stands, whatever a kernel allows."""
    return function.name.startswith("fusec_")


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement, nested ones included, in textual order."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from statements(block)


def expressions(roots: Iterable[Expr], seen: set[Expr] | None = None) -> Iterator[Expr]:
    """Every distinct expression below the roots, each before its operands; `seen` ones are left out and added."""
    seen = set() if seen is None else seen
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr not in seen:
            seen.add(expr)
            yield expr
            stack.extend(expr.children)


def rewriter(change: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """A function that applies `change` to every node of an expression, operands first, and remembers the results."""
    known: dict[Expr, Expr] = {}

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
    """The statements with every local that they declare renamed, and the same change for further expressions."""
    declared = {stmt.name for stmt in statements(body) if isinstance(stmt, Declare | DeclareArray)}
    if not declared:
        return body, lambda expr: expr

    def change(expr: Expr) -> Expr:
        match expr:
            case Local(name, kind) if name in declared:
                return Local(name + suffix, kind)
            case LocalArray(name, place) if name in declared:
                return LocalArray(name + suffix, place)
            case _:
                return expr

    rewrite = rewriter(change)
    return _with_names(map_expressions(body, rewrite), declared, suffix), rewrite


def _with_names(body: Body, declared: set[str], suffix: str) -> Body:
    """The statements with other names for what they declare and assign."""
    result: list[Stmt] = []
    for stmt in body:
        nested = tuple(_with_names(block, declared, suffix) for block in blocks(stmt))
        changed = rebuild(stmt, operands(stmt), nested)
        match changed:
            case Declare(name) | DeclareArray(name) | Assign(name) | SetField(name) if name in declared:
                changed = replace(changed, name=name + suffix)
            case Atomic(result=name) | CallStatement(result=name) | Shuffle(name) if name in declared:
                changed = replace(changed, result=name + suffix)
            case _:
                pass
        result.append(changed)
    return tuple(result)
