"""Reductions along an axis that is not the last: row after row, with the accumulators of some columns in memory.

A position of the kernel is one column of one chunk. Columns are taken in tiles whose accumulators fit the first cache;
the rows of a chunk run over a tile one after the other, so that memory is read along its rows. Several rows at a time,
where bodies are short, spare most of the traffic of the accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.base.dtypes import COMPUTE_FLOATS, INT64, DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.memory import Lanes, fetch
from fusec.codegen.llvm.nest import LINE, Nest, Row, RowSite
from fusec.codegen.llvm.reduction import Held, Known, ReductionNest, flat, regrouped
from fusec.codegen.llvm.values import Builder, Operand, Value, integer, memory_type
from fusec.ir import reductions
from fusec.ir.expr import Type
from fusec.ir.loops import ArrayParam, Local

_TILE = 1 << 15  # bytes of the accumulators of a tile: several rows at a time spare most of their traffic
_CELLS, _FAR_CELLS = 1 << 14, 1 << 18
"""Bytes of a tile that several walks share. Two of the first fit a first cache, which is a fifth faster on 16 cores
whose last cache holds the inputs, and no slower on 2. Two of the others fit a second cache: inputs from memory are read
in longer pieces of rows then, a tenth to a fifth faster."""
_MOST_COLUMNS = 4096
_LINES = 256  # of columns that do not lie side by side: the rows that follow find theirs in the first cache
_ROWS = 4  # taken at a time
_LIGHT = 24  # operations for an element up to which they are

Body = Callable[[RowSite, Lanes, str], None]


class CellSite(RowSite):
    """The elements of one row of a chunk; nothing stays the same from row to row."""

    def hoisted(self, param: str) -> Operand | None:  # noqa: ARG002 - the protocol's
        """Nothing was loaded before."""
        return None


class TurnedSite(CellSite):
    """The elements of one row, some of which were loaded with those of the next rows."""

    def __init__(self, nest: Nest, row: Row, position: str, loaded: Mapping[str, Operand]) -> None:
        super().__init__(nest, row, position)
        self.loaded = loaded

    def hoisted(self, param: str) -> Operand | None:
        """What is loaded already."""
        return self.loaded.get(param)


class ColumnNest(ReductionNest):
    """Writes the loops of a kernel that reduces an axis of its layout before the last one."""

    def __init__(
        self, reduction: reductions.ReductionIR, layout: Layout, axis: int, builder: Builder, arguments: KernelSlots
    ) -> None:
        super().__init__(reduction, layout, axis, builder, arguments)
        self.begin = self.covered = integer(0)  # of the current chunk: its first row, and how many it has
        self.types: dict[str, Type] = {}
        self.fetched = [name for name in sorted(self.inputs & self.inner.keys()) if self._is_wide(name)]
        self.turned = [name for name in sorted(self.inputs & self.inner.keys()) if self._is_turned(name)]
        self.next_tile: dict[str, Value] = {}  # how many bytes further it begins
        self.goes_on = Value("i1", "false")  # whether the next chunk is this thread's too

    def _hold(self) -> None:
        parts: list[tuple[str, Type]] = []
        for stage in self.reduction.stages:
            parts += [*(stage.accumulator.parts if stage.accumulator else ()), *reductions.declared(stage.then)]
        nbytes = sum(kind.nbytes for _, kind in parts if isinstance(kind, DType))
        columns = min(_MOST_COLUMNS, _TILE // max(nbytes, 1))
        if len(self.reduction.stages) > 1:
            walked = sum(self.arrays[name].dtype.nbytes for name in self.inputs & self.inner.keys())
            cells = _FAR_CELLS if self.layout.streaming else _CELLS
            columns = min(columns, cells // (reductions.ROUNDS * max(walked, 1)))
        apart = sum(self.inner[name] is Step.ANY for name in self.inputs & self.inner.keys())
        columns = min(columns, _LINES // apart) if apart else columns
        self.tile = max(self.width, columns // self.width * self.width)
        for name, kind in parts:
            self.held[name], self.types[name] = Held(self.b, kind, self.tile), kind

    def _is_wide(self, name: str) -> bool:
        """Whether a vector of an input is at least half a line, so that it is worth asking for."""
        return self.inner[name] is Step.UNIT and self.width * self.arrays[name].dtype.nbytes >= LINE // 2

    def _is_turned(self, name: str) -> bool:
        """Whether the rows of an input lie side by side, and its columns do not."""
        turned = self.inner[name] is Step.ANY and self.layout.step(name)[self.axis] is Step.UNIT
        return turned and self.arrays[name].dtype in COMPUTE_FLOATS

    def _row_address(self, param: ArrayParam, steps: tuple[Step, ...], outer: tuple[Value, ...]) -> Value:
        """Inputs begin at the first row of the chunk; what is stored afterwards counts chunks."""
        if param.name in self.inputs and self.chunk:
            first = self.b.binary("mul", outer[self.axis], integer(self.chunk))
            outer = (*outer[: self.axis], first, *outer[self.axis + 1 :])
        return super()._row_address(param, steps, outer)

    def _describe_row(self, outer: tuple[Value, ...], first: Value) -> Row:
        b = self.b
        self.begin, self.covered = integer(0), self.count
        if self.chunk:
            self.begin = b.binary("mul", outer[self.axis], integer(self.chunk))
            self.covered = b.intrinsic("umin", b.binary("sub", self.count, self.begin), integer(self.chunk))
        row = super()._describe_row(outer, first)
        self.goes_on = Value("i1", "false")
        if self.axis == self.layout.ndim - 2:
            is_ours = b.compare("icmp slt", b.binary("add", first, self._extent(self.axis + 1)), Value("i64", "%hi"))
            following = b.binary("add", outer[self.axis], integer(1))
            self.goes_on = b.binary("and", is_ours, b.compare("icmp slt", following, self.chunks))
        return replace(row, coordinates=self._at_row(row, integer(0)))

    def _at_row(self, row: Row, number: Value) -> tuple[Value, ...]:
        """The coordinates of a row of the chunk."""
        here = self.b.binary("add", self.begin, number)
        return (*row.coordinates[: self.axis], here, *row.coordinates[self.axis + 1 :])

    # --- tiles of columns ----------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        """Some columns of one chunk, tile by tile."""
        b = self.b
        limit = Value("i64", end)

        def tile(begin: str) -> None:
            size = b.intrinsic("umin", b.binary("sub", limit, Value("i64", begin)), integer(self.tile))
            self._find_next_tile(Value("i64", begin), limit)
            self._tile(row, begin, b.binary("add", Value("i64", begin), size))

        self._loop(start, self.tile, tile, end)

    def _tile(self, row: Row, start: str, end: Value) -> None:
        total, ready = self.reduction.total, list[str]()
        for stage in self.reduction.stages:
            if stage.accumulator is None:
                self._store_rows(stage, row, start, end, ready)
            else:
                self._accumulate(stage, row, start, end, ready)
                ready += [name for name, _ in stage.accumulator.parts]
            self._after_stage(stage, row, start, end, ready)

        def finish(site: RowSite, lanes: Lanes, lane: str) -> None:
            known = self._known(lane, ready)
            if total is not None:
                values = self._part(site, lanes, (), known, reductions.parts_of(total.value))
                known |= {name: (kind, value) for (name, kind), value in zip(total.parts, values, strict=True)}
            self._part(site, lanes, self.reduction.finish, known, ())

        if self.reduction.finish:
            self._columns(row, start, end, finish)

    def _after_stage(self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """What follows a stage, for each column; what it declares is kept for later stages."""
        pairs = reductions.declared(stage.then)
        wanted, before = [Local(name, kind) for name, kind in pairs], tuple(ready)
        names = [name for name, _ in pairs]

        def after(site: RowSite, lanes: Lanes, lane: str) -> None:
            self._keep(names, lane, self._part(site, lanes, stage.then, self._known(lane, before), wanted))

        if stage.then:
            self._columns(row, start, end, after)
        ready += names

    def _columns(self, row: Row, start: str, end: Value, body: Body) -> None:
        """The columns of a tile. body: gets the number of its first lane in the tile."""
        b = self.b

        def at(position: str, lanes: Lanes) -> None:
            body(CellSite(self, row, position), lanes, b.let(f"sub i64 {position}, {start}"))

        self._in_vectors(Value("i64", start), end, at)

    # --- rows of a chunk -----------------------------------------------------------------------------------------

    def _accumulate(self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """The first row as it is, then rows combined, several at a time if the body is short."""
        b, accumulator = self.b, stage.accumulator
        assert accumulator is not None, "a stage that accumulates"

        names = [name for name, _ in accumulator.parts]

        def value(site: RowSite, lanes: Lanes, known: Known) -> list[Operand]:
            return self._part(site, lanes, stage.body, known, reductions.parts_of(accumulator.value))

        def first(site: RowSite, lanes: Lanes, lane: str) -> None:
            self._keep(names, lane, value(site, lanes, self._known(lane, ready)))

        def more(rows: Sequence[Row], ahead: Sequence[dict[str, Value]] = ()) -> Body:
            def body(site: RowSite, lanes: Lanes, lane: str) -> None:
                known = self._known(lane, ready)
                before = flat([self.held[name].read(lane) for name in names])
                for each, loaded in zip(rows, self._turned(rows, site.position, lanes), strict=True):
                    here = TurnedSite(self, each, site.position, loaded)
                    before = self._combined(here, accumulator, before, flat(value(here, lanes, known)), lanes)
                if b.lanes == self.width and lanes.mask is None:
                    self._fetch(ahead, site.position)
                self._keep(names, lane, regrouped(accumulator, before))

            return body

        self._columns(row, start, end, first)
        done = integer(1)
        if self._stage_cost(stage) <= _LIGHT:
            groups = b.binary("udiv", b.binary("sub", self.covered, done), integer(_ROWS))
            done = b.binary("add", b.binary("mul", groups, integer(_ROWS)), integer(1))

            def group(number: str) -> None:
                numbers = [b.binary("add", Value("i64", number), integer(more)) for more in range(_ROWS)]
                rows = [self._moved(row, each) for each in numbers]
                self._columns(row, start, end, more(rows, self._ahead(row, stage, number)))

            self._repeat(integer(1), _ROWS, done, group)
        self._repeat(
            done, 1, self.covered,
            lambda number: self._columns(row, start, end, more([self._moved(row, Value("i64", number))])),
        )  # fmt: skip

    def _turned(self, rows: Sequence[Row], position: str, lanes: Lanes) -> list[dict[str, Operand]]:
        """Some elements of each row: those of a column are loaded at once, then vectors of columns made of them."""
        b, count = self.b, len(rows)
        found: list[dict[str, Operand]] = [{} for _ in rows]
        if count == 1 or lanes.mask is not None or b.lanes == 1:
            return found
        for name in self.turned:
            kind, stride = self.arrays[name].dtype, rows[0].strides[name].text
            llvm, column, vectors = (
                memory_type(kind),
                b.at(rows[0].addresses[name].text, b.let(f"mul i64 {position}, {stride}")),
                [],
            )
            for lane in range(b.lanes):
                column = b.at(column, stride) if lane else column
                vectors.append(b.let(f"load <{count} x {llvm}>, ptr {column}, align {kind.nbytes}"))
            width = count
            while len(vectors) > 1:
                pairs = zip(vectors[::2], vectors[1::2], strict=True)
                vectors = [b.shuffle(f"<{width} x {llvm}> {left}", range(2 * width), right) for left, right in pairs]
                width *= 2
            for number, loaded in enumerate(found):
                text = b.shuffle(f"<{width} x {llvm}> {vectors[0]}", range(number, width, count))
                loaded[name] = (Value(llvm, text, varying=True),)
        return found

    # --- what comes next -----------------------------------------------------------------------------------------

    def _find_next_tile(self, begin: Value, limit: Value) -> None:
        """How far it is to the next tile: to the right, or at the left of the next chunk; nothing after the last one.

        begin: of this tile. limit: where columns of this chunk end.
        """
        b = self.b
        is_last = b.compare("icmp sle", b.binary("sub", limit, begin), integer(self.tile))
        for name in self.fetched:
            nbytes = integer(self.arrays[name].dtype.nbytes)
            down = b.binary("mul", self._stride(name), integer(reductions.ROUNDS))
            down = b.binary("sub", down, b.binary("mul", begin, nbytes))
            down = b.select(self.goes_on, down, integer(0))
            self.next_tile[name] = b.select(is_last, down, b.binary("mul", nbytes, integer(self.tile)))

    def _ahead(self, row: Row, stage: reductions.Stage, number: str) -> list[dict[str, Value]]:
        """Addresses of rows to ask for while some rows are walked over.

        A single walk comes to the rows that follow; several walks share those of the next tile, so that memory is never
        idle. Asking spares the time in which a processor finds out that a row goes on.
        """
        b, walks = self.b, len(self.reduction.stages)
        if not self.fetched:
            return []
        most, start = b.binary("sub", self.covered, integer(1)), Value("i64", number)
        if walks == 1:
            most = b.binary("add", most, b.select(self.goes_on, integer(_ROWS), integer(0)))
            first, count = b.binary("add", start, integer(_ROWS)), _ROWS
        else:
            share = b.binary("udiv", self.covered, integer(walks))
            before = b.binary("mul", share, integer(self.reduction.stages.index(stage)))
            first, count = b.binary("add", before, b.binary("udiv", start, integer(walks))), -(-_ROWS // walks)
        found = []
        for more in range(count):
            moved = self._moved(row, b.intrinsic("umin", b.binary("add", first, integer(more)), most))
            addresses = {name: moved.addresses[name] for name in self.fetched}
            if walks > 1:
                addresses = {name: self._further(at, self.next_tile[name]) for name, at in addresses.items()}
            found.append(addresses)
        return found

    def _further(self, address: Value, nbytes: Value) -> Value:
        return Value("ptr", self.b.at(address.text, nbytes.text))

    def _fetch(self, rows: Sequence[dict[str, Value]], position: str) -> None:
        """Ask for a vector of each of some rows."""
        b = self.b
        for name in self.fetched:
            nbytes = self.arrays[name].dtype.nbytes
            offset = b.binary("mul", Value("i64", position), integer(nbytes))
            for addresses in rows:
                at = self._further(addresses[name], offset)
                for line in range(0, self.width * nbytes, LINE):
                    fetch(b, self._further(at, integer(line)).text)

    def _store_rows(self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """A walk without accumulators."""

        def one_row(number: str) -> None:
            moved = self._moved(row, Value("i64", number))

            def body(site: RowSite, lanes: Lanes, lane: str) -> None:
                here = CellSite(self, moved, site.position)
                self._part(here, lanes, stage.body, self._known(lane, ready), ())

            self._columns(row, start, end, body)

        self._repeat(integer(0), 1, self.covered, one_row)

    def _moved(self, row: Row, number: Value) -> Row:
        """A row of the chunk."""
        b, addresses = self.b, dict(row.addresses)
        for name in sorted(self.inputs & addresses.keys()):
            addresses[name] = self._further(addresses[name], b.binary("mul", number, self._stride(name)))
        return replace(row, addresses=addresses, coordinates=self._at_row(row, number))

    def _stride(self, name: str) -> Value:
        """Bytes from one row to the next."""
        match self.layout.step(name)[self.axis]:
            case Step.ZERO:
                return integer(0)
            case Step.UNIT:
                return integer(self.arrays[name].dtype.nbytes)
            case Step.ANY | Step.DENSE:
                return self.arguments.number("stride", name, self.axis)

    # --- accumulators --------------------------------------------------------------------------------------------

    def _known(self, lane: str, ready: Sequence[str]) -> Known:
        """Scalar parameters, and the results of earlier stages for these columns."""
        known = {**self._scalars(), reductions.COVERED: (INT64, (self.covered,))}
        return known | {name: (self.types[name], self.held[name].read(lane)) for name in ready}

    def _keep(self, names: Sequence[str], lane: str, values: Sequence[Operand]) -> None:
        """Lanes past the end are written too: a tile holds whole vectors."""
        for name, value in zip(names, values, strict=True):
            self.held[name].write(lane, value)
