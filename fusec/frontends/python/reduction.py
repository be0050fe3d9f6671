"""Reductions in Python: the functions that map, combine and finish to a reduction in the IR, and its types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.rounding_mode import default_rounding
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.python import BadReduction, CannotUnpack
from fusec.frontends.lowering import position_of
from fusec.frontends.python import syntax as s
from fusec.frontends.python.accumulator import Parts, identity_of, settled
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.calls import flat, result_of
from fusec.frontends.python.definition import ReductionFunctions
from fusec.frontends.python.function_context import Binding, FunctionContext
from fusec.frontends.python.function_exits import ReturnEnding, StoreEnding, context_of, instantiate, run
from fusec.frontends.python.kernel_context import KernelContext
from fusec.frontends.python.parameters import Inferred, Parameters
from fusec.frontends.python.statements import Ending, PythonStatements
from fusec.frontends.python.types import BY_NAME, PY_INT, Kind, carrier, storage
from fusec.frontends.python.values import Items, Scalar, UserFunction, Value, adapt, converted
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Struct, const
from fusec.ir.reductions import REDUCED, Accumulator, ReductionIR, Stage, whole_of

TOTAL, PART = "_total", "_part"  # locals


@default_rounding()
def infer(definition: ReductionFunctions, types: Mapping[str, DType], scalars: frozenset[str], ndim: int) -> Inferred:
    """The types of the results for arguments of these dtypes. scalars: those passed by value. ndim: axes of a call."""
    lowering = _Lowering(definition, types, scalars, ndim, ())
    held, is_tuple = lowering.held()
    finished = lowering.finished(held, is_tuple)
    if finished is None:
        return lowering.parameters.inferred(tuple(map(storage, held)), is_tuple)
    forced = lowering.declared_result("finish")
    results = tuple(forced or storage(kind) for kind in finished.results())
    return lowering.parameters.inferred(results, finished.returned[0][1])


def lower(
    definition: ReductionFunctions,
    types: Mapping[str, DType],
    scalars: frozenset[str],
    ndim: int,
    reduced: Sequence[int],
) -> tuple[ReductionIR, ir.Program]:
    """The reduction for given types, and the program that stores its outputs where there are no elements.

    ndim: axes of the walk. reduced: those that are reduced. The program has no statement if there is no identity.
    Raises the errors of fusec.errors.python and language.
    """
    held, is_tuple = _Lowering(definition, types, scalars, ndim, reduced).held()
    return _Lowering(definition, types, scalars, ndim, reduced).reduction(held, is_tuple)


class _KeptEnding:
    """How a map ends whose statements become part of a reduction: its parts are kept."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self.kinds = kinds
        self.parts: tuple[Expr, ...] = ()
        self.early = False  # it returns where only a function can

    def places(self) -> list[tuple[str, DType | Struct]]:
        """What is returned, part by part."""
        return [(f"part{at}", carrier(kind)) for at, kind in enumerate(self.kinds)]

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The parts."""
        return tuple(value.read() for value in values)

    def give(self, context: FunctionContext, found: tuple[Expr, ...]) -> None:
        """Keep the parts where the function ends."""
        self.early |= bool(context.loops) or not context.tail
        self.parts = found


class _Lowering:
    """One reduction with one set of types."""

    def __init__(
        self,
        definition: ReductionFunctions,
        types: Mapping[str, DType],
        scalars: frozenset[str],
        ndim: int,
        reduced: Sequence[int],
    ) -> None:
        self.definition, self.types, self.scalars = definition, types, scalars
        self.parameters = Parameters(definition, types)
        self.ndim, self.reduced = ndim, tuple(reduced)
        self.roles = dict(definition.roles)  # the keys of functions
        self.kernel = KernelContext(definition, reduces=True)
        self.kernel.names |= {*definition.inputs, *definition.outputs, definition.name}
        self.trees = {role: self.kernel.tree(key) for role, key in definition.roles}
        self.taken = {*definition.inputs, *definition.outputs, REDUCED}

    # --- types ---

    def held(self) -> tuple[tuple[Kind, ...], bool]:
        """The types that are accumulated, and whether functions see them as a tuple."""
        first = self.mapped_parts()
        tree, key = self.trees["combine"], self.roles["combine"]
        found = (
            dtype_of(each, self.kernel, key) for each in (tree.returns, *(each.annotation for each in tree.params))
        )
        annotated = next((dtype for dtype in found if dtype is not None), None)
        identity = identity_of(self.definition.identity)

        def combined(kinds: tuple[Kind, ...]) -> Parts:
            return _parts("combine returns", self._combining(kinds, first.is_tuple, "combine"))

        return settled(first, identity, annotated, combined), first.is_tuple

    def mapped_parts(self) -> Parts:
        """What is made of one element."""
        if "map" not in self.roles:
            return Parts("what is combined is", (self._element().type,), False, self._span, has_line=False)
        found = _parts("map returns", self._lowered("map", self.taken | {TOTAL, PART}, self.parameter))
        forced = self.declared_result("map")
        return found if forced is None else Parts(found.whose, (forced,) * len(found.kinds), found.is_tuple, found.span)

    # --- parts of the reduction ---

    def reduction(self, held: tuple[Kind, ...], is_tuple: bool) -> tuple[ReductionIR, ir.Program]:
        """All parts together."""
        definition, name = self.definition, self.kernel.fresh(f"{self.definition.name}_combine")
        combine = self._combine(name, held, is_tuple)
        body, value = self._stage(name, held)
        kind = result_of(name, held)
        parts = tuple(ir.Local(part, dtype) for part, dtype in Accumulator(PART, kind, const(0, INT64), name).parts)
        total = Accumulator(TOTAL, kind, whole_of(parts, kind), name)
        finish = self._finish(held, is_tuple)
        functions = (*(each.function for each in self.kernel.instances.values()), combine)
        params = tuple(self._params())
        stages = (Stage(body, Accumulator(PART, kind, value, name)),)
        source = self.kernel.source
        reduction = ReductionIR(definition.name, params, stages, total, finish, functions, source)
        kept = tuple(each for each in params if isinstance(each, ir.ScalarParam) or each.name in definition.outputs)
        return reduction, ir.Program(definition.name, kept, self._empty(total, held, finish), functions[:-1], source)

    def _params(self) -> list[ir.Param]:
        """Inputs, outputs, and the number of elements of a total."""
        found = self.parameters.params(self.definition.inputs, self.scalars)
        found += [ir.ArrayParam(name, self.types[name], written=True, read=False) for name in self.definition.outputs]
        return [*found, ir.ScalarParam(REDUCED, INT64)]

    def _combine(self, name: str, held: tuple[Kind, ...], is_tuple: bool) -> ir.Function:
        """The function of two accumulators."""
        tree = self.trees["combine"]
        trial = self._combining(held, is_tuple, name)
        lowering = self._combining(held, is_tuple, name, len(trial.returned))
        kind = result_of(name, held)
        text, body = tree.span.file.line(tree.span.line).strip(), tuple(lowering.context.blocks[0])
        return ir.Function(name, tuple((param.name, kind) for param in tree.params), kind, body, text)

    def _combining(self, held: tuple[Kind, ...], is_tuple: bool, name: str, ends: int = 0) -> PythonStatements:
        """The combination lowered; ends: how many returns it has, 0 to find its types."""
        kind = result_of(name, held)

        def value(param: s.ParamNode) -> Value:
            whole = ir.Local(param.name, kind)
            fields = [ir.Field(whole, *each) for each in kind.fields] if isinstance(kind, Struct) else [whole]
            return _whole(held, fields, is_tuple)

        taken = {param.name for param in self.trees["combine"].params}
        return self._lowered("combine", taken, value, ReturnEnding(held, name) if ends else None, ends)

    def _stage(self, name: str, held: tuple[Kind, ...]) -> tuple[tuple[ir.Stmt, ...], Expr]:
        """What happens for one element, loads first, and the value that is accumulated."""
        body: tuple[ir.Stmt, ...] = ()
        if "map" not in self.roles:
            parts: tuple[Expr, ...] = (adapt(self._element(), held[0], self._span).read(),)
        else:
            taken, kept = self.taken | {TOTAL, PART}, _KeptEnding(held)
            trial = self._lowered("map", taken, self.parameter)
            lowering = self._lowered("map", taken, self.parameter, kept, len(trial.returned))
            body, parts = tuple(lowering.context.blocks[0]), kept.parts
            if kept.early:
                body, parts = self._called(held)
        value_of_all = whole_of(parts, result_of(name, held)) if len(parts) > 1 else parts[0]
        loads = self.parameters.loads(self.definition.inputs, self.scalars, body, value_of_all)
        return (*loads, *body), value_of_all

    def _called(self, held: tuple[Kind, ...]) -> tuple[tuple[ir.Stmt, ...], tuple[Expr, ...]]:
        """The map as a function that is called."""
        tree, key = self.trees["map"], self.roles["map"]
        given = {param.name: self.input(param.name, param.span) for param in tree.params}
        for name, kind in self.definition.numbers:
            dtype = self.types[name]
            if dtype != BY_NAME[kind].dtype:  # it adapts to that dtype alone, so it may as well be of it
                given[name] = Scalar(dtype, converted(ir.Local(name, dtype), carrier(dtype)))
        self.kernel.active.append(key)
        instance = instantiate(self.kernel, UserFunction(tree.name, key), given, held)
        self.kernel.active.pop()
        self.kernel.instances[(key,)] = instance
        args = tuple(each for value in given.values() for each in flat(value))
        result = instance.function.result
        assert result is not None, "functions return something"
        whole = ir.Local("_mapped", result)
        parts = (whole,) if not isinstance(result, Struct) else tuple(ir.Field(whole, *each) for each in result.fields)
        return (ir.Declare(whole.name, result, ir.Call(instance.function.name, args, result)),), parts

    def finished(
        self, held: tuple[Kind, ...], is_tuple: bool, ending: StoreEnding | None = None, ends: int = 1
    ) -> PythonStatements | None:
        """What is made of a total, lowered; None if the parts of the total are the results."""
        if "finish" not in self.roles:
            return None
        total, whole = self.trees["finish"].params[0], [ir.Local(*each) for each in _total(held)]

        def value(param: s.ParamNode) -> Value:
            return _whole(held, whole, is_tuple) if param is total else self.fact(param)

        return self._lowered("finish", self.taken | {each.name for each in whole}, value, ending, ends)

    def _finish(self, held: tuple[Kind, ...], is_tuple: bool) -> tuple[ir.Stmt, ...]:
        """What is stored for one total."""
        targets = tuple((name, self.types[name]) for name in self.definition.outputs)
        trial = self.finished(held, is_tuple)
        if trial is not None:
            lowering = self.finished(held, is_tuple, StoreEnding(trial.results(), targets), len(trial.returned))
            assert lowering is not None, "there is a function"
            return tuple(lowering.context.blocks[0])
        context = context_of(self.kernel, self.roles["combine"], self.trees["combine"], self.taken)
        ending = StoreEnding(held, targets)
        values = [Scalar(kind, ir.Local(*each)) for kind, each in zip(held, _total(held), strict=True)]
        ending.give(context, ending.final(tuple(values)))
        return tuple(context.blocks[0])

    def _empty(self, total: Accumulator, held: tuple[Kind, ...], finish: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """The statements for a total of no elements."""
        identity = identity_of(self.definition.identity)
        if identity is None:
            return ()
        values = [adapt(each, kind, self._span).read() for each, kind in zip(identity[0], held, strict=True)]
        declared = [ir.Declare(name, dtype, value) for (name, dtype), value in zip(total.parts, values, strict=True)]
        return (*declared, *finish)

    @property
    def _span(self) -> Span:
        """The place of the combination, which stands for the whole reduction in messages."""
        return self.trees["combine"].span

    def _element(self) -> Scalar:
        """An element, where nothing maps it."""
        value = self.input(self.definition.inputs[0], self._span)
        assert isinstance(value, Scalar), "an element is a number"
        return value

    def declared_result(self, role: str) -> DType | None:
        """The dtype that a function's annotation fixes for what it returns."""
        return dtype_of(self.trees[role].returns, self.kernel, self.roles[role])

    def _lowered(
        self,
        role: str,
        taken: set[str],
        value: Callable[[s.ParamNode], Value],
        ending: Ending | None = None,
        ends: int = 1,
    ) -> PythonStatements:
        """A function lowered. value: what its parameters stand for."""
        tree, key = self.trees[role], self.roles[role]
        context = context_of(self.kernel, key, tree, taken)
        context.of_element = role == "map"
        lowering = PythonStatements(context, ending, ends)
        for param in tree.params:
            context.variables[param.name] = Binding(value(param), param.span)
        self.kernel.active.append(key)
        try:
            run(lowering)
        except FusecError as problem:
            if isinstance(problem.error, CannotUnpack) and key in (self.roles["combine"], self.roles.get("finish")):
                cure = "a total has as many parts as map returns: return a tuple there, e.g. map=lambda x: (1, x)"
                raise CannotUnpack(problem.error.given, problem.error.wanted, cure).at(problem.span) from None
            raise
        self.kernel.active.pop()
        return lowering

    # --- what parameters stand for ---

    def input(self, name: str, span: Span) -> Value:
        """An element, a number of the call, a default, or the position of the element."""
        if name == "index":
            return Scalar(PY_INT, position_of(self.reduced))
        if name == "indices":
            return _coordinates(range(self.ndim))
        return self.parameters.value(name, span)

    def parameter(self, param: s.ParamNode) -> Value:
        """What a parameter of `map` stands for."""
        return self.input(param.name, param.span)

    def fact(self, param: s.ParamNode) -> Value:
        """What a parameter of `finish` after the total stands for. Raises BadReduction for an array."""
        if param.name == "count":
            return Scalar(PY_INT, ir.Local(REDUCED, INT64))
        if param.name == "indices":
            return _coordinates(axis for axis in range(self.ndim) if axis not in self.reduced)
        if param.name not in self.scalars and param.name not in self.parameters.constants:
            what = f"finish takes '{param.name}', which is an array in this call"
            cure = "pass a number for it: finish runs once for each total, which has many elements"
            raise BadReduction(what, cure).at(param.span)
        return self.input(param.name, param.span)


def _coordinates(axes: Iterable[int]) -> Items:
    return Items(tuple(Scalar(PY_INT, ir.query("coordinate", axis)) for axis in axes))


def _total(held: tuple[Kind, ...]) -> tuple[tuple[str, DType], ...]:
    """The locals that hold a total, with their dtypes."""
    return Accumulator(TOTAL, result_of("total", held), const(0, INT64), "").parts


def _whole(held: tuple[Kind, ...], parts: Sequence[Expr], is_tuple: bool) -> Value:
    """An accumulator as functions see it."""
    values = tuple(Scalar(kind, part) for kind, part in zip(held, parts, strict=True))
    return Items(values) if is_tuple else values[0]


def _parts(whose: str, lowering: PythonStatements) -> Parts:
    """What a function returns."""
    _, is_tuple, span = lowering.returned[0]
    return Parts(whose, lowering.results(), is_tuple, span)
