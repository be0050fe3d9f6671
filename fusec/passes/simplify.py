"""Simplify: named local rules that never change a bit, apart from the sign and payload of nan.

What stays, on purpose: x * 0 (nan, -0), x + 0 (-0 + 0 is +0), x - x (infinities) for floats; and strength reductions
that every target's own compiler makes as well, such as x * 2 to x + x.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusec.base.dtypes import BOOL
from fusec.base.ops import MIRRORED, NEGATED, TABLE
from fusec.ir.expr import Apply, Const, Expr, const, convert, scalar_type
from fusec.ir.loops import Program
from fusec.ir.walk import rewritten
from fusec.passes.exact import embeds, integer_range_within, is_minus_zero, is_number, power_of_two
from fusec.passes.fold import fold_expression

Rule = Callable[[Apply], Expr | None]

_RULES: dict[str, list[Rule]] = {}
_ROUNDS = 8  # more rules in a row at one node mean that two of them undo each other


def simplify_expressions(program: Program) -> Program:
    """Apply the rules to every expression, operands first.

    Requires: a verified program.
    Ensures: the same results; no expression is deeper than before.
    """
    return rewritten(program, simplify_expression)


def simplify_expression(expr: Expr) -> Expr:
    """One node whose operands are simplified."""
    for _ in range(_ROUNDS):
        if not isinstance(expr, Apply):
            return expr
        found = _first(expr)
        if found is None:
            return expr
        expr = fold_expression(found)
    return expr


def _first(expr: Apply) -> Expr | None:
    for rule in _RULES.get(expr.op, ()):
        found = rule(expr)
        if found is not None:
            return found
    return None


def _rule(*ops: str) -> Callable[[Rule], Rule]:
    """Register a rule for ops; rules of an op are tried in the order of this file."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            assert op in TABLE, f"{rule.__name__} is for {op}, which is no op"
            _RULES.setdefault(op, []).append(rule)
        return rule

    return register


# --- arithmetic --------------------------------------------------------------------------------------------------


@_rule(*(name for name, op in TABLE.items() if op.commutes and op.primitive))
def constant_goes_right(value: Apply) -> Expr | None:
    """The other rules look for constants there."""
    left, right = value.args
    if isinstance(left, Const) and not isinstance(right, Const):
        return value.rebuild((right, left))
    return None


@_rule("multiply", "divide", "quotient")
def one_is_neutral(value: Apply) -> Expr | None:
    """``x * 1`` and ``x / 1``."""
    return value.args[0] if is_number(value.args[1], 1) else None


@_rule("add", "subtract")
def zero_is_neutral(value: Apply) -> Expr | None:
    """``x + (-0.0)`` and ``x - 0.0`` for floats; ``x + 0`` and ``x - 0`` for integers."""
    left, right = value.args
    if value.type.is_integer:
        return left if is_number(right, 0) else None
    if value.op == "add":
        return left if is_minus_zero(right) else None
    return left if is_number(right, 0) and value.type.is_float else None


@_rule("subtract")
def from_zero_is_negative(value: Apply) -> Expr | None:
    """``-0.0 - x`` for floats, ``0 - x`` for integers."""
    left, right = value.args
    if is_minus_zero(left) or (value.type.is_integer and is_number(left, 0)):
        return Apply("negative", (right,), value.type)
    return None


@_rule("multiply", "quotient", "divide")
def minus_one_negates(value: Apply) -> Expr | None:
    """``x * -1``, and ``x / -1`` too, for INT_MIN / -1 wraps."""
    if value.type.kind != "unsigned" and is_number(value.args[1], -1):
        return Apply("negative", (value.args[0],), value.type)
    return None


@_rule("add", "subtract")
def sign_moves_into_the_sum(value: Apply) -> Expr | None:
    """``x + -y`` is ``x - y``, and ``x - -y`` is ``x + y``, with the same rounding and sign of zero."""
    match value.args:
        case (left, Apply("negative", (right,))) if not value.type.is_complex:
            return Apply("subtract" if value.op == "add" else "add", (left, right), value.type)
    return None


@_rule("multiply", "divide")
def signs_cancel(value: Apply) -> Expr | None:
    """``-x * -y`` and ``-x / -y``."""
    match value.args:
        case (Apply("negative", (left,)), Apply("negative", (right,))) if not value.type.is_complex:
            return Apply(value.op, (left, right), value.type)
    return None


@_rule("negative", "bitwise_invert", "logical_not")
def twice_is_nothing(value: Apply) -> Expr | None:
    """``- -x``, ``~~x`` and ``!!x``."""
    match value.args:
        case (Apply(op, (inner,)),) if op == value.op:
            return inner
    return None


@_rule("absolute")
def sign_is_lost_anyway(value: Apply) -> Expr | None:
    """``abs(-x)``, ``abs(abs(x))``, and ``abs`` of what has no sign; the negative of an unsigned value is another."""
    match value.args:
        case (inner,) if value.type.kind == "unsigned":
            return inner
        case (Apply("negative", (inner,)),):
            return Apply("absolute", (inner,), value.type)
        case (Apply("absolute") as inner,):
            return inner
    return None


@_rule("divide")
def reciprocal_of_a_power_of_two(value: Apply) -> Expr | None:
    """``x / 2**k`` is ``x * 2**-k`` rounded once either way, as long as the reciprocal is a number of the type."""
    divisor = value.args[1]
    if not isinstance(divisor, Const) or not value.type.is_float:
        return None
    number = float(divisor.value)
    if not np.isfinite(number) or number == 0 or abs(np.frexp(number)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        reciprocal = const(1 / number, value.type)
    # The smallest subnormals have no finite reciprocal; a subnormal reciprocal is exact as well.
    exact = np.isfinite(float(reciprocal.value)) and float(reciprocal.value) * number == 1
    return Apply("multiply", (value.args[0], reciprocal), value.type) if exact else None


# --- integers ----------------------------------------------------------------------------------------------------


@_rule("multiply", "bitwise_and")
def zero_absorbs(value: Apply) -> Expr | None:
    """``x * 0`` and ``x & 0`` of integers."""
    if value.type.is_float or value.type.is_complex:
        return None
    right = value.args[1]
    return right if isinstance(right, Const) and right.bits == 0 else None


@_rule("bitwise_or", "bitwise_xor", "left_shift", "right_shift")
def no_bits_change_nothing(value: Apply) -> Expr | None:
    """``x | 0``, ``x ^ 0``, ``x << 0``, ``x >> 0``."""
    right = value.args[1]
    return value.args[0] if isinstance(right, Const) and right.bits == 0 else None


@_rule("bitwise_and")
def all_bits_change_nothing(value: Apply) -> Expr | None:
    """``x & ~0``."""
    right = value.args[1]
    ones = 1 if value.type == BOOL else (1 << value.type.bits) - 1
    return value.args[0] if isinstance(right, Const) and right.bits == ones else None


@_rule("bitwise_and", "bitwise_or", "logical_and", "logical_or")
def same_operand_twice(value: Apply) -> Expr | None:
    """``x & x`` and ``x | x``."""
    return value.args[0] if value.args[0] is value.args[1] else None


@_rule("subtract", "bitwise_xor")
def same_operand_cancels(value: Apply) -> Expr | None:
    """``x - x`` of integers and ``x ^ x``; not of floats, for inf - inf is nan."""
    if value.args[0] is value.args[1] and not value.type.is_float and not value.type.is_complex:
        return Const(0, value.type)
    return None


@_rule("quotient", "modulo")
def unsigned_division_by_a_power_of_two(value: Apply) -> Expr | None:
    """A shift or a mask, which also frees code generators from testing for zero."""
    exponent = power_of_two(value.args[1])
    if exponent is None or value.type.kind != "unsigned":
        return None
    if value.op == "quotient":
        return Apply("right_shift", (value.args[0], const(exponent, value.type)), value.type)
    return Apply("bitwise_and", (value.args[0], const((1 << exponent) - 1, value.type)), value.type)


# --- choice and comparison ---------------------------------------------------------------------------------------


@_rule("where")
def both_choices_alike(value: Apply) -> Expr | None:
    """``c ? x : x``."""
    return value.args[1] if value.args[1] is value.args[2] else None


@_rule("where")
def choice_of_bools(value: Apply) -> Expr | None:
    """``c ? true : false`` and its opposite."""
    match value.args:
        case (condition, Const(then, _), Const(orelse, _)) if value.type == BOOL and then != orelse:
            return condition if then else Apply("logical_not", (condition,), BOOL)
    return None


@_rule("where")
def negated_choice(value: Apply) -> Expr | None:
    """``!c ? x : y`` is ``c ? y : x``."""
    match value.args:
        case (Apply("logical_not", (condition,)), then, orelse):
            return Apply("where", (condition, orelse, then), value.type)
    return None


@_rule("logical_not")
def negated_comparison(value: Apply) -> Expr | None:
    """``!(x == y)`` for all types; ``!(x < y)`` only where no operand can be nan."""
    match value.args:
        case (Apply(op, args),) if op in NEGATED and not (op in MIRRORED and scalar_type(args[0]).is_float):
            return Apply(NEGATED[op], args, BOOL)
    return None


@_rule("not_equal", "equal")
def comparison_of_a_truth_value(value: Apply) -> Expr | None:
    """``(x from bool) != 0`` is that bool; C's conditions look like this."""
    match value.args:
        case (Apply("convert", (inner,)), Const() as right) if scalar_type(inner) == BOOL and is_number(right, 0):
            return inner if value.op == "not_equal" else Apply("logical_not", (inner,), BOOL)
        case (inner, Const(bits, kind)) if kind == BOOL:
            return inner if (value.op == "equal") == bool(bits) else Apply("logical_not", (inner,), BOOL)
    return None


# --- change of type ----------------------------------------------------------------------------------------------


@_rule("convert")
def same_type(value: Apply) -> Expr | None:
    """A conversion to the type the value has."""
    return value.args[0] if scalar_type(value.args[0]) == value.type else None


@_rule("convert")
def through_a_type_that_holds_all(value: Apply) -> Expr | None:
    """A detour over a type that holds every value of the source; integers only ever lose upper bits."""
    match value.args:
        case (Apply("convert", (inner,), middle),):
            source, target = scalar_type(inner), value.type
            if embeds(source, middle) and not target.is_complex:
                wraps = source.is_integer and middle.is_float and target.is_integer
                if not wraps or integer_range_within(source, target):
                    return convert(inner, target)
            integers = source.is_integer and middle.is_integer and target.is_integer
            if integers and middle.bits >= target.bits:
                return convert(inner, target)
    return None


@_rule("convert")
def truth_of_a_truth_value(value: Apply) -> Expr | None:
    """A value from bool converted to bool again."""
    match value.args:
        case (Apply("where", (condition, Const() as then, Const() as orelse)),) if value.type == BOOL:
            if is_number(then, 1) and is_number(orelse, 0):
                return condition
    return None


@_rule("bitcast")
def through_the_same_bits(value: Apply) -> Expr | None:
    """A bitcast of a bitcast, or to the type the value has."""
    inner = value.args[0]
    if scalar_type(inner) == value.type:
        return inner
    match inner:
        case Apply("bitcast", (first,)) if scalar_type(first) != BOOL and inner.type != BOOL:
            return Apply("bitcast", (first,), value.type)
    return None


@_rule("real", "imag")
def part_of_a_pair(value: Apply) -> Expr | None:
    """A part of a complex value made from parts."""
    match value.args:
        case (Apply("complex", (real, imag)),):
            return real if value.op == "real" else imag
    return None


@_rule("complex")
def pair_of_its_parts(value: Apply) -> Expr | None:
    """A complex value taken apart and put together again."""
    match value.args:
        case (Apply("real", (whole,)), Apply("imag", (other,))) if whole is other:
            return whole
    return None
