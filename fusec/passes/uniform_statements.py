"""Uniform statements: what the threads of a block do once, for targets that run them in turn.

A statement is done once for the block if it must be: control around barriers, and what its conditions depend on.
"""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.ir import loops as ir
from fusec.ir.uniform import uniformity
from fusec.ir.walk import Body, blocks, changed_by, changed_names, fixed_names, locals_of, operands, statements


def set_by(stmt: ir.Stmt) -> str:
    """The local that a statement itself declares or changes, or ""."""
    if isinstance(stmt, ir.Declare):
        return stmt.name
    return changed_by(stmt)


@dataclass
class UniformStatements:
    """The parts of a block program that its threads do together. All of them are uniform."""

    program: ir.Program

    def __post_init__(self) -> None:
        self.known = uniformity(self.program)
        assert not self.known.partings, f"all threads come to the barriers of {self.program.name}"
        body = self.program.body
        self.params = {param.name for param in self.program.params if isinstance(param, ir.ScalarParam)}
        assert not changed_names(body) & self.params, "parameters keep their values"
        self.fixed = fixed_names(body)
        self.names: set[str] = set()
        self._needed: dict[int, bool] = {}
        self._settle(body)

    def _settle(self, body: Body) -> None:
        """Find the locals of the block: what its control depends on, then what else is easily had once for all."""
        size = -1
        while size != len(self.names):
            size = len(self.names)
            self._needed.clear()
            self._demand(body)
        self._offer(body)

    def _demand(self, body: Body) -> None:
        for stmt in body:
            if self.is_one(stmt) and not isinstance(stmt, ir.Barrier):
                self.names |= locals_of(operands(stmt)) - self.params
            if isinstance(stmt, ir.If | ir.While) and self.is_one(stmt):
                for nested in blocks(stmt):
                    self._demand(nested)

    def _offer(self, body: Body) -> None:
        """Declarations of what never changes and depends on nothing but such names are done once too."""
        for stmt in body:
            match stmt:
                case ir.Declare(name, _, value) if name in self.fixed and name not in self.known.varying:
                    if value is not None and locals_of((value,)) <= self.names | self.params:
                        self.names.add(name)
                case ir.If() | ir.While() if self.is_one(stmt):
                    for nested in blocks(stmt):
                        self._offer(nested)

    def is_one(self, stmt: ir.Stmt) -> bool:
        """Whether the block does a statement once, its threads together."""
        match stmt:
            case ir.Barrier():
                return True
            case ir.If() | ir.While():
                if id(stmt) not in self._needed:
                    self._needed[id(stmt)] = self._is_control(stmt)
                return self._needed[id(stmt)]
            case _:
                return set_by(stmt) in self.names

    def _is_control(self, stmt: ir.If | ir.While) -> bool:
        """Control around a barrier, or around what sets a local of the block, or a jump that all threads take."""
        inside = [each for block in blocks(stmt) for each in statements(block)]
        own = {each.name for each in inside if isinstance(each, ir.Declare)}
        needs = any(isinstance(each, ir.Barrier) or set_by(each) in self.names - own for each in inside)
        return needs or (self._is_uniform(stmt) and self._jumps(stmt))

    def _is_uniform(self, stmt: ir.If | ir.While) -> bool:
        return not self.known.is_varying(stmt.condition)

    def _jumps(self, stmt: ir.If | ir.While) -> bool:
        """Whether all threads may leave by a jump in it; those of a loop's own end there."""
        for each in (each for block in blocks(stmt) for each in block):
            match each:
                case ir.Return():
                    return True
                case ir.Break() | ir.Continue() if isinstance(stmt, ir.If):
                    return True
                case ir.If() | ir.While() if self._is_uniform(each) and self._jumps(each):
                    if isinstance(stmt, ir.If) or _returns(each):
                        return True
        return False


def _returns(stmt: ir.Stmt) -> bool:
    return any(isinstance(each, ir.Return) for each in statements((stmt,)))
