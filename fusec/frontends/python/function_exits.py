"""The ends of functions: a kernel stores its results, a device function returns them; at one place if possible."""

from __future__ import annotations

from collections.abc import Callable

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.errors.language import TooDeep
from fusec.errors.python import NoReturn
from fusec.frontends.lowering import MAX_DEPTH
from fusec.frontends.python import syntax as s
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.calls import parameter_values, result_of
from fusec.frontends.python.function_context import Binding, FunctionContext
from fusec.frontends.python.kernel_context import Instance, KernelContext
from fusec.frontends.python.statements import Ending, PythonStatements
from fusec.frontends.python.types import Kind, carrier
from fusec.frontends.python.values import Closure, Scalar, UserFunction, Value, rounded
from fusec.ir.expr import Expr, Pointer, Struct
from fusec.ir.loops import Element, Function, Make, Return, Store


@dataclass(frozen=True)
class ReturnEnding:
    """A device function returns its results: one number, or several in a struct."""

    kinds: tuple[Kind, ...]
    name: str  # of the function, and of the struct

    def places(self) -> list[tuple[str, DType | Struct]]:
        """The returned values."""
        return [("result", result_of(self.name, self.kinds))]

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The results as they are returned."""
        kind = result_of(self.name, self.kinds)
        parts = tuple(value.read() for value in values)
        return (Make(parts, kind),) if isinstance(kind, Struct) else parts

    def give(self, context: FunctionContext, found: tuple[Expr, ...]) -> None:
        """Return."""
        context.emit(Return(found[0], line=context.line))


@dataclass(frozen=True)
class StoreEnding:
    """A kernel stores its results in its outputs."""

    kinds: tuple[Kind, ...]
    targets: tuple[tuple[str, DType], ...]  # the outputs with the dtypes of their arrays

    def places(self) -> list[tuple[str, DType | Struct]]:
        """The results, by output."""
        return list(self.targets)

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The results as memory holds them."""
        pairs = zip(self.targets, values, strict=True)
        return tuple(rounded(value, dtype) for (_, dtype), value in pairs)

    def give(self, context: FunctionContext, found: tuple[Expr, ...]) -> None:
        """Store the results, and end the element's work if more statements follow."""
        for (name, dtype), value in zip(self.targets, found, strict=True):
            context.emit(Store(Element(name, Pointer(dtype, "global")), value, line=context.line))
        if context.loops or not context.tail:
            context.emit(Return(line=context.line))


def context_of(kernel: KernelContext, key: str, tree: s.FunctionNode, taken: set[str]) -> FunctionContext:
    """The facts at the start of a kernel's function."""
    context = FunctionContext(kernel, key, tree, taken)
    context.instantiate = instantiate
    return context


def instantiate(
    kernel: KernelContext,
    callee: UserFunction | Closure,
    given: dict[str, Value],
    wanted: tuple[Kind, ...] | None = None,
) -> Instance:
    """Lower a function twice: for the types of its results, and then finally. wanted: the types they must get."""
    tree = callee.tree if isinstance(callee, Closure) else kernel.tree(callee.key)
    inside, params = parameter_values(given)
    name = kernel.fresh(tree.name)

    def lowered(ending: Ending | None, ends: int) -> tuple[PythonStatements, tuple[Kind, ...]]:
        context = context_of(kernel, callee.key, tree, {each for each, _ in params})
        lowering = PythonStatements(context, ending, ends)
        context.variables |= {each: Binding(value, tree.span) for each, value in inside.items()}
        found = run(lowering, dtype_of(tree.returns, kernel, callee.key))
        return lowering, wanted or found

    trial, kinds = lowered(None, 1)
    lowering, kinds = lowered(ReturnEnding(kinds, name), len(trial.returned))
    result = result_of(name, kinds)
    text = tree.span.file.line(tree.span.line).strip()
    types = tuple((each, carrier(value.type)) for each, value in params)
    function = Function(name, types, result, tuple(lowering.context.blocks[0]), text)
    return Instance(function, kinds, lowering.returned[0][1])


def straight(lowering: PythonStatements) -> None:
    """Lower the text of a function as it stands."""
    lowering.body(lowering.context.tree.body)
    lowering.complete()


def run(
    lowering: PythonStatements, forced: DType | None = None, text: Callable[[PythonStatements], None] = straight
) -> tuple[Kind, ...]:
    """Lower the body; the types of the results. text: lowers it. Raises NoReturn or TooDeep."""
    tree = lowering.context.tree
    try:
        text(lowering)
    except RecursionError:
        raise TooDeep(MAX_DEPTH, "expressions").at(tree.span) from None
    if lowering.context.reachable or not lowering.returned:
        raise NoReturn(tree.name).at(tree.span)
    kinds = lowering.results()
    return tuple(forced for _ in kinds) if forced is not None else kinds
