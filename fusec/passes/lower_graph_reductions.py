"""Lower graph reductions: turn a graph into one kernel, with a walk for each level of dependent reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.ops import TABLE
from fusec.base.rounding_mode import default_rounding
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr, Struct, apply, scalar_type
from fusec.ir.graph import Count, Input, KernelGraph, Reduce, Spread, TotalInput
from fusec.ir.reductions import REDUCED, Accumulator, ReductionIR, Stage, addressed, is_stored
from fusec.ir.walk import expressions, inner_first, rewriter
from fusec.passes.spreads import ChunkSpread, combining, second_walk, sum_of, without_spreads

EXPENSIVE = 1  # functions in a value from which on it is stored rather than computed again


@default_rounding()
def lower_graph_reductions(graph: KernelGraph, scalars: frozenset[str] = frozenset()) -> ReductionIR:
    """The reduction that computes the outputs of a graph.

    scalars: inputs that are passed by value. Outputs over which elements differ are stored by a last walk, others once.
    Requires: an output depends on a Reduce; what reads a TotalInput is made of totals. Ensures: if no reduction depends
    on another and all outputs are totals, chunks combine (`ReductionIR.total`); else every row is one chunk.
    """
    staging = _Staging(graph, scalars)
    if any(isinstance(each, Spread) for level in staging.levels for each in level):
        if len(staging.levels) == 1 and not staging.elements:
            return staging.in_one_pass()
        staging = _Staging(without_spreads(graph), scalars)
    return staging.reduction()


def elements_of(graph: KernelGraph, scalars: frozenset[str] = frozenset()) -> frozenset[str]:
    """The outputs of a graph that differ within one total, so that they have the shape of the arguments."""
    return frozenset(name for name, _ in _Staging(graph, scalars).elements)


def in_place(reduction: ReductionIR) -> frozenset[tuple[str, str]]:
    """Outputs and inputs that may be the same memory: no walk reads the input after one that stores the output.

    What each total has one element of is read before the total is stored.
    """
    walked = {name for stage in reduction.stages for name in addressed(stage.body)}
    beside = [param for param in reduction.arrays if param.name not in walked]
    stores = [{each for each in addressed(stage.body) if is_stored(stage.body, each)} for stage in reduction.stages]
    pairs = {(one.name, other.name) for one in beside if one.written for other in beside if not other.written}
    for number, stored in enumerate(stores):
        later = {name for stage in reduction.stages[number + 1 :] for name in addressed(stage.body)}
        inputs = [each.name for each in reduction.arrays if not (each.written or each in beside or each.name in later)]
        earlier = set().union(*stores[:number])
        pairs |= {(output, name) for output in stored - earlier for name in inputs}
    return frozenset(pairs)


def reduces(root: Expr) -> list[Reduce]:
    """The reductions in a value, each once."""
    return [expr for expr in expressions([root]) if isinstance(expr, Reduce)]


class _Staging:
    def __init__(self, graph: KernelGraph, scalars: frozenset[str]) -> None:
        self.graph, self.scalars = graph, scalars
        self.depths: dict[Expr, int] = {}  # how many reductions, one inside the other, a value needs
        self.varies: dict[Expr, bool] = {}  # whether a value differs between the elements of one total
        for expr in inner_first([value for _, value in graph.outputs]):
            is_reduce = isinstance(expr, Reduce)
            self.depths[expr] = max([self.depths[child] for child in expr.children], default=0) + is_reduce
            differs = any(self.varies[child] for child in expr.children) and not is_reduce
            walked = isinstance(expr, Input) and not isinstance(expr, TotalInput) and expr.name not in scalars
            self.varies[expr] = differs or walked
        self.names: dict[Expr, Expr] = {}  # values that a local holds, once the stages before have run
        found = dict.fromkeys(each for _, value in graph.outputs for each in reduces(value))
        self.levels = [
            [each for each in found if self.depths[each] == level]
            for level in range(1, max(self.depths[each] for each in found) + 1)
        ]
        self.elements = [(name, value) for name, value in graph.outputs if self.varies[value]]
        self.totals = [(name, value) for name, value in graph.outputs if not self.varies[value]]
        self.stored: dict[Expr, str] = {}  # expensive values that an output holds between stages

    def reduction(self) -> ReductionIR:
        """All stages together."""
        self._choose_stored()
        stages, functions = [], []
        for number, level in enumerate(self.levels):
            accumulator, combine = self._accumulator(level, number)
            functions.append(combine)
            values = [each.value for each in level]
            body = (*self._loads(values), *self._stores(values))
            lowered = [self._lowered(value) for value in values]
            whole = lowered[0] if len(level) == 1 else ir.Make(tuple(lowered), _struct(accumulator))
            for each, (name, dtype) in zip(level, accumulator.parts, strict=True):
                self.names[each] = ir.Local(name, dtype)
            for expensive in values:
                if expensive in self.stored:
                    self.names[expensive] = _load(self.stored[expensive], scalar_type(expensive))
            value = Accumulator(accumulator.name, accumulator.type, whole, combine.name)
            stages.append(Stage(body, value, (*self._once(number), *self._shared(number + 1))))
        combines = len(self.levels) == 1 and not self.elements
        if self.elements:
            loads = (*self._loads([value for _, value in self.elements]), *self._kept())
            stages.append(Stage((*loads, *(_store(name, self._lowered(value)) for name, value in self.elements)), None))
        total = None
        if combines:
            first = stages[0].accumulator
            assert first is not None, "the first stage accumulates"
            stages[0] = Stage(stages[0].body, first)
            total = self._total(first)
        loads = self._loads([value for _, value in self.totals])
        stores = tuple(_store(name, self._lowered(value)) for name, value in self.totals)
        return ReductionIR(self.graph.name, self._params(), tuple(stages), total, (*loads, *stores), tuple(functions))

    def in_one_pass(self) -> ReductionIR:
        """Totals alone, with spreads among them: chunks are walked twice, and combine."""
        (level,) = self.levels
        plain = [each for each in level if not isinstance(each, Spread)]
        sums = list(dict.fromkeys([*plain, *(sum_of(each) for each in level if isinstance(each, Spread))]))
        held, combine = self._accumulator(sums, 0)
        values = [each.value for each in sums]
        body, lowered = self._loads(values), tuple(map(self._lowered, values))
        whole = lowered[0] if len(sums) == 1 else ir.Make(lowered, _struct(held))
        locals_: dict[Expr, Expr] = {
            each: ir.Local(name, dtype) for each, (name, dtype) in zip(sums, held.parts, strict=True)
        }
        wanted = (each for each in level if isinstance(each, Spread))
        spreads = [ChunkSpread(each, at, locals_[sum_of(each)]) for at, each in enumerate(wanted)]
        rests, add = second_walk(self.graph.name, spreads, [self._lowered(each.spread.value) for each in spreads])
        then = tuple(stmt for each in spreads for stmt in each.declared())
        stages = (
            Stage(body, Accumulator(held.name, held.type, whole, combine.name), then),
            Stage(self._loads([each.spread.value for each in spreads]), rests),
        )
        total, together = self._moments(plain, spreads, locals_, dict(zip(_names(rests), _locals(rests), strict=True)))
        loads = self._loads([value for _, value in self.totals])
        stores = tuple(_store(name, self._lowered(value)) for name, value in self.totals)
        functions = (combine, add, together)
        return ReductionIR(self.graph.name, self._params(), stages, total, (*loads, *stores), functions)

    def _moments(
        self, plain: Sequence[Reduce], spreads: Sequence[ChunkSpread], sums: Mapping[Expr, Expr],
        rests: Mapping[str, Expr],
    ) -> tuple[Accumulator, ir.Function]:  # fmt: skip
        """The total of chunks that have spreads, whose parts later text reads; and how two of them combine."""
        own = tuple((f"v{at}", each.type) for at, each in enumerate(plain))
        kind = Struct("Moments", (*own, *(field for each in spreads for field in each.fields)))
        parts = [*(sums[each] for each in plain), *(part for each in spreads for part in each.parts(rests))]

        def joined(a: Callable[[str, DType], Expr], b: Callable[[str, DType], Expr]) -> list[Expr]:
            found: list[Expr] = [apply(each.op, a(*field), b(*field)) for each, field in zip(plain, own, strict=True)]
            return [*found, *(part for each in spreads for part in each.combined(a, b))]

        function = combining(f"{self.graph.name}_moments", kind, joined)
        total = Accumulator("_all", kind, ir.Make(tuple(parts), kind), function.name)
        known = dict(zip((name for name, _ in kind.fields), _locals(total), strict=True))
        self.names |= {each: known[name] for each, (name, _) in zip(plain, own, strict=True)}
        self.names |= {each.spread: known[f"square{each.number}"] for each in spreads}
        return total, function

    # --- accumulators --------------------------------------------------------------------------------------------

    def _accumulator(self, level: list[Reduce], number: int) -> tuple[Accumulator, ir.Function]:
        """Where the reductions of a level are held together, and how two of them combine."""
        name, combine = f"_r{number}", f"{self.graph.name}_combine{number}"
        if len(level) == 1:
            (only,) = level
            a, b = ir.Local("a", only.type), ir.Local("b", only.type)
            function = ir.Function(
                combine, (("a", only.type), ("b", only.type)), only.type, (ir.Return(apply(only.op, a, b)),)
            )
            return Accumulator(name, only.type, only, combine), function
        kind = Struct(f"Totals{number}", tuple((f"v{at}", each.type) for at, each in enumerate(level)))
        left, right = ir.Local("a", kind), ir.Local("b", kind)
        fields = tuple(
            apply(each.op, ir.Field(left, field, each.type), ir.Field(right, field, each.type))
            for each, (field, _) in zip(level, kind.fields, strict=True)
        )
        function = ir.Function(combine, (("a", kind), ("b", kind)), kind, (ir.Return(ir.Make(fields, kind)),))
        return Accumulator(name, kind, level[0], combine), function

    def _total(self, part: Accumulator) -> Accumulator:
        """The total of chunks, whose parts later text reads in place of those of one chunk."""
        results = tuple(ir.Local(name, dtype) for name, dtype in part.parts)
        value = results[0] if isinstance(part.type, DType) else ir.Make(results, _struct(part))
        total = Accumulator("_all", part.type, value, part.combine)
        for each, (name, dtype) in zip(self.levels[0], total.parts, strict=True):
            self.names[each] = ir.Local(name, dtype)
        return total

    # --- values --------------------------------------------------------------------------------------------------

    def _once(self, number: int) -> tuple[ir.Stmt, ...]:
        """After the first of several walks: what each total has one element of."""
        is_first = number == 0 and (len(self.levels) > 1 or self.elements)
        given = [each for each in self.graph.inputs if isinstance(each, TotalInput)] if is_first else []
        self.names |= {each: ir.Local(each.name, each.type) for each in given}
        return tuple(ir.Declare(each.name, each.type, _load(each.name, each.type)) for each in given)

    def _shared(self, level: int) -> tuple[ir.Stmt, ...]:
        """Locals for what depends on reductions up to a level alone, so that no element computes it again."""
        declared: list[ir.Stmt] = []
        roots = [each.value for later in self.levels[level:] for each in later]
        pending = [value for _, value in reversed(self.elements)] + roots[::-1]
        seen: set[Expr] = set()
        while pending:
            expr = pending.pop()
            if expr in seen or expr in self.names or not self.depths[expr]:
                continue
            seen.add(expr)
            if not isinstance(expr, Reduce) and not self.varies[expr] and self.depths[expr] == level:
                name = f"_s{level}_{len(declared)}"
                declared.append(ir.Declare(name, scalar_type(expr), self._lowered(expr)))
                self.names[expr] = ir.Local(name, scalar_type(expr))
            else:
                pending += reversed(expr.children)
        return tuple(declared)

    def _lowered(self, root: Expr) -> Expr:
        """A value over locals."""

        def leaf(expr: Expr) -> Expr:
            match expr:
                case Input(name, dtype):
                    return ir.Local(name, dtype)
                case Count():
                    return ir.Local(REDUCED, INT64)
                case _:
                    return expr

        return rewriter(leaf, dict(self.names))(root)

    def _loads(self, values: list[Expr]) -> tuple[ir.Stmt, ...]:
        """The elements of inputs that values read, as far as no local stands for what reads them."""
        wanted = set(expressions(values, set(self.names), _outside))
        ordered = [each for each in self.graph.inputs if each in wanted and each.name not in self.scalars]
        return tuple(ir.Declare(each.name, each.type, _load(each.name, each.type)) for each in ordered)

    # --- values that are stored between stages -------------------------------------------------------------------

    def _choose_stored(self) -> None:
        """Expensive values of a reduction that a later walk needs again: an output of their dtype can hold them."""
        for name, output in self.elements:
            for each in (each for level in self.levels for each in level):
                value = each.value
                later = [output, *(other.value for level in self.levels[self.depths[each] :] for other in level)]
                is_needed = any(value in expressions([root], below=_outside) for root in later)
                if _calls(value) >= EXPENSIVE and is_needed and scalar_type(output) == scalar_type(value):
                    self.stored.setdefault(value, name)
                    break

    def _stores(self, values: list[Expr]) -> tuple[ir.Stmt, ...]:
        """Stores of the expensive ones of some values; from then on they are read from there."""
        stores: list[ir.Stmt] = []
        for value in dict.fromkeys(values):
            if value in self.stored and value not in self.names:
                name, dtype = self.stored[value], scalar_type(value)
                stores.append(ir.Declare(f"_kept_{name}", dtype, self._lowered(value)))
                stores.append(_store(name, ir.Local(f"_kept_{name}", dtype)))
                self.names[value] = ir.Local(f"_kept_{name}", dtype)
        return tuple(stores)

    def _kept(self) -> tuple[ir.Stmt, ...]:
        """Locals for values that outputs hold, read before the first output gets what it is to hold in the end."""
        loads = []
        for value, name in self.stored.items():
            dtype = scalar_type(value)
            loads.append(ir.Declare(f"_last_{name}", dtype, _load(name, dtype)))
            self.names[value] = ir.Local(f"_last_{name}", dtype)
        return tuple(loads)

    def _params(self) -> tuple[ir.Param, ...]:
        held = set(self.stored.values())
        inputs: list[ir.Param] = []
        for each in self.graph.inputs:
            by_value = each.name in self.scalars
            inputs.append(ir.ScalarParam(each.name, each.type) if by_value else ir.ArrayParam(each.name, each.type))
        outputs = [
            ir.ArrayParam(name, scalar_type(value), written=True, read=name in held)
            for name, value in self.graph.outputs
        ]
        counted = any(isinstance(part, Count) for _, value in self.graph.outputs for part in expressions([value]))
        return (*inputs, *outputs, *((ir.ScalarParam(REDUCED, INT64),) if counted else ()))


def _names(accumulator: Accumulator) -> list[str]:
    """The names of its fields."""
    return [name for name, _ in _struct(accumulator).fields]


def _locals(accumulator: Accumulator) -> list[Expr]:
    """The locals that hold its parts afterwards."""
    return [ir.Local(name, dtype) for name, dtype in accumulator.parts]


def _struct(accumulator: Accumulator) -> Struct:
    assert isinstance(accumulator.type, Struct), "several reductions are fields"
    return accumulator.type


def _load(name: str, dtype: DType) -> ir.Load:
    return ir.Load(ir.element(name, dtype), dtype)


def _store(name: str, value: Expr) -> ir.Store:
    return ir.Store(ir.element(name, scalar_type(value)), value)


def _outside(expr: Expr) -> tuple[Expr, ...]:
    """Operands, but for what stands inside of a reduction."""
    return () if isinstance(expr, Reduce) else expr.children


def _calls(root: Expr) -> int:
    """How many functions a value calls that are defined by `fusec.math`."""
    return sum(isinstance(part, Apply) and not TABLE[part.op].primitive for part in expressions([root]))
