"""Graphs with reductions: as the source of one kernel, or split into one for each level of reductions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from fusec.arguments.signature import Signature
from fusec.base.dtypes import DType
from fusec.base.records import dataclass, replace
from fusec.compiler.lowering import lower_program, lower_reduction
from fusec.ir.expr import Expr, scalar_type
from fusec.ir.graph import Input, KernelGraph, Reduce, elsewhere
from fusec.ir.text import print_graph
from fusec.ir.walk import expressions, inner_first, rewriter
from fusec.kinds.launch import Request
from fusec.library.formula import typed_signature

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.ir.reductions import ReductionIR


@dataclass(frozen=True)
class GraphSource:
    """A graph as the source of a kernel; two are equal if their texts are, since expressions are interned."""

    graph: KernelGraph

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.graph.name

    @property
    def texts(self) -> dict[str, Any]:
        """The graph's text."""
        return {"graph": self.text}

    @cached_property
    def text(self) -> str:
        """The graph as a text."""
        return print_graph(self.graph)


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
    graph = source.graph
    outputs = ((name, scalar_type(value)) for name, value in graph.outputs)
    found = typed_signature(source.name, ((each.name, each.type) for each in graph.inputs), outputs)
    taken = elsewhere(graph)
    raw = {each.name for each in graph.inputs if each in taken}
    inputs = (replace(param, raw=True) if param.name in raw else param for param in found.inputs)
    return replace(found, inputs=tuple(inputs)) if raw else found


def levels(graph: KernelGraph) -> tuple[tuple[KernelGraph, ...], KernelGraph]:
    """A graph as kernels in order: the totals of each level of reductions, and the remaining element-wise work.

    The outputs of a graph of totals are inputs of those that follow.
    """
    known: dict[Expr, Expr] = {}
    totals: list[KernelGraph] = []
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
        totals.append(KernelGraph(f"{graph.name}_{len(totals)}", used(inputs, outputs), tuple(outputs)))
        known |= dict(zip(found, made, strict=True))
        inputs = (*inputs, *made)
    rest = tuple((name, _replaced(value, known)) for name, value in graph.outputs)
    return tuple(totals), KernelGraph(f"{graph.name}_rest", used(inputs, rest), rest)


def _ready(root: Expr, known: Mapping[Expr, Expr]) -> Iterator[Reduce]:
    """The reductions not known yet whose values need none that are not known."""
    for expr in inner_first([root], known):
        if isinstance(expr, Reduce) and not any(isinstance(each, Reduce) for each in inner_first([expr.value], known)):
            yield expr


def _replaced(root: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """The value over inputs that stand for known totals."""
    return rewriter(lambda expr: expr, dict(known))(root)


def used(inputs: tuple[Input, ...], outputs: Iterable[tuple[str, Expr]]) -> tuple[Input, ...]:
    """The inputs that outputs read, in order."""
    seen = set(expressions(value for _, value in outputs))
    return tuple(each for each in inputs if each in seen)
