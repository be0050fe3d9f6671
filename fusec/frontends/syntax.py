"""The nodes that the syntax trees of all languages share: what was written, before any type is known."""

from __future__ import annotations

from typing import dataclass_transform

from fusec.base.records import dataclass
from fusec.base.source import Span


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Node:
    """Base of the trees; each class of nodes is a frozen dataclass by being one."""

    span: Span  # the place in the user's text

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Expression(Node):
    """Base of what has a value."""


class Statement(Node):
    """Base of what stands in a body."""


Body = tuple[Statement, ...]

# --- expressions ------------------------------------------------------------------------------------------------


class Name(Expression):
    """A name."""

    name: str


class String(Expression):
    """A string literal, as written; in Python one or several side by side, which are docstrings and annotations."""

    text: str


class Prefix(Expression):
    """A prefix operator: ``- + ~``, C's ``! * & ++ --``, Python's ``not``."""

    op: str
    operand: Expression


class Binary(Expression):
    """A binary operator: in C all but assignments, in Python those of arithmetic."""

    op: str
    place: Span  # of the operator itself
    left: Expression
    right: Expression


class Choose(Expression):
    """``condition ? then : orelse``, Python's ``then if condition else orelse``."""

    condition: Expression
    then: Expression
    orelse: Expression


class Keyword(Node):
    """An argument by name, which C does not have."""

    name: str
    value: Expression


class CallNode(Expression):
    """``callee(a, b)``."""

    callee: Expression
    args: tuple[Expression, ...]
    keywords: tuple[Keyword, ...] = ()


class Index(Expression):
    """``value[index]``."""

    value: Expression
    index: Expression


class Attribute(Expression):
    """``value.name``."""

    value: Expression
    name: str
    arrow: bool = False  # C's ``value->name``


# --- statements -------------------------------------------------------------------------------------------------


class Evaluate(Statement):
    """An expression as a statement."""

    value: Expression


class IfNode(Statement):
    """``if`` with everything after it: an ``else if`` is an IfNode alone in `orelse`."""

    condition: Expression
    then: Body
    orelse: Body


class BreakNode(Statement):
    """``break``."""


class ContinueNode(Statement):
    """``continue``."""


class Pass(Statement):
    """``pass``, C's ``;``."""


class ReturnNode(Statement):
    """``return``, with a value unless it is bare."""

    value: Expression | None
