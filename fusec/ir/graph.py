"""The graph IR: what is computed, as an interned DAG of array values.

For element-wise work every value is an Input, a Const or an Apply (see `fusec.ir.expr`); all inputs of one graph
broadcast against each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.dtypes import DType
from fusec.ir.expr import Expr
from fusec.records import dataclass, field


@dataclass(frozen=True, eq=False)
class Input(Expr):
    """An argument of the graph, by name; a scalar argument is an input like any other."""

    name: str
    type: DType


@dataclass(frozen=True)
class Graph:
    """Named outputs over named inputs.

    outputs: (name, value) pairs in order; the value has the dtype that is stored.
    names: what the user called a value, for readable output. lines: the line of the user's text that made it.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, Expr], ...]
    names: Mapping[Expr, str] = field(default_factory=dict, compare=False)
    lines: Mapping[Expr, int] = field(default_factory=dict, compare=False)
