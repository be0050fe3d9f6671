"""Calls of the user's own functions: arguments by position and name, one instance for every combination of types."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fusec.base.dtypes import DType
from fusec.base.records import replace
from fusec.base.source import Span
from fusec.errors.language import ArgumentCount, Recursion, TooLarge
from fusec.errors.python import NotInSubset
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python import values as v
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.dtype_calls import cast
from fusec.frontends.python.function_context import Binding, FunctionContext
from fusec.frontends.python.kernel_context import MAX_FUNCTIONS, Instance, Other, value_of
from fusec.frontends.python.names import lookup
from fusec.frontends.python.types import PY_INT, Kind, carrier
from fusec.ir.expr import Expr, Struct, scalar_type
from fusec.ir.loops import Call, Field, Local


def user_call(context: FunctionContext, callee: v.UserFunction, node: s.CallNode) -> v.Value:
    """A call: literals are built into the instance, other numbers are its arguments."""
    if callee.key in context.kernel.active:
        raise Recursion(callee.name).at(node.span)
    text = context.kernel.texts[callee.key]
    defaults = {name: value_of(each, name) for name, each in text.defaults}
    given = _arguments(context, callee.name, text.tree.params, defaults, node)
    return _instance_call(context, callee, given, node)


def closure_call(context: FunctionContext, callee: v.Closure, node: s.CallNode) -> v.Value:
    """A call of a function inside this one; what it takes from around it are arguments that nobody sees."""
    tree = callee.tree
    given = _arguments(context, callee.name, tree.params, dict(callee.defaults), node)
    held = dict(_enclosed(context, callee, node.span, ()).held or ())
    value = tree.body[0].value if len(tree.body) == 1 and isinstance(tree.body[0], s.ReturnNode) else None
    if value is None:
        held = {name: _passed(context, each, name, tree, node) for name, each in held.items()}
        return _instance_call(context, callee, held | given, node)
    outer = context.variables, context.local_names
    context.variables = {name: Binding(each, node.span) for name, each in (held | given).items()}
    context.local_names = frozenset()
    try:
        with context.kernel.nested("calls", node.span):
            found = context.value(value)
    finally:
        context.variables, context.local_names = outer
    dtype = dtype_of(tree.returns, context.kernel, callee.key)
    return cast(found, dtype, node.span) if dtype is not None and isinstance(found, v.Scalar) else found


def _enclosed(context: FunctionContext, callee: v.Closure, span: Span, around: tuple[str, ...]) -> v.Closure:
    """The function with what its names stand for now. Raises Recursion."""
    if callee.name in around:
        raise Recursion(callee.name).at(span)
    if callee.held is not None:
        return callee
    held: list[tuple[str, v.Value]] = []
    for name in dict.fromkeys(each.partition(".")[0] for each in name_usage.free(callee.tree)):
        if name not in context.variables and name not in context.local_names:
            continue
        value = lookup(context, name, span)
        if isinstance(value, v.Closure):
            value = _enclosed(context, value, span, (*around, callee.name))
        held.append((name, value))
    return replace(callee, held=tuple(held))


def _passed(context: FunctionContext, value: v.Value, name: str, tree: s.FunctionNode, node: s.CallNode) -> v.Value:
    """What a function of several statements gets of an array around it: its element. Raises NotInSubset."""
    if isinstance(value, v.Neighbours) and name not in name_usage.indexed(tree.body):
        return context.element(value, node.span)
    if isinstance(value, (v.Neighbours, v.ArrayParameter)):
        what = f"'{name}', {v.show(value)}, in an inner function of several statements is"
        raise NotInSubset(what, "write a function of one return, or pass the elements").at(node.span)
    return value


def _instance_call(
    context: FunctionContext, callee: v.UserFunction | v.Closure, given: dict[str, v.Value], node: s.CallNode
) -> v.Value:
    """The results of an instance."""
    place = callee.tree.span.start if isinstance(callee, v.Closure) else 0
    key = (callee.key, place, tuple(_signature(value) for value in given.values()))
    instance = context.kernel.instances.get(key)
    if instance is None:
        with context.kernel.nested("calls", node.span):
            instance = _instance(context, callee, given, node.span)
        context.kernel.instances[key] = instance
    args = tuple(arg for value in given.values() for arg in flat(value))
    function = instance.function
    assert function.result is not None, "functions return something"
    call = Call(function.name, args, function.result)
    if not isinstance(function.result, Struct):
        found: v.Value = v.Scalar(instance.result[0], context.bounded(call))
        return v.Items((found,)) if instance.is_tuple else found
    whole = context.declare(f"{callee.name}_result", function.result, call, mutable=False)
    parts = zip(function.result.fields, instance.result, strict=True)
    return v.Items(tuple(v.Scalar(kind, Field(whole, name, dtype)) for (name, dtype), kind in parts))


def _arguments(
    context: FunctionContext,
    function: str,
    params: tuple[s.ParamNode, ...],
    defaults: Mapping[str, v.Value | Other],
    node: s.CallNode,
) -> dict[str, v.Value]:
    """Parameter name -> value, defaults included. Raises ArgumentCount or NotInSubset."""
    names = [param.name for param in params]
    cure = f"its parameters are: {', '.join(names)}"
    if len(node.args) > len(params):
        raise ArgumentCount(function, str(len(params)), len(node.args), cure).at(node.span)
    given = {name: _argument(context, arg) for name, arg in zip(names, node.args, strict=False)}
    for each in node.keywords:
        if each.name not in names:
            raise NotInSubset(f"the argument '{each.name}=' of '{function}' is", cure).at(each.span)
        if each.name in given:
            cure = "give it once, by position or by name"
            raise NotInSubset(f"giving '{each.name}' twice is", cure).at(each.span)
        given[each.name] = _argument(context, each.value)
    for name in names:
        default = given.get(name) or defaults.get(name)
        if default is None or isinstance(default, Other):
            raise ArgumentCount(function, str(len(params)), len(given), f"'{name}' is missing").at(node.span)
        given[name] = default
    return {name: given[name] for name in names}


def _argument(context: FunctionContext, node: s.Expression) -> v.Value:
    """The value of an argument; of an array its current element."""
    value = context.value(node)
    if isinstance(value, v.ArrayParameter):
        what = f"passing {v.show(value)} to a function is"
        raise NotInSubset(what, "pass the elements that it needs").at(node.span)
    if isinstance(value, v.Closure):
        return _enclosed(context, value, node.span, ())
    return context.element(value, node.span)


def _instance(
    context: FunctionContext, callee: v.UserFunction | v.Closure, given: dict[str, v.Value], span: Span
) -> Instance:
    if len(context.kernel.instances) >= MAX_FUNCTIONS:
        raise TooLarge(MAX_FUNCTIONS, "instances of functions").at(span)
    context.kernel.active.append(callee.key)
    try:
        return context.instantiate(context.kernel, callee, given)
    finally:
        context.kernel.active.pop()


def _with_numbers(name: str, value: v.Value, change: Callable[[str, v.Scalar], v.Scalar]) -> v.Value:
    """The value with others in place of the numbers in it that are not known. change: of a number and a name for it."""
    match value:
        case v.Scalar() if value.literal is None:
            return change(name, value)
        case v.Items(items=items):
            return v.Items(tuple(_with_numbers(f"{name}_{at}", item, change) for at, item in enumerate(items)))
        case v.Table(start=Expr() as start):
            return replace(value, start=change(f"{name}_start", v.Scalar(PY_INT, start)).expr)
        case v.Closure(held=(_, *_) as held):
            changed = tuple((each, _with_numbers(f"{name}_{each}", item, change)) for each, item in held)
            return replace(value, held=changed)
    return value


def parameter_values(given: dict[str, v.Value]) -> tuple[dict[str, v.Value], list[tuple[str, v.Scalar]]]:
    """What the parameters of an instance hold, and which of its IR's parameters there are for them."""
    taken: list[tuple[str, v.Scalar]] = []

    def parameter(name: str, value: v.Scalar) -> v.Scalar:
        taken.append((name, v.Scalar(value.type, Local(name, scalar_type(value.expr)))))
        return taken[-1][1]

    return {name: _with_numbers(name, value, parameter) for name, value in given.items()}, taken


def result_of(name: str, kinds: tuple[Kind, ...]) -> Struct | DType:
    """The IR type of a function's results: one number as it is, several in a struct."""
    if len(kinds) == 1:
        return carrier(kinds[0])
    return Struct(f"{name}_values", tuple((f"v{at}", carrier(kind)) for at, kind in enumerate(kinds)))


def _signature(value: v.Value) -> object:
    """What an instance depends on."""
    match value:
        case v.Scalar(literal=None):
            return ("number", value.type, scalar_type(value.expr))
        case v.Scalar(literal=number):
            return ("literal", value.type, hex(number) if isinstance(number, int) else repr(number))
        case v.Items(items=items):
            return tuple(map(_signature, items))
        case v.Table(start=Expr()):
            return ("row", replace(value, start=None))
        case v.Closure(held=held):
            names = tuple((name, _signature(each)) for name, each in held or ())
            return ("closure", value.key, value.tree.span.start, names)
    return value


def flat(value: v.Value) -> list[Expr]:
    """The numbers that a call passes for an argument."""
    passed: list[Expr] = []

    def argument(_: str, number: v.Scalar) -> v.Scalar:
        passed.append(number.read())
        return number

    _with_numbers("", value, argument)
    return passed
