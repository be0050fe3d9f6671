"""One part of an expression, with types bound, to a program or to a reduction."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import FLOAT32, INT32, DType, compute_type
from fusec.base.rounding_mode import usual
from fusec.base.source import SourceFile, Span
from fusec.errors.evaluate import ExpressionTooLarge, NegativePower
from fusec.errors.language import BadArgument
from fusec.frontends.expression.definition import KEY, ExpressionDefinition
from fusec.frontends.expression.functions import CONVERSIONS, KNOWN, REDUCTIONS, Combination
from fusec.frontends.expression.parse import MAX_NESTING
from fusec.frontends.python import arithmetic
from fusec.frontends.python import syntax as s
from fusec.frontends.python.context import Unit
from fusec.frontends.python.expressions import Expressions
from fusec.frontends.python.functions import Site, part
from fusec.frontends.python.lower import Inferred
from fusec.frontends.python.types import BY_NAME, PY_INT, carrier, is_complex, is_integer, promote, storage
from fusec.frontends.python.values import Scalar, Uses, Value, converted, rounded
from fusec.frontends.python.variables import Binding
from fusec.ir.expr import Expr, Pointer, apply, const
from fusec.ir.loops import (
    ArrayParam,
    Declare,
    Element,
    Function,
    Load,
    Local,
    Param,
    Program,
    Return,
    ScalarParam,
    Stmt,
    Store,
)
from fusec.ir.reductions import Accumulator, Reduction, Stage
from fusec.ir.walk import expressions, operands, statements

MAX_PRODUCT = 4  # the greatest power of a float that becomes products: each rounds once more
MAX_EXACT = 64  # of an integer, where products lose nothing


class Frame(Expressions):
    """An expression being lowered: names are arguments, and nothing else is known but functions."""

    expands = True

    def lookup(self, name: str, span: Span) -> Value:
        """The value of an argument."""
        del span
        return self.variables[name].value

    def _binary(self, node: s.Binary) -> Scalar:
        chain: list[s.Binary] = []
        left: s.Expression = node
        while isinstance(left, s.Binary):
            chain.append(left)
            left = left.left
        found = self.scalar(left)
        for each in reversed(chain):
            found = self._operated(each.op, found, self.scalar(each.right), each.place)
            if found.literal is None and found.uses is None:
                found = Scalar(found.type, self.bounded(found.expr))
        return found

    def _operated(self, op: str, left: Scalar, right: Scalar, span: Span) -> Scalar:
        if op == "**" and isinstance(right.literal, int):
            return self._power(left, right, right.literal, span)
        return arithmetic.binary(op, left, right, span)

    def _power(self, base: Scalar, right: Scalar, exponent: int, span: Span) -> Scalar:
        """A power of a known integer; small ones are products."""
        whole = is_integer(base.type) or storage(base.type).kind == "bool"
        if whole and exponent < 0:
            raise NegativePower().at(span)
        most = MAX_EXACT if is_integer(base.type) else MAX_PRODUCT
        if isinstance(base.literal, int) or not self.expands or not 3 <= exponent <= most:
            return arithmetic.binary("**", base, right, span)
        kind = promote(base.type, right.type)
        assert kind is not None, "an integer goes with every number"
        value = base.read()
        return Scalar(kind, _product(value, exponent))

    def _attribute(self, node: s.Attribute) -> Value:
        return part(node.name, self.scalar(node.value))

    def _call(self, node: s.Call) -> Value:
        assert isinstance(node.callee, s.Name), "the parser has seen to it"
        name = node.callee.name
        if name in KNOWN:
            return KNOWN[name].call(Site(name, node.span), [self.scalar(arg) for arg in node.args])
        return self._conversion(CONVERSIONS[name], node)


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


@usual()
def infer(definition: ExpressionDefinition, types: Mapping[str, DType]) -> Inferred:
    """The type of the result for arguments of these dtypes; a number that meets one dtype alone takes that dtype."""
    _, value, uses = _lowered(definition, types)
    numbers, single = {}, set()
    for name, kind in definition.numbers:
        met = uses[name].dtypes
        target = next(iter(met)) if len(met) == 1 else None
        numbers[name] = BY_NAME[kind].dtype if target is None else target
        single |= {name} if kind == "int" and target is not None and target.is_float else set()
    result = storage(value.type)
    if value.type == PY_INT and isinstance(value.literal, int) and -(1 << 31) <= value.literal < 1 << 31:
        result = INT32  # as numexpr has it for numbers in the text
    return Inferred((result,), numbers, frozenset(single))


def lower(definition: ExpressionDefinition, types: Mapping[str, DType], scalars: frozenset[str]) -> Program:
    """The program of a part that combines nothing."""
    frame, value, _ = _lowered(definition, types)
    (out,) = definition.outputs
    wanted = types[out]
    stored = converted(value.read(), wanted) if wanted != storage(value.type) else rounded(value)
    body = (*frame.blocks[0], Store(Element(out, Pointer(wanted, "global")), stored))
    params, loads = _params(definition, types, scalars, body)
    return Program(
        definition.name,
        (*params, ArrayParam(out, wanted, written=True, read=False)),
        (*loads, *body),
        (),
        _file(definition),
    )


def _lowered(definition: ExpressionDefinition, types: Mapping[str, DType]) -> tuple[Frame, Scalar, Mapping[str, Uses]]:
    """The value of one element, before elements are combined."""
    found = definition.tree()
    unit = Unit(definition)
    tree = s.Function(found.tree.span, definition.name, (), None, (), "")
    frame = Frame(unit, KEY, tree, frozenset(), {*found.inputs, *definition.outputs})
    frame.expands = definition.expands
    uses = {name: Uses() for name, _ in definition.numbers}
    for name in found.inputs:
        frame.variables[name] = Binding(_argument(name, types, dict(definition.numbers), uses), found.tree.span)
    try:
        value = frame.scalar(found.tree)
    except RecursionError:
        raise ExpressionTooLarge(MAX_NESTING, "expressions one in another").at(found.tree.span) from None
    if value.literal is not None:
        value.read(found.tree.span)
    if found.op:
        value = REDUCTIONS[found.op].operand(found.op, value, found.tree.span)
    return frame, value, uses


def _argument(name: str, types: Mapping[str, DType], numbers: Mapping[str, str], uses: Mapping[str, Uses]) -> Scalar:
    if name in numbers:
        kind = BY_NAME[numbers[name]]
        return Scalar(kind, Local(name, types.get(name, kind.dtype)), uses=uses[name])
    dtype = types[name]
    return Scalar(dtype, converted(Local(name, dtype), carrier(dtype)))


def _params(
    definition: ExpressionDefinition, types: Mapping[str, DType], scalars: frozenset[str], body: tuple[Stmt, ...]
) -> tuple[list[Param], list[Stmt]]:
    """The inputs, and the loads of those that the statements read."""
    roots = [root for each in statements(body) for root in operands(each)]
    read = {each.name for each in expressions(roots) if isinstance(each, Local)}
    params: list[Param] = []
    loads: list[Stmt] = []
    for name in definition.tree().inputs:
        dtype = types[name]
        params.append(ScalarParam(name, dtype) if name in scalars else ArrayParam(name, dtype))
        if name in read and name not in scalars:
            loads.append(Declare(name, dtype, Load(Element(name, Pointer(dtype, "global", True)), dtype)))
    return params, loads


def _file(definition: ExpressionDefinition) -> SourceFile:
    return definition.functions[-1].source


# --- totals ----------------------------------------------------------------------------------------------------------


def lower_total(
    definition: ExpressionDefinition, types: Mapping[str, DType], scalars: frozenset[str]
) -> tuple[Reduction, Program]:
    """The reduction of a part, and the program for totals of no elements, without statements if there are none."""
    found = definition.tree()
    how = REDUCTIONS[found.op]
    frame, value, _ = _lowered(definition, types)
    (out,) = definition.outputs
    names = {*found.inputs, out}
    part_name, total_name, combine = (_apart(each, names) for each in ("part", "total", "combine"))
    kind = carrier(value.type)
    mapped = value.read()
    held = (*frame.blocks[0], Return(mapped))
    params, loads = _params(definition, types, scalars, held)
    stage = Stage((*loads, *frame.blocks[0]), Accumulator(part_name, kind, mapped, combine))
    total = Accumulator(total_name, kind, Local(part_name, kind), combine)
    function = _combination(how, combine, kind, found.tree.span)
    wanted = types[out]
    output = ArrayParam(out, wanted, written=True, read=False)
    finish = (_stored(out, Local(total_name, kind), wanted),)
    reduction = Reduction(definition.name, (*params, output), (stage,), total, finish, (function,), _file(definition))
    body: tuple[Stmt, ...] = ()
    if how.empty is not None:
        body = (_stored(out, const(how.empty, kind), wanted),)
    return reduction, Program(definition.name, (output,), body)


def _apart(name: str, taken: set[str]) -> str:
    """The name, with underscores until it is nobody else's."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _stored(out: str, value: Expr, wanted: DType) -> Store:
    from fusec.ir.expr import scalar_type

    held = scalar_type(value)
    if compute_type(wanted) == held == FLOAT32 and wanted != held:
        return Store(Element(out, Pointer(wanted, "global")), apply("convert", value, target=wanted))
    return Store(Element(out, Pointer(wanted, "global")), converted(value, wanted))


def _combination(how: Combination, name: str, kind: DType, span: Span) -> Function:
    op = how.op_for(kind)
    if not op or (is_complex(kind) and how.is_ordered):
        raise BadArgument(name, str(kind), "combine other numbers").at(span)
    value = apply(op, Local("a", kind), Local("b", kind))
    return Function(name, (("a", kind), ("b", kind)), kind, (Return(value),))
