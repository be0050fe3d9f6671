"""Integer expressions without types: the conditions of ``#if``."""

from __future__ import annotations

from collections.abc import Callable

from fusec.errors.language import NotConstant
from fusec.frontends import literals
from fusec.frontends import syntax as s

MAX_BITS = 64

Lookup = Callable[[s.Name | s.Trait | s.Sizeof], int | None]


def evaluate(node: s.Expression, lookup: Lookup, what: str = "this") -> int:
    """The value of an integer expression; lookup gives the value of a name, trait or sizeof, None if it has none.

    Raises NotConstant for anything else.
    """
    try:
        value = _value(node, lookup)
    except RecursionError:
        value = None
    if value is None:
        raise NotConstant(what).at(node.span)
    return value


def _value(node: s.Expression, lookup: Lookup) -> int | None:
    match node:
        case s.Number():
            found = literals.number(node)
            return int(found.value) if found.type.is_integer else None
        case s.Character():
            return int(literals.character(node).value)
        case s.Word(word=word):
            return int(word == "true")
        case s.Name() | s.Trait() | s.Sizeof():
            return lookup(node)
        case s.Prefix(op=op, operand=operand):
            value = _value(operand, lookup)
            return None if value is None else _prefix(op, value)
        case s.Binary(op=op):
            return _binary(node, lookup)
        case s.Choice(condition=condition, then=then, orelse=orelse):
            test = _value(condition, lookup)
            return None if test is None else _value(then if test else orelse, lookup)
        case s.Cast(value=value_node):
            return _value(value_node, lookup)
        case _:
            return None


def _prefix(op: str, value: int) -> int | None:
    return {"-": -value, "+": value, "!": int(not value), "~": ~value}.get(op)


def _binary(node: s.Binary, lookup: Lookup) -> int | None:
    spine: list[s.Binary] = []
    first: s.Expression = node
    while isinstance(first, s.Binary):  # a long sum leans to the left; no recursion along it
        spine.append(first)
        first = first.left
    value = _value(first, lookup)
    for each in reversed(spine):
        if value is None:
            return None
        if (each.op == "&&" and not value) or (each.op == "||" and value):
            value = int(each.op == "||")
            continue
        right = _value(each.right, lookup)
        value = None if right is None else _apply(each.op, value, right)
    return value


def _apply(op: str, a: int, b: int) -> int | None:
    if op in ("<<", ">>"):
        if not 0 <= b < MAX_BITS:
            return None
        return a << b if op == "<<" and abs(a).bit_length() + b <= MAX_BITS else a >> b if op == ">>" else None
    if op in ("/", "%"):
        if b == 0:
            return None
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op == "/" else a - quotient * b
    table: dict[str, Callable[[], int]] = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "&": lambda: a & b, "|": lambda: a | b,
        "^": lambda: a ^ b, "==": lambda: int(a == b), "!=": lambda: int(a != b), "<": lambda: int(a < b),
        "<=": lambda: int(a <= b), ">": lambda: int(a > b), ">=": lambda: int(a >= b),
        "&&": lambda: int(bool(a and b)), "||": lambda: int(bool(a or b)),
    }  # fmt: skip
    value = table[op]()
    return value if abs(value).bit_length() <= MAX_BITS else None
