"""The syntax tree of the Python subset: what was written, before any type is known."""

from __future__ import annotations

from fusec.base.source import Span
from fusec.frontends.syntax import *  # noqa: F403 - the tree is made of these nodes and of those that all languages share
from fusec.frontends.syntax import Body, Expression, Node, Statement

# --- expressions ------------------------------------------------------------------------------------------------


class Number(Expression):
    """A number, exactly as Python reads it."""

    value: int | float | complex


class Constant(Expression):
    """True, False or None."""

    value: bool | None


class Tuple(Expression):
    """Values separated by commas."""

    items: tuple[Expression, ...]


class Compare(Expression):
    """A comparison, perhaps chained: the first operand, then operators with the next one."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]


class Junction(Expression):
    """``a and b`` or ``a or b``."""

    op: str
    left: Expression
    right: Expression


# --- statements -------------------------------------------------------------------------------------------------


class AssignNode(Statement):
    """``a = b = value``."""

    targets: tuple[Expression, ...]
    value: Expression


class Augment(Statement):
    """``target op= value``; `op` without the equals sign."""

    target: Expression
    op: str
    place: Span
    value: Expression


class Annotate(Statement):
    """``target: annotation = value``; without a value it only declares."""

    target: Expression
    annotation: Expression
    value: Expression | None


class WhileNode(Statement):
    """A loop on a condition."""

    condition: Expression
    body: Body


class For(Statement):
    """A loop over a range."""

    target: Expression
    iterable: Expression
    body: Body


class Assert(Statement):
    """``assert condition, message``."""

    condition: Expression


class ParamNode(Node):
    """One parameter, with its annotation and default as written."""

    name: str
    annotation: Expression | None
    default: Expression | None


class FunctionNode(Statement):
    """A function, or one inside another; `span` is that of its name."""

    name: str
    params: tuple[ParamNode, ...]
    returns: Expression | None
    body: Body
    doc: str
