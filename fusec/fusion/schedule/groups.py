"""The statements of one kernel, and the rules by which another statement may join them."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import Literal

import numpy as np

from fusec.base.dtypes import STORAGE_FLOATS
from fusec.base.records import dataclass, field
from fusec.frontends.python.types import carrier
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace import Trace, bare
from fusec.fusion.trace.trace_values import (
    Array,
    Buffer,
    Computation,
    Define,
    Leaf,
    LibraryCall,
    Statement,
    Total,
    Write,
    buffers_of,
    geometry,
    is_moved,
    leaves_of,
    parts_of,
    replaced,
)
from fusec.ir.expr import Expr, apply
from fusec.ir.graph import SPREAD, Input, Position, Reduce, Spread, Taken, TotalInput

Shape = tuple[int, ...]
Kind = Literal["elements", "totals"]
LIBRARY_CALL = "a library call is between them"
MAX_ARRAYS = 32  # that one kernel reads and writes
MAX_DEPTH = 200  # of an expression in a kernel


@dataclass(eq=False)
class Group:
    """One kernel under construction, or a call of a library, which shares nothing."""

    shape: Shape  # of its walk
    axes: tuple[int, ...] | None  # those that it reduces; None if it goes element by element
    reason: str  # why it is a kernel of its own
    statements: list[Computation] = field(default_factory=list)
    exprs: dict[Computation, Expr] = field(default_factory=dict)  # over what the kernel reads, as it is stored
    kinds: dict[Computation, Kind] = field(default_factory=dict)  # what each statement is about
    defined: dict[Buffer, Computation] = field(default_factory=dict)
    arrays: set[object] = field(default_factory=set)
    depths: dict[Buffer, int] = field(default_factory=dict)
    beside: dict[Input, Leaf] = field(default_factory=dict)  # arrays with one element for each total
    finished: dict[Input, tuple[Leaf, Computation]] = field(default_factory=dict)  # what those are, and what reads them
    call: LibraryCall | None = None
    reads: list[tuple[Leaf, bool]] = field(default_factory=list)  # of arrays that others make; whether at any position
    writes: list[Write] = field(default_factory=list)

    @cached_property
    def kept(self) -> Shape:
        """The shape of totals, with one element along reduced axes."""
        axes = self.axes or ()
        return tuple(1 if at in axes else extent for at, extent in enumerate(self.shape))

    def made(self, statement: Computation) -> Shape:
        """The shape in which the kernel makes an output."""
        return self.kept if self.axes is not None and self.kinds[statement] == "totals" else self.shape

    @cached_property
    def takes(self) -> frozenset[object]:
        """What sorts of statements can join."""
        if self.axes is None:
            return frozenset([self.shape])
        return frozenset([self.shape, (self.shape, self.axes), ("totals", squeezed(self.kept))])

    @property
    def is_full(self) -> bool:
        """Whether it reads and writes as many arrays as a kernel can."""
        return len(self.arrays) >= MAX_ARRAYS

    @property
    def is_staged(self) -> bool:
        """Whether rows are walked more than once, so that each must fit a chunk."""
        if self.axes is None:
            return False
        nested = (each for each in self.statements if isinstance(each, Total))
        return "elements" in self.kinds.values() or any(_is_nested(self.exprs[each]) for each in nested)

    def why_not(self, statement: Computation, leaves: list[Leaf], staged: bool) -> str:
        """Why a statement cannot join; empty if it can. staged: rows may be walked more than once."""
        if self.call is not None:
            return LIBRARY_CALL
        kind = self.kind_of(statement)
        if kind is None:
            return _differs(statement, self)
        new, gone = self._changes(statement, leaves)
        if len(self.arrays) + len(new) - len(gone) > MAX_ARRAYS:
            return f"a kernel reads and writes at most {MAX_ARRAYS} arrays"
        is_inside = isinstance(statement, Total) or kind == "elements"
        own = [leaf for leaf in leaves if leaf.buffer in self.defined]
        if own and self._depth(statement, leaves) > MAX_DEPTH:
            return f"an expression would be more than {MAX_DEPTH} operations deep"
        size = size_of(statement.value.expr)
        for leaf in own:
            if leaf.input in size.taken or not self._is_aligned(leaf, kind, is_inside):
                return "it reads elements at positions other than those where they are computed"
        writes = [*self.writes, statement] if isinstance(statement, Write) else self.writes
        if writes:
            reads = [*self.reads, *_reads_of(statement, leaves)]
            if any(is_moved(leaf, each, moved) for each in writes for leaf, moved in reads):
                return "it writes elements that are read at other positions"
        if self.axes is None:
            return ""
        if not size.kinds.isdisjoint((Taken, Position)):
            return "it reads elements elsewhere than at the position at hand"
        if is_inside and own and not any(leaf.buffer is not None and leaf not in own for leaf in leaves):
            return "it reads only totals, which do not differ along rows"
        if is_inside and own and not staged:
            return "the elements of each total are too many to stay in cache for another pass"
        reads_nothing = all(leaf.buffer is None for leaf in leaves)
        if not isinstance(statement, Total) and not own and (is_inside or not reads_nothing):
            return "it needs none of the totals"
        if not is_inside and any(self.kinds[self.defined[leaf.buffer]] == "elements" for leaf in own if leaf.buffer):
            return "it reads elements"
        return ""

    def _changes(self, statement: Computation, leaves: list[Leaf]) -> tuple[set[object], set[object]]:
        """What the kernel reads and writes with a statement, but not before, and the reverse.

        A statement may take the place of a value in another shape.
        """
        new: set[object] = {statement}
        for leaf in leaves:
            if leaf.buffer is not None and leaf.buffer not in self.defined:
                new.add((leaf.buffer.group, leaf.geometry))
        if not self.repeats(statement, leaves):
            return new - self.arrays, set()
        gone: set[object] = {self.defined[leaf.buffer] for leaf in leaves if leaf.buffer is not None}
        return new - self.arrays, gone & self.arrays

    def repeats(self, statement: Computation, leaves: list[Leaf]) -> bool:
        """Whether a statement is about a value of the kernel, as the kernel has it."""
        is_copy = isinstance(statement, Define) and isinstance(bare(statement.value.expr), Input)
        return is_copy and all(leaf.buffer in self.defined for leaf in leaves)

    def _depth(self, statement: Computation, leaves: list[Leaf]) -> int:
        """How deep what a statement computes would be here."""
        below = max([self.depths.get(leaf.buffer, 0) for leaf in leaves if leaf.buffer is not None], default=0)
        return below + size_of(statement.value.expr).depth

    def kind_of(self, statement: Computation) -> Kind | None:
        """What a statement here would be about; None if it cannot be here."""
        if isinstance(statement, Total):
            fits = self.axes == statement.axes and self.shape == statement.value.shape
            return "totals" if fits else None
        shape = extents_of(statement)
        if shape == self.shape:
            return "elements"
        if self.axes is not None and squeezed(shape) == squeezed(self.kept):
            is_dense = not isinstance(statement, Write) or statement.phantom.flags.c_contiguous
            return "totals" if is_dense else None
        return None

    def _is_aligned(self, leaf: Leaf, kind: Kind, is_inside: bool) -> bool:
        """Whether a leaf reads of a buffer that is defined here just the element that is at hand.

        is_inside: what reads it is about elements of the walk, as the values that a total combines are.
        """
        assert leaf.buffer is not None, "numbers are not defined"
        definition = self.defined[leaf.buffer]
        about = self.kinds[definition]
        if leaf.is_whole:
            return False
        if about == "elements":
            is_known = kind == "elements" or (isinstance(definition, Define) and self.axes is not None)
            return is_known and leaf.geometry == leaf.buffer.geometry
        if not is_inside and _squeezed_geometry(leaf) == _squeezed_geometry(leaf.buffer):
            return True
        if is_inside or leaf.phantom.ndim > len(squeezed(self.kept)):
            found = _along(leaf.phantom, self.shape)
            return found is not None and found == _along(leaf.buffer.phantom.reshape(self.kept), self.shape)
        return False

    def add(self, statement: Computation, leaves: list[Leaf]) -> None:
        """Add a statement that can join."""
        kind = self.kind_of(statement)
        assert kind is not None, "it was asked whether it can join"
        self.depths[statement.buffer] = self._depth(statement, leaves)
        new, gone = self._changes(statement, leaves)
        self.arrays |= new
        self.arrays -= gone
        known: dict[Expr, Expr] = {}
        for leaf in leaves:
            if leaf.buffer in self.defined:
                known[leaf.input] = self.exprs[self.defined[leaf.buffer]]
            elif leaf.buffer is not None and kind == "totals" and not isinstance(statement, Total):
                known[leaf.input] = self._beside(leaf, statement).input
        expr = replaced(statement.value.expr, known) if known else statement.value.expr
        dtype = statement.buffer.dtype
        if isinstance(statement, Total):
            expr = (Spread if statement.op == SPREAD else Reduce)(statement.op, expr, carrier(dtype))
        self.statements.append(statement)
        self.kinds[statement] = kind
        self.exprs[statement] = apply("convert", expr, target=dtype) if dtype in STORAGE_FLOATS else expr
        self.reads += _reads_of(statement, [leaf for leaf in leaves if leaf.buffer not in self.defined])
        if isinstance(statement, Write):
            self.writes.append(statement)
        else:
            self.defined[statement.buffer] = statement

    def _beside(self, leaf: Leaf, statement: Computation) -> Leaf:
        """A leaf that is read where totals are finished, in the shape of totals."""
        name = TotalInput(f"{leaf.input.name} {extents_of(statement)}", leaf.input.type)
        if name not in self.beside:
            self.beside[name] = self.finishing(name, leaf, statement)
            self.finished[name] = (leaf, statement)
        return self.beside[name]

    def finishing(self, name: Input, leaf: Leaf, statement: Computation) -> Leaf:
        """A leaf repeated to what a statement stores, in the shape of totals."""
        shape, kept = extents_of(statement), self.kept
        steps = (
            lambda array: array if array.shape == shape else np.broadcast_to(array, shape),
            lambda array: array if array.shape == kept else array.reshape(kept),
        )
        seen = steps[1](steps[0](leaf.phantom))
        return Leaf(name, seen, leaf.buffer, leaf.version, (*leaf.steps, *steps))


def _reads_of(statement: Computation, leaves: list[Leaf]) -> list[tuple[Leaf, bool]]:
    """What a statement reads, and whether at positions that are computed."""
    taken = size_of(statement.value.expr).taken
    return [(leaf, leaf.input in taken) for leaf in leaves if leaf.buffer is not None]


def _is_nested(root: Expr) -> bool:
    """Whether totals are made of values that need others."""
    found = [each for each in parts_of(root) if isinstance(each, Reduce)]
    return any(not size_of(each.value).kinds.isdisjoint((Reduce, Spread)) for each in found)


def extents_of(statement: Computation) -> Shape:
    """The shape of what a statement stores, for a total that of what it combines."""
    if isinstance(statement, Write):
        return statement.phantom.shape
    return statement.value.shape if isinstance(statement, Total) else statement.buffer.phantom.shape


def squeezed(shape: Shape) -> Shape:
    """The extents that are not 1."""
    return tuple(extent for extent in shape if extent != 1)


def _squeezed_geometry(of: Leaf | Buffer) -> tuple[object, ...]:
    """Where an array lies without its axes of one element."""
    address, shape, strides, dtype = of.geometry
    return (address, *[pair for pair in zip(shape, strides, strict=True) if pair[0] != 1], dtype)


def _along(array: Array, shape: Shape) -> tuple[object, ...] | None:
    """Where an array lies if it is repeated to a shape; None if it cannot be."""
    try:
        found = np.broadcast_to(array, shape)
    except ValueError:
        return None
    return geometry(found)


def arrays_of(statement: Statement, leaves: dict[Input, Leaf]) -> list[Leaf]:
    """The leaves that a statement reads."""
    names = statement.operands if isinstance(statement, LibraryCall) else leaves_of(statement.value.expr)
    return [leaves[each] for each in names]


def alive(trace: Trace, needed: Collection[Buffer]) -> list[Statement]:
    """The statements that somebody sees the effect of, in order."""
    wanted, found = set(needed), []
    for statement in reversed(trace.statements):
        may_raise = isinstance(statement, LibraryCall) and statement.may_raise
        if may_raise or any(each.kind == "argument" or each in wanted for each in buffers_of(statement)):
            found.append(statement)
            wanted |= {leaf.buffer for leaf in arrays_of(statement, trace.leaves) if leaf.buffer is not None}
    return found[::-1]


def _differs(statement: Computation, group: Group) -> str:
    """In what a statement is not like a kernel."""
    shape = extents_of(statement)
    if shape != group.shape:
        return f"its shape is {shape}, that of the other kernel is {group.shape}"
    return "it reduces" if group.axes is None else "the other kernel reduces other axes"
