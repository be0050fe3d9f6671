"""The integers that an expression of Python numbers may evaluate to, as far as its text determines them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from itertools import product

from fusec.base.dtypes import BOOL
from fusec.ir.expr import Apply, Const, Expr, scalar_type

MAX_DEPTH, MAX_VALUES = 12, 64
EXACT: dict[str, Callable[..., int]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "absolute": abs, "minimum": min, "maximum": max, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
}  # fmt: skip


def integers(expr: Expr, depth: int = MAX_DEPTH) -> frozenset[int]:
    """The integers that the text determines on some path through its choices; other parts contribute none."""
    match expr:
        case Const() if scalar_type(expr).is_integer:
            return frozenset((int(expr.value),))
        case Apply() if not depth:
            return frozenset()
        case Apply("where", (_, then, orelse)):
            return _few((*integers(then, depth - 1), *integers(orelse, depth - 1)))
        case Apply("convert", (value,)) if scalar_type(value) == BOOL and not isinstance(value, Const):
            return frozenset((0, 1))
        case Apply(op, args) if op in EXACT:
            parts = [integers(each, depth - 1) for each in args]
            return _few(EXACT[op](*each) for each in product(*parts))
    return frozenset()


def _few(values: Iterable[int]) -> frozenset[int]:
    """The values, or none if there are too many to follow."""
    found = frozenset(values)
    return found if len(found) <= MAX_VALUES else frozenset()
