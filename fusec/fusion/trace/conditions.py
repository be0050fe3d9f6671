"""What must be true of the extents of a call that uses the plan of another one.

A trace that asks for an extent, or for a part of an array that other extents would put elsewhere, states that here: the
call's arrays must give the same answer. What cannot be stated marks the trace as one of its own extents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from fusec.arguments import layouts
from fusec.base.records import dataclass
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace_values import Array, Indexed, Leaf, Step, geometry, is_regular_part, phantom
from fusec.ir.expr import Apply, Const, Lookup
from fusec.ir.graph import Input

ANYWHERE = {Input, Const, Apply, Lookup}  # what values are made of that do not depend on positions
ArrayPart = tuple[Sequence[Leaf], Sequence[Step], Any]
"""A view of a value: leaves whose shapes broadcast to that of the value, the steps from there, and its dtype."""


ALL = Indexed((...,))


class TracedView(Protocol):
    """A traced array."""

    _trace: Any
    _memory: Any
    _steps: tuple[Step, ...]
    _seen: Array


@dataclass(eq=False)
class Condition:
    """What must be true of arrays that have the shapes of some views and are dense before their steps."""

    parts: Sequence[ArrayPart]
    holds: Callable[..., bool]

    def check(self, shapes: Iterable[layouts.Shape]) -> bool:
        """Whether it is true of values of some shapes."""
        pairs = zip(shapes, self.parts, strict=True)
        return self.holds(*[stepped(phantom(shape, dtype), steps) for shape, (_, steps, dtype) in pairs])


class PartsTaken:
    """How far from the ends of axes a trace takes parts, all added up.

    What is counted from one end and what is counted from the other are in the same order for all extents beyond.
    """

    def __init__(self) -> None:
        self.total = 0

    def note(self, where: Sequence[Any]) -> None:
        """Parts are taken by an index."""
        numbers = [each for item in where for each in ((item.start, item.stop) if type(item) is slice else (item,))]
        self.total += sum(abs(each) + 1 for each in numbers if isinstance(each, int))


def require(arrays: Sequence[TracedView], holds: Callable[..., bool]) -> None:
    """State what is true of some arrays, and must be of those of other calls. holds: asked with stand-ins for them."""
    trace = arrays[0]._trace
    parts = [_part(each) for each in arrays]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        trace.has_looked = True
    else:
        trace.conditions.append(Condition(tuple(known), holds))


def require_extents(x: TracedView, axes: Iterable[int]) -> None:
    """Have calls with other extents along some axes traced anew."""
    known = {axis: x._seen.shape[axis] for axis in axes}
    require([x], lambda array: all(array.shape[axis] == extent for axis, extent in known.items()))


def indexed(x: TracedView, where: tuple[Any, ...]) -> Indexed:
    """The step to a part of an array, which other extents may put elsewhere, or make all of the array."""
    step, trace = Indexed(where), x._trace
    trace.reach.note(where)
    if step.is_regular:
        return step
    items = [each for each in where if each is not None]
    if ... in items:
        at = items.index(...)
        items[at : at + 1] = [...] * (x._seen.ndim - len(items) + 1)
    irregular = [(axis, each) for axis, each in enumerate(items) if not is_regular_part(each)]
    if len(items) > x._seen.ndim:  # an error, which the function may catch
        trace.has_looked = True
        return step
    known = {axis: (x._seen.shape[axis], _is_near(each)) for axis, each in irregular}
    reach = trace.reach

    def holds(array: Array) -> bool:
        return all(
            array.shape[axis] == extent or (is_near and min(array.shape[axis], extent) > reach.total)
            for axis, (extent, is_near) in known.items()
        )

    require([x], holds)
    return Indexed(where, is_stated=True)


def _is_near(item: Any) -> bool:
    """Whether an index takes an element, or several in a row."""
    return not isinstance(item, slice) or item.step in (None, 1)


def _part(x: TracedView) -> ArrayPart | None:
    """How the shape of an array follows from those of leaves; None if it does not."""
    memory = x._memory
    base = memory.base
    if not base.flags.c_contiguous or not all(not isinstance(each, Indexed) or each.is_alike for each in x._steps):
        return None
    if memory.value is None:
        buffer = memory.buffer
        return (Leaf(Input("", buffer.dtype), base, buffer),), x._steps, base.dtype
    size = size_of(memory.value.expr)
    leaves = tuple(x._trace.leaves[each] for each in size.leaves)
    if not size.kinds <= ANYWHERE or _common(leaves) != base.shape:
        return None
    return leaves, x._steps, base.dtype


def _common(leaves: Sequence[Leaf]) -> layouts.Shape | None:
    """The shape to which those of leaves broadcast."""
    found: layouts.Shape = ()
    for leaf in leaves:
        joined = layouts.common_shape(found, leaf.phantom.shape)
        if isinstance(joined, int):
            return None
        found = joined
    return found


def require_one_place(trace: Any, leaf: Leaf, other: Leaf) -> None:
    """State that two views of a buffer are the same elements, unless their steps say so."""
    ours, theirs = (tuple(step for step in each.steps if step != ALL) for each in (leaf, other))
    if ours == theirs and leaf.buffer is other.buffer:
        return
    buffer = leaf.buffer
    if buffer is not other.buffer or buffer is None or not buffer.phantom.flags.c_contiguous:
        trace.has_looked = True
        return

    def holds(array: Array) -> bool:
        return geometry(stepped(array, ours)) == geometry(stepped(array, theirs))

    whole = Leaf(Input("", buffer.dtype), buffer.phantom, buffer)
    trace.conditions.append(Condition((((whole,), (), buffer.phantom.dtype),), holds))


def stepped(array: Array, steps: Sequence[Step]) -> Array:
    """A view of an array."""
    for step in steps:
        array = step(array)
    return array
