"""What lowering shares in all languages: the statements of a function so far, its names, and the place of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fusec.base.dtypes import INT64
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.errors.language import BadArgument, TooDeep
from fusec.ir.expr import Expr, apply, const, type_of
from fusec.ir.loops import Declare, Local, Stmt, query

MAX_DEPTH = 64  # of nested expressions in the text, and of calls inside calls; bounds Python's recursion
MAX_EXPRESSION = 120  # of nested nodes in the IR, whose bound is 200; a deeper one is named
MAX_STATEMENTS = 60  # of nested statements in the IR, whose bound is 64


@dataclass(frozen=True)
class CallSite:
    """A call: the function's name as written, and where."""

    name: str
    span: Span

    def refuse(self, given: object, cure: str) -> Exception:
        """The error for an argument of the wrong kind."""
        return BadArgument(self.name, str(given), cure).at(self.span)


def fresh(name: str, taken: set[str], counts: dict[str, int]) -> str:
    """A name not yet taken, which is from now on. counts: how often names were asked for, to find free ones sooner."""
    found, count = name, counts.get(name, 0)
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    counts[name] = count
    taken.add(found)
    return found


def position_of(axes: Sequence[int]) -> Expr:
    """The position of an element in C order of some axes."""
    found: Expr = const(0, INT64)
    for axis in axes:
        here = query("coordinate", axis)
        found = here if axis == axes[0] else apply("add", apply("multiply", found, query("shape", axis)), here)
    return found


@contextmanager
def nested(counts: Counter[str], what: str, span: Span, limit: int = MAX_DEPTH) -> Iterator[None]:
    """Count one level of nesting. Raises TooDeep."""
    counts[what] += 1
    if counts[what] > limit:
        raise TooDeep(limit, what).at(span)
    try:
        yield
    finally:
        counts[what] -= 1


class StatementBuilder:
    """The statements of one function so far. taken: the names that locals must not have."""

    temporary_name = "_t"

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.blocks: list[list[Stmt]] = [[]]
        self.line = 0
        self._counts: dict[str, int] = {}
        self._depths: dict[Expr, int] = {}

    def emit(self, *statements: Stmt) -> None:
        """Append to the innermost block."""
        self.blocks[-1].extend(statements)

    def fresh(self, name: str) -> str:
        """A name for a local that nothing else in this function has."""
        return fresh(name, self.taken, self._counts)

    def temporary(self, value: Expr, name: str = "") -> Local:
        """A new local that holds a value."""
        local = Local(self.fresh(name or self.temporary_name), type_of(value))
        self.emit(Declare(local.name, local.type, value, line=self.line))
        return local

    def bounded(self, value: Expr) -> Expr:
        """The value, named if its expression has grown too deep for the IR."""
        return self.temporary(value) if self._depth(value) > MAX_EXPRESSION else value

    def _depth(self, value: Expr) -> int:
        found = self._depths.get(value)
        if found is None:
            found = 1 + max((self._depth(child) for child in value.children), default=0)
            self._depths[value] = found
        return found
