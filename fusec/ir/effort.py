"""How long the interpreter would take for a program: an estimate, or none for programs that it should not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from math import inf

from fusec.base.dtypes import FLOAT64, STORAGE_FLOATS
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, type_of
from fusec.ir.walk import Body, expressions, is_elementary, roots_of, statements

# Seconds of any expression or statement, and more for each element; measured on one core of a server.
STEP, ELEMENT = 8e-6, 1e-9
ACCESS = (25e-6, 25e-9)  # of a load or a store
FMA64, FMA = (60e-6, 100e-9), (20e-6, 20e-9)
NARROW = (8e-6, 5e-9)  # of an operation on floats that are computed as wider ones
ROUNDS = 16  # of loops in elementary functions
UNSUITABLE = (ir.Atomic, ir.AtomicLoad, ir.AtomicStore, ir.Shuffle, ir.Barrier, ir.CallStatement, ir.DeclareArray)


def program_effort(program: ir.Program, elements: int) -> float:
    """Seconds for so many elements; infinite for programs with loops, blocks, or addresses of their own."""
    if program.block or any(param.raw and param.written for param in program.arrays):
        return inf
    return body_effort(program.body, functions_effort(program.functions, elements), elements)


def functions_effort(functions: Iterable[ir.Function], elements: int) -> dict[str, float]:
    """Seconds for calls of functions, which come before their callers, by name."""
    known: dict[str, float] = {}
    for function in functions:
        rounds = ROUNDS if is_elementary(function) else inf
        known[function.name] = STEP + body_effort(function.body, known, elements, rounds)
    return known


def body_effort(body: Body, functions: Mapping[str, float], elements: int, rounds: float = inf) -> float:
    """Seconds for statements on so many elements; infinite for those that have no place here. rounds: of loops."""
    total, turns = 0.0, 1.0
    for statement in statements(body):
        if isinstance(statement, UNSUITABLE):
            return inf
        total += STEP
        turns = rounds if isinstance(statement, ir.While) else turns
        if isinstance(statement, ir.Store):
            total += ACCESS[0] + ACCESS[1] * elements
    return turns * (total + sum(map(partial(_expression, functions, elements), expressions(roots_of(body)))))


def _expression(functions: Mapping[str, float], elements: int, expr: Expr) -> float:
    match expr:
        case Const() | ir.Local():
            return 0
        case ir.Load():
            return ACCESS[0] + ACCESS[1] * elements
        case ir.Call(name):
            return functions.get(name, inf)
        case Apply("fma"):
            fixed, each = FMA64 if expr.type == FLOAT64 or expr.type.is_complex else FMA
            return fixed + each * elements
        case Apply():
            fixed, each = NARROW if any(type_of(arg) in STORAGE_FLOATS for arg in expr.args) else (STEP, ELEMENT)
            return fixed + each * elements
        case ir.Offset() | ir.LocalArray():
            return inf
        case _:
            return STEP + ELEMENT * elements
