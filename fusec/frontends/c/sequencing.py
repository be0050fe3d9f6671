"""The reads and writes of statements and values, so that hoisted effects keep C++'s order."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.records import dataclass
from fusec.ir.expr import Expr, Pointer, type_of
from fusec.ir.loops import Atomic, Call, CallStatement, Load, Local, Stmt, Store
from fusec.ir.walk import changed_names, expressions, statements


@dataclass
class Changes:
    """The changes of a run of statements."""

    names: set[str]  # locals they assign to
    memory: bool  # they write arrays

    def __bool__(self) -> bool:
        return bool(self.names) or self.memory

    def affect(self, value: Expr) -> bool:
        """True if these changes may affect a value."""
        for node in expressions((value,)):
            match node:
                case Local(name=name) if name in self.names:
                    return True
                case Load() if self.memory:
                    return True
                case Call(args=args) if self.memory and any(isinstance(type_of(arg), Pointer) for arg in args):
                    return True
        return False


def changes(body: Sequence[Stmt]) -> Changes:
    """The changes of statements, beyond the locals they declare."""
    return Changes(
        changed_names(body), any(isinstance(each, Store | Atomic | CallStatement) for each in statements(body))
    )
