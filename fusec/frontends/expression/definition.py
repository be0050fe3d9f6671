"""The definition of an expression's kernel, as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusec.base.records import dataclass
from fusec.frontends.python.definition import FunctionText, PythonDefinition

if TYPE_CHECKING:
    from fusec.frontends.expression.parse import ExpressionPart

KEY = "expression"


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

    def tree(self) -> ExpressionPart:
        """The part's tree."""
        from fusec.frontends.expression.parse import parse

        return parse(self.functions[-1].source).parts[self.part]

    def read(self) -> object:
        """The tree; raises what is wrong with the text whatever the types."""
        return self.tree()


@dataclass(frozen=True)
class TotalDefinition(ExpressionDefinition):
    """One part of an expression that combines elements."""
