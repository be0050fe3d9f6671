"""The conditions of ``#if``: integers of 64 bits, signed unless one of them is unsigned."""

from __future__ import annotations

import operator
from collections.abc import Callable

from fusec.base.records import dataclass
from fusec.errors.language import NotConstant
from fusec.frontends.c import literals
from fusec.frontends.c import syntax as s

BITS = 64


@dataclass(frozen=True, slots=True)
class _Integer:
    """A value of type intmax_t, or uintmax_t if it is unsigned."""

    value: int
    unsigned: bool = False

    def of(self, value: int) -> _Integer:
        """Another value of the same type; it wraps."""
        value %= 1 << BITS
        return _Integer(value - (1 << BITS) if not self.unsigned and value >> (BITS - 1) else value, self.unsigned)


def evaluate(node: s.Expression, what: str = "this") -> int:
    """The value of a condition, in which every name that is not a macro is 0. Raises NotConstant if it has none."""
    try:
        found = _value(node)
    except RecursionError:
        found = None
    if found is None:
        raise NotConstant(what).at(node.span)
    return found.value


def _value(node: s.Expression) -> _Integer | None:
    match node:
        case s.Numeral():
            number = literals.number(node)
            if not number.type.is_integer:
                return None
            value = int(number.value)
            return _Integer(value, value >= 1 << (BITS - 1) or "u" in node.text.lower())
        case s.Character():
            return _Integer(int(literals.character(node).value))
        case s.Word(word=word):
            return _Integer(int(word == "true"))
        case s.Name():
            return _Integer(0)
        case s.Prefix(op=op, operand=operand):
            inner = _value(operand)
            return None if inner is None else _prefix(op, inner)
        case s.Binary():
            return _binary(node)
        case s.Choose():
            return _choice(node)
        case _:
            return None


def _prefix(op: str, operand: _Integer) -> _Integer | None:
    match op:
        case "+":
            return operand
        case "-":
            return operand.of(-operand.value)
        case "~":
            return operand.of(~operand.value)
        case "!":
            return _Integer(int(not operand.value))
        case _:
            return None


def _choice(node: s.Choose) -> _Integer | None:
    """One branch, unsigned if the other is; the other need not have a value."""
    test = _value(node.condition)
    if test is None:
        return None
    chosen, other = (node.then, node.orelse) if test.value else (node.orelse, node.then)
    found, rest = _value(chosen), _value(other)
    return found if found is None or rest is None else _Integer(0, found.unsigned or rest.unsigned).of(found.value)


def _binary(node: s.Binary) -> _Integer | None:
    spine: list[s.Binary] = []
    first: s.Expression = node
    while isinstance(first, s.Binary):  # a long sum leans to the left; no recursion along it
        spine.append(first)
        first = first.left
    left = _value(first)
    for each in reversed(spine):
        if left is None:
            return None
        if each.op in ("&&", "||") and bool(left.value) == (each.op == "||"):
            left = _Integer(int(each.op == "||"))
            continue
        right = _value(each.right)
        left = None if right is None else _apply(each.op, left, right)
    return left


def _apply(op: str, a: _Integer, b: _Integer) -> _Integer | None:
    if op in ("&&", "||"):  # the left side has not decided
        return _Integer(int(bool(b.value)))
    if op in ("<<", ">>"):
        if not 0 <= b.value < BITS:
            return None
        return a.of(a.value << b.value if op == "<<" else a.value >> b.value)
    common = _Integer(0, a.unsigned or b.unsigned)
    x, y = common.of(a.value).value, common.of(b.value).value
    if op in _COMPARISONS:
        return _Integer(int(_COMPARISONS[op](x, y)))
    if op in ("/", "%"):
        if y == 0:
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return common.of(quotient if op == "/" else x - quotient * y)
    return common.of(_ARITHMETIC[op](x, y))


_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip
