"""Graphs of arrays under construction, and their values; `fusec.graph` is their public face."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import INT64, DType
from fusec.errors.graphs import GraphBroken, GraphShapes, GraphTypes
from fusec.graphs import rules
from fusec.graphs.compiler import GraphCompiler
from fusec.graphs.extents import Extent, Size
from fusec.graphs.missing import CHOOSE, UnlikeArrays, absent, no_operand
from fusec.graphs.nodes import ArrayGraph, ArrayInput, shape_of
from fusec.graphs.parse import extent_of
from fusec.graphs.text import print_arrays
from fusec.ir.expr import Expr, const
from fusec.ir.expr import scalar_type as _type

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from fusec.kernels.public_types import GraphFunction

Item = int | slice | EllipsisType | None
Shape = Sequence[int | str | Extent]


class GraphValue(UnlikeArrays):
    """A value of a graph: an array whose dtype is known, and whose extents may be named sizes.

    Operators take values of one dtype and Python numbers, which take the dtype of the value. They broadcast as NumPy's.

    >>> from fusec import graph
    >>> x = graph.Graph("example").input("x", "float64", ("n", 4))
    >>> (x[1:, ::2] + 1).shape
    (Extent('n - 1'), 2)
    """

    def __init__(self, graph: Graph, node: Expr) -> None:
        self.graph, self.node = graph, node

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return _type(self.node).numpy

    @property
    def shape(self) -> tuple[Size, ...]:
        """Its extents: integers, or `Extent`s that calls decide."""
        return shape_of(self.node)

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    def _with(self, node: Expr) -> GraphValue:
        return GraphValue(self.graph, node)

    def _binary(self, op: str, other: object, *, swapped: bool = False) -> GraphValue:
        given = self.graph.operand(other, _type(self.node))
        return self._with(rules.mapped(op, [given, self.node] if swapped else [self.node, given]))

    def astype(self, dtype: DTypeLike) -> GraphValue:
        """The elements in another dtype, converted as NumPy does where that is defined. Raises GraphTypes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", ("n",)).astype("float32").dtype
        dtype('float32')
        """
        return self._with(rules.converted(self.node, _dtype(dtype)))

    def reshape(self, *shape: Size | Sequence[Size]) -> GraphValue:
        """The same elements, in C order, in another shape; one extent may be -1. Raises GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", ("n", 4)).reshape(-1, 2).shape
        (Extent('2 * n'), 2)
        """
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return self._with(rules.reshaped(self.node, _shape(extents)))  # type: ignore[arg-type]

    def transpose(self, *axes: int) -> GraphValue:
        """The axes in another order, reversed without any. Raises GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", ("n", 4)).transpose().shape
        (4, Extent('n'))
        """
        return self._with(rules.transposed(self.node, axes or range(self.ndim)[::-1]))

    @property
    def T(self) -> GraphValue:  # noqa: N802 - NumPy's name
        """The axes in reverse order."""
        return self.transpose()

    def broadcast_to(self, shape: Shape) -> GraphValue:
        """Axes of one element repeated. Raises GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", (4,)).broadcast_to(("n", 4)).shape
        (Extent('n'), 4)
        """
        return self._with(rules.broadcast(self.node, _shape(shape)))

    def fold(self, op: str, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> GraphValue:
        """The elements along axes combined by an associative op, such as "add" or "maximum", in its dtype.

        axis: all of them if None. keepdims: these axes stay with one element. Raises GraphTypes and GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", (4, "n")).fold("maximum", axis=0).shape
        (Extent('n'),)
        """
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
        found = rules.folded(op, self.node, axes)
        if not keepdims:
            places = {each % self.ndim for each in axes}
            kept = tuple(extent for at, extent in enumerate(self.shape) if at not in places)
            found = rules.reshaped(found, kept)
        return self._with(found)

    def sum(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> GraphValue:
        """The sum of the elements along axes, in their own dtype; see `fold`.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", (4, "n")).sum().shape
        ()
        """
        return self.fold("add", axis, keepdims=keepdims)

    def scan(self, op: str, axis: int = -1) -> GraphValue:
        """Every element combined with all before it along an axis, by add, multiply, maximum or minimum.

        Raises GraphTypes and GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int64", (4, "n")).scan("add")
        <value of graph 'example': int64[4, n]>
        """
        return self._with(rules.accumulated(op, self.node, axis))

    def updated(self, index: Item | tuple[Item, ...], part: object) -> GraphValue:
        """A value with other elements in a slice; this one stays as it is. Raises GraphTypes and GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", ("n",)).updated(slice(1, -1), 0).shape
        (Extent('n'),)
        """
        found, shape = self._index(index)
        given = self.graph.operand(part, _type(self.node))
        if shape != found[2]:  # integers took axes away, None put some there
            rules.common_shape([shape_of(given), shape])
            given = rules.reshaped(rules.broadcast(given, shape), found[2])
        return self._with(rules.updated(self.node, given, found))

    def take(self, *index: GraphValue | int) -> GraphValue:
        """The elements at an index for each axis; indices broadcast, and count from the end if they are negative.

        Calls raise IndexError for an index outside of its axis. Raises GraphTypes and GraphShapes.

        >>> from fusec import graph
        >>> example = graph.Graph("example")
        >>> table, ids = example.input("table", "float32", (9, "n")), example.input("ids", "int32", ("m",))
        >>> table.take(ids, 0)
        <value of graph 'example': float32[m]>
        """
        given = [self.graph.operand(each, INT64) for each in index]
        found = [rules.counted_from(*pair, axis) for axis, pair in enumerate(zip(given, self.shape, strict=False))]
        shape = rules.common_shape([shape_of(each) for each in found])
        return self._with(rules.taken(self.node, [*found, *given[len(found) :]], shape, const(0, _type(self.node))))

    def rolled(self, shift: int, axis: int = 0) -> GraphValue:
        """The elements moved along an axis, those at its end to the start, as np.roll has them. Raises GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", ("n",)).rolled(1).shape
        (Extent('n'),)
        """
        return self._with(rules.moved(self.node, rules.roll(shift, axis), "wrap", const(0, _type(self.node))))

    def padded(self, widths: Sequence[tuple[int, int]], mode: str = "constant", number: object = 0) -> GraphValue:
        """The elements with more around them. widths: how many before and after, for each axis.

        mode: nearest, wrap, reflect or mirror, as scipy.ndimage has them, or constant, for a number. Raises GraphTypes
        and GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "int32", ("n",)).padded([(1, 2)], "nearest").shape
        (Extent('n + 3'),)
        """
        moves = rules.margins(widths, self.ndim)
        return self._with(rules.moved(self.node, moves, mode, self.graph.operand(number, _type(self.node))))

    def __matmul__(self, other: object) -> GraphValue:
        return self._with(rules.multiplied(self.node, self.graph.operand(other, _type(self.node))))

    def __getitem__(self, index: Item | tuple[Item, ...]) -> GraphValue:
        found, shape = self._index(index)
        return self._with(rules.reshaped(rules.sliced(self.node, found), shape))

    def _index(self, index: Item | tuple[Item, ...]) -> tuple[rules.Index, tuple[Size, ...]]:
        """The slice that an index takes, one for each axis, and the shape of what it gives."""
        return rules.indexed(self.shape, index if isinstance(index, tuple) else (index,))

    def __repr__(self) -> str:
        return f"<value of graph '{self.graph.name}': {_type(self.node)}{rules.shown(self.shape)}>"

    def __iter__(self) -> Iterator[GraphValue]:
        if not self.shape or not isinstance(self.shape[0], int):
            cure = "only axes whose extent is an integer can be iterated over"
            raise GraphShapes(f"iteration over {rules.shown(self.shape)}", cure).at()
        return (self[at] for at in range(self.shape[0]))

    def __bool__(self) -> bool:
        raise GraphBroken("a value of a graph has no truth value", CHOOSE).at()

    def __getattr__(self, name: str) -> Any:
        raise absent(self, name)

    def __setitem__(self, index: object, part: object) -> None:
        raise GraphBroken("values of graphs do not change", "write x = x.updated(index, part)").at()

    __hash__ = None  # type: ignore[assignment] # == compares elements

    if TYPE_CHECKING:  # `_operators` makes them

        def _of_two(self, other: object, /) -> GraphValue: ...
        def _of_one(self) -> GraphValue: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _of_two
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _of_two
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _of_two
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _of_two
        __lt__ = __le__ = __gt__ = __ge__ = _of_two
        __eq__ = __ne__ = _of_two  # type: ignore[assignment]
        __neg__ = __abs__ = __invert__ = _of_one


def _operators() -> None:
    """Give `GraphValue` the operators that the op table has."""
    both = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "and": "bitwise_and",
        "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
        "floordiv": "floor_divide", "mod": "remainder", "pow": "pow",
    }  # fmt: skip
    one_way = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
    for name, op in {**both, **one_way, "eq": "equal", "ne": "not_equal"}.items():
        setattr(GraphValue, f"__{name}__", lambda self, other, op=op: self._binary(op, other))
    for name, op in both.items():
        setattr(GraphValue, f"__r{name}__", lambda self, other, op=op: self._binary(op, other, swapped=True))
    for name, op in {"neg": "negative", "abs": "absolute", "invert": "bitwise_invert"}.items():
        setattr(GraphValue, f"__{name}__", lambda self, op=op: self._with(rules.mapped(op, [self.node])))


_operators()


class Graph:
    """A graph under construction: inputs, operations on them, and outputs.

    name: of its kernels. Nothing is computed before the function that `compile` returns is called. Raises GraphBroken.

    >>> from fusec import graph
    >>> twice = graph.Graph("twice")
    >>> x = twice.input("x", "float32", ("n",))
    >>> twice.output(x + x, "y")
    >>> print(twice)
    graph twice(x: float32[n]) {
        %1 = add(x, x)
        return y = %1
    }
    """

    def __init__(self, name: str = "graph") -> None:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            raise GraphBroken(f"a graph called {name!r}", "its name is an identifier, such as 'affine'").at()
        self.name = name
        self._inputs: list[ArrayInput] = []
        self._outputs: list[tuple[str, Expr]] = []
        self._functions: dict[str, Callable[..., object]] = {}

    def input(self, name: str, dtype: DTypeLike, shape: Shape = (), *, donated: bool = False) -> GraphValue:
        """An array that calls pass, or a number if it has no axes.

        shape: integers, and names for extents that calls decide; equal names are equal extents. donated: the caller
        does not need the contents any more, and a result may be stored there. Raises GraphTypes and GraphBroken.

        >>> from fusec import graph
        >>> graph.Graph("example").input("x", "float32", ("n", "n"))
        <value of graph 'example': float32[n, n]>
        """
        self._check_name(name, [each.name for each in self._inputs], "inputs")
        made = ArrayInput(name, _dtype(dtype), _shape(shape, 0), bool(donated))
        self._inputs.append(made)
        return GraphValue(self, made)

    def constant(self, value: object, dtype: DTypeLike) -> GraphValue:
        """A number of a dtype. Raises GraphTypes and NumberTooLarge.

        >>> from fusec import graph
        >>> graph.Graph("example").constant(0.1, "float32")
        <value of graph 'example': float32[]>
        """
        return GraphValue(self, rules.constant(value, _dtype(dtype)))

    def array(self, values: ArrayLike, dtype: DTypeLike) -> GraphValue:
        """An array of constants of a dtype. Raises GraphTypes and NumberTooLarge.

        >>> from fusec import graph
        >>> graph.Graph("example").array([1, 2], "float32")
        <value of graph 'example': float32[2]>
        """
        given, kind = np.asarray(values), _dtype(dtype)
        if not given.size:
            return self.constant(0, dtype).broadcast_to(given.shape)
        rules.check_held(given, kind)
        if given.dtype == object:  # integers of more than 64 bits
            return GraphValue(self, rules.literal([const(each, kind) for each in given.flat], given.shape))
        with np.errstate(all="ignore"):
            data = given.astype(kind.numpy).tobytes()
        return GraphValue(self, rules.literal_of(data, kind, given.shape))

    def positions(self, shape: Shape, axis: int = 0) -> GraphValue:
        """Where each element of a shape is along an axis, as int64. Raises GraphShapes.

        >>> from fusec import graph
        >>> graph.Graph("example").positions(("n", 4))
        <value of graph 'example': int64[n, 4]>
        """
        return GraphValue(self, rules.positions(axis, _shape(shape)))

    def number(self, extent: str | Size) -> GraphValue:
        """An extent as an int64 without axes, which each call passes to the kernels.

        >>> from fusec import graph
        >>> graph.Graph("example").number("n").astype("float32")
        <value of graph 'example': float32[]>
        """
        (found,) = _shape([extent])
        return GraphValue(self, rules.number_of(found))

    def apply(self, op: str, *args: object, dtype: DTypeLike | None = None) -> GraphValue:
        """An operation of the op table, such as "maximum", "where" or "exp", on corresponding elements.

        args: values of one dtype (the condition of "where" is bool), and Python numbers. dtype: the target of "convert"
        and "bitcast". Raises GraphTypes and GraphShapes.

        >>> from fusec import graph
        >>> example = graph.Graph("example")
        >>> x = example.input("x", "float32", ("n",))
        >>> example.apply("where", x > 0, x, 0.0)
        <value of graph 'example': float32[n]>
        """
        values = [each for each in args if isinstance(each, GraphValue)]
        if not values:
            raise GraphTypes(f"'{op}' without a value of the graph", "pass inputs, or graph.constant(...)").at()
        like = _type(values[-1].node)  # of "where" the condition comes first
        nodes = [self.operand(each, like) for each in args]
        return GraphValue(self, rules.mapped(op, nodes, None if dtype is None else _dtype(dtype)))

    def call(
        self,
        name: str,
        function: Callable[..., object],
        *args: GraphValue,
        results: Sequence[tuple[DTypeLike, Shape]],
    ) -> Any:
        """A function that gets NumPy arrays, between the kernels: the value that it gives, or a list of several.

        name: what the text calls it. function: takes an array for each of the values, which it must neither change
        nor keep, and returns an array, or a tuple of several. results: the dtype and the shape of each.

        Raises GraphBroken.

        >>> from fusec import graph
        >>> example = graph.Graph("example")
        >>> x = example.input("x", "float64", ("n", "n"))
        >>> example.call("inverse", np.linalg.inv, x, results=[("float64", ("n", "n"))])
        <value of graph 'example': float64[n, n]>
        """
        self._check_name(name, [], "functions")
        if self._functions.setdefault(name, function) is not function:
            raise GraphBroken(f"two functions of graph '{self.name}' are called '{name}'", "rename one").at()
        nodes = [self.operand(each, _type(each.node)) for each in args]
        kinds = [(_dtype(dtype), _shape(shape)) for dtype, shape in results]
        found = [GraphValue(self, each) for each in rules.called(name, nodes, kinds)]
        return found[0] if len(found) == 1 else found

    def output(self, value: GraphValue, name: str = "") -> None:
        """Make a value an output. name: output0, output1, ... without. Raises GraphBroken and GraphTypes.

        >>> from fusec import graph
        >>> example = graph.Graph("example")
        >>> example.output(example.input("x", "float32", ("n",)).sum(), "total")
        >>> example.compile()(np.ones(3, "float32"))
        array(3., dtype=float32)
        """
        name = name or f"output{len(self._outputs)}"
        self._check_name(name, [each for each, _ in self._outputs], "outputs")
        if not isinstance(value, GraphValue):
            raise GraphTypes(f"an output of type {type(value).__name__}", "outputs are values of the graph").at()
        self._outputs.append((name, self.operand(value, _type(value.node))))

    def operand(self, given: object, like: DType) -> Expr:
        """The node of a value, or a Python number as a constant of a dtype.

        Raises GraphTypes, GraphBroken and NumberTooLarge.
        """
        if isinstance(given, GraphValue):
            if given.graph is not self:
                cure = "make it an output there, and an input here"
                raise GraphBroken(f"a value of graph '{given.graph.name}' in graph '{self.name}'", cure).at()
            return given.node
        kinds = {bool: 0, int: 1, float: 2, complex: 3}
        rank = {"bool": 0, "signed": 1, "unsigned": 1, "float": 2, "complex": 3}[like.kind]
        if isinstance(given, np.generic):
            if given.dtype != like.numpy:
                cure = f"dtypes are never promoted: convert one of them, e.g. with .astype('{like}')"
                raise GraphTypes(f"a NumPy number of {given.dtype} where {like} is expected", cure).at()
            return const(given, like)
        if type(given) not in kinds or kinds[type(given)] > rank:
            raise no_operand(given, like)
        return rules.constant(given, like)

    def compile(self) -> GraphFunction:
        """The graph as a function of arrays, compiled into few kernels. Raises GraphBroken.

        The function takes an argument for each input and returns the output, or a tuple of several; out= gives arrays
        for them. It has the verbs of fused functions: explain, source, clear_cache.

        >>> from fusec import graph
        >>> double = graph.Graph("double")
        >>> double.output(double.input("x", "float64", ("n",)) * 2)
        >>> double.compile()(np.array([1.0, 2.0]))
        array([2., 4.])
        """
        return GraphCompiler.run(self.built())

    @staticmethod
    def of(built: ArrayGraph) -> Graph:
        """A graph that can be added to, of one that is complete."""
        made = Graph(built.name)
        made._inputs, made._outputs, made._functions = list(built.inputs), list(built.outputs), dict(built.functions)
        return made

    @property
    def functions(self) -> dict[str, Callable[..., object]]:
        """The functions that it calls, by the names in its text."""
        return dict(self._functions)

    def built(self) -> ArrayGraph:
        """The graph as it is now, as an immutable value."""
        return ArrayGraph(self.name, tuple(self._inputs), tuple(self._outputs), dict(self._functions))

    def __str__(self) -> str:
        return print_arrays(self.built()).rstrip("\n")

    def __repr__(self) -> str:
        inputs = ", ".join(f"{each.name}: {each.type}{rules.shown(each.shape)}" for each in self._inputs)
        return f"<graph {self.name}({inputs}), outputs: {', '.join(name for name, _ in self._outputs) or 'none'}>"

    def _check_name(self, name: str, taken: Sequence[str], what: str) -> None:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()):
            raise GraphBroken(f"{name!r} as a name", "names are identifiers, such as 'x'").at()
        if name in taken:
            raise GraphBroken(f"two {what} of graph '{self.name}' are called '{name}'", "rename one").at()


def _dtype(given: DTypeLike) -> DType:
    """The row of a dtype. Raises GraphTypes."""
    found = dtypes.BY_NAME.get(given) if isinstance(given, str) else None
    if found is None:
        try:
            found = dtypes.from_numpy(np.dtype(given))
        except TypeError:
            found = None
    if found is None:
        raise GraphTypes(f"graphs have no dtype {given!r}", dtypes.cure_for(str(given))).at()
    return found


def _shape(given: Sequence[int | str | Extent], least: int = -1) -> tuple[Size, ...]:
    """Extents, with names as sizes; least: -1 if one may be whatever remains. Raises GraphShapes."""
    found: list[Size] = []
    for each in given if isinstance(given, Iterable) else (given,):
        if isinstance(each, str):
            found.append(extent_of(each))
        elif isinstance(each, Extent) or (isinstance(each, int) and not isinstance(each, bool) and each >= least):
            found.append(each)
        else:
            raise GraphShapes(f"the extent {each!r}", "extents are integers, names such as 'n', or made of these").at()
    return tuple(found)
