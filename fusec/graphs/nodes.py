"""The values of a graph of arrays, as interned nodes: each has a dtype, `type`, and a shape whose extents may be named.

Scalars of the graph's text are `fusec.ir.expr.Const`; operations are those of the op table. Every operand of an
operation has the dtype that the table asks for: conversions are operations of their own. Shapes broadcast as NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.graphs.extents import Shape, Size
from fusec.ir.expr import Const, Expr


class ArrayInput(Expr):
    """An array, or a number if it has no axes, that calls give."""

    name: str
    type: DType
    shape: Shape
    donated: bool  # the caller does not need its contents any more: results may be stored there


class SizeNumber(Expr):
    """An extent as a number: int64, without axes."""

    extent: Size
    type: DType
    shape: Shape


class Map(Expr):
    """An operation of the op table on corresponding elements."""

    op: str
    args: tuple[Expr, ...]
    type: DType
    shape: Shape


class Slice(Expr):
    """Along each axis every `step`-th element from `start` on; the shape says how many. A step may be negative."""

    value: Expr
    starts: tuple[Size, ...]
    steps: tuple[int, ...]
    type: DType
    shape: Shape


class Transpose(Expr):
    """The same elements with the axes in another order."""

    value: Expr
    axes: tuple[int, ...]
    type: DType
    shape: Shape


class Reshape(Expr):
    """The same elements, in C order, in another shape."""

    value: Expr
    type: DType
    shape: Shape


class Broadcast(Expr):
    """Axes of one element, and new ones in front, are repeated."""

    value: Expr
    type: DType
    shape: Shape


class Fold(Expr):
    """The elements along some axes combined by an associative op, in the order that docs/reductions.md defines.

    These axes keep one element.
    """

    op: str
    value: Expr
    axes: tuple[int, ...]
    type: DType
    shape: Shape


class Update(Expr):
    """A value whose elements of a slice are those of another one, which broadcasts to the slice."""

    value: Expr
    part: Expr
    starts: tuple[Size, ...]
    steps: tuple[int, ...]
    extents: Shape  # of the slice
    type: DType
    shape: Shape


class External(Expr):
    """One result of a function that the graph does not look into."""

    function: str  # its name among the graph's functions
    args: tuple[Expr, ...]
    results: tuple[tuple[DType, Shape], ...]  # all that it gives
    at: int  # which of these
    type: DType
    shape: Shape


@dataclass(frozen=True)
class ArrayGraph:
    """Named outputs over named inputs; what neither of them reaches is not part of it."""

    name: str
    inputs: tuple[ArrayInput, ...]
    outputs: tuple[tuple[str, Expr], ...]
    functions: Mapping[str, Callable[..., object]] = field(default_factory=dict, compare=False)


def shape_of(value: Expr) -> Shape:
    """The extents of a value."""
    found: Shape = () if isinstance(value, Const) else value.shape  # type: ignore[attr-defined]
    return found
