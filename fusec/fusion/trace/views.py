"""Views of values, computed from views of what these read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from fusec.base.dtypes import INT64
from fusec.base.records import replace
from fusec.fusion.trace.trace_values import Array, ArrayValue, Buffer, Leaf, Step, leaves_of, parts_of, replaced
from fusec.ir.expr import Expr, apply, const
from fusec.ir.graph import Input, Neighbour, Position, Taken, Within

Shape = tuple[int, ...]
Places = list[tuple[int, dict[int, int]]]
"""For every axis of an array: where a view of it begins, and how far each axis of the view goes along it."""


class Leaves(Protocol):
    """What kernels read: the trace."""

    leaves: dict[Input, Leaf]

    def leaf(self, buffer: Buffer, steps: tuple[Step, ...], seen: Array, version: int | None = None) -> ArrayValue:
        """The contents of a view of a buffer, at some version or now."""


def seen(trace: Leaves, value: ArrayValue, steps: tuple[Step, ...]) -> Expr | None:
    """A value computed from views of what it reads; None if strides do not give them."""
    known: dict[Expr, Expr] = {}
    try:
        for name in leaves_of(value.expr):
            leaf = trace.leaves[name]
            if leaf.buffer is not None and not leaf.is_whole:
                (around, part) = repeated(leaf, value.shape, steps)
                made = trace.leaf(leaf.buffer, around, part, leaf.version)
                known[name] = leaves_of(made.expr)[0]
        moving = [each for each in parts_of(value.expr) if isinstance(each, Position | Neighbour | Taken)]
        if not moving:
            return replaced(value.expr, known)
        return _moved(value, known, *_places(value.shape, steps))
    except ValueError:  # a new shape that no strides give
        return None


def repeated(leaf: Leaf, shape: Shape, steps: tuple[Step, ...]) -> tuple[tuple[Step, ...], Array]:
    """A view of a leaf that is repeated to a shape: the steps from its buffer, and what it is."""
    around, part = leaf.steps, leaf.phantom
    if part.shape != shape:
        part, around = np.broadcast_to(part, shape), (*around, broadcast_to(shape))
    for step in steps:
        part = step(part)
    return (*around, *steps), part


def broadcast_to(shape: Shape) -> Step:
    """The view of an array that is repeated to a shape."""
    return lambda array: np.broadcast_to(array, shape)


def _places(shape: Shape, steps: Sequence[Step]) -> tuple[Places, Shape]:
    """Where the elements of a view are in an array, and its shape. Raises ValueError if that is no sum of places."""
    places: Places = []
    example = np.empty(shape[:0], "int8")  # an array without axes may get some
    for step in steps if not shape else ():
        example = step(example)
    new = example.shape
    for axis in range(len(shape)):
        example = np.lib.stride_tricks.as_strided(
            np.empty(1, "int8"), shape, [int(other == axis) for other in range(len(shape))]
        )
        start = example.__array_interface__["data"][0]
        for step in steps:
            example = step(example)
        far = {at: by for at, by in enumerate(example.strides) if by and example.shape[at] > 1}
        places.append((example.__array_interface__["data"][0] - start, far))
        new = example.shape
    if 0 in new:
        raise ValueError("nothing is seen")
    return places, new


def _moved(value: ArrayValue, known: dict[Expr, Expr], places: Places, shape: Shape) -> Expr | None:
    """A value at the places of a view. known: what stands for its leaves."""
    for part in parts_of(value.expr):
        children = tuple(known.get(child, child) for child in part.children)
        found: Expr | None = part.rebuild(children) if children else known.get(part, part)
        match found:
            case Position(axis):
                found = _position(*places[axis], len(shape))
            case Neighbour(axis):
                found = _neighbour(found, value.shape[axis], *places[axis], shape)
            case Taken():
                found = replace(found, shape=shape)
        if found is None:
            return None
        known[part] = found
    return known[value.expr]


def _position(start: int, far: dict[int, int], axes: int) -> Expr:
    found: Expr | None = None if start and far else const(start, INT64)
    for at, by in far.items():
        part: Expr = Position(at - axes, INT64)
        part = part if by == 1 else apply("multiply", part, const(by, INT64))
        found = part if found is None or found == const(0, INT64) else apply("add", found, part)
    assert found is not None, "a number or a sum"
    return apply("add", found, const(start, INT64)) if start and far else found


def _neighbour(given: Neighbour, extent: int, start: int, far: dict[int, int], shape: Shape) -> Expr | None:
    """A neighbour along one axis of the view; None if there is no such axis."""
    match list(far.items()):
        case [(axis, 1)]:
            more = given.more + shape[axis] - extent
            return replace(given, axis=axis - len(shape), offset=given.offset + start, more=more)
        case []:
            place = start + given.offset
            return const(place, INT64) if 0 <= place < extent - given.more else None
    return None


def taken_of(value: ArrayValue, trace: Leaves, take: Callable[[Leaf], Expr], at: Taken) -> Expr | None:
    """A value whose elements are taken as `at` says, as its leaves are by `take`; None if indices do not give them."""
    known: dict[Expr, Expr] = {}
    try:
        for part in parts_of(value.expr):
            children = tuple(known[child] for child in part.children)
            found = part.rebuild(children) if children else part
            match found:
                case Input():
                    leaf = trace.leaves[found]
                    found = found if leaf.buffer is None or leaf.is_whole else take(leaf)
                case Position(axis):
                    found = at.index[axis]
                case Taken():
                    found = replace(found, shape=at.shape)
            if isinstance(found, Neighbour | Within):
                return None
            known[part] = found
    except ValueError:  # of a view with a new shape
        return None
    return known[value.expr]
