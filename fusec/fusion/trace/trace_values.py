"""The parts of a trace: arrays that kernels read and write, views of them, values computed for each element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.operands import Outline, strided
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.recorded import is_symbol
from fusec.base.records import dataclass, field
from fusec.base.source import Span
from fusec.frontends.python.types import Kind, PythonType, storage
from fusec.frontends.python.values import Scalar
from fusec.fusion.trace.array_forms import ArrayForm
from fusec.fusion.trace.numbers import Source
from fusec.fusion.trace.sizes import is_expensive_op, size_of
from fusec.ir.expr import Apply, Expr
from fusec.ir.graph import Input, Taken
from fusec.ir.walk import expressions, inner_first

Array = NDArray[Any]
Step = Callable[[Array], Array]
"""From an array to a view of it."""

Geometry = tuple[int, tuple[int, ...], tuple[int, ...], np.dtype[Any]]
"""Where an array lies: its address, shape, strides and dtype."""

EVERYTHING = slice(None)
INDICES_ANYWHERE = (0, -1)  # that are other elements of any extent but 1


@dataclass(frozen=True)
class ViewOf:
    """A view by one of NumPy's functions: a step that is data."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    origin: ViewOf | None = field(default=None, compare=False, repr=False)  # the same before `at`

    def __call__(self, array: Array) -> Array:
        """The view."""
        args = [each.now if hasattr(each, "now") else each for each in self.args] if self.is_sized else self.args
        return self.function(array, *args, **dict(self.options))  # type: ignore[no-any-return]

    def at(self, call: Any) -> ViewOf:
        """The same in a call of other extents; see `CallShapes`."""
        if not self.is_sized:
            return self
        args = tuple([call.of(each) if hasattr(each, "now") else each for each in self.args])
        return ViewOf(self.function, args, self.options, self)

    @property
    def is_sized(self) -> bool:
        """Whether it depends on extents, as a reshape to a shape that is computed from them."""
        return any(hasattr(each, "now") for each in self.args)


@dataclass(frozen=True)
class Indexed:
    """A view by integers, slices, None and ...: a step that is data."""

    where: tuple[Any, ...]
    is_stated: bool = field(default=False, compare=False, repr=False)  # among the conditions of its trace
    sized: tuple[Any, ...] | None = None  # `where` with bounds that are computed from extents
    origin: Indexed | None = field(default=None, compare=False, repr=False)  # the same before `at`

    def __call__(self, array: Array) -> Array:
        """The view."""
        return array[self.where]  # type: ignore[no-any-return]

    def at(self, call: Any) -> Indexed:
        """The same in a call of other extents; see `CallShapes`."""
        if self.sized is None:
            return self
        return Indexed(tuple([_bounded(each, call.of) for each in self.sized]), True, None, self)

    @property
    def is_sized(self) -> bool:
        """Whether it depends on extents."""
        return self.sized is not None

    @property
    def is_alike(self) -> bool:
        """Whether it is the same view in calls of other extents."""
        return self.is_stated or self.is_regular

    @property
    def is_everything(self) -> bool:
        """Whether it is all of any array, in its shape."""
        return all(each is ... or each == EVERYTHING for each in self.where)

    @property
    def is_regular(self) -> bool:
        """Whether no two such views of one array are the same view by accident of its extents."""
        return all(map(is_regular_part, self.where))


def _bounded(item: Any, of: Callable[[Any], int]) -> Any:
    """Part of an index with the numbers that a call computes from extents."""
    if not isinstance(item, slice):
        return item
    return slice(*[of(each) if hasattr(each, "now") else each for each in (item.start, item.stop, item.step)])


def is_regular_part(given: Any) -> bool:
    """Whether a slice leaves out a number of elements at each end, or takes an end, or every n-th one of all.

    given: part of an index; integers take an end, others are regular.
    """
    if not isinstance(given, slice):
        return given is None or given is ... or given in INDICES_ANYWHERE
    start, stop, step = given.start, given.stop, given.step
    if step in (None, 1) and (start, stop) in ((None, 1), (0, 1), (-1, None)):
        return True
    if step in (None, 1):
        return (start is None or start >= 0) and (stop is None or stop < 0)
    return start is None and stop is None


@dataclass(eq=False)
class Buffer:
    """An array that kernels read or write."""

    kind: Literal["argument", "constant", "temporary"]  # of the call, from elsewhere, or the plan's own
    place: int  # among the arguments, or among what the plan holds
    dtype: DType
    phantom: Array  # has shape and strides, but no elements that may be read
    group: int  # the same for buffers that may share memory
    array: Array | None = None  # of a constant
    derived: Any = None  # how calls make a constant from extents; see `Derived`
    _geometry: Geometry | None = field(default=None, init=False, repr=False)

    @property
    def geometry(self) -> Geometry:
        """Where it lies, see `geometry`."""
        if self._geometry is None:
            self._geometry = geometry(self.phantom)
        return self._geometry


@dataclass(eq=False)
class Leaf:
    """What a kernel reads: a view of a buffer at some version of its memory, or a number passed by value."""

    input: Input
    phantom: Array
    buffer: Buffer | None = None
    version: int = 0
    steps: tuple[Step, ...] = ()  # from the buffer's array to the view
    number: Source | None = None
    is_whole: bool = False  # elements of it are taken elsewhere than at the position at hand
    _geometry: Geometry | None = field(default=None, init=False, repr=False)

    @property
    def geometry(self) -> Geometry:
        """Where it lies, see `geometry`."""
        if self._geometry is None:
            is_all = self.buffer is not None and self.phantom is self.buffer.phantom
            self._geometry = self.buffer.geometry if is_all and self.buffer is not None else geometry(self.phantom)
        return self._geometry


@dataclass(frozen=True)
class ArrayValue:
    """One number for each element: its type, the expression over leaves, and the layout of a new array of it."""

    scalar: Scalar
    phantom: Array = field(compare=False)

    @property
    def kind(self) -> Kind:
        """The dtype, or the type of a Python number."""
        return self.scalar.type

    @property
    def dtype(self) -> DType:
        """The dtype of an array of it."""
        return storage(self.scalar.type)

    @property
    def expr(self) -> Expr:
        """The expression, in the type in which the dtype computes."""
        return self.scalar.expr

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.phantom.shape

    @property
    def is_weak(self) -> bool:
        """Whether it is a Python number."""
        return isinstance(self.scalar.type, PythonType)


@dataclass(eq=False)
class Storage:
    """Memory as the function sees it: a buffer, or a value that no buffer holds yet."""

    base: Array  # its shape and strides
    buffer: Buffer | None = None
    value: ArrayValue | None = None  # what all of it is now, if that is known as a value
    is_written: bool = False
    is_python: bool = False  # NumPy gives Python's own bool here
    joined: Any = None  # how its first value joins others, if kernels may store them in their places

    @property
    def is_argument(self) -> bool:
        """Whether the caller sees writes."""
        return self.buffer is not None and self.buffer.kind == "argument"


@dataclass(eq=False)
class Define:
    """A buffer of the plan's own holds a value."""

    buffer: Buffer
    value: ArrayValue


@dataclass(eq=False)
class Total:
    """A buffer, with one element along reduced axes, holds totals of a value."""

    buffer: Buffer
    op: str
    value: ArrayValue
    axes: tuple[int, ...]


@dataclass(eq=False)
class Write:
    """Part of a buffer's memory, or all of it, takes a value."""

    buffer: Buffer
    steps: tuple[Step, ...]
    phantom: Array
    value: ArrayValue
    version: int  # of the group's memory from then on: how often parts of it were written


@dataclass(eq=False)
class LibraryCall:
    """Buffers hold what a function of a library makes of arrays and numbers; no kernel takes part."""

    name: str  # as reports and errors have it
    function: Callable[..., tuple[Any, ...]]  # from the operands in order to an array for each buffer
    operands: list[Input]
    buffers: tuple[Buffer, ...]
    may_raise: bool  # for some values of the operands
    place: Span  # the user's line
    takes_memory: bool = False  # the function also takes, last, memory for its only result
    kernels: int = 0  # that it runs, of which fusec is the library
    again: Callable[[Sequence[Array]], Sequence[Array]] | None = None  # the results for operands of other extents


Statement = Define | Total | Write | LibraryCall
Computation = Define | Total | Write
"""A statement that kernels run."""


def buffers_of(statement: Statement) -> tuple[Buffer, ...]:
    """What a statement makes or writes."""
    return statement.buffers if isinstance(statement, LibraryCall) else (statement.buffer,)


def phantom(shape: tuple[int, ...], dtype: np.dtype[Any], axes: Sequence[int] | None = None) -> Array:
    """An array of some shape with one element of memory, the same for the same layout; a form for extents of no size.

    axes: from outermost to innermost; in C order if None.
    """
    if any(map(is_symbol, shape)):
        order = range(len(shape)) if axes is None else axes
        return ArrayForm(0, shape, strides_in_order(shape, order, dtype.itemsize), dtype)  # type: ignore[return-value]
    return _phantom(shape, dtype, dtype.num, tuple(range(len(shape)) if axes is None else axes))


@lru_cache(maxsize=4096)
def _phantom(shape: tuple[int, ...], dtype: np.dtype[Any], _: int, axes: tuple[int, ...]) -> Array:
    """See `phantom`. The number tells dtypes apart that are equal, but not of one type, as int64 and long long."""
    step, strides = dtype.itemsize, [0] * len(shape)
    for axis in reversed(axes):
        strides[axis] = step
        step *= max(shape[axis], 1)
    found = strided(np.empty(1, dtype).view(Outline), shape, strides)
    assert type(found) is Outline, "a view of one is one"
    found.geometry = geometry(found)
    return found


def laid_out(like: Array, dtype: np.dtype[Any], order: str | None = "K", shape: tuple[int, ...] | None = None) -> Array:
    """A new array as np.empty_like lays it out."""
    shape, order = like.shape if shape is None else shape, (order or "K").upper()
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    if order == "K" and len(shape) != like.ndim:
        order = "C"
    if order == "F" or (order in "AK" and like.flags.fnc):
        return phantom(shape, dtype, range(len(shape))[::-1])
    return phantom(shape, dtype, outermost_first(like) if order == "K" else None)


def outermost_first(array: Array) -> tuple[int, ...]:
    """The axes from outermost to innermost in memory."""
    axes = range(array.ndim)
    return tuple(axes if array.flags.c_contiguous else sorted(axes, key=lambda axis: -abs(array.strides[axis])))


def joint_phantom(operands: Sequence[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array in the memory order that NumPy chooses for an operation on arrays, which broadcast to a shape."""
    if 0 in shape or all(each.flags.c_contiguous for each in operands):
        return phantom(shape, dtype)
    return phantom(shape, dtype, joint_order(tuple([(each.shape, each.strides) for each in operands]), shape))


@lru_cache(maxsize=4096)
def joint_order(operands: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...], shape: tuple[int, ...]) -> Sequence[int]:
    """The axes of such an array from outermost to innermost. operands: shapes and strides, which decide."""
    example = np.empty(1, "int8")
    arrays: list[Array | None] = [strided(example, *each) for each in operands if each[0]]
    if 0 in shape or not arrays:
        return range(len(shape))
    order = np.nditer(
        [*arrays, None],
        flags=["zerosize_ok"],
        op_flags=[*(("readonly",) for _ in arrays), ("writeonly", "allocate")],
        op_dtypes=[example.dtype] * (len(arrays) + 1),
        order="K",
    ).operands[-1]
    return outermost_first(order)


def stepped(array: Array, steps: Sequence[Step]) -> Array:
    """A view of an array."""
    for step in steps:
        array = step(array)
    return array


def choosing(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of a view but those to all of an array, as x[...] and x[:] are."""
    return tuple([step for step in steps if not (isinstance(step, Indexed) and step.is_everything)])


def geometry(array: Array) -> Geometry:
    """Address, shape and strides; those of axes with one element do not count."""
    if type(array) is Outline and array.geometry is not None:
        return array.geometry  # type: ignore[no-any-return]
    shape, strides = array.shape, array.strides
    if 1 in shape:
        strides = tuple([0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)])
    return (address_of(array), shape, strides, array.dtype)


def address_of(array: Array) -> int:
    """Of an array's first element; of a form, from where it is counted."""
    given: Any = array
    if type(given) is ArrayForm:
        return given.start
    address: int = array.__array_interface__["data"][0]
    return address


def leaves_of(root: Expr) -> tuple[Input, ...]:
    """The inputs that an expression reads, each once, from left to right."""
    return size_of(root).leaves


def parts_of(root: Expr) -> list[Expr]:
    """Every node of an expression, each once after its operands."""
    return list(inner_first([root]))


def replaced(root: Expr, known: dict[Expr, Expr]) -> Expr:
    """The expression with some parts replaced; `known` grows."""
    for expr in inner_first([root], known):
        children = expr.children
        new = tuple([known[child] for child in children])
        known[expr] = expr if new == children else expr.rebuild(new)
    return known[root]


def is_expensive(root: Expr) -> bool:
    """Whether computing a value twice costs more than storing and loading it; indices of what it reads do not count."""
    parts = expressions([root], below=lambda each: () if isinstance(each, Taken) else each.children)
    return any(isinstance(part, Apply) and is_expensive_op(part.op) for part in parts)


def is_moved(leaf: Leaf, write: Write, taken: bool = False) -> bool:
    """Whether a leaf reads elements at other positions than those where a statement writes the same memory.

    taken: at positions that are computed.
    """
    return (
        leaf.buffer is not None
        and leaf.buffer.group == write.buffer.group
        and (taken or leaf.is_whole or leaf.geometry != geometry(write.phantom))
        and np.may_share_memory(leaf.phantom, write.phantom)
    )


def are_apart(one: Write, other: Write) -> bool:
    """Whether two statements write parts of a buffer that share no element, whatever its extents are."""
    return one.buffer is other.buffer and are_apart_views(one.steps, other.steps)


def are_apart_views(one: Sequence[Step], other: Sequence[Step]) -> bool:
    """Whether two views of an array share no element, whatever its extents are.

    They differ in one index of a view: integers that differ, or slices of which one ends before the other begins.
    """
    steps, count = [*one, *other], len(one)
    views = [each.where for each in steps if isinstance(each, Indexed) and not each.is_sized]
    if len(other) != count or len(views) < len(steps):
        return False
    pairs = [pair for pair in zip(views[:count], views[count:], strict=True) if pair[0] != pair[1]]
    if len(pairs) != 1 or len(pairs[0][0]) != len(pairs[0][1]):
        return False
    parts = [(left, right) for left, right in zip(*pairs[0], strict=True) if left != right]
    if len(parts) != 1:
        return False
    first, second = map(_span, parts[0])
    return first is not None and second is not None and (first[1] <= second[0] or second[1] <= first[0])


def _span(part: Any) -> tuple[int, int] | None:
    """What part of an index takes, from the front: its first position and the one behind; None if that depends."""
    if isinstance(part, slice):
        start, stop = part.start or 0, part.stop
        return (start, stop) if part.step in (None, 1) and stop is not None and min(start, stop) >= 0 else None
    return (part, part + 1) if type(part) is int and part >= 0 else None


def part_of(step: Step, ndim: int) -> tuple[int, tuple[int, int]] | None:
    """The axis of which a view takes a part, and its first position and the one behind; None for any other view."""
    if not isinstance(step, Indexed) or step.is_sized:
        return None
    where = [each for each in step.where if each is not None]
    if ... in where:
        at = where.index(...)
        where[at : at + 1] = [slice(None)] * (ndim - len(where) + 1)
    chosen = [(axis, _span(each)) for axis, each in enumerate(where) if each != slice(None)]
    if len(chosen) != 1 or chosen[0][1] is None:
        return None
    return chosen[0][0], chosen[0][1]
