"""Lower graph: turn a graph into a program that loads its inputs, names its values and stores its outputs."""

from __future__ import annotations

from collections.abc import Collection

from fusec.base.dtypes import INT64, DType
from fusec.ir import borders
from fusec.ir.expr import Const, Expr, Pointer, apply, const, scalar_type
from fusec.ir.graph import Input, KernelGraph, Neighbour, Position, Taken, Within, elsewhere
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    At,
    Declare,
    If,
    Load,
    Local,
    Param,
    Program,
    ScalarParam,
    Stmt,
    Store,
    element,
    query,
)
from fusec.ir.walk import uses_of

DEPTH = 100  # a value nested deeper than this gets a name, so that no expression grows without bound


def lower_graph(graph: KernelGraph, scalars: Collection[str] = ()) -> Program:
    """One kernel for the whole graph; every value is computed once.

    Requires: a verified graph; `scalars` names the inputs that are passed by value.
    Ensures: parameters are the inputs, then the outputs that are no inputs; an output that is also an input is one
    parameter, read and written. Values used several times, named by the user or deeply nested become locals. Elements
    whose neighbours all exist have a branch of their own, which `peel_borders` finds.
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
        self.raw = elsewhere(graph)
        self.is_inside = True  # whether the elements at hand have all their neighbours

    def program(self) -> Program:
        """The program."""
        neighbours = [each for each in self.users if isinstance(each, Neighbour)]
        axes = 1 + max((each.axis for each in neighbours), default=0)
        before, after = [0] * axes, [0] * axes
        for each in neighbours:
            before[each.axis] = max(before[each.axis], each.before)
            after[each.axis] = max(after[each.axis], each.after)
        results = self._twofold(before, after) if any(before) or any(after) else self._results()
        stores = [
            Store(element(name, scalar_type(value)), result, line=self.graph.lines.get(value, 0))
            for (name, value), result in zip(self.graph.outputs, results, strict=True)
        ]
        return Program(self.graph.name, self._params(), (*self.body, *stores))

    def _results(self) -> list[Expr]:
        return [self.value(value)[0] for _, value in self.graph.outputs]

    def _twofold(self, before: list[int], after: list[int]) -> list[Expr]:
        """The results, computed in one way where so many elements exist around, and in another at the border."""
        results = [Local(self._free("out"), scalar_type(value)) for _, value in self.graph.outputs]
        parts = []
        for self.is_inside in (True, False):
            self.body, self.known = [], {}
            found = self._results()
            self.body += [Assign(each.name, value) for each, value in zip(results, found, strict=True)]
            parts.append(tuple(self.body))
        self.body = [*(Declare(each.name, each.type) for each in results), If(borders.inside(before, after), *parts)]
        return list(results)

    def _params(self) -> tuple[Param, ...]:
        written = {name for name, _ in self.graph.outputs}
        inputs: list[Param] = [
            ScalarParam(value.name, value.type)
            if value.name in self.scalars
            else ArrayParam(
                value.name, value.type, value in self.raw, value.name in written, ndim=self.raw.get(value, 0)
            )
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
            case Position(axis):
                return query("coordinate", axis), 1
            case Taken():
                found = self._taken(expr)
                return (self._declare(expr, found, "") if self.users[expr] > 1 else found), 2
        parts = [self.value(child) for child in expr.children]
        found = expr.rebuild(tuple(part for part, _ in parts))
        depth = 1 + max((depth for _, depth in parts), default=0)
        if self.users[expr] > 1 or expr in self.graph.names or depth >= DEPTH:
            return self._declare(expr, found, self.graph.names.get(expr, "")), 1
        return found, depth

    def _taken(self, expr: Taken) -> Expr:
        """The element of a raw array, or what stands for those outside."""
        assert isinstance(expr.array, Input), "elements are taken from inputs"
        name, guard = expr.array.name, None
        index: list[Expr] = []
        for axis, each in enumerate(expr.index):
            place, inside = self._place(each, query("shape", axis, name))
            index.append(place)
            if inside is not None:
                guard = inside if guard is None else apply("logical_and", guard, inside)
        found: Expr = Load(At(name, tuple(index), Pointer(expr.type, "global", True)), expr.type)
        return found if guard is None else apply("where", guard, found, self.value(expr.outside)[0])

    def _place(self, each: Expr, extent: Expr) -> tuple[Expr, Expr | None]:
        """An index of an axis, and whether it is inside, where that matters."""
        if isinstance(each, Neighbour):
            return self._moved(each)
        if not isinstance(each, Within):
            return self.value(each)[0], None
        place = self.value(each.index)[0]
        is_behind = apply("greater_equal", place, borders.ZERO)
        return place, apply("logical_and", is_behind, apply("less", place, extent))

    def _moved(self, each: Neighbour) -> tuple[Expr, Expr | None]:
        """The index of a neighbour; and whether it is one of the array, where that matters."""
        place: Expr = query("coordinate", each.axis)
        if each.offset:
            place = apply("add", place, const(each.offset, INT64))
        if self.is_inside or not (each.before or each.after):
            return place, None
        extent: Expr = query("shape", each.axis)
        if each.more:
            extent = apply("subtract", extent, const(each.more, INT64))
        return borders.mapped(each.mode, place, extent)

    def _free(self, wish: str) -> str:
        """A name that is not taken yet, as wished if possible."""
        name = wish
        while not name or name in self.taken:
            self.number += 1
            name = f"{wish or 'v'}{self.number}"
        self.taken.add(name)
        return name

    def _declare(self, expr: Expr, value: Expr, wish: str) -> Local:
        """A local for a value, called as wished if that name is free."""
        name = self._free(wish)
        kind: DType = scalar_type(value)
        self.body.append(Declare(name, kind, value, line=self.graph.lines.get(expr, 0)))
        return Local(name, kind)
