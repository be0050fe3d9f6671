"""The reads and writes of statements and values, so that hoisted effects keep C++'s order."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.records import dataclass, field
from fusec.ir.expr import Expr, Pointer, type_of
from fusec.ir.loops import Assign, Atomic, Call, CallStatement, If, Load, Local, SetField, Stmt, Store, While


@dataclass
class Changes:
    """The changes of a run of statements. names: locals they assign to. memory: they write arrays."""

    names: set[str] = field(default_factory=set)
    memory: bool = False

    def __bool__(self) -> bool:
        return bool(self.names) or self.memory

    def affect(self, value: Expr) -> bool:
        """True if these changes may affect a value."""
        pending, seen = [value], {value}
        while pending:
            node = pending.pop()
            match node:
                case Local(name=name) if name in self.names:
                    return True
                case Load() if self.memory:
                    return True
                case Call(args=args) if self.memory and any(isinstance(type_of(arg), Pointer) for arg in args):
                    return True
            fresh = [child for child in node.children if child not in seen]
            seen.update(fresh)
            pending += fresh
        return False


def changes(statements: Sequence[Stmt]) -> Changes:
    """The changes of statements, beyond the locals they declare."""
    found = Changes()
    pending = list(statements)
    while pending:
        match pending.pop():
            case Assign(name=name) | SetField(name=name):
                found.names.add(name)
            case Store():
                found.memory = True
            case Atomic(result=name) | CallStatement(result=name):
                found.memory = True
                found.names.add(name)
            case If(then=then, orelse=orelse):
                pending += [*then, *orelse]
            case While(body=body, step=step):
                pending += [*body, *step]
    return found
