"""The loop over elements: rows of the iteration space walked by an odometer, vectors along each row.

A range [lo, hi) of positions is taken apart into coordinates once; then whole rows follow one another. Along a row run
vector steps, and what is left over runs once more under a mask, or one by one where the target has no masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import dataclass, replace
from fusec.codegen.llvm import memory
from fusec.codegen.llvm.agreement import Comparison, all_agree
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.cost import Costs
from fusec.codegen.llvm.counting import repeat
from fusec.codegen.llvm.divergence import Analysis
from fusec.codegen.llvm.expr import ElementSpace, Surroundings
from fusec.codegen.llvm.memory import PLAIN, Hint, Lanes
from fusec.codegen.llvm.routines import kept_functions
from fusec.codegen.llvm.stmt import StmtEmitter
from fusec.codegen.llvm.values import Builder, Linear, LinearAddress, Operand, Value, integer
from fusec.ir.expr import Apply, Expr, Type
from fusec.ir.loops import ArrayParam, Element, Load, Moved, Program, Query, ScalarParam
from fusec.ir.walk import bodies_of, expressions, roots_of

NARROW_LIMIT = (1 << 31) - 1  # positions of a layout that is not wide
WIDE_LIMIT = 1 << 62
Tail = Literal["masked", "narrow", "copied", "scalar", "every", "none", "overlapping"]
LINE = 64  # bytes; what non-temporal stores are aligned to


@dataclass(frozen=True)
class ArrayUses:
    """What a program touches: elements of arrays, elements it loads, and whether it asks for its position."""

    elements: frozenset[str]
    loaded: frozenset[str]
    has_position: bool


def uses_of(program: Program) -> ArrayUses:
    """Collect from all statements, those of functions included."""
    elements, loaded, position = set(), set(), False
    for expr in expressions(roots_of(*bodies_of(program))):
        match expr:
            case Element(param=param) | Moved(param=param):
                elements.add(param)
            case Load(pointer=Element(param=param)):
                loaded.add(param)
            case Query(param="", what="index" | "coordinate"):
                position = True
    return ArrayUses(frozenset(elements), frozenset(loaded), position)


@dataclass(frozen=True)
class Row:
    """One row of the iteration space: addresses of its first elements, coordinates, and what was loaded before it.

    first: position of the row's start. offsets: of the lanes of operands with a run-time stride, in bytes.
    streams: whether non-temporal stores may be used, decided at run time.
    """

    addresses: dict[str, Value]
    strides: dict[str, Value]
    offsets: dict[str, Value]
    hoisted: dict[str, Operand]
    coordinates: tuple[Value, ...]
    first: Value
    streams: Value | None = None


class RowSite(ElementSpace):
    """The elements at one position of a row."""

    def __init__(
        self, nest: Nest, row: Row, position: str, streaming: bool = False, agreed: frozenset[Expr] = frozenset()
    ) -> None:
        self.nest = nest
        self.agreed = agreed
        self.row = row
        self.position = position
        self.streaming = streaming

    def element(self, param: str) -> Value:
        """The address of the current elements of an array."""
        b, base = self.nest.b, self.row.addresses[param]
        dtype = self.nest.arrays[param].dtype
        match self.nest.inner[param]:
            case Step.ZERO:
                return base
            case Step.UNIT:
                unit = f"[{dtype.nbytes} x i8]"
                at = b.let(f"getelementptr {unit}, ptr {base.text}, i64 {self.position}")
                return Value("ptr", at) if b.lanes == 1 else Value("ptr", "", True, Linear(at, dtype.nbytes))
            case Step.ANY | Step.DENSE:
                offset = b.let(f"mul i64 {self.position}, {self.row.strides[param].text}")
                at = b.at(base.text, offset)
                if b.lanes == 1:
                    return Value("ptr", at)
                text = b.let(f"getelementptr i8, ptr {at}, {b.typed(self.row.offsets[param])}")
                return Value("ptr", text, varying=True, walk=LinearAddress(at, self.row.strides[param].text))

    def hoisted(self, param: str) -> Operand | None:
        """The element itself if it is the same along the row."""
        return self.row.hoisted.get(param)

    def hint(self, param: str, moved: bool) -> Hint:
        """Outputs of a streaming loop go around the caches."""
        if moved and self.nest.tail == "none" and self.nest.layout.streaming:  # groups store at a distance
            return Hint(tests=True)
        if moved or not self.streaming or self.row.streams is None or self.nest.inner[param] is not Step.UNIT:
            return PLAIN
        return Hint(align=LINE, when=self.row.streams)

    def agrees(self, comparison: Apply) -> bool:
        """Vectors whose lanes do not agree are no whole ones."""
        return comparison in self.agreed

    def index(self) -> Value:
        """The flat position of the current elements."""
        b = self.nest.b
        assert self.nest.layout.c_order, "the position is known only where the space is walked in C order"
        return self._along(b.let(f"add i64 {self.row.first.text}, {self.position}"))

    def coordinate(self, axis: int) -> Value:
        """The position along one axis."""
        if axis < self.nest.last:
            return self.row.coordinates[axis]
        return self.nest.along_row(axis, self.position) or self._along(self.position)

    def _along(self, base: str) -> Value:
        if self.nest.b.lanes == 1:
            return Value("i64", base)
        limit = WIDE_LIMIT if self.nest.layout.wide else NARROW_LIMIT
        return Value("i64", "", varying=True, linear=Linear(base, 1, 0, limit))


class Nest:
    """Writes the loops of one kernel.

    lanes: of the vector loop. tail: how the rest of a row runs: "masked" once under a mask, "narrow" likewise but in
    vectors of one register, "scalar" one by one, "copied" by the vector loop itself, see `remainder`, "every" if each
    vector step is masked, or "none" if there is none, since all ranges begin and end with a whole vector.
    """

    tail: Tail = "masked"
    narrow = 1

    def __init__(self, program: Program, layout: Layout, builder: Builder, arguments: KernelSlots) -> None:
        self.program = program
        self.layout = layout
        self.b = builder
        self.width = builder.lanes
        self.arguments = arguments
        self.arrays = {param.name: param for param in program.arrays}
        self.uses = uses_of(program)
        self.costs = Costs(program.functions, bodies=bodies_of(program))
        self.called = kept_functions(program)
        self.inner = {name: layout.step(name)[-1] for name in self.uses.elements}
        self.last = layout.ndim - 1  # the axis of rows
        self._analyses: dict[object, tuple[object, Analysis]] = {}  # with what they are of, by its identity
        self.comparisons: tuple[Comparison, ...] = ()  # whose outcomes tell which vectors are whole ones

    def write(self) -> None:
        """All text from the end of the entry block to the return."""
        b = self.b
        start, row, done = b.label("start"), b.label("row"), b.label("done")
        empty = b.compare("icmp sge", Value("i64", "%lo"), Value("i64", "%hi"))
        b.fork(empty, done, start)
        b.place(start)
        if self.last == 0:
            self._row(self._describe_row((), integer(0)), "%lo", "%hi")
        else:
            self._rows(row)
        b.jump(done)
        b.place(done)
        self._order_stores()
        b.line("ret void")

    def _order_stores(self) -> None:
        """Stores around the caches must be seen by whoever is told that the work is done; a full fence orders them."""
        if self.layout.streaming:
            self.b.line("fence seq_cst")

    # --- rows ----------------------------------------------------------------------------------------------------

    @property
    def order(self) -> tuple[int, ...]:
        """The axes, from the one that turns slowest."""
        return tuple(range(self.last + 1))

    def _rows(self, row: str) -> None:
        """The odometer over all axes; whole rows follow one another where their axis turns fastest."""
        b, (first, *others) = self.b, self.order
        coordinates = [b.alloca("i64") for _ in self.order]
        left_slot = b.alloca("i64")
        position = Value("i64", "%lo")
        for axis in reversed(others):
            extent = self._extent(axis)
            b.write_slot(coordinates[axis], b.binary("urem", position, extent))
            position = b.binary("udiv", position, extent)
        b.write_slot(coordinates[first], position)
        b.write_slot(left_slot, b.binary("sub", Value("i64", "%hi"), Value("i64", "%lo")))
        b.jump(row)
        b.place(row)
        left = b.read_slot(left_slot)
        at = tuple(b.read_slot(slot) for slot in coordinates)
        count, rows = self._walk_rows(at, left)
        rest = b.binary("sub", left, count)
        b.write_slot(left_slot, rest)
        turning = self.order
        if turning[-1] == self.last:
            b.write_slot(coordinates[self.last], integer(0))
            turning = turning[:-1]
        self._advance(turning, coordinates, at, rows)
        finished = b.label("finished")
        b.fork(b.compare("icmp eq", rest, integer(0)), finished, row)
        b.place(finished)

    def _walk_rows(self, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """The rest of the row at these coordinates, or some rows; how many elements these were, and how many rows."""
        b, last = self.b, self.last
        count = b.intrinsic("umin", b.binary("sub", self._extent(last), at[last]), left)
        first = b.binary("sub", b.binary("sub", Value("i64", "%hi"), left), at[last])
        end = b.binary("add", at[last], count)
        self._row(self._describe_row(at[:last], first), at[last].text, end.text)
        return count, integer(1)

    def _advance(self, axes: Sequence[int], slots: list[str], at: tuple[Value, ...], carry: Value) -> None:
        """Step some rows further, to the end of the last of these axes at most; it turns fastest."""
        b = self.b
        for axis in reversed(axes):
            following = b.binary("add", at[axis], carry)
            if axis != axes[0]:
                turned = b.compare("icmp eq", following, self._extent(axis))
                carry = b.cast("zext", turned, "i64")
                following = b.select(turned, integer(0), following)
            b.write_slot(slots[axis], following)

    def along_row(self, axis: int, position: str) -> Value | None:  # noqa: ARG002
        """The coordinates along an axis of the elements that follow a position of a row; None if they are positions."""
        return None

    def _extent(self, axis: int) -> Value:
        return self.arguments.number("extent", "", axis)

    def _describe_row(self, outer: tuple[Value, ...], first: Value) -> Row:
        """Addresses at the start of a row, and elements that are the same all along it."""
        addresses, strides, offsets, hoisted = {}, {}, {}, {}
        for name in sorted(self.uses.elements):
            param, steps = self.arrays[name], self.layout.step(name)
            addresses[name] = self._row_address(param, steps, outer)
            if self.inner[name] is Step.ANY:
                strides[name] = self.arguments.number("stride", name, len(steps) - 1)
                offsets[name] = self._lane_offsets(strides[name])
            if self.inner[name] is Step.ZERO and name in self.uses.loaded and not param.written:
                hoisted[name] = memory.load(self.b, addresses[name], param.dtype, Lanes())
        return Row(addresses, strides, offsets, hoisted, outer, first)

    def _row_address(self, param: ArrayParam, steps: tuple[Step, ...], outer: tuple[Value, ...]) -> Value:
        b, address = self.b, self.arguments.pointer(param.name, param.dtype)
        for axis, coordinate in enumerate(outer):
            if steps[axis] is Step.ZERO:
                continue
            unit = integer(param.dtype.nbytes)
            stride = unit if steps[axis] is Step.UNIT else self.arguments.number("stride", param.name, axis)
            offset = b.binary("mul", coordinate, stride)
            address = Value("ptr", b.at(address.text, offset.text))
        return address

    def _lane_offsets(self, stride: Value) -> Value:
        b = self.b
        if b.lanes == 1:
            return integer(0)
        return b.binary("mul", Value("i64", b.iota("i64"), varying=True), stride)

    # --- one row -------------------------------------------------------------------------------------------------

    def _row(self, row: Row, start: str, end: str) -> None:
        if self.width == 1:
            self._scalar_loop(row, start, end)
        elif self.tail == "every":
            self._masked_loop(row, start, end)
        elif self.tail == "none":
            self._whole_loop(row, start, end)
        else:
            self._split_loop(row, start, end)

    def _scalar_loop(self, row: Row, start: str, end: str) -> None:
        """One element after the other; the range is not empty."""
        self._loop(start, 1, lambda position: self._body(RowSite(self, row, position), Lanes()), end)

    def _loop(self, start: str, step: int | str, body: Callable[[str], None], end: str) -> None:
        """Repeat from `start`, at least once, while before `end`."""
        repeat(self.b, start, step, body, end)

    def _whole_loop(self, row: Row, start: str, end: str) -> None:
        """Whole vectors only. They are counted, so that LLVM sees what the low bits of positions are."""
        b, bits = self.b, self.width.bit_length() - 1

        def body(number: str) -> None:
            self._body(RowSite(self, row, b.let(f"shl nuw nsw i64 {number}, {bits}")), Lanes())

        first, last = (b.let(f"lshr exact i64 {each}, {bits}") for each in (start, end))
        self._loop(first, 1, body, last)

    def _masked_loop(self, row: Row, start: str, end: str) -> None:
        """Every step under a mask; the range is not empty."""

        def body(position: str) -> None:
            count = self.b.let(f"sub i64 {end}, {position}")
            self._body(RowSite(self, row, position), self._first_lanes(count))

        self._loop(start, self.b.lanes, body, end)

    def _first_lanes(self, count: str) -> Lanes:
        """The mask of the first lanes; `count` is at least 1."""
        b = self.b
        capped = b.intrinsic("umin", Value("i64", count), integer(b.lanes))
        short = b.cast("trunc", capped, "i32")
        return Lanes(b.compare("icmp ult", Value("i32", b.iota("i32"), varying=True), short), occupied=True)

    def _split_loop(self, row: Row, start: str, end: str) -> None:
        """Whole vectors, then what is left; where stores shall begin with a line, first what lies before one.

        Vectors whose lanes do not agree about comparisons are what is left, too.
        """
        b = self.b
        slot, count_slot = b.alloca("i64"), b.alloca("i64")
        guard, whole, rest, partial, after = (b.label(stem) for stem in ("guard", "whole", "rest", "partial", "after"))
        b.line(f"store i64 {start}, ptr {slot}")
        stream = self._streaming(row, start, end) if self.layout.streaming else self._aligned(row, start, end)
        if stream is None:
            b.jump(guard)
        else:
            row, ahead = stream
            b.line(f"store i64 {ahead.text}, ptr {count_slot}")
            b.fork(b.compare("icmp ne", ahead, integer(0)), partial, guard)
        b.place(guard)
        self._fork_if_whole(row, b.let(f"load i64, ptr {slot}"), end, whole, rest)
        b.place(whole)
        position = b.let(f"load i64, ptr {slot}")
        agreed = frozenset(expr for expr, _, _ in self.comparisons)
        self._body(RowSite(self, row, position, streaming=row.streams is not None, agreed=agreed), Lanes())
        following = b.let(f"add i64 {position}, {self.width}")
        b.line(f"store i64 {following}, ptr {slot}")
        self._fork_if_whole(row, following, end, whole, rest)
        b.place(rest)
        count = b.let(f"sub i64 {end}, {b.let(f'load i64, ptr {slot}')}")
        if agreed:
            count = b.intrinsic("umin", Value("i64", count), integer(self.width)).text
        b.line(f"store i64 {count}, ptr {count_slot}")
        b.fork(b.compare("icmp ne", Value("i64", count), integer(0)), partial, after)
        b.place(partial)
        self._partial(row, slot, count_slot)
        if stream is None and not agreed:
            b.jump(after)
        else:
            left = b.compare("icmp slt", b.read_slot(slot), Value("i64", end))
            b.fork(left, guard, after)
        b.place(after)

    def _fork_if_whole(self, row: Row, position: str, end: str, whole: str, rest: str) -> None:
        b = self.b
        reach = b.binary("add", Value("i64", position), integer(self.width))
        fits = b.compare("icmp sle", reach, Value("i64", end))
        if self.comparisons:
            last = b.binary("sub", reach, integer(1))
            fits = b.binary("and", fits, all_agree(b, self._compared(row, position), self._compared(row, last.text)))
        b.fork(fits, whole, rest)

    def _compared(self, row: Row, position: str) -> list[Value]:
        """Positions and outcomes of comparisons, for one element."""
        b, wanted = self.b, [part for comparison in self.comparisons for part in comparison[1:]]
        b.lanes = 1
        analysis, scalars = self._analysis(self.program), self._scalars()
        emitter = StmtEmitter(self._around(analysis, RowSite(self, row, position)), Lanes())
        found = emitter.program(analysis.body((), scalars, (), wanted), scalars, wanted)
        b.lanes = self.width
        return [value for (value,) in found]

    def _partial(self, row: Row, slot: str, count_slot: str) -> None:
        """Some elements, fewer than a vector has; leaves the position behind them in the slot."""
        b = self.b
        position, count = b.let(f"load i64, ptr {slot}"), b.let(f"load i64, ptr {count_slot}")
        end = b.let(f"add i64 {position}, {count}")
        if self.tail == "masked":
            self._body(RowSite(self, row, position), self._first_lanes(count))
        elif self.tail == "narrow":
            b.lanes = self.narrow
            offsets = {name: self._lane_offsets(stride) for name, stride in row.strides.items()}
            self._masked_loop(replace(row, offsets=offsets), position, end)
            b.lanes = self.width
        else:
            b.lanes = 1
            self._scalar_loop(row, position, end)
            b.lanes = self.width
        b.line(f"store i64 {end}, ptr {slot}")

    def _body(self, site: RowSite, lanes: Lanes, part: Program | None = None) -> None:
        """One copy of the program, or of a part of it, for the current number of lanes."""
        program = part or self.program
        analysis, scalars = self._analysis(program), self._scalars()
        StmtEmitter(self._around(analysis, site), lanes).program(analysis.body(program.body, scalars), scalars)

    def _scalars(self) -> dict[str, tuple[Type, Operand]]:
        """The scalar parameters."""
        params = [param for param in self.program.params if isinstance(param, ScalarParam)]
        return {param.name: (param.dtype, self.arguments.scalar(param.name, param.dtype)) for param in params}

    def _analysis(self, program: Program) -> Analysis:
        """That of a program's functions, the same wherever parts are written for as many lanes."""
        functions = program.functions
        key = self.b.lanes, id(functions), tuple(self.inner.items())
        if key not in self._analyses:
            self._analyses[key] = functions, Analysis(functions, self._source_varies, self.b.lanes)
        return self._analyses[key][1]

    def _around(self, analysis: Analysis, site: RowSite) -> Surroundings:
        return Surroundings(self.b, self.arguments, self.layout, analysis, self.costs, site, self.called)

    def _source_varies(self, expr: Expr) -> bool:
        """Whether an address or a fact differs between the lanes of a vector."""
        if self.b.lanes == 1:
            return False
        match expr:
            case Element(param=param) | Moved(param=param):
                return self.inner[param] is not Step.ZERO
            case Query(param="", what="index"):
                return True
            case Query(param="", what="coordinate", axis=axis):
                return getattr(axis, "bits", self.last) >= self.last
        return False

    # --- streaming -----------------------------------------------------------------------------------------------

    def _outputs(self) -> list[tuple[str, DType]]:
        return [(name, self.arrays[name].dtype) for name in sorted(self.uses.elements) if self.arrays[name].written]

    def is_in_place(self, row: Row) -> Value:
        """Whether an output lies where an input does, which must then be read once only."""
        b, found = self.b, Value("i1", "false")
        for source in sorted(self.uses.loaded & row.addresses.keys()):
            for output, _ in self._outputs():
                same = b.compare("icmp eq", row.addresses[source], row.addresses[output])
                found = b.binary("or", found, same)
        return found

    def _fill_lines(self) -> bool:
        """Whether a vector of each output is a number of whole lines."""
        outputs = self._outputs()
        return all(self.inner[name] is Step.UNIT and self.width * dtype.nbytes % LINE == 0 for name, dtype in outputs)

    def _aligned(self, row: Row, start: str, end: str) -> tuple[Row, Value] | None:
        """The row, and how many elements come before its vectors do; None where vectors may begin anywhere."""
        del row, start, end
        return None

    def _before_a_line(self, base: Value, nbytes: int, start: str) -> tuple[Value, Value]:
        """How many elements lie before the next line, and whether one begins there."""
        b = self.b
        address = b.address_of(base, nbytes, start)
        distance = b.binary("and", b.binary("sub", integer(0), address), integer(LINE - 1))
        count = b.binary("udiv", distance, integer(nbytes))
        return count, b.compare("icmp eq", b.binary("mul", count, integer(nbytes)), distance)

    def _streaming(self, row: Row, start: str, end: str) -> tuple[Row, Value] | None:
        """The row with its run-time decision, and how many elements come before all outputs begin a cache line."""
        outputs = self._outputs()
        if not outputs or not self._fill_lines():
            return None
        b, together, ahead = self.b, Value("i1", "true"), integer(0)
        for number, (name, dtype) in enumerate(outputs):
            count, whole = self._before_a_line(row.addresses[name], dtype.nbytes, start)
            together = b.binary("and", together, whole)
            if number:
                together = b.binary("and", together, b.compare("icmp eq", count, ahead))
            else:
                ahead = count
        ahead = b.select(together, ahead, integer(0))
        ahead = b.intrinsic("umin", ahead, Value("i64", b.let(f"sub i64 {end}, {start}")))
        return replace(row, streams=together), ahead
