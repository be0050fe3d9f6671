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

MODES = ("nearest", "wrap", "reflect", "mirror", "constant")
"""How `Near` maps positions outside of an array back into it, as scipy.ndimage has them."""


class ArrayInput(Expr):
    """An array, or a number if it has no axes, that calls give."""

    name: str
    type: DType
    shape: Shape
    donated: bool  # the caller does not need its contents any more: results may be stored there, that of its name is


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


class Accumulated(Expr):
    """Along an axis every element combined with all before it, by an op that a scan has."""

    op: str
    value: Expr
    axis: int
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


class Strided(Expr):
    """Elements at regular distances: along axis a of the value at starts[a] and the sum, over the axes of this one, of
    steps[a][axis] times where the element is along it. Diagonals and sliding windows are such views.
    """

    value: Expr
    starts: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    type: DType
    shape: Shape


class Positions(Expr):
    """Where each element is along an axis: int64."""

    axis: int
    type: DType
    shape: Shape


class Bounded(Expr):
    """Integers that are indices of an axis with so many elements, which each call checks; they may count from its end.

    axis: what the IndexError calls it.
    """

    value: Expr
    extent: Size
    axis: int
    type: DType
    shape: Shape


class Near(Expr):
    """An index of a `Take`: the element's own position along an axis of it and `offset`, mapped back into the array.

    mode: one of `MODES`; constant leaves it where it is, so that the Take is `outside` there.
    """

    axis: int
    offset: int
    mode: str
    type: DType
    shape: Shape


class Inside(Expr):
    """An index of a `Take` that may lie outside of the array, where the Take is `outside`."""

    value: Expr
    type: DType
    shape: Shape


class Take(Expr):
    """Elements of a value at an int64 index for each of its axes; these broadcast to the shape.

    An index beyond an end of the axis stands for the element at that end. outside: see `Near` and `Inside`.
    """

    value: Expr
    outside: Expr
    index: tuple[Expr, ...]
    type: DType
    shape: Shape


class Literal(Expr):
    """An array of constants. data: their bytes, little-endian and in C order."""

    data: bytes
    type: DType
    shape: Shape

    @property
    def elements(self) -> tuple[Const, ...]:
        """The constants."""
        count = self.type.nbytes
        parts = (self.data[at : at + count] for at in range(0, len(self.data), count))
        return tuple(Const(int.from_bytes(each, "little"), self.type) for each in parts)


PRODUCT = "@"
"""The function that is np.matmul, whose shape follows from those of its operands."""


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
