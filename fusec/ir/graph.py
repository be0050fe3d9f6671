"""The graph IR: what is computed, as an interned DAG of array values.

For element-wise work every value is an Input, a Const or an Apply (see `fusec.ir.expr`); all inputs of one graph
broadcast against each other, but for those that a Taken reads elsewhere than at the element's own position. A Reduce
combines the elements along the axes that the graph reduces; it is the same for all of them, so that it can take part in
further element-wise work.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.ir.expr import Expr
from fusec.ir.walk import expressions


class Input(Expr):
    """An argument of the graph, by name; a scalar argument is an input like any other."""

    name: str
    type: DType


class TotalInput(Input):
    """An argument with one element for each total: what is computed from totals reads it."""

    name: str
    type: DType


class Reduce(Expr):
    """The combination of a value's elements by an associative op of two operands, such as add or maximum."""

    op: str
    value: Expr
    type: DType


SPREAD = "spread"


class Spread(Reduce):
    """The sum of the squared distances of a value's elements from their mean; real, of complex values too.

    op: SPREAD. It is found in one pass over memory, or in two over rows in cache.
    """

    op: str
    value: Expr
    type: DType


class Count(Expr):
    """The number of elements that a Reduce combines; int64."""

    type: DType


class Position(Expr):
    """Where the element is along an axis of the work; int64."""

    axis: int
    type: DType


class Neighbour(Expr):
    """An index of a Taken: the element's position along an axis and `offset`, mapped back into the array that is read.

    mode: nearest, wrap, reflect or mirror, as scipy.ndimage has them; or constant, which leaves it where it is, so that
    the Taken is `outside` there. more: how many elements the axis has more than the array.
    """

    axis: int
    offset: int
    mode: str
    more: int
    type: DType

    @property
    def before(self) -> int:
        """At how many elements at the start of the axis the index is outside of the array."""
        return max(-self.offset, 0)

    @property
    def after(self) -> int:
        """The same at its end."""
        return max(self.offset + self.more, 0)


class Within(Expr):
    """An index of a Taken that may lie outside of the array, where the Taken is `outside`."""

    index: Expr
    type: DType


class Taken(Expr):
    """The element of an input at an index for every axis of it, each int64 and valid.

    outside: what it is where a Within, or a Neighbour of mode constant, lies outside. shape: of the value, in a trace;
    () in graphs.
    """

    array: Expr
    outside: Expr
    index: tuple[Expr, ...]
    type: DType
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelGraph:
    """Named outputs over named inputs."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, Expr], ...]  # (name, value) pairs in order; the value has the dtype that is stored
    names: Mapping[Expr, str] = field(default_factory=dict, compare=False)  # what the user called a value
    lines: Mapping[Expr, int] = field(default_factory=dict, compare=False)  # the line of the user's text that made it


def elsewhere(graph: KernelGraph) -> dict[Expr, int]:
    """The inputs from which elements are taken, with the number of their axes."""
    found = expressions([value for _, value in graph.outputs])
    return {each.array: len(each.index) for each in found if isinstance(each, Taken)}


def asks_position(graph: KernelGraph) -> bool:
    """Whether a value depends on where the element is."""
    found = expressions([value for _, value in graph.outputs])
    return any(isinstance(each, Position | Neighbour) for each in found)
