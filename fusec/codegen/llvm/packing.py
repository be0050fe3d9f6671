"""Functions that copy the elements of many short rows to a buffer, where they lie without gaps, and back.

Rows without gaps are copied in pieces, the whole row if it may be. Others of two to four elements are put together from
whole vectors of columns by shuffles; longer ones are written one by one. What is written behind the last row has room
for `SPARE` bytes.
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
_PIECES = (64, 32, 16, 8, 4, 2)  # bytes of a row that are copied at once


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
    """Copy whole rows, and before and behind them the elements of rows of which not all are wanted."""
    columns, begin, end = (Value("i64", each) for each in ("%columns", "%begin", "%end"))
    size = b.let(f"mul i64 %columns, {nbytes}")
    low = b.binary("udiv", b.binary("add", begin, b.binary("sub", columns, integer(1))), columns)
    high = b.binary("udiv", end, columns)
    first, last = (b.binary("mul", each, columns) for each in (low, high))
    _unpack_part(b, nbytes, begin, b.intrinsic("smin", first, end))
    whole, behind, done = (b.label(each) for each in ("whole", "behind", "done"))
    b.fork(b.compare("icmp slt", low, high), whole, behind)
    b.place(whole)
    number = b.binary("sub", high, low).text
    to, source = b.at("%to", b.let(f"mul i64 {low.text}, %long")), b.at("%from", b.let(f"mul i64 {low.text}, {size}"))
    rows = _CopiedRows(b, _Strided(to, "%long"), _Strided(source, size), number)
    rows.copied(nbytes, size, "%short", behind)
    rows.each(
        lambda to, source: _copy_elements(b, nbytes, _Strided(to, "%short"), _Strided(source, str(nbytes)), "%columns")
    )
    b.jump(behind)
    b.place(behind)
    b.fork(b.compare("icmp sle", low, high), some := b.label("some"), done)
    b.place(some)
    _unpack_part(b, nbytes, last, end)
    b.jump(done)
    b.place(done)
    b.line("ret void")


def _unpack_part(b: Builder, nbytes: int, begin: Value, end: Value) -> None:
    """Copy some elements of one row."""
    part, copied = b.label("part"), b.label("copied")
    b.fork(b.compare("icmp slt", begin, end), part, copied)
    b.place(part)
    row, column = (b.binary(op, begin, Value("i64", "%columns")).text for op in ("udiv", "urem"))
    to = b.at(b.at("%to", b.let(f"mul i64 {row}, %long")), b.let(f"mul i64 {column}, %short"))
    source = b.at("%from", b.let(f"mul i64 {begin.text}, {nbytes}"))
    _copy_elements(b, nbytes, _Strided(to, "%short"), _Strided(source, str(nbytes)), b.binary("sub", end, begin).text)
    b.jump(copied)
    b.place(copied)


class _Strided(NamedTuple):
    """Where something begins, and how many bytes are between it and the next."""

    base: str
    step: str

    def at(self, b: Builder, number: str) -> str:
        """The address of one."""
        return b.at(self.base, b.let(f"mul i64 {number}, {self.step}"))


def _copy_elements(b: Builder, nbytes: int, to: _Strided, source: _Strided, count: str) -> None:
    """Copy elements one by one."""
    repeat(b, "0", 1, lambda number: copy_element(b, nbytes, to.at(b, number), source.at(b, number)), count)


class _CopiedRows(NamedTuple):
    """Rows to be copied, at least one.

    spills: whether as much as a piece may be written behind each of them. ahead: tells of where a row lies before it
    is copied.
    """

    b: Builder
    to: _Strided
    source: _Strided
    total: str
    spills: bool = False
    ahead: Callable[[str], None] = lambda _: None

    def each(self, row: Callable[[str, str], None], start: str = "0", end: str = "", together: int = 1) -> None:
        """Do something for each row, given its two places. together: rows of which the addresses are found at once."""
        b = self.b

        def group(number: str) -> None:
            to, source = self.to.at(b, number), self.source.at(b, number)
            for at in range(together):
                if at:
                    to, source = b.at(to, self.to.step), b.at(source, self.source.step)
                self.ahead(source)
                row(to, source)

        repeat(b, start, together, group, end or self.total)

    def copied(self, nbytes: int, size: str, short: str, done: str) -> None:
        """Copy rows without gaps in the largest pieces that they have, and go to `done`; place what is for others."""
        b, bytes_of_row = self.b, Value("i64", size)
        is_dense = b.compare("icmp eq", Value("i64", short), integer(nbytes))
        for piece in (2 * _PIECES[0], *(each for each in _PIECES if each >= nbytes)):
            fits, smaller = b.label("fits"), b.label("smaller")
            enough = b.compare("icmp sgt", bytes_of_row, integer(piece // 2))
            b.fork(b.binary("and", is_dense, enough), fits, smaller)
            b.place(fits)
            if piece > _PIECES[0]:
                self.each(partial(_copy_long, b, size, SPARE))
            else:
                self._in_pieces(bytes_of_row, piece, piece > 2 * nbytes)
            b.jump(done)
            b.place(smaller)

    def _in_pieces(self, size: Value, piece: int, halves: bool) -> None:
        """Copy each row as one piece if it is one, or may be read with what is behind; others in two, which overlap.

        Behind a row is the next one, or the one before, if there is one.
        """
        b, count = self.b, self.total
        is_whole = b.compare("icmp eq", size, integer(piece))
        first, last = integer(0), b.select(is_whole, Value("i64", count), integer(0))
        if self.spills and halves:
            step = Value("i64", self.source.step)
            distance = b.intrinsic("smax", step, b.binary("sub", integer(0), step))
            is_read = b.compare("icmp sge", b.binary("add", distance, size), integer(piece))
            is_back = b.cast("zext", b.compare("icmp slt", step, integer(0)), "i64")
            end = b.binary("sub", Value("i64", count), b.binary("xor", is_back, integer(1)))
            first = b.select(is_whole, first, b.select(is_read, is_back, first))
            last = b.select(is_whole, last, b.select(is_read, end, last))
        some = b.binary("and", b.binary("sub", last, first), integer(-4))
        fours = b.binary("add", first, some).text
        if halves:
            self._if_any("0", first.text, partial(_copy_ends, b, size, piece // 2))
        self._if_any(first.text, fours, partial(_copy_piece, b, piece), 4)
        self._if_any(fours, last.text, partial(_copy_piece, b, piece))
        if halves:
            self._if_any(last.text, count, partial(_copy_ends, b, size, piece // 2))

    def _if_any(self, start: str, end: str, row: Callable[[str, str], None], together: int = 1) -> None:
        b, some, after = self.b, self.b.label("some"), self.b.label("after")
        b.fork(b.compare("icmp slt", Value("i64", start), Value("i64", end)), some, after)
        b.place(some)
        self.each(row, start, end, together)
        b.jump(after)
        b.place(after)


def _copy_long(b: Builder, size: str, piece: int, to: str, source: str) -> None:
    """Copy a row of more than a piece, the last of which ends with it."""
    last = b.binary("sub", Value("i64", size), integer(piece))

    def copy(position: str) -> None:
        at = b.intrinsic("smin", Value("i64", position), last).text
        _copy_piece(b, piece, b.at(to, at), b.at(source, at))

    repeat(b, "0", piece, copy, size)


def _copy_ends(b: Builder, size: Value, piece: int, to: str, source: str) -> None:
    """Copy a row of one to two pieces."""
    last = b.binary("sub", size, integer(piece)).text
    _copy_piece(b, piece, to, source)
    _copy_piece(b, piece, b.at(to, last), b.at(source, last))


def _copy_piece(b: Builder, piece: int, to: str, source: str) -> None:
    """Copy some bytes."""
    text = b.let(f"load <{piece} x i8>, ptr {source}, align 1")
    b.line(f"store <{piece} x i8> {text}, ptr {to}, align 1")


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
        if self.nbytes <= 8 and self.short is not Step.UNIT:
            self._in_vectors()
        size = b.let(f"mul i64 %columns, {self.nbytes}")
        if self.short is Step.ZERO and self.nbytes <= SPARE // 2:
            self._repeated(size)
        else:
            if self.short is Step.UNIT:
                done = b.label("done")
                self._rows(size).copied(self.nbytes, size, str(self.nbytes), done)
                self._one_by_one(size)
                b.jump(done)
                b.place(done)
            else:
                self._one_by_one(size)
        b.line("ret void")

    def _in_vectors(self) -> None:
        """Return when rows of few elements are copied; place what is for others."""
        b = self.b
        cases = {columns: b.label("by") for columns in _SHUFFLED}
        row, some = b.label("row"), b.label("some")
        b.fork(b.compare("icmp sge", Value("i64", "%rows"), integer(b.lanes)), some, row)
        b.place(some)
        targets = " ".join(f"i64 {columns}, label %{label}" for columns, label in cases.items())
        b.line(f"switch i64 %columns, label %{row} [{targets}]")
        for columns, label in cases.items():
            b.place(label)
            self._shuffled(columns)
            b.line("ret void")
        b.place(row)

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

    def _rows(self, size: str) -> _CopiedRows:
        b, walk = self.b, _Strided("%from", "%long")

        def fetch(source: str) -> None:
            if self.distance:
                memory.fetch(b, b.at(source, self.distance))

        return _CopiedRows(b, _Strided("%to", size), walk, "%rows", spills=True, ahead=fetch)

    def _repeated(self, size: str) -> None:
        """Each element as often as a row has elements, and some more, where the next row is written."""
        b, count = self.b, SPARE // self.nbytes
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
        self._rows(size).each(partial(row, True))
        b.line("ret void")
        b.place(long)
        self._rows(size).each(partial(row, False))
        b.lanes = width

    def _one_by_one(self, size: str) -> None:
        """Column after column."""
        b = self.b

        def column(number: str) -> None:
            source = b.at("%from", b.let(f"mul i64 {number}, %short"))
            to = b.let(f"getelementptr [{self.nbytes} x i8], ptr %to, i64 {number}")
            _copy_elements(b, self.nbytes, _Strided(to, size), _Strided(source, "%long"), "%rows")

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
