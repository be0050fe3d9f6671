"""A definition with types bound to a program in the loops IR, and the types of its results."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.base.rounding_mode import usual
from fusec.errors.python import BadParameter, NotInSubset
from fusec.frontends.python import syntax as s
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.blocks import check_program
from fusec.frontends.python.context import Other, Unit, value_of
from fusec.frontends.python.definition import Capture, PythonDefinition
from fusec.frontends.python.function_exits import Kernel, frame_of, run
from fusec.frontends.python.grid import Grid
from fusec.frontends.python.stencil import Reach, Stencil
from fusec.frontends.python.types import BY_NAME, carrier, storage
from fusec.frontends.python.values import Array, Neighbours, Scalar, Uses, Value, converted, literal
from fusec.frontends.python.variables import Binding
from fusec.ir.expr import Pointer
from fusec.ir.loops import ArrayParam, Declare, Element, Load, Local, Param, Program, ScalarParam, Stmt
from fusec.ir.walk import expressions, operands, statements


@dataclass(frozen=True)
class Inferred:
    """What types a call has: those of its results, and those that Python numbers among its arguments adapt to.

    single: integers that meet floats of one dtype alone, so that a float instead would do the same.
    """

    results: tuple[DType, ...]
    numbers: Mapping[str, DType]
    single: frozenset[str]


@usual()
def infer(definition: PythonDefinition, types: Mapping[str, DType], ndims: Mapping[str, int]) -> Inferred:
    """The types of the results for arguments of these dtypes; a number that meets one dtype alone takes that dtype."""
    frame, uses = _lowered(definition, types, ndims)
    kinds = frame.results()
    if len(kinds) != len(definition.outputs):
        cure = "write the parts out: a, b = f(x), and return a, b"
        raise NotInSubset("returning a tuple whose length no text tells is", cure).at(frame.returned[0][2])
    numbers, single = {}, set()
    for name, kind in definition.numbers:
        met = uses[name].dtypes
        target = next(iter(met)) if len(met) == 1 else None
        numbers[name] = BY_NAME[kind].dtype if target is None else target
        single |= {name} if kind == "int" and target is not None and target.is_float else set()
    forced = _return_dtype(definition, frame.unit)
    return Inferred(tuple(forced or storage(kind) for kind in kinds), numbers, frozenset(single))


def lower(
    definition: PythonDefinition, types: Mapping[str, DType], scalars: frozenset[str], ndims: Mapping[str, int]
) -> Program:
    """The program of a kernel for arguments and results of given dtypes. Raises the errors of fusec.errors.python."""
    frame, _ = _lowered(definition, types, ndims)
    frame, _ = _lowered(definition, types, ndims, frame)
    head: list[Stmt] = []
    params: list[Param] = []
    raw = _raw(definition)
    read = {each.name for stmt in frame.blocks[0] for each in _locals(stmt)}
    for param in frame.tree.params:
        if param.name in dict(definition.constants):
            continue
        dtype = types[param.name]
        if param.name in scalars:
            params.append(ScalarParam(param.name, dtype))
            continue
        if param.name in definition.indexed:
            params.append(ArrayParam(param.name, dtype, raw=True, ndim=ndims.get(param.name, 0) or _ndim(frame)))
            continue
        if param.name in raw:
            ndim, written = raw[param.name]
            params.append(ArrayParam(param.name, dtype, raw=True, ndim=ndim, written=written))
            continue
        params.append(ArrayParam(param.name, dtype))
        if param.name in read:
            head.append(Declare(param.name, dtype, Load(Element(param.name, Pointer(dtype, "global", True)), dtype)))
    skips = definition.border is not None and "skip" in definition.border[0]
    params += [ArrayParam(name, types[name], written=True, read=skips) for name in definition.outputs]
    functions = tuple(instance.function for instance in frame.unit.instances.values())
    body = (*head, *frame.blocks[0])
    program = Program(definition.name, tuple(params), body, functions, frame.unit.source, definition.block)
    if definition.block:
        check_program(program)
    return program


def _raw(definition: PythonDefinition) -> dict[str, tuple[int, bool]]:
    """The arrays of an explicit kernel: how many axes each has, and whether it is written."""
    return {name: (ndim, written) for name, ndim, written in definition.arrays or ()}


def _sort(definition: PythonDefinition) -> type[Kernel]:
    if definition.arrays is not None:
        return Grid
    return Kernel if definition.border is None else Stencil


def _ndim(frame: Kernel) -> int:
    """Axes of a stencil's arrays if no call says: as many as its indices have."""
    return max(1, len(frame.reach.least)) if isinstance(frame, Stencil) else 1


def _locals(statement: Stmt) -> list[Local]:
    roots = [root for each in statements((statement,)) for root in operands(each)]
    return [each for each in expressions(roots) if isinstance(each, Local)]


def _lowered(
    definition: PythonDefinition, types: Mapping[str, DType], ndims: Mapping[str, int], trial: Kernel | None = None
) -> tuple[Kernel, Mapping[str, Uses]]:
    """The kernel lowered; trial: what the first lowering found, which tells the types of the results."""
    unit = Unit(definition)
    key = definition.functions[-1].key
    tree = unit.tree(key)
    names = {param.name for param in tree.params}
    unit.names |= names | set(definition.outputs) | {definition.name}
    unit.active.append(key)
    kind = _sort(definition)
    frame = frame_of(kind, unit, key, tree, names | set(definition.outputs))
    if isinstance(frame, Stencil):
        assert definition.border is not None, "a stencil has a border"
        frame.ndims, (frame.modes, cval, frame.axes) = dict(ndims), definition.border
        frame.cval = _outside(cval)
        frame.reach = trial.reach if isinstance(trial, Stencil) else Reach()
    if trial is not None:
        frame.targets, frame.result = tuple((name, types[name]) for name in definition.outputs), trial.results()
        frame.prepare(len(trial.returned))
    uses = {name: Uses() for name, _ in definition.numbers}
    constants = dict(definition.constants)
    for param in tree.params:
        frame.variables[param.name] = Binding(_parameter(param, types, constants, definition, uses), param.span)
    run(frame, tree, None)
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
    if param.name in definition.indexed:
        return Neighbours(param.name, dtype)
    raw = _raw(definition)
    if param.name in raw:
        return Array(param.name, dtype, *raw[param.name])
    return Scalar(dtype, converted(Local(param.name, dtype), carrier(dtype)))


def _outside(cval: Capture) -> Scalar:
    found = value_of(cval, "cval")
    return found if isinstance(found, Scalar) else literal(0)


def _return_dtype(definition: PythonDefinition, unit: Unit) -> DType | None:
    key = definition.functions[-1].key
    return dtype_of(unit.tree(key).returns, unit, key)
