"""Uniformity: the values that all threads of a block share, and where control flow diverges.

Positions in the block differ, and so does what is read from arrays, for another thread may change it meanwhile. All
else is alike: constants, numbers among the arguments, shapes, the position of the block, and what is computed of these
where the threads go the same way.
"""

from __future__ import annotations

from fusec.base.records import dataclass, field
from fusec.ir import loops as ir
from fusec.ir.expr import Expr
from fusec.ir.walk import Body, expressions, operands


@dataclass(frozen=True)
class Parting:
    """A barrier that only some threads reach."""

    barrier: int  # its line
    condition: int  # the line of the condition where they diverge


@dataclass(frozen=True)
class Uniformity:
    """Facts about a block program."""

    varying: frozenset[str]  # locals whose values differ between threads
    partings: tuple[Parting, ...]
    loops: frozenset[int]  # by id, those that threads leave in different rounds

    def is_varying(self, value: Expr) -> bool:
        """Whether an expression's value may differ between threads."""
        return is_varying(value, self.varying)


def uniformity(program: ir.Program) -> Uniformity:
    """Analyse the kernel's own body; functions that it calls have no barriers and read no arrays."""
    varying: set[str] = set()
    partings: dict[int, Parting] = {}  # by barrier, as found first: later rounds know what follows from it
    while True:
        walk = _Round(varying)
        walk.block(program.body, None)
        for parting in walk.partings:
            partings.setdefault(parting.barrier, parting)
        if walk.varying == varying:
            return Uniformity(frozenset(varying), tuple(partings.values()), frozenset(walk.loops))
        varying = walk.varying


def is_varying(value: Expr, varying: set[str] | frozenset[str]) -> bool:
    """Whether an expression's value may differ between threads, given the locals whose values differ."""
    return any(
        isinstance(expr, ir.Load)
        or (isinstance(expr, ir.Query) and expr.what == "thread")
        or (isinstance(expr, ir.Local) and expr.name in varying)
        for expr in expressions((value,))
    )


Line = int | None
"""The line of the condition on which threads parted; None while they are together."""


@dataclass
class _Exits:
    """By which statements some threads have left, and the condition on which."""

    returned: Line = None
    broken: Line = None
    continued: Line = None

    def add(self, other: _Exits) -> None:
        """Those of a part, too."""
        self.returned = _first(self.returned, other.returned)
        self.broken = _first(self.broken, other.broken)
        self.continued = _first(self.continued, other.continued)

    @property
    def any(self) -> Line:
        """Whether some have left the list of statements."""
        return _first(self.returned, self.broken, self.continued)


def _first(*lines: Line) -> Line:
    return next((line for line in lines if line is not None), None)


@dataclass
class _Round:
    """One round through the statements, which may find more that varies."""

    before: set[str]
    varying: set[str] = field(init=False)
    partings: list[Parting] = field(default_factory=list)
    loops: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.varying = set(self.before)

    def block(self, body: Body, parted: Line) -> _Exits:
        """Statements in order; what follows an exit that some threads took is for the others."""
        exits = _Exits()
        for stmt in body:
            exits.add(self._statement(stmt, _first(parted, exits.any)))
        return exits

    def _statement(self, stmt: ir.Stmt, parted: Line) -> _Exits:
        match stmt:
            case ir.If(condition, then, orelse):
                inside = stmt.line if parted is None and self._differs(condition) else parted
                exits = self.block(then, inside)
                exits.add(self.block(orelse, inside))
                return exits
            case ir.While():
                return self._loop(stmt, parted)
            case ir.Return():
                return _Exits(returned=parted)
            case ir.Break():
                return _Exits(broken=parted)
            case ir.Continue():
                return _Exits(continued=parted)
            case ir.Barrier() if parted is not None:
                self.partings.append(Parting(stmt.line, parted))
            case _:
                self._assignment(stmt, parted)
        return _Exits()

    def _loop(self, stmt: ir.While, parted: Line) -> _Exits:
        """Threads that leave a loop in different rounds meet again behind it; those that return do not."""
        inside = stmt.line if parted is None and self._differs(stmt.condition) else parted
        exits = self.block(stmt.body, inside)
        again = _first(inside, exits.broken, exits.returned)
        if again is not inside:
            exits = self.block(stmt.body, again)
        self.block(stmt.step, again)
        if again is not None:
            self.loops.add(id(stmt))
        return _Exits(returned=exits.returned)

    def _assignment(self, stmt: ir.Stmt, parted: Line) -> None:
        differs = parted is not None or any(map(self._differs, operands(stmt)))
        match stmt:
            case ir.Declare(name) | ir.Assign(name) | ir.SetField(name) | ir.CallStatement(result=name):
                if differs and name:
                    self.varying.add(name)
            case ir.Atomic(result=name) | ir.AtomicLoad(name) | ir.Shuffle(name) if name:
                self.varying.add(name)

    def _differs(self, value: Expr) -> bool:
        return is_varying(value, self.varying)
