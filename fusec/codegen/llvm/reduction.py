"""The common parts of the loops of reductions: parts of a reduction as text, and accumulators in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import real_type
from fusec.base.kernel_abi import Layout
from fusec.base.records import replace
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.lanes import hot_bits
from fusec.codegen.llvm.memory import Lanes
from fusec.codegen.llvm.nest import Nest, RowSite
from fusec.codegen.llvm.stmt import StmtEmitter
from fusec.codegen.llvm.values import Builder, Operand, Value, bit_width, integer, part_types
from fusec.ir.expr import Expr, Type
from fusec.ir.loops import Call, Declare, Local, Program, ScalarParam, Stmt
from fusec.ir.reductions import Accumulator, ReductionIR, Stage, addressed, chunk_of, parts_of

Known = dict[str, tuple[Type, Operand]]


def whole_program(reduction: ReductionIR) -> Program:
    """All that a reduction does for one element, in one body: for questions about costs, types and arrays."""
    body: list[Stmt] = []
    for stage in reduction.stages:
        body += stage.body
        values = () if stage.accumulator is None else parts_of(stage.accumulator.value)
        body += [Declare("", value.type, value) for value in values]  # type: ignore[attr-defined]
        body += stage.then
    return Program(reduction.name, reduction.params, (*body, *reduction.finish), reduction.functions, reduction.source)


def widest_bits(reduction: ReductionIR) -> int:
    """Width of the widest type that elements and accumulators need; not that of what follows once for a total."""
    stages = tuple(replace(stage, then=()) for stage in reduction.stages)
    program = whole_program(replace(reduction, stages=stages, finish=()))
    accumulators = [each.accumulator for each in stages if each.accumulator is not None]
    used = addressed(program.body, [each.value for each in accumulators])
    params = tuple(each for each in program.params if isinstance(each, ScalarParam) or each.name in used)
    held = [real_type(dtype).bits for each in accumulators for _, dtype in each.parts]
    return max(hot_bits(replace(program, params=params)), *held, 8)


class PartEmitter(StmtEmitter):
    """Writes one part of a reduction."""

    def combined(self, accumulator: Accumulator, left: Operand, right: Operand) -> Operand:
        """Two accumulators combined."""
        sides = (Local("left", accumulator.type), Local("right", accumulator.type))
        return self.call(Call(accumulator.combine, sides, accumulator.type), [left, right])


class Held:
    """The lanes of an accumulator in memory: V vectors of W lanes for each part; bools as bytes.

    zeroed: they may be read before they are written.
    """

    def __init__(self, b: Builder, kind: Type, lanes: int, *, zeroed: bool = True) -> None:
        self.b, self.lanes = b, lanes
        self.types = part_types(kind)
        self.slots = []
        for llvm in self.types:
            vector = f"<{lanes} x {_stored(llvm)}>"
            slot = b.alloca(vector, 64)
            if zeroed:
                b.allocas.append(f"  store {vector} zeroinitializer, ptr {slot}, align 64")
            self.slots.append(slot)

    def read(self, lane: str) -> Operand:
        """As many lanes as a vector has, from a lane on; one with one lane."""
        b, found = self.b, []
        for llvm, slot in zip(self.types, self.slots, strict=True):
            stored = _stored(llvm)
            at = b.let(f"getelementptr {stored}, ptr {slot}, i64 {lane}")
            varying = b.lanes > 1
            vector = b.vector_type(stored) if varying else stored
            value = Value(stored, b.let(f"load {vector}, ptr {at}, align {bit_width(stored) // 8}"), varying)
            found.append(b.compare("icmp ne", value, integer(0, "i8")) if llvm == "i1" else value)
        return tuple(found)

    def write(self, lane: str, parts: Operand) -> None:
        """The opposite."""
        b = self.b
        for llvm, slot, part in zip(self.types, self.slots, parts, strict=True):
            stored = _stored(llvm)
            at = b.let(f"getelementptr {stored}, ptr {slot}, i64 {lane}")
            value = b.spread(part)
            value = b.cast("zext", value, "i8") if llvm == "i1" else value
            b.line(f"store {b.typed(value)}, ptr {at}, align {bit_width(stored) // 8}")


def _stored(llvm: str) -> str:
    return "i8" if llvm == "i1" else llvm


class PartNest(Nest):
    """Loops that a program is put into part by part."""

    def _part(
        self, site: RowSite, lanes: Lanes, body: tuple[Stmt, ...], known: Known, values: Sequence[Expr]
    ) -> list[Operand]:
        """Statements, then the values that they lead to."""
        analysis = self._analysis(self.program)
        varying = {name for name, (_, value) in known.items() if any(part.varying for part in value)}
        plan = analysis.body(body, known, varying, values)
        return PartEmitter(self._around(analysis, site), lanes).program(plan, known, values)

    # --- loops ---------------------------------------------------------------------------------------------------

    def _repeat(self, start: Value, step: int, end: Value, body: Callable[[str], None]) -> None:
        """A loop that may run no round at all."""
        with self.b.when(lambda: self.b.compare("icmp slt", start, end), "repeat"):
            self._loop(start.text, step, body, end.text)

    def _choose(self, condition: Value, then: Callable[[], None], orelse: Callable[[], None]) -> None:
        """One of two texts, by a uniform condition."""
        b, (first, second, done) = self.b, map(self.b.label, ("then", "else", "chosen"))
        b.fork(condition, first, second)
        for label, text in ((first, then), (second, orelse)):
            b.place(label)
            text()
            b.jump(done)
        b.place(done)

    def _in_vectors(self, start: Value, end: Value, body: Callable[[str, Lanes], None]) -> None:
        """Some positions in order, in vectors, the last ones under a mask or one by one; there may be none."""
        b, width = self.b, self.width
        if width == 1:
            self._repeat(start, 1, end, lambda at: body(at, Lanes()))
            return
        whole = b.binary("and", b.binary("sub", end, start), integer(-width))
        middle = b.binary("add", start, whole)
        self._repeat(start, width, middle, lambda at: body(at, Lanes()))
        if self.tail == "scalar":
            b.lanes = 1
            self._repeat(middle, 1, end, lambda at: body(at, Lanes()))
            b.lanes = width
            return
        rest = b.binary("sub", end, middle)
        with b.when(lambda: b.compare("icmp ne", rest, integer(0))):
            body(middle.text, self._first_lanes(rest.text))


class ReductionNest(PartNest):
    """What the loops of reductions have in common. The axis's extent is a slot; positions count its chunks."""

    def __init__(
        self, reduction: ReductionIR, layout: Layout, axis: int, builder: Builder, arguments: KernelSlots
    ) -> None:
        super().__init__(whole_program(reduction), layout, builder, arguments)
        self.reduction, self.axis = reduction, axis
        self.chunk = chunk_of(reduction.lanes, axis == layout.ndim - 1) if reduction.total is not None else 0
        self.held: dict[str, Held] = {}
        self.count = self.chunks = integer(0)
        self.inputs = set[str]()
        for stage in reduction.stages:
            self.inputs |= addressed(stage.body, () if stage.accumulator is None else (stage.accumulator.value,))

    def write(self) -> None:
        """All text from the end of the entry block to the return."""
        b = self.b
        self.count, self.chunks = self.arguments.number("extent", "", self.axis), integer(1)
        if self.chunk:
            self.chunks = b.binary("udiv", b.binary("add", self.count, integer(self.chunk - 1)), integer(self.chunk))
        self._hold()
        super().write()

    def _hold(self) -> None:
        """Make room for the accumulators."""

    def _extent(self, axis: int) -> Value:
        return self.chunks if axis == self.axis else super()._extent(axis)

    def _combined(
        self, site: RowSite, accumulator: Accumulator, left: Operand, right: Operand, lanes: Lanes
    ) -> Operand:
        """Two accumulators combined."""
        return PartEmitter(self._around(self._analysis(self.program), site), lanes).combined(accumulator, left, right)

    def _stage_cost(self, stage: Stage) -> int:
        """Operations to take one element in."""
        if stage.accumulator is None:
            return self.costs.of_body(stage.body)
        value = Declare("", stage.accumulator.type, stage.accumulator.value)
        return self.costs.of_body((*stage.body, value)) + self._combination_cost(stage.accumulator)

    def _combination_cost(self, accumulator: Accumulator) -> int:
        sides = (Local("left", accumulator.type), Local("right", accumulator.type))
        return self.costs.of(Call(accumulator.combine, sides, accumulator.type))


def flat(values: Sequence[Operand]) -> Operand:
    """The parts of several values in a row."""
    return tuple(part for value in values for part in value)


def regrouped(accumulator: Accumulator, parts: Operand) -> list[Operand]:
    """The operands of the accumulator's parts: complex ones have two."""
    found, at = [], 0
    for _, dtype in accumulator.parts:
        width = len(part_types(dtype))
        found.append(parts[at : at + width])
        at += width
    return found
