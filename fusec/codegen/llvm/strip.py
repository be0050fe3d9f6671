"""Spaces whose last axis is short: it and the axis before it are walked as one, in strips that stay in the first cache.

Vectors run over the elements of a strip wherever rows end. An operand that has another layout, such as one that is
repeated for all elements of a row, or for all rows, is copied to a buffer in this layout; one whose elements are all
the same distance apart is read where it is. A result of another layout is copied from a buffer.

A body may ask for coordinates: the row of an element, and its place in the row. Both repeat with the length of a row,
so they are read from two tables, beginning at the place where the vector begins in its row.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.codegen.llvm import packing
from fusec.codegen.llvm.agreement import comparisons_of
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.counting import repeat
from fusec.codegen.llvm.nest import LINE, Row
from fusec.codegen.llvm.remainder import RemainderNest
from fusec.codegen.llvm.values import Builder, Value, integer
from fusec.ir.expr import Expr
from fusec.ir.loops import ArrayParam, Moved, Program, Query, Shuffle
from fusec.ir.walk import bodies_of, expressions, roots_of, statements

_BYTES = 1 << 12  # of a buffer, that hold a strip
_ALL_BYTES = 1 << 14  # of all buffers, as far as they have _LEAST_BYTES
_LEAST_BYTES = 1 << 10
_LONGEST = 64  # elements of a row; see `fusec.arguments.layouts`
_WHOLE = 64  # elements that a strip has a multiple of


def in_strips(program: Program, ndim: int) -> bool:
    """Whether a program gains by strips.

    It does if lanes do not read each other's values, no element is addressed by its distance from another, and nothing
    is chosen by the position in a row. Nearly all vectors of one row would agree about such a choice, see
    `fusec.codegen.llvm.agreement`.
    """
    if any(isinstance(stmt, Shuffle) for stmt in statements(program.body)):
        return False
    return not any(isinstance(expr, Moved) for expr in _expressions(program)) and not comparisons_of(program, ndim)


def in_rows(layout: Layout) -> Layout:
    """A layout in strips as one that is walked row by row; any other layout as it is."""
    if not layout.strips:
        return layout
    steps = []
    for name, (*outer, long, short) in layout.steps:
        steps.append((name, (*outer, long if long is Step.UNIT else Step.ANY, short)))
    return replace(layout, steps=tuple(steps), strips=False)


def _expressions(program: Program) -> Iterable[Expr]:
    return expressions(roots_of(*bodies_of(program)))


class StripNest(RemainderNest):
    """Writes the loops of a kernel of such a space."""

    def __init__(self, program: Program, layout: Layout, builder: Builder, arguments: KernelSlots) -> None:
        super().__init__(program, layout, builder, arguments)
        steps = {name: layout.step(name)[-2:] for name in sorted(self.uses.elements)}
        self.inner = {name: self._along_strip(name, *pair) for name, pair in steps.items()}
        self.last = layout.ndim - 2
        moved = {name: pair for name, pair in steps.items() if self.inner[name] is Step.UNIT}
        self.packed = {name: pair for name, pair in moved.items() if pair != (Step.DENSE, Step.UNIT)}
        if any(self.arrays[name].written for name in self.packed):
            self.layout = replace(layout, streaming=False)
        params = [self.arrays[name] for name in self.packed]
        widest = max((param.dtype.nbytes for param in params), default=1)
        share = max(_LEAST_BYTES, min(_BYTES, _ALL_BYTES // max(len(params), 1)))
        self.elements = share // widest // _WHOLE * _WHOLE if params else 1 << 60
        self.buffers = {param.name: self._buffer(param) for param in params}
        asks = any(isinstance(expr, Query) and expr.what == "coordinate" for expr in _expressions(program))
        self.tables = [builder.alloca(f"[{_LONGEST + self.width} x i32]", LINE) for _ in range(2)] if asks else []

    def _along_strip(self, name: str, long: Step, short: Step) -> Step:
        """How an operand moves along a strip: in its own memory if it is even there, or in a buffer."""
        if (long, short) == (Step.DENSE, Step.ANY) and not self.arrays[name].written:
            return Step.ANY
        return Step.ZERO if (long, short) == (Step.ZERO, Step.ZERO) else Step.UNIT

    def _buffer(self, param: ArrayParam) -> str:
        """Room for a strip and what is missing of its first and last row."""
        return self.b.alloca(f"[{(self.elements + 2 * _LONGEST) * param.dtype.nbytes + packing.SPARE} x i8]", LINE)

    def _extent(self, axis: int) -> Value:
        """Of the two last axes together, and of those before."""
        found = super()._extent(axis)
        return self.b.binary("mul", found, self._columns()) if axis == self.last else found

    def _columns(self) -> Value:
        return self.arguments.number("extent", "", self.last + 1)

    def write(self) -> None:
        """Write all text, with the tables first."""
        self._fill_tables()
        super().write()

    def _describe_row(self, outer: tuple[Value, ...], first: Value) -> Row:
        """Operands that all rows share are copied once."""
        row = super()._describe_row(outer, first)
        count = self.b.binary("udiv", integer(self.elements), self._columns())
        for name, (long, _) in self.packed.items():
            if long is Step.ZERO:
                self._pack(name, row.addresses[name], self.b.binary("add", count, integer(2)))
        return row

    def _row(self, row: Row, start: str, end: str) -> None:
        if not self.packed:
            super()._row(row, start, end)
            return
        b, columns = self.b, self._columns()

        def strip(begin: str) -> None:
            at = Value("i64", begin)
            stop = b.intrinsic("umin", b.binary("add", at, integer(self.elements)), Value("i64", end))
            low = b.binary("udiv", at, columns)
            high = b.binary("udiv", b.binary("add", stop, b.binary("sub", columns, integer(1))), columns)
            first = b.binary("mul", low, columns)
            places = {name: self._place(name, row.addresses[name], low) for name in self.packed}
            for name, (long, _) in self.packed.items():
                if long is not Step.ZERO and (self.arrays[name].read or name in self.uses.loaded):
                    self._pack(name, places[name], b.binary("sub", high, low))
            addresses = {name: self._before(name, first) for name in self.packed}
            super(StripNest, self)._row(replace(row, addresses=row.addresses | addresses), begin, stop.text)
            for name in self.packed:
                if self.arrays[name].written:
                    self._unpack(name, places[name], b.binary("sub", at, first), b.binary("sub", stop, first))

        self._loop(start, self.elements, strip, end)

    # --- coordinates -----------------------------------------------------------------------------------------------

    def _fill_tables(self) -> None:
        """Fill the tables with the rows and columns of the elements of one row and one vector more."""
        b, columns = self.b, self._columns()

        def entry(position: str) -> None:
            at = Value("i64", position)
            for table, op in zip(self.tables, ("udiv", "urem"), strict=True):
                found = b.cast("trunc", b.binary(op, at, columns), "i32")
                b.line(f"store i32 {found.text}, ptr {b.let(f'getelementptr i32, ptr {table}, i64 {position}')}")

        if self.tables:
            repeat(b, "0", 1, entry, b.binary("add", columns, integer(self.width)).text)

    def along_row(self, axis: int, position: str) -> Value | None:
        """The row or the column of each element."""
        b, columns, at = self.b, self._columns(), Value("i64", position)
        row, column = (b.binary(op, at, columns) for op in ("udiv", "urem"))
        if b.lanes == 1:
            return row if axis == self.last else column
        table = self.tables[axis - self.last]
        place = b.let(f"getelementptr i32, ptr {table}, i64 {column.text}")
        found = Value("i32", b.let(f"load {b.vector_type('i32')}, ptr {place}, align 4"), varying=True)
        if axis > self.last:
            return b.cast("zext", found, "i64")
        if self.layout.wide:
            return b.binary("add", b.cast("zext", found, "i64"), row)
        near = b.spread(b.cast("trunc", row, "i32"))  # numbers that are known not to be negative divide in fewer steps
        found = Value("i32", b.let(f"add nuw nsw {b.typed(found)}, {near.text}"), varying=True)
        return b.cast("zext", found, "i64")

    # --- operands --------------------------------------------------------------------------------------------------

    def _stride(self, name: str, axis: int) -> Value:
        return self.arguments.number("stride", name, axis)

    def _place(self, name: str, base: Value, row: Value) -> Value:
        """The address of a row in an array."""
        return Value("ptr", self.b.at(base.text, self.b.binary("mul", row, self._stride(name, self.last)).text))

    def _before(self, name: str, first: Value) -> Value:
        """Where the element at position 0 would lie if a buffer begins with the `first` one."""
        offset = self.b.binary("mul", first, integer(-self.arrays[name].dtype.nbytes))
        return Value("ptr", self.b.at(self.buffers[name], offset.text))

    def _strides(self, name: str) -> list[Value]:
        return [self._stride(name, axis) for axis in (self.last, self.last + 1)]

    def _pack(self, name: str, place: Value, rows: Value) -> None:
        b = self.b
        function = packing.pack(b, self.arrays[name].dtype.nbytes, self.packed[name])
        given = [Value("ptr", self.buffers[name]), place, *self._strides(name), rows, self._columns()]
        b.line(f"call void {function}({', '.join(map(b.typed, given))})")

    def _unpack(self, name: str, place: Value, begin: Value, end: Value) -> None:
        b = self.b
        function = packing.unpack(b, self.arrays[name].dtype.nbytes)
        given = [place, *self._strides(name), self._columns(), Value("ptr", self.buffers[name]), begin, end]
        b.line(f"call void {function}({', '.join(map(b.typed, given))})")
