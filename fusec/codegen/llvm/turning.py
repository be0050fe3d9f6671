"""Functions that turn columns, whose elements lie side by side, into rows where the columns do, and back.

Blocks of four elements of each column are turned in registers; columns of two to four elements without gaps are taken
apart, and put together, by shuffles of whole vectors. The last block ends with the last row and the last column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from fusec.codegen.llvm import memory, strided
from fusec.codegen.llvm.counting import repeat
from fusec.codegen.llvm.packing import copy_element, define, zipped
from fusec.codegen.llvm.tile import exchanged, exchanges
from fusec.codegen.llvm.values import Builder, LinearAddress, Value, integer, joined

SIZES = (1, 2, 4, 8)  # bytes of elements that are turned
_HIGH = 4  # elements of a column that are moved at once
_NEAR = 4  # elements from one column to the next up to which whole vectors of rows are loaded
_LINE = 64  # bytes
_CLOSE = 4 * _LINE  # bytes from one column to the next up to which all lines between them are prefetched
_SHUFFLED = (2, 3, 4)  # rows of columns that are taken apart by shuffles


def turn(b: Builder, nbytes: int, *, ahead: bool = False) -> str:
    """The function ``void (ptr to, i64 pitch, ptr from, i64 stride, i64 rows, i64 columns)`` for elements of a size.

    pitch: bytes from one row to the next at `to`. stride: bytes from one column to the next at `from`. ahead: whether
    as many columns behind these are prefetched, for the next call.
    """
    name = f'@"fusec.turn{"_ahead" * ahead}.{nbytes}"'
    given = "ptr %to, i64 %pitch, ptr %from, i64 %stride, i64 %rows, i64 %columns"
    define(b, name, given, lambda inner: _Turning(inner, nbytes, "%from", "%to", ahead).turn())
    return name


def turn_back(b: Builder, nbytes: int) -> str:
    """The function ``void (ptr to, i64 stride, ptr from, i64 pitch, i64 rows, i64 columns)``, the inverse."""
    name = f'@"fusec.turn_back.{nbytes}"'
    given = "ptr %to, i64 %stride, ptr %from, i64 %pitch, i64 %rows, i64 %columns"
    define(b, name, given, lambda inner: _Turning(inner, nbytes, "%to", "%from").turn_back())
    return name


class _Turning:
    """Writes a function. columns, rows: where those lie that have their elements side by side."""

    def __init__(self, b: Builder, nbytes: int, columns: str, rows: str, ahead: bool = False) -> None:
        self.ahead = ahead
        self.b, self.nbytes, self.kind, self.columns, self.rows = b, nbytes, f"i{8 * nbytes}", columns, rows
        b.lanes = max(b.options.vector_bits, 128) // (8 * nbytes)
        self.vector, self.high = b.vector_type(self.kind), min(_HIGH, b.lanes)

    def turn(self) -> None:
        """From columns to rows."""
        b, high = self.b, self.high
        self._few(lambda column, row: copy_element(b, self.nbytes, self._cell(column, row), self._element(column, row)))
        self._dense(self._apart)
        is_near = b.compare("icmp ult", Value("i64", b.let("sub i64 %stride, 1")), integer(_NEAR * self.nbytes))
        is_high = b.compare("icmp sge", Value("i64", "%rows"), integer(high))
        self._if(b.binary("and", is_high, b.invert(is_near)), lambda: self._over_blocks(high, self._load))
        self._over_blocks(1, self._load_row)
        b.line("ret void")

    def turn_back(self) -> None:
        """From rows to columns."""
        b, high = self.b, self.high
        self._few(lambda column, row: copy_element(b, self.nbytes, self._element(column, row), self._cell(column, row)))
        self._dense(self._together)
        while high > 1:
            is_high = b.compare("icmp sge", Value("i64", "%rows"), integer(high))
            self._if(is_high, partial(self._over_blocks, high, partial(self._store, high)))
            high //= 2
        self._over_blocks(1, partial(self._store, 1))
        b.line("ret void")

    # --- cases -----------------------------------------------------------------------------------------------------

    def _if(self, condition: Value, body: Callable[[], None]) -> None:
        """All that there is to do, under a condition."""
        b = self.b
        inside, others = b.label("case"), b.label("others")
        b.fork(condition, inside, others)
        b.place(inside)
        body()
        b.line("ret void")
        b.place(others)

    def _few(self, element: Callable[[str, str], None]) -> None:
        """Fewer columns than a vector has lanes."""

        def column(number: str) -> None:
            repeat(self.b, "0", 1, lambda row: element(number, row), "%rows")

        is_few = self.b.compare("icmp slt", Value("i64", "%columns"), integer(self.b.lanes))
        self._if(is_few, lambda: repeat(self.b, "0", 1, column, "%columns"))

    def _dense(self, body: Callable[[int, str], None]) -> None:
        """Columns of few elements, without gaps."""
        b = self.b
        dense, others = b.label("dense"), b.label("others")
        size = Value("i64", b.let(f"mul i64 %rows, {self.nbytes}"))
        b.fork(b.compare("icmp eq", size, Value("i64", "%stride")), dense, others)
        b.place(dense)
        labels = {rows: b.label("by") for rows in _SHUFFLED}
        targets = " ".join(f"i64 {rows}, label %{label}" for rows, label in labels.items())
        b.line(f"switch i64 %rows, label %{others} [{targets}]")
        for rows, label in labels.items():
            b.place(label)
            self._in_vectors(partial(body, rows))
            b.line("ret void")
        b.place(others)

    def _in_vectors(self, body: Callable[[str], None]) -> None:
        """Vectors of columns, the last of which ends with the last column."""

        def vector(column: str) -> None:
            if self.ahead:
                self._ask_ahead(column)
            body(column)

        self._blocks("%columns", self.b.lanes, vector)

    def _ask_ahead(self, column: str) -> None:
        """Prefetch the lines of a vector of columns that is turned later; at most one line if columns are far apart."""
        b = self.b
        at = self._element(b.let(f"add i64 {column}, %columns"), "0")
        is_near = b.compare("icmp ule", Value("i64", "%stride"), integer(_CLOSE))
        size = b.select(is_near, Value("i64", b.let(f"mul i64 %stride, {b.lanes}")), integer(_LINE))
        repeat(b, "0", _LINE, lambda offset: memory.fetch(b, b.at(at, offset)), size.text)

    def _over_blocks(self, high: int, body: Callable[[str, str], None]) -> None:
        """Blocks of so many rows of each vector of columns."""
        self._in_vectors(lambda column: self._blocks("%rows", high, partial(body, column)))

    def _blocks(self, end: str, size: int, body: Callable[[str], None]) -> None:
        b, last = self.b, Value("i64", self.b.let(f"sub i64 {end}, {size}"))
        repeat(b, "0", size, lambda at: body(b.intrinsic("smin", Value("i64", at), last).text), end)

    # --- blocks ----------------------------------------------------------------------------------------------------

    def _element(self, column: str, row: str) -> str:
        """Its address where columns have their elements side by side."""
        b = self.b
        at = b.at(self.columns, b.let(f"mul i64 {column}, %stride"))
        return b.let(f"getelementptr [{self.nbytes} x i8], ptr {at}, i64 {row}")

    def _cell(self, column: str, row: str) -> str:
        """Its address where rows have."""
        b = self.b
        at = b.at(self.rows, b.let(f"mul i64 {row}, %pitch"))
        return b.let(f"getelementptr [{self.nbytes} x i8], ptr {at}, i64 {column}")

    def _lines(self, cell: str, count: int) -> Iterator[str]:
        """The addresses in so many rows from a cell on."""
        for row in range(count):
            cell = self.b.at(cell, "%pitch") if row else cell
            yield cell

    def _load_row(self, column: str, row: str) -> None:
        b = self.b
        text = strided.load(b, LinearAddress(self._element(column, row), "%stride"), self.kind)
        b.line(f"store {self.vector} {text}, ptr {self._cell(column, row)}, align {self.nbytes}")

    def _load(self, column: str, row: str) -> None:
        """Before it is turned, each vector of a block holds one column of as many as the block has rows."""
        b, high = self.b, self.high
        at, columns = self._element(column, row), []
        for lane in range(b.lanes):
            at = b.at(at, "%stride") if lane else at
            columns.append(b.let(f"load <{high} x {self.kind}>, ptr {at}, align {self.nbytes}"))
        vectors = self._turned([joined(b, columns[first::high], self.kind, high) for first in range(high)])
        for cell, text in zip(self._lines(self._cell(column, row), high), vectors, strict=True):
            b.line(f"store {self.vector} {text}, ptr {cell}, align {self.nbytes}")

    def _store(self, high: int, column: str, row: str) -> None:
        b, cell = self.b, self._cell(column, row)
        loads = [f"load {self.vector}, ptr {each}, align {self.nbytes}" for each in self._lines(cell, high)]
        vectors, at = self._turned([b.let(each) for each in loads]), self._element(column, row)
        for lane in range(b.lanes):
            at = b.at(at, "%stride") if lane else at
            first = lane // high * high
            text = b.shuffle(f"{self.vector} {vectors[lane % high]}", range(first, first + high))
            b.line(f"store <{high} x {self.kind}> {text}, ptr {at}, align {self.nbytes}")

    def _turned(self, vectors: list[str]) -> list[str]:
        """The transpose of squares of as many lanes as there are vectors."""
        count, order = len(vectors), [0]
        for step in exchanges(self.b.lanes, count)[: count.bit_length() - 1]:
            vectors = exchanged(self.b, vectors, self.vector, step)
            order = [2 * at + odd for odd in (0, 1) for at in order]
        return [vectors[at] for at in order]

    # --- columns without gaps --------------------------------------------------------------------------------------

    def _apart(self, rows: int, column: str) -> None:
        """Some rows of a vector of columns, of whole vectors of elements."""
        b, at = self.b, self._element(column, "0")
        places = [b.at(at, part * b.lanes * self.nbytes) for part in range(rows)]
        parts = [b.let(f"load {self.vector}, ptr {each}, align {self.nbytes}") for each in places]
        for row, cell in enumerate(self._lines(self._cell(column, "0"), rows)):
            b.line(f"store {self.vector} {self._every(parts, row)}, ptr {cell}, align {self.nbytes}")

    def _every(self, parts: list[str], first: int) -> str:
        """Every so many-th element of as many vectors, from one on."""
        b, held = self.b, parts[0]
        places = [divmod(first + lane * len(parts), b.lanes) for lane in range(b.lanes)]
        for part in range(1, len(parts)):
            kept = [at if part == 1 else lane for lane, (_, at) in enumerate(places)]
            order = [b.lanes + at if of == part else keep for keep, (of, at) in zip(kept, places, strict=True)]
            held = b.shuffle(f"{self.vector} {held}", order, parts[part])
        return held

    def _together(self, rows: int, column: str) -> None:
        """The opposite."""
        b, lines = self.b, self._lines(self._cell(column, "0"), rows)
        found = [b.let(f"load {self.vector}, ptr {cell}, align {self.nbytes}") for cell in lines]
        at = self._element(column, "0")
        for part in range(rows):
            place = b.at(at, part * b.lanes * self.nbytes)
            b.line(f"store {self.vector} {zipped(b, self.kind, part, found)}, ptr {place}, align {self.nbytes}")
