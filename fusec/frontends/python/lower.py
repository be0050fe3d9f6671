"""A definition with types bound to a program in the loops IR, and the types of its results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from fusec.dtypes import DType
from fusec.errors.language import TooDeep
from fusec.errors.python import BadParameter, NoReturn, NotInSubset
from fusec.frontends.python import scan
from fusec.frontends.python import syntax as s
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.calls import parameter_values, result_of
from fusec.frontends.python.definition import PythonDefinition
from fusec.frontends.python.flow import Binding
from fusec.frontends.python.statements import Statements
from fusec.frontends.python.types import BY_NAME, Kind, PythonType, carrier, storage
from fusec.frontends.python.unit import MAX_NESTING, Instance, Other, Unit, value_of
from fusec.frontends.python.values import Scalar, UserFunction, Uses, Value, converted, rounded
from fusec.ir.expr import Expr, Pointer, Struct
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    Declare,
    Element,
    Function,
    Load,
    Local,
    Make,
    Param,
    Program,
    Return,
    ScalarParam,
    Stmt,
    Store,
)
from fusec.ir.walk import expressions, operands, statements
from fusec.records import dataclass


class Device(Statements):
    """A function that others call. struct: its name, that of the struct in which it returns several numbers.

    ends: how many returns it has; several that need not return at once leave their results in `kept`.
    """

    struct = ""
    ends = 1
    kept: tuple[Local, ...] = ()

    def prepare(self, ends: int) -> None:
        """Before the body: make room for results that several returns give."""
        self.ends = ends
        if ends > 1 and self.result is not None:
            self.kept = tuple(self.declare(name, dtype) for name, dtype in self.places())

    def places(self) -> list[tuple[str, DType | Struct]]:
        """What is returned, by name and type."""
        assert self.result is not None, "the types of the results are known by now"
        kind = result_of(self.struct, self.result)
        assert not isinstance(kind, PythonType), "carriers are dtypes"
        return [("result", kind)]

    def finish(self, values: tuple[Scalar, ...]) -> None:
        """Give the results now, or keep them until the one end of the function."""
        found = self.final(values)
        if self.ends == 1 or self.loops or not self.tail:
            self.give(found)
            return
        for local, value in zip(self.kept, found, strict=True):
            self.emit(Assign(local.name, value, line=self.line))

    def complete(self) -> None:
        """After the body: give what was kept."""
        if self.kept:
            self.line = 0
            self.give(self.kept)

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The results as they are returned: one number, or several in a struct."""
        assert self.result is not None, "the types of the results are known by now"
        kind = result_of(self.struct, self.result)
        parts = tuple(value.read() for value in values)
        return (Make(parts, kind),) if isinstance(kind, Struct) else parts

    def give(self, found: tuple[Expr, ...]) -> None:
        """Return from a device function."""
        self.emit(Return(found[0], line=self.line))

    def instantiate(self, callee: UserFunction, given: dict[str, Value]) -> Instance:
        """A device function for certain arguments."""
        return instantiate(self.unit, callee, given)


def instantiate(unit: Unit, callee: UserFunction, given: dict[str, Value]) -> Instance:
    """Lower a function twice: once for the types of its results, and then for good."""
    tree = unit.tree(callee.key)
    inside, params = parameter_values(given)
    name = unit.fresh(tree.name)
    kinds: tuple[Kind, ...] | None = None
    ends = 1
    for _ in range(2):
        frame = _frame(Device, unit, callee.key, tree, {each for each, _ in params})
        frame.struct, frame.result = name, kinds
        frame.prepare(ends)
        for each, value in inside.items():
            frame.variables[each] = Binding(value, tree.span)
        kinds = _run(frame, tree, dtype_of(tree.returns, unit, callee.key))
        ends = len(frame.returned)
    result = result_of(name, kinds or ())
    text = tree.span.file.line(tree.span.line).strip()
    types = tuple((each, carrier(value.type)) for each, value in params)
    assert not isinstance(result, PythonType), "carriers are dtypes"
    function = Function(name, types, result, tuple(frame.blocks[0]), text)
    return Instance(function, kinds or (), frame.returned[0][1])


class Kernel(Device):
    """The function that a call runs for every element. targets: its outputs with the dtypes of their arrays."""

    targets: tuple[tuple[str, DType], ...] = ()

    def places(self) -> list[tuple[str, DType | Struct]]:
        """The results, by output."""
        return list(self.targets)

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The results as memory holds them."""
        pairs = zip(self.targets, values, strict=True)
        return tuple(
            converted(value.read(), dtype) if dtype != storage(value.type) else rounded(value)
            for (_, dtype), value in pairs
        )

    def give(self, found: tuple[Expr, ...]) -> None:
        """Store the results, and end the element's work if there is more that it must not do."""
        for (name, dtype), value in zip(self.targets, found, strict=True):
            self.emit(Store(Element(name, Pointer(dtype, "global")), value, line=self.line))
        if self.loops or not self.tail:
            self.emit(Return(line=self.line))


@dataclass(frozen=True)
class Inferred:
    """What types a call has: those of its results, and those that Python numbers among its arguments adapt to.

    single: integers that meet floats of one dtype alone, so that a float instead would do the same.
    """

    results: tuple[DType, ...]
    numbers: Mapping[str, DType]
    single: frozenset[str]


def infer(definition: PythonDefinition, types: Mapping[str, DType]) -> Inferred:
    """The types of the results for arguments of these dtypes; a number that meets one dtype alone takes that dtype."""
    frame, uses = _lowered(definition, types)
    kinds = frame.results()
    if len(kinds) != len(definition.outputs):
        cure = "write the parts out: a, b = f(x), and return a, b"
        raise NotInSubset("returning a tuple that another function made is", cure).at(frame.returned[0][2])
    numbers, single = {}, set()
    for name, kind in definition.numbers:
        met = uses[name].dtypes
        target = next(iter(met)) if len(met) == 1 else None
        numbers[name] = BY_NAME[kind].dtype if target is None else target
        single |= {name} if kind == "int" and target is not None and target.is_float else set()
    forced = _return_dtype(definition, frame.unit)
    return Inferred(tuple(forced or storage(kind) for kind in kinds), numbers, frozenset(single))


def lower(definition: PythonDefinition, types: Mapping[str, DType], scalars: frozenset[str]) -> Program:
    """The program of a kernel for arguments and results of given dtypes. Raises the errors of fusec.errors.python."""
    frame, _ = _lowered(definition, types)
    frame, _ = _lowered(definition, types, frame)
    head: list[Stmt] = []
    params: list[Param] = []
    read = {each.name for stmt in frame.blocks[0] for each in _locals(stmt)}
    for param in frame.tree.params:
        if param.name in dict(definition.constants):
            continue
        dtype = types[param.name]
        if param.name in scalars:
            params.append(ScalarParam(param.name, dtype))
            continue
        params.append(ArrayParam(param.name, dtype))
        if param.name in read:
            head.append(Declare(param.name, dtype, Load(Element(param.name, Pointer(dtype, "global", True)), dtype)))
    params += [ArrayParam(name, types[name], written=True, read=False) for name in definition.outputs]
    functions = tuple(instance.function for instance in frame.unit.instances.values())
    return Program(definition.name, tuple(params), (*head, *frame.blocks[0]), functions, frame.unit.source)


def _locals(statement: Stmt) -> list[Local]:
    roots = [root for each in statements((statement,)) for root in operands(each)]
    return [each for each in expressions(roots) if isinstance(each, Local)]


def _lowered(
    definition: PythonDefinition, types: Mapping[str, DType], trial: Kernel | None = None
) -> tuple[Kernel, Mapping[str, Uses]]:
    """The kernel lowered; trial: what the first lowering found, which tells the types of the results."""
    unit = Unit(definition)
    key = definition.functions[-1].key
    tree = unit.tree(key)
    names = {param.name for param in tree.params}
    unit.names |= names | set(definition.outputs) | {definition.name}
    unit.active.append(key)
    frame = _frame(Kernel, unit, key, tree, names | set(definition.outputs))
    if trial is not None:
        frame.targets, frame.result = tuple((name, types[name]) for name in definition.outputs), trial.results()
        frame.prepare(len(trial.returned))
    uses = {name: Uses() for name, _ in definition.numbers}
    constants = dict(definition.constants)
    for param in tree.params:
        frame.variables[param.name] = Binding(_parameter(param, types, constants, definition, uses), param.span)
    _run(frame, tree, None)
    return frame, uses


def _parameter(
    param: s.Parameter,
    types: Mapping[str, DType],
    constants: Mapping[str, tuple[object, ...]],
    definition: PythonDefinition,
    uses: Mapping[str, Uses],
) -> Value:
    if param.name in constants:
        found = value_of(constants[param.name], param.name)
        if isinstance(found, Other):
            raise BadParameter(f"the default of '{param.name}' is {found.given}", found.cure).at(param.span)
        return found
    dtype = types.get(param.name)
    python = dict(definition.numbers).get(param.name)
    if python is not None:
        kind = BY_NAME[python]
        return Scalar(kind, Local(param.name, dtype or kind.dtype), uses=uses[param.name])
    assert dtype is not None, f"{param.name} has a type"
    return Scalar(dtype, converted(Local(param.name, dtype), carrier(dtype)))


def _return_dtype(definition: PythonDefinition, unit: Unit) -> DType | None:
    key = definition.functions[-1].key
    return dtype_of(unit.tree(key).returns, unit, key)


AnyDevice = TypeVar("AnyDevice", bound=Device)


def _frame(kind: type[AnyDevice], unit: Unit, key: str, tree: s.Function, taken: set[str]) -> AnyDevice:
    local_names = frozenset(scan.assigned(tree.body))
    frame = kind(unit, key, tree, local_names, taken)
    frame.returned = []
    return frame


def _run(frame: Device, tree: s.Function, forced: DType | None) -> tuple[Kind, ...]:
    """Lower the body; the types of the results. Raises NoReturn or TooDeep."""
    try:
        frame.body(tree.body)
    except RecursionError:
        raise TooDeep(MAX_NESTING, "expressions").at(tree.span) from None
    if frame.reachable or not frame.returned:
        raise NoReturn(tree.name).at(tree.span)
    frame.complete()
    kinds = frame.results()
    return tuple(forced for _ in kinds) if forced is not None else kinds
