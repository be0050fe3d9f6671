"""What graphs of arrays have beside operations and views, as values of a trace: positions, elements elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from fusec.arguments.operands import strided
from fusec.base.dtypes import INT64, STORAGE_FLOATS, DType
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions import gathering, reducing, scans
from fusec.fusion.functions.joining import held
from fusec.fusion.trace import tracer
from fusec.fusion.trace.elsewhere import position, taken
from fusec.fusion.trace.trace import Trace, constant
from fusec.fusion.trace.trace_values import Array, ArrayValue, Step, leaves_of, phantom
from fusec.graphs import nodes
from fusec.graphs.extents import at, shape_at
from fusec.ir.expr import Const, Expr, apply, const
from fusec.ir.graph import SPREAD, Neighbour, Within
from fusec.math.moments import square
from fusec.math.value import Term

Shape = tuple[int, ...]
Interval = tuple[int, int]


def positions(axis: int, shape: Shape) -> ArrayValue:
    """Where each element is along an axis."""
    expr = const(0, INT64) if 0 in shape else position(axis, shape)
    return ArrayValue(Scalar(INT64, expr), phantom(shape, INT64.numpy))


def bounded(trace: Trace, value: ArrayValue, extent: int, axis: int) -> ArrayValue:
    """Integers that calls have checked to be indices of an axis."""
    given, trace.has_looked = tracer.made(trace, value), True
    gathering._check(trace, given, extent, axis, None)
    return given._read()


def walked(starts: Sequence[int], steps: Sequence[Sequence[int]], shape: Shape) -> Step:
    """The view of elements at regular distances."""

    def view(array: Array) -> Array:
        first = array[tuple(slice(start, None) for start in starts)]
        pairs = [zip(row, array.strides, strict=False) for row in zip(*steps, strict=True)]
        strides = [sum(step * stride for step, stride in pair) for pair in pairs]
        return strided(first, shape, strides)

    return view


def spread(trace: Trace, value: ArrayValue, axes: tuple[int, ...], dtype: DType) -> ArrayValue:
    """The sums of squared distances from the mean."""
    if prod(value.shape[axis] for axis in axes) > 1:
        return reducing.totals(trace, SPREAD, value, axes, dtype, constant(0, dtype))
    squares = square(Term(apply("subtract", value.expr, value.expr))).expr
    return reducing.totals(trace, "add", ArrayValue(Scalar(dtype, squares), value.phantom), axes, dtype,
                           constant(0, dtype))  # fmt: skip


def accumulated(trace: Trace, op: str, value: ArrayValue, axis: int) -> ArrayValue:
    """Elements combined with all before them along an axis, in their dtype."""
    dtype = value.dtype.numpy if op in ("add", "multiply") else None
    found = scans.scanned(scans.SCANS[op], tracer.made(trace, value), axis=axis, dtype=dtype)
    return found._read()  # type: ignore[no-any-return]


class Taking:
    """Elements elsewhere, in one call of a graph. values: of its nodes so far."""

    def __init__(self, trace: Trace, sizes: Mapping[str, int], values: Mapping[Expr, ArrayValue]) -> None:
        self.trace, self.sizes, self.values = trace, sizes, values
        self.ranges: dict[Expr, Interval | None] = {}

    def shape(self, value: Expr) -> Shape:
        """The extents of a value in this call."""
        return shape_at(nodes.shape_of(value), self.sizes)

    def taken(self, node: nodes.Take) -> ArrayValue:
        """The elements that a node takes."""
        trace, shape, own = self.trace, self.shape(node), self.shape(node.value)
        seen, trace.has_looked = phantom(shape, node.type.numpy), True
        if 0 in shape:
            return ArrayValue(constant(0, node.type).scalar, seen)
        if 0 in own:
            raise IndexError(f"elements of an array of shape {list(own)}, which has none")
        value = held(tracer.made(trace, self.values[node.value]))
        leaf = trace.leaves[leaves_of(value.expr)[0]]
        index = [self._index(each, own[axis], shape) for axis, each in enumerate(node.index)]
        outside = self.values[node.outside].expr
        if node.type in STORAGE_FLOATS:
            outside = node.outside if isinstance(node.outside, Const) else apply("convert", outside, target=node.type)
        return ArrayValue(Scalar(node.type, taken(trace.whole(leaf, value), index, shape, outside)), seen)

    def _index(self, node: Expr, extent: int, shape: Shape) -> Expr:
        """An index of an axis, as kernels read it."""
        if isinstance(node, nodes.Near):
            own = shape[node.axis]
            if own == 1 == extent:
                return const(0, INT64)
            return Neighbour(node.axis - len(shape), node.offset, node.mode, own - extent, INT64)
        expr = self.values[node].expr
        if isinstance(node, nodes.Inside):
            return Within(expr, INT64)
        low, high = self._range(node) or (-1, extent)
        if low < 0:
            expr = apply("maximum", expr, const(0, INT64))
        if high >= extent:
            last = apply("subtract", self.trace.number(("known", extent), INT64).expr, const(1, INT64))
            expr = apply("minimum", expr, last)
        return expr

    def _range(self, root: Expr) -> Interval | None:
        """The least and the largest element of integers, as far as they are known."""
        pending = [root]
        while pending:
            node = pending[-1]
            below = [each for each in node.children if each not in self.ranges]
            if node in self.ranges or not below:
                self.ranges[pending.pop()] = self._range_of(node)
            else:
                pending += below
        return self.ranges[root]

    def _range_of(self, node: Expr) -> Interval | None:
        """The same for a node whose operands' ranges are known."""
        match node:
            case Const() if node.type.is_integer:
                return int(node.value), int(node.value)
            case nodes.SizeNumber(extent):
                return at(extent, self.sizes), at(extent, self.sizes)
            case nodes.Positions(axis):
                return 0, max(self.shape(node)[axis] - 1, 0)
            case nodes.Bounded(_, extent):
                return -at(extent, self.sizes), at(extent, self.sizes) - 1
            case nodes.Slice() | nodes.Transpose() | nodes.Reshape() | nodes.Broadcast():
                return self.ranges[node.children[0]]
            case nodes.Map("convert") if node.type == INT64:
                return self.ranges[node.args[0]]
            case nodes.Map("where", (test, then, orelse)):
                return self._chosen(test, then, orelse)
            case nodes.Map(op, (one, other)) if node.type == INT64:
                return _combined(op, self.ranges[one], self.ranges[other])
        return None

    def _chosen(self, test: Expr, then: Expr, orelse: Expr) -> Interval | None:
        """The range of `where`, above all of an index that counts from the end if it is negative."""
        one, other = self.ranges[then], self.ranges[orelse]
        if one is None or other is None:
            return None
        match test, then:
            case nodes.Map("less", (index, Const(bits=0))), nodes.Map("add", (same, size)) if (
                index is same is orelse and other[0] < 0 and self.ranges[size] is not None
            ):
                by = self.ranges[size]
                assert by is not None, "it was asked"
                one, other = (other[0] + by[0], -1 + by[1]), (0, max(other[1], 0))
        return min(one[0], other[0]), max(one[1], other[1])


def _combined(op: str, one: Interval | None, other: Interval | None) -> Interval | None:
    """The range of an operation on two values."""
    if one is None or other is None:
        return None
    match op:
        case "add":
            return one[0] + other[0], one[1] + other[1]
        case "subtract":
            return one[0] - other[1], one[1] - other[0]
        case "multiply":
            found = [a * b for a in one for b in other]
            return min(found), max(found)
        case "floor_divide" if other[0] > 0:
            found = [a // b for a in one for b in other]
            return min(found), max(found)
        case "remainder" if other[0] > 0:
            return 0, other[1] - 1
        case "minimum" | "maximum":
            pick = min if op == "minimum" else max
            return pick(one[0], other[0]), pick(one[1], other[1])
    return None
