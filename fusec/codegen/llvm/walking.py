"""Programs whose elements walk along an outer axis: their loops go outside, the loop over columns inside.

A program written for one element at a time would have each vector of columns walk down the axis, a page of memory for
every few bytes. Here a tile of columns is taken together: the loops that all columns run alike turn once for the tile,
and whatever stands between them runs over its columns, so that memory is read and written along rows. Variables that
live from one such stretch to another lie in arrays that stay in a cache; those that are the same for all columns,
like the counters of the loops, are scalars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.codegen.llvm.arguments import Arguments
from fusec.codegen.llvm.column import CellSite
from fusec.codegen.llvm.memory import Lanes
from fusec.codegen.llvm.nest import Row
from fusec.codegen.llvm.reduction import Held, Known, PartNest
from fusec.codegen.llvm.values import Builder, Operand, Value, integer, part_types
from fusec.dtypes import DType
from fusec.generated import Layout
from fusec.ir.expr import Expr, Struct, Type
from fusec.ir.loops import (
    Assign,
    Declare,
    DeclareArray,
    Local,
    Program,
    Return,
    ScalarParam,
    SetField,
    Stmt,
    While,
)
from fusec.ir.walk import Body, blocks, expressions, operands, statements

_TILE = 1 << 16  # bytes of the variables of a tile, in the second cache: long stretches of rows please prefetchers
_MOST_COLUMNS = 4096


def is_walk(program: Program, layout: Layout) -> bool:
    """Whether the program has loops that all columns run alike, and nothing that keeps these from going outside."""
    everything = list(statements(program.body))
    loops = any(isinstance(stmt, While) for stmt in program.body)
    return loops and layout.ndim > 1 and not any(isinstance(stmt, Return | DeclareArray) for stmt in everything)


class WalkNest(PartNest):
    """Writes the loops of a kernel of such a program."""

    def __init__(self, program: Program, layout: Layout, builder: Builder, arguments: Arguments) -> None:
        super().__init__(program, layout, builder, arguments)
        self.types = dict(_types(program.body))
        self.control = self._control()
        runs = [names_in(run) for run in self._runs(program.body)]
        seen = [name for names in runs for name in names]
        self.shared = {name for name in self.types if seen.count(name) > 1} - self.control
        self.slots: dict[str, list[str]] = {}
        self.held: dict[str, Held] = {}
        self.tile = 0

    def write(self) -> None:
        """All text from the end of the entry block to the return."""
        nbytes = sum(_nbytes(self.types[name]) for name in self.shared)
        self.tile = max(self.width, min(_MOST_COLUMNS, _TILE // max(nbytes, 1)) // self.width * self.width)
        for name in sorted(self.shared):
            self.held[name] = Held(self.b, self.types[name], self.tile, zeroed=False)
        for name in sorted(self.control):
            self.slots[name] = [self.b.alloca(llvm) for llvm in part_types(self.types[name])]
        super().write()

    # --- what is the same for all columns --------------------------------------------------------------------------

    def _control(self) -> set[str]:
        """Variables that no column has for itself: written beside the loops only, from others of the kind."""
        scalars = {param.name for param in self.program.params if isinstance(param, ScalarParam)}
        plan = self._analysis().body(self.program.body, scalars)
        found = set(self.types) - plan.varying
        inside = {name for run in self._branches(self.program.body) for name in _written(run)}
        found -= inside
        while True:
            kept = found.copy()
            for stmt in statements(self.program.body):
                if isinstance(stmt, Declare | Assign) and stmt.name in found:
                    free = names_of(operands(stmt)) <= kept | scalars
                    if not free or (isinstance(stmt, Declare) and stmt.value is None):
                        kept.discard(stmt.name)
            if kept == found:
                return found
            found = kept

    def _branches(self, body: Body) -> Iterator[Body]:
        """The statements that are nested in anything but the loops that go outside."""
        for stmt in body:
            if isinstance(stmt, While):
                yield from self._branches(stmt.body)
                yield from self._branches(stmt.step)
            else:
                yield from blocks(stmt)

    def _is_control(self, stmt: Stmt) -> bool:
        return isinstance(stmt, Declare | Assign) and stmt.name in self.control

    def _runs(self, body: Body) -> Iterator[Body]:
        """The stretches between loops and control statements, those of nested loops included."""
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, While) or self._is_control(stmt):
                if run:
                    yield tuple(run)
                run = []
                if isinstance(stmt, While):
                    yield from self._runs(stmt.body)
                    yield from self._runs(stmt.step)
            else:
                run.append(stmt)
        if run:
            yield tuple(run)

    # --- tiles -------------------------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        b, limit = self.b, Value("i64", end)

        def tile(begin: str) -> None:
            size = b.intrinsic("umin", b.binary("sub", limit, Value("i64", begin)), integer(self.tile))
            self._block(self.program.body, row, begin, b.binary("add", Value("i64", begin), size))

        self._loop(start, self.tile, tile, end)

    def _block(self, body: Body, row: Row, start: str, end: Value) -> None:
        """Statements in order, for the columns of a tile."""
        run: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, While) or self._is_control(stmt):
                self._columns(tuple(run), row, start, end)
                run = []
                if isinstance(stmt, While):
                    self._while(stmt, row, start, end)
                else:
                    self._set(stmt, row, start)
            else:
                run.append(stmt)
        self._columns(tuple(run), row, start, end)

    def _while(self, stmt: While, row: Row, start: str, end: Value) -> None:
        b = self.b
        test, inside, after = b.label("test"), b.label("walk"), b.label("after")
        b.jump(test if stmt.test_first else inside)
        b.place(test)
        b.fork(self._once(row, start, stmt.condition), inside, after)
        b.place(inside)
        self._block(stmt.body, row, start, end)
        self._block(stmt.step, row, start, end)
        b.jump(test)
        b.place(after)

    def _set(self, stmt: Stmt, row: Row, start: str) -> None:
        """A variable that is the same for all columns gets a value."""
        assert isinstance(stmt, Declare | Assign), "a statement that sets a variable"
        assert stmt.value is not None, "it has a value"
        for slot, part in zip(self.slots[stmt.name], self._parts(row, start, stmt.value), strict=True):
            self.b.line(f"store {part.type} {part.text}, ptr {slot}")

    def _once(self, row: Row, start: str, value: Expr) -> Value:
        """A value of one part that is the same for all columns."""
        (found,) = self._parts(row, start, value)
        return found

    def _parts(self, row: Row, start: str, value: Expr) -> Operand:
        """A value that is the same for all columns."""
        width, self.b.lanes = self.b.lanes, 1
        (found,) = self._part(CellSite(self, row, start), Lanes(), (), self._uniform(names_of([value])), [value])
        self.b.lanes = width
        return found

    def _uniform(self, wanted: set[str]) -> Known:
        known = self._scalars()
        for name in sorted(self.control & wanted):
            kind = self.types[name]
            pairs = zip(self.slots[name], part_types(kind), strict=True)
            known[name] = (kind, tuple(self.b.read_slot(slot, llvm, varying=False) for slot, llvm in pairs))
        return known

    def _columns(self, run: Body, row: Row, start: str, end: Value) -> None:
        """A stretch of statements over the columns of a tile."""
        if not run:
            return
        wanted, written = names_in(run), _written(run)
        fresh = {stmt.name for stmt in run if isinstance(stmt, Declare)}
        read = sorted((self.shared & wanted) - fresh)
        kept = sorted(self.shared & written)
        uniform = self._uniform(wanted)

        def at(position: str, lanes: Lanes) -> None:
            lane = self.b.let(f"sub i64 {position}, {start}")
            known = {**uniform, **{name: (self.types[name], self.held[name].read(lane)) for name in read}}
            values = [Local(name, self.types[name]) for name in kept]
            found = self._part(CellSite(self, row, position), lanes, run, known, values)
            for name, value in zip(kept, found, strict=True):
                self.held[name].write(lane, value)

        self._in_vectors(Value("i64", start), end, at)


def names_of(roots: Iterable[Expr]) -> set[str]:
    """The locals that expressions read."""
    return {expr.name for expr in expressions(roots) if isinstance(expr, Local)}


def names_in(body: Body) -> set[str]:
    """The locals that statements read or write."""
    return names_of(root for stmt in statements(body) for root in operands(stmt)) | _written(body)


def _written(body: Body) -> set[str]:
    return {stmt.name for stmt in statements(body) if isinstance(stmt, Declare | Assign | SetField)}


def _types(body: Body) -> Iterator[tuple[str, Type]]:
    for stmt in statements(body):
        if isinstance(stmt, Declare):
            yield stmt.name, stmt.type


def _nbytes(kind: Type) -> int:
    if isinstance(kind, Struct):
        return sum(dtype.nbytes for _, dtype in kind.fields)
    return kind.nbytes if isinstance(kind, DType) else 8
