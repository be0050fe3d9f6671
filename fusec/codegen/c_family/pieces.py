"""Pieces of C expressions with their precedence, so that only necessary parentheses are printed."""

from __future__ import annotations

from typing import NamedTuple

from fusec.base.ops import SYMBOLS

# Precedences, loosest first.
TERNARY, OR, AND, BIT_OR, BIT_XOR, BIT_AND = range(6)
EQUALITY, RELATION, SHIFT, SUM, PRODUCT, UNARY, POSTFIX, PRIMARY = range(6, 14)

_SELDOM_KNOWN = frozenset({BIT_OR, BIT_XOR, BIT_AND, SHIFT})

LEVELS = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "&": BIT_AND, "|": BIT_OR,
    "^": BIT_XOR, "<<": SHIFT, ">>": SHIFT, "==": EQUALITY, "!=": EQUALITY, "<": RELATION, "<=": RELATION,
    ">": RELATION, ">=": RELATION, "&&": AND, "||": OR,
}  # fmt: skip
OPERATORS = {op: ("/" if symbol == "//" else symbol, LEVELS[symbol]) for symbol, op in SYMBOLS.items()}


class Piece(NamedTuple):
    """The text of an expression and the precedence of its outermost operator."""

    text: str
    level: int

    def at(self, level: int) -> str:
        """The text as an operand that must bind at least as tightly as `level`."""
        return self.text if self.level >= level else f"({self.text})"


def infix(symbol: str, level: int, left: Piece, right: Piece) -> Piece:
    """Two operands around an operator that associates to the left.

    Sums inside shifts and everything inside bit operators is parenthesised, though C does not ask for it: few readers
    know that order.
    """
    tight = UNARY if level in _SELDOM_KNOWN else level
    before = left.at(level if left.level == level else tight)
    after = right.at(max(level + 1, tight))
    if symbol == "-" and after.startswith("-"):
        after = f"({after})"  # `a - -b` reads badly, and `--` is another operator
    return Piece(f"{before} {symbol} {after}", level)


def prefix(symbol: str, operand: Piece) -> Piece:
    """A prefix operator; two minus signs in a row would be another operator."""
    text = operand.at(UNARY)
    return Piece(f"{symbol}({text})" if text.startswith(symbol) and symbol == "-" else symbol + text, UNARY)


def cast(type_name: str, operand: Piece) -> Piece:
    """A C cast."""
    return Piece(f"({type_name}){operand.at(UNARY)}", UNARY)


def ternary(condition: Piece, chosen: Piece, other: Piece) -> Piece:
    """A choice; it associates to the right."""
    return Piece(f"{condition.at(OR)} ? {chosen.at(TERNARY + 1)} : {other.at(TERNARY)}", TERNARY)
