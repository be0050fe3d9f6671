"""How large values are, known from their parts: operations are recorded one by one, and each asks for its operands."""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from fusec.fusion.trace.trace_values import is_expensive_op
from fusec.ir.expr import Apply, Expr
from fusec.ir.graph import Input
from fusec.ir.walk import inner_first


class Size(NamedTuple):
    """depth: of nested operations. leaves: what is read. is_expensive: see `trace_values.is_expensive`."""

    depth: int
    leaves: frozenset[Input]
    is_expensive: bool


class Sizes:
    """The sizes of values, each worked out once."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Expr, Size] = WeakKeyDictionary()

    def of(self, root: Expr) -> Size:
        """The size of a value."""
        known = self._known
        found = known.get(root)
        if found is None:
            for expr in inner_first([root], known):
                found = known[expr] = _size(expr, [known[child] for child in expr.children])
        assert found is not None, "the root comes last"
        return found


def _size(expr: Expr, parts: list[Size]) -> Size:
    if isinstance(expr, Input):
        return Size(1, frozenset([expr]), False)
    leaves = max((each.leaves for each in parts), key=len, default=frozenset[Input]())
    if any(not each.leaves <= leaves for each in parts):
        leaves = leaves.union(*[each.leaves for each in parts])
    expensive = any(each.is_expensive for each in parts)
    return Size(
        1 + max((each.depth for each in parts), default=0),
        leaves,
        expensive or (isinstance(expr, Apply) and is_expensive_op(expr.op)),
    )
