"""What must be true of the extents of a call that uses the plan of another one.

A trace that asks for an extent, or for a part of an array that other extents would put elsewhere, states that here: the
call's arrays must give the same answer. What cannot be stated marks the trace as one of its own extents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from fusec.arguments.layouts import common_shape
from fusec.base.records import dataclass
from fusec.fusion.trace.derived import CallShapes, Derived, UnknownExtentsError
from fusec.fusion.trace.numbers import ExtentNumber, plain
from fusec.fusion.trace.trace_values import Array, Indexed, Leaf, Step, geometry, is_regular_part
from fusec.ir.expr import Apply, Const, Lookup
from fusec.ir.graph import Input

ANYWHERE = {Input, Const, Apply, Lookup}  # what values are made of that do not depend on positions
ALL = Indexed((...,))


class TracedView(Protocol):
    """A traced array."""

    _trace: Any
    _memory: Any
    _steps: tuple[Step, ...]
    _seen: Array


@dataclass(eq=False)
class Condition:
    """A condition on what calls derive from the shapes of their arrays."""

    derived: Sequence[Derived]
    holds: Callable[..., bool]

    def check(self, call: CallShapes) -> bool:
        """Whether it holds for a call. Raises OtherShapesError, and NumPy's errors."""
        return self.holds(*[call.of(each) for each in self.derived])


def hold(call: CallShapes, conditions: Sequence[Condition], agreements: Sequence[tuple[Derived, Derived]]) -> bool:
    """Whether conditions are true of a call, and values broadcast to what takes them. Raises OtherShapesError, and
    NumPy's errors.
    """
    pairs = [(call.of(one), call.of(other)) for one, other in agreements]
    if any(one != other and common_shape(one, other) != other for one, other in pairs):
        return False
    return all(each.check(call) for each in conditions)


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
    if trace.has_looked:
        return
    try:
        derived = [trace.extents.seen(each) for each in arrays]
    except UnknownExtentsError:
        trace.has_looked = True
    else:
        trace.require(derived, holds)


def require_extents(x: TracedView, axes: Iterable[int]) -> None:
    """Have calls with other extents along some axes traced anew."""
    known = {axis: x._seen.shape[axis] for axis in axes}
    require([x], lambda array: all(array.shape[axis] == extent for axis, extent in known.items()))


def indexed(x: TracedView, where: tuple[Any, ...]) -> Indexed:
    """The step to a part of an array, which other extents may put elsewhere, or make all of the array."""
    trace, sized = x._trace, where
    is_sized = [_is_sized(each) for each in where]
    where = tuple([_plain(each) for each in where])
    trace.reach.note([each for each, is_made in zip(where, is_sized, strict=True) if not is_made])
    step = Indexed(where)
    if any(is_sized):
        trace.extents.is_asked = True
        pairs = zip(sized, is_sized, strict=True)
        step = Indexed(where, True, tuple([_derived(each) if is_made else _plain(each) for each, is_made in pairs]))
    elif step.is_regular:
        return step
    items = [each for each in where if each is not None]
    if ... in items:
        at = items.index(...)
        items[at : at + 1] = [...] * (x._seen.ndim - len(items) + 1)
    made = [each for each, is_made in zip(where, is_sized, strict=True) if is_made]
    irregular = [
        (axis, each)
        for axis, each in enumerate(items)
        if not is_regular_part(each) and not any(each is other for other in made)
    ]
    if len(items) > x._seen.ndim:  # an error
        return step
    known = {axis: (x._seen.shape[axis], _is_near(each)) for axis, each in irregular}
    reach = trace.reach

    def holds(array: Array) -> bool:
        return all(
            array.shape[axis] == extent or (is_near and min(array.shape[axis], extent) > reach.total)
            for axis, (extent, is_near) in known.items()
        )

    if known:
        require([x], holds)
    return step if step.sized is not None else Indexed(where, is_stated=True)


def _bounds(item: Any) -> tuple[Any, ...]:
    return (item.start, item.stop, item.step) if isinstance(item, slice) else ()


def _is_sized(item: Any) -> bool:
    """Whether part of an index is a slice whose bounds calls compute from extents."""
    found = [each for each in _bounds(item) if type(each) is ExtentNumber]
    is_known = all(each.derived is not None and type(each.value) is int for each in found)
    return bool(found) and is_known and item.step in (None, 1) and type(item.step) is not ExtentNumber


def _plain(item: Any) -> Any:
    """Part of an index with Python's own numbers; those of a slice of `_is_sized` hold for this call alone."""
    if _is_sized(item):
        return slice(*[each.value if type(each) is ExtentNumber else each for each in _bounds(item)])
    return slice(*map(plain, _bounds(item))) if isinstance(item, slice) else plain(item)


def _derived(item: Any) -> Any:
    return slice(*[each.derived if type(each) is ExtentNumber else each for each in _bounds(item)])


def _is_near(item: Any) -> bool:
    """Whether an index takes an element, or several in a row."""
    return not isinstance(item, slice) or item.step in (None, 1)


def require_one_place(trace: Any, leaf: Leaf, other: Leaf) -> None:
    """State that two views of a buffer are the same elements, unless their steps say so."""
    ours, theirs = (tuple(step for step in each.steps if step != ALL) for each in (leaf, other))
    if ours == theirs and leaf.buffer is other.buffer:
        return
    buffer = leaf.buffer
    try:
        if buffer is not other.buffer or buffer is None:
            raise UnknownExtentsError
        derived = [trace.extents.array(buffer, steps) for steps in (ours, theirs)]
    except UnknownExtentsError:
        trace.has_looked = True
        return
    trace.require(derived, _are_in_one_place)


def _are_in_one_place(one: Array, other: Array) -> bool:
    return geometry(one) == geometry(other)
