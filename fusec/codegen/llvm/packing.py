"""Functions that copy the elements of many short rows to a buffer, where they lie without gaps, and back.

Rows of two to four elements are put together from whole vectors of columns by shuffles; longer ones are written one by
one. What is written behind the last row has room for `SPARE` bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from fusec.base.kernel_abi import Step
from fusec.codegen.llvm import memory, strided
from fusec.codegen.llvm.counting import repeat
from fusec.codegen.llvm.values import Builder, LinearAddress, Value, integer

SPARE = 32
_SHUFFLED = (2, 3, 4)  # elements of rows that are put together by shuffles
_PIECES = (32, 16, 8, 4)  # bytes of a row that are copied at once


def pack(b: Builder, nbytes: int, steps: Sequence[Step], *, ahead: bool = False) -> str:
    """The function ``void (ptr to, ptr from, i64 long, i64 short, i64 rows, i64 columns)`` for elements of a size.

    long, short: the strides along the columns and along a row, in bytes. steps: what is known of them. ahead: whether
    as many rows behind these are prefetched, for a later call.
    """
    name = f'@"fusec.pack{"_ahead" * ahead}.{nbytes}.{"".join(step.value for step in steps)}"'
    given = "ptr %to, ptr %from, i64 %long, i64 %short, i64 %rows, i64 %columns"
    define(b, name, given, lambda inner: _Packing(inner, nbytes, steps, ahead).write())
    return name


def unpack(b: Builder, nbytes: int) -> str:
    """The function ``void (ptr to, i64 long, i64 short, i64 columns, ptr from, i64 begin, i64 end)``, the inverse.

    It copies the elements from `begin` to `end`, by their numbers in the buffer; `to` is where the first row lies.
    """
    name = f'@"fusec.unpack.{nbytes}"'
    given = "ptr %to, i64 %long, i64 %short, i64 %columns, ptr %from, i64 %begin, i64 %end"
    define(b, name, given, lambda inner: _unpack(inner, nbytes))
    return name


def define(b: Builder, name: str, given: str, write: Callable[[Builder], None]) -> None:
    """Add a function to the module, which is written only once."""
    if ("function", name) in b.routines:
        return
    inner = b.beside()
    write(inner)
    lines = [f"define internal void {name}({given}) noinline nounwind {{", "entry:", *inner.allocas, *inner.lines, "}"]
    b.declare("\n".join(lines))
    b.routines["function", name] = None


def _unpack(b: Builder, nbytes: int) -> None:
    """Copy whole rows in the largest pieces that fit if their elements lie side by side, and otherwise one by one."""
    size = Value("i64", b.let(f"mul i64 %columns, {nbytes}"))
    is_dense = b.compare("icmp eq", Value("i64", "%short"), integer(nbytes))
    for way in _ways(nbytes):
        fits, smaller = b.label("fits"), b.label("smaller")
        b.fork(b.binary("and", is_dense, b.compare("icmp sge", size, integer(way.least))), fits, smaller)
        b.place(fits)
        _unpack_rows(b, nbytes, partial(_copy_row, b, size, way))
        b.line("ret void")
        b.place(smaller)
    _unpack_rows(b, nbytes, None)
    b.line("ret void")


def _unpack_rows(b: Builder, nbytes: int, whole: Callable[[str, str], None] | None) -> None:
    """Copy row after row. whole: copies a complete row."""
    columns, begin, end = (Value("i64", each) for each in ("%columns", "%begin", "%end"))

    def row(first: str) -> None:
        start = Value("i64", first)
        low = b.intrinsic("smax", b.binary("sub", begin, start), integer(0))
        high = b.intrinsic("smin", b.binary("sub", end, start), columns)
        number = b.binary("udiv", start, columns)
        to = b.at("%to", b.let(f"mul i64 {number.text}, %long"))
        source = b.let(f"getelementptr [{nbytes} x i8], ptr %from, i64 {first}")

        def element(column: str) -> None:
            at = b.let(f"getelementptr [{nbytes} x i8], ptr {source}, i64 {column}")
            copy_element(b, nbytes, b.at(to, b.let(f"mul i64 {column}, %short")), at)

        if whole is None:
            repeat(b, low.text, 1, element, high.text)
            return
        labels = [b.label(each) for each in ("whole", "part", "copied")]
        b.fork(b.compare("icmp eq", b.binary("sub", high, low), columns), *labels[:2])
        b.place(labels[0])
        whole(to, source)
        b.jump(labels[2])
        b.place(labels[1])
        repeat(b, low.text, 1, element, high.text)
        b.jump(labels[2])
        b.place(labels[2])

    repeat(b, b.let("sub i64 %begin, " + b.let("urem i64 %begin, %columns")), "%columns", row, "%end")


class _Way(NamedTuple):
    """How rows from some bytes on are copied: in pieces, two of them, or more if rows are long."""

    least: int
    piece: int
    is_long: bool = False


def _ways(nbytes: int) -> list[_Way]:
    """All ways for elements of so many bytes; a row of fewer bytes than one is for is copied in the next one."""
    ways = [_Way(2 * _PIECES[0] + 1, _PIECES[0], True), *(_Way(piece, piece) for piece in _PIECES)]
    return [way for way in ways if way.piece >= nbytes]


def _copy_row(b: Builder, size: Value, way: _Way, to: str, source: str) -> None:
    """Copy a row in pieces, the last of which ends with it."""
    _, piece, is_long = way
    last, kind = b.binary("sub", size, integer(piece)), f"<{piece} x i8>"

    def copy(position: str) -> None:
        at = b.intrinsic("smin", Value("i64", position), last).text if is_long else position
        text = b.let(f"load {kind}, ptr {b.at(source, at)}, align 1")
        b.line(f"store {kind} {text}, ptr {b.at(to, at)}, align 1")

    if is_long:
        repeat(b, "0", piece, copy, size.text)
    else:
        copy("0")
        copy(last.text)


def copy_element(b: Builder, nbytes: int, to: str, source: str) -> None:
    """Copy one element."""
    kind = f"i{8 * nbytes}"
    b.line(f"store {kind} {b.let(f'load {kind}, ptr {source}, align 1')}, ptr {to}, align 1")


class _Packing:
    """Writes the function `pack`."""

    def __init__(self, b: Builder, nbytes: int, steps: Sequence[Step], ahead: bool) -> None:
        self.distance = b.let("mul i64 %rows, %long") if ahead and steps[0] is not Step.ZERO else ""
        self.b, self.nbytes, self.kind = b, nbytes, f"i{8 * nbytes}"
        self.long, self.short = steps
        b.lanes = max(b.options.vector_bits, 128) // (8 * nbytes)

    def write(self) -> None:
        """The blocks."""
        b = self.b
        if self.nbytes <= 8:
            cases = {columns: b.label("by") for columns in _SHUFFLED}
            row = b.label("row")
            enough = b.compare("icmp sge", Value("i64", "%rows"), integer(b.lanes))
            some = b.label("some")
            b.fork(enough, some, row)
            b.place(some)
            targets = " ".join(f"i64 {columns}, label %{label}" for columns, label in cases.items())
            b.line(f"switch i64 %columns, label %{row} [{targets}]")
            for columns, label in cases.items():
                b.place(label)
                self._shuffled(columns)
                b.line("ret void")
            b.place(row)
        if self.short is Step.ZERO and self.nbytes <= SPARE // 2:
            self._repeated()
        else:
            if self.short is Step.UNIT:
                self._copied()
            self._one_by_one()
        b.line("ret void")

    # --- whole vectors ---------------------------------------------------------------------------------------------

    def _shuffled(self, columns: int) -> None:
        """As many rows at once as a vector has elements; the last ones end with the last row."""
        b, vector = self.b, self.b.vector_type(self.kind)
        last = b.let(f"sub i64 %rows, {b.lanes}")

        def rows(position: str) -> None:
            first = b.intrinsic("smin", Value("i64", position), Value("i64", last)).text
            found = self._columns(columns, b.at("%from", b.let(f"mul i64 {first}, %long")))
            to = b.at("%to", b.let(f"mul i64 {first}, {columns * self.nbytes}"))
            for part in range(columns):
                at = b.at(to, part * b.lanes * self.nbytes)
                b.line(f"store {vector} {zipped(b, self.kind, part, found)}, ptr {at}, align 1")

        repeat(b, "0", b.lanes, rows, "%rows")

    def _columns(self, columns: int, base: str) -> list[str]:
        """A vector of each column."""
        if self.short is Step.ZERO:
            return [self._column(base)] * columns
        found = []
        for column in range(columns):
            base = self.b.at(base, "%short") if column else base
            found.append(self._column(base))
        return found

    def _column(self, base: str) -> str:
        b = self.b
        if self.long is Step.UNIT:
            return b.let(f"load {b.vector_type(self.kind)}, ptr {base}, align 1")
        return strided.load(b, LinearAddress(base, "%long"), self.kind)

    # --- row by row ------------------------------------------------------------------------------------------------

    def _repeated(self) -> None:
        """Each element as often as a row has elements, and some more, where the next row is written."""
        b, count = self.b, SPARE // self.nbytes
        size = b.let(f"mul i64 %columns, {self.nbytes}")
        width, b.lanes = b.lanes, count

        def row(is_short: bool, to: str, source: str) -> None:
            element = Value(self.kind, b.let(f"load {self.kind}, ptr {source}, align 1"))
            vector = b.typed(b.spread(element))
            if is_short:
                b.line(f"store {vector}, ptr {to}, align 1")
            else:
                repeat(b, "0", SPARE, lambda at: b.line(f"store {vector}, ptr {b.at(to, at)}, align 1"), size)

        short, long = b.label("short"), b.label("long")
        b.fork(b.compare("icmp sle", Value("i64", size), integer(SPARE)), short, long)
        b.place(short)
        self._rows(partial(row, True), size)
        b.line("ret void")
        b.place(long)
        self._rows(partial(row, False), size)
        b.lanes = width

    def _copied(self) -> None:
        """The largest pieces that a row has; the last one ends with the row."""
        b = self.b
        size = b.let(f"mul i64 %columns, {self.nbytes}")
        for way in _ways(self.nbytes):
            fits, smaller = b.label("fits"), b.label("smaller")
            b.fork(b.compare("icmp sge", Value("i64", size), integer(way.least)), fits, smaller)
            b.place(fits)
            self._rows(partial(_copy_row, b, Value("i64", size), way), size)
            b.line("ret void")
            b.place(smaller)

    def _rows(self, row: Callable[[str, str], None], size: str) -> None:
        """Do something for each row, given its place and its address."""
        b = self.b

        def place(number: str) -> None:
            to, source = (b.let(f"mul i64 {number}, {step}") for step in (size, "%long"))
            source = b.at("%from", source)
            if self.distance:
                memory.fetch(b, b.at(source, self.distance))
            row(b.at("%to", to), source)

        repeat(b, "0", 1, place, "%rows")

    def _one_by_one(self) -> None:
        """Column after column."""
        b = self.b
        size = b.let(f"mul i64 %columns, {self.nbytes}")

        def column(number: str) -> None:
            source = b.at("%from", b.let(f"mul i64 {number}, %short"))
            to = b.let(f"getelementptr [{self.nbytes} x i8], ptr %to, i64 {number}")

            def row(at: str) -> None:
                place = b.at(to, b.let(f"mul i64 {at}, {size}"))
                copy_element(b, self.nbytes, place, b.at(source, b.let(f"mul i64 {at}, %long")))

            repeat(b, "0", 1, row, "%rows")

        repeat(b, "0", 1, column, "%columns")


def zipped(b: Builder, kind: str, part: int, columns: list[str]) -> str:
    """One vector of the elements of rows, from vectors of their columns."""
    count = len(columns)
    places = [divmod(part * b.lanes + lane, count) for lane in range(b.lanes)]
    vector, held = b.vector_type(kind), columns[0]
    if len(set(columns)) == 1:
        return b.shuffle(f"{vector} {held}", [row for row, _ in places])
    for column in range(1, count):
        kept = [row if column == 1 else lane for lane, (row, _) in enumerate(places)]
        order = [b.lanes + row if at == column else keep for keep, (row, at) in zip(kept, places, strict=True)]
        held = b.shuffle(f"{vector} {held}", order, columns[column])
    return held
