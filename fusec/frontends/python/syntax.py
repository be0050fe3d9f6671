"""The syntax tree of the Python subset: what was written, before any type is known."""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.base.source import Span


@dataclass(frozen=True, slots=True)
class Node:
    """Base of the tree; `span` is the place in the user's text."""

    span: Span


# --- expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name."""

    name: str


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number, exactly as Python reads it."""

    value: int | float | complex


@dataclass(frozen=True, slots=True)
class Constant(Node):
    """True, False or None."""

    value: bool | None


@dataclass(frozen=True, slots=True)
class String(Node):
    """One or several string literals side by side, as written: docstrings and annotations."""

    text: str


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    """Values separated by commas."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Prefix(Node):
    """``+x``, ``-x``, ``~x`` or ``not x``."""

    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """An arithmetic operator; `place` is that of the operator."""

    op: str
    place: Span
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A comparison, perhaps chained: the first operand, then operators with the next one."""

    first: Expression
    rest: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Junction(Node):
    """``a and b`` or ``a or b``."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Choose(Node):
    """``then if condition else orelse``."""

    condition: Expression
    then: Expression
    orelse: Expression


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """An argument by name."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class CallNode(Node):
    """A call with its positional and keyword arguments."""

    callee: Expression
    args: tuple[Expression, ...]
    keywords: tuple[Keyword, ...]


@dataclass(frozen=True, slots=True)
class Index(Node):
    """``value[index]``."""

    value: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """``value.name``."""

    value: Expression
    name: str


Expression = (
    Name | Number | Constant | String | Tuple | Prefix | Binary | Compare
    | Junction | Choose | CallNode | Index | Attribute
)  # fmt: skip


# --- statements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AssignNode(Node):
    """``a = b = value``."""

    targets: tuple[Expression, ...]
    value: Expression


@dataclass(frozen=True, slots=True)
class Augment(Node):
    """``target op= value``; `op` without the equals sign."""

    target: Expression
    op: str
    place: Span
    value: Expression


@dataclass(frozen=True, slots=True)
class Annotate(Node):
    """``target: annotation = value``; without a value it only declares."""

    target: Expression
    annotation: Expression
    value: Expression | None


@dataclass(frozen=True, slots=True)
class Evaluate(Node):
    """An expression as a statement."""

    value: Expression


@dataclass(frozen=True, slots=True)
class IfNode(Node):
    """``if`` with everything after it: an ``elif`` is an If inside `orelse`."""

    condition: Expression
    then: Body
    orelse: Body


@dataclass(frozen=True, slots=True)
class WhileNode(Node):
    """A loop on a condition."""

    condition: Expression
    body: Body


@dataclass(frozen=True, slots=True)
class For(Node):
    """A loop over a range."""

    target: Expression
    iterable: Expression
    body: Body


@dataclass(frozen=True, slots=True)
class BreakNode(Node):
    """``break``."""


@dataclass(frozen=True, slots=True)
class ContinueNode(Node):
    """``continue``."""


@dataclass(frozen=True, slots=True)
class Pass(Node):
    """``pass``."""


@dataclass(frozen=True, slots=True)
class ReturnNode(Node):
    """``return``, with a value unless it is bare."""

    value: Expression | None


@dataclass(frozen=True, slots=True)
class Assert(Node):
    """``assert condition, message``."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class ParamNode(Node):
    """One parameter, with its annotation and default as written."""

    name: str
    annotation: Expression | None
    default: Expression | None


@dataclass(frozen=True, slots=True)
class FunctionNode(Node):
    """A function, or one inside another; `span` is that of its name."""

    name: str
    params: tuple[ParamNode, ...]
    returns: Expression | None
    body: Body
    doc: str


Statement = (
    AssignNode | Annotate | Augment | Evaluate | IfNode | WhileNode | For | BreakNode
    | ContinueNode | Pass | ReturnNode | Assert | FunctionNode
)  # fmt: skip
Body = tuple[Statement, ...]
