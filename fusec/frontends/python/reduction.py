"""Reductions in Python: the functions that map, combine and finish to a reduction in the IR, and its types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.base.dtypes import INT64, DType
from fusec.base.records import dataclass
from fusec.base.rounding_mode import usual
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.python import BadParameter, BadReduction, CannotUnpack, NotInSubset
from fusec.frontends.python import syntax as s
from fusec.frontends.python.accumulator import Parts, identity_of, settled
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.calls import flat, result_of
from fusec.frontends.python.context import Other, Unit, value_of
from fusec.frontends.python.definition import ReductionFunctions
from fusec.frontends.python.function_exits import AnyDevice, Device, Kernel, frame_of, instantiate, run
from fusec.frontends.python.types import BY_NAME, PY_INT, Kind, PythonType, carrier, storage
from fusec.frontends.python.values import Items, Scalar, UserFunction, Uses, Value, adapt, converted
from fusec.frontends.python.variables import Binding
from fusec.ir.expr import Expr, Pointer, Struct, apply, const
from fusec.ir.loops import (
    ArrayParam,
    Call,
    Declare,
    Element,
    Field,
    Function,
    Load,
    Local,
    Param,
    Program,
    Query,
    ScalarParam,
    Stmt,
)
from fusec.ir.reductions import REDUCED, Accumulator, Reduction, Stage, whole_of
from fusec.ir.walk import expressions, operands, statements

TOTAL, PART = "_total", "_part"  # locals
NOT_INPUTS = ("index", "indices")  # what a map may ask for besides elements
TOTALS_FACTS = ("count", "indices")  # what `finish` may ask for besides numbers


@dataclass(frozen=True)
class Outcome:
    """What types a call has: those of its results, and those that Python numbers among its arguments adapt to.

    is_tuple: whether the results come as one.
    """

    results: tuple[DType, ...]
    is_tuple: bool
    numbers: Mapping[str, DType]


@usual()
def infer(definition: ReductionFunctions, types: Mapping[str, DType], scalars: frozenset[str], ndim: int) -> Outcome:
    """The types of the results for arguments of these dtypes. scalars: those passed by value. ndim: axes of a call."""
    lowering = _Lowering(definition, types, scalars, ndim, ())
    held, is_tuple = lowering.held()
    frame = lowering.finished(held, is_tuple)
    if frame is not None:
        is_tuple = frame.returned[0][1]
        results = lowering.results(frame)
    else:
        results = tuple(map(storage, held))
    numbers = {}
    for name, kind in definition.numbers:
        met = lowering.uses[name].dtypes
        target = next(iter(met)) if len(met) == 1 else None
        numbers[name] = BY_NAME[kind].dtype if target is None else target
    return Outcome(results, is_tuple, numbers)


def lower(
    definition: ReductionFunctions,
    types: Mapping[str, DType],
    scalars: frozenset[str],
    ndim: int,
    reduced: Sequence[int],
) -> tuple[Reduction, Program]:
    """The reduction for given types, and the program that stores its outputs where there are no elements.

    ndim: axes of the walk. reduced: those that are reduced. The program has no statement if there is no identity.
    Raises the errors of fusec.errors.python and language.
    """
    held, is_tuple = _Lowering(definition, types, scalars, ndim, reduced).held()
    return _Lowering(definition, types, scalars, ndim, reduced).reduction(held, is_tuple)


class _Piece(Device):
    """A function whose statements become part of a reduction; early: it returns where only a function can."""

    of_element = True
    early = False
    parts: tuple[Expr, ...] = ()

    def places(self) -> list[tuple[str, DType | Struct]]:
        """What is returned, part by part."""
        assert self.result is not None, "the types of the results are known by now"
        return [(f"part{at}", carrier(kind)) for at, kind in enumerate(self.result)]

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The parts."""
        return tuple(value.read() for value in values)

    def give(self, found: tuple[Expr, ...]) -> None:
        """Keep the parts where the function ends."""
        self.early |= bool(self.loops) or not self.tail
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
        self.ndim, self.reduced = ndim, tuple(reduced)
        self.roles = dict(definition.roles)
        self.uses = {name: Uses() for name, _ in definition.numbers}
        self.unit = Unit(definition.plain, reduces=True)
        self.unit.names |= {*definition.inputs, *definition.outputs, definition.name}
        self.taken = {*definition.inputs, *definition.outputs, REDUCED}
        self._finish_kinds: tuple[Kind, ...] = ()

    # --- types ---

    def held(self) -> tuple[tuple[Kind, ...], bool]:
        """The types that are accumulated, and whether functions see them as a tuple."""
        first = self.mapped_parts()
        tree, key = self._function("combine")
        found = [
            dtype_of(each, self.unit, key) for each in (tree.returns, *(param.annotation for param in tree.params))
        ]
        annotated = next((dtype for dtype in found if dtype is not None), None)
        identity = identity_of(self.definition.identity)

        def combined(kinds: tuple[Kind, ...]) -> Parts:
            frame = self._combining(Device, tree, key, kinds, first.is_tuple, "combine")
            return _parts("combine returns", frame)

        return settled(first, identity, annotated, combined), first.is_tuple

    def mapped_parts(self) -> Parts:
        """What is made of one element."""
        if "map" not in self.roles:
            tree, _ = self._function("combine")
            param = self.definition.inputs[0]
            kind = self.input(param, tree.span)
            assert isinstance(kind, Scalar), "an element is a number"
            return Parts("what is combined is", (kind.type,), False, tree.span, has_line=False)
        tree, key = self._function("map")
        frame = self._mapping(tree, key)
        found = _parts("map returns", frame)
        forced = dtype_of(tree.returns, self.unit, key)
        return found if forced is None else Parts(found.whose, (forced,) * len(found.kinds), found.is_tuple, found.span)

    def results(self, frame: Device) -> tuple[DType, ...]:
        """The dtypes of what `finish` returns."""
        tree, key = self._function("finish")
        kinds = frame.results()
        values = frame.returned[0]
        if any(not isinstance(each, Scalar) for each in values[0]):
            raise NotInSubset("returning this is", "return numbers").at(values[2])
        forced = dtype_of(tree.returns, self.unit, key)
        return tuple(forced or storage(kind) for kind in kinds)

    # --- parts of the reduction ---

    def reduction(self, held: tuple[Kind, ...], is_tuple: bool) -> tuple[Reduction, Program]:
        """All parts together."""
        definition, name = self.definition, self.unit.fresh(f"{self.definition.name}_combine")
        combine = self._combine(name, held, is_tuple)
        body, value = self._stage(name, held)
        kind = _carried(name, held)
        parts = tuple(Local(part, dtype) for part, dtype in Accumulator(PART, kind, const(0, INT64), name).parts)
        total = Accumulator(TOTAL, kind, whole_of(parts, kind), name)
        finish = self._finish(held, is_tuple)
        functions = (*(each.function for each in self.unit.instances.values()), combine)
        params = tuple(self._params())
        stages = (Stage(body, Accumulator(PART, kind, value, name)),)
        source = self.unit.source
        reduction = Reduction(definition.name, params, stages, total, finish, functions, source)
        kept = tuple(each for each in params if isinstance(each, ScalarParam) or each.name in definition.outputs)
        return reduction, Program(definition.name, kept, self._empty(total, held, finish), functions[:-1], source)

    def _params(self) -> list[Param]:
        """Inputs, outputs, and the number of elements of a total."""
        constants = dict(self.definition.constants)
        found: list[Param] = [
            ScalarParam(name, self.types[name]) if name in self.scalars else ArrayParam(name, self.types[name])
            for name in self.definition.inputs
            if name not in constants
        ]
        found += [ArrayParam(name, self.types[name], written=True, read=False) for name in self.definition.outputs]
        return [*found, ScalarParam(REDUCED, INT64)]

    def _combine(self, name: str, held: tuple[Kind, ...], is_tuple: bool) -> Function:
        """The function of two accumulators."""
        tree, key = self._function("combine")
        trial = self._combining(Device, tree, key, held, is_tuple, name)
        frame = self._combining(Device, tree, key, held, is_tuple, name, len(trial.returned))
        kind = _carried(name, held)
        text = tree.span.file.line(tree.span.line).strip()
        return Function(name, tuple((param.name, kind) for param in tree.params), kind, tuple(frame.blocks[0]), text)

    def _combining(
        self,
        sort: type[AnyDevice],
        tree: s.Function,
        key: str,
        held: tuple[Kind, ...],
        is_tuple: bool,
        name: str,
        ends: int = 0,
    ) -> AnyDevice:
        """The combination lowered; ends: how many returns it has, 0 to find its types."""
        frame = frame_of(sort, self.unit, key, tree, {param.name for param in tree.params})
        kind = _carried(name, held)
        if ends:
            frame.struct, frame.result = name, held
            frame.prepare(ends)
        for param in tree.params:
            whole = Local(param.name, kind)
            if isinstance(kind, Struct):
                fields = [Field(whole, field, dtype) for field, dtype in kind.fields]
            else:
                fields = [whole]  # type: ignore[list-item]
            frame.variables[param.name] = Binding(_whole(held, fields, is_tuple), param.span)
        return self._run(frame, tree, key)

    def _stage(self, name: str, held: tuple[Kind, ...]) -> tuple[tuple[Stmt, ...], Expr]:
        """What happens for one element, loads first, and the value that is accumulated."""
        body: tuple[Stmt, ...] = ()
        if "map" not in self.roles:
            tree, _ = self._function("combine")
            value = self.input(self.definition.inputs[0], tree.span)
            assert isinstance(value, Scalar), "an element is a number"
            parts: tuple[Expr, ...] = (adapt(value, held[0], tree.span).read(),)
        else:
            tree, key = self._function("map")
            trial = self._mapping(tree, key)
            frame = self._mapping(tree, key, held, len(trial.returned))
            body, parts = tuple(frame.blocks[0]), frame.parts
            if frame.early:
                body, parts = self._called(tree, key, held)
        value_of_all = whole_of(parts, _carried(name, held)) if len(parts) > 1 else parts[0]
        read = {each.name for each in _locals(body, value_of_all)}
        loads = [
            Declare(
                each, self.types[each], Load(Element(each, Pointer(self.types[each], "global", True)), self.types[each])
            )
            for each in self.definition.inputs
            if each in read and each not in self.scalars
        ]
        return (*loads, *body), value_of_all

    def _mapping(self, tree: s.Function, key: str, held: tuple[Kind, ...] | None = None, ends: int = 0) -> _Piece:
        """The map lowered as a part of what happens for an element."""
        frame = frame_of(_Piece, self.unit, key, tree, self.taken | {TOTAL, PART})
        if held is not None:
            frame.result = held
            frame.prepare(ends)
        for param in tree.params:
            frame.variables[param.name] = Binding(self.input(param.name, param.span), param.span)
        return self._run(frame, tree, key)

    def _called(self, tree: s.Function, key: str, held: tuple[Kind, ...]) -> tuple[tuple[Stmt, ...], tuple[Expr, ...]]:
        """The map as a function that is called."""
        given = {param.name: self.input(param.name, param.span) for param in tree.params}
        for name, kind in self.definition.numbers:
            dtype = self.types[name]
            if dtype != BY_NAME[kind].dtype:  # it adapts to that dtype alone, so it may as well be of it
                given[name] = Scalar(dtype, converted(Local(name, dtype), carrier(dtype)))
        self.unit.active.append(key)
        instance = instantiate(self.unit, UserFunction(tree.name, key), given, held)
        self.unit.active.pop()
        self.unit.instances[(key,)] = instance
        args = tuple(each for value in given.values() for each in flat(value))
        result = instance.function.result
        assert result is not None, "functions return something"
        whole = Local("_mapped", result)
        parts = (whole,) if not isinstance(result, Struct) else tuple(Field(whole, *each) for each in result.fields)
        return (Declare(whole.name, result, Call(instance.function.name, args, result)),), parts

    def finished(
        self, held: tuple[Kind, ...], is_tuple: bool, targets: tuple[tuple[str, DType], ...] = (), ends: int = 0
    ) -> Kernel | None:
        """What is made of a total, lowered; None if the parts of the total are the results."""
        if "finish" not in self.roles:
            return None
        tree, key = self._function("finish")
        frame = frame_of(Kernel, self.unit, key, tree, self.taken | {name for name, _ in _total(held)})
        if ends:
            frame.targets, frame.result = targets, self._finish_kinds
            frame.prepare(ends)
        total, *others = tree.params
        frame.variables[total.name] = Binding(
            _whole(held, [Local(*each) for each in _total(held)], is_tuple), total.span
        )
        for param in others:
            frame.variables[param.name] = Binding(self.fact(param), param.span)
        found = self._run(frame, tree, key)
        self._finish_kinds = found.results()
        return found

    def _finish(self, held: tuple[Kind, ...], is_tuple: bool) -> tuple[Stmt, ...]:
        """What is stored for one total."""
        targets = tuple((name, self.types[name]) for name in self.definition.outputs)
        trial = self.finished(held, is_tuple)
        if trial is not None:
            frame = self.finished(held, is_tuple, targets, len(trial.returned))
            assert frame is not None, "there is a function"
            return tuple(frame.blocks[0])
        tree, key = self._function("combine")
        frame = frame_of(Kernel, self.unit, key, tree, self.taken)
        frame.targets = targets
        values = [Scalar(kind, Local(*each)) for kind, each in zip(held, _total(held), strict=True)]
        frame.give(frame.final(tuple(values)))
        return tuple(frame.blocks[0])

    def _empty(self, total: Accumulator, held: tuple[Kind, ...], finish: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The statements for a total of no elements."""
        identity = identity_of(self.definition.identity)
        if identity is None:
            return ()
        tree, _ = self._function("combine")
        values = [adapt(each, kind, tree.span).read() for each, kind in zip(identity[0], held, strict=True)]
        declared = [Declare(name, dtype, value) for (name, dtype), value in zip(total.parts, values, strict=True)]
        return (*declared, *finish)

    def _function(self, role: str) -> tuple[s.Function, str]:
        key = self.roles[role]
        return self.unit.tree(key), key

    def _run(self, frame: AnyDevice, tree: s.Function, key: str) -> AnyDevice:
        """Lower the body."""
        self.unit.active.append(key)
        try:
            run(frame, tree, None)
        except FusecError as problem:
            if isinstance(problem.error, CannotUnpack) and key in (self.roles["combine"], self.roles.get("finish")):
                cure = "a total has as many parts as map returns: return a tuple there, e.g. map=lambda x: (1, x)"
                raise CannotUnpack(problem.error.given, problem.error.wanted, cure).at(problem.span) from None
            raise
        self.unit.active.pop()
        return frame

    # --- what parameters stand for ---

    def input(self, name: str, span: Span) -> Value:
        """An element, a number of the call, a default, or the position of the element."""
        if name == "index":
            return Scalar(PY_INT, self._position())
        if name == "indices":
            return Items(tuple(_coordinate(axis) for axis in range(self.ndim)))
        constants = dict(self.definition.constants)
        if name in constants:
            found = value_of(constants[name], name)
            if isinstance(found, Other):
                raise BadParameter(f"the default of '{name}' is {found.given}", found.cure).at(span)
            return found
        dtype, python = self.types.get(name), dict(self.definition.numbers).get(name)
        if python is not None:
            kind = BY_NAME[python]
            return Scalar(kind, Local(name, dtype or kind.dtype), uses=self.uses[name])
        assert dtype is not None, f"{name} has a type"
        return Scalar(dtype, converted(Local(name, dtype), carrier(dtype)))

    def fact(self, param: s.Parameter) -> Value:
        """What a parameter of `finish` after the total stands for. Raises BadReduction for an array."""
        if param.name == "count":
            return Scalar(PY_INT, Local(REDUCED, INT64))
        if param.name == "indices":
            return Items(tuple(_coordinate(axis) for axis in range(self.ndim) if axis not in self.reduced))
        if param.name not in self.scalars and param.name not in dict(self.definition.constants):
            what = f"finish takes '{param.name}', which is an array in this call"
            raise BadReduction(what, "pass a number for it: finish runs once for a total, of many elements").at(
                param.span
            )
        return self.input(param.name, param.span)

    def _position(self) -> Expr:
        """The position among the elements of one total, in C order of the axes that are reduced."""
        position: Expr = const(0, INT64)
        for axis in self.reduced:
            extent = Query("", "shape", const(axis, INT64), INT64)
            here = Query("", "coordinate", const(axis, INT64), INT64)
            position = here if axis == self.reduced[0] else apply("add", apply("multiply", position, extent), here)
        return position


def _coordinate(axis: int) -> Scalar:
    return Scalar(PY_INT, Query("", "coordinate", const(axis, INT64), INT64))


def _carried(name: str, held: tuple[Kind, ...]) -> Struct | DType:
    """The IR type of an accumulator."""
    found = result_of(name, held)
    assert not isinstance(found, PythonType), "carriers are dtypes"
    return found


def _total(held: tuple[Kind, ...]) -> tuple[tuple[str, DType], ...]:
    """The locals that hold a total, with their dtypes."""
    return Accumulator(TOTAL, _carried("total", held), const(0, INT64), "").parts


def _whole(held: tuple[Kind, ...], parts: Sequence[Expr], is_tuple: bool) -> Value:
    """An accumulator as functions see it."""
    values = tuple(Scalar(kind, part) for kind, part in zip(held, parts, strict=True))
    return Items(values) if is_tuple else values[0]


def _parts(whose: str, frame: Device) -> Parts:
    """What a function returns."""
    _, is_tuple, span = frame.returned[0]
    return Parts(whose, frame.results(), is_tuple, span)


def _locals(body: Sequence[Stmt], value: Expr) -> list[Local]:
    """The locals that statements and a value read."""
    roots = [value, *(root for each in statements(tuple(body)) for root in operands(each))]
    return [each for each in expressions(roots) if isinstance(each, Local)]
