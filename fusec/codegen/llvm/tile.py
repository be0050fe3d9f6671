"""Tiles for operands whose consecutive elements lie along another axis than the loop's: transposed on the way in.

Row by row, such an operand costs a cache line for every element. Here bands of rows are taken together: blocks of the
operand go through registers, transposed, into a tile on the stack, from which the rows of the band read consecutive
elements. Those of the next tile are asked for meanwhile: no processor sees them coming, and from memory they would take
three times as long. The last tile of a band ends with its rows, and shares elements with the one before. What does not
fill a band is left to the plain loops, a function of their own.
"""

from __future__ import annotations

from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.codegen.llvm.memory import Lanes, fetch
from fusec.codegen.llvm.nest import LINE, Nest, Row, RowSite, uses_of
from fusec.codegen.llvm.values import TRUE, Builder, Linear, Value, integer
from fusec.ir.loops import Atomic, Program
from fusec.ir.walk import bodies_of, statements

BAND = 32  # rows taken together at most: two cache lines of float32 from every page that a column touches
_BLOCKS = 4  # of columns that a tile has: a row goes on for some lines before the next one
_SIDE = 16  # elements at most along a side of the squares that are turned in registers
_WIDEST = 64  # bits of what shuffles move; wider elements move as several


def transposed_operands(program: Program, layout: Layout) -> tuple[str, ...]:
    """Arrays that are read with a run-time step along the last axis and unit step along the one before it."""
    if layout.ndim < 2 or layout.strips:
        return ()
    loaded = uses_of(program).loaded
    return tuple(
        param.name
        for param in program.arrays
        if param.name in loaded and not param.written and layout.step(param.name)[-2:] == (Step.UNIT, Step.ANY)
    )


def block_size(program: Program, transposed: tuple[str, ...]) -> int:
    """Rows and columns of the square blocks that all these operands can be transposed by; 0 for none."""
    return max((_side(param.dtype.nbytes) for param in program.arrays if param.name in transposed), default=0)


def _side(nbytes: int) -> int:
    """Elements along a side of the squares that are turned: as many as fill a line, but not too many vectors."""
    return min(LINE // nbytes, _SIDE)


Exchange = tuple[int, list[int], list[int]]
"""The distance of vectors that are combined, and the lanes of the two results."""


class TileSite(RowSite):
    """The elements at one position of a row whose transposed operands lie in tiles."""

    def __init__(self, nest: Nest, row: Row, position: str, tiles: dict[str, str], streaming: bool) -> None:
        super().__init__(nest, row, position, streaming)
        self.tiles = tiles

    def element(self, param: str) -> Value:
        """The address of the current elements: in a tile, or in the array."""
        if param not in self.tiles:
            return super().element(param)
        return Value("ptr", "", varying=True, linear=Linear(self.tiles[param], self.nest.arrays[param].dtype.nbytes))


class TiledNest(Nest):
    """Writes the function that works in bands; `plain` is the name of the one with the plain loops."""

    def prepare(self, transposed: tuple[str, ...], block: int, plain: str) -> None:
        """Name the operands that go through tiles, and the rows that a band has a multiple of."""
        self.plain = plain
        self.block = block
        self.columns = max(self.width, _BLOCKS * block)
        self.tiles = {name: self.b.alloca(f"[{BAND * self._pitch(name)} x i8]", LINE) for name in transposed}

    def _pitch(self, name: str) -> int:
        """Bytes from one row of a tile to the next; a line more than it holds, lest rows share cache sets."""
        return self.columns * self.arrays[name].dtype.nbytes + LINE

    def write(self) -> None:
        """Alternate between bands and pieces for the plain loops, until the range is done."""
        b = self.b
        slot = b.alloca("i64")
        test, piece, band, rest, done = (b.label(stem) for stem in ("test", "piece", "band", "rest", "done"))
        b.line(f"store i64 %lo, ptr {slot}")
        b.jump(test)
        b.place(test)
        position = b.read_slot(slot)
        b.fork(b.compare("icmp sge", position, Value("i64", "%hi")), done, piece)
        b.place(piece)
        outer, column = self._coordinates(position)
        rows = self._rows_together(position, outer, column)
        b.fork(b.compare("icmp eq", rows, integer(0)), rest, band)
        b.place(rest)
        end = self._end_of_piece(position, outer, column)
        self._call_plain(position, end)
        b.line(f"store i64 {end.text}, ptr {slot}")
        b.jump(test)
        b.place(band)
        self._band(position, outer, rows)
        following = b.binary("add", position, b.binary("mul", rows, self._extent(self.last)))
        b.line(f"store i64 {following.text}, ptr {slot}")
        b.jump(test)
        b.place(done)
        self._order_stores()
        b.line("ret void")

    def _call_plain(self, start: Value, end: Value) -> None:
        self.b.line(f'call void @"{self.plain}"(i64 {start.text}, i64 {end.text}, ptr %args)')

    # --- where a range begins and ends ---------------------------------------------------------------------------

    def _coordinates(self, position: Value) -> tuple[tuple[Value, ...], Value]:
        """The coordinates along all axes but the last, and along that."""
        b = self.b
        column = b.binary("urem", position, self._extent(self.last))
        row = b.binary("udiv", position, self._extent(self.last))
        outer: list[Value] = []
        for axis in range(self.last - 1, 0, -1):
            outer.append(b.binary("urem", row, self._extent(axis)))
            row = b.binary("udiv", row, self._extent(axis))
        return (row, *reversed(outer)), column

    def _rows_together(self, position: Value, outer: tuple[Value, ...], column: Value) -> Value:
        """Rows of a band that can begin here: a multiple of a block's, none within a row or for too few columns."""
        b, columns = self.b, self._extent(self.last)
        left = b.binary("udiv", b.binary("sub", Value("i64", "%hi"), position), columns)
        if self.last > 1:
            left = b.intrinsic("umin", left, b.binary("sub", self._extent(self.last - 1), outer[-1]))
        rows = b.binary("and", b.intrinsic("umin", left, integer(BAND)), integer(-self.block))
        begins = b.compare("icmp eq", column, integer(0))
        begins = b.binary("and", begins, b.compare("icmp uge", columns, integer(self.width)))
        return b.select(begins, rows, integer(0))

    def _end_of_piece(self, position: Value, outer: tuple[Value, ...], column: Value) -> Value:
        """Where the plain loops stop: at the end of a row begun before, or of what is too little for a band."""
        b, columns, high = self.b, self._extent(self.last), Value("i64", "%hi")
        end_of_row = b.binary("add", position, b.binary("sub", columns, column))
        end_of_plane = high
        if self.last > 1:
            rows = b.binary("sub", self._extent(self.last - 1), outer[-1])
            end_of_plane = b.binary("add", position, b.binary("mul", rows, columns))
        within = b.compare("icmp ne", column, integer(0))
        narrow = b.compare("icmp ult", columns, integer(self.width))
        end = b.select(narrow, high, b.select(within, end_of_row, end_of_plane))
        return b.intrinsic("umin", end, high)

    # --- one band ------------------------------------------------------------------------------------------------

    def _band(self, position: Value, outer: tuple[Value, ...], rows: Value) -> None:
        """Tile after tile of columns, then the columns that fill none."""
        b, columns = self.b, self._extent(self.last)
        sources = {name: self._row_address(self.arrays[name], self.layout.step(name), outer) for name in self.tiles}
        whole = b.binary("and", columns, integer(-self.width))
        whole = b.select(self._is_once(self._describe_row(outer, position)), whole, columns)

        def tile(column: str) -> None:
            left = b.intrinsic("smin", b.binary("sub", whole, Value("i64", column)), integer(self.columns))
            count = b.intrinsic("smax", left, integer(self.width))
            start = b.intrinsic("smin", Value("i64", column), b.binary("sub", whole, count)).text
            for name, source in sources.items():
                self._transpose(name, source, start, rows, count)
            self._loop("0", 1, lambda row: self._tile_row(position, outer, row, start, count), rows.text)

        self._loop("0", self.columns, tile, whole.text)
        ragged, done = b.label("ragged"), b.label("done")
        b.fork(b.compare("icmp eq", whole, columns), done, ragged)
        b.place(ragged)

        def remainder(row: str) -> None:
            start = b.binary("add", position, b.binary("mul", Value("i64", row), columns))
            self._call_plain(b.binary("add", start, whole), b.binary("add", start, columns))

        self._loop("0", 1, remainder, rows.text)
        b.jump(done)
        b.place(done)

    def _is_once(self, row: Row) -> Value:
        """Whether no element is to be computed twice, so that vectors do not overlap: around the caches they would
        share lines.
        """
        has_atomics = any(isinstance(stmt, Atomic) for body in bodies_of(self.program) for stmt in statements(body))
        is_raw = any(param.raw and param.written for param in self.program.arrays)
        return TRUE if has_atomics or is_raw or self.layout.streaming else self.is_in_place(row)

    def _tile_row(self, position: Value, outer: tuple[Value, ...], row: str, column: str, count: Value) -> None:
        """The body for the columns of a tile, so many, in one row of the band."""
        b = self.b
        at = (*outer[:-1], b.binary("add", outer[-1], Value("i64", row)))
        first = b.binary("add", position, b.binary("mul", Value("i64", row), self._extent(self.last)))
        described = self._describe_row(at, first)
        streams = self._aligned_outputs(described, column) if self.layout.streaming else None
        lines = {name: b.at(at, b.let(f"mul i64 {row}, {self._pitch(name)}")) for name, at in self.tiles.items()}
        described = replace(described, streams=streams)

        def vector(number: str) -> None:
            inner, tiles = self._inside(number, count, self.width), {}
            for name, line in lines.items():
                tiles[name] = b.let(f"getelementptr [{self.arrays[name].dtype.nbytes} x i8], ptr {line}, i64 {inner}")
            at = b.let(f"add i64 {column}, {inner}")
            self._body(TileSite(self, described, at, tiles, streaming=streams is not None), Lanes())

        self._loop("0", self.width, vector, count.text)

    def _inside(self, number: str, count: Value, size: int) -> str:
        """Where so many columns of a tile begin: the last ones end with it."""
        return self.b.intrinsic("smin", Value("i64", number), self.b.binary("sub", count, integer(size))).text

    def _aligned_outputs(self, row: Row, column: str) -> Value | None:
        """Whether all outputs of this row begin a cache line here."""
        b, outputs, together = self.b, self._outputs(), Value("i1", "true")
        if not self._fill_lines():
            return None
        for name, dtype in outputs:
            beyond = b.binary("and", b.address_of(row.addresses[name], dtype.nbytes, column), integer(LINE - 1))
            together = b.binary("and", together, b.compare("icmp eq", beyond, integer(0)))
        return together

    # --- transposition -------------------------------------------------------------------------------------------

    def _transpose(self, name: str, source: Value, column: str, rows: Value, count: Value) -> None:
        """Fill so many columns of a tile, square by square."""
        nbytes = self.arrays[name].dtype.nbytes
        size, bits = _side(nbytes), min(8 * nbytes, _WIDEST)
        element, vector = f"[{nbytes} x i8]", f"<{size * 8 * nbytes // bits} x i{bits}>"
        stride = self.arguments.number("stride", name, self.last)
        ahead = self.b.binary("mul", stride, integer(self.columns))

        def block(row: str, number: str) -> None:
            b, inner = self.b, self._inside(number, count, size)
            first = b.binary("mul", b.binary("add", Value("i64", column), Value("i64", inner)), stride)
            start = b.at(source.text, first.text)
            start = b.let(f"getelementptr {element}, ptr {start}, i64 {row}")
            vectors = []
            further = b.at(start, ahead.text)
            for at in range(size):
                fetch(b, further)
                vectors.append(b.let(f"load {vector}, ptr {start}, align {bits // 8}"))
                if at < size - 1:
                    start, further = (b.at(each, stride.text) for each in (start, further))
            target = b.let(f"mul i64 {row}, {self._pitch(name)}")
            target = b.at(self.tiles[name], target)
            target = b.let(f"getelementptr {element}, ptr {target}, i64 {inner}")
            for at, text in enumerate(self._turned(vectors, vector, 8 * nbytes)):
                to = b.at(target, at * self._pitch(name))
                b.line(f"store {vector} {text}, ptr {to}, align {bits // 8}")

        def blocks(row: str) -> None:
            self._loop("0", size, lambda number: block(row, number), count.text)

        self._loop("0", size, blocks, rows.text)

    def _turned(self, vectors: list[str], vector: str, bits: int) -> list[str]:
        """The transpose of a square of vectors, as many as each has elements of so many bits, in order of columns."""
        size = len(vectors)
        numbers = [[(row, column) for column in range(size)] for row in range(size)]
        for step in exchanges(size, 128 // bits):
            vectors = exchanged(self.b, vectors, vector, _in_parts(step, max(bits // _WIDEST, 1)))
            distance, low, high = step
            for at in (each for each in range(size) if not each & distance):
                both = numbers[at] + numbers[at | distance]
                numbers[at], numbers[at | distance] = ([both[lane] for lane in order] for order in (low, high))
        columns = {elements[0][1]: vector for elements, vector in zip(numbers, vectors, strict=True)}
        return [columns[column] for column in range(size)]


def exchanged(b: Builder, vectors: list[str], kind: str, step: Exchange) -> list[str]:
    """New vectors in place of each two."""
    found, (distance, low, high) = vectors.copy(), step
    for at in (each for each in range(len(vectors)) if not each & distance):
        first, second = f"{kind} {vectors[at]}", vectors[at | distance]
        found[at], found[at | distance] = b.shuffle(first, low, second), b.shuffle(first, high, second)
    return found


def _in_parts(step: Exchange, parts: int) -> Exchange:
    """The same exchange of elements that so many lanes hold."""
    distance, *orders = step
    low, high = ([lane * parts + part for lane in order for part in range(parts)] for order in orders)
    return distance, low, high


def exchanges(size: int, chunk: int) -> list[Exchange]:
    """Steps of a transpose.

    First, elements are interleaved within chunks of 128 bits, then whole chunks are exchanged: shuffles that processors
    have as single instructions.
    """
    steps, together = [], 1
    while together < chunk:
        halves = []
        for start in (0, chunk // 2):
            order = []
            for base in range(0, size, chunk):
                for at in range(base + start, base + start + chunk // 2, together):
                    order += [*range(at, at + together), *range(size + at, size + at + together)]
            halves.append(order)
        steps.append((together, halves[0], halves[1]))
        together *= 2
    distance = chunk
    while distance < size:
        halves = []
        for odd in (0, 1):
            picked = range(odd * chunk, 2 * size, 2 * chunk)
            halves.append([lane for base in picked for lane in range(base, base + chunk)])
        steps.append((distance, halves[0], halves[1]))
        distance *= 2
    return steps
