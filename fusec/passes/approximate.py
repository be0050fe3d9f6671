"""Approximate: the local rewrites of ``fp="fast"`` besides contraction, as named rules.

Each saves time on every target and costs a few roundings; none makes a nan of finite numbers that gave none, except
where an intermediate value overflows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusec.base.dtypes import COMPUTE_FLOATS
from fusec.ir.expr import Apply, Const, Expr, apply, const
from fusec.ir.loops import Program
from fusec.ir.walk import map_expressions, rewriter, with_bodies
from fusec.passes import Native
from fusec.passes.simplify import simplify_expression

Rule = Callable[[Apply, Native], Expr | None]

LONGEST_POWER = 16  # whole exponents up to this become products


def approximate(program: Program, native: Native = frozenset()) -> Program:
    """Apply the rules to every expression of real floats, operands first.

    native: the ops, with their dtype, that the target approximates by instructions of its own.
    Requires: a verified, simplified program. Ensures: results a few roundings away.
    """

    def change(expr: Expr) -> Expr:
        if not isinstance(expr, Apply) or expr.type not in COMPUTE_FLOATS:
            return expr
        for rule in _RULES.get(expr.op, ()):
            found = rule(expr, native)
            if found is not None:
                return rewrite(simplify_expression(found))
        return expr

    rewrite = rewriter(change)
    return with_bodies(program, lambda body: map_expressions(body, rewrite))


# --- division ----------------------------------------------------------------------------------------------------


def division_by_a_constant(value: Apply, _: Native) -> Expr | None:
    """``x / c`` is ``x * (1 / c)``, where 1 / c is a normal number."""
    match value.args:
        case (dividend, Const() as divisor) if not isinstance(dividend, Const):
            reciprocal = _normal(np.reciprocal, divisor)
            return None if reciprocal is None else apply("multiply", dividend, reciprocal)
    return None


def division_by_a_root(value: Apply, native: Native) -> Expr | None:
    """``x / sqrt(y)`` is ``x * rsqrt(y)`` where the target has an instruction for that."""
    match value.args:
        case (dividend, Apply("sqrt", (radicand,))) if ("rsqrt", value.type) in native:
            return apply("multiply", dividend, apply("rsqrt", radicand))
    return None


def reciprocal_root(value: Apply, native: Native) -> Expr | None:
    """``rsqrt(x)`` is ``1 / sqrt(x)`` elsewhere."""
    if ("rsqrt", value.type) in native:
        return None
    return apply("divide", const(1, value.type), apply("sqrt", value.args[0]))


# --- constants meet ----------------------------------------------------------------------------------------------


def factors_meet(value: Apply, _: Native) -> Expr | None:
    """``(x * c) * d`` is ``x * (c * d)``."""
    match value.args:
        case (Apply("multiply", (x, Const() as c)), Const() as d) if not isinstance(x, Const):
            factor = _normal(np.multiply, c, d)
            return None if factor is None else apply("multiply", x, factor)
    return None


def terms_meet(value: Apply, _: Native) -> Expr | None:
    """``(x + c) + d`` is ``x + (c + d)``, and likewise with differences."""
    match value.args:
        case (Apply("add" | "subtract" as inner, (x, Const() as c)), Const() as d) if not isinstance(x, Const):
            term = _normal(np.add if inner == value.op else np.subtract, c, d)
            return None if term is None else apply(inner, x, term)
    return None


# --- functions ---------------------------------------------------------------------------------------------------


def plain_sigmoid(value: Apply, _: Native) -> Expr | None:
    """``1 / (1 + exp(-x))``; where exp overflows, the quotient is 0."""
    one = const(1, value.type)
    return apply("divide", one, apply("add", one, apply("exp", apply("negative", value.args[0]))))


def power_as_products(value: Apply, _: Native) -> Expr | None:
    """``x**n`` for a small whole n, and ``x**0.5``, by multiplications and a root."""
    base, exponent = value.args
    if not isinstance(exponent, Const):
        return None
    number = float(exponent.value)
    if abs(number) == 0.5:
        return apply("sqrt", base) if number > 0 else apply("rsqrt", base)
    if not number.is_integer() or abs(number) > LONGEST_POWER:
        return None
    if number == 0:
        return const(1, value.type)
    power = _product(base, int(abs(number)))
    return power if number > 0 else apply("divide", const(1, value.type), power)


def _product(base: Expr, count: int) -> Expr:
    """``base`` times itself, by squaring."""
    if count == 1:
        return base
    half = _product(base, count // 2)
    square = apply("multiply", half, half)
    return square if count % 2 == 0 else apply("multiply", square, base)


def power_by_logarithm(value: Apply, native: Native) -> Expr | None:
    """``exp2(y * log2(abs(x)))`` with the sign of C's pow, where the target has instructions for both.

    The error grows with the size of the product. Elsewhere pow itself is both faster and more accurate.
    """
    base, exponent = value.args
    dtype = value.type
    if not {("exp2", dtype), ("log2", dtype)} <= native:
        return None
    size = apply("exp2", apply("multiply", exponent, apply("log2", apply("absolute", base))))
    half = apply("multiply", exponent, const(0.5, dtype))  # 0, and so even, of the least subnormal number
    is_even = apply("equal", apply("trunc", half), half)
    is_whole = apply("equal", apply("trunc", exponent), exponent)
    whole = apply("where", is_even, size, apply("negative", size))
    signed = apply("where", is_whole, whole, const(np.nan, dtype))
    power = apply("where", apply("less", base, const(0, dtype)), signed, size)
    is_one = apply("logical_or", apply("equal", exponent, const(0, dtype)), apply("equal", base, const(1, dtype)))
    return apply("where", is_one, const(1, dtype), power)


def _normal(function: Callable[..., np.generic], *constants: Const) -> Const | None:
    """A function of constants, if its value is a normal number."""
    dtype = constants[0].type
    with np.errstate(all="ignore"):
        number = function(*(each.value for each in constants))
    size = abs(float(number))
    limits = np.finfo(dtype.numpy)
    return const(number, dtype) if float(limits.tiny) <= size <= float(limits.max) else None


_RULES: dict[str, tuple[Rule, ...]] = {
    "divide": (division_by_a_constant, division_by_a_root),
    "rsqrt": (reciprocal_root,),
    "multiply": (factors_meet,),
    "add": (terms_meet,),
    "subtract": (terms_meet,),
    "sigmoid": (plain_sigmoid,),
    "pow": (power_as_products, power_by_logarithm),
}
