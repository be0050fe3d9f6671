"""Graphs with reductions: as the source of one kernel, or split into one for each level of reductions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fusec.arguments.signature import Parameter, Signature
from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.compiler.lowering import lower_program, lower_reduction
from fusec.ir.expr import Expr, scalar_type
from fusec.ir.graph import Count, Graph, Input, Reduce
from fusec.ir.walk import expressions, rewriter
from fusec.kinds.reduction import Request

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.ir.reductions import ReductionIR


@dataclass(frozen=True)
class GraphSource:
    """A graph as the source of a kernel; two are equal if their texts are."""

    text: str
    graph: Graph = field(compare=False)

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.graph.name

    @property
    def texts(self) -> dict[str, Any]:
        """The graph's text."""
        return {"graph": self.text}


@dataclass(frozen=True)
class ReducingSource(GraphSource):
    """A graph that reduces."""


@dataclass(frozen=True)
class ElementwiseSource(GraphSource):
    """A graph that does not reduce."""


@lower_reduction.register(ReducingSource)
def _reducing(source: ReducingSource, request: Request) -> tuple[ReductionIR, Program]:
    """The reduction; totals of no elements have no value."""
    from fusec.ir.loops import Program
    from fusec.passes.lower_graph_reductions import lower_graph_reductions

    return lower_graph_reductions(source.graph, request.scalars), Program(source.name, (), ())


@lower_program.register(ElementwiseSource)
def _elementwise(
    source: ElementwiseSource, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    from fusec.passes.lower_graph import lower_graph

    del types, ndims
    return lower_graph(source.graph, scalars)


@lru_cache(maxsize=256)
def signature_of(source: GraphSource) -> Signature:
    """The graph's inputs and outputs as those of a kernel."""
    inputs = tuple(Parameter(each.name, each.type.name, each.type) for each in source.graph.inputs)
    outputs = tuple(
        Parameter(name, scalar_type(value).name, scalar_type(value)) for name, value in source.graph.outputs
    )
    return Signature(source.name, inputs, outputs)


@dataclass(frozen=True)
class Levels:
    """A graph as kernels in order: the totals of each level, then the remaining work.

    totals: graphs of totals, level by level; their outputs are inputs of the following ones. rest: the element-wise
    graph over inputs and totals.
    """

    totals: tuple[Graph, ...]
    rest: Graph


def levels(graph: Graph) -> Levels:
    """Split a graph into one that reduces for each level of reductions, and one for the remaining work."""
    known: dict[Expr, Expr] = {}
    totals: list[Graph] = []
    inputs = graph.inputs
    while True:
        found = dict.fromkeys(each for _, value in graph.outputs for each in _ready(value, known))
        if not found:
            break
        outputs, made = [], []
        for at, each in enumerate(found):
            name = f"{graph.name}_total{len(totals)}_{at}"
            outputs.append((name, Reduce(each.op, _replaced(each.value, known), each.type)))
            made.append(Input(name, each.type))
        totals.append(
            Graph(f"{graph.name}_{len(totals)}", _used(inputs, [value for _, value in outputs]), tuple(outputs))
        )
        known |= dict(zip(found, made, strict=True))
        inputs = (*inputs, *made)
    rest = tuple((name, _replaced(value, known)) for name, value in graph.outputs)
    return Levels(tuple(totals), Graph(f"{graph.name}_rest", _used(inputs, [value for _, value in rest]), rest))


def _ready(root: Expr, known: Mapping[Expr, Expr]) -> list[Reduce]:
    """The reductions not known yet whose values need none that are not known."""
    found: dict[Reduce, None] = {}
    seen: set[Expr] = set()

    def visit(expr: Expr) -> bool:
        """Whether a reduction that is not known stands below."""
        if expr in known:
            return False
        if expr in seen:
            return any(map(visit, expr.children)) or isinstance(expr, Reduce)
        seen.add(expr)
        waits = sum(map(visit, expr.children)) > 0  # all of them are visited
        if isinstance(expr, Reduce):
            if not waits:
                found[expr] = None
            return True
        return waits

    visit(root)
    return list(found)


def _replaced(root: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """The value over inputs that stand for known totals."""
    return rewriter(lambda expr: expr, dict(known))(root)


def _used(inputs: tuple[Input, ...], values: list[Expr]) -> tuple[Input, ...]:
    """The inputs that values read, in order."""
    seen = set(expressions(values))
    return tuple(each for each in inputs if each in seen)


def counts(graph: Graph) -> bool:
    """Whether a graph uses the number of elements that it reduces."""
    return any(isinstance(each, Count) for each in expressions(value for _, value in graph.outputs))
