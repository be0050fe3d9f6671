"""The rest of a row, computed by the loop over whole vectors on copies of its elements.

Note [Copied rests]. Behind the last whole vector of a row some elements are left, fewer than a vector has. A second
copy of a long body for them doubles the time to compile. A mask in every step takes some of the seven registers that
masks have, so that others move to the stack and back, which makes some processors ten times slower. So the elements are
copied to the stack, the last of them into all lanes that have none; the loop runs once more, over the copies; and what
it wrote there is copied back under a mask. Lanes without an element do what the last one's does, so they end no later
than it, and what they write is dropped. All this asks for a body that touches nothing but its own elements, and does
not ask for its position.
"""

from __future__ import annotations

from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.codegen.llvm import memory
from fusec.codegen.llvm.agreement import comparisons_of
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.lanes import hot_bits
from fusec.codegen.llvm.memory import Lanes
from fusec.codegen.llvm.nest import LINE, Nest, Row, RowSite, Tail
from fusec.codegen.llvm.values import Builder, Linear, Value, integer
from fusec.ir.loops import ArrayParam, Atomic, Element, Load, Moved, Program, Shuffle, Stmt, Store
from fusec.ir.walk import expressions, operands, statements

# Operations from which a second copy of the body, as wide as the first, costs too much to compile: of one row, and of
# many rows, which may be short.
_LONG, _LONG_ROWS = 120, 200

# Operations up to which the rest of a row, which may be short, is best run in narrow vectors: of small elements, while
# others gain up to _LONG (rows of 37 elements take 8 to 15 % less time).
_LIGHT = 24
_FEW = 8  # vectors of a row below which it does not matter where they begin


class RemainderNest(Nest):
    """A nest whose rest of a row may also be "copied", or run under a mask in "narrow" vectors."""

    def __init__(self, program: Program, layout: Layout, builder: Builder, arguments: KernelSlots) -> None:
        super().__init__(program, layout, builder, arguments)
        self.comparisons = comparisons_of(program, layout.ndim) if builder.lanes > 1 else ()

    def tail_for(self, cost: int, vector_bits: int) -> Tail:
        """How the rest of a row runs; only 512-bit targets have masks for every kind of access."""
        if vector_bits < 512:
            return "scalar"
        self.narrow = vector_bits // hot_bits(self.program)
        if self.layout.streaming:
            return "masked"
        if cost <= (_LONG if self.layout.has_long_rows else _LONG_ROWS):
            few = _LONG if hot_bits(self.program) >= 32 else _LIGHT
            is_narrow = not self.layout.has_long_rows and cost <= few and self.narrow < self.width
            return "narrow" if is_narrow else "masked"
        if self.can_copy():
            return "copied"
        return "narrow" if self.narrow < self.width else "every"

    def can_copy(self) -> bool:
        """Whether the program touches its own elements only, see Note [Copied rests]."""
        if self.uses.has_position or any(param.raw for param in self.program.arrays):
            return False
        if any(self.inner[name] is Step.ZERO and self.arrays[name].written for name in self.inner):
            return False
        bodies = (self.program.body, *(function.body for function in self.program.functions))
        return all(_is_own(stmt) for body in bodies for stmt in statements(body))

    def _aligned(self, row: Row, start: str, end: str) -> tuple[Row, Value] | None:
        """Of long rows the stores begin with a line: those of 64 bytes would each touch two, and take twice as long."""
        b, wide = self.b, [(name, dtype.nbytes) for name, dtype in self._outputs() if self.inner[name] is Step.UNIT]
        wide = [(name, nbytes) for name, nbytes in wide if self.width * nbytes % LINE == 0]
        if self.tail not in ("masked", "narrow", "copied") or not wide:
            return None
        name, nbytes = max(wide, key=lambda each: each[1])
        count, whole = self._before_a_line(row.addresses[name], nbytes, start)
        is_long = b.compare(
            "icmp sge", b.binary("sub", Value("i64", end), Value("i64", start)), integer(self.width * _FEW)
        )
        return row, b.select(b.binary("and", whole, is_long), count, integer(0))

    def _row(self, row: Row, start: str, end: str) -> None:
        if self.tail == "copied" and self.width > 1:
            self._copied_loop(row, start, end)
        else:
            super()._row(row, start, end)

    def _copied_loop(self, row: Row, start: str, end: str) -> None:
        """Whole vectors, and on copies what lies before the first line and what is left, by one copy of the body."""
        b, last = self.b, Value("i64", end)
        names = ("whole", "vectors", "rest", "copy", "back", "done")
        whole, vectors, rest, copy, back, done = (b.label(stem) for stem in names)
        position, limit, first, count = (b.alloca("i64") for _ in range(4))
        copied = b.alloca("i1")
        slots = {name: (b.alloca("ptr"), b.alloca("i64")) for name, _ in self._own()}
        aligned = self._aligned(row, start, end)
        ahead = integer(0) if aligned is None else aligned[1]
        b.write_slot(position, Value("i64", start))
        b.write_slot(count, ahead)
        b.fork(b.compare("icmp ne", ahead, integer(0)), copy, whole)

        b.place(whole)
        at = b.read_slot(position)
        room = b.binary("and", b.binary("sub", last, at), integer(-self.width))
        b.write_slot(limit, b.binary("add", at, room))
        for name, (address, stride) in slots.items():
            b.write_slot(address, row.addresses[name])
            b.write_slot(stride, row.strides.get(name, integer(0)))
        b.write_slot(copied, Value("i1", "false"))
        b.fork(b.compare("icmp ne", room, integer(0)), vectors, rest)

        b.place(vectors)
        self._vectors(self._placed(row, slots), position, limit)
        b.fork(b.read_slot(copied, "i1"), back, rest)

        b.place(rest)
        left = b.binary("sub", last, b.read_slot(position))
        b.write_slot(count, left)
        b.fork(b.compare("icmp ne", left, integer(0)), copy, done)

        b.place(copy)
        at = b.read_slot(position)
        b.write_slot(first, at)
        buffers = self._copy(row, at, b.read_slot(count), slots)
        b.write_slot(limit, b.binary("add", at, integer(1)))
        b.write_slot(copied, Value("i1", "true"))
        b.jump(vectors)

        b.place(back)
        at, short = b.read_slot(first), b.read_slot(count)
        self._copy_back(row, at, short, buffers)
        following = b.binary("add", at, short)
        b.write_slot(position, following)
        b.fork(b.compare("icmp slt", following, last), whole, done)
        b.place(done)

    def _placed(self, row: Row, slots: dict[str, tuple[str, str]]) -> Row:
        """The row with the addresses and strides in force: of the arrays, or of the copies."""
        b, addresses, strides, offsets = self.b, dict(row.addresses), dict(row.strides), dict(row.offsets)
        for name, (address, stride) in slots.items():
            addresses[name] = b.read_slot(address, "ptr")
            if name in strides:
                strides[name] = b.read_slot(stride)
                offsets[name] = self._lane_offsets(strides[name])
        return replace(row, addresses=addresses, strides=strides, offsets=offsets)

    def _vectors(self, row: Row, slot: str, limit: str) -> None:
        """Whole vectors from the position in a slot, at least one, while before the limit."""
        b, body, after = self.b, self.b.label("loop"), self.b.label("after")
        end = b.read_slot(limit)
        b.jump(body)
        b.place(body)
        position = b.read_slot(slot)
        self._body(RowSite(self, row, position.text), Lanes())
        following = b.binary("add", position, integer(self.width))
        b.write_slot(slot, following)
        b.fork(b.compare("icmp slt", following, end), body, after)
        b.place(after)

    def _copy(self, row: Row, start: Value, count: Value, slots: dict[str, tuple[str, str]]) -> dict[str, str]:
        """Copies of some elements, in buffers that the slots now name; lanes without an element have the last one."""
        b, buffers = self.b, dict[str, str]()
        lanes = self._first_lanes(count.text)
        last = b.binary("add", start, b.binary("sub", count, integer(1)))
        for name, param in self._own():
            nbytes = param.dtype.nbytes
            buffers[name] = b.alloca(f"[{self.width * nbytes} x i8]", LINE)
            before = b.binary("mul", start, integer(-nbytes))
            at = Value("ptr", b.at(buffers[name], before.text))
            b.write_slot(slots[name][0], at)
            b.write_slot(slots[name][1], integer(nbytes))
            if not param.read and name not in self.uses.loaded:
                continue  # it is written whatever happens
            b.lanes = 1
            (*rest,) = memory.load(b, RowSite(self, row, last.text).element(name), param.dtype, Lanes())
            b.lanes = self.width
            given = memory.load(b, RowSite(self, row, start.text).element(name), param.dtype, lanes)
            assert lanes.mask is not None, "the rest is masked"
            filled = b.select_parts(lanes.mask, given, tuple(rest))
            memory.store(b, self._buffered(buffers[name], param), filled, param.dtype, Lanes())
        return buffers

    def _copy_back(self, row: Row, start: Value, count: Value, buffers: dict[str, str]) -> None:
        lanes = self._first_lanes(count.text)
        for name, param in self._own():
            if param.written:
                found = memory.load(self.b, self._buffered(buffers[name], param), param.dtype, Lanes())
                memory.store(self.b, RowSite(self, row, start.text).element(name), found, param.dtype, lanes)

    def _own(self) -> list[tuple[str, ArrayParam]]:
        """The arrays that move along a row."""
        return [(name, self.arrays[name]) for name in sorted(self.inner) if self.inner[name] is not Step.ZERO]

    def _buffered(self, buffer: str, param: ArrayParam) -> Value:
        return Value("ptr", "", True, Linear(buffer, param.dtype.nbytes))


def _is_own(stmt: Stmt) -> bool:
    """Whether a statement loads and stores current elements at most, and passes no address of one on."""
    if isinstance(stmt, Atomic | Shuffle):
        return False
    roots = operands(stmt)
    if isinstance(stmt, Store) and isinstance(stmt.pointer, Element):
        roots = roots[1:]
    found = list(expressions(roots))
    passed = [*roots, *(child for expr in found if not isinstance(expr, Load) for child in expr.children)]
    return not any(isinstance(expr, Moved) for expr in found) and not any(isinstance(expr, Element) for expr in passed)
