"""Explicit kernels: one loop over a grid, whose rounds are the elements, and arrays that the text indexes itself."""

from __future__ import annotations

from functools import partial

from fusec.base.records import replace
from fusec.errors.python import BadLoop, NotInSubset
from fusec.frontends.python import syntax as s
from fusec.frontends.python.blocks import check_axes, position
from fusec.frontends.python.function_context import Binding, FunctionContext
from fusec.frontends.python.loops import WALKS
from fusec.frontends.python.name_usage import assigned, called, named, read_first
from fusec.frontends.python.statements import PythonStatements
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Intrinsic, Items, Scalar, Value
from fusec.ir.loops import Return, query

ONE_LOOP = "a kernel is one loop over its grid, for i in fusec.grid(n), and what is computed before it"
ONE_SHAPE = "fusec.grid takes one number or one tuple"


def grid_loop(tree: s.FunctionNode) -> tuple[s.Body, s.For]:
    """The statements before the loop over the grid, and the loop. Raises BadLoop if it is not the last statement."""
    body = [each for each in tree.body if not isinstance(each, s.Pass) and not _is_text(each)]
    others = [each for each in body if isinstance(each, s.For) and not _walks(each.iterable)]
    loops = [each for each in others if isinstance(each.iterable, s.CallNode)] or others
    if not loops:
        raise BadLoop(f"'{tree.name}' has no loop over a grid", ONE_LOOP).at(tree.span)
    at = body.index(loops[0])
    if body[at + 1 :]:
        raise BadLoop("a statement after the loop over the grid", ONE_LOOP).at(body[at + 1].span)
    return tuple(body[:at]), loops[0]


def _is_text(node: s.Statement) -> bool:
    return isinstance(node, s.Evaluate) and isinstance(node.value, s.String)


def _walks(node: s.Expression) -> bool:
    """Whether a loop is seen to run over a range or a sequence."""
    return called(node) in ("range", *WALKS) or isinstance(node, s.Tuple)


def over_grid(lowering: PythonStatements) -> None:
    """Lower the statements before the loop of an explicit kernel, then the loop's body for one element."""
    context = lowering.context
    lowering.returning = partial(_end, context)
    before, loop = grid_loop(context.tree)
    context.tail = False
    lowering.body(before)
    context.tail = True
    _refuse_carried_values(context.tree, before, loop)
    _begin(lowering, loop)
    lowering.body(_ending_in_returns(loop.body))
    lowering.returned, context.reachable = [((), False, context.tree.span)], False


def _refuse_carried_values(tree: s.FunctionNode, before: s.Body, loop: s.For) -> None:
    """Elements run at the same time, so none sees what another assigns. Raises BadLoop where one would in Python."""
    early, _ = read_first(loop.body, frozenset(named(loop.target)))
    known = {param.name for param in tree.params} | assigned(before).keys()
    for statement in loop.body:
        for name in assigned((statement,)):
            if name in early & known:
                what = f"'{name}' would carry a value from one element to the next, but all elements run at once"
                cure = "set it in the loop, or combine elements with fusec.reduction, a scan or fusec.atomic_add"
                raise BadLoop(what, cure).at(statement.span)


def _begin(lowering: PythonStatements, loop: s.For) -> None:
    """Give the loop's names the position of the element. Raises BadLoop or CannotUnpack."""
    context, node = lowering.context, loop.iterable
    callee = context.value(node.callee) if isinstance(node, s.CallNode) else None
    if not isinstance(node, s.CallNode) or callee != Intrinsic("grid"):
        raise BadLoop("the outermost loop runs over fusec.grid(...) or range(...)", ONE_LOOP).at(node.span)
    if len(node.args) != 1 or node.keywords:
        cure = "write fusec.grid(n), or fusec.grid((rows, columns)) for several axes"
        raise BadLoop(ONE_SHAPE, cure).at(node.span)
    context.line = loop.span.line if loop.span.file == context.kernel.source else 0
    shape, block = context.value(node.args[0]), context.kernel.definition.block
    axes = len(shape.items) if isinstance(shape, Items) else 1
    check_axes(block, axes, node.span)
    context.in_grid = True
    is_flat = not isinstance(shape, Items) and not block
    found: Value = Scalar(PY_INT, query("index") if is_flat else position(block, 0))
    if isinstance(shape, Items):
        found = Items(tuple(Scalar(PY_INT, position(block, axis)) for axis in range(axes)))
    if isinstance(loop.target, s.Name):
        context.variables[loop.target.name] = Binding(found, loop.target.span)
    else:
        lowering.assign(loop.target, found)


def _end(context: FunctionContext, node: s.ReturnNode) -> None:
    """The end of the element's work. Raises NotInSubset for a return that was written: Python's ends the loop."""
    if node.span.text.startswith("return"):
        if node.value is None:
            what, cure = (
                "return in",
                "write continue to go on to the next element; break out of an inner loop before that",
            )
        else:
            what, cure = "a value returned by", "write it to an array: out[i] = value"
        raise NotInSubset(f"{what} an explicit kernel is", cure).at(node.span)
    if context.loops or not context.tail:
        context.emit(Return(line=context.line))
    context.reachable = False


def _ending_in_returns(body: s.Body) -> s.Body:
    """The loop's body for one element: to go on with the next one is to return. Raises NotInSubset for break."""
    return tuple(map(_ending_in_return, body))


def _ending_in_return(node: s.Statement) -> s.Statement:
    match node:
        case s.ContinueNode():
            return s.ReturnNode(node.span, None)
        case s.BreakNode():
            cure = "elements run at the same time: skip others with if, or continue"
            raise NotInSubset("break out of the loop over the grid is", cure).at(node.span)
        case s.IfNode():
            return replace(node, then=_ending_in_returns(node.then), orelse=_ending_in_returns(node.orelse))
    return node
