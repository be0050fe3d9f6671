"""How shapes in a trace follow from those of a call's arrays, for calls of other extents.

A shape that follows is noted as a function of what it follows from, down to the shapes of arguments. Equal functions
are noted once. Nothing is noted about a shape that does not follow: the trace then serves its own extents alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from operator import index
from typing import Any, TypeVar

import numpy as np

from fusec.arguments.layouts import joined_shape
from fusec.base.recorded import type_of
from fusec.fusion.trace.array_forms import form_of_made
from fusec.fusion.trace.derived import CallShapes, Derived, OtherShapesError, UnknownExtentsError, computed_in
from fusec.fusion.trace.numbers import ExtentNumber, is_extent, plain
from fusec.fusion.trace.sizes import MOVING, read_in, size_of
from fusec.fusion.trace.trace_values import (
    Array,
    ArrayValue,
    Buffer,
    LibraryCall,
    Step,
    Total,
    Write,
    buffers_of,
    leaves_of,
    phantom,
)
from fusec.ir.graph import Input, Taken

T = TypeVar("T")
Shape = tuple[int, ...]
INTEGERS = (int, np.int64)
MOST = 60  # steps from the shape of an argument to one that follows from it


class TraceExtents:
    """All that follows from the shapes of arguments in one trace."""

    def __init__(self, trace: Any) -> None:
        self._trace = trace
        self._known: dict[object, Derived] = {}
        self._frames: dict[Shape, Derived] = {}
        self._makers: dict[Buffer, Any] = {}
        self._buffers: dict[Buffer, Derived] = {}
        self._learned = 0  # statements whose buffers have makers
        self._arguments: dict[Shape, Derived] = {}
        self._fixed: set[Derived] = set()
        self.agreements: list[tuple[Derived, Derived]] = []  # shapes, the first of which broadcasts to the second
        self.is_unknown = False  # whether a shape that does not follow must agree with another one
        self.is_plain = False  # whether the function gets extents as Python's own numbers
        self.is_given = False  # whether the function has got an ExtentNumber
        self.is_asked = False  # whether shapes were asked for, or derived: then a graph of the trace is not open
        self.given = 0  # arguments; calls that share a plan agree in which extents of these are equal, 0 or 1
        self.laid: dict[Buffer, Derived] = {}  # the shapes of temporaries that are written part by part
        self.numbers: dict[Input, Derived] = {}  # numbers that kernels take as parameters

    def without_call(self) -> TraceExtents:
        """The part that calls need."""
        found = TraceExtents(None)
        found.numbers, found.agreements, found.given = self.numbers, self.agreements, self.given
        found.laid = self.laid
        return found

    def _derived(
        self, key: object, operands: Sequence[Derived], now: Any, make: Callable[[CallShapes], Any]
    ) -> Derived:
        found = self._known.get(key)
        if found is None:
            depth = 1 + max([each.depth for each in operands], default=0)
            if depth > MOST:
                raise UnknownExtentsError
            found = self._known[key] = Derived(make, now, depth)
        return found

    # --- shapes ------------------------------------------------------------------------------------------------------

    def fixed(self, value: Any) -> Derived:
        """A value that is the same in all calls."""
        return self._derived(("fixed", value), (), value, lambda _: value)

    def of_buffer(self, buffer: Buffer) -> Derived:
        """The shape of all of a buffer. Raises UnknownExtentsError."""
        found = self._buffers.get(buffer)
        if found is None:
            found = self._buffers[buffer] = self._of_new(buffer)
        return found

    def _of_new(self, buffer: Buffer) -> Derived:
        shape, place = buffer.phantom.shape, buffer.place
        if buffer.kind == "temporary" and not buffer.phantom.flags.c_contiguous:
            raise UnknownExtentsError
        if buffer in self.laid:
            return self.laid[buffer]
        if buffer.kind == "argument" and place < self.given:
            found = self._derived(("argument", shape), (), shape, lambda call: call.outlines[place].shape)
            return self._arguments.setdefault(shape, found)
        if buffer.derived is not None:
            return self.shape_of(buffer.derived)
        if buffer.kind in ("argument", "constant"):  # from outside, in one shape
            return self.fixed(shape)
        made = self._maker(buffer)
        if isinstance(made, LibraryCall):
            return self._of_result(made, buffer)
        found = self.of_value(made.value)
        if isinstance(made, Total):
            axes, of = made.axes, found

            def kept(call: CallShapes) -> Shape:
                return tuple([1 if axis in axes else extent for axis, extent in enumerate(call.of(of))])

            found = self._derived(("kept", of, axes), [of], shape, kept)
        if found.now != shape:
            raise UnknownExtentsError
        return found

    def _maker(self, buffer: Buffer) -> Any:
        """The statement that defines a temporary."""
        statements = self._trace.statements
        for each in statements[self._learned :]:
            if not isinstance(each, Write):
                self._makers.update(dict.fromkeys(buffers_of(each), each))
        self._learned = len(statements)
        found = self._makers.get(buffer)
        if found is None:
            raise UnknownExtentsError
        return found

    def learn_again(self) -> None:
        """Forget which statements make buffers, since statements were put between others."""
        self._learned = 0
        self._buffers.clear()

    def _of_result(self, call: LibraryCall, buffer: Buffer) -> Derived:
        """The shape of a result of a library call."""
        again, at = call.again, call.buffers.index(buffer)
        if again is None:
            raise UnknownExtentsError
        leaves = [self._trace.leaves[each] for each in call.operands]
        operands = [
            self.numbers.get(each.input, each.phantom) if each.buffer is None else self.array(each.buffer, each.steps)
            for each in leaves
        ]
        arrays = [each for each in operands if isinstance(each, Derived)]

        def made(shapes: CallShapes) -> Sequence[Array]:
            return again([shapes.of(each) if isinstance(each, Derived) else each for each in operands])

        all_of = self._derived(("made", call), arrays, call.buffers, made)
        return self._derived(
            ("result", call, at), [all_of], buffer.phantom.shape, lambda shapes: shapes.of(all_of)[at].shape
        )

    def array(self, buffer: Buffer, steps: Sequence[Step] = ()) -> Derived:
        """A view of a buffer, without its elements. Raises UnknownExtentsError."""
        return self.view_of(self.whole(buffer), steps)

    def whole(self, buffer: Buffer) -> Derived:
        """All of a buffer as an array, without its elements; see `gaps_of`. Raises UnknownExtentsError."""
        place, now = buffer.place, buffer.phantom
        if now.flags.c_contiguous:
            return self.array_of(self.of_buffer(buffer), now.dtype)
        if buffer.kind == "temporary":
            raise UnknownExtentsError
        is_given = buffer.kind == "argument" and place < self.given
        return self._derived(("laid", buffer), (), now, lambda call: call.outlines[place] if is_given else now)

    def array_of(self, shape: Derived, dtype: Any, steps: Sequence[Step] = ()) -> Derived:
        """A view of an array in C order, without its elements."""
        now = phantom(shape.now, dtype)
        whole = self._derived(("array", shape, dtype), [shape], now, lambda call: phantom(call.of(shape), dtype))
        return self.view_of(whole, steps)

    def view_of(self, array: Derived, steps: Sequence[Any]) -> Derived:
        """A view of an array. Raises UnknownExtentsError if a step is not data, or if a view would be a copy."""
        if not all(hasattr(each, "at") for each in steps):
            raise UnknownExtentsError
        for step in steps:
            try:
                now = step(array.now)
            except ValueError as problem:  # the array lies in another order than its shape alone says
                raise UnknownExtentsError from problem
            array = self._derived(("view", array, repr(step)), [array], now, partial(_viewed, array=array, step=step))
        return array

    def shape_of(self, array: Derived) -> Derived:
        """The shape of an array."""
        return self._derived(("shape", array), [array], array.now.shape, lambda call: call.of(array).shape)

    def of(self, x: Any) -> Derived:
        """The shape of a traced array. Raises UnknownExtentsError."""
        return self.viewed(self.of_memory(x._memory), x._memory.base.dtype, x._steps)

    def viewed(self, shape: Derived, dtype: Any, steps: Sequence[Step]) -> Derived:
        """The shape of a view of an array of some shape and dtype. Raises UnknownExtentsError."""
        return self.shape_of(self.array_of(shape, dtype, steps)) if steps else shape

    def viewed_shape(self, shape: Derived, dtype: Any, steps: Sequence[Step]) -> Derived | None:
        """The same; None if it does not follow."""
        try:
            return self.viewed(shape, dtype, steps)
        except UnknownExtentsError:
            return None

    def of_value(self, value: ArrayValue) -> Derived:
        """The shape of a value. Raises UnknownExtentsError."""
        found = self._of_read(value)
        return found if found.now == value.shape else self.frame(value.shape)

    def _of_read(self, value: ArrayValue) -> Derived:
        """The shape to which all that a value reads broadcasts."""
        shapes = []
        for each in read_in(value.expr):
            if isinstance(each, Taken):
                shapes.append(self.frame(each.shape))
                continue
            leaf = self._trace.leaves[each]
            if leaf.buffer is not None:
                shapes.append(self.viewed(self.of_buffer(leaf.buffer), leaf.buffer.phantom.dtype, leaf.steps))
        return self.joined(shapes)

    def known(self, value: ArrayValue) -> Derived | None:
        """The shape of a value; None if it does not follow."""
        try:
            return None if self._trace.has_looked else self.of_value(value)
        except UnknownExtentsError:
            return None

    def joined(self, shapes: Sequence[Derived]) -> Derived:
        """The shape to which some shapes broadcast. Raises UnknownExtentsError."""
        several = list(dict.fromkeys(each for each in shapes if each.now))
        if len(several) == 1:
            return several[0]
        now = joined_shape([each.now for each in several])
        if now is None:
            raise UnknownExtentsError

        def join(call: CallShapes) -> Shape:
            found = joined_shape([call.of(each) for each in several])
            if found is None:
                raise OtherShapesError
            return found

        return self._derived(("joined", frozenset(several)), several, now, join)

    def of_memory(self, memory: Any) -> Derived:
        """The shape of some memory. Raises UnknownExtentsError."""
        if memory.buffer is not None:
            return self.of_buffer(memory.buffer)
        if not memory.base.flags.c_contiguous:
            raise UnknownExtentsError
        found = self.of_value(memory.value)
        if found.now != memory.base.shape:
            raise UnknownExtentsError
        return found

    def seen(self, x: Any) -> Derived:
        """A traced array, without its elements. Raises UnknownExtentsError."""
        if x._memory.buffer is not None:
            return self.array(x._memory.buffer, x._steps)
        return self.array_of(self.of_memory(x._memory), x._memory.base.dtype, x._steps)

    def constant(self, make: Callable[..., Any], operands: Sequence[Any]) -> Derived:
        """An array made from extents, in C order and of one dtype in all calls. Also raises what `make` raises."""
        known = [each if isinstance(each, Derived) else self.fixed_number(each) for each in operands]
        now = make(*[each.now for each in known])

        def alike(*given: Any) -> Array:
            found: Array = make(*given)
            if found.dtype != now.dtype or found.ndim != now.ndim or not found.flags.c_contiguous:
                raise OtherShapesError
            return found

        def made(call: CallShapes) -> Any:
            return form_of_made(computed_in(alike, known, call))

        if not isinstance(now, np.ndarray) or not now.flags.c_contiguous:
            raise UnknownExtentsError
        return self._derived(("constant", make, *known), known, now, made)

    # --- frames ------------------------------------------------------------------------------------------------------

    def frame(self, shape: Shape) -> Derived:
        """The shape of values that do not read anything of their shape. Raises UnknownExtentsError."""
        found = self._frames.get(shape) if shape else self.fixed(())
        if found is None:
            raise UnknownExtentsError
        return found

    def claim(self, shape: Derived) -> None:
        """Note how a shape of values follows. Calls must agree if it follows in two ways, and in extents of 0 and 1."""
        known = self._frames.get(shape.now)
        if known is not None:
            self.require_same(known, shape)
            return
        self._frames[shape.now] = shape
        if shape.depth > 1:
            alike = [min(each, 2) for each in shape.now]
            self._trace.require([shape], lambda found: [each if each < 2 else 2 for each in found] == alike)

    def claim_changed(self, x: Any, function: Callable[..., Any], numbers: Mapping[int, int]) -> None:
        """Note that a shape follows from an array's, whose extents along some axes a function changes by numbers."""

        def claim() -> None:
            own = self.of(x)
            sizes = [self.extent(own, at) for at in range(len(own.now))]
            for at, number in numbers.items():
                sizes[at] = self.computed(function, (sizes[at], number))
            self.claim(self.gathered(sizes))

        self.attempt(claim)

    def require_same(self, one: Derived, other: Derived) -> None:
        """State that two derived values are equal."""
        if one is not other:
            self._trace.require([one, other], _are_equal)

    def stored(self, value: ArrayValue, memory: Any) -> None:
        """Note that a value is stored in memory: it must broadcast to that in all calls that share the plan."""
        if self._trace.has_looked or self.is_unknown:
            return
        try:
            self.fits(value, self.of_memory(memory))
        except UnknownExtentsError:
            self.is_unknown = True

    def framed(self, x: Any, shape: Callable[[TraceExtents], Derived]) -> Any:
        """A new array whose shape follows from `shape`, and from what its value reads."""
        self.attempt(lambda: self.fits(x._memory.value, shape(self)))
        return x

    def is_framed(self, value: ArrayValue) -> bool:
        """Whether the shape of a value does not follow from what the value reads."""
        shape, size = value.shape, size_of(value.expr)
        if not shape or not size.kinds.isdisjoint(MOVING):
            return False
        read = [self._trace.leaves[name].phantom.shape for name in size.leaves]
        return shape not in read and joined_shape(read) != shape

    def combine(self, found: ArrayValue, values: Sequence[ArrayValue]) -> None:
        """Note the shape of a value that is made of others, some of which have shapes that do not follow from reads."""
        if not self._trace.has_looked and any(map(self.is_framed, values)):
            self.attempt(lambda: self.fits(found, self.joined([self.of_value(each) for each in values])))

    def see(self, value: ArrayValue, steps: Sequence[Step]) -> None:
        """Note the shape of a view of a value whose shape does not follow from what the value reads, or of a number."""
        is_number = not value.shape and all(self._trace.leaves[each].buffer is None for each in leaves_of(value.expr))
        if not self._trace.has_looked and (is_number or self.is_framed(value)):
            seen = self.attempt(lambda: self.viewed(self.of_value(value), value.dtype.numpy, steps))
            if seen is not None:
                self.claim(seen)

    def fits(self, value: ArrayValue, shape: Derived) -> None:
        """Note that a value is repeated to a shape. Raises UnknownExtentsError."""
        own = self._of_read(value)
        self.agree(own, shape)
        if own is shape or not own.now or own.now != shape.now:
            self.claim(shape)

    def agree(self, one: Derived, other: Derived) -> None:
        """Note that a shape broadcasts to another one. Calls agree in that already if both are shapes of arguments."""
        if one is not other and one.now and not all(self._arguments.get(each.now) is each for each in (one, other)):
            self.agreements.append((one, other))

    # --- numbers -----------------------------------------------------------------------------------------------------

    def extent(self, shape: Derived, axis: int) -> Derived:
        """An extent of a shape."""
        axis %= len(shape.now)
        if self._arguments.get(shape.now) is shape:
            known = shape.now[axis]
            if known < 2:
                return self.fixed_number(known)
            return self._derived(("argument's", known), [shape], known, lambda call: call.of(shape)[axis])
        return self._derived(("extent", shape, axis), [shape], shape.now[axis], lambda call: call.of(shape)[axis])

    def computed(self, function: Callable[..., Any], operands: Sequence[Any]) -> Derived:
        """A number computed from extents and numbers. Raises what the function raises."""
        known = [each if isinstance(each, Derived) else self.fixed_number(each) for each in operands]
        now = function(*[each.now for each in known])
        return self._derived(
            ("computed", function, *known), known, now, lambda call: computed_in(function, known, call)
        )

    def count(self, shape: Derived, axes: tuple[int, ...]) -> Derived:
        """How many elements lie along some axes of a shape."""
        now = prod([shape.now[axis] for axis in axes])
        return self._derived(
            ("count", shape, axes), [shape], now, lambda call: prod([call.of(shape)[axis] for axis in axes])
        )

    def fixed_number(self, value: Any) -> Derived:
        """A number that is the same in all calls, and of the same type."""
        return self._derived(("number", type(value), repr(value)), (), value, lambda _: value)

    def fix(self, derived: Derived) -> None:
        """State that a number has the value that it has now."""
        if derived not in self._fixed:
            self._fixed.add(derived)
            now = derived.now
            self._trace.require([derived], lambda found: type_of(found) is type(now) and bool(found == now))

    def take_number(self, name: Input, derived: Derived) -> None:
        """Have calls compute a number that kernels take. It fits its dtype in all of them, or in none."""
        self.numbers[name] = derived
        if name.type.is_integer:
            limits = np.iinfo(name.type.numpy)
            fits = limits.min <= derived.now <= limits.max
            self._trace.require([derived], lambda found: (limits.min <= found <= limits.max) == fits)

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Have extents be Python's own numbers while a block runs."""
        before, self.is_plain = self.is_plain, True
        try:
            yield
        finally:
            self.is_plain = before

    def numbers_of(self, x: Any) -> list[Any]:
        """The extents of a traced array, as the function sees them."""
        self.is_asked = True
        if self.is_plain:
            self._trace.has_looked = True
            return list(x._seen.shape)
        self.is_given = True
        sizes: list[Derived | None] = [None] * x._seen.ndim
        try:
            if not self._trace.has_looked:
                shape = self.of(x)
                sizes = [self.extent(shape, axis) for axis in range(x._seen.ndim)]
        except UnknownExtentsError:
            self._trace.has_looked = True
        return [ExtentNumber(self, extent, size) for extent, size in zip(x._seen.shape, sizes, strict=True)]

    def shape_given(self, given: Any) -> tuple[Shape, Derived | None]:
        """A shape that the function gives, now and as calls derive it; None for the latter if no extent is in it."""
        items = tuple(given) if isinstance(given, Iterable) else (given,)
        if not any(map(is_extent, items)):
            return items, None
        if any(is_extent(each) and (each.derived is None or type(each.value) not in INTEGERS) for each in items):
            return tuple(map(plain, items)), None
        self.is_asked = True
        try:
            sizes = [self._as_index(each.derived) if is_extent(each) else index(each) for each in items]
            derived = self.gathered(sizes)
        except UnknownExtentsError:
            return tuple(map(plain, items)), None
        return derived.now, derived

    def _as_index(self, number: Derived) -> Derived:
        """An integer as one of Python's own."""
        return number if type(number.now) is int else self.computed(index, [number])

    def attempt(self, make: Callable[[], T]) -> T | None:
        """What calls derive; None if it does not follow, so that the trace serves its own extents alone."""
        self.is_asked = True
        if self._trace.has_looked or self.is_unknown:
            return None
        try:
            return make()
        except UnknownExtentsError:
            self.is_unknown = True
            return None

    def gathered(self, extents: Sequence[Any]) -> Derived:
        """A shape made of extents, some of which may be known numbers."""
        known = [each if isinstance(each, Derived) else self.fixed_number(each) for each in extents]
        now = tuple([each.now for each in known])
        whole = self._arguments.get(now)
        if whole is not None and all(self.extent(whole, axis) is each for axis, each in enumerate(known)):
            return whole
        return self._derived(("gathered", *known), known, now, lambda call: tuple([call.of(each) for each in known]))


def _viewed(call: CallShapes, array: Derived, step: Any) -> Any:
    try:
        return step.at(call)(call.of(array))
    except ValueError as problem:
        raise OtherShapesError from problem


def _are_equal(one: Any, other: Any) -> bool:
    return bool(one == other)
