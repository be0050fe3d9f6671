"""Loops over a program whose interior is apart from its borders: `fusec.passes.split` says which parts it has.

Along a row the border's elements come one by one, as do those of narrow rows; all others in vectors without any test,
whose neighbours are plain loads beside them. Elements may be computed twice, so whole vectors overlap rather than leave
a rest: the last one of a row ends with the row, the first shares elements with the one that begins a cache line.

Rows that lie one above the other are taken several at once, so that what they all read is loaded once: a 3x3 window
over six rows loads 24 vectors instead of 54.
"""

from __future__ import annotations

from fusec.codegen.llvm.arguments import Arguments
from fusec.codegen.llvm.cost import Costs
from fusec.codegen.llvm.lanes import choose_lanes, hot_bits
from fusec.codegen.llvm.memory import PLAIN, Hint, Lanes
from fusec.codegen.llvm.nest import LINE, Nest, Row, Site, all_expressions
from fusec.codegen.llvm.values import Builder, Linear, Value, Walk, integer
from fusec.ir.expr import Expr
from fusec.ir.loops import At, Program
from fusec.ir.walk import expressions
from fusec.kernel import Layout, Step
from fusec.passes.split import Split, distances_of, split
from fusec.passes.stack import loads_of, stack_rows
from fusec.records import dataclass

_ROWS = (6, 4, 2)  # taken together
_WORK = 240  # operations of all rows together: beyond, vectors leave the registers


@dataclass(frozen=True)
class Parts:
    """A split program with what takes several rows of its interior at once; rows: how many, 1 for none."""

    split: Split
    rows: int
    stacked: Program


def parts_of(program: Program, ndim: int) -> Parts | None:
    """The parts of a program if it has any, with as many rows together as share loads and fit the registers."""
    found = split(program, ndim)
    if found is None:
        return None
    interior, axis = found.interior, ndim - 2
    loads = loads_of(interior.body)
    for rows in _ROWS if axis >= 0 else ():
        stacked = stack_rows(interior, axis, rows)
        if stacked is None or Costs(stacked.functions).of_body(stacked.body) > _WORK:
            continue
        if loads_of(stacked.body) < loads * rows:
            return Parts(found, rows, stacked)
    return Parts(found, 1, interior)


def lanes_of(work: Parts | Program, layout: Layout, vector_bits: int) -> int:
    """Elements of a vector: one register where several rows are in flight, but a cache line of every output."""
    if isinstance(work, Program):
        return choose_lanes(work, layout, vector_bits)
    parts = work
    lanes = choose_lanes(parts.split.interior, layout, vector_bits)
    if parts.rows == 1 or lanes == 1:
        return lanes
    line = max(LINE // param.dtype.nbytes for param in parts.stacked.arrays if param.written)
    return min(lanes, max(vector_bits // hot_bits(parts.split.interior), line))


def _neighbours(program: Program) -> list[tuple[str, tuple[int, ...]]]:
    """The raw arrays that a program reads beside the element, and how far along all axes but the last; in order."""
    found: set[tuple[str, tuple[int, ...]]] = set()
    seen: set[Expr] = set()
    for expr in expressions(all_expressions(program.body), seen):
        if isinstance(expr, At):
            distances = distances_of(expr.index)
            if distances is not None:
                found.add((expr.param, distances[:-1]))
    return sorted(found)


class InnerSite(Site):
    """Elements whose neighbours exist. addresses: of rows of raw arrays, where the elements are along them."""

    def __init__(self, nest: SplitNest, row: Row, position: str, streams: Value | None, part: Program) -> None:
        super().__init__(nest, row, position, streams is not None)
        self.streams = streams
        self.addresses: dict[tuple[str, tuple[int, ...]], str] = {}
        for param, outer in _neighbours(part):
            if nest.follows_space(param):
                self.addresses[param, outer] = self._address(nest, param, outer)

    def _address(self, nest: SplitNest, param: str, outer: tuple[int, ...]) -> str:
        """The address so many rows away; from the row before, if that is known."""
        b, number = nest.b, nest.arguments.number
        if outer:
            before = self.addresses.get((param, (*outer[:-1], outer[-1] - 1)))
            if before is not None:
                stride = number("raw_stride", param, len(outer) - 1)
                return b.let(f"getelementptr i8, ptr {before}, i64 {stride.text}")
        address = self.row.addresses[param].text
        along = b.binary("mul", Value("i64", self.position), nest.last_stride(param))
        address = b.let(f"getelementptr i8, ptr {address}, i64 {along.text}")
        for axis, distance in enumerate(outer):
            if distance:
                far = b.binary("mul", number("raw_stride", param, axis), integer(distance))
                address = b.let(f"getelementptr i8, ptr {address}, i64 {far.text}")
        return address

    def neighbour(self, param: str, distances: tuple[int, ...]) -> Value | None:
        """The address of a neighbour: one lane after the other, or a stride apart."""
        row = self.addresses.get((param, distances[:-1]))
        if row is None:
            return None
        nest, b = self.nest, self.nest.b
        assert isinstance(nest, SplitNest), "made by one"
        stride = nest.last_stride(param)
        if distances[-1]:
            far = b.binary("mul", stride, integer(distances[-1])) if stride.literal is None else stride
            nbytes = far.text if stride.literal is None else str(stride.literal * distances[-1])
            row = b.let(f"getelementptr i8, ptr {row}, i64 {nbytes}")
        if b.lanes == 1:
            return Value("ptr", row)
        if stride.literal is not None:
            return Value("ptr", "", varying=True, linear=Linear(row, stride.literal))
        offsets = b.binary("mul", Value("i64", b.iota("i64"), varying=True), stride)
        text = b.let(f"getelementptr i8, ptr {row}, {b.typed(offsets)}")
        return Value("ptr", text, varying=True, walk=Walk(row, stride.text))

    def hint(self, param: str, moved: bool) -> Hint:
        """All rows of an output begin their lines together."""
        del moved
        if self.streams is None or self.nest.inner[param] is not Step.UNIT:
            return PLAIN
        return Hint(align=LINE, when=self.streams)


class SplitNest(Nest):
    """Writes the loops of a split program."""

    def __init__(self, parts: Parts, whole: Program, layout: Layout, builder: Builder, arguments: Arguments) -> None:
        super().__init__(whole, layout, builder, arguments)
        self.parts = parts
        self.split = parts.split
        self.last = layout.ndim - 1
        raw = {name for part in (parts.split.interior, parts.stacked) for name, _ in _neighbours(part)}
        self.raw = sorted(name for name in raw if self.follows_space(name))

    def follows_space(self, param: str) -> bool:
        """Whether a raw array has the axes of the space."""
        return self.arrays[param].raw and dict(self.layout.raw)[param][0] == self.layout.ndim

    def last_stride(self, param: str) -> Value:
        """Bytes between neighbours along the last axis of a raw array."""
        if dict(self.layout.raw)[param][1]:
            return integer(self.arrays[param].dtype.nbytes)
        return self.arguments.number("raw_stride", param, self.last)

    # --- rows ----------------------------------------------------------------------------------------------------

    def _walk_rows(self, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """Several whole rows of the interior, or one or less of any kind."""
        if self.parts.rows == 1:
            return super()._walk_rows(at, left)
        b, rows = self.b, self.parts.rows
        extent = self._extent(self.last)
        together = b.binary("mul", extent, integer(rows))
        outer = self._is_inside(at[:-1])
        fits = b.binary("add", at[-2], integer(rows - 1))
        limit = b.binary("sub", self._extent(self.last - 1), integer(self.split.high[-2]))
        for test in (
            b.compare("icmp slt", fits, limit),
            b.compare("icmp eq", at[-1], integer(0)),
            b.compare("icmp sle", together, left),
        ):
            outer = b.binary("and", outer, test)
        several, single, done = b.label("several"), b.label("single"), b.label("walked")
        slots = [b.alloca("i64") for _ in range(2)]
        b.fork(outer, several, single)
        for label, walk in ((several, self._several_rows), (single, super()._walk_rows)):
            b.place(label)
            for slot, value in zip(slots, walk(at, left), strict=True):
                b.write_slot(slot, value, varying=False)
            b.jump(done)
        b.place(done)
        count, taken = (b.read_slot(slot, "i64", varying=False) for slot in slots)
        return count, taken

    def _several_rows(self, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """Rows that belong to the interior from their first column to their last."""
        b, rows, extent = self.b, self.parts.rows, self._extent(self.last)
        first = b.binary("sub", Value("i64", "%hi"), left)
        row = self._describe_row(at[:-1], first)
        low, high = self._inner(row, integer(0), extent)
        some = b.compare("icmp slt", low, high)
        wide, after = b.label("wide"), b.label("after")
        b.fork(some, wide, after)
        b.place(wide)
        self._vectors(row, low, high, self.parts.stacked, rows)
        b.jump(after)
        b.place(after)

        def ends(number: str) -> None:
            here = (*at[:-2], b.binary("add", at[-2], Value("i64", number)))
            begin = b.binary("add", first, b.binary("mul", Value("i64", number), extent))
            self._ends(self._describe_row(here, begin), integer(0), low, high, extent)

        self._loop("0", 1, ends, str(rows))
        return b.binary("mul", extent, integer(rows)), integer(rows)

    def _is_inside(self, outer: tuple[Value, ...]) -> Value:
        """Whether a row is of the interior but for its ends."""
        b, inside = self.b, Value("i1", "true")
        for axis, coordinate in enumerate(outer):
            if self.split.low[axis]:
                least = integer(self.split.low[axis])
                inside = b.binary("and", inside, b.compare("icmp sge", coordinate, least))
            if self.split.high[axis]:
                limit = b.binary("sub", self._extent(axis), integer(self.split.high[axis]))
                inside = b.binary("and", inside, b.compare("icmp slt", coordinate, limit))
        return inside

    def _describe_row(self, outer: tuple[Value, ...], first: Value) -> Row:
        row = super()._describe_row(outer, first)
        b = self.b
        for name in self.raw:
            address = self.arguments.pointer(name, self.arrays[name].dtype).text
            for axis, coordinate in enumerate(outer):
                offset = b.binary("mul", coordinate, self.arguments.number("raw_stride", name, axis))
                address = b.let(f"getelementptr i8, ptr {address}, i64 {offset.text}")
            row.addresses[name] = Value("ptr", address)
        return row

    # --- one row -------------------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        """The columns inside as vectors, by what the row is; those at the ends one by one."""
        b, begin, stop = self.b, Value("i64", start), Value("i64", end)
        low, high = self._inner(row, begin, stop)
        after = b.label("after")
        some = b.compare("icmp slt", low, high)
        kinds = [(self._is_inside(row.coordinates), self.split.interior)]
        if self.last:
            kinds.append((Value("i1", "true"), self.split.edge))
        for condition, part in kinds:
            chosen, other = b.label("part"), b.label("other")
            b.fork(b.binary("and", some, condition), chosen, other)
            b.place(chosen)
            self._vectors(row, low, high, part, 1)
            b.jump(after)
            b.place(other)
        b.jump(after)
        b.place(after)
        self._ends(row, begin, low, high, stop)

    def _inner(self, row: Row, start: Value, end: Value) -> tuple[Value, Value]:
        """The columns of a row that vectors take: of the interior, enough for one; else none, at the end."""
        b = self.b
        low = b.intrinsic("smax", start, integer(self.split.low[-1]))
        limit = b.binary("sub", self._extent(self.last), integer(self.split.high[-1]))
        high = b.intrinsic("smin", end, limit)
        width = b.binary("sub", high, low)
        whole = b.binary("add", low, b.binary("and", width, integer(-self.width)))
        high = b.select(self._is_in_place(row), whole, high)
        enough = b.compare("icmp sge", width, integer(self.width))
        return b.select(enough, low, end), b.select(enough, high, end)

    def _is_in_place(self, row: Row) -> Value:
        """Whether an output lies where an input does, which must then be read once only."""
        b, found = self.b, Value("i1", "false")
        for source in sorted(self.uses.loaded):
            for output, _ in self._outputs():
                same = b.compare("icmp eq", row.addresses[source], row.addresses[output])
                found = b.binary("or", found, same)
        return found

    def _ends(self, row: Row, start: Value, low: Value, high: Value, end: Value) -> None:
        """The columns before `low` and from `high` on, one by one."""
        b = self.b
        slot, test, skip, work, done = b.alloca("i64"), *(b.label(stem) for stem in ("test", "skip", "work", "done"))
        b.write_slot(slot, b.select(b.compare("icmp eq", start, low), high, start), varying=False)
        b.jump(test)
        b.place(test)
        position = b.read_slot(slot, "i64", varying=False)
        b.fork(b.compare("icmp slt", position, end), work, done)
        b.place(work)
        width, b.lanes = b.lanes, 1
        self._body(Site(self, row, position.text), Lanes())
        b.lanes = width
        following = b.binary("add", position, integer(1))
        b.write_slot(slot, following, varying=False)
        b.fork(b.compare("icmp eq", following, low), skip, test)
        b.place(skip)
        b.write_slot(slot, high, varying=False)
        b.jump(test)
        b.place(done)

    def _vectors(self, row: Row, low: Value, high: Value, part: Program, rows: int) -> None:
        """Whole vectors from `low` to `high`, which hold one at least; they overlap at both ends."""
        if not part.body:
            return
        b, lanes = self.b, integer(self.width)
        last = b.binary("sub", high, lanes)
        together, skew = self._lines(row, low, rows) if self.layout.streaming else (None, integer(0))
        slot, head, done = b.alloca("i64"), b.label("vector"), b.label("done")
        b.write_slot(slot, b.binary("sub", low, skew), varying=False)
        b.jump(head)
        b.place(head)
        aligned = b.read_slot(slot, "i64", varying=False)
        position = b.intrinsic("smin", b.intrinsic("smax", aligned, low), last)
        streams = None
        if together is not None:
            streams = b.binary("and", together, b.compare("icmp eq", position, aligned))
        self._body(InnerSite(self, row, position.text, streams, part), Lanes(), part)
        b.write_slot(slot, b.binary("add", aligned, lanes), varying=False)
        b.fork(b.compare("icmp slt", position, last), head, done)
        b.place(done)

    def _lines(self, row: Row, start: Value, rows: int) -> tuple[Value | None, Value]:
        """Whether outputs begin their cache lines together, and how many elements before `start` that is."""
        outputs = self._outputs()
        if any(self.inner[name] is not Step.UNIT or self.width * dtype.nbytes % LINE for name, dtype in outputs):
            return None, integer(0)
        b, skew = self.b, integer(0)
        together = b.invert(self._is_in_place(row))
        for number, (name, dtype) in enumerate(outputs):
            at = b.let(f"getelementptr [{dtype.nbytes} x i8], ptr {row.addresses[name].text}, i64 {start.text}")
            address = Value("i64", b.let(f"ptrtoint ptr {at} to i64"))
            beyond = b.binary("and", address, integer(LINE - 1))
            count = b.binary("udiv", beyond, integer(dtype.nbytes))
            whole = b.compare("icmp eq", b.binary("mul", count, integer(dtype.nbytes)), beyond)
            together = b.binary("and", together, whole)
            if rows > 1:
                stride = b.binary("and", self.arguments.number("stride", name, self.last - 1), integer(LINE - 1))
                together = b.binary("and", together, b.compare("icmp eq", stride, integer(0)))
            if number:
                together = b.binary("and", together, b.compare("icmp eq", count, skew))
            else:
                skew = count
        return together, b.select(together, skew, integer(0))
