"""Held elements: what several walks over a chunk read stays in registers, so that memory is read once.

A thread has so many slots, of which each stands for one of its elements. The elements that several walks read are
loaded before the first one, all at once; values that outputs keep between walks are in slots, too. What only one walk
reads is loaded some slots ahead. All loops over slots are unrolled, so that no array is in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from fusec.base.dtypes import INT32, INT64, DType
from fusec.base.records import dataclass
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, apply, scalar_type, type_of
from fusec.ir.reductions import COVERED, ReductionIR, Stage, parts_of
from fusec.ir.walk import Body, expressions, map_expressions, operands, rewriter, roots_of, statements
from fusec.passes.affine import Running, int64, minus, over, plus, rest, test, unrolled
from fusec.passes.ahead import Inside
from fusec.passes.buffer_rows import buffer_rows, kept_rows
from fusec.passes.shared_values import any_value, is_costly, shared_values

AHEAD, AHEAD_BYTES = 8, 128  # slots whose loads for one walk are under way together; of registers for what they load
LEFT = "_left"  # a local (int32): how many elements there are from the first slot on
Taken = Callable[[Expr, Sequence[Expr]], Body]
"""What happens to the values of a slot: from its number and the values."""


def held_bytes(reduction: ReductionIR) -> int:
    """The most bytes of registers that an element needs if it is held; 0 if no walk reads what another one has.

    Requires: nothing; other passes leave no more such reads. Ensures: the reduction is as it was.
    """
    return _most_held(*_with_rows(reduction))


def _most_held(reduction: ReductionIR, rows: Mapping[str, DType]) -> int:
    """The same of a reduction with rows that hold values between walks."""
    held = {**_read_again(reduction), **rows}
    names, nbytes = list(held), {name: max(ir.REGISTER, dtype.nbytes) for name, dtype in held.items()}
    uses = [_addressed(stage) for stage in reduction.stages]
    first = {name: min(at for at, used in enumerate(uses) if name in used) for name in names}
    last = {name: max(at for at, used in enumerate(uses) if name in used) for name in names}
    between = range(1, len(uses))
    return max((sum(nbytes[each] for each in names if first[each] < at <= last[each]) for at in between), default=0)


def _with_rows(reduction: ReductionIR) -> tuple[ReductionIR, dict[str, DType]]:
    """The reduction with values that walks hand on in rows that no parameter stands for, and the dtypes of these."""
    kept = kept_rows(reduction)
    types = {param.name: param.dtype for param in reduction.arrays}
    apart, rows = buffer_rows(reduction, kept), {row: types[name] for name, row in kept.items()}
    inputs = _read_again(apart)
    for is_wanted in (any_value, is_costly):
        changed, shared = shared_values(apart, inputs, is_wanted)
        most, before = _most_held(changed, {**rows, **shared}), _most_held(apart, rows)
        if shared and (most < before or (most == before and is_wanted is is_costly)):
            return changed, {**rows, **shared}
    return apart, rows


def _read_again(reduction: ReductionIR) -> dict[str, DType]:
    """The inputs that several walks read at their own element, and that nothing else addresses."""
    read = [_loaded(stage) for stage in reduction.stages]
    return {
        param.name: param.dtype
        for param in reduction.arrays
        if not (param.written or param.raw) and sum(param.name in names for names in read) > 1
    }


def _roots(stage: Stage) -> list[Expr]:
    return [*([] if stage.accumulator is None else [stage.accumulator.value]), *roots_of(stage.body)]


def _addressed(stage: Stage) -> set[str]:
    """The arrays that a walk loads or stores elements of."""
    return {each.param for each in expressions(_roots(stage)) if isinstance(each, ir.Element)}


def _loaded(stage: Stage) -> set[str]:
    """The arrays that a walk loads elements of."""
    found = (each.pointer for each in expressions(_roots(stage)) if isinstance(each, ir.Load))
    return {pointer.param for pointer in found if isinstance(pointer, ir.Element)}


@dataclass(frozen=True)
class HeldSlots:
    """The elements of a thread: as many as `count`, `stride` elements of the chunk apart, the first one at `base`.

    is_full: whether the chunk has an element for each slot. inside: places a body at a position of the chunk. side:
    elements that lie side by side, which are all there or not; the distance is that of so many. sure: slots that have
    an element in any case.
    """

    count: int
    stride: int
    base: Expr
    is_full: bool
    inside: Inside
    side: int = 1
    sure: int = 0

    def place(self, slot: Expr) -> Expr:
        """The position of an element in the chunk."""
        if self.side > 1:
            return plus(plus(self._distance(slot), rest(slot, self.side)), self.base)
        return plus(self._distance(slot), self.base)

    def _distance(self, slot: Expr) -> Expr:
        """How far a slot is from the first one, or from that of those side by side."""
        return apply("multiply", over(slot, self.side) if self.side > 1 else slot, int64(self.stride))

    def if_there(self, slot: Expr, body: Body) -> Body:
        """Statements for slots that have an element; of those side by side, `loop` asks."""
        return self._guarded(slot, body) if self.side == 1 else tuple(body)

    def _guarded(self, slot: Expr, body: Body) -> Body:
        if self.is_full or not body:
            return tuple(body)
        distance = apply("convert", self._distance(slot), target=INT32)
        is_there = apply("less", distance, ir.Local(LEFT, INT32))
        if self.sure:
            is_there = apply("logical_or", test("less", slot, self.sure), is_there)
        return (ir.If(is_there, tuple(body)),)

    def loop(self, name: str, count: int, body: Body, slot: Callable[[Expr], Expr] = lambda number: number) -> Body:
        """A loop over some slots, whose numbers `name` holds; `slot` makes those among all slots of them.

        What lies side by side is loaded, and stored last, with nothing in between: compilers make one access of it.
        """
        if self.side == 1:
            return unrolled(name, count, body)
        first, start = ir.Local(f"{name}_first", INT64), ir.Local(f"{name}_start", INT64)
        arrays, body, stores = _stored_last(body, ir.Local(name, INT64), self.side)

        def beside(word: str, part: Body) -> Body:
            at = ir.Local(f"{name}_{word}", INT64)
            return unrolled(at.name, self.side, (ir.Declare(name, INT64, plus(start, at)), *part))

        inner = (*arrays, *beside("beside", body), *(beside("stored", stores) if stores else ()))
        begin = ir.Declare(start.name, INT64, apply("multiply", first, int64(self.side)))
        return unrolled(first.name, count // self.side, (begin, *self._guarded(slot(start), inner)))


def _stored_last(body: Body, slot: ir.Local, side: int) -> tuple[Body, Body, Body]:
    """The body with results in arrays for the elements side by side: these, the body, and what stores from them."""
    arrays: list[ir.Stmt] = []
    first: list[ir.Stmt] = []
    last: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Store) and isinstance(stmt.pointer, ir.Moved):
            array, kind = f"{slot.name}_result{len(arrays)}", scalar_type(stmt.value)
            place = _place(array, kind, rest(slot, side))
            arrays.append(ir.DeclareArray(array, kind, side))
            first.append(ir.Store(place, stmt.value))
            last.append(ir.Store(stmt.pointer, ir.Load(place, kind), line=stmt.line))
        else:
            first.append(stmt)
    places: list[ir.Stmt] = []
    needed = _locals_of(roots_of(last))
    for stmt in reversed(body):
        if isinstance(stmt, ir.Declare) and stmt.name in needed and stmt.value is not None:
            places.append(stmt)
            needed |= _locals_of([stmt.value])
    return tuple(arrays), tuple(first), (*places[::-1], *last)


def _locals_of(roots: Iterable[Expr]) -> set[str]:
    return {each.name for each in expressions(roots) if isinstance(each, ir.Local)}


class HeldElements:
    """A reduction whose elements are held. reduction: what is left of it, whose kept values have names of their own."""

    def __init__(self, reduction: ReductionIR, slots: HeldSlots) -> None:
        self.slots = slots
        self.reduction, rows = _with_rows(reduction)
        self._inputs = _read_again(self.reduction)
        held = {**self._inputs, **rows}
        self._arrays = {name: (f"_held_{at}", dtype) for at, (name, dtype) in enumerate(held.items())}
        self._types = {param.name: param.dtype for param in reduction.arrays if not (param.written or param.raw)}

    def loaded(self) -> list[ir.Stmt]:
        """Declare the arrays, and load the elements of inputs."""
        left = apply("convert", minus(ir.Local(COVERED, INT64), self.slots.base), target=INT32)
        body: list[ir.Stmt] = [] if self.slots.is_full else [ir.Declare(LEFT, INT32, left)]
        body += [ir.DeclareArray(array, dtype, self.slots.count) for array, dtype in self._arrays.values()]
        slot = ir.Local("_slot", INT64)
        loads = self._loads([(*self._arrays[name], name) for name in self._inputs], "held", slot, slot)
        return [*body, *(self.slots.loop(slot.name, self.slots.count, loads) if loads else ())]

    def walk(self, stage: Stage, number: int, taken: Taken | None = None) -> Body:
        """The loop over all slots of a walk. taken: what is done with the values that it accumulates.

        Whatever only looks at slots is computed for all of them; the rest is for elements that are there.
        """
        others = sorted((_loaded(stage) & self._types.keys()) - self._inputs.keys())
        label, slot = f"{number}", ir.Local(f"_slot{number}", INT64)
        if not others:
            return self.slots.loop(slot.name, self.slots.count, self._element(stage, label, slot, {}, taken))
        room = AHEAD_BYTES // sum(max(ir.REGISTER, self._types[name].nbytes) for name in others)
        most = max(1, min(AHEAD, self.slots.count, room))
        side = self.slots.side
        size = next(each for each in range(max(most // side, 1) * side, 0, -side) if self.slots.count % each == 0)
        batch, near, at = (ir.Local(f"_{word}{number}", INT64) for word in ("batch", "near", "ahead"))
        arrays = {name: (f"_ahead{number}_{at}", self._types[name]) for at, name in enumerate(others)}
        first = apply("multiply", batch, int64(size))
        loads = self._loads([(*arrays[name], name) for name in others], f"{label}_ahead", plus(first, at), at)
        here = {name: (*array, near) for name, array in arrays.items()}
        body = (ir.Declare(slot.name, INT64, plus(first, near)), *self._element(stage, label, slot, here, taken))
        declared = [ir.DeclareArray(array, dtype, size) for array, dtype in arrays.values()]
        loads = self.slots.loop(at.name, size, loads, lambda number: plus(first, number))
        whole = (*declared, *loads, *self.slots.loop(near.name, size, body, lambda number: plus(first, number)))
        return unrolled(batch.name, self.slots.count // size, whole)

    def combined(self, stage: Stage, number: int) -> tuple[Body, Sequence[Expr]]:
        """The walk of a thread that has all elements of a lane, which it combines one after the other; the result."""
        assert stage.accumulator is not None, "a stage that accumulates"
        running, name = Running(stage.accumulator, f"_next{number}_"), f"_running{number}_"

        def taken(slot: Expr, values: Sequence[Expr]) -> Body:
            return (running.join_if(test("less", int64(0), slot), name, running.variable(name), values),)

        return (*running.declare(name), *self.walk(stage, number, taken)), running.variable(name)

    def values_of(self, stage: Stage) -> tuple[str, DType] | None:
        """The array that has the values which a walk accumulates, if one has them anyway."""
        assert stage.accumulator is not None, "a stage that accumulates"
        named = {stmt.name: stmt.value for stmt in stage.body if isinstance(stmt, ir.Declare) and stmt.value}
        value = stage.accumulator.value
        read = named.get(value.name) if isinstance(value, ir.Local) else value
        places = [stmt.pointer for stmt in stage.body if isinstance(stmt, ir.Store) and stmt.value == value]
        places += [read.pointer] if isinstance(read, ir.Load) else []
        names = (place.param for place in places if isinstance(place, ir.Element))
        return next((self._arrays[name] for name in names if name in self._arrays), None)

    def _loads(self, arrays: Sequence[tuple[str, DType, str]], label: str, slot: Expr, at: Expr) -> Body:
        """Load the elements of a slot into places of local arrays."""
        stores = [
            ir.Store(_place(array, dtype, at), ir.Load(ir.element(name, dtype, const=True), dtype))
            for array, dtype, name in arrays
        ]
        body, _ = self.slots.inside(tuple(stores), label, self.slots.place(slot))
        return self.slots.if_there(slot, body)

    def _element(
        self, stage: Stage, label: str, slot: Expr, ahead: Mapping[str, tuple[str, DType, Expr]], taken: Taken | None
    ) -> Body:
        """What a walk does for a slot."""
        held = {name: (*array, slot) for name, array in self._arrays.items()}
        here = rewriter(
            lambda expr: (
                _place(*{**held, **ahead}[expr.param])
                if isinstance(expr, ir.Element) and expr.param in {**held, **ahead}
                else expr
            )
        )
        place = ir.Local(f"_place{label}", INT64)
        body, rewrite = self.slots.inside(map_expressions(stage.body, here), label, place)
        values = [] if stage.accumulator is None else [*parts_of(rewrite(here(stage.accumulator.value)))]
        new = [ir.Declare(f"_new{label}_{at}", scalar_type(value), value) for at, value in enumerate(values)]
        done = taken(slot, [ir.Local(each.name, each.type) for each in new]) if taken is not None else ()
        at_place = ir.Declare(place.name, INT64, self.slots.place(slot))
        if self.slots.is_full:
            return (at_place, *body, *new, *done)
        free, bound = _split((*body, *new), label)
        return (at_place, *free, *self.slots.if_there(slot, (*bound, *done)))


def _place(array: str, dtype: DType, at: Expr) -> Expr:
    pointer = Pointer(dtype, "local")
    return ir.Offset(ir.LocalArray(array, pointer), at, pointer)


def _split(body: Body, label: str) -> tuple[Body, Body]:
    """What may run for slots without an element, and what may not: from the first statement on that reads memory."""
    free: list[ir.Stmt] = []
    bound: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Store) and isinstance(stmt.pointer, ir.Moved) and not _reads_memory([stmt.value]):
            name = f"_stored{label}_{len(bound)}"
            kind = scalar_type(stmt.value)
            free.append(ir.Declare(name, kind, stmt.value))
            bound.append(ir.Store(stmt.pointer, ir.Local(name, kind), line=stmt.line))
        elif isinstance(stmt, ir.Atomic | ir.CallStatement) or _reads_memory(
            root for each in statements([stmt]) for root in operands(each)
        ):
            return (), body
        else:
            free.append(stmt)
    return tuple(free), tuple(bound)


def _reads_memory(roots: Iterable[Expr]) -> bool:
    """Whether values depend on addresses in memory, where elements may lie that are not there."""
    kinds = (type_of(each) for each in expressions([*roots]))
    return any(isinstance(kind, Pointer) and kind.space != "local" for kind in kinds)
