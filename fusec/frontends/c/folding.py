"""Typed expressions that are known when a kernel is compiled: array lengths, case labels, template arguments."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fusec.base.ops import TABLE
from fusec.ir.arithmetic import evaluate
from fusec.ir.expr import Apply, Const, Expr
from fusec.ir.loops import Declare, Local, Stmt

Known = dict[str, Const]


def fold(value: Expr, known: Known, named: Iterable[Stmt] = ()) -> Const | None:
    """The constant value of an expression; None if it is not constant, divides by zero or shifts out of range.

    known: locals that are constant. named: what was lowered on the way, which may only name parts of the expression.
    """
    known = dict(known)
    for statement in named:
        if not isinstance(statement, Declare) or statement.value is None:
            return None
        part = fold(statement.value, known)
        if part is not None:
            known[statement.name] = part
    return _fold(value, known, {})


def _fold(value: Expr, known: Known, done: dict[Expr, Const | None]) -> Const | None:
    """Recurses along the depth of an expression, which the front end bounds."""
    if value in done:
        return done[value]
    found: Const | None = None
    match value:
        case Const():
            found = value
        case Local(name=name):
            found = known.get(name)
        case Apply(op="where", args=(test, then, orelse)):
            chosen = _fold(test, known, done)
            found = chosen and _fold(then if chosen.bits else orelse, known, done)
        case Apply(op="logical_and" | "logical_or" as op, args=(first, second)):
            found = _fold(first, known, done)
            if found is not None and bool(found.bits) == (op == "logical_and"):
                found = _fold(second, known, done)
        case Apply(op=op, args=args) if TABLE[op].primitive:
            parts = [_fold(arg, known, done) for arg in args]
            given = [part for part in parts if part is not None]
            if len(given) == len(parts) and _defined(op, given):
                lanes = [np.asarray(part.value).reshape(1) for part in given]
                result = evaluate(op, lanes, value.type)
                found = Const(int.from_bytes(result.tobytes(), "little"), value.type)
    done[value] = found
    return found


def _defined(op: str, args: list[Const]) -> bool:
    """False for what C++ does not count as a constant although kernels give it a value."""
    if op in ("quotient", "modulo"):
        return args[1].bits != 0
    if op in ("left_shift", "right_shift"):
        return 0 <= int(args[1].value) < args[0].type.bits
    return True
