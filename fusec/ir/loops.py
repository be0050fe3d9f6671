"""The loops IR: one kernel as structured statements over scalars, executed once for every element.

Of a block program each position of the iteration space is a block: threads that run the statements together, each with
locals of its own, that share arrays and meet at barriers.

A `Program` says what one element does; the loop over elements, threads and lanes belongs to the code generators.
Names of locals are unique within a function. Reading a local or an array element has no side effect; atomics and
calls that write memory are statements of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal, TypeGuard

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile
from fusec.ir.expr import Expr, IRNode, Pointer, Space, Struct, Type, const

Quantity = Literal["size", "ndim", "shape", "stride", "index", "coordinate", "thread"]
AtomicOp = Literal["add", "subtract", "minimum", "maximum", "and", "or", "xor", "exchange", "compare_exchange"]


# --- expressions beyond Const and Apply ------------------------------------------------------------------------


class Local(Expr):
    """The current value of a local variable, a function parameter or a scalar kernel parameter."""

    name: str
    type: Type


class Element(Expr):
    """The address of the current element of a non-raw array parameter (broadcasting applied)."""

    param: str
    type: Pointer


def element(array: str, dtype: DType, *, const: bool = False) -> Element:
    """The address of the current element of an array in global memory; const: nothing may be stored there."""
    return Element(array, Pointer(dtype, "global", const))


class Moved(Expr):
    """The address of a non-raw array's element at a position that is shifted along some axes.

    Strides and broadcasting are honoured. Nothing checks that the array has such an element.
    """

    param: str
    axes: tuple[int, ...]  # of the iteration space, each once
    distances: tuple[Expr, ...]  # int64, the number of positions along each
    type: Pointer


class At(Expr):
    """The address of an element of a raw array parameter; strides are respected."""

    param: str
    index: tuple[Expr, ...]  # int64: one, the position in C order of the logical array, or one for every axis
    type: Pointer


class LocalArray(Expr):
    """The address of the first element of a local or shared array, as its type says."""

    name: str
    type: Pointer


class Offset(Expr):
    """An address shifted by a number of elements (int64), regardless of strides."""

    pointer: Expr
    offset: Expr
    type: Pointer


class Load(Expr):
    """The value stored at an address."""

    pointer: Expr
    type: DType


class Query(Expr):
    """A property of a raw array (`param`), or of the iteration space if param is ""; int64.

    what: "size", "ndim"; "shape" or "stride" (in bytes) along `axis`; of the space alone "index" (the flat C-order
    position of the current element, CuPy's `i`) and "coordinate" along `axis` (CuPy's `_ind.get()[axis]`); in a block
    program "thread", the position in the block along one of the block's axes.
    """

    param: str
    what: Quantity
    axis: Expr | None
    type: DType


def query(what: Quantity, axis: int | None = None, param: str = "") -> Query:
    """A property of a raw array or of the iteration space. axis: along which it is, for what has one."""
    return Query(param, what, None if axis is None else const(axis, INT64), INT64)


class Call(Expr):
    """A call of a function of the program; pure unless the function stores through a pointer (then a CallStatement)."""

    function: str
    args: tuple[Expr, ...]
    type: Type


class Field(Expr):
    """A field of a struct value."""

    value: Expr
    name: str
    type: DType


class Make(Expr):
    """A struct value from one value for every field, in order."""

    fields: tuple[Expr, ...]
    type: Struct


# --- statements ------------------------------------------------------------------------------------------------


class Stmt(IRNode):
    """Base of all statements. line: the line of the user's text, 0 for none; it takes no part in equality."""

    line: int = field(default=0, compare=False, kw_only=True)

    @property
    def blocks(self) -> tuple[tuple[Stmt, ...], ...]:
        """The statement lists nested directly in the statement."""
        raise NotImplementedError

    def rebuild(self, children: Sequence[Expr], blocks: Sequence[tuple[Stmt, ...]] = ()) -> Stmt:
        """The same statement with other operands and nested lists."""
        return type(self)(*self.replaced(children, blocks), line=self.line)


class Declare(Stmt):
    """A new local variable; without a value it starts as zero (a null pointer for pointers)."""

    name: str
    type: Type
    value: Expr | None = None


class DeclareArray(Stmt):
    """A new local array of fixed length; elements without a value start as zero."""

    name: str
    element: DType
    length: int
    values: tuple[Expr, ...] = ()
    # "shared" for the array that the threads of a block have together, which is there from the start of the block to
    # its end, has no values, and holds anything until it is written. If several blocks have a position, each has an
    # array of its own; what one stores in a "told" one, it stores in those of all
    space: Space = "local"


def is_shared(stmt: Stmt) -> TypeGuard[DeclareArray]:
    """Whether a statement declares a shared array."""
    return isinstance(stmt, DeclareArray) and stmt.space in ("shared", "told")


class Assign(Stmt):
    """A new value for a local variable."""

    name: str
    value: Expr


class SetField(Stmt):
    """A new value for one field of a local struct."""

    name: str
    field: str
    value: Expr


class Store(Stmt):
    """Write a value to an address."""

    pointer: Expr
    value: Expr


class Atomic(Stmt):
    """An atomic update of an element."""

    op: AtomicOp
    pointer: Expr
    values: tuple[Expr, ...]  # one operand; for compare_exchange the expected value, then the new one
    result: str = ""  # a declared local that receives the old value, "" for none


class AtomicLoad(Stmt):
    """Read an integer of at least 32 bits that other threads may store meanwhile, from memory that all of them see.

    It orders no other access: what belongs together lies in one integer.
    """

    result: str  # a declared local
    pointer: Expr


class AtomicStore(Stmt):
    """Write such an integer, whole, where other threads may read it meanwhile."""

    pointer: Expr
    value: Expr


class CallStatement(Stmt):
    """A call for its effect."""

    call: Call
    result: str = ""  # a declared local that receives the value, "" for none


class Shuffle(Stmt):
    """A value of another position of the same group of GROUP neighbours, which run together. All must come here."""

    result: str  # a declared local
    value: Expr
    # How many positions further the other one is, a power of two below GROUP, or one with a minus sign for one before;
    # past the ends of the group it receives anything. FIRST, LAST: it is the first or the last of the group. EXCHANGED
    # and a power of two: two positions that are so far apart exchange values.
    distance: int


GROUP = 32  # positions of a group: a warp of CUDA, a SIMD group of Metal
REGISTER = 4  # bytes of a register of a position: narrower elements take a whole one
FIRST, LAST = 0, GROUP  # distances that name a position, the same for all
POWERS = (1, 2, 4, 8, 16)  # of two, below GROUP
EXCHANGED = GROUP  # added to a distance: the numbers of two positions differ in this bit alone
ASSERT = "fusec_assert"  # the function that an assertion calls with its condition


class Barrier(Stmt):
    """All threads of a position wait for each other and then see earlier writes. All of them come here, or none."""


class If(Stmt):
    """Run one of two statement lists by a bool."""

    condition: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


class While(Stmt):
    """Repeat `body` then `step` as long as the bool `condition` holds; `continue` goes to `step`."""

    condition: Expr
    body: tuple[Stmt, ...]
    step: tuple[Stmt, ...] = ()
    test_first: bool = True  # False for do-while, which runs the body once before the first test
    # Whether rounds stand one after the other on targets with many threads: their number is known, and local arrays
    # that they index are in registers then
    unrolled: bool = False


class Break(Stmt):
    """Leave the innermost loop."""


class Continue(Stmt):
    """Continue with the step of the innermost loop."""


class Return(Stmt):
    """Leave the function with a value, or end the work of this element (no value)."""

    value: Expr | None = None


# --- programs --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScalarParam:
    """A kernel argument that is passed by value and read as a Local of the same name."""

    name: str
    dtype: DType


@dataclass(frozen=True)
class ArrayParam:
    """A kernel argument that is an array."""

    name: str
    dtype: DType
    raw: bool = False  # addressed by At and Query; otherwise by Element, and broadcast over the iteration space
    written: bool = False  # an output
    read: bool = True  # its former content is read, as that of an output that is always stored before is not
    ndim: int = 0  # axes of a raw array; 0 for the others, whose axes belong to the iteration space

    def element(self, *, const: bool = False) -> Element:
        """The address of the element at the position; const: nothing may be stored there."""
        return element(self.name, self.dtype, const=const)

    def load(self) -> Load:
        """The element at the position, from an array that is only read."""
        return Load(self.element(const=True), self.dtype)


Param = ScalarParam | ArrayParam


@dataclass(frozen=True)
class Function:
    """A device function. Functions do not recurse."""

    name: str
    params: tuple[tuple[str, Type], ...]
    result: Type | None  # None if it returns nothing
    body: tuple[Stmt, ...]
    text: str = field(default="", compare=False)  # the first line of its definition in the user's text, "" for none


@dataclass(frozen=True)
class Program:
    """One kernel: the work for every element."""

    name: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    functions: tuple[Function, ...] = ()  # callees before callers
    source: SourceFile | None = field(default=None, compare=False)  # the user's text that statement lines refer to
    block: tuple[int, ...] = ()  # of a block program, the threads along each axis of a block, numbered in C order
    cluster: int = 1  # blocks that have these threads together, each as many that follow one another

    @property
    def threads(self) -> int:
        """How many threads work on one position of the iteration space."""
        return prod(self.block)

    @property
    def arrays(self) -> tuple[ArrayParam, ...]:
        """The array parameters in order."""
        return tuple(param for param in self.params if isinstance(param, ArrayParam))


def way_of(distance: int) -> tuple[str, int]:
    """How shuffles are called that take values from there, with a word for where, and their last argument."""
    if distance > EXCHANGED:
        return "_xor", distance - EXCHANGED
    if distance in (FIRST, LAST):
        return "", 0 if distance == FIRST else GROUP - 1
    return "_up" if distance < 0 else "_down", abs(distance)
