"""Where results of graphs are stored: in the arrays of donated inputs, and updates of these straight there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fusec.arguments.layouts import Shape
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import ArrayValue, leaves_of
from fusec.fusion.trace.tracer import Tracer
from fusec.graphs import nodes
from fusec.graphs.nodes import ArrayGraph
from fusec.ir.expr import Expr, scalar_type
from fusec.ir.walk import inner_first


class Rooms:
    """The arrays in which one call of a graph stores its results.

    rooms: for each output the array of a donated input, or None. in_place: the updates that write such an array, all
    of whose old contents are in it. order: of all nodes, with these as late as may be.
    """

    def __init__(self, graph: ArrayGraph, given: Sequence[Tracer], shape: Callable[[Expr], Shape]) -> None:
        self.graph = graph
        self.inputs = dict(zip(graph.inputs, given, strict=True))
        self.rooms = self._assigned(shape)
        self.in_place: dict[Expr, Tracer] = {}
        parts = list[Expr]()
        for (_, value), room in zip(graph.outputs, self.rooms, strict=True):
            chain = list[nodes.Update]()
            while isinstance(value, nodes.Update):
                chain.append(value)
                value = value.value
            if room is not None and room.ndim and self.inputs.get(value) is room:  # type: ignore[call-overload]
                self.in_place.update(dict.fromkeys(chain, room))
                parts += [each.part for each in reversed(chain)]
        values = [value for _, value in graph.outputs]
        first = [value for value in values if value not in self.in_place]
        self.order = list(inner_first([*first, *parts, *values]))
        self.last: dict[Expr, int] = {}  # where each value is used for the last time
        for at, node in enumerate(self.order):
            self.last.update(dict.fromkeys(node.children, at))
        self.last.update(dict.fromkeys(values, len(self.order)))

    def _assigned(self, shape: Callable[[Expr], Shape]) -> list[Tracer | None]:
        """For each output the array of a donated input of its dtype and shape: that of its name, or a free one."""
        rooms = {each.name: (each, given) for each, given in self.inputs.items() if each.donated}
        names = {name for name, _ in self.graph.outputs}
        found = list[Tracer | None]()
        for name, value in self.graph.outputs:
            own = (scalar_type(value), shape(value) if rooms else ())  # plans depend on shapes that are asked for
            fits = [key for key, (each, room) in rooms.items() if (each.type, room.shape) == own]
            key = name if name in fits else next((key for key in fits if key not in names), "")
            found.append(rooms.pop(key)[1] if key else None)
        return found

    def keep(self, trace: Trace, node: Expr, values: dict[Expr, ArrayValue]) -> None:
        """Have values that are used after an update in place not change with it."""
        buffer, place = self.in_place[node]._memory.buffer, self.order.index(node)
        assert buffer is not None, "arguments have memory"
        for each in self.order[:place]:
            if self.last.get(each, 0) > place:
                leaves = [trace.leaves[leaf].buffer for leaf in leaves_of(values[each].expr)]
                if any(leaf is not None and leaf.group == buffer.group for leaf in leaves):
                    values[each] = trace.settled(values[each])
