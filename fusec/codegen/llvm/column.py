"""Reductions along an axis that is not the last: row after row, with the accumulators of some columns in memory.

A position of the kernel is one column of one chunk. Columns are taken in tiles whose accumulators fit the first cache;
the rows of a chunk run over a tile one after the other, so that memory is read along its rows. Several rows at a time,
where bodies are short, spare most of the traffic of the accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.column_tiles import TilesNest
from fusec.codegen.llvm.memory import Lanes, fetch
from fusec.codegen.llvm.nest import LINE, Row, RowSite
from fusec.codegen.llvm.reduction import Held, Known, flat, regrouped
from fusec.codegen.llvm.values import Builder, Operand, Value, integer, part_types
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
_TURNS = 4  # neighbours of few columns whose rows are taken in turn
_FEW = 4  # vectors that such columns fill at most
_SHORT = 48  # operations for an element up to which they are

Body = Callable[[Sequence[RowSite], Lanes, str], None]
"""Gets the elements of some rows, the lanes, and the number of the first of them in the tile."""


class CellSite(RowSite):
    """The elements of one row of a chunk; nothing stays the same from row to row."""

    def hoisted(self, param: str) -> Operand | None:  # noqa: ARG002 - the protocol's
        """Nothing was loaded before."""
        return None


class ColumnNest(TilesNest):
    """Writes the loops of a kernel that reduces an axis of its layout before the last one."""

    def __init__(
        self, reduction: reductions.ReductionIR, layout: Layout, axis: int, builder: Builder, arguments: KernelSlots
    ) -> None:
        super().__init__(reduction, layout, axis, builder, arguments)
        self.begin = self.covered = integer(0)  # of the current chunk: its first row, and how many it has
        self.types: dict[str, Type] = {}
        self.fetched = [name for name in sorted(self.inputs & self.inner.keys()) if self._is_wide(name)]
        self.next_tile: dict[str, Value] = {}  # how many bytes further it begins
        self.goes_on = Value("i1", "false")  # whether the next chunk is this thread's too
        self.takes_turns = False  # whether there is text for some neighbours of few columns
        self.turns = integer(1)  # neighbours along the axis before the last one that are walked down at once

    def _hold(self) -> None:
        parts: list[tuple[str, Type]] = []
        for stage in self.reduction.stages:
            parts += [*(stage.accumulator.parts if stage.accumulator else ()), *reductions.declared(stage.then)]
        nbytes = sum(kind.nbytes for _, kind in parts if isinstance(kind, DType))
        columns = min(_MOST_COLUMNS, _TILE // max(nbytes, 1))
        read = self.inputs & self.inner.keys() - {*self.turned, *self.packed}
        if len(self.reduction.stages) > 1:
            cells = _FAR_CELLS if self.layout.streaming else _CELLS
            columns = min(columns, cells // (reductions.ROUNDS * max(self._nbytes(sorted(read)), 1)))
        apart = sum(self.inner[name] is Step.ANY for name in read)
        columns = min(columns, _LINES // apart) if apart else columns
        self.tile = max(self.width, columns // self.width * self.width)
        costs = [self._stage_cost(stage) for stage in self.reduction.stages]
        has_masks = self.tail == "masked" and self.width > 1
        is_simple = self._has_neighbours() and not self.layout.c_order and max(costs) <= _SHORT
        self.takes_turns = bool(self.chunk) and has_masks and is_simple and not (apart or self.turned or self.packed)
        lanes = max(self.tile, self.takes_turns * _TURNS * _FEW * self.width)
        for name, kind in parts:
            self.held[name], self.types[name] = Held(self.b, kind, lanes, zeroed=False), kind
        self._make_room()

    def _has_neighbours(self) -> bool:
        """Whether the axis before the last one has chunks, or columns beside these that are in the same chunk."""
        before = self.layout.ndim - 2
        return self.axis == before or (self.axis < before and not self.layout.strips)

    def _is_wide(self, name: str) -> bool:
        """Whether a vector of an input is at least half a line, so that it is worth asking for."""
        return self.inner[name] is Step.UNIT and self.width * self.arrays[name].dtype.nbytes >= LINE // 2

    def _row_address(self, param: ArrayParam, steps: tuple[Step, ...], outer: tuple[Value, ...]) -> Value:
        """Inputs begin at the first row of the chunk; what is stored afterwards counts chunks."""
        if param.name in self.inputs and self.chunk:
            first = self.b.binary("mul", outer[self.axis], integer(self.chunk))
            outer = (*outer[: self.axis], first, *outer[self.axis + 1 :])
        return super()._row_address(param, steps, outer)

    def _walk_rows(self, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """Also some neighbours at once, if columns are few: each sum would wait for itself. Chunks are whole ones."""
        b, before = self.b, self.layout.ndim - 2
        if self.takes_turns:
            columns, later = self._extent(before + 1), b.binary("add", at[before], integer(_TURNS))
            fits = b.compare("icmp ule", columns, integer(_FEW * self.width))
            is_chunk = before == self.axis
            reached = b.binary("mul", later, integer(self.chunk)) if is_chunk else later
            for condition in (
                b.compare("icmp eq", at[-1], integer(0)),
                b.compare("icmp sge", left, b.binary("mul", columns, integer(_TURNS))),
                b.compare("icmp sle", reached, self.count if is_chunk else self._extent(before)),
            ):
                fits = b.binary("and", fits, condition)
            self.turns = b.select(fits, integer(_TURNS), integer(1))
        count, _ = super()._walk_rows(at, left)
        return b.binary("mul", count, self.turns), self.turns

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
        return replace(row, coordinates=(*outer[: self.axis], self.begin, *outer[self.axis + 1 :]))

    def _shifted(self, row: Row, axis: int, number: Value) -> tuple[Value, ...]:
        """The coordinates of a row so many elements further along an axis."""
        here = self.b.binary("add", row.coordinates[axis], number)
        return (*row.coordinates[:axis], here, *row.coordinates[axis + 1 :])

    # --- tiles of columns ----------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        """Some columns of one chunk, or some chunks, tile by tile."""
        b, limit = self.b, Value("i64", end)
        slot, again, after = b.alloca("i64"), b.label("tile"), b.label("after")
        b.write_slot(slot, Value("i64", start))
        self._once_in_tiles(row, Value("i64", start), limit, self.covered)
        b.jump(again)
        b.place(again)
        begin = b.read_slot(slot)
        following = b.binary("add", begin, b.intrinsic("umin", b.binary("sub", limit, begin), self.most))
        self._find_next_tile(begin, limit)
        self._tile(self._in_tiles(row, begin.text, following, self.covered), begin.text, following)
        self._out_of_tiles(row, begin.text, following, self.covered)
        b.write_slot(slot, following)
        b.fork(b.compare("icmp slt", following, limit), again, after)
        b.place(after)

    def _tile(self, row: Row, start: str, end: Value) -> None:
        total, ready = self.reduction.total, list[str]()
        for stage in self.reduction.stages:
            if stage.accumulator is None:
                self._store_rows(stage, row, start, end, ready)
            else:
                self._accumulate(stage, row, start, end, ready)
                ready += [name for name, _ in stage.accumulator.parts]
            self._after_stage(stage, row, start, end, ready)

        def finish(sites: Sequence[RowSite], lanes: Lanes, lane: str) -> None:
            known = self._known(lane, ready)
            if total is not None:
                values = self._part(sites[0], lanes, (), known, reductions.parts_of(total.value))
                known |= {name: (kind, value) for (name, kind), value in zip(total.parts, values, strict=True)}
            self._part(sites[0], lanes, self.reduction.finish, known, ())

        if self.reduction.finish:
            self._once(row, start, end, finish)

    def _after_stage(self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """What follows a stage, for each column; what it declares is kept for later stages."""
        pairs = reductions.declared(stage.then)
        wanted, before = [Local(name, kind) for name, kind in pairs], tuple(ready)
        names = [name for name, _ in pairs]

        def after(sites: Sequence[RowSite], lanes: Lanes, lane: str) -> None:
            self._keep(names, lane, self._part(sites[0], lanes, stage.then, self._known(lane, before), wanted))

        if stage.then:
            self._once(row, start, end, after)
        ready += names

    def _columns(self, rows: Sequence[Row], start: str, end: Value, body: Body, before: str = "0") -> None:
        """The columns of a tile, in some rows. before: lanes that others have."""
        b = self.b

        def at(position: str, lanes: Lanes) -> None:
            lane = b.binary("add", Value("i64", b.let(f"sub i64 {position}, {start}")), Value("i64", before))
            body([CellSite(self, each, position) for each in rows], lanes, lane.text)

        self._in_vectors(Value("i64", start), end, at)

    def _once(self, row: Row, start: str, end: Value, body: Body) -> None:
        """The columns of a tile, once for each of some neighbours."""

        def neighbour(number: str) -> None:
            before = self.b.binary("mul", Value("i64", number), integer(_FEW * self.width))
            self._columns([self._further_on(row, Value("i64", number))], start, end, body, before.text)

        if self.takes_turns:
            self._loop("0", 1, neighbour, self.turns.text)
        else:
            self._columns([row], start, end, body)

    def _further_on(self, row: Row, number: Value) -> Row:
        """The same row of a neighbour: of a later chunk, or of other columns."""
        b, addresses, before = self.b, dict(row.addresses), self.layout.ndim - 2
        for name, address in row.addresses.items():
            if before == self.axis:
                once = integer(reductions.ROUNDS if name in self.inputs else 1)
                step = b.binary("mul", self._stride(name), once)
            else:
                step = self._step(name, before)
            addresses[name] = self._further(address, b.binary("mul", number, step))
        elements = b.binary("mul", number, integer(self.chunk)) if before == self.axis else number
        return replace(row, addresses=addresses, coordinates=self._shifted(row, before, elements))

    # --- rows of a chunk -----------------------------------------------------------------------------------------

    def _accumulate(self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """Columns one after the other, or those of some chunks at once."""
        if not self.takes_turns:
            self._accumulate_rows(stage, row, start, end, ready)
            return
        self._choose(
            self.b.compare("icmp eq", self.turns, integer(1)),
            lambda: self._accumulate_rows(stage, row, start, end, ready),
            lambda: self._accumulate_in_turn(stage, row, start, end, ready),
        )

    def _accumulate_in_turn(
        self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]
    ) -> None:  # fmt: skip
        """Row by row for some chunks, whose accumulators are in registers meanwhile."""
        b, accumulator = self.b, stage.accumulator
        assert accumulator is not None, "a stage that accumulates"
        names = [name for name, _ in accumulator.parts]
        types = [llvm for name in names for llvm in part_types(self.types[name])]
        slots = [[b.alloca(b.vector_type(llvm)) for llvm in types] for _ in range(_TURNS)]

        def vector(position: str) -> None:
            lanes = self._first_lanes(b.binary("sub", end, Value("i64", position)).text)
            lane = Value("i64", b.let(f"sub i64 {position}, {start}"))
            places = [b.binary("add", lane, integer(at * _FEW * self.width)).text for at in range(_TURNS)]
            rows = [self._further_on(row, integer(at)) for at in range(_TURNS)]
            known = [self._known(place, ready) for place in places]

            def values(number: Value) -> Iterator[tuple[RowSite, Operand]]:
                for each, before in zip(rows, known, strict=True):
                    site = CellSite(self, self._moved(each, number), position)
                    parts = self._part(site, lanes, stage.body, before, reductions.parts_of(accumulator.value))
                    yield site, flat(parts)

            def one_row(number: str) -> None:
                for mine, (site, value) in zip(slots, values(Value("i64", number)), strict=True):
                    before = b.read_slots(mine, types, varying=True)
                    b.write_slots(mine, self._combined(site, accumulator, before, value, lanes), varying=True)

            for mine, (_, value) in zip(slots, values(integer(0)), strict=True):
                b.write_slots(mine, value, varying=True)
            self._repeat(integer(1), 1, self.covered, one_row)
            for place, mine in zip(places, slots, strict=True):
                self._keep(names, place, regrouped(accumulator, b.read_slots(mine, types, varying=True)))

        self._loop(start, self.width, vector, end.text)

    def _accumulate_rows(self, stage: reductions.Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """The first row as it is, then rows combined, several at a time if the body is short."""
        b, accumulator = self.b, stage.accumulator
        assert accumulator is not None, "a stage that accumulates"

        names = [name for name, _ in accumulator.parts]

        def value(site: RowSite, lanes: Lanes, known: Known) -> list[Operand]:
            return self._part(site, lanes, stage.body, known, reductions.parts_of(accumulator.value))

        def first(sites: Sequence[RowSite], lanes: Lanes, lane: str) -> None:
            self._keep(names, lane, value(sites[0], lanes, self._known(lane, ready)))

        def more(rows: Sequence[Row], ahead: Sequence[dict[str, Value]] = ()) -> None:
            def body(sites: Sequence[RowSite], lanes: Lanes, lane: str) -> None:
                known = self._known(lane, ready)
                before = flat([self.held[name].read(lane) for name in names])
                for site in sites:
                    before = self._combined(site, accumulator, before, flat(value(site, lanes, known)), lanes)
                if b.lanes == self.width and lanes.mask is None:
                    self._fetch(ahead, sites[0].position)
                self._keep(names, lane, regrouped(accumulator, before))

            self._columns(rows, start, end, body)

        self._columns([row], start, end, first)
        done = integer(1)
        if self._stage_cost(stage) <= _LIGHT:
            groups = b.binary("udiv", b.binary("sub", self.covered, done), integer(_ROWS))
            done = b.binary("add", b.binary("mul", groups, integer(_ROWS)), integer(1))

            def group(number: str) -> None:
                numbers = [b.binary("add", Value("i64", number), integer(more)) for more in range(_ROWS)]
                rows = [self._moved(row, each) for each in numbers]
                more(rows, self._ahead(row, stage, number))

            self._repeat(integer(1), _ROWS, done, group)
        self._repeat(done, 1, self.covered, lambda number: more([self._moved(row, Value("i64", number))]))

    # --- what comes next -----------------------------------------------------------------------------------------

    def _find_next_tile(self, begin: Value, limit: Value) -> None:
        """How far it is to the next tile: to the right, or at the left of the next chunk; nothing after the last one.

        begin: of this tile. limit: where columns of this chunk end.
        """
        b = self.b
        is_last = b.compare("icmp sle", b.binary("sub", limit, begin), self.most)
        for name in self.fetched:
            nbytes = integer(self.arrays[name].dtype.nbytes)
            down = b.binary("mul", self._stride(name), b.binary("mul", self.turns, integer(reductions.ROUNDS)))
            down = b.binary("sub", down, b.binary("mul", begin, nbytes))
            down = b.select(self.goes_on, down, integer(0))
            self.next_tile[name] = b.select(is_last, down, b.binary("mul", nbytes, self.most))

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
            def body(sites: Sequence[RowSite], lanes: Lanes, lane: str) -> None:
                self._part(sites[0], lanes, stage.body, self._known(lane, ready), ())

            self._columns([self._moved(row, Value("i64", number))], start, end, body)

        self._repeat(integer(0), 1, self.covered, one_row)

    def _moved(self, row: Row, number: Value) -> Row:
        """A row of the chunk."""
        b, addresses = self.b, dict(row.addresses)
        for name in sorted(self.inputs & addresses.keys()):
            addresses[name] = self._further(addresses[name], b.binary("mul", number, self._stride(name)))
        return replace(row, addresses=addresses, coordinates=self._shifted(row, self.axis, number))

    # --- accumulators --------------------------------------------------------------------------------------------

    def _known(self, lane: str, ready: Sequence[str]) -> Known:
        """Scalar parameters, and the results of earlier stages for these columns."""
        known = {**self._scalars(), reductions.COVERED: (INT64, (self.covered,))}
        return known | {name: (self.types[name], self.held[name].read(lane)) for name in ready}

    def _keep(self, names: Sequence[str], lane: str, values: Sequence[Operand]) -> None:
        """Lanes past the end are written too: a tile holds whole vectors."""
        for name, value in zip(names, values, strict=True):
            self.held[name].write(lane, value)
