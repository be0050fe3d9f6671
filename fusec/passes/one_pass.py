"""The common parts of scans that read memory once: held elements, and the words by which chunks learn of others."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from fusec.base.dtypes import INT64, UINT64
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, apply
from fusec.ir.scans import SEEN, Scan, words_of
from fusec.ir.walk import Body, renamed
from fusec.passes import Loops
from fusec.passes.affine import int64, minus, plus, test, times, unrolled
from fusec.passes.scan_loops import SIZE, START, ScanLoops
from fusec.passes.tagged_words import are_stored, packed, unpacked


class OnePass(ScanLoops):
    """One kernel that scans in one pass."""

    records: int  # that several chunks publish together
    plain: type[ScanLoops]  # whose walk finds the total of a chunk

    def __init__(self, scan: Scan, loops: Loops) -> None:
        super().__init__(scan, loops)
        self.is_held = loops.held
        self.summing = Loops(loops.axis, loops.is_last, "totals", 0, loops.batch)
        self.dtypes = [dtype for _, dtype in scan.running.parts]
        self.words = words_of(self.dtypes)

    @property
    @abstractmethod
    def slots(self) -> int:
        """Elements of a chunk that a position holds."""

    @abstractmethod
    def combine_held(self) -> Body:
        """Scan the elements that are held; `_carry0_` is the total of the chunk."""

    @abstractmethod
    def publish_total(self) -> Body:
        """Publish `_carry0_` for the chunks behind."""

    @abstractmethod
    def look(self) -> list[ir.Stmt]:
        """Set `_prefix1_` to the scanned totals up to the chunk before, and publish what this chunk is the last of."""

    @property
    def is_whole(self) -> Expr:
        """Whether the chunk has all its elements, and in an exclusive scan the one behind it too."""
        reached = minus(self.extent, 1) if self.scan.exclusive else self.extent
        return test("less_equal", plus(self.start, self.elements), reached)

    def one_chunk(self) -> list[ir.Stmt]:
        """The total of a chunk, what is before it, and the results; a chunk that is not whole has no total."""
        run, is_whole = self.run, self.is_whole
        size = apply("where", is_whole, int64(self.elements), minus(self.extent, self.start))
        alone = self.plain(self.scan, self.summing)
        first: Body = self._hold() if self.is_held else renamed(tuple(alone.walk()), "_total")[0]
        arrays = (ir.DeclareArray(f"_held{at}", dtype, self.slots) for at, dtype in enumerate(self.dtypes))
        found = [
            ir.Declare(START, INT64, times(self.chunk, self.elements)),
            ir.Declare(SIZE, INT64, size),
            *run.declare("_carry0_"),
            *(arrays if self.is_held else ()),
            ir.If(is_whole, (*first, *self.publish_total())),
            *run.declare("_prefix1_"),
            ir.If(test("greater", self.chunk, 0), tuple(self.look())),
        ]
        rest_of = tuple(self.walk())
        return [*found, ir.If(is_whole, self._release(), rest_of)] if self.is_held else [*found, *rest_of]

    # --- elements that stay in registers -------------------------------------------------------------------------

    def _hold(self) -> Body:
        """Load all elements of a chunk, then combine them."""
        slot = ir.Local("_slot", INT64)
        declared, position, distance = self.place_of("h", slot)
        body, values = self.taken("h", position, distance)
        return (*unrolled(slot.name, self.slots, (declared, *body, *self.kept(slot, values))), *self.combine_held())

    def _release(self) -> Body:
        """Combine what is held with the prefix, and store the results."""
        slot, mine = ir.Local("_out", INT64), "_mineo"
        declared, position, distance = self.place_of("o", slot)
        body = (
            declared,
            *self.run.declare(mine, self.held(slot)),
            self.with_prefix(mine),
            *self.finish("o", mine, position, distance, is_inside=True),
        )
        return unrolled(slot.name, self.slots, body)

    def _places(self, slot: Expr) -> list[Expr]:
        kinds = [Pointer(dtype, "local") for dtype in self.dtypes]
        return [ir.Offset(ir.LocalArray(f"_held{at}", kind), slot, kind) for at, kind in enumerate(kinds)]

    def held(self, slot: Expr) -> list[Expr]:
        """The parts of what a slot has."""
        return [ir.Load(place, dtype) for place, dtype in zip(self._places(slot), self.dtypes, strict=True)]

    def kept(self, slot: Expr, values: Sequence[Expr]) -> list[ir.Stmt]:
        """Statements that put parts into a slot."""
        return [ir.Store(place, value) for place, value in zip(self._places(slot), values, strict=True)]

    # --- words ---------------------------------------------------------------------------------------------------

    def _word(self, number: Expr, record: Expr | int, at: int) -> Expr:
        """The address of a word. number: of the chunks that have the records."""
        place = plus(apply("multiply", number, int64(self.records)), record)
        index = plus(apply("multiply", place, int64(self.words)), at)
        return ir.Moved(SEEN, (self.axis,), (minus(index, self.here),), Pointer(UINT64, "global"))

    def publish(self, number: Expr, record: Expr | int, values: Sequence[Expr]) -> Body:
        """Statements that store the words of a record."""
        words = enumerate(packed(values, self.dtypes))
        return tuple(ir.AtomicStore(self._word(number, record, at), value) for at, value in words)

    def observed(self, name: str, number: Expr, record: Expr | int) -> tuple[list[ir.Stmt], list[ir.Stmt], list[Expr]]:
        """Declarations of words, the statements that load them, and the words."""
        words = [ir.Local(f"{name}{at}_", UINT64) for at in range(self.words)]
        loads = [ir.AtomicLoad(each.name, self._word(number, record, at)) for at, each in enumerate(words)]
        return [ir.Declare(each.name, UINT64) for each in words], list(loads), list(words)

    def awaited(self, name: str, number: Expr, record: Expr | int, of: Expr | None = None) -> list[ir.Stmt]:
        """A new variable with published values, as soon as there are any. of: which members wait, if not all do."""
        declared, loads, words = self.observed(f"{name}w", number, record)
        wait = ir.While(apply("logical_not", are_stored(words)), tuple(loads), test_first=False)
        waits = (wait,) if of is None else (ir.If(of, (wait,)),)
        return [*declared, *waits, *self.run.declare(name, unpacked(words, self.dtypes))]
