"""Reductions along the last axis: a chunk of a row at a time, its lanes in vectors, as `fusec.ir.reductions` orders it.

A position of the kernel is one chunk. Its elements come in rounds of L, one for each lane; the lanes lie in memory
between the three steps of a chunk: whole rounds, what is left of a round, and the halves that meet. Whole rounds of
short bodies keep all lanes in registers meanwhile.

Note [Kept rows]. An output may hold values from one walk to the next, as that of softmax holds powers until their sum
is known. Where the last walk writes around the caches, such rows lie on the stack instead, so that outputs are touched
once, by that walk; else each line of them would be read from memory before the first walk that stores it. The stack has
`_KEPT` bytes for them at most, mostly half of it, since a chunk is 32 KiB of its widest accumulator: a row of the input
beside them fits any second cache, and threads have 512 KiB or more. At run time, row by row, it is decided what is kept
in the outputs, which then stay in the caches: longer rows, outputs whose lines begin at different elements, and rows
shorter than `_SETTLED` bytes that do not begin with a line. There the last walk reads at other offsets than the vectors
were stored at, which a processor delays until the stores have reached the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import dataclass, replace
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.memory import Lanes, fetch
from fusec.codegen.llvm.nest import LINE, Row, RowSite
from fusec.codegen.llvm.reduction import Held, Known, ReductionNest, flat, regrouped
from fusec.codegen.llvm.values import Builder, Operand, Value, integer
from fusec.ir import reductions
from fusec.ir.expr import Expr, Type
from fusec.ir.loops import Local, Stmt
from fusec.passes.buffer_rows import buffer_rows, kept_rows

_UNROLLED = 160  # operations of a round up to which its vectors stand one after the other
_TOGETHER = 64  # operations of the vectors that follow each other in one turn of a loop over the lanes in memory
_HALVES = 96  # the same of the halves that meet
_LONG = 4  # rounds of rows that are asked for ahead
_KEPT = 1 << 16  # bytes of the stack for rows that are kept between walks
_SETTLED = 1 << 10  # bytes of a row by whose end the stores of its beginning have reached the cache


@dataclass(frozen=True)
class LaneRounds:
    """What a stage accumulates over in a chunk."""

    stage: reductions.Stage
    accumulator: reductions.Accumulator
    row: Row
    base: Value  # the first element of the chunk
    whole: Value  # rounds in which every lane has an element
    known: Known


class RowNest(ReductionNest):
    """Writes the loops of a kernel that reduces the last axis of its layout.

    What `finish` stores has one element for each chunk.
    """

    def __init__(
        self, reduction: reductions.ReductionIR, layout: Layout, axis: int, builder: Builder, arguments: KernelSlots
    ) -> None:
        super().__init__(reduction, layout, axis, builder, arguments)
        kept = kept_rows(reduction) if layout.streaming else {}
        self.kept = kept if all(self.inner[name] is Step.UNIT for name in kept) else {}  # no others go around caches
        for name, apart in self.kept.items():
            self.arrays[apart], self.inner[apart] = replace(self.arrays[name], name=apart), self.inner[name]
        self.reduction = buffer_rows(reduction, self.kept)
        self.slots: dict[str, str] = {}  # where rows that are kept lie on the stack
        self.lanes = reduction.lanes  # L
        self.walks = [stage for stage in self.reduction.stages if stage.accumulator is not None]
        leaves_chunks = any(param.name.startswith(reductions.PARTIAL) for param in reduction.arrays)
        self.fetched = [] if layout.by_chunks else self._to_fetch(leaves_chunks)
        self.following: dict[str, Value] = {}  # where the elements of the next chunk begin
        assert self.lanes % self.width == 0, f"{self.lanes} lanes in vectors of {self.width}"

    def _hold(self) -> None:
        for each in self.reduction.accumulators[: len(self.reduction.stages)]:
            self.held[each.name] = Held(self.b, each.type, self.lanes)

    def _outputs(self) -> list[tuple[str, DType]]:
        """Those of the last walk, which are what it may write around the caches."""
        stored = reductions.addressed(self.reduction.stages[-1].body)
        return [(name, dtype) for name, dtype in super()._outputs() if name in stored]

    def _describe_row(self, outer: tuple[Value, ...], first: Value) -> Row:
        """Also where rows are kept between walks, see Note [Kept rows]."""
        row = super()._describe_row(outer, first)
        if not self.kept:
            return row
        b, addresses = self.b, dict(row.addresses)
        stream = self._streaming(row, "0", self.count.text)
        if stream is None:
            addresses |= {apart: row.addresses[name] for name, apart in self.kept.items()}
            return replace(row, addresses=addresses)
        nbytes = {apart: self.arrays[apart].dtype.nbytes for apart in self.kept.values()}
        most = min(
            reductions.chunk_of(self.lanes, is_last=True), _KEPT // sum(nbytes.values()) // self.lanes * self.lanes
        )
        streams, ahead = stream
        assert streams.streams is not None, "rows that may stream know when"
        aside = b.binary("and", streams.streams, b.compare("icmp sle", self.count, integer(most)))
        settled = b.compare("icmp sge", self.count, integer(_SETTLED // min(nbytes.values())))
        aside = b.binary("and", aside, b.binary("or", settled, b.compare("icmp eq", ahead, integer(0))))
        for name, apart in self.kept.items():
            if apart not in self.slots:
                self.slots[apart] = b.alloca(f"[{most * nbytes[apart]} x i8]", LINE)
            addresses[apart] = b.select(aside, Value("ptr", self.slots[apart]), row.addresses[name])
        return replace(row, addresses=addresses, streams=aside)

    @property
    def order(self) -> tuple[int, ...]:
        """Chunks turn slowest where rows take turns."""
        return (self.last, *range(self.last)) if self.layout.by_chunks else super().order

    def _walk_rows(self, at: tuple[Value, ...], left: Value) -> tuple[Value, Value]:
        """One chunk of the row at these coordinates, if others of the same number follow."""
        if not self.layout.by_chunks:
            return super()._walk_rows(at, left)
        chunk = at[self.last]
        self._row(self._describe_row(at[:-1], integer(0)), chunk.text, self.b.binary("add", chunk, integer(1)).text)
        return integer(1), integer(1)

    def _row(self, row: Row, start: str, end: str) -> None:
        """The chunks of a row, one after the other."""
        self._loop(start, 1, lambda chunk: self._chunk(row, chunk), end)

    # --- one chunk -----------------------------------------------------------------------------------------------

    def _chunk(self, row: Row, chunk: str) -> None:
        b = self.b
        base, count = integer(0), self.count
        if self.chunk:
            base = b.binary("mul", Value("i64", chunk), integer(self.chunk))
            count = b.intrinsic("umin", b.binary("sub", self.count, base), integer(self.chunk))
        here = RowSite(self, row, chunk)
        self._look_ahead(row, Value("i64", chunk), base)
        known: Known = {**self._scalars(), reductions.COVERED: (INT64, (count,))}
        for stage in self.reduction.stages:
            if stage.accumulator is None:
                self._store_elements(stage, row, base, count, known)
            else:
                parts = self._accumulate(stage, row, base, count, known)
                for (name, dtype), part in zip(
                    stage.accumulator.parts, regrouped(stage.accumulator, parts), strict=True
                ):
                    known[name] = (dtype, part)
            self._once(here, stage.then, known, reductions.declared(stage.then))
        total = self.reduction.total
        if total is not None:
            values = self._once(here, (), known, [], reductions.parts_of(total.value))
            for (name, dtype), value in zip(total.parts, values, strict=True):
                known[name] = (dtype, value)
        self._once(here, self.reduction.finish, known, [])

    def _once(
        self,
        site: RowSite,
        body: tuple[Stmt, ...],
        known: Known,
        names: Sequence[tuple[str, Type]],
        values: Sequence[Expr] = (),
    ) -> list[Operand]:
        """Statements that run once for the chunk; what they declare becomes known. Returns the values after them."""
        if not body and not values:
            return []
        wanted = (*(Local(name, kind) for name, kind in names), *values)
        width, self.b.lanes = self.b.lanes, 1
        found = self._part(site, Lanes(), body, known, wanted)
        self.b.lanes = width
        known |= {name: (kind, value) for (name, kind), value in zip(names, found, strict=False)}
        return found[len(names) :]

    def _store_elements(self, stage: reductions.Stage, row: Row, base: Value, count: Value, known: Known) -> None:
        """A walk without accumulators; around the caches if the layout says so and no other walk has the outputs."""
        b, end = self.b, self.b.binary("add", base, count)

        def body(position: str, lanes: Lanes) -> None:
            self._part(RowSite(self, row, position), lanes, stage.body, known, ())

        others = [each for each in self.reduction.stages if each is not stage]
        shared = {
            name for name, _ in self._outputs() if any(name in reductions.addressed(each.body) for each in others)
        }
        stream = self._streaming(row, base.text, end.text) if self.layout.streaming and not shared else None
        if stream is None:
            self._in_vectors(base, end, body)
            return
        streaming, ahead = stream
        streaming = replace(streaming, streams=row.streams or streaming.streams)
        begin = b.binary("add", base, ahead)

        def around(position: str, lanes: Lanes) -> None:
            whole = lanes.mask is None and b.lanes == self.width
            self._part(RowSite(self, streaming, position, streaming=whole), lanes, stage.body, known, ())

        self._in_vectors(base, begin, body)
        self._in_vectors(begin, end, around)

    # --- what comes next -----------------------------------------------------------------------------------------

    def _to_fetch(self, leaves_chunks: bool) -> list[str]:
        """Inputs whose memory is asked for ahead."""
        names = [name for name in sorted(self.inputs & self.inner.keys()) if self.inner[name] is Step.UNIT]
        if self.chunk or not self.layout.streaming or self.layout.ndim == 1:
            return names if leaves_chunks and len(self.walks) > 1 else []
        return [each for each in names if not self.arrays[each].written and self.layout.step(each)[-2] is Step.ANY]

    def _look_ahead(self, row: Row, chunk: Value, base: Value) -> None:
        """Find where the next chunk of this call begins; after the last one, where this one does.

        Rows of one chunk are left to the processor: by the time that it sees where a walk is going, they are over, but
        the walks of a row overlap with those of the next one. Not so before a walk that writes around the caches: then
        the next row is asked for, if rows are long. A single walk over chunks is left to the processor, too.
        """
        b = self.b
        if not self.chunk:
            is_long = b.compare("icmp sge", self.count, integer(_LONG * self.lanes))
            is_ours = b.compare("icmp slt", b.binary("add", row.first, integer(1)), Value("i64", "%hi"))
            for name in self.fetched:
                stride = self.arguments.number("stride", name, self.layout.ndim - 2)
                self._follow(row, name, b.select(b.binary("and", is_long, is_ours), stride, integer(0)))
            return
        following = b.binary("add", chunk, integer(1))
        is_inside = b.compare("icmp slt", following, self.chunks)
        is_ours = b.compare("icmp slt", b.binary("add", row.first, following), Value("i64", "%hi"))
        ahead = b.select(b.binary("and", is_inside, is_ours), integer(self.chunk), integer(0))
        first = b.binary("add", base, ahead)
        for name in self.fetched:
            self._follow(row, name, b.binary("mul", first, integer(self.arrays[name].dtype.nbytes)))

    def _follow(self, row: Row, name: str, offset: Value) -> None:
        text = self.b.at(row.addresses[name].text, offset.text)
        self.following[name] = Value("ptr", text)

    def _fetch(self, stage: reductions.Stage, number: Value, rounds: Value) -> None:
        """Ask for lines of what comes next: in each round of every walk a part, so that memory is never idle.

        The last walk over a row that is one chunk asks for all of the next row: the first one reads memory itself.
        """
        b, walks = self.b, self.walks if self.chunk else self.walks[-1:]
        for name, start in self.following.items() if stage in walks else ():
            lines = -(-self.lanes * self.arrays[name].dtype.nbytes // (LINE * len(walks)))
            first = b.binary("add", b.binary("mul", rounds, integer(walks.index(stage))), number)
            offset = b.binary("mul", first, integer(lines * LINE))
            begin = b.at(start.text, offset.text)
            for line in range(lines):
                fetch(b, b.at(begin, line * LINE))

    # --- accumulating --------------------------------------------------------------------------------------------

    def _accumulate(self, stage: reductions.Stage, row: Row, base: Value, count: Value, known: Known) -> Operand:
        """The value of a chunk: whole rounds, the rest of one, and the halves."""
        b, accumulator = self.b, stage.accumulator
        assert accumulator is not None, "a stage that accumulates"
        held = self.held[accumulator.name]
        rounds = LaneRounds(stage, accumulator, row, base, b.binary("udiv", count, integer(self.lanes)), known)
        if self._stage_cost(stage) * (self.lanes // self.width) <= _UNROLLED:
            self._rounds_in_registers(rounds)
        else:
            self._rounds_in_memory(rounds)
        done = b.binary("mul", rounds.whole, integer(self.lanes))
        is_first = b.compare("icmp eq", rounds.whole, integer(0))
        start = b.binary("add", base, done)

        def one_more(position: str, lanes: Lanes) -> None:
            lane = b.let(f"sub i64 {position}, {start.text}")
            before, value = held.read(lane), self._value(rounds, position, lanes)
            merged = b.select_parts(is_first, value, self._met(row, accumulator, before, value, lanes))
            if lanes.mask is not None:
                merged = b.select_parts(lanes.mask, merged, before)
            held.write(lane, merged)

        self._in_vectors(start, b.binary("add", base, count), one_more)
        return self._halves(accumulator, row, count, is_first)

    def _value(self, rounds: LaneRounds, position: str, lanes: Lanes | None = None) -> Operand:
        """What elements contribute."""
        stage, values = rounds.stage, reductions.parts_of(rounds.accumulator.value)
        return flat(self._part(RowSite(self, rounds.row, position), lanes or Lanes(), stage.body, rounds.known, values))

    def _met(
        self, row: Row, accumulator: reductions.Accumulator, left: Operand, right: Operand, lanes: Lanes | None = None
    ) -> Operand:
        """Two accumulators combined, which takes no element."""
        return self._combined(RowSite(self, row, "0"), accumulator, left, right, lanes or Lanes())

    def _begin(self, rounds: LaneRounds, number: str) -> Value:
        """Where a round begins."""
        return self.b.binary("add", rounds.base, self.b.binary("mul", Value("i64", number), integer(self.lanes)))

    def _rounds_in_registers(self, rounds: LaneRounds) -> None:
        """Whole rounds with all lanes in variables of their own, which end in memory."""
        b, held, varying = self.b, self.held[rounds.accumulator.name], self.width > 1
        starts = range(0, self.lanes, self.width)
        slots = [[b.alloca(b.vector_type(llvm) if varying else llvm) for llvm in held.types] for _ in starts]
        with b.when(lambda: b.compare("icmp ne", rounds.whole, integer(0)), "first"):
            self._fetch(rounds.stage, integer(0), rounds.whole)
            for lane, mine in zip(starts, slots, strict=True):
                at = b.binary("add", rounds.base, integer(lane))
                b.write_slots(mine, self._value(rounds, at.text), varying)

            def one_round(number: str) -> None:
                begin = self._begin(rounds, number)
                self._fetch(rounds.stage, Value("i64", number), rounds.whole)
                for lane, mine in zip(starts, slots, strict=True):
                    value = self._value(rounds, b.binary("add", begin, integer(lane)).text)
                    before = b.read_slots(mine, held.types, varying)
                    b.write_slots(mine, self._met(rounds.row, rounds.accumulator, before, value), varying)

            self._repeat(integer(1), 1, rounds.whole, one_round)
            for lane, mine in zip(starts, slots, strict=True):
                held.write(str(lane), b.read_slots(mine, held.types, varying))

    def _rounds_in_memory(self, rounds: LaneRounds) -> None:
        """Whole rounds of a long body: one copy of it or a few, the lanes in memory."""
        b, held = self.b, self.held[rounds.accumulator.name]
        copies = max(1, _TOGETHER // self._stage_cost(rounds.stage))
        group = min(1 << copies.bit_length() - 1, self.lanes // self.width)

        def one_round(number: str) -> None:
            begin = self._begin(rounds, number)
            is_first = b.compare("icmp eq", Value("i64", number), integer(0))
            self._fetch(rounds.stage, Value("i64", number), rounds.whole)

            def some_vectors(lane: str) -> None:
                lanes = [b.binary("add", Value("i64", lane), integer(more * self.width)).text for more in range(group)]
                for each in lanes:
                    value = self._value(rounds, b.binary("add", begin, Value("i64", each)).text)
                    merged = self._met(rounds.row, rounds.accumulator, held.read(each), value)
                    held.write(each, b.select_parts(is_first, value, merged))

            self._loop("0", group * self.width, some_vectors, str(self.lanes))

        self._repeat(integer(0), 1, rounds.whole, one_round)

    # --- halves --------------------------------------------------------------------------------------------------

    def _halves(self, accumulator: reductions.Accumulator, row: Row, count: Value, is_short: Value) -> Operand:
        """Lanes meet by halves; those that no element reached take no part."""
        b, types = self.b, self.held[accumulator.name].types
        results = [b.alloca(llvm) for llvm in types]
        whole, short, done = b.label("whole"), b.label("short"), b.label("met")
        b.fork(is_short, short, whole)
        for label, limit in ((whole, None), (short, count)):
            b.place(label)
            b.write_slots(results, self._meet(accumulator, row, limit), varying=False)
            b.jump(done)
        b.place(done)
        return b.read_slots(results, types, varying=False)

    def _meet(self, accumulator: reductions.Accumulator, row: Row, count: Value | None) -> Operand:
        """The halves of all lanes, or of the first `count` of them."""
        b, held, width = self.b, self.held[accumulator.name], self.width

        def pair(left: Operand, right: Operand, first: Value, half: Value) -> Operand:
            """Lanes from `first` on with those `half` further, where these are there."""
            if count is None:
                return self._met(row, accumulator, left, right)
            reached = b.binary("sub", count, b.binary("add", first, half))
            if b.lanes == 1:
                there = b.compare("icmp sgt", reached, integer(0))
            else:
                numbers = Value("i64", b.iota("i64"), varying=True)
                there = b.compare("icmp slt", numbers, reached)
            return b.select_parts(there, self._met(row, accumulator, left, right), left)

        if self._combination_cost(accumulator) * (self.lanes // width) <= _HALVES:
            parts = [held.read(str(lane)) for lane in range(0, self.lanes, width)]
            while len(parts) > 1:
                half = len(parts) // 2
                parts = [
                    pair(parts[at], parts[at + half], integer(at * width), integer(half * width)) for at in range(half)
                ]
            value = parts[0]
        else:
            self._meet_in_memory(held, pair)
            value = held.read("0")
        half = width // 2
        while half:
            further = tuple(_shifted(b, b.spread(part), half) for part in value)
            value = tuple(map(b.spread, pair(value, further, integer(0), integer(half))))
            half //= 2
        if width == 1:
            return value
        return tuple(Value(part.type, b.let(f"extractelement {b.typed(part)}, i64 0")) for part in value)

    def _meet_in_memory(self, held: Held, pair: Callable[[Operand, Operand, Value, Value], Operand]) -> None:
        """Halves of more than one vector, as a loop."""
        b = self.b
        if self.lanes == self.width:
            return
        slot, again, after = b.alloca("i64"), b.label("halve"), b.label("after")
        b.line(f"store i64 {self.lanes // 2}, ptr {slot}")
        b.jump(again)
        b.place(again)
        half = Value("i64", b.let(f"load i64, ptr {slot}"))

        def one_vector(lane: str) -> None:
            far = b.binary("add", Value("i64", lane), half)
            held.write(lane, pair(held.read(lane), held.read(far.text), Value("i64", lane), half))

        self._loop("0", self.width, one_vector, half.text)
        following = b.binary("lshr", half, integer(1))
        b.line(f"store i64 {following.text}, ptr {slot}")
        b.fork(b.compare("icmp sge", following, integer(self.width)), again, after)
        b.place(after)


def _shifted(b: Builder, value: Value, distance: int) -> Value:
    """Lane l becomes lane l + distance of the value; the upper ones stay."""
    lanes = [min(lane + distance, b.lanes - 1) for lane in range(b.lanes)]
    return Value(value.type, b.shuffle(b.typed(value), lanes), varying=True)
