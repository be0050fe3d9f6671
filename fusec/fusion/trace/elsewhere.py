"""Values made of elements that lie elsewhere than at the position at hand: rolled and padded arrays.

Axes of positions are counted from the last one, as -1, so that they stay when values are repeated along new axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.base.dtypes import INT64, DType
from fusec.base.records import replace
from fusec.frontends.python.values import Scalar
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace import Trace, bare, widened
from fusec.fusion.trace.trace_values import ArrayValue, Leaf, leaves_of, phantom
from fusec.ir.expr import Const, Expr, const
from fusec.ir.graph import Input, Neighbour, Position, Taken
from fusec.ir.walk import inner_first


def taken(leaf: Leaf, index: Sequence[Expr], shape: tuple[int, ...], outside: Expr | None = None) -> Expr:
    """The elements of a whole leaf at an index, in the type in which the dtype computes."""
    dtype = leaf.input.type
    return widened(Taken(leaf.input, outside or const(0, dtype), tuple(index), dtype, shape), dtype)


def position(axis: int, shape: Sequence[int]) -> Expr:
    """Where the element is along an axis of a shape, which may be repeated along axes of one element."""
    return const(0, INT64) if shape[axis] == 1 else Position(axis - len(shape), INT64)


def moved(trace: Trace, value: ArrayValue, moves: Mapping[int, Neighbour], seen: Any, outside: Expr | None) -> Expr:
    """The elements of a held value at other positions. moves: the index along each axis that is moved."""
    shape = seen.shape
    known = bare(value.expr)
    if isinstance(known, Taken):
        index = _composed(known, moves)
        assert index is not None, "what does not compose is held"
        return widened(replace(known, index=index, shape=shape), known.type)
    leaf = trace.leaves[leaves_of(value.expr)[0]]
    whole = trace.whole(leaf, value)
    index = tuple(moves.get(axis) or position(axis, shape) for axis in range(len(shape)))
    return taken(whole, index, shape, outside)


def composes(value: ArrayValue, moves: Mapping[int, Neighbour]) -> bool:
    """Whether elements of an array of moved elements are elements of the array itself, moved further."""
    known = bare(value.expr)
    return isinstance(known, Taken) and _composed(known, moves) is not None


def _composed(known: Taken, moves: Mapping[int, Neighbour]) -> tuple[Expr, ...] | None:
    """The index of an array of moved elements, moved further; None if it is not one of that kind."""
    at = {axis - len(known.shape): each for axis, each in moves.items()}
    found: list[Expr] = []
    for each in known.index:
        if isinstance(each, Position):
            found.append(at.pop(each.axis, each))
        elif isinstance(each, Neighbour) and each.axis not in at:
            found.append(each)
        elif isinstance(each, Neighbour):
            more = at.pop(each.axis)
            if (each.mode, more.mode, each.more, more.more) != ("wrap", "wrap", 0, 0):
                return None
            found.append(replace(each, offset=each.offset + more.offset))
        elif isinstance(each, Const):
            found.append(each)
        else:
            return None
    modes = {each.mode for each in found if isinstance(each, Neighbour)}
    return None if at or ("constant" in modes and len(modes) > 1) else tuple(found)


def counted(root: Expr, axes: int, reverse: bool = False) -> Expr:
    """An expression of a kernel of so many axes, which it counts from the first, or in reverse: from the last."""
    if size_of(root).kinds.isdisjoint((Position, Neighbour, Taken)):
        return root
    known: dict[Expr, Expr] = {}
    for expr in inner_first([root]):
        match expr:
            case Position(axis) | Neighbour(axis):
                known[expr] = replace(expr, axis=-1 - axis if reverse else axes + axis)
            case Taken():
                array, outside, *index = (known[child] for child in expr.children)
                known[expr] = Taken(array, outside, tuple(index[::-1] if reverse else index), expr.type, ())
            case _:
                known[expr] = expr.rebuild(tuple(known[child] for child in expr.children)) if expr.children else expr
    return known[root]


def frames_of(trace: Trace, root: Expr) -> list[ArrayValue]:
    """Values of the shapes in which an expression reads: those of elements taken elsewhere are their own."""
    found: list[ArrayValue] = []
    pending, seen = [root], set[Expr]()
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Taken):
            dtype: DType = expr.type
            found.append(ArrayValue(Scalar(dtype, expr), phantom(expr.shape, dtype.numpy)))
        elif isinstance(expr, Input):
            found.append(ArrayValue(Scalar(expr.type, expr), trace.leaves[expr].phantom))
        else:
            pending += expr.children
    return found
