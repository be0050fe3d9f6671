"""The record of one run of a function: leaves, statements in order, and the memory that they change."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.base.contexts import holding
from fusec.base.dtypes import BOOL, STORAGE_FLOATS, DType, compute_type
from fusec.errors.arguments import ShapesDoNotBroadcast
from fusec.errors.fusing import NotFusable
from fusec.frontends.python import values as python_values
from fusec.frontends.python.types import PYTHON_TYPES, Kind, PythonType, carrier, storage
from fusec.frontends.python.values import Scalar, converted
from fusec.fusion.trace import lines, views
from fusec.fusion.trace.chosen_parts import ChosenParts
from fusec.fusion.trace.conditions import ANYWHERE, Condition, PartsTaken, require_one_place
from fusec.fusion.trace.converted import unwritable
from fusec.fusion.trace.derived import Derived
from fusec.fusion.trace.extents import TraceExtents
from fusec.fusion.trace.numbers import Computed, Source
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace_values import (
    Array,
    ArrayValue,
    Buffer,
    Define,
    Leaf,
    Statement,
    Step,
    Storage,
    Write,
    choosing,
    geometry,
    is_moved,
    joint_phantom,
    laid_out,
    leaves_of,
    phantom,
)
from fusec.fusion.trace.unstored import Unstored
from fusec.ir.expr import Apply, Expr, apply, const, scalar_type
from fusec.ir.graph import Input, Position, Taken

RECORDING: ContextVar[Any] = ContextVar("fusec_recording", default=None)
"""The recording of the trace that this context runs, None outside of traces."""


def recorded_by(recording: Any) -> AbstractContextManager[None]:
    """Have a recording take down what Python code reads in the meantime; None: it is no part of the trace."""
    return holding(RECORDING, recording)


HERE, defined, here = lines.HERE, lines.defined, lines.here
MAX_LEAVES = 24  # that one value reads; beyond, its parts are stored
MAX_DEPTH = 150  # of one value's expression


class NeedsNumberError(Exception):
    """A number passed to the function is needed as a Python number: the function must be traced for its value."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class Trace:
    """Everything that a function does with arrays, in order. flat: the arrays and numbers of the call."""

    def __init__(self, name: str, flat: Sequence[Any] = ()) -> None:
        self.name, self.flat = name, flat
        self.numbers: dict[int, Computed] = {}  # by place
        self._computed: dict[object, int] = {}  # their places, by how they are computed
        self.statements: list[Statement] = []
        self.leaves: dict[Input, Leaf] = {}
        self._unstored: Unstored[Storage] = Unstored(self._groups_read)
        self.written: list[Storage] = []
        self.versions: dict[int, int] = {}
        self._by_geometry: dict[object, Leaf] = {}
        self._of_constants: dict[int, tuple[Array, Array, Storage]] = {}  # the array, a copy, the memory
        self._temporaries = itertools.count()
        self._groups = itertools.count(1 << 20)
        self.parts = ChosenParts()
        self.checked = set[tuple[Input, int, Derived | None]]()  # indices, and extents that they are known to be below
        self.held: set[Buffer] = set()  # for values of which views are read, or elements elsewhere
        self.notes = list[str]()
        self.joined = dict[Buffer, Any]()  # buffers that hold joined arrays; see `joining`
        self.across = dict[Expr, tuple[int, list[ArrayValue]]]()  # values that join others across a new axis, and these
        self.counts: dict[Input, tuple[tuple[Leaf, ...], tuple[int, ...]]] = {}  # what a number counts elements of
        self.compared = set[Expr]()  # Python's integers as int64, which may not hold one with which arrays compare
        self.needed: NeedsNumberError | None = None
        self.has_looked = False  # whether what it does may depend on extents
        self.conditions, self.reach = list[Condition](), PartsTaken()  # under which it does not
        self.extents = TraceExtents(self)
        self.device: Any = "cpu"  # where arrays are, as their library has it
        self.row_blocks = 0  # how many blocks hold a row of several chunks there
        self.labelled: dict[int, str] = {}  # arguments with labels, by place, with the names of their types
        self.swapped = dict[int, tuple[str, str]]()  # by place, arguments in another byte order: names and dtypes
        self.shared: set[int] = set()  # groups of arguments that overlap: writes to one are seen through others

    def without_call(self) -> Trace:
        """The same without what belongs to the call: arguments, numbers and memory as the function saw them."""
        found = copy.copy(self)
        found.flat, found._of_constants, found.written = (), {}, []
        found._unstored, found.parts = Unstored(found._groups_read), ChosenParts()
        found.extents = self.extents.without_call()
        return found

    def require(self, derived: Sequence[Derived], holds: Callable[..., bool]) -> None:
        """State what must be true of calls that share the plan."""
        self.conditions.append(Condition(derived, holds))

    def needing(self, place: int) -> NeedsNumberError:
        """The error for a number that is needed as such, which is raised again should the function catch it."""
        found = self.needed = NeedsNumberError(place)
        return found

    # --- memory --------------------------------------------------------------------------------------------------

    def storage(self, base: Array, buffer: Buffer | None = None, value: ArrayValue | None = None) -> Storage:
        """New memory."""
        made = Storage(base, buffer, value)
        self._unstored.add(made)
        return made

    def argument(self, place: int, array: Array, dtype: DType, group: int) -> Storage:
        """The memory of an argument."""
        return self.storage(array, Buffer("argument", place, dtype, array, group))

    def constant(self, array: Array, dtype: DType, derived: Derived | None = None) -> Storage:
        """An array that NumPy created while the function was traced, with its present contents."""
        found = self._of_constants.get(id(array))
        if found is None or found[1].tobytes() != array.tobytes():
            held = array.copy(order="K")
            buffer = Buffer("constant", len(self._of_constants), dtype, held, next(self._groups), held, derived)
            found = self._of_constants[id(array)] = (array, held, self.storage(held, buffer))
        return found[2]

    def temporary(self, base: Array, dtype: DType) -> Buffer:
        """A buffer that belongs to the plan."""
        made = laid_out(base, dtype.numpy)
        steps = zip(base.shape, base.strides, made.strides, strict=True)
        if base.dtype == made.dtype and all(extent == 1 or old == new for extent, old, new in steps):
            made = base  # of which views are known
        return Buffer("temporary", next(self._temporaries), dtype, made, next(self._groups))

    def version(self, buffer: Buffer) -> int:
        """The number of writes to the memory so far."""
        return self.versions.get(buffer.group, 0)

    # --- reading -------------------------------------------------------------------------------------------------

    def leaf(self, buffer: Buffer, steps: tuple[Step, ...], seen: Array, version: int | None = None) -> ArrayValue:
        """The contents of a view of a buffer, at some version or now."""
        version = self.version(buffer) if version is None else version
        found = self._leaf(Leaf(Input("", buffer.dtype), seen, buffer, version, steps))
        return ArrayValue(Scalar(buffer.dtype, widened(found.input, buffer.dtype)), seen)

    def _leaf(self, leaf: Leaf) -> Leaf:
        """The leaf of that view, with a name."""
        buffer = leaf.buffer
        assert buffer is not None, "a view of memory"
        key = (buffer.group, buffer.kind, leaf.version, leaf.geometry, buffer.dtype, leaf.is_whole)
        found = self._by_geometry.get(key)
        if found is None:
            leaf.input = Input(f"v{len(self.leaves)}", buffer.dtype)
            found = self._by_geometry[key] = self.leaves[leaf.input] = leaf
        else:
            require_one_place(self, found, leaf)
        return found

    def whole(self, leaf: Leaf, value: ArrayValue, steps: tuple[Step, ...] = ()) -> Leaf:
        """A leaf, repeated to the shape of a value, and a view of that, from which elements are taken."""
        around, part = views.repeated(leaf, value, steps, self.extents)
        return self._leaf(Leaf(leaf.input, part, leaf.buffer, leaf.version, around, is_whole=True))

    def computed(self, function: Callable[..., Any], values: Sequence[ArrayValue]) -> ArrayValue:
        """The result of Python's arithmetic on its numbers, at each call. Raises NeedsNumberError for exceptions."""
        operands = tuple(map(self._source_of, values))
        key = (function, *((which, type(found), repr(found)) for which, found in operands))
        known = self._computed.get(key)
        if known is not None:
            return self.number(("computed", known), PYTHON_TYPES[type(self.numbers[known].value)])
        arguments = tuple(dict.fromkeys(itertools.chain(*map(self.arguments_of, operands))))
        try:
            found = function(*map(self._number_at, operands))
        except Exception:  # which the function may catch
            raise self.needing(arguments[0]) from None
        place = self._computed[key] = next(self._temporaries)
        self.numbers[place] = Computed(function, operands, found, arguments)
        return self.number(("computed", place), PYTHON_TYPES[type(found)])

    def _source_of(self, value: ArrayValue) -> Source:
        """How calls find a Python number."""
        if value.scalar.literal is not None:
            return "known", value.scalar.literal
        assert isinstance(value.expr, Input), "what Python makes of numbers is a number"
        if value.expr in self.extents.numbers:
            self.extents.fix(self.extents.numbers[value.expr])
        found = self.leaves[value.expr].number
        assert found is not None, "a number"
        return found

    def arguments_of(self, source: Source) -> tuple[int, ...]:
        """The arguments from which a number is computed."""
        which, place = source
        if which == "known":
            return ()
        return (place,) if which == "argument" else self.numbers[place].arguments

    def _number_at(self, source: Source) -> Any:
        """A number in the traced call."""
        which, found = source
        if which == "known":
            return found
        return self.flat[found] if which == "argument" else self.numbers[found].value

    def number(self, which: Any, kind: Kind, counted: object = None) -> ArrayValue:
        """A number passed by value. which: an argument by its place, a computed one, or one known from shapes.

        counted: what it counts, if another number of the same value may count something else.
        """
        key = (which, kind, counted)
        found = self._by_geometry.get(key)
        if found is None:
            nothing = phantom((), storage(kind).numpy)
            found = Leaf(Input(f"v{len(self.leaves)}", storage(kind)), nothing, number=which)
            self._by_geometry[key] = self.leaves[found.input] = found
            if isinstance(counted, Derived):
                self.extents.take_number(found.input, counted)
        return ArrayValue(Scalar(kind, widened(found.input, storage(kind))), found.phantom)

    def count(self, value: ArrayValue, axes: tuple[int, ...], kind: DType) -> ArrayValue:
        """How many elements of a value lie along some axes, as a number."""
        count, size = prod(value.shape[axis] for axis in axes), size_of(value.expr)
        leaves, extents = tuple(self.leaves[each] for each in size.leaves), self.extents
        if size.kinds <= ANYWHERE and layouts.joined_shape([each.phantom.shape for each in leaves]) == value.shape:
            found = self.number(("known", count), kind, (value.expr, axes))
            self.counts[leaves_of(found.expr)[0]] = (leaves, axes)
            return found
        derived = extents.attempt(lambda: extents.count(extents.of_value(value), axes)) or (value.expr, axes)
        return self.number(("known", count), kind, derived)

    def read(self, memory: Storage, steps: tuple[Step, ...], seen: Array) -> ArrayValue:
        """The present contents of a view of some memory. Raises NotFusable for parts that may be other than NumPy's."""
        self.parts.check(memory)
        steps = choosing(steps)
        if memory.value is None:
            assert memory.buffer is not None, "memory without a value is a buffer"
            return self.leaf(memory.buffer, steps, seen)
        if not steps:
            return memory.value
        return self.viewed(memory, memory.value, steps, seen)

    def viewed(self, memory: Storage, value: ArrayValue, steps: tuple[Step, ...], seen: Array) -> ArrayValue:
        """A view of a value: of what it reads if that is all, else of a buffer, which `forwarded` may leave out."""
        if self.is_read(value) or isinstance(bare(value.expr), Taken):
            found = views.seen(self, value, steps)
            if found is not None:
                return ArrayValue(Scalar(value.kind, found), seen)
        self.hold(memory)
        return self.read(memory, steps, seen)

    def is_leaf(self, value: ArrayValue) -> bool:
        """Whether a value is nothing but what some memory holds."""
        name = bare(value.expr)
        return isinstance(name, Input) and self.leaves[name].buffer is not None

    def is_read(self, value: ArrayValue) -> bool:
        """Whether a value is nothing but what some memory holds, or made of numbers alone."""
        if any(self.leaves[name].buffer is not None for name in size_of(value.expr).leaves):
            return self.is_leaf(value)
        return Position not in size_of(value.expr).kinds

    def hold(self, memory: Storage) -> None:
        """Have a buffer hold a value of which views are read, or elements elsewhere."""
        assert memory.value is not None, "a value"
        is_dear = size_of(memory.value.expr).is_expensive
        if is_dear:
            self.notes.append("a value that is costly to compute is stored, since only parts of it are read")
        if memory.is_argument and not is_dear and not self.is_read(memory.value):
            self.settle_apart(memory)
            buffer = self.leaves[leaves_of(memory.value.expr)[0]].buffer
            assert buffer is not None, "it was settled"
            self.held.add(buffer)
        else:
            self.held.add(self.settle(memory))

    # --- writing -------------------------------------------------------------------------------------------------

    def settle(self, memory: Storage) -> Buffer:
        """The buffer that holds some memory, which later statements may read and write."""
        value = memory.value
        if value is None:
            assert memory.buffer is not None, "memory without a value is a buffer"
            return memory.buffer
        if memory.buffer is None:
            memory.buffer = self.temporary(memory.base, value.dtype)
            assert memory.buffer.phantom is memory.base or not memory.base.size, "views are those of the buffer"
            self.statements.append(Define(memory.buffer, value))
            if memory.joined is not None and memory.joined.value is value:
                self.joined[memory.buffer] = memory.joined
        else:
            self.store(memory.buffer, (), memory.base, value)
        memory.value = None
        return memory.buffer

    def settled(self, value: ArrayValue) -> ArrayValue:
        """A value, stored in a buffer of its own."""
        buffer = self.temporary(value.phantom, value.dtype)
        self.statements.append(Define(buffer, value))
        return self.leaf(buffer, (), buffer.phantom)

    def store(self, buffer: Buffer, steps: tuple[Step, ...], seen: Array, value: ArrayValue) -> None:
        """Write a view of a buffer; values computed from its old contents and not stored yet are stored before."""
        if self._is_there(buffer, seen, value):
            return
        for each in self._unstored.reading(buffer.group):
            if each.value is not value:
                self.settle_apart(each)
        self._append(buffer, steps, seen, value)

    def _append(self, buffer: Buffer, steps: tuple[Step, ...], seen: Array, value: ArrayValue) -> None:
        """Write, from a buffer of the plan if the value is made of other elements of the same memory."""
        made = Write(buffer, steps, seen, value, self.version(buffer) + 1)
        size = size_of(value.expr)
        if any(is_moved(self.leaves[each], made, each in size.taken) for each in size.leaves):
            made.value = self.settled(value)
        self.versions[buffer.group] = made.version
        self.statements.append(made)

    def _is_there(self, buffer: Buffer, seen: Array, value: ArrayValue) -> bool:
        """Whether a view holds a value already, as after `x[1:] += y`, which Python assigns to `x[1:]` once more."""
        leaf = self.leaves.get(value.expr)  # type: ignore[call-overload]
        is_now = leaf is not None and leaf.buffer is buffer and leaf.version == self.version(buffer)
        return is_now and not leaf.is_whole and leaf.geometry == geometry(seen)

    def settle_apart(self, memory: Storage) -> None:
        """Make a buffer of the plan hold a value that memory will have."""
        assert memory.value is not None, "asked of values"
        memory.value = self.settled(memory.value)
        self._unstored.add(memory)

    def _groups_read(self, memory: Storage) -> set[int]:
        """The groups of memory that the value of some memory reads."""
        if memory.value is None:
            return set()
        found = (self.leaves[each].buffer for each in size_of(memory.value.expr).leaves)
        return {each.group for each in found if each is not None}

    def write(self, memory: Storage, steps: tuple[Step, ...], seen: Array, value: ArrayValue) -> None:
        """Make a view of some memory hold a value of its dtype, which broadcasts to it."""
        if not seen.flags.writeable:
            raise unwritable(self, memory)
        if seen.size and any(not step and extent > 1 for step, extent in zip(seen.strides, seen.shape, strict=True)):
            cure = "write to x[...] before it is broadcast, or to a copy of the result"
            raise NotFusable("a write to elements that broadcasting repeats", cure).at(here())
        if layouts.has_internal_overlap(layouts.View(0, seen.shape, seen.strides, value.dtype)):
            cure = "write to an array whose elements share no memory, such as a copy"
            raise NotFusable("a write to elements that share memory", cure).at(here())
        self.parts.write(memory)
        if memory.is_argument and not memory.is_written:
            memory.is_written = True
            self.written.append(memory)
        is_alone = memory.buffer is None or memory.buffer.group not in self.shared
        if is_alone and geometry(seen) == geometry(memory.base):
            self.extents.stored(value, memory)
            memory.value = ArrayValue(value.scalar, memory.base)
            self._unstored.add(memory)
        else:
            self.store(self.settle(memory), choosing(steps), seen, value)

    def finish(self) -> None:
        """Write the final contents of the arguments."""
        self.parts.check()
        for memory in self.written:
            if memory.value is not None:
                buffer = memory.buffer
                assert buffer is not None, "arguments have memory"
                self._append(buffer, (), memory.base, memory.value)
                memory.value = None

    # --- values --------------------------------------------------------------------------------------------------

    def combined(self, scalar: Scalar, values: Sequence[ArrayValue]) -> ArrayValue:
        """The value that an operation makes of others."""
        found = ArrayValue(scalar, common_phantom(values, storage(scalar.type)))
        self.extents.combine(found, values)
        return found

    def ready(self, values: Sequence[ArrayValue]) -> list[ArrayValue]:
        """The operands of one operation; those that would be recomputed for many elements are stored."""
        shape = common_shape(values)
        found = []
        for each in values:
            size = size_of(each.expr)
            if each.shape != shape and size.is_expensive and each.phantom.size != int(np.prod(shape)):
                self.notes.append(f"a value of shape {each.shape} is stored, since it is repeated to shape {shape}")
                each = self.settled(each)
            elif size.depth > MAX_DEPTH or len(size.leaves) > MAX_LEAVES:
                self.notes.append("a value is stored, since it is computed from very many others")
                each = self.settled(each)
            found.append(each)
        return found

    def adapted(self, value: ArrayValue, kind: Kind) -> ArrayValue:
        """A value as NumPy converts it to another dtype."""
        if value.kind == kind:
            return value
        if value.is_weak and isinstance(value.expr, Input) and isinstance(kind, DType):
            if kind == BOOL and not holds(kind, value.kind):
                value = self.computed(bool, [value])
            if holds(kind, value.kind):
                name: Any = value.expr
                return self.number(self.leaves[name].number, kind, self.extents.numbers.get(name))
        scalar = value.scalar
        if scalar.literal is not None:
            made = python_values.adapt(scalar, kind, here())
        else:
            made = Scalar(kind, rounded_to(scalar.expr, storage(kind)))
        if storage(kind) in STORAGE_FLOATS:
            made = Scalar(kind, rounded_to(made.expr, storage(kind)))
        return ArrayValue(made, laid_out(value.phantom, storage(kind).numpy))


def holds(kind: DType, given: Kind) -> bool:
    """Whether Python numbers of a type are passed unchanged to a parameter of a dtype."""
    assert isinstance(given, PythonType), "numbers of Python"
    return given.rank <= {"bool": 0, "signed": 1, "unsigned": 1, "float": 2, "complex": 3}[kind.kind]


def literal(value: bool | int | float | complex) -> ArrayValue:
    """A Python number."""
    kind = PYTHON_TYPES[type(value)]
    return ArrayValue(python_values.literal(value), phantom((), kind.dtype.numpy))


def constant(value: object, dtype: DType) -> ArrayValue:
    """A number of a dtype."""
    return ArrayValue(Scalar(dtype, widened(const(value, dtype), dtype)), phantom((), dtype.numpy))


def widened(expr: Expr, dtype: DType) -> Expr:
    """A stored value in the type in which its dtype computes."""
    wide = compute_type(dtype)
    return expr if wide == dtype else apply("convert", expr, target=wide)


def bare(expr: Expr) -> Expr:
    """What `widened` was given, if it was given what some memory holds."""
    if isinstance(expr, Apply) and expr.op == "convert" and isinstance(expr.args[0], Input | Taken):
        return expr.args[0] if widened(expr.args[0], expr.args[0].type) == expr else expr
    return expr


def rounded_to(expr: Expr, dtype: DType) -> Expr:
    """A value converted to a dtype, in the type in which the dtype computes: narrow floats are rounded at once."""
    if dtype not in STORAGE_FLOATS:
        return converted(expr, dtype)
    given = scalar_type(expr)
    if given.is_complex:
        expr = apply("real", expr)
    if isinstance(expr, Apply) and expr.op == "convert" and scalar_type(expr.args[0]) == dtype:
        return expr
    return apply("convert", apply("convert", expr, target=dtype), target=carrier(dtype))


def common_shape(values: Sequence[ArrayValue]) -> layouts.Shape:
    """The shape of an operation on these. Raises ShapesDoNotBroadcast."""
    shape: layouts.Shape = ()
    for number, each in enumerate(values, 1):
        joined = layouts.common_shape(shape, each.shape)
        if isinstance(joined, int):
            raise ShapesDoNotBroadcast(f"operand {number}", shape, each.shape, joined).at(here())
        shape = joined
    return shape


def check_fits(what: str, given: layouts.Shape, wanted: layouts.Shape) -> None:
    """Raise ShapesDoNotBroadcast unless a value of one shape can be stored in an array of another."""
    lead = len(given) - len(wanted)
    pairs = enumerate(zip((1,) * -lead + given, (1,) * lead + wanted, strict=True))
    axis = 0 if lead > 0 else next((at for at, (one, other) in pairs if one not in (1, other)), None)
    if axis is not None:
        raise ShapesDoNotBroadcast(what, wanted, given, axis, "the array that takes it has").at(here())


def common_phantom(values: Sequence[ArrayValue], dtype: DType) -> Array:
    """The memory order that NumPy would give a new array of an operation on these."""
    return joint_phantom([each.phantom for each in values], common_shape(values), dtype.numpy)
