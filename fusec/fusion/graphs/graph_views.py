"""Steps from arrays to views of them as nodes of graphs, in both directions: what is seen, and what is written."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as integer
from typing import Any, Protocol

import numpy as np

from fusec.base.dtypes import INT64
from fusec.base.records import dataclass
from fusec.errors.graphs import GraphBroken
from fusec.fusion.trace.trace_values import Array, Indexed, Step, ViewOf
from fusec.fusion.trace.views import Places, _places
from fusec.graphs import nodes, rules
from fusec.graphs.extents import Size
from fusec.ir.expr import Expr, const, scalar_type

Shape = tuple[int, ...]


class ArrayStep(Protocol):
    """A step from a value to a view of it."""

    def seen(self, value: Expr) -> Expr:
        """The view."""

    def put_back(self, value: Expr, part: Expr) -> Expr:
        """The value with another view."""


def view_of(array: Array, seen: Array, step: Step, is_open: bool) -> ArrayStep | None:
    """A step as nodes; None if extents with names do not express it. seen: what the step gives."""
    if isinstance(step, Indexed):
        if is_open and not step.is_regular:
            return None
        return IndexedView(tuple(map(_plain, step.where)))
    if array.shape == seen.shape and array.strides == seen.strides:
        return IndexedView((...,))
    if 0 in seen.shape:
        return EmptyView(seen.shape) if not is_open else None
    if isinstance(step, ViewOf) and step.function is np.reshape:
        return ReshapedView(seen.shape) if not is_open else None
    places, _ = _places(array.shape, (step,))
    found = RegularView.of(places, array.shape, seen.shape)
    if found is None:
        return None if is_open else StridedView(places, array.shape, seen.shape)
    return found if not is_open or found.is_open(array.shape) else None


def _plain(given: Any) -> Any:
    """Part of an index with integers of Python."""
    if isinstance(given, slice):
        return slice(*(each if each is None else integer(each) for each in (given.start, given.stop, given.step)))
    return given if given is None or given is ... else integer(given)


@dataclass(frozen=True)
class IndexedView:
    """Integers, slices, None and ..."""

    items: tuple[Any, ...]

    def seen(self, value: Expr) -> Expr:
        """The part of the value."""
        found, shape = rules.indexed(nodes.shape_of(value), self.items)
        return rules.reshaped(rules.sliced(value, found), shape)

    def put_back(self, value: Expr, part: Expr) -> Expr:
        """The value with another part."""
        found, _ = rules.indexed(nodes.shape_of(value), self.items)
        return _updated(value, rules.reshaped(part, found[2]), found)


def _updated(value: Expr, part: Expr, index: rules.Index) -> Expr:
    """A value with another part, which may be all of it."""
    starts, steps, extents = index
    if extents == nodes.shape_of(value) and set(steps) <= {1} and not any(starts):
        return part
    return rules.updated(value, part, index)


@dataclass(frozen=True)
class EmptyView:
    """A view without elements."""

    shape: Shape

    def seen(self, value: Expr) -> Expr:
        """Nothing."""
        return rules.broadcast(const(0, scalar_type(value)), self.shape)

    def put_back(self, value: Expr, part: Expr) -> Expr:
        """The value as it is."""
        del part
        return value


@dataclass(frozen=True)
class ReshapedView:
    """The same elements in another shape."""

    shape: Shape

    def seen(self, value: Expr) -> Expr:
        """The value in this shape."""
        return rules.reshaped(value, self.shape)

    def put_back(self, value: Expr, part: Expr) -> Expr:
        """The part in the shape of the value."""
        return rules.reshaped(part, nodes.shape_of(value))


@dataclass(frozen=True)
class RegularView:
    """A slice with its axes in another order, and new ones of one element, or repeated.

    along: for each axis of the value the axis of the view, None where it has one element. more: extents of axes that
    are none of the value, by axis of the view.
    """

    parts: tuple[tuple[int, int, int], ...]  # of each axis of the value
    along: tuple[int | None, ...]
    more: tuple[tuple[int, int], ...]
    whole: tuple[bool, ...]  # whether all elements along an axis are seen in order

    @classmethod
    def of(cls, places: Places, own: Shape, shape: Shape) -> RegularView | None:
        """The view that has its elements at these places; None if axes are not apart."""
        far = [list(each) for _, each in places]
        axes = [axis for each in far for axis in each]
        if len(set(axes)) < len(axes) or any(len(each) > 1 for each in far):
            return None
        along = tuple(each[0] if each else None for each in far)
        parts = tuple(
            (start, steps[axis], shape[axis]) if axis is not None else (start, 1, 1)
            for (start, steps), axis in zip(places, along, strict=True)
        )
        more = tuple((axis, extent) for axis, extent in enumerate(shape) if axis not in axes)
        whole = tuple(part == (0, 1, extent) for part, extent in zip(parts, own, strict=True))
        return cls(parts, along, more, whole)

    def is_open(self, own: Shape) -> bool:
        """Whether it is the same for other extents: all of each axis is seen, perhaps from its end."""
        is_all = all(
            all_of or part == (extent - 1, -1, extent) for part, extent, all_of in zip(
                self.parts, own, self.whole, strict=True)
        )  # fmt: skip
        return is_all and all(extent == 1 for _, extent in self.more)

    def _index(self, value: Expr) -> rules.Index:
        own = nodes.shape_of(value)
        found: list[tuple[Size, int, Size]] = []
        for extent, part, all_of in zip(own, self.parts, self.whole, strict=True):
            if all_of:
                found.append((0, 1, extent))
            elif not isinstance(extent, int):
                found.append((extent - 1, -1, extent))
            else:
                found.append(part)
        starts, steps, extents = zip(*found, strict=True) if found else ((), (), ())
        return starts, steps, extents

    def _kept(self) -> list[int]:
        """The axes of the value that the view has, in its order."""
        pairs = sorted((axis, at) for at, axis in enumerate(self.along) if axis is not None)
        return [at for _, at in pairs]

    def seen(self, value: Expr) -> Expr:
        """The part of the value with its axes in order."""
        found = rules.sliced(value, self._index(value))
        shape, kept = nodes.shape_of(found), self._kept()
        found = rules.reshaped(found, tuple(shape[at] for at in sorted(kept)))
        found = rules.transposed(found, [sorted(kept).index(at) for at in kept])
        extents = iter([shape[at] for at in kept])
        more = dict(self.more)
        count = len(kept) + len(more)
        found = rules.reshaped(found, tuple(1 if axis in more else next(extents) for axis in range(count)))
        full = tuple(more.get(axis, extent) for axis, extent in enumerate(nodes.shape_of(found)))
        return rules.broadcast(found, full)

    def put_back(self, value: Expr, part: Expr) -> Expr:
        """The value with another part. Raises GraphBroken for elements that are repeated."""
        if any(extent != 1 for _, extent in self.more):
            raise GraphBroken("a write to elements that are repeated has no node", "write to a copy").at()
        index, kept, own = self._index(value), self._kept(), nodes.shape_of(part)
        more = dict(self.more)
        found = rules.reshaped(part, tuple(extent for axis, extent in enumerate(own) if axis not in more))
        found = rules.transposed(found, [kept.index(at) for at in sorted(kept)])
        return _updated(value, rules.reshaped(found, index[2]), index)


@dataclass(frozen=True)
class StridedView:
    """Diagonals, sliding windows and the like."""

    places: Places
    own: Shape
    shape: Shape

    def seen(self, value: Expr) -> Expr:
        """The elements."""
        steps = [far.get(axis, 0) for _, far in self.places for axis in range(len(self.shape))]
        return rules.strided(value, [start for start, _ in self.places], steps, self.shape)

    def put_back(self, value: Expr, part: Expr) -> Expr:
        """The value with other elements on a diagonal. Raises GraphBroken for other views."""
        diagonals = [
            [(at, start) for at, (start, far) in enumerate(self.places) if far.get(axis) == 1]
            for axis in range(len(self.shape))
        ]
        seen = [at for each in diagonals for at, _ in each]
        if sorted(seen) != list(range(len(self.own))) or any(len(far) > 1 for _, far in self.places):
            raise GraphBroken("a write to overlapping windows has no node", "write to a copy").at()
        test: Expr | None = None
        index = list[Expr]()
        for (at, start), *others in diagonals:
            place = self._place(at, start)
            last = const(self.shape[len(index)] - 1, INT64)
            for more in others:
                test = _both(test, rules.mapped("equal", [place, self._place(*more)]))
            for op, end in (("greater_equal", const(0, INT64)), ("less_equal", last)):
                test = _both(test, rules.mapped(op, [place, end]))
            index.append(rules.mapped("minimum", [rules.mapped("maximum", [place, const(0, INT64)]), last]))
        assert test is not None, "a diagonal"
        elements = rules.taken(part, index, self.own, const(0, scalar_type(part)))
        return rules.mapped("where", [test, elements, value])

    def _place(self, axis: int, start: int) -> Expr:
        """Where elements of the value are along an axis of the view."""
        shape: Sequence[Size] = [extent if at == axis else 1 for at, extent in enumerate(self.own)]
        return rules.mapped("subtract", [rules.positions(axis, tuple(shape)), const(start, INT64)])


def _both(one: Expr | None, other: Expr) -> Expr:
    return other if one is None else rules.mapped("logical_and", [one, other])
