"""What a kernel of an expression is made of, as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.frontends.python.definition import FunctionText, PythonDefinition

if TYPE_CHECKING:
    from fusec.frontends.expression.parse import Part
    from fusec.frontends.python.lower import Inferred
    from fusec.ir.loops import Program
    from fusec.ir.reductions import Reduction

KEY = "expression"


class Request(Protocol):
    """What a reduction is to be compiled for."""

    @property
    def types(self) -> Sequence[tuple[str, DType]]:
        """Dtypes by parameter."""

    @property
    def scalars(self) -> frozenset[str]:
        """Parameters that are passed by value."""


def text_of(expression: str, name: str) -> FunctionText:
    """The expression as the text of a definition."""
    return FunctionText(KEY, name, "expression", 1, expression)


@dataclass(frozen=True)
class ExpressionDefinition(PythonDefinition):
    """One part of an expression in which elements are not combined; `part` counts from 0.

    expands: powers of small integers become products.
    """

    part: int = 0
    expands: bool = True

    def tree(self) -> Part:
        """The part's tree."""
        from fusec.frontends.expression.parse import parse

        return parse(self.functions[-1].source).parts[self.part]

    def read(self) -> object:
        """The tree; raises what is wrong with the text whatever the types."""
        return self.tree()

    def infer(self, types: Mapping[str, DType]) -> Inferred:
        """The types of results and of Python numbers, for arguments of these dtypes."""
        from fusec.frontends.expression.lower import infer

        return infer(self, types)

    def lower(self, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]) -> Program:
        """The typed program."""
        from fusec.frontends.expression.lower import lower

        del ndims
        return lower(self, types, scalars)


@dataclass(frozen=True)
class TotalDefinition(ExpressionDefinition):
    """One part of an expression that combines elements."""

    def lower(self, request: Request) -> tuple[Reduction, Program]:  # type: ignore[override]
        """The typed reduction, and what totals of no elements are."""
        from fusec.frontends.expression.lower import lower_total

        return lower_total(self, dict(request.types), request.scalars)
