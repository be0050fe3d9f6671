"""Programs whose elements walk along an outer axis: their loops become outer loops, the loop over columns the inner.

A program written for one element at a time would have each vector of columns walk down the axis, a page of memory for
every few bytes. Here a tile of columns is taken together: the loops that all columns run alike turn once for the tile,
and whatever stands between them runs over its columns, so that memory is read and written along rows. Variables that
live from one such stretch to another lie in arrays that stay in a cache; those that are the same for all columns,
like the counters of the loops, are scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import dataclass, replace
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.column import CellSite
from fusec.codegen.llvm.memory import Hint, Lanes, fetch
from fusec.codegen.llvm.nest import LINE, Row, RowSite
from fusec.codegen.llvm.reduction import Held, Known, PartNest
from fusec.codegen.llvm.values import Builder, Operand, Value, integer, part_types
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Struct, Type
from fusec.ir.reductions import AXIS
from fusec.ir.walk import Body, blocks, expressions, locals_of, operands, roots_of, statements

_TILE = 1 << 16  # bytes of the variables of a tile, in the second cache: long stretches of rows please prefetchers
_FIRST_TILE = 1 << 14  # in the first cache, where results go around: up to a third faster if rows are wide
_MOST_COLUMNS = 4096
_AHEAD = 4  # rows that are asked for before they come: a group of rows asks for the next one
_FAR_AHEAD = 8  # where results go around the caches, which leaves more room in them
_MUCH = 24 << 20  # bytes of a walk from which rows are asked for; if second caches hold them, asking costs a tenth

Place = ir.Element | ir.Moved


@dataclass(frozen=True)
class Ahead:
    """A row that comes later: the address of its first element, their size in bytes, and whether it is written."""

    address: str
    nbytes: int
    to_write: bool


@dataclass(frozen=True)
class Stretch:
    """Statements on their way over the columns of a tile.

    start: the first column. known: what is the same for all. read, kept: variables that come from before, and that are
    used afterwards. ahead: what is asked for.
    """

    body: Body
    start: str
    known: Known
    read: tuple[str, ...]
    kept: tuple[str, ...]
    ahead: tuple[Ahead, ...]


def is_walk(program: ir.Program, layout: Layout) -> bool:
    """Whether the program has loops that all columns run alike, and nothing that keeps these from going outside."""
    everything = list(statements(program.body))
    loops = any(isinstance(stmt, ir.While) for stmt in program.body)
    return loops and layout.ndim > 1 and not any(isinstance(stmt, ir.Return | ir.DeclareArray) for stmt in everything)


class ColumnSite(CellSite):
    """Columns of a tile: `WalkNest` looks for the lines of all places that it stores at, moved ones or not."""

    def hint(self, param: str, moved: bool) -> Hint:
        """Around the caches where all places begin their lines together."""
        return super().hint(param, moved and not (self.streaming and self.row.streams is not None))


class WalkNest(PartNest):
    """Writes the loops of a kernel of such a program."""

    def __init__(self, program: ir.Program, layout: Layout, builder: Builder, arguments: KernelSlots) -> None:
        super().__init__(program, layout, builder, arguments)
        self.types = dict(_types(program.body))
        self.control = self._control()
        runs = [names_in(run) for run in self._runs(program.body)]
        seen = [name for names in runs for name in names]
        self.shared = {name for name in self.types if seen.count(name) > 1} - self.control
        self.slots: dict[str, list[str]] = {}
        self.held: dict[str, Held] = {}
        self.asks: Value | None = None  # whether rows that come later are asked for, None for always
        self.tile = 0
        self.spare = 0  # columns that variables have room for before and after a tile, where vectors begin anywhere
        self.stretch = Stretch((), "", {}, (), (), ())

    def write(self) -> None:
        """All text from the end of the entry block to the return."""
        nbytes, most = sum(_nbytes(self.types[name]) for name in self.shared), _TILE
        if self.layout.streaming:
            most = _FIRST_TILE
        self.tile = max(self.width, min(_MOST_COLUMNS, most // max(nbytes, 1)) // self.width * self.width)
        self.spare = self.width if self.layout.streaming else 0
        for name in sorted(self.shared):
            self.held[name] = Held(self.b, self.types[name], self.tile + 2 * self.spare, zeroed=False)
        for name in sorted(self.control):
            self.slots[name] = [self.b.alloca(llvm) for llvm in part_types(self.types[name])]
        if not self.layout.streaming:
            self.asks = self._moves_much()
        super().write()

    # --- what is the same for all columns --------------------------------------------------------------------------

    def _control(self) -> set[str]:
        """Variables that no column has for itself: written beside the loops only, from others of the kind."""
        scalars = {param.name for param in self.program.params if isinstance(param, ir.ScalarParam)}
        plan = self._analysis(self.program).body(self.program.body, scalars)
        found = set(self.types) - plan.varying
        inside = {name for run in self._branches(self.program.body) for name in _written(run)}
        found -= inside
        while True:
            kept = found.copy()
            for stmt in statements(self.program.body):
                if isinstance(stmt, ir.Declare | ir.Assign) and stmt.name in found:
                    free = locals_of(operands(stmt)) <= kept | scalars
                    if not free or (isinstance(stmt, ir.Declare) and stmt.value is None):
                        kept.discard(stmt.name)
            if kept == found:
                return found
            found = kept

    def _branches(self, body: Body) -> Iterator[Body]:
        """The statements that are nested in anything but the loops that go outside."""
        for stmt in body:
            if isinstance(stmt, ir.While):
                yield from self._branches(stmt.body)
                yield from self._branches(stmt.step)
            else:
                yield from blocks(stmt)

    def _is_control(self, stmt: ir.Stmt) -> bool:
        return isinstance(stmt, ir.Declare | ir.Assign) and stmt.name in self.control

    def _pieces(self, body: Body) -> Iterator[Body | ir.Stmt]:
        """Loops and control statements in order, and the stretches around them, which may be empty."""
        run: list[ir.Stmt] = []
        for stmt in body:
            if isinstance(stmt, ir.While) or self._is_control(stmt):
                yield tuple(run)
                yield stmt
                run = []
            else:
                run.append(stmt)
        yield tuple(run)

    def _runs(self, body: Body) -> Iterator[Body]:
        """The stretches, those of nested loops included."""
        for piece in self._pieces(body):
            if isinstance(piece, ir.While):
                yield from self._runs(piece.body)
                yield from self._runs(piece.step)
            elif isinstance(piece, tuple):
                yield piece

    # --- tiles -------------------------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        b, limit = self.b, Value("i64", end)

        def tile(begin: str) -> None:
            size = b.intrinsic("umin", b.binary("sub", limit, Value("i64", begin)), integer(self.tile))
            self._block(self.program.body, row, begin, b.binary("add", Value("i64", begin), size))

        self._loop(start, self.tile, tile, end)

    def _block(self, body: Body, row: Row, start: str, end: Value) -> None:
        """Statements in order, for the columns of a tile."""
        for piece in self._pieces(body):
            if isinstance(piece, tuple):
                self._columns(piece, row, start, end)
            elif isinstance(piece, ir.While):
                self._while(piece, row, start, end)
            else:
                self._set(piece, row, start)

    def _while(self, stmt: ir.While, row: Row, start: str, end: Value) -> None:
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

    def _set(self, stmt: ir.Stmt, row: Row, start: str) -> None:
        """A variable that is the same for all columns gets a value."""
        assert isinstance(stmt, ir.Declare | ir.Assign), "a statement that sets a variable"
        assert stmt.value is not None, "it has a value"
        self.b.write_slots(self.slots[stmt.name], self._parts(row, start, stmt.value), varying=False)

    def _once(self, row: Row, start: str, value: Expr) -> Value:
        """A value of one part that is the same for all columns."""
        (found,) = self._parts(row, start, value)
        return found

    def _parts(self, row: Row, start: str, value: Expr) -> Operand:
        """A value that is the same for all columns."""
        width, self.b.lanes = self.b.lanes, 1
        (found,) = self._part(CellSite(self, row, start), Lanes(), (), self._uniform(locals_of([value])), [value])
        self.b.lanes = width
        return found

    def _uniform(self, wanted: set[str]) -> Known:
        known = self._scalars()
        for name in sorted(self.control & wanted):
            kind = self.types[name]
            known[name] = kind, self.b.read_slots(self.slots[name], part_types(kind), varying=False)
        return known

    # --- columns -----------------------------------------------------------------------------------------------------

    def _columns(self, run: Body, row: Row, start: str, end: Value) -> None:
        """A stretch of statements over the columns of a tile."""
        if not run:
            return
        wanted, fresh = names_in(run), {stmt.name for stmt in run if isinstance(stmt, ir.Declare)}
        read, kept = (self.shared & wanted) - fresh, self.shared & _written(run)
        ahead = list(self._ahead(run, row))
        if self.layout.streaming:
            self._fetch_ends([each for each in ahead if each.to_write], start, end)
            ahead = [each for each in ahead if not each.to_write]
        wide = tuple(each for each in ahead if self.width * each.nbytes >= LINE // 2)
        self._fetch_narrow([each for each in ahead if each not in wide], start, end)
        self.stretch = Stretch(run, start, self._uniform(wanted), tuple(sorted(read)), tuple(sorted(kept)), wide)
        super()._row(row, start, end.text)

    def _body(self, site: RowSite, lanes: Lanes, part: ir.Program | None = None) -> None:
        """One vector of columns."""
        assert part is None, "walks have no parts"
        b, stretch = self.b, self.stretch
        lane = b.let(f"sub i64 {site.position}, {stretch.start}")
        if self.spare:
            lane = b.let(f"add i64 {lane}, {self.spare}")
        known = {name: (self.types[name], self.held[name].read(lane)) for name in stretch.read}
        here = ColumnSite(self, site.row, site.position, site.streaming)
        values = [ir.Local(name, self.types[name]) for name in stretch.kept]
        found = self._part(here, lanes, stretch.body, {**stretch.known, **known}, values)
        if b.lanes == self.width:
            self._fetch(site.position)
        for name, value in zip(stretch.kept, found, strict=True):
            self.held[name].write(lane, value)

    # --- what comes next ---------------------------------------------------------------------------------------------

    def _ahead(self, run: Body, row: Row) -> Iterator[Ahead]:
        """The rows to ask for: the columns of a tile are often too few for processors to see that a row goes on."""
        b, far = self.b, _FAR_AHEAD if self.layout.streaming else _AHEAD
        for place, to_write in self._again(run).items():
            (axis,), nbytes = place.axes, self.arrays[place.param].dtype.nbytes
            rows = b.binary("mul", self.arguments.number("stride", place.param, axis), integer(far))
            address = self._once(row, "0", place)
            yield Ahead(b.at(address.text, rows.text), nbytes, to_write)

    def _moves_much(self) -> Value:
        """Whether the places of a walk, from the first row to the last, are more than caches near a processor hold."""
        b, total = self.b, integer(0)
        axes = {place.param: place.axes[0] for place in self._again(self.program.body)}
        _, (count,) = self._scalars()[AXIS]
        for name, axis in sorted(axes.items()):
            nbytes = b.binary("mul", self.arguments.number("stride", name, axis), count)
            total = b.binary("add", total, b.intrinsic("smax", nbytes, b.binary("sub", integer(0), nbytes)))
        return b.compare("icmp sgt", total, integer(_MUCH))

    def _again(self, body: Body) -> dict[ir.Moved, bool]:
        """Places that loops move to other rows, and whether they are written."""
        places = _places(body).items()
        return {each: stored for each, stored in places if isinstance(each, ir.Moved) and self._comes_again(each)}

    def _comes_again(self, place: ir.Moved) -> bool:
        """Whether a loop moves the place to other rows."""
        apart = len(place.axes) == 1 and self.layout.step(place.param)[place.axes[0]] is Step.ANY
        moves = bool(locals_of(place.distances)) and self._is_uniform(place)
        return apart and moves and self.inner[place.param] is Step.UNIT

    def _is_uniform(self, place: Place) -> bool:
        """Whether all columns are equally far from their places."""
        return locals_of([place]) <= self.control | self._scalars().keys()

    def _fetch(self, position: str) -> None:
        """Ask for a vector of each of the rows."""

        def ask() -> None:
            for each in self.stretch.ahead:
                at = self._along(each, position)
                for line in range(0, self.width * each.nbytes, LINE):
                    fetch(self.b, self.b.at(at, line), to_write=each.to_write)

        if self.stretch.ahead:
            self._if_much(ask)

    def _fetch_narrow(self, rows: list[Ahead], start: str, end: Value) -> None:
        """Ask for rows of which a line has many vectors."""

        def line(row: Ahead, column: str) -> None:
            fetch(self.b, self._along(row, column), to_write=row.to_write)

        def ask() -> None:
            for each in rows:  # all columns of a tile at once
                self._repeat(Value("i64", start), LINE // each.nbytes, end, partial(line, each))

        if rows:
            self._if_much(ask)

    def _if_much(self, body: Callable[[], None]) -> None:
        """What is worth doing only where much memory is walked over."""
        b, ask, asked = self.b, self.b.label("ask"), self.b.label("asked")
        if self.asks is None:
            body()
            return
        b.fork(self.asks, ask, asked)
        b.place(ask)
        body()
        b.jump(asked)
        b.place(asked)

    def _along(self, row: Ahead, column: str) -> str:
        return self.b.let(f"getelementptr [{row.nbytes} x i8], ptr {row.address}, i64 {column}")

    def _fetch_ends(self, rows: Iterable[Ahead], start: str, end: Value) -> None:
        """Ask for the lines that are shared with other tiles, the only ones that do not go around the caches."""
        b = self.b
        for each in rows:
            for column in (start, b.binary("sub", end, integer(1)).text):
                fetch(b, self._along(each, column), to_write=True)

    # --- around the caches -------------------------------------------------------------------------------------------

    def _outputs(self) -> list[tuple[str, DType]]:
        """Those that the current stretch stores."""
        return [(place.param, self.arrays[place.param].dtype) for place in self._stored()]

    def _stored(self) -> list[Place]:
        return [place for place, is_stored in _places(self.stretch.body).items() if is_stored]

    def _streaming(self, row: Row, start: str, end: str) -> tuple[Row, Value] | None:
        """As for elements in place, if the stretch stores one row of each output."""
        stored = self._stored()
        names = {place.param for place in stored}
        if len(names) < len(stored) or not all(map(self._is_uniform, stored)):
            return None
        addresses = {place.param: self._once(row, "0", place) for place in stored}
        found = super()._streaming(replace(row, addresses={**row.addresses, **addresses}), start, end)
        return found and (replace(row, streams=found[0].streams), found[1])

    def _partial(self, row: Row, slot: str, count_slot: str) -> None:
        """Before the first line of outputs, the last lanes of a vector: its store then touches no line of the next."""
        if not self.spare or self.tail != "masked":
            super()._partial(row, slot, count_slot)
            return
        b = self.b
        position, count = (b.read_slot(each) for each in (slot, count_slot))
        end, before = b.binary("add", position, count), b.binary("sub", integer(self.width), count)
        is_first = b.compare("icmp eq", position, Value("i64", self.stretch.start))
        skipped = b.cast("trunc", b.select(is_first, before, integer(0)), "i32")
        lane = b.binary("sub", Value("i32", b.iota("i32"), varying=True), skipped)
        mask = b.compare("icmp ult", lane, b.cast("trunc", count, "i32"))
        first = b.select(is_first, b.binary("sub", position, before), position)
        self._body(RowSite(self, row, first.text), Lanes(mask, occupied=True))
        b.write_slot(slot, end)


def names_in(body: Body) -> set[str]:
    """The locals that statements read or write."""
    return locals_of(roots_of(body)) | _written(body)


def _written(body: Body) -> set[str]:
    return {stmt.name for stmt in statements(body) if isinstance(stmt, ir.Declare | ir.Assign | ir.SetField)}


def _places(body: Body) -> dict[Place, bool]:
    """Elements that statements load or store, and whether they store them."""
    found: dict[Place, bool] = {}
    for stmt in statements(body):
        for expr in expressions(operands(stmt)):
            if isinstance(expr, Place):
                found.setdefault(expr, False)
        if isinstance(stmt, ir.Store) and isinstance(stmt.pointer, Place):
            found[stmt.pointer] = True
    return found


def _types(body: Body) -> Iterator[tuple[str, Type]]:
    for stmt in statements(body):
        if isinstance(stmt, ir.Declare):
            yield stmt.name, stmt.type


def _nbytes(kind: Type) -> int:
    if isinstance(kind, Struct):
        return sum(dtype.nbytes for _, dtype in kind.fields)
    return kind.nbytes if isinstance(kind, DType) else 8
