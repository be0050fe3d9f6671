"""A definition with types bound to a program in the loops IR, and the types of its results."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import DType
from fusec.base.rounding_mode import default_rounding
from fusec.errors.python import NotInSubset
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.arrays import array_of_call
from fusec.frontends.python.blocks import check_program
from fusec.frontends.python.definition import PythonDefinition
from fusec.frontends.python.function_context import Binding
from fusec.frontends.python.function_exits import StoreEnding, context_of, run, straight
from fusec.frontends.python.grid import over_grid
from fusec.frontends.python.kernel_context import KernelContext
from fusec.frontends.python.parameters import Inferred, Parameters
from fusec.frontends.python.statements import PythonStatements
from fusec.frontends.python.stencil import Reach, StencilLowering
from fusec.frontends.python.types import storage
from fusec.frontends.python.values import ArrayParameter, Neighbours
from fusec.ir.loops import ArrayParam, Program


@default_rounding()
def infer(definition: PythonDefinition, types: Mapping[str, DType], ndims: Mapping[str, int]) -> Inferred:
    """The types of the results for arguments of these dtypes."""
    parameters = _parameters(definition, types)
    lowering = _lowered(definition, parameters, ndims, Reach())
    kinds = lowering.results()
    if len(kinds) != len(definition.outputs):
        cure = "write the parts out: a, b = f(x), and return a, b"
        raise NotInSubset("returning a tuple of unknown length is", cure).at(lowering.returned[0][2])
    kernel, key = lowering.context.kernel, lowering.context.key
    forced = dtype_of(kernel.tree(key).returns, kernel, key)
    results = tuple(forced or storage(kind) for kind in kinds)
    return parameters.inferred(results, lowering.returned[0][1])


def lower(
    definition: PythonDefinition, types: Mapping[str, DType], scalars: frozenset[str], ndims: Mapping[str, int]
) -> Program:
    """The program of a kernel for arguments and results of given dtypes. Raises the errors of fusec.errors.python."""
    parameters, reach = _parameters(definition, types), Reach()
    trial = _lowered(definition, parameters, ndims, reach)
    lowering = _lowered(definition, parameters, ndims, reach, trial)
    kernel, body = lowering.context.kernel, tuple(lowering.context.blocks[0])
    names = [param.name for param in lowering.context.tree.params]
    raw: dict[str, ArrayParam] = {}
    for name, array in parameters.arrays.items():
        if isinstance(array, ArrayParameter):
            raw[name] = ArrayParam(name, array.dtype, raw=True, ndim=len(array.extents), written=array.written)
        else:
            ndim = ndims.get(name, 0) or max(1, len(reach.least))  # if no call says: as many as indices have
            raw[name] = ArrayParam(name, array.dtype, raw=True, ndim=ndim)
    params = [raw.get(each.name, each) for each in parameters.params(names, scalars)]
    skips = definition.border is not None and "skip" in definition.border[0]
    params += [ArrayParam(name, types[name], written=True, read=skips) for name in definition.outputs]
    functions = tuple(instance.function for instance in kernel.instances.values())
    body = (*parameters.loads(names, scalars, body), *body)
    program = Program(definition.name, tuple(params), body, functions, kernel.source, definition.block)
    if definition.block:
        check_program(program)
    return program


def _parameters(definition: PythonDefinition, types: Mapping[str, DType]) -> Parameters:
    neighbours = [Neighbours(name, types[name]) for name in definition.indexed if name in types]
    arrays = [array_of_call(name, types[name], ndim, written) for name, ndim, written in definition.arrays or ()]
    return Parameters(definition, types, [*neighbours, *arrays])


def _lowered(
    definition: PythonDefinition,
    parameters: Parameters,
    ndims: Mapping[str, int],
    reach: Reach,
    trial: PythonStatements | None = None,
) -> PythonStatements:
    """The kernel lowered; trial: the first lowering, which found the types of the results, and the reach."""
    kernel = KernelContext(definition)
    key = definition.functions[-1].key
    tree = kernel.tree(key)
    taken = {param.name for param in tree.params} | set(definition.outputs)
    kernel.names |= taken | {definition.name}
    kernel.active.append(key)
    context = context_of(kernel, key, tree, taken)
    stencil = None if definition.border is None else StencilLowering(context, definition.border, ndims, reach)
    if trial is None:
        lowering = PythonStatements(context)
    else:
        ending = StoreEnding(trial.results(), tuple((name, parameters.types[name]) for name in definition.outputs))
        twice = stencil is not None and stencil.is_twofold
        lowering = PythonStatements(context, ending, len(trial.returned) + twice)
    for param in tree.params:
        context.variables[param.name] = Binding(parameters.value(param.name, param.span), param.span)
    text = over_grid if definition.arrays is not None else straight if stencil is None else stencil.lower
    run(lowering, text=text)
    return lowering
