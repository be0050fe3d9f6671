"""What expressions are made of, known from their parts: every statement asks for it, and so does every kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

from fusec.base.ops import TABLE
from fusec.ir.expr import Apply, Expr
from fusec.ir.graph import Input, Neighbour, Position, Taken
from fusec.ir.walk import kept

CHEAP = frozenset(
    "minimum maximum fmin fmax clip square sign signbit isnan isinf isfinite conj copysign reciprocal".split()
)  # defined ops that cost no more than a few primitive ones
DIVISIONS = frozenset("divide sqrt reciprocal quotient modulo".split())  # that processors take several cycles for
MOVING = frozenset([Taken, Position, Neighbour])


T = TypeVar("T")


class Size(NamedTuple):
    """depth: of nested operations. leaves: what is read, each once, from left to right. kinds: of all nodes. taken: the
    inputs of which elements at computed positions are read. is_expensive: see `is_expensive_op`. divides: so that it
    costs more than what memory holds, if not much more.
    """

    depth: int
    leaves: tuple[Input, ...]
    kinds: frozenset[type[Expr]]
    taken: frozenset[Expr]
    is_expensive: bool
    divides: bool


def is_expensive_op(op: str) -> bool:
    """Whether an op stands for a whole function."""
    return not TABLE[op].primitive and op not in CHEAP


@kept
def size_of(expr: Expr, parts: list[Size]) -> Size:
    """The size of an expression."""
    if not parts:
        return Size(1, (expr,) if isinstance(expr, Input) else (), _alone(type(expr)), frozenset(), False, False)
    depth, leaves, kinds, taken, is_expensive, divides = parts[0]
    for part in parts[1:]:
        depth = max(depth, part.depth)
        leaves = leaves if part.leaves == leaves else tuple(dict.fromkeys(leaves + part.leaves))
        kinds, taken = _of_both(kinds, part.kinds), _union(taken, part.taken)
        is_expensive, divides = is_expensive or part.is_expensive, divides or part.divides
    if isinstance(expr, Taken):
        taken = taken | {expr.array}
    if isinstance(expr, Apply):
        is_expensive, divides = is_expensive or is_expensive_op(expr.op), divides or expr.op in DIVISIONS
    return Size(1 + depth, leaves, _of_both(kinds, _alone(type(expr))), taken, is_expensive, divides)


@lru_cache
def _alone(kind: type[Expr]) -> frozenset[type[Expr]]:
    return frozenset([kind])


def _union(one: frozenset[T], other: frozenset[T]) -> frozenset[T]:
    """Both sets as one, which is the first where that holds all."""
    return one if other <= one else one | other


_of_both = lru_cache(_union)  # of kinds, of which there are few sets


def read_in(root: Expr) -> list[Any]:
    """The inputs that an expression reads at the current position, and the elements that it takes at others."""
    size = size_of(root)
    if size.kinds.isdisjoint(MOVING):
        return list(size.leaves)
    found: dict[Expr, None] = {}
    pending, known = [root], {root}
    while pending:
        expr = pending.pop()
        if isinstance(expr, Taken | Input):
            found[expr] = None
            continue
        for child in expr.children:
            if child not in known:
                known.add(child)
                pending.append(child)
    return list(found)
