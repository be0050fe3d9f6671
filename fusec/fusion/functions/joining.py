"""Arrays one after another, read where a kernel needs them, and arrays as what some memory holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import prod as product
from operator import add, mul
from typing import Any

from fusec.base.dtypes import INT64
from fusec.base.records import dataclass
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Scalar
from fusec.fusion.trace import tracer
from fusec.fusion.trace.derived import Derived
from fusec.fusion.trace.elsewhere import composes, position, taken
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import (
    ArrayValue,
    Buffer,
    Computation,
    Define,
    laid_out,
    leaves_of,
    parts_of,
    phantom,
    replaced,
)
from fusec.ir.expr import Apply, Const, Expr, apply, const
from fusec.ir.graph import Input, Neighbour, Within

SMALL = 64  # a number that is part of the code, which divides by it faster
MOST = 8  # arrays of which a kernel chooses by position; more are stored in their places


def pieces(
    parts: Sequence[Any], axis: int, new: ArrayValue, is_fast: Callable[[Any], bool], given: Sequence[Any]
) -> Any:
    """A new array that joins arrays of its dtype along an axis: kernels choose the array that has an element.

    is_fast: whether a choice is faster than a copy for a shape, as it is for this one. given: the arrays without a
    new axis, and in the dtypes that they have.
    """
    trace, shape = parts[0]._trace, new.shape
    before, notes = _as_they_are(trace, given, axis, len(shape)), len(trace.notes)
    place = position(axis, shape)
    found: Expr | None = None
    lengths = [part._seen.shape[axis] for part in parts]
    derived: Sequence[Derived | None] = joined_along(trace, parts, axis, is_fast) or [None] * len(parts)
    ends = list(zip(accumulate(lengths), derived, strict=True))
    for part, start, (end, of_end) in reversed(list(zip(parts, [(0, None), *ends], ends, strict=False))):
        expr = _piece(part, axis, start, shape)
        if found is not None:
            test = apply("less", place, trace.number(("known", end), PY_INT, of_end).expr)
            expr = apply("where", test, expr, found)
        found = expr
    assert found is not None, "some arrays"
    made = tracer.made(trace, ArrayValue(Scalar(new.kind, found), new.phantom))
    if is_across(given, len(shape)):
        trace.across[found] = axis, [part._read() for part in parts]
    if before:
        made._memory.joined = Joined(made._memory.value, before, axis, trace.notes[notes:])
    return made


def apart(trace: Trace, value: ArrayValue, axes: Sequence[int]) -> list[ArrayValue]:
    """The parts of a value along its only reduced axis, if arrays were joined across that axis; otherwise none.

    A value with a single total has none: such a total is added up in another order than those of columns.
    """
    if not trace.across or len(axes) != 1 or product(value.shape) == value.shape[axes[0]]:
        return []
    (axis,) = axes
    found: dict[Expr, list[ArrayValue]] = {}
    waiting, seen = [value.expr], set[Expr]()
    while waiting:
        expr = waiting.pop()
        if expr in seen:
            continue
        seen.add(expr)
        along, parts = trace.across.get(expr, (None, []))
        if along == axis and len(parts) == value.shape[axis]:
            found[expr] = parts
        elif isinstance(expr, Apply):
            waiting += expr.children
        elif not isinstance(expr, Const) and not (isinstance(expr, Input) and _is_same_along(trace, expr, value, axis)):
            return []
    if not found:
        return []
    made = []
    for at in range(value.shape[axis]):
        known = {expr: parts[at].expr for expr, parts in found.items()}
        sources = [parts[at] for parts in found.values()]
        made.append(trace.combined(Scalar(value.scalar.type, replaced(value.expr, known)), sources))
    return made


def _is_same_along(trace: Trace, read: Input, value: ArrayValue, axis: int) -> bool:
    """Whether an input of a value is the same along one axis of the value."""
    shape = trace.leaves[read].phantom.shape
    at = axis - len(value.shape) + len(shape)
    return at < 0 or shape[at] == 1


@dataclass(eq=False)
class Joined:
    """A value that joins arrays of one shape along an axis. notes: those of the trace on how it reads them."""

    value: ArrayValue | None
    parts: Sequence[Any]
    axis: int
    notes: Sequence[str]


def _as_they_are(trace: Trace, parts: Sequence[Any], axis: int, ndim: int) -> list[Any]:
    """The present values of arrays of one shape, some of which are computed; nothing if they are not.

    Nor if they meet along the first axis: places that depend on extents need a trace for each, and that axis is the
    one that most often has other extents in later calls.
    """
    if not axis and not is_across(parts, ndim):
        return []
    values = [part._read() for part in parts]
    if any(each.shape != values[0].shape for each in values) or all(map(trace.is_leaf, values)):
        return []
    return [tracer.made(trace, each) for each in values]


def store_in_places(trace: Trace, needed: Collection[Buffer]) -> None:
    """Have kernels compute the parts of a joined array that is returned side by side, each into its place.

    One kernel then reads for all parts what they have in common. Arrays that something else reads stay whole.
    """
    if not trace.joined:
        return
    made = {each.buffer: each for each in trace.statements if isinstance(each, Define)}
    read = {leaf.buffer for leaf in trace.leaves.values()}
    roots = {made[buffer].value.expr for buffer in trace.joined}
    values = [each.value.expr for each in trace.statements if isinstance(each, Computation)]
    uses = Counter(part for root in values for part in parts_of(root) if part in roots)
    for buffer, joined in trace.joined.items():
        define = made[buffer]
        if buffer not in needed or buffer in read or uses[define.value.expr] > 1:
            continue
        at, count = trace.statements.index(define), len(trace.statements)
        shape = trace.extents.attempt(partial(trace.extents.frame, define.value.shape))
        if shape is None:
            trace.has_looked = True
        else:
            trace.extents.laid[buffer] = shape
        stored_parts(trace, joined.parts, joined.axis, buffer)
        writes = trace.statements[count:]
        del trace.statements[count:]
        trace.statements[at : at + 1] = writes
        for note in joined.notes:
            trace.notes.remove(note)


def is_across(parts: Sequence[Any], ndim: int) -> bool:
    """Whether arrays are joined across a new axis."""
    return bool(parts) and parts[0]._seen.ndim < ndim


def stored_parts(trace: Trace, parts: Sequence[Any], axis: int, buffer: Buffer) -> Any:
    """A new array in a buffer, whose parts along an axis, or across a new one, are written one after another."""
    memory = trace.storage(buffer.phantom, buffer)
    result, start = tracer.Tracer(trace, memory, (), memory.base), 0
    is_new = is_across(parts, buffer.phantom.ndim)
    for each in parts:
        stop = start + (1 if is_new else each._seen.shape[axis])
        result[(*((slice(None),) * axis), start if is_new else slice(start, stop))] = each
        start = stop
    return result


def joined_along(trace: Trace, parts: Sequence[Any], axis: int, is_fast: Callable[[Any], bool]) -> list[Derived] | None:
    """Where each array ends in the joined one, for calls of other extents. Notes the shape of the joined array."""
    extents = trace.extents

    def ends() -> list[Derived]:
        shapes = [extents.of(part) for part in parts]
        lengths = [extents.extent(shape, axis) for shape in shapes]
        found = list(accumulate(lengths, lambda one, other: extents.computed(add, (one, other))))
        axes = range(len(shapes[0].now))
        first = [extents.extent(shapes[0], at) for at in axes]
        for shape in shapes[1:]:
            for at in axes:
                if at != axis:
                    extents.require_same(first[at], extents.extent(shape, at))
        whole = extents.gathered([found[-1] if at == axis else first[at] for at in axes])
        extents.claim(whole)
        trace.require([whole], is_fast)
        return found

    return extents.attempt(ends)


def _piece(part: Any, axis: int, start: tuple[int, Derived | None], shape: tuple[int, ...]) -> Expr:
    """An array that begins somewhere along an axis of a larger one."""
    trace, value = part._trace, held(part)
    whole = trace.whole(trace.leaves[leaves_of(value.expr)[0]], value)
    index = [position(at, shape) for at in range(len(shape))]
    known, derived = start
    if known:
        index[axis] = apply("subtract", index[axis], trace.number(("known", known), PY_INT, derived).expr)
    index[axis] = Within(index[axis], INT64)
    return taken(whole, index, shape)


def repeated(x: Any, each: int, axis: int) -> Any:
    """An array whose elements along an axis come so many times, one beside the other."""
    trace, value = x._trace, held(x)
    trace.extents.claim_changed(x, mul, {axis: each})
    shape = tuple(extent * (each if at == axis else 1) for at, extent in enumerate(x._seen.shape))
    index = [position(at, shape) for at in range(len(shape))]
    count = const(each, INT64) if each <= SMALL else trace.number(("known", each), PY_INT).expr
    index[axis] = apply("floor_divide", index[axis], count)
    expr = taken(trace.whole(trace.leaves[leaves_of(value.expr)[0]], value), index, shape)
    return tracer.made(trace, ArrayValue(Scalar(value.dtype, expr), phantom(shape, value.dtype.numpy)))


def held(x: Any, moves: Mapping[int, Neighbour] | None = None) -> ArrayValue:
    """The contents of an array as what some memory holds, or as elements that are taken elsewhere and move on."""
    trace: Trace = x._trace
    memory, steps, seen = x._memory, x._steps, x._seen
    if type(x) is not tracer.Tracer or x._is_scalar:
        value = x._read()
        seen = laid_out(value.phantom, value.dtype.numpy)
        memory, steps = trace.storage(seen, None, value), ()
    value = trace.read(memory, steps, seen)
    if trace.is_leaf(value) or (moves is not None and composes(value, moves)):
        return value
    if memory.value is None or steps:  # a view of elements that are taken elsewhere
        found = trace.settled(value)
        trace.held |= {trace.leaves[name].buffer for name in leaves_of(found.expr)}  # type: ignore[misc]
        return found
    trace.hold(memory)
    return trace.read(memory, (), seen)
