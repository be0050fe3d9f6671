"""Lower graph: turn a graph into a program that loads its inputs, names its values and stores its outputs."""

from __future__ import annotations

from collections.abc import Collection

from fusec.base.dtypes import DType
from fusec.ir.expr import Const, Expr, scalar_type
from fusec.ir.graph import Input, KernelGraph
from fusec.ir.loops import ArrayParam, Declare, Load, Local, Param, Program, ScalarParam, Stmt, Store, element
from fusec.ir.walk import uses_of

DEPTH = 100  # a value nested deeper than this gets a name, so that no expression grows without bound


def lower_graph(graph: KernelGraph, scalars: Collection[str] = ()) -> Program:
    """One kernel for the whole graph; every value is computed once.

    Requires: a verified graph; `scalars` names the inputs that are passed by value.
    Ensures: parameters are the inputs, then the outputs that are no inputs; an output that is also an input is one
    parameter, read and written. Values used several times, named by the user or deeply nested become locals.
    """
    return _Lowerer(graph, frozenset(scalars)).program()


class _Lowerer:
    """Emits declarations in dependence order, then the stores."""

    def __init__(self, graph: KernelGraph, scalars: frozenset[str]) -> None:
        self.graph = graph
        self.scalars = scalars
        self.taken = {value.name for value in graph.inputs} | {name for name, _ in graph.outputs}
        self.users = uses_of([value for _, value in graph.outputs])
        self.body: list[Stmt] = []
        self.known: dict[Expr, tuple[Expr, int]] = {}
        self.number = 0

    def program(self) -> Program:
        """The program."""
        stores = [
            Store(element(name, scalar_type(value)), self.value(value)[0], line=self.graph.lines.get(value, 0))
            for name, value in self.graph.outputs
        ]
        return Program(self.graph.name, self._params(), (*self.body, *stores))

    def _params(self) -> tuple[Param, ...]:
        written = {name for name, _ in self.graph.outputs}
        inputs: list[Param] = [
            ScalarParam(value.name, value.type)
            if value.name in self.scalars
            else ArrayParam(value.name, value.type, written=value.name in written)
            for value in self.graph.inputs
        ]
        names = {value.name for value in self.graph.inputs}
        outputs = [
            ArrayParam(name, scalar_type(value), written=True, read=False)
            for name, value in self.graph.outputs
            if name not in names
        ]
        return (*inputs, *outputs)

    def value(self, expr: Expr) -> tuple[Expr, int]:
        """The value over locals, and its depth; what it needs is declared before."""
        if expr not in self.known:
            self.known[expr] = self._named(expr)
        return self.known[expr]

    def _named(self, expr: Expr) -> tuple[Expr, int]:
        match expr:
            case Const():
                return expr, 1
            case Input(name, kind) if name in self.scalars:
                return Local(name, kind), 1
            case Input(name, kind):
                return self._declare(expr, Load(element(name, kind), kind), f"{name}_in"), 1
        parts = [self.value(child) for child in expr.children]
        found = expr.rebuild(tuple(part for part, _ in parts))
        depth = 1 + max((depth for _, depth in parts), default=0)
        if self.users[expr] > 1 or expr in self.graph.names or depth >= DEPTH:
            return self._declare(expr, found, self.graph.names.get(expr, "")), 1
        return found, depth

    def _declare(self, expr: Expr, value: Expr, wish: str) -> Local:
        """A local for a value, called as wished if that name is free."""
        name = wish
        while not name or name in self.taken:
            self.number += 1
            name = f"{wish or 'v'}{self.number}"
        self.taken.add(name)
        kind: DType = scalar_type(value)
        self.body.append(Declare(name, kind, value, line=self.graph.lines.get(expr, 0)))
        return Local(name, kind)
