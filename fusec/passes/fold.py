"""Fold: compute constants, select branches with constant conditions, and replace constant locals by their values."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fusec.base.dtypes import DType
from fusec.base.ops import TABLE
from fusec.base.rounding_mode import default_rounding
from fusec.ir import loops as ir
from fusec.ir.arithmetic import evaluate
from fusec.ir.expr import Apply, Const, Expr, Lookup
from fusec.ir.walk import Body, blocks, changed_names, map_blocks, operands, rewriter, same, with_bodies

KEEPS_BITS = frozenset({"bitcast", "where", "negative", "absolute", "complex", "real", "imag"})


def fold_constants(program: ir.Program) -> ir.Program:
    """Replace constant expressions, and locals that are constant, by constants and drop branches never taken.

    Requires: a verified program.
    Ensures: no primitive op has only constant operands; no If tests a constant; nothing follows a jump in its block.
    """
    return with_bodies(program, _fold_body)


def fold_expression(expr: Expr) -> Expr:
    """One node whose operands are folded."""
    match expr:
        case Apply("where", (Const() as condition, then, orelse)):
            return then if condition.bits else orelse
        case Apply("logical_and", (Const() as first, second)):
            return second if first.bits else first
        case Apply("logical_or", (Const() as first, second)):
            return first if first.bits else second
        case Apply("logical_and" | "logical_or" as op, (_, Const() as second)):
            return expr.args[0] if bool(second.bits) == (op == "logical_and") else second
        case Apply(op, args) if TABLE[op].primitive and all(isinstance(arg, Const) for arg in args):
            return _evaluate(expr)
        case Lookup(_, Const() as index):
            return expr.at(int(index.value))
        case _:
            return expr


@lru_cache(maxsize=4096)
@default_rounding()
def _evaluate(expr: Apply) -> Const:
    """The value of an op of constants; the sign and payload of a nan that arithmetic makes are fixed as NumPy's nan."""
    lanes = [np.asarray(arg.value).reshape(1) for arg in expr.args if isinstance(arg, Const)]
    result = evaluate(expr.op, lanes, expr.type)
    if expr.op not in KEEPS_BITS and expr.type.is_float and (result != result).any():
        result = np.full(1, np.nan).astype(expr.type.numpy)
    return Const(int.from_bytes(result.tobytes(), "little"), expr.type)


# --- statements --------------------------------------------------------------------------------------------------


def _fold_body(body: Body) -> Body:
    """Fold a function's body in textual order.

    A local that is never assigned keeps the value of its declaration, which precedes every use; so what is known when
    an expression is met stays true.
    """
    assigned = changed_names(body)
    fixed: dict[str, Const] = {}

    def change(expr: Expr) -> Expr:
        return fixed.get(expr.name, expr) if isinstance(expr, ir.Local) else fold_expression(expr)

    rewrite = rewriter(change)

    def fold_block(block: Body) -> Body:
        result: list[ir.Stmt] = []
        for stmt in block:
            old = operands(stmt)
            new = tuple([rewrite(expr) for expr in old])
            result.extend(_choose(stmt if new == old else stmt.rebuild(new, blocks(stmt)), fold_block))
            if isinstance(stmt, ir.Declare) and stmt.name not in assigned and isinstance(stmt.type, DType):
                value = new[0] if new else Const(0, stmt.type)
                if isinstance(value, Const):
                    fixed[stmt.name] = value
            if result and isinstance(result[-1], ir.Break | ir.Continue | ir.Return):
                break
        return block if same(result, block) else tuple(result)

    return fold_block(body)


def _choose(stmt: ir.Stmt, fold_block: Callable[[Body], Body]) -> Body:
    """The statement over folded blocks; the branch taken instead of an If of a constant; no loop never entered."""
    match stmt:
        case ir.If(Const() as condition, then, orelse):
            return fold_block(then if condition.bits else orelse)
        case ir.If():
            new = map_blocks(stmt, fold_block)
            return (new,) if any(blocks(new)) else ()
        case ir.While(Const(bits), _, _, True) if not bits:
            return ()
        case _:
            return (map_blocks(stmt, fold_block),)
