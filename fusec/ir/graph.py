"""The graph IR: what is computed, as an interned DAG of array values.

For element-wise work every value is an Input, a Const or an Apply (see `fusec.ir.expr`); all inputs of one graph
broadcast against each other. A Reduce combines the elements along the axes that the graph reduces; it is the same for
all of them, so that it can take part in further element-wise work.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.ir.expr import Expr


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


class Count(Expr):
    """The number of elements that a Reduce combines; int64."""

    type: DType


@dataclass(frozen=True)
class KernelGraph:
    """Named outputs over named inputs."""

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, Expr], ...]  # (name, value) pairs in order; the value has the dtype that is stored
    names: Mapping[Expr, str] = field(default_factory=dict, compare=False)  # what the user called a value
    lines: Mapping[Expr, int] = field(default_factory=dict, compare=False)  # the line of the user's text that made it
