"""Where the neighbours of the current elements are: whole rows and some elements away, all at known distances."""

from __future__ import annotations

from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import dataclass
from fusec.codegen.llvm.memory import PLAIN, Hint, Lanes, fetch, store
from fusec.codegen.llvm.nest import LINE, Nest, Row, RowSite
from fusec.codegen.llvm.values import Builder, Linear, LinearAddress, Operand, Value, integer
from fusec.ir.axes import distances_of
from fusec.ir.expr import Const
from fusec.ir.loops import At, Declare, Element, Moved, Program, Store
from fusec.ir.walk import expressions, roots_of

Outer = tuple[int, ...]  # distances along all axes but the last
AHEAD = 2048  # bytes; what several rows read is asked for so early, 8 % faster than with 1024


def has_no_branch(program: Program) -> bool:
    """Whether a program does nothing but compute values and store them."""
    return all(isinstance(stmt, Declare | Store) for stmt in program.body)


def neighbours_of(program: Program, layout: Layout) -> list[tuple[str, Outer]]:
    """The raw arrays with the axes of the space that are read beside the element, and in which rows; in order."""
    found: set[tuple[str, Outer]] = set()
    for expr in expressions(roots_of(program.body)):
        if isinstance(expr, At) and dict(layout.raw)[expr.param][0] == layout.ndim:
            distances = distances_of(expr.index)
            if distances is not None:
                found.add((expr.param, distances[:-1]))
    return sorted(found)


@dataclass(frozen=True)
class Result:
    """What is to be stored in an output, so many rows further, once the next vectors are loaded; `slots` hold it."""

    param: str
    row: int
    value: Operand
    slots: tuple[str, ...]

    def hold(self, b: Builder) -> None:
        """Keep the value."""
        b.write_slots(self.slots, self.value, b.lanes > 1)

    def held(self, b: Builder) -> Operand:
        """The value that was kept."""
        return b.read_slots(self.slots, [part.type for part in self.value], b.lanes > 1)


@dataclass(frozen=True)
class Columns:
    """Columns of some rows that whole vectors take, those at both ends overlapping."""

    row: Row
    low: Value  # the first column
    high: Value  # the one behind the last
    part: Program  # what is computed
    rows: int = 1


class InnerSite(RowSite):
    """Elements whose neighbours exist, for a part of the program.

    streams: whether they begin a cache line of every output, decided at run time. kept: results that wait, or None if
    the part has branches, and stores where it says. rows: where the elements are along the rows of raw arrays.
    """

    def __init__(self, nest: Nest, row: Row, position: str, streams: Value | None, part: Program | None) -> None:
        super().__init__(nest, row, position, streams is not None)
        self.streams = streams
        self.kept: list[Result] | None = [] if part is None or has_no_branch(part) else None
        self.rows: dict[tuple[str, Outer], str] = {}
        for param, outer in neighbours_of(part, nest.layout) if part else ():
            self.rows[param, outer] = self._along_row(param, outer)

    def _along_row(self, param: str, outer: Outer) -> str:
        """The address so many rows away; from the row before, if that is known."""
        b, number = self.nest.b, self.nest.arguments.number
        before = self.rows.get((param, (*outer[:-1], outer[-1] - 1))) if outer else None
        if before is not None:
            stride = number("raw_stride", param, len(outer) - 1)
            return b.at(before, stride.text)
        along = b.binary("mul", Value("i64", self.position), self._step(param))
        address = b.at(self.row.addresses[param].text, along.text)
        for axis, distance in enumerate(outer):
            if distance:
                far = b.binary("mul", number("raw_stride", param, axis), integer(distance))
                address = b.at(address, far.text)
        return address

    def _step(self, param: str) -> Value:
        """Bytes from one element of a row of a raw array to the next."""
        layout = self.nest.layout
        if dict(layout.raw)[param][1]:
            return integer(self.nest.arrays[param].dtype.nbytes)
        return self.nest.arguments.number("raw_stride", param, layout.ndim - 1)

    def neighbour(self, param: str, distances: tuple[int, ...]) -> Value | None:
        """The address of a neighbour: beside each other in memory, or a stride apart."""
        address = self.rows.get((param, distances[:-1]))
        if address is None:
            return None
        b, step, distance = self.nest.b, self._step(param), distances[-1]
        if distance:
            far = integer(step.literal * distance) if step.literal else b.binary("mul", step, integer(distance))
            address = b.at(address, far.text)
        if b.lanes == 1:
            return Value("ptr", address)
        if step.literal is not None:
            return Value("ptr", "", varying=True, linear=Linear(address, step.literal))
        offsets = b.binary("mul", Value("i64", b.iota("i64"), varying=True), step)
        text = b.let(f"getelementptr i8, ptr {address}, {b.typed(offsets)}")
        return Value("ptr", text, varying=True, walk=LinearAddress(address, step.text))

    def ask_ahead(self, rows: int, columns: Value) -> None:
        """Ask for what these elements' successors read, in the rows that those above have not asked for.

        rows: taken together; at the end of a row of so many columns, the same rows of those that come next. Processors
        that see a few rows coming by themselves stop at the ends of pages, at those of all rows at once.
        """
        b, layout = self.nest.b, self.nest.layout
        b.declare("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        for (param, outer), address in self.rows.items():
            if (param, (*outer[:-1], outer[-1] + rows)) in self.rows or not dict(layout.raw)[param][1]:
                continue
            nbytes = self.nest.arrays[param].dtype.nbytes
            position = b.binary("add", Value("i64", self.position), integer(AHEAD // nbytes))
            stride = self.nest.arguments.number("raw_stride", param, layout.ndim - 2)
            further = b.binary("sub", b.binary("mul", stride, integer(rows)), b.binary("mul", columns, integer(nbytes)))
            beyond = b.compare("icmp sge", position, columns)
            distance = b.binary("add", b.select(beyond, further, integer(0)), integer(AHEAD))
            for line in range(0, b.lanes * nbytes, LINE):
                far = b.binary("add", distance, integer(line))
                fetch(b, b.at(address, far.text))

    # --- results -------------------------------------------------------------------------------------------------

    def keeps(self, pointer: Element | Moved, value: Operand) -> bool:
        """All results of a part without branches."""
        if self.kept is None:
            return False
        row = 0
        if isinstance(pointer, Moved):
            (distance,) = pointer.distances
            assert isinstance(distance, Const), "rows are a known number of rows apart"
            row = int(distance.value)
        b = self.nest.b
        vectors = tuple(map(b.spread, value))
        slots = tuple(b.alloca(b.type_of(part)) for part in vectors)
        self.kept.append(Result(pointer.param, row, vectors, slots))
        return True

    def store(self, result: Result) -> None:
        """Store what was kept."""
        b, dtype = self.nest.b, self.nest.arrays[result.param].dtype
        hint = self.hint(result.param, result.row > 0)
        store(b, self.place(result, integer(0)), result.held(b), dtype, Lanes(hint=hint))

    def place(self, result: Result, nbytes: Value) -> Value:
        """Where a result belongs, so many bytes further."""
        b, nest, param = self.nest.b, self.nest, result.param
        if result.row:
            stride = nest.arguments.number("stride", param, nest.layout.ndim - 2)
            nbytes = b.binary("add", nbytes, b.binary("mul", stride, integer(result.row)))
        address = self.element(param)
        return address if nbytes.literal == 0 else _further(b, address, nbytes)

    def hint(self, param: str, moved: bool) -> Hint:
        """All rows of an output begin their lines together."""
        del moved
        if self.streams is None or self.nest.inner[param] is not Step.UNIT:
            return PLAIN
        return Hint(align=LINE, when=self.streams)


def _further(b: Builder, address: Value, nbytes: Value) -> Value:
    """An address some bytes further."""
    if address.linear is None:
        text = b.let(f"getelementptr i8, {b.typed(address)}, i64 {nbytes.text}")
        return Value("ptr", text, address.varying)
    base = b.at(address.linear.base, nbytes.text)
    return Value("ptr", "", varying=True, linear=Linear(base, address.linear.step))
