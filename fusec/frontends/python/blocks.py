"""The block functions of kernels: shared arrays, barriers, and the positions of threads and blocks."""

from __future__ import annotations

from fusec.base.diagnostics import counted
from fusec.base.dtypes import INT64
from fusec.base.source import SourceFile, Span
from fusec.errors.checks import BarrierDiverges, BlockAxes, SharedTooLarge
from fusec.errors.language import ArgumentCount
from fusec.errors.python import NotInSubset
from fusec.frontends.python import arrays
from fusec.frontends.python import syntax as s
from fusec.frontends.python.function_context import FunctionContext
from fusec.frontends.python.types import PY_INT
from fusec.frontends.python.values import Absent, Intrinsic, Items, Scalar, Value
from fusec.ir.expr import Expr, apply, const
from fusec.ir.loops import Barrier, Program, Quantity, is_shared, query
from fusec.ir.uniform import uniformity
from fusec.ir.walk import statements

MAX_SHARED = 32 << 10  # bytes of a block's shared arrays: what Metal's devices have, and all of CUDA's
INDICES: dict[str, Quantity] = {"thread_index": "thread", "block_index": "coordinate"}
WITHOUT = "give the size of a block: @fusec.kernel(block=256)"
INSIDE = "write it in the loop over the grid, in the kernel itself"


def intrinsic(context: FunctionContext, callee: Intrinsic, node: s.CallNode) -> Value:
    """A function of kernels in an expression. Raises NotInSubset where it must not stand."""
    match callee.name:
        case "local":
            return arrays.declare_array(context, "local", node)
        case "shared":
            _check(context, "shared", node)
            return arrays.declare_array(context, "shared", node)
        case "thread_index" | "block_index" as name:
            _check(context, name, node)
            _without_arguments(name, node)
            return _where(context, INDICES[name])
        case "grid":
            cure = "the one loop over it, for i in fusec.grid(n), stands outermost in a function of fusec.kernel"
            raise NotInSubset("fusec.grid here is", cure).at(node.span)
        case "barrier":
            what, cure = "fusec.barrier inside an expression is", "write it as a statement of its own"
            raise NotInSubset(what, cure).at(node.span)
    cure = f"write it as a statement of its own: old = fusec.{callee.name}(...)"
    raise NotInSubset("an atomic update inside an expression is", cure).at(node.span)


def effect(context: FunctionContext, node: s.Expression, wanted: bool) -> Value | None:
    """The value of a call that changes memory, if that is what the expression is; a barrier has none."""
    name = arrays.effect_named(context, node)
    if not isinstance(node, s.CallNode) or not name or (wanted and name == "barrier"):
        return None
    if name != "barrier":
        return arrays.atomic(context, name, node, wanted)
    _check(context, "barrier", node)
    _without_arguments("barrier", node)
    context.emit(Barrier(line=context.line))
    return Absent()


def position(block: tuple[int, ...], axis: int) -> Expr:
    """The position along an axis of the grid."""
    found: Expr = query("coordinate", axis)
    if block:
        first = apply("multiply", found, const(block[axis], INT64))
        found = apply("add", first, query("thread", axis))
    return found


def check_axes(block: tuple[int, ...], axes: int, span: Span) -> None:
    """Raise BlockAxes unless the block has those of the grid."""
    if block and len(block) != axes:
        raise BlockAxes(counted(axes, "axis", "axes"), block_text(block), counted(len(block), "axis", "axes")).at(span)


def _check(context: FunctionContext, name: str, node: s.CallNode) -> None:
    if not context.kernel.definition.block:
        raise NotInSubset(f"fusec.{name} in a kernel without blocks is", WITHOUT).at(node.span)
    if not context.in_grid:
        raise NotInSubset(f"fusec.{name} here is", INSIDE).at(node.span)


def _without_arguments(name: str, node: s.CallNode) -> None:
    if node.args or node.keywords:
        given = len(node.args) + len(node.keywords)
        raise ArgumentCount(f"fusec.{name}", "no", given, f"write fusec.{name}()").at(node.span)


def _where(context: FunctionContext, what: Quantity) -> Value:
    """A number, or a tuple for a block of several axes."""
    axes = range(len(context.kernel.definition.block))
    found = tuple(Scalar(PY_INT, query(what, axis)) for axis in axes)
    return found[0] if len(found) == 1 else Items(found)


def check_program(program: Program) -> None:
    """Raise BarrierDiverges or SharedTooLarge for a block program that no device can run."""
    arrays = [each for each in statements(program.body) if is_shared(each)]
    nbytes = sum(each.length * each.element.nbytes for each in arrays)
    if nbytes > MAX_SHARED:
        raise SharedTooLarge(program.name, nbytes, MAX_SHARED).at(_line(program.source, arrays[-1].line))
    for parting in uniformity(program).partings:
        line, condition = _line(program.source, parting.barrier), _line(program.source, parting.condition)
        text = "" if condition is None else condition.text
        raise BarrierDiverges(parting.barrier, parting.condition, text).at(line)


def block_text(block: tuple[int, ...]) -> str:
    """A block as `block=` has it."""
    return str(block[0] if len(block) == 1 else block)


def _line(source: SourceFile | None, line: int) -> Span | None:
    """A line of the text without its indentation."""
    if source is None or not 0 < line <= len(source.line_starts):
        return None
    start, text = source.line_starts[line - 1], source.line(line)
    return Span(source, start + len(text) - len(text.lstrip()), start + len(text.rstrip()))
