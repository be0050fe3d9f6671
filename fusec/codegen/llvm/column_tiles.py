"""Tiles of columns on the stack, for arrays whose rows do not lie in memory as vectors read them.

Row by row, an array whose columns have their elements side by side would cost a cache line for every element, in every
walk. So a tile of it is turned on the way in, or on the way out (`fusec.codegen.llvm.turning`). If the last axis is
short, it and the axis before it are walked as one, and an array that does not lie so is copied
(`fusec.codegen.llvm.packing`).
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.arguments.layouts import SHORT
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.codegen.llvm import packing, turning
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.nest import LINE, Row
from fusec.codegen.llvm.reduction import ReductionNest
from fusec.codegen.llvm.values import Builder, Value, integer
from fusec.ir import reductions

_ROOM = 1 << 14  # bytes of the arrays of a tile
_ROOM_BACK = 1 << 13  # bytes if the tile is also turned back
_ROOM_AHEAD = 1 << 12  # bytes if the next tile is prefetched
_MOST = 1 << 16  # bytes of the stack for these arrays


class TilesNest(ReductionNest):
    """Loops over columns, in tiles. In those of some arrays, the elements of a row lie side by side."""

    tile: int  # columns at most

    def __init__(
        self, reduction: reductions.ReductionIR, layout: Layout, axis: int, builder: Builder, arguments: KernelSlots
    ) -> None:
        super().__init__(reduction, layout, axis, builder, arguments)
        self.packed = self._to_pack() if layout.strips else {}
        self.turned = self._to_turn() if self.width > 1 and not layout.strips else []
        self.places: dict[str, str] = {}
        self.pitch = integer(0)  # cells from one row of a tile to the next
        self.most = integer(0)  # columns of a tile

    def _to_pack(self) -> dict[str, tuple[Step, ...]]:
        """Arrays that are packed, with their steps along the two axes that are walked as one."""
        steps = {name: self.layout.step(name)[-2:] for name in sorted(self.inner)}
        self.inner = {name: Step.ZERO if set(pair) == {Step.ZERO} else Step.UNIT for name, pair in steps.items()}
        self.last = self.layout.ndim - 2
        found = {name: pair for name, pair in steps.items() if self.inner[name] is Step.UNIT}
        return {name: pair for name, pair in found.items() if pair != (Step.DENSE, Step.UNIT)}

    def _to_turn(self) -> list[str]:
        stored = {
            name for each in self.reduction.stages for name in self.arrays if reductions.is_stored(each.body, name)
        }
        found: list[str] = []
        for name in sorted(self.inputs & self.inner.keys()):
            array, is_column = self.arrays[name], self.layout.step(name)[self.axis] is Step.UNIT
            fits = reductions.ROUNDS * self.width * self._nbytes([*found, name]) <= _MOST
            if self.inner[name] is Step.ANY and is_column and array.dtype.nbytes in turning.SIZES and fits:
                found += [name] if name in stored or not array.written else []
        return found

    def _nbytes(self, names: Sequence[str]) -> int:
        return sum(self.arrays[name].dtype.nbytes for name in names)

    def _make_room(self) -> None:
        """Room for the tiles: the more rows there are, the fewer columns they have."""
        b, width = self.b, self.width
        self.pitch = self.most = integer(self.tile)
        names = [*self.turned, *self.packed]
        if not names:
            return
        more = 2 * SHORT if self.packed else 0  # more columns: tiles begin and end with whole rows of the short axis
        room = _ROOM
        if self.turned and self.layout.streaming:
            room = _ROOM_AHEAD  # the next tile arrives while this one is worked on
        elif any(self.arrays[name].written for name in self.turned):
            room = _ROOM_BACK  # the tile, its source and its destination fit the first cache
        cells = max(room // self._nbytes(names), reductions.ROUNDS * (width + more)) // width * width
        for name in names:
            self.places[name] = b.alloca(f"[{cells * self._nbytes([name]) + packing.SPARE} x i8]", LINE)
            self.inner[name] = Step.UNIT
        columns = b.binary("udiv", integer(cells), b.intrinsic("umin", self.count, integer(reductions.ROUNDS)))
        self.pitch = b.intrinsic("umin", b.binary("and", columns, integer(-width)), integer(self.tile + more))
        self.most = b.binary("sub", self.pitch, integer(more))

    # --- where things are ------------------------------------------------------------------------------------------

    def _extent(self, axis: int) -> Value:
        """Of the two last axes together, if they are walked as one."""
        found = super()._extent(axis)
        return self.b.binary("mul", found, self._short()) if self.layout.strips and axis == self.last else found

    def _short(self) -> Value:
        return self.arguments.number("extent", "", self.last + 1)

    def _step(self, name: str, axis: int) -> Value:
        """Bytes from one element of an array to the next one along an axis."""
        match self.layout.step(name)[axis]:
            case Step.ZERO:
                return integer(0)
            case Step.UNIT:
                return integer(self._nbytes([name]))
            case Step.ANY | Step.DENSE:
                return self.arguments.number("stride", name, axis)

    def _stride(self, name: str) -> Value:
        """Bytes from one row to the next, of a tile if there is one."""
        if name in self.places:
            return self.b.binary("mul", self.pitch, integer(self._nbytes([name])))
        return self._step(name, self.axis)

    def _column_step(self, name: str) -> Value:
        """Bytes from one column of an array to the next one."""
        return self.arguments.number("stride", name, self.last)

    # --- in and out ------------------------------------------------------------------------------------------------

    def _once_in_tiles(self, row: Row, start: Value, end: Value, rows: Value) -> None:
        """Fill the tiles of inputs that have the same elements in all tiles between two columns."""
        for name in self._same_in_all():
            most = self.b.intrinsic("umin", self.b.binary("sub", end, start), self.most)
            self._pack(name, row, integer(0), self.b.binary("add", most, self._short()), rows)

    def _same_in_all(self) -> list[str]:
        """Inputs that are repeated along the longer of two axes that are walked as one."""
        return [name for name, (long, _) in self.packed.items() if long is Step.ZERO and not self.arrays[name].written]

    def _in_tiles(self, row: Row, start: str, end: Value, rows: Value) -> Row:
        """Fill the tiles of other inputs. Returns the row that lies in tiles."""
        b, addresses = self.b, dict(row.addresses)
        first = Value("i64", start)
        if self.packed:
            first = b.binary("sub", first, b.binary("urem", first, self._short()))
        for name, place in self.places.items():
            before = b.binary("mul", first, integer(-self._nbytes([name])))
            addresses[name] = Value("ptr", b.at(place, before.text))
            if self.arrays[name].written or name in self._same_in_all():
                continue
            if name in self.packed:
                self._pack(name, row, first, end, rows)
            else:
                given = self._place(name), self._stride(name), self._at(name, row, first), self._column_step(name), rows
                function = turning.turn(b, self._nbytes([name]), ahead=self.layout.streaming)
                self._call(function, *given, b.binary("sub", end, first))
        return replace(row, addresses=addresses)

    def _pack(self, name: str, row: Row, first: Value, end: Value, rows: Value) -> None:
        """Copy all rows of a tile."""
        b, short, steps = self.b, self._short(), self.packed[name]
        function = packing.pack(b, self._nbytes([name]), steps, ahead=True)
        long = integer(0) if steps[0] is Step.ZERO else self._column_step(name)
        begin = b.binary("mul", b.binary("udiv", first, short), long)
        source = b.at(row.addresses[name].text, begin.text)
        count = b.binary("sub", b.binary("add", end, b.binary("sub", short, integer(1))), first)
        inside = integer(0) if steps[1] is Step.ZERO else self.arguments.number("stride", name, self.last + 1)

        def one_row(number: str) -> None:
            at, place = Value("i64", number), self._place(name).text
            to = Value("ptr", b.at(place, b.binary("mul", at, self._stride(name)).text))
            come = Value("ptr", b.at(source, b.binary("mul", at, self._step(name, self.axis)).text))
            self._call(function, to, come, long, inside, b.binary("udiv", count, short), short)

        self._loop("0", 1, one_row, rows.text)

    def _unpack(self, name: str, row: Row, start: Value, end: Value, rows: Value) -> None:
        """Copy the columns from `start` to `end` of all rows back."""
        b, short = self.b, self._short()
        function = packing.unpack(b, self._nbytes([name]))
        number = b.binary("udiv", start, short)
        first = b.binary("mul", number, short)
        long = self._column_step(name)
        inside = self.arguments.number("stride", name, self.last + 1)
        base = b.at(row.addresses[name].text, b.binary("mul", number, long).text)
        span = b.binary("sub", start, first), b.binary("sub", end, first)

        def one_row(place: str) -> None:
            at = Value("i64", place)
            to = Value("ptr", b.at(base, b.binary("mul", at, self._step(name, self.axis)).text))
            source = Value("ptr", b.at(self._place(name).text, b.binary("mul", at, self._stride(name)).text))
            self._call(function, to, long, inside, short, source, *span)

        self._loop("0", 1, one_row, rows.text)

    def _out_of_tiles(self, row: Row, start: str, end: Value, rows: Value) -> None:
        """Store the tiles of outputs."""
        first = Value("i64", start)
        for name in self.places:
            if name in self.packed and self.arrays[name].written:
                self._unpack(name, row, first, end, rows)
            elif self.arrays[name].written:
                given = self._at(name, row, first), self._column_step(name), self._place(name), self._stride(name), rows
                function = turning.turn_back(self.b, self._nbytes([name]))
                self._call(function, *given, self.b.binary("sub", end, first))

    def _place(self, name: str) -> Value:
        return Value("ptr", self.places[name])

    def _at(self, name: str, row: Row, column: Value) -> Value:
        """The address of the first element of a column in an array."""
        before = self.b.binary("mul", column, self._column_step(name))
        return Value("ptr", self.b.at(row.addresses[name].text, before.text))

    def _call(self, function: str, *given: Value) -> None:
        self.b.line(f"call void {function}({', '.join(map(self.b.typed, given))})")
