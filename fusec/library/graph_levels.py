"""A graph with reductions as several kernels: the totals of each level, then the remaining element-wise work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.arguments.operands import is_number
from fusec.base import locks
from fusec.base.dtypes import INT64
from fusec.base.kernel_abi import Fp
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import normalised
from fusec.dispatch.engine import is_on_device
from fusec.dispatch.planned import Planned
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.spec import Axis, CallOptions
from fusec.ir.expr import Expr
from fusec.ir.graph import Count, Input, KernelGraph, Spread
from fusec.ir.reductions import REDUCED
from fusec.ir.walk import expressions, rewriter
from fusec.kinds.rows import Level
from fusec.library.graph_sources import ElementwiseSource, ReducingSource, levels, signature_of, used
from fusec.passes.lower_graph_reductions import elements_of, lower_graph_reductions


class Apart:
    """The kernels of a graph for calls that pass these inputs as numbers.

    reducing: of totals, in order; later ones read what earlier ones give. elements: of all outputs over which elements
    differ. totals: of the others, each for itself, or the total that it is.
    """

    def __init__(self, graph: KernelGraph, scalars: frozenset[str], fp: Fp) -> None:
        self.graph = graph
        totals, rest = levels(graph)
        sources = [ReducingSource(each) for each in totals]
        self.reducing = tuple(Planned(each, signature_of(each), REDUCTION, fp=fp) for each in sources)
        differ = elements_of(graph, scalars)
        own = tuple((name, value) for name, value in rest.outputs if name in differ)
        self.elements = _planned(rest, own, fp) if own else None
        self.totals: dict[str, Planned | str] = {
            name: value.name if isinstance(value, Input) else _planned(rest, ((name, value),), fp)
            for name, value in rest.outputs
            if name not in differ
        }


@lru_cache(maxsize=512)
def levels_of(graph: KernelGraph, scalars: frozenset[str]) -> tuple[Level, ...]:
    """What the kernels of levels read, and their lanes; none if one of them is not a plain reduction."""
    if any(isinstance(each, Spread) for each in expressions(value for _, value in graph.outputs)):
        return ()
    return tuple(
        Level(frozenset(param.name for param in each.inputs), lower_graph_reductions(each, scalars).lanes)
        for each in levels(graph)[0]
    )


class GraphCall:
    """One call of these kernels."""

    def __init__(self, kernels: Apart, args: Sequence[object], axis: Axis, keepdims: bool) -> None:
        self.kernels, self.keepdims = kernels, keepdims
        names = [each.name for each in kernels.graph.inputs]
        self.values = dict(zip(names, args, strict=True))
        self.shape = self._shape(names)
        self.axes = normalised(kernels.graph.name, axis, self.shape)
        self.values[REDUCED] = prod(self.shape[along] for along in self.axes)

    def run(self, out: Sequence[object]) -> tuple[object, ...]:
        """All outputs in order: those given, or new ones."""
        for reducing in self.kernels.reducing:
            found = reducing.run(self._arguments(reducing), None, CallOptions(self.axes, keepdims=True))
            self.values |= {param.name: each for param, each in zip(reducing.out_params, found, strict=True)}
        names = [name for name, _ in self.kernels.graph.outputs]
        given = dict(zip(names, out, strict=True)) if out else {}
        results = {name: self._total(each) for name, each in self.kernels.totals.items()}
        if self.kernels.elements is not None:
            stored = [param.name for param in self.kernels.elements.out_params]
            outputs = tuple(given[name] for name in stored if given)
            results |= zip(stored, self._elementwise(self.kernels.elements, outputs), strict=True)
        for name in given.keys() & self.kernels.totals.keys():
            Planned.copier().run((results[name], given[name]))
            results[name] = given[name]
        return tuple(results[name] for name in names)

    def steps(self) -> list[tuple[str, int]]:
        """The kernels of a call: their names and numbers. Compiles those of totals."""
        found = []
        for reducing in self.kernels.reducing:
            plan = reducing.planned(self._arguments(reducing), CallOptions(self.axes, keepdims=True))
            found.append((reducing.name, len(plan.steps)))
            for param, shape in zip(reducing.out_params, plan.bound.shapes, strict=True):
                self.values[param.name] = np.broadcast_to(np.empty((), plan.bound.types[param.name].numpy), shape)
        if self.kernels.elements is not None:
            found.append((self.kernels.elements.name, 1))
        return found + [(each.name, 1) for each in self.kernels.totals.values() if isinstance(each, Planned)]

    def _shape(self, names: Sequence[str]) -> Shape:
        """The shape that some arrays have together."""
        arrays = [self.values[name] for name in names if not is_number(self.values[name])]
        return np.broadcast_shapes(*(array_of(each, self.kernels.graph.name)[1].shape for each in arrays))

    def _arguments(self, reducing: Planned) -> tuple[object, ...]:
        """The inputs of totals; repeated if all of them together are smaller than what is reduced."""
        names = [param.name for param in reducing.in_params]
        if self._shape(names) == self.shape:
            return tuple(self.values[name] for name in names)
        return tuple(self._repeated(self.values[name]) for name in names)

    def _repeated(self, value: object) -> object:
        """A number as it is, an array in the shape of all, without a copy: where it lies is part of a total's order."""
        if is_number(value):
            return value
        if is_on_device((value,)):
            with locks.lock:
                from fusec.runtime import cuda

            return cuda.broadcast(value, self.shape, cuda.stream_for((value,)))
        return np.broadcast_to(array_of(value, self.kernels.graph.name)[1], self.shape)

    def _total(self, kernel: Planned | str) -> object:
        """An output of totals, with the axes that it is to have."""
        found = self.values[kernel] if isinstance(kernel, str) else self._elementwise(kernel, ())[0]
        kept = tuple(extent for along, extent in enumerate(self.shape) if along not in self.axes)
        if self.keepdims:
            return found
        reshape = getattr(found, "with_shape", None) or found.reshape  # type: ignore[attr-defined]
        return reshape(kept)

    def _elementwise(self, kernel: Planned, outputs: tuple[object, ...]) -> tuple[object, ...]:
        return kernel.run((*(self.values[param.name] for param in kernel.in_params), *outputs))


def _planned(rest: KernelGraph, outputs: tuple[tuple[str, Expr], ...], fp: Fp) -> Planned:
    """The element-wise kernel of some outputs of a graph; what it counts is an input."""
    count = Input(REDUCED, INT64)
    rewrite = rewriter(lambda expr: count if isinstance(expr, Count) else expr)
    values = tuple((name, rewrite(value)) for name, value in outputs)
    graph = KernelGraph(f"{rest.name}_{outputs[0][0]}", used((*rest.inputs, count), values), values)
    source = ElementwiseSource(graph)
    return Planned(source, signature_of(source), fp=fp)
