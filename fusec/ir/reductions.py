"""The reductions IR: what is accumulated along one axis, in stages, and what is computed from the total.

Note [Order]. The order of operations is part of the meaning, so that every target gives the same bits. It depends on
the number of elements and on which axis of the walk is reduced, on nothing else:

* Along the last axis of the walk (the innermost in memory), elements are taken in chunks of ROUNDS * L, where L is
  `lanes` of the reduction: as many accumulators as give 16 bytes to each position of a group. Lane l takes the
  elements l, l + L, l + 2 L, ... of the chunk one after the other; then the lanes are combined by
  halves: l with l + L/2, then with l + L/4, down to l + 1, where both exist.
* Along any other axis (the lanes of a machine lie along another), elements are taken in chunks of ROUNDS, one after the
  other.
* The results of chunks are reduced as elements of a new array, by the same two rules, until one is left.

A last axis of at most SHORT elements is walked as another one if there is any other. `combine(a, b)` always has the
earlier elements, or the lower lane, on its left. No identity takes part, unless there are no elements at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Struct, Type, scalar_type, type_of
from fusec.ir.walk import expressions, roots_of

ROUNDS = 64  # elements that a lane takes one after the other
LANE_BYTES = 16  # of accumulators that a position of a group holds
SHORT = 32  # elements of a last axis that are not worth sharing


@dataclass(frozen=True)
class OneAxis:
    """The axis of a walk that a kernel reduces or scans, for the interpreters."""

    shape: tuple[int, ...]  # of the walk
    axis: int
    is_last: bool | None = None  # which of the two orders holds; None: that of the axis's place

    @property
    def extent(self) -> int:
        """The number of elements along the axis."""
        return self.shape[self.axis]

    @property
    def walks_last(self) -> bool:
        """Whether the order is that of the last axis of a walk."""
        return self.axis == len(self.shape) - 1 if self.is_last is None else self.is_last

    @property
    def rest(self) -> tuple[int, ...]:
        """The shape without the axis."""
        return self.with_extent()

    def with_extent(self, *extent: int) -> tuple[int, ...]:
        """The shape with another extent of the axis."""
        return (*self.shape[: self.axis], *extent, *self.shape[self.axis + 1 :])

    def part(self, where: slice) -> tuple[slice, ...]:
        """The index of some elements along the axis."""
        return (*(slice(None),) * self.axis, where)


@dataclass(frozen=True)
class Accumulator:
    """A running value."""

    name: str  # of the local that has the result afterwards; of a struct, each field has one, see `parts`
    type: Type
    value: Expr  # of one element
    combine: str  # the function of two such values

    @property
    def parts(self) -> tuple[tuple[str, DType], ...]:
        """The locals that hold the result, with their dtypes."""
        if isinstance(self.type, Struct):
            return tuple((f"{self.name}_{name}", dtype) for name, dtype in self.type.fields)
        assert isinstance(self.type, DType), "an accumulator is a scalar or a struct"
        return ((self.name, self.type),)


@dataclass(frozen=True)
class Stage:
    """One walk along the axis."""

    body: tuple[ir.Stmt, ...]  # what happens for each element; it sees the results of earlier stages
    accumulator: Accumulator | None  # None if the walk only stores elements
    then: tuple[ir.Stmt, ...] = ()  # what follows once, after the walk; later stages see the locals that it declares


@dataclass(frozen=True)
class ReductionIR:
    """One kernel that reduces."""

    name: str
    # Arrays that bodies of stages address walk along the axis; those that `then` and `finish` address have one element
    # for each chunk (one in all, if the chunk is the whole axis).
    params: tuple[ir.Param, ...]
    stages: tuple[Stage, ...]
    total: Accumulator | None  # the value of a chunk, over the results of stages; None if every chunk is for itself
    finish: tuple[ir.Stmt, ...]  # what follows once for every total
    functions: tuple[ir.Function, ...] = ()  # callees before callers
    source: SourceFile | None = field(default=None, compare=False)  # the text that lines refer to

    @property
    def arrays(self) -> tuple[ir.ArrayParam, ...]:
        """The array parameters in order."""
        return tuple(param for param in self.params if isinstance(param, ir.ArrayParam))

    @property
    def accumulators(self) -> tuple[Accumulator, ...]:
        """The accumulators of all stages, followed by the total."""
        found = [*(stage.accumulator for stage in self.stages), self.total]
        return tuple(each for each in found if each is not None)

    @property
    def lanes(self) -> int:
        """Accumulators of a chunk along the last axis, by the widest part of any: a power of two from 32 to 512."""
        widths = [dtype.nbytes for each in self.accumulators for _, dtype in each.parts]
        return ir.GROUP * max(1, LANE_BYTES // max(widths, default=4))


def chunk_of(lanes: int, is_last: bool) -> int:
    """The number of elements of a chunk along the last axis of the walk, or along another axis."""
    return ROUNDS * lanes if is_last else ROUNDS


AXIS = "_axis"
"""A scalar parameter (int64): the extent of the axis that is reduced, for programs that walk it themselves."""

COVERED = "_covered"
"""A local (int64) of `then` and of the total's value: the number of elements of this chunk."""

REDUCED = "_reduced"
"""A scalar parameter (int64): the number of elements that make one total, over all axes that are reduced."""

TOTALS = "_totals"
"""A scalar parameter (int64): the number of totals."""


PARTIAL = "_partial"  # and a number: an array of one part of the chunks' results, as output
GIVEN = "_given"  # the same as input


Role = Literal["whole", "first", "next", "last"]
"""What a kernel does: all; or it leaves the results of chunks, combines these to fewer, or to totals."""


def partials(total: Accumulator) -> tuple[tuple[ir.ArrayParam, ...], tuple[ir.Stmt, ...]]:
    """Arrays `PARTIAL`, and the stores of a total in them."""
    outputs = tuple(
        ir.ArrayParam(f"{PARTIAL}{at}", dtype, written=True, read=False) for at, (_, dtype) in enumerate(total.parts)
    )
    pairs = zip(outputs, total.parts, strict=True)
    return outputs, tuple(ir.Store(param.element(), ir.Local(name, dtype)) for param, (name, dtype) in pairs)


def given(total: Accumulator) -> tuple[tuple[ir.ArrayParam, ...], tuple[ir.Stmt, ...], Expr]:
    """Arrays `GIVEN`, the declarations of what they hold, and the value of the type of a total that this is."""
    inputs = tuple(ir.ArrayParam(f"{GIVEN}{at}", dtype) for at, (_, dtype) in enumerate(total.parts))
    loads = tuple(ir.Declare(f"{param.name}_here", param.dtype, param.load()) for param in inputs)
    return inputs, loads, whole_of(tuple(ir.Local(load.name, load.type) for load in loads), total.type)


# --- parts of a reduction as programs --------------------------------------------------------------------------
#
# What passes, interpreter and checker know of programs, they thereby know of reductions. Values that a part hands on
# are stored to outputs of their own, `KEPT` and a number, so that nothing takes them for dead.

KEPT = "_kept"


def stage_program(reduction: ReductionIR, number: int) -> ir.Program:
    """The work of a stage for one element; it stores the parts of the accumulated value."""
    stage = reduction.stages[number]
    values = () if stage.accumulator is None else parts_of(stage.accumulator.value)
    return _keeping(reduction, (*reduction.params, *_scalars(visible(reduction, number))), stage.body, values)


def then_program(reduction: ReductionIR, number: int) -> ir.Program:
    """The work after a stage; it stores the declared locals, and after the last stage the parts of the total."""
    stage = reduction.stages[number]
    seen = [*visible(reduction, number), *results_of(stage), (COVERED, INT64)]
    values: tuple[Expr, ...] = tuple(ir.Local(name, dtype) for name, dtype in declared(stage.then))
    if number == len(reduction.stages) - 1 and reduction.total is not None:
        values += parts_of(reduction.total.value)
    return _keeping(reduction, (*reduction.params, *_scalars(seen)), stage.then, values)


def combine_program(reduction: ReductionIR, accumulator: Accumulator) -> ir.Program:
    """The combination of two accumulators: of scalars ``a_x`` and ``b_x`` for every part x."""
    sides = []
    for side in "ab":
        locals_ = tuple(ir.Local(f"{side}_{name}", dtype) for name, dtype in accumulator.parts)
        sides.append(whole_of(locals_, accumulator.type))
    scalars = [(f"{side}_{name}", dtype) for side in "ab" for name, dtype in accumulator.parts]
    called = ir.Call(accumulator.combine, tuple(sides), accumulator.type)
    return _keeping(reduction, _scalars(scalars), (), parts_of(called))


def finish_program(reduction: ReductionIR) -> ir.Program:
    """The work on a total; without a total, the work on the results of the stages."""
    total = visible(reduction, len(reduction.stages)) if reduction.total is None else reduction.total.parts
    return _keeping(reduction, (*reduction.params, *_scalars(total)), reduction.finish, ())


def visible(reduction: ReductionIR, number: int) -> list[tuple[str, DType]]:
    """The locals of earlier stages that a stage can read, with their dtypes."""
    found: list[tuple[str, DType]] = []
    for stage in reduction.stages[:number]:
        found += [*results_of(stage), *declared(stage.then)]
    return found


def results_of(stage: Stage) -> tuple[tuple[str, DType], ...]:
    """The locals that hold the accumulated values of a stage."""
    return () if stage.accumulator is None else stage.accumulator.parts


def declared(body: tuple[ir.Stmt, ...]) -> list[tuple[str, DType]]:
    """The scalar locals that statements declare at their top level."""
    pairs = [(stmt.name, stmt.type) for stmt in body if isinstance(stmt, ir.Declare)]
    return [(name, kind) for name, kind in pairs if isinstance(kind, DType)]


def parts_of(value: Expr) -> tuple[Expr, ...]:
    """The scalars of a value: the value itself, or the fields of a struct."""
    kind = type_of(value)
    if not isinstance(kind, Struct):
        return (value,)
    if isinstance(value, ir.Make):
        return value.fields
    return tuple(ir.Field(value, name, dtype) for name, dtype in kind.fields)


def whole_of(parts: tuple[Expr, ...], kind: Type) -> Expr:
    """The value with these scalars: the inverse of `parts_of`."""
    return ir.Make(parts, kind) if isinstance(kind, Struct) else parts[0]


def split_kept(program: ir.Program) -> tuple[tuple[ir.Stmt, ...], tuple[Expr, ...]]:
    """The statements of such a program without the stores of its results, and these results in order."""
    body, values = [], []
    for stmt in program.body:
        if isinstance(stmt, ir.Store) and isinstance(stmt.pointer, ir.Element) and stmt.pointer.param.startswith(KEPT):
            values.append(stmt.value)
        else:
            body.append(stmt)
    return tuple(body), tuple(values)


def _scalars(pairs: Iterable[tuple[str, DType]]) -> tuple[ir.Param, ...]:
    return tuple(ir.ScalarParam(name, dtype) for name, dtype in pairs)


def _keeping(
    reduction: ReductionIR, params: tuple[ir.Param, ...], body: tuple[ir.Stmt, ...], values: tuple[Expr, ...]
) -> ir.Program:
    outputs, stores = [], []
    for number, value in enumerate(values):
        outputs.append(ir.ArrayParam(f"{KEPT}{number}", scalar_type(value), written=True, read=False))
        stores.append(ir.Store(outputs[-1].element(), value))
    used = addressed(body, values)
    inside = tuple(param for param in params if isinstance(param, ir.ScalarParam) or param.name in used)
    functions, source = reduction.functions, reduction.source
    return ir.Program(reduction.name, (*inside, *outputs), (*body, *stores), functions, source)


def is_stored(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether statements store every element of an array that they walk along."""
    places = [stmt.pointer for stmt in body if isinstance(stmt, ir.Store)]
    return any(isinstance(place, ir.Element) and place.param == name for place in places)


def addressed(body: tuple[ir.Stmt, ...], values: Iterable[Expr] = ()) -> set[str]:
    """The names of the arrays that statements and values address or query."""
    roots = [*values, *roots_of(body)]
    return {expr.param for expr in expressions(roots) if isinstance(expr, ir.Element | ir.Moved | ir.At | ir.Query)}
