"""Divide by constants: quotients by a constant become calls of functions that multiply, with the same bits."""

from __future__ import annotations

from fusec.base.dtypes import COMPUTE_FLOATS
from fusec.base.records import replace
from fusec.ir.expr import Apply, Const, Expr, apply
from fusec.ir.loops import Call, Function, Program
from fusec.ir.walk import rewritten
from fusec.math import quotient_by


def divide_by_constants(program: Program) -> Program:
    """Call a function for each quotient by a constant for which a product and a correction round as a division.

    Requires: a simplified program: quotients by powers of two are products.
    Ensures: the same results, apart from the sign and payload of nan; the functions called stand before the others.
    """
    needed: dict[str, Function] = {}

    def change(expr: Expr) -> Expr:
        match expr:
            case Apply("divide", (dividend, Const() as divisor), dtype) if dtype in COMPUTE_FLOATS:
                function = quotient_by(dtype, abs(float(divisor.value)))
                if function is not None and not isinstance(dividend, Const):
                    needed[function.name] = function
                    signed = dividend if float(divisor.value) > 0 else apply("negative", dividend)
                    return Call(function.name, (signed,), dtype)
        return expr

    changed = rewritten(program, change)
    return replace(changed, functions=(*needed.values(), *changed.functions)) if needed else program
