"""Reductions along an axis that is not the last: row after row, the accumulators of some columns in memory.

A position of the kernel is one column of one chunk. Columns are taken in tiles whose accumulators fit the first cache;
the rows of a chunk run over a tile one after the other, so that memory is read along its rows. Several rows at a time,
where bodies are short, spare most of the traffic of the accumulators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.codegen.llvm.arguments import Arguments
from fusec.codegen.llvm.memory import Lanes
from fusec.codegen.llvm.nest import Row, Site
from fusec.codegen.llvm.reduction import Held, Known, ReductionNest, flat, regrouped
from fusec.codegen.llvm.values import Builder, Operand, Value, integer
from fusec.dtypes import INT64, DType
from fusec.generated import Layout, Step
from fusec.ir.expr import Type
from fusec.ir.loops import ArrayParam, Local
from fusec.ir.reductions import (
    COVERED,
    ROUNDS,
    Reduction,
    Stage,
    addressed,
    declared,
    parts_of,
)
from fusec.records import replace

_TILE = 1 << 14  # bytes of the accumulators of a tile: half of a small first cache
_MOST_COLUMNS = 4096
_ROWS = 4  # taken at a time
_LIGHT = 24  # operations for an element up to which they are

Body = Callable[[Site, Lanes, str], None]


class CellSite(Site):
    """Elements of one row of a chunk; nothing stays the same from row to row."""

    def hoisted(self, param: str) -> Operand | None:  # noqa: ARG002 - the protocol's
        """Nothing was loaded before."""
        return None


class ColumnNest(ReductionNest):
    """Writes the loops of a kernel that reduces an axis of its layout before the last one."""

    def __init__(self, reduction: Reduction, layout: Layout, axis: int, builder: Builder, arguments: Arguments) -> None:
        super().__init__(reduction, layout, builder, arguments)
        self.axis = axis
        self.chunk = ROUNDS if reduction.total is not None else 0
        self.inputs = set[str]()
        for stage in reduction.stages:
            self.inputs |= addressed(stage.body, () if stage.accumulator is None else (stage.accumulator.value,))
        self.count = self.chunks = integer(0)
        self.begin = self.covered = integer(0)  # of the current chunk: its first row, and how many it has
        self.held: dict[str, Held] = {}
        self.types: dict[str, Type] = {}

    def write(self) -> None:
        """All text from the end of the entry block to the return."""
        b = self.b
        self.count, self.chunks = self.arguments.number("extent", "", self.axis), integer(1)
        if self.chunk:
            self.chunks = b.binary("udiv", b.binary("add", self.count, integer(self.chunk - 1)), integer(self.chunk))
        parts: list[tuple[str, Type]] = []
        for stage in self.reduction.stages:
            parts += [*(stage.accumulator.parts if stage.accumulator else ()), *declared(stage.then)]
        nbytes = sum(kind.nbytes for _, kind in parts if isinstance(kind, DType))
        self.tile = max(self.width, min(_MOST_COLUMNS, _TILE // max(nbytes, 1)) // self.width * self.width)
        for name, kind in parts:
            self.held[name], self.types[name] = Held(b, kind, self.tile), kind
        super().write()

    def _extent(self, axis: int) -> Value:
        return self.chunks if axis == self.axis else super()._extent(axis)

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

        def finish(site: Site, lanes: Lanes, lane: str) -> None:
            known = self._known(lane, ready)
            if total is not None:
                values = self._part(site, lanes, (), known, parts_of(total.value))
                known |= {name: (kind, value) for (name, kind), value in zip(total.parts, values, strict=True)}
            self._part(site, lanes, self.reduction.finish, known, ())

        if self.reduction.finish:
            self._columns(row, start, end, finish)

    def _after_stage(self, stage: Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """What follows a stage, for each column; what it declares is kept for later stages."""
        pairs = declared(stage.then)
        wanted, before = [Local(name, kind) for name, kind in pairs], tuple(ready)
        names = [name for name, _ in pairs]

        def after(site: Site, lanes: Lanes, lane: str) -> None:
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

    def _accumulate(self, stage: Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """The first row as it is, then rows combined, several at a time if the body is short."""
        b, accumulator = self.b, stage.accumulator
        assert accumulator is not None, "a stage that accumulates"

        names = [name for name, _ in accumulator.parts]

        def value(site: Site, lanes: Lanes, known: Known) -> list[Operand]:
            return self._part(site, lanes, stage.body, known, parts_of(accumulator.value))

        def first(site: Site, lanes: Lanes, lane: str) -> None:
            self._keep(names, lane, value(site, lanes, self._known(lane, ready)))

        def more(rows: Sequence[Row]) -> Body:
            def body(site: Site, lanes: Lanes, lane: str) -> None:
                known = self._known(lane, ready)
                before = flat([self.held[name].read(lane) for name in names])
                for each in rows:
                    here = CellSite(self, each, site.position)
                    before = self._combined(here, accumulator, before, flat(value(here, lanes, known)), lanes)
                self._keep(names, lane, regrouped(accumulator, before))

            return body

        self._columns(row, start, end, first)
        done = integer(1)
        if self._stage_cost(stage) <= _LIGHT:
            groups = b.binary("udiv", b.binary("sub", self.covered, done), integer(_ROWS))
            done = b.binary("add", b.binary("mul", groups, integer(_ROWS)), integer(1))

            def group(number: str) -> None:
                numbers = [b.binary("add", Value("i64", number), integer(more)) for more in range(_ROWS)]
                self._columns(row, start, end, more([self._moved(row, each) for each in numbers]))

            self._repeat(integer(1), _ROWS, done, group)
        self._repeat(
            done, 1, self.covered,
            lambda number: self._columns(row, start, end, more([self._moved(row, Value("i64", number))])),
        )  # fmt: skip

    def _store_rows(self, stage: Stage, row: Row, start: str, end: Value, ready: list[str]) -> None:
        """A walk without accumulators."""

        def one_row(number: str) -> None:
            moved = self._moved(row, Value("i64", number))

            def body(site: Site, lanes: Lanes, lane: str) -> None:
                here = CellSite(self, moved, site.position)
                self._part(here, lanes, stage.body, self._known(lane, ready), ())

            self._columns(row, start, end, body)

        self._repeat(integer(0), 1, self.covered, one_row)

    def _moved(self, row: Row, number: Value) -> Row:
        """A row of the chunk."""
        b, addresses = self.b, dict(row.addresses)
        for name in self.inputs & set(addresses):
            step, nbytes = self.layout.step(name)[self.axis], self.arrays[name].dtype.nbytes
            if step is Step.ZERO:
                continue
            stride = integer(nbytes) if step is Step.UNIT else self.arguments.number("stride", name, self.axis)
            offset = b.binary("mul", number, stride)
            addresses[name] = Value("ptr", b.let(f"getelementptr i8, ptr {addresses[name].text}, i64 {offset.text}"))
        return replace(row, addresses=addresses, coordinates=self._at_row(row, number))

    # --- accumulators --------------------------------------------------------------------------------------------

    def _known(self, lane: str, ready: Sequence[str]) -> Known:
        """Scalar parameters, and the results of earlier stages for these columns."""
        known = {**self._scalars(), COVERED: (INT64, (self.covered,))}
        return known | {name: (self.types[name], self.held[name].read(lane)) for name in ready}

    def _keep(self, names: Sequence[str], lane: str, values: Sequence[Operand]) -> None:
        """Lanes past the end are written too: a tile holds whole vectors."""
        for name, value in zip(names, values, strict=True):
            self.held[name].write(lane, value)
