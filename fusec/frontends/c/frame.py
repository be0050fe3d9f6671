"""One function being lowered: its names and scopes, its statements so far, and the loops around the current one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.errors.language import Redeclared, TooDeep
from fusec.frontends.c import literals
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import CType
from fusec.frontends.c.context import Bindings, CallOperand, Candidate, Record, Template, TranslationUnit
from fusec.frontends.c.folding import Known
from fusec.frontends.c.sequencing import changes
from fusec.frontends.c.symbols import Address, NamedConstant, Place, PointerVariable, Symbol, Variable
from fusec.frontends.c.unknown_names import unknown_name
from fusec.frontends.lowering import MAX_DEPTH, MAX_STATEMENTS, StatementBuilder, nested
from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr, Pointer, Struct, Type, type_of

T = TypeVar("T")


class SubstitutionError(Exception):
    """A type that does not exist for these template arguments: the overload is not a candidate."""


@dataclass
class BreakTarget:
    """A loop, or a switch lowered to one so that ``break`` can leave it."""

    is_switch: bool = False
    flag: ir.Local | None = None  # set by a ``continue`` inside a switch


@dataclass
class Inlined:
    """A function that is inlined at its call, as a loop of one iteration if it returns from its middle."""

    result: ir.Local | None  # receives its result; None if it has none
    flag: ir.Local | None = None  # set by a return inside a loop
    returns: int = 0  # met so far


class FunctionFrame(StatementBuilder):
    """The facts about one function at the current point, and its statements so far.

    Types, places, calls, expressions, declarations and statements are lowered by objects that are handed one.
    """

    equip: Callable[[FunctionFrame], object]  # gives another frame these same lowerings
    # Each of the following is set by the object that does it; the objects below that one reach it through the frame.
    value: Callable[[s.Expression], Expr]  # the value of an expression, a scalar or a struct
    effect: Callable[[s.Expression], None]  # lowers an expression for its effect alone
    call: Callable[[s.CallNode], Expr | None]  # a call; None if it returns nothing
    implicit: Callable[[Expr, Struct, Span], Expr | None]  # the struct that a constructor creates from one value
    array_of: Callable[[s.Name], Symbol]  # a name; a constant array of the preamble is declared at its first use
    instantiate: Callable[[Candidate, str, tuple[tuple[Type, ...], ...]], Template]  # lowers a device function
    inline: Callable[[Candidate, list[CallOperand], Span], Expr | None]  # a call of a function that has raw arrays
    statements: Callable[[s.Body], None]  # lowers statements in the current scope

    def __init__(self, unit: TranslationUnit, taken: set[str]) -> None:
        super().__init__(taken)
        self.unit = unit  # what all functions of the kernel share
        self.types: list[dict[str, CType]] = [{}]  # the types of each scope by name, innermost last
        self.symbols: list[dict[str, Symbol]] = [{}]  # likewise all other names
        self.prologue: list[ir.Stmt] = []  # statements before all others
        self.impure = False  # the function changes memory that is not its own
        self.span = Span(unit.source, 0, 0)  # of the current statement
        self.extra = 0  # nesting of the IR that `blocks` does not show
        self.known: Known = {}  # locals that are constant
        self.break_targets: list[BreakTarget] = []  # the enclosing loops and switches, innermost last
        self.result: CType | None = None  # what the function returns; None for the kernel itself
        self.inlined: Inlined | None = None  # this function, if it is inlined
        self.made: Variable | None = None  # what a constructor makes
        self.member: tuple[Record, Place] | None = None  # the struct that the function is a member of, and its place
        self.exits: tuple[ir.Stmt, ...] = ()  # the kernel's stores at the end of an element's work
        self.resumes = False  # an `after_loop` follows, to which `continue` goes
        self.left_early = False  # such a `continue` was met

    def within(self, bindings: Bindings, function: s.FunctionDef | None = None) -> FunctionFrame:
        """A frame that sees the preamble, template parameters and what the struct of a member function declares."""
        frame = FunctionFrame(self.unit, set(self.unit.functions))
        self.equip(frame)
        owner = None if function is None else self.unit.owners.get(id(function))
        if owner is not None:
            frame.types[0].update(owner.types)
            frame.symbols[0].update({name: NamedConstant(value) for name, value in owner.values.items()})
            bindings = {**owner.bindings, **bindings}
        for name, value in bindings.items():
            if isinstance(value, Const):
                frame.symbols[0][name] = NamedConstant(value)
            else:
                frame.types[0][name] = value
        return frame

    def finished(self) -> tuple[ir.Stmt, ...]:
        """All statements, followed by the exits where control reaches the end."""
        body = (*self.prologue, *self.blocks[0])
        return body if body and isinstance(body[-1], ir.Return) else (*body, *self.exits)

    def share(self, outer: FunctionFrame) -> None:
        """Write into the text of another function, with names in its scope."""
        self.taken, self._counts, self.known = outer.taken, outer._counts, outer.known
        self.blocks, self.prologue, self.extra = outer.blocks, outer.prologue, outer.extra
        self.line, self.span = outer.line, outer.span

    # --- names and scopes ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget the names declared inside at the end of the block."""
        self.symbols.append({})
        self.types.append({})
        try:
            yield
        finally:
            self.symbols.pop()
            self.types.pop()

    def bind(self, name: str, symbol: Symbol, span: Span) -> None:
        """Declare a name in the innermost scope. Raises Redeclared."""
        if name in self.symbols[-1]:
            raise Redeclared(name).at(span)
        self.symbols[-1][name] = symbol

    def find(self, name: str) -> Symbol | None:
        """The meaning of a name, from the innermost scope outwards."""
        for scope in reversed(self.symbols):
            if name in scope:
                return scope[name]
        found = self.unit.globals.get(name)
        if found is None and name in literals.CONSTANTS:
            return NamedConstant(literals.constant(name, self.unit.single))
        return found

    def lookup(self, node: s.Name) -> Symbol:
        """The meaning of a name. Raises UnknownName."""
        found = self.find(node.name)
        if found is None:
            known = {each for scope in self.symbols for each in scope} | set(self.unit.globals)
            raise unknown_name(node.name, known, node.span)
        return found

    # --- statements ---

    @contextmanager
    def block(self) -> Iterator[list[ir.Stmt]]:
        """Collect statements separately; the list is complete when the block ends. Raises TooDeep."""
        self.blocks.append([])
        try:
            yield self.blocks[-1]
        finally:
            collected = self.blocks.pop()
        if collected and len(self.blocks) + self.extra > MAX_STATEMENTS:
            raise TooDeep(MAX_STATEMENTS, "statements").at(self.span)

    def nested(self, span: Span, what: str = "expressions", limit: int = MAX_DEPTH) -> AbstractContextManager[None]:
        """Count one level of nesting. Raises TooDeep."""
        return nested(self.unit.nesting, what, span, limit)  # shared by all functions: calls are lowered in callers

    def at(self, node: s.Node) -> int:
        """The line of a node, 0 if it is not in the operation's text."""
        return node.span.line if node.span.file is self.unit.source else 0

    def variable(self, type_: DType | Struct | Pointer, name: str = "_t") -> ir.Local:
        """A new local, initially zero."""
        local = ir.Local(self.fresh(name), type_)
        self.emit(ir.Declare(local.name, type_, line=self.line))
        return local

    def in_memory(self, name: str, kind: DType, value: Expr | None, reason: str) -> Address:
        """A variable whose address is taken: an array of one element."""
        self.emit(ir.DeclareArray(name, kind, 1, () if value is None else (value,), line=self.line))
        return Address(ir.LocalArray(name, Pointer(kind, "local")), kind, reason)

    def either(self, node: s.Choose, lower: Callable[[s.Expression], T]) -> tuple[T, T, list[ir.Stmt], list[ir.Stmt]]:
        """Both sides of ``c ? a : b``, and the statements of each."""
        with self.block() as then:
            a = lower(node.then)
        with self.block() as orelse:
            b = lower(node.orelse)
        return a, b, then, orelse

    def set(self, local: ir.Local | PointerVariable, value: Expr) -> None:
        """Assign to a local."""
        self.emit(ir.Assign(local.name, value, line=self.line))

    @property
    def mark(self) -> int:
        """The present end of the innermost block; see `kept`."""
        return len(self.blocks[-1])

    def kept(self, values: Sequence[Expr], mark: int, for_good: bool = False) -> list[Expr]:
        """Values that were lowered before a mark, as they were there: what statements since then change is named.

        for_good: once there is any change, name all values but constants, so that no later one matters either.
        """
        block = self.blocks[-1]
        found = changes(block[mark:])
        if not found:
            return list(values)
        names: list[ir.Stmt] = []
        out: list[Expr] = []
        for value in values:
            if (for_good and not isinstance(value, Const)) or found.affect(value):
                local = ir.Local(self.fresh("_t"), type_of(value))
                names.append(ir.Declare(local.name, local.type, value, line=self.line))
                value = local
            out.append(value)
        block[mark:mark] = names
        return out
