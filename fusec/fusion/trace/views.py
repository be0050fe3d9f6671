"""Views of values, computed from views of what these read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fusec.base.dtypes import INT64
from fusec.base.records import replace
from fusec.fusion.trace.trace_values import (
    Array,
    ArrayValue,
    Buffer,
    Indexed,
    Leaf,
    Step,
    ViewOf,
    leaves_of,
    parts_of,
    replaced,
)
from fusec.ir.expr import Expr, apply, const
from fusec.ir.graph import Input, Neighbour, Position, Taken, Within

Shape = tuple[int, ...]
IN_PLACE = (np.transpose, np.swapaxes, np.moveaxis, np.expand_dims, np.squeeze)
Places = list[tuple[int, dict[int, int]]]
"""For every axis of an array: where a view of it begins, and how far each axis of the view goes along it."""


class Leaves(Protocol):
    """What kernels read: the trace."""

    leaves: dict[Input, Leaf]
    extents: Any

    def require(self, derived: Sequence[Any], holds: Callable[..., bool]) -> None:
        """State what must be true of calls that share the plan."""

    def leaf(self, buffer: Buffer, steps: tuple[Step, ...], seen: Array, version: int | None = None) -> ArrayValue:
        """The contents of a view of a buffer, at some version or now."""


def seen(trace: Leaves, value: ArrayValue, steps: tuple[Step, ...]) -> Expr | None:
    """A value computed from views of what it reads; None if strides do not give them."""
    known: dict[Expr, Expr] = {}
    try:
        for name in leaves_of(value.expr):
            leaf = trace.leaves[name]
            if leaf.buffer is not None and not leaf.is_whole:
                (around, part) = repeated(leaf, value, steps, trace.extents)
                made = trace.leaf(leaf.buffer, around, part, leaf.version)
                known[name] = leaves_of(made.expr)[0]
        moving = [each for each in parts_of(value.expr) if isinstance(each, Position | Neighbour | Taken)]
        if not moving:
            trace.extents.see(value, steps)
            return replaced(value.expr, known)
        found = _moved(value.expr, value.shape, known, _places(value.shape, steps))
        _state(trace, value, steps, known, found)
        return found
    except ValueError:  # a new shape that no strides give
        return None


def repeated(leaf: Leaf, value: ArrayValue, steps: tuple[Step, ...], extents: Any) -> tuple[tuple[Step, ...], Array]:
    """A view of a leaf that is repeated to the shape of a value: the steps from its buffer, and the array."""
    around, part = leaf.steps, leaf.phantom
    if part.shape != value.shape:
        part, around = np.broadcast_to(part, value.shape), (*around, broadcast_to(value.shape, extents.known(value)))
    for step in steps:
        part = step(part)
    return (*around, *steps), part


def broadcast_to(shape: Shape, derived: Any) -> Step:
    """The step that repeats an array to a shape. derived: how calls derive the shape; None if they do not."""
    return (lambda array: np.broadcast_to(array, shape)) if derived is None else ViewOf(np.broadcast_to, (derived,))


def _state(
    trace: Leaves, value: ArrayValue, steps: tuple[Step, ...], known: dict[Expr, Expr], found: Expr | None
) -> None:
    """State that the elements of a value move as they do now; see `_moved`."""
    extents = trace.extents
    own = extents.known(value)
    if own is None or found is None:
        extents.is_unknown = True
        return
    seen = extents.viewed_shape(own, value.dtype.numpy, steps)
    if seen is None:
        extents.is_unknown = True
        return
    extents.claim(seen)
    if all(map(_is_in_place, steps)):
        return
    if any(getattr(each, "is_sized", False) for each in steps):
        extents.is_unknown = True
        return
    leaves: dict[Expr, Expr] = {name: known[name] for name in leaves_of(value.expr) if name in known}

    def holds(shape: Shape) -> bool:
        return _moved(value.expr, shape, dict(leaves), _places(shape, steps), seen.now) == found

    trace.require([own], holds)


def _is_in_place(step: Step) -> bool:
    """Whether the elements of a view lie at a distance from the array's that does not depend on extents."""
    if isinstance(step, Indexed):
        return step.sized is None and all(map(_is_from_start, step.where))
    return isinstance(step, ViewOf) and step.function in IN_PLACE


def _is_from_start(item: Any) -> bool:
    if isinstance(item, slice):
        start, stop, step = item.start or 0, item.stop, item.step or 1
        return step == 1 and start >= 0 and (stop is None or stop < 0)
    return item is None or item is ... or item >= 0


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


def _moved(
    root: Expr, own: Shape, known: dict[Expr, Expr], view: tuple[Places, Shape], frame: Shape | None = None
) -> Expr | None:
    """A value of some shape at the places of a view of another shape. known: what stands for its leaves. frame: the
    noted shape of the view.
    """
    places, shape = view
    for part in parts_of(root):
        children = tuple(known.get(child, child) for child in part.children)
        found: Expr | None = part.rebuild(children) if children else known.get(part, part)
        match found:
            case Position(axis):
                found = _position(*places[axis], len(shape))
            case Neighbour(axis):
                found = _neighbour(found, own[axis], *places[axis], shape)
            case Taken():
                found = replace(found, shape=shape if frame is None else frame)
        if found is None:
            return None
        known[part] = found
    return known[root]


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
