"""The conditions of ``#if``: integers of 64 bits, signed unless one of them is unsigned."""

from __future__ import annotations

from fusec.base.dtypes import INT64, UINT64
from fusec.errors.language import NotConstant
from fusec.frontends.c import literals
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import binary, prefix, to, truth
from fusec.frontends.c.folding import fold
from fusec.ir.expr import Const, Expr, const, scalar_type


def evaluate(node: s.Expression, what: str = "this") -> int:
    """The value of a condition, in which every name that is not a macro is 0. Raises NotConstant if it has none."""
    try:
        found = _value(node)
    except RecursionError:
        found = None
    if found is None:
        raise NotConstant(what).at(node.span)
    return int(found.value)


def _value(node: s.Expression) -> Const | None:
    match node:
        case s.Numeral():
            number = literals.number(node)
            value = int(number.value) if number.type.is_integer else None
            unsigned = value is not None and (value >> 63 or "u" in node.text.lower())
            return None if value is None else const(value, UINT64 if unsigned else INT64)
        case s.Character():
            return const(int(literals.character(node).value), INT64)
        case s.Word(word=word):
            return const(word == "true", INT64)
        case s.Name():
            return const(0, INT64)
        case s.Prefix(op="+" | "-" | "~" | "!" as op, operand=operand):
            inner = _value(operand)
            return None if inner is None else _folded(prefix(op, inner, node.span))
        case s.Binary():
            return _binary(node)
        case s.Choose():
            return _choice(node)
    return None


def _folded(value: Expr) -> Const | None:
    """The value of an operation, whose truth values are signed."""
    return fold(value if scalar_type(value).is_integer else to(value, INT64), {})


def _choice(node: s.Choose) -> Const | None:
    """One branch, unsigned if the other is; the other need not have a value."""
    test = _value(node.condition)
    if test is None:
        return None
    chosen, other = (node.then, node.orelse) if test.bits else (node.orelse, node.then)
    found, rest = _value(chosen), _value(other)
    return found if found is None or rest is None or rest.type == INT64 else _folded(to(found, UINT64))


def _binary(node: s.Binary) -> Const | None:
    spine: list[s.Binary] = []
    first: s.Expression = node
    while isinstance(first, s.Binary):  # a long sum leans to the left; no recursion along it
        spine.append(first)
        first = first.left
    left = _value(first)
    for each in reversed(spine):
        if left is None:
            return None
        if each.op in ("&&", "||") and bool(left.bits) == (each.op == "||"):
            left = const(each.op == "||", INT64)
            continue
        right = _value(each.right)
        if right is None:
            return None
        left = _folded(truth(right) if each.op in ("&&", "||") else binary(each.op, left, right, each.place))
    return left
