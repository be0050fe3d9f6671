"""Expand: replace every op that `fusec.math` defines by a call of its function, and complex arithmetic likewise."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, DType, real_type
from fusec.base.ops import TABLE
from fusec.base.records import replace
from fusec.ir.expr import Apply, Const, Expr, apply, const, convert, scalar_type, type_of
from fusec.ir.loops import Call, Function, Program
from fusec.ir.walk import rewritten
from fusec.math import callees, define, integral_power
from fusec.passes import Native

PLAIN_COMPLEX = frozenset({"complex", "real", "imag", "where"})  # what every code generator spells


def expand(program: Program, native: Native = frozenset()) -> Program:
    """Leave only primitive ops, and of complex ones only complex, real, imag and where.

    native: further ops, each with the dtype of its operands, that the target spells itself.
    Requires: a verified program.
    Ensures: the functions called stand before the program's own, callees first, each once.
    """
    needed: dict[str, Function] = {}

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Apply) or (native and (expr.op, type_of(expr.args[0])) in native):
            return expr
        return _expanded(expr, needed)

    changed = rewritten(program, change)
    if changed is program:
        return program
    functions = (*needed.values(), *changed.functions)
    return replace(changed, functions=functions)


def _expanded(value: Apply, needed: dict[str, Function]) -> Expr:
    """One op over operands that are expanded."""
    types = tuple(scalar_type(arg) for arg in value.args)
    if value.op == "convert":
        return _converted(value, types[0], needed)
    involved = value.type.is_complex or any(dtype.is_complex for dtype in types)
    if TABLE[value.op].primitive and (not involved or value.op in PLAIN_COMPLEX):
        return value
    match value:
        case Apply("pow", (base, Const(value=exponent))):
            products = integral_power(value.type, complex(exponent))
            if products is not None:
                return _call(products, (base,), needed)
    return _call(define(value.op, types), value.args, needed)


def _converted(value: Apply, source: DType, needed: dict[str, Function]) -> Expr:
    """A conversion from or to a complex type, by its parts."""
    target, (operand,) = value.type, value.args
    if target.is_complex and not source.is_complex:
        part = real_type(target)
        return apply("complex", convert(operand, part), const(0, part))
    if source.is_complex and (target.is_complex or target == BOOL):
        return _call(define("convert", (source, target)), value.args, needed)
    return convert(apply("real", operand), target) if source.is_complex else value


def _call(function: Function, args: tuple[Expr, ...], needed: dict[str, Function]) -> Expr:
    for each in (*callees(function), function):
        needed.setdefault(each.name, each)
    assert function.result is not None, f"{function.name} returns nothing"
    return Call(function.name, args, function.result)
