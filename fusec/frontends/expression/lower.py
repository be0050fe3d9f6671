"""One part of an expression, with types bound, to a program or to a reduction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from fusec.base.dtypes import INT32, DType
from fusec.base.rounding_mode import default_rounding
from fusec.base.source import SourceFile, Span
from fusec.errors.fusing import ExpressionTooLarge, NegativePower
from fusec.errors.language import BadArgument
from fusec.frontends.expression.definition import KEY, ExpressionDefinition
from fusec.frontends.expression.functions import CONVERSIONS, KNOWN, REDUCTIONS, Combination
from fusec.frontends.expression.parse import MAX_NESTING
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import arithmetic
from fusec.frontends.python import syntax as s
from fusec.frontends.python.expressions import Operate, PythonExpressions, conversion
from fusec.frontends.python.function_context import Binding, FunctionContext
from fusec.frontends.python.kernel_context import KernelContext
from fusec.frontends.python.parameters import Inferred, Parameters
from fusec.frontends.python.types import PY_INT, carrier, is_complex, is_integer, promote, storage
from fusec.frontends.python.values import Scalar, rounded
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, apply, const
from fusec.ir.reductions import Accumulator, ReductionIR, Stage

MAX_PRODUCT = 4  # the greatest power of a float that becomes products: each rounds once more
MAX_EXACT = 64  # of an integer, where products lose nothing


def _operator(expands: bool) -> Operate:
    """What a binary operator means. expands: powers of small integers become products."""

    def operate(op: str, left: Scalar, right: Scalar, span: Span) -> Scalar:
        return _power(left, right, expands, span) if op == "**" else arithmetic.binary(op, left, right, span)

    return operate


def _power(base: Scalar, right: Scalar, expands: bool, span: Span) -> Scalar:
    """A power of a number; those of small known integers are products."""
    exponent = right.literal
    if not isinstance(exponent, int):
        return arithmetic.binary("**", base, right, span)
    whole = is_integer(base.type) or storage(base.type).kind == "bool"
    if whole and exponent < 0:
        raise NegativePower().at(span)
    most = MAX_EXACT if is_integer(base.type) else MAX_PRODUCT
    if isinstance(base.literal, int) or not expands or not 3 <= exponent <= most:
        return arithmetic.binary("**", base, right, span)
    kind = promote(base.type, right.type)
    assert kind is not None, "an integer goes with every number"
    return Scalar(kind, _product(base.read(), exponent))


def _called(context: FunctionContext, node: s.CallNode) -> Scalar:
    """A call of a function that expressions know."""
    assert isinstance(node.callee, s.Name), "the parser has seen to it"
    name = node.callee.name
    if name in KNOWN:
        return KNOWN[name].call(CallSite(name, node.span), [context.scalar(arg) for arg in node.args])
    return conversion(context, CONVERSIONS[name], node)


def _product(value: Expr, exponent: int) -> Expr:
    """``value ** exponent`` by squares; an exponent of at least 1."""
    found: Expr | None = None
    while True:
        if exponent & 1:
            found = value if found is None else apply("multiply", found, value)
        exponent >>= 1
        if not exponent:
            assert found is not None, "the highest bit is set"
            return found
        value = apply("multiply", value, value)


# --- elements --------------------------------------------------------------------------------------------------------


@default_rounding()
def infer(definition: ExpressionDefinition, types: Mapping[str, DType]) -> Inferred:
    """The type of the result for arguments of these dtypes."""
    parameters = Parameters(definition, types)
    _, value = _lowered(definition, parameters)
    result = storage(value.type)
    if value.type == PY_INT and isinstance(value.literal, int) and -(1 << 31) <= value.literal < 1 << 31:
        result = INT32  # as numexpr has it for numbers in the text
    return parameters.inferred((result,), False)


def lower(definition: ExpressionDefinition, types: Mapping[str, DType], scalars: frozenset[str]) -> ir.Program:
    """The program of a part that combines nothing."""
    parameters, inputs = Parameters(definition, types), definition.tree().inputs
    context, value = _lowered(definition, parameters)
    output, store = _output(definition, types)
    body = (*context.blocks[0], store(value))
    params = (*parameters.params(inputs, scalars), output)
    body = (*parameters.loads(inputs, scalars, body), *body)
    return ir.Program(definition.name, params, body, (), _file(definition))


def _lowered(definition: ExpressionDefinition, parameters: Parameters) -> tuple[FunctionContext, Scalar]:
    """The value of one element, before elements are combined."""
    found = definition.tree()
    span = found.tree.span
    tree = s.FunctionNode(span, definition.name, (), None, (), "")
    context = FunctionContext(KernelContext(definition), KEY, tree, {*found.inputs, *definition.outputs})
    PythonExpressions(context, _operator(definition.expands), partial(_called, context))
    for name in found.inputs:
        context.variables[name] = Binding(parameters.value(name, span), span)
    try:
        value = context.scalar(found.tree)
    except RecursionError:
        raise ExpressionTooLarge(MAX_NESTING, "nested expressions").at(span) from None
    if value.literal is not None:
        value.read(span)
    if found.op:
        value = REDUCTIONS[found.op].operand(found.op, value, span)
    return context, value


def _output(
    definition: ExpressionDefinition, types: Mapping[str, DType]
) -> tuple[ir.ArrayParam, Callable[[Scalar], ir.Store]]:
    """The result as a parameter, and what stores its values."""
    (name,) = definition.outputs
    place, dtype = ir.Element(name, Pointer(types[name], "global")), types[name]
    return ir.ArrayParam(name, dtype, written=True, read=False), lambda value: ir.Store(place, rounded(value, dtype))


def _file(definition: ExpressionDefinition) -> SourceFile:
    return definition.functions[-1].source


# --- totals ----------------------------------------------------------------------------------------------------------


def lower_total(
    definition: ExpressionDefinition, types: Mapping[str, DType], scalars: frozenset[str]
) -> tuple[ReductionIR, ir.Program]:
    """The reduction of a part, and the program for totals of no elements, without statements if there are none."""
    found = definition.tree()
    how = REDUCTIONS[found.op]
    parameters = Parameters(definition, types)
    context, value = _lowered(definition, parameters)
    output, store = _output(definition, types)
    names = {*found.inputs, output.name}
    part_name, total_name, combine = (_apart(each, names) for each in ("part", "total", "combine"))
    kind = carrier(value.type)
    mapped = value.read()
    body = tuple(context.blocks[0])
    loads = parameters.loads(found.inputs, scalars, body, mapped)
    stage = Stage((*loads, *body), Accumulator(part_name, kind, mapped, combine))
    total = Accumulator(total_name, kind, ir.Local(part_name, kind), combine)
    function = _combination(how, combine, kind, found.tree.span)
    finish = (store(Scalar(value.type, ir.Local(total_name, kind))),)
    params = (*parameters.params(found.inputs, scalars), output)
    reduction = ReductionIR(definition.name, params, (stage,), total, finish, (function,), _file(definition))
    empty = () if how.empty is None else (store(Scalar(value.type, const(how.empty, kind))),)
    return reduction, ir.Program(definition.name, (output,), empty)


def _apart(name: str, taken: set[str]) -> str:
    """The name, with underscores until it is nobody else's."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _combination(how: Combination, name: str, kind: DType, span: Span) -> ir.Function:
    op = how.op_for(kind)
    if not op or (is_complex(kind) and how.is_ordered):
        raise BadArgument(name, str(kind), "combine other numbers").at(span)
    value = apply(op, ir.Local("a", kind), ir.Local("b", kind))
    return ir.Function(name, (("a", kind), ("b", kind)), kind, (ir.Return(value),))
