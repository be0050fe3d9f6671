"""Calls of graphs of arrays: sizes are bound to the arguments, values become those of a trace, and plans are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from keyword import iskeyword
from typing import Any

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.base.diagnostics import counted
from fusec.base.dtypes import DType
from fusec.base.records import dataclass, replace
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.errors.fusing import TooLittleMemory
from fusec.errors.graphs import GraphArguments, GraphBroken, GraphShapes
from fusec.frontends.python.types import PythonType
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions import reducing
from fusec.fusion.functions.libraries import LibraryFunction
from fusec.fusion.functions.routines import reshaped
from fusec.fusion.fuse import Fused
from fusec.fusion.graphs import graph_elements
from fusec.fusion.graphs.graph_libraries import NumpyCall, NumpyCalls
from fusec.fusion.graphs.graph_memory import Rooms
from fusec.fusion.trace import tracer
from fusec.fusion.trace.tables import METHODS
from fusec.fusion.trace.trace import RECORDING, Trace, constant, holds, rounded_to, widened
from fusec.fusion.trace.trace_values import Array, ArrayValue, Indexed, Step, ViewOf, phantom, replaced
from fusec.fusion.trace.tracer import Tracer
from fusec.graphs import nodes
from fusec.graphs.building import Graph
from fusec.graphs.extents import Shape as Extents
from fusec.graphs.extents import Size, at, decided, names_of, shape_at, solved
from fusec.graphs.nodes import ArrayGraph, ArrayInput
from fusec.graphs.text import print_arrays
from fusec.ir.expr import Const, Expr, apply, convert
from fusec.ir.graph import SPREAD
from fusec.ir.walk import inner_first

SHOWN_SIZE = 1000  # of what source() shows, if nobody says
IDENTITIES = {"add": 0, "multiply": 1, "bitwise_or": 0, "bitwise_xor": 0, "bitwise_and": -1}


class CompiledGraph(Fused):
    """A graph of arrays as a function; see `fusec.graph.Graph.compile`."""

    def __init__(self, graph: ArrayGraph) -> None:
        check(graph)
        self.built = graph
        super().__init__(lambda *args: Lowering(graph, args).results(), graph.name)
        self.params = tuple(each.name for each in graph.inputs)
        self._donated = [at for at, each in enumerate(graph.inputs) if each.donated]
        self._kept: dict[frozenset[int], CompiledGraph] = {}
        self.__name__ = self.__qualname__ = graph.name
        if all(each.isidentifier() and not iskeyword(each) and each != "out" for each in self.params):
            named = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in self.params]
            self.__signature__ = Signature([*named, Parameter("out", Parameter.KEYWORD_ONLY, default=None)])
        self.document(f"{len(self.params)} inputs, {len(graph.outputs)} outputs; see fusec.graph.")

    def __call__(self, *args: Any, out: Any = None, **named: Any) -> Any:
        """The output, or a tuple of several.

        args, named: an array or number for each input. out: an array for the output, or a tuple of them.
        """
        if len(args) > len(self.params):
            raise _miscounted(self.built, len(args), "; name arrays for its outputs: out=")
        if named:
            args = self._in_order(args, named)
        if out is not None:
            given = tuple(out) if isinstance(out, (tuple, list)) else (out,)
            if len(given) != len(self.built.outputs):
                what = f"out= of {len(given)} arrays for {len(self.built.outputs)} outputs of graph '{self.name}'"
                raise GraphArguments(what, "pass one array for each output, in their order").at()
            args = (*args, *given)
        elif self._donated and any(_is_readonly(args[at]) for at in self._donated if at < len(args)):
            return self._keeping(frozenset(at for at in self._donated if _is_readonly(args[at])))(*args)
        return super().__call__(*args)

    def _in_order(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call that names some. Raises GraphArguments."""
        rest = self.params[len(args) :]
        wrong = [name for name in named if name not in rest]
        missing = [name for name in rest if name not in named]
        if wrong or missing:
            what = f"graph '{self.name}' has no input '{wrong[0]}' that is not given already" if wrong else (
                f"graph '{self.name}' was called without its input '{missing[0]}'")  # fmt: skip
            raise GraphArguments(what, f"its inputs are, in this order: {', '.join(self.params)}").at()
        return (*args, *(named[name] for name in rest))

    def _too_large(self, what: str) -> Exception:
        """The error for a call for which the memory does not suffice."""
        return TooLittleMemory(self.name, what, "graph").at()

    def _keeping(self, places: frozenset[int]) -> CompiledGraph:
        """The same graph without the donation of some inputs, whose arrays are read-only in a call."""
        if places not in self._kept:
            known: dict[Expr, Expr] = {each: each for each in self.built.inputs}
            inputs = [
                replace(each, donated=each.donated and at not in places) for at, each in enumerate(self.built.inputs)
            ]
            known.update(zip(self.built.inputs, inputs, strict=True))
            outputs = tuple((name, replaced(value, known)) for name, value in self.built.outputs)
            self._kept[places] = CompiledGraph(replace(self.built, inputs=tuple(inputs), outputs=outputs))
        return self._kept[places]

    def graph(self, *args: Any, **options: Any) -> Graph:
        """The graph that was compiled."""
        del args, options
        return Graph.of(self.built)

    def call_keywords(self) -> Sequence[str]:
        """The sizes, which source() takes."""
        extents = (extent for each in self.built.inputs for extent in each.shape)
        return sorted(frozenset().union(*map(names_of, extents)))

    def shown(self, asked: Showing, options: Mapping[str, Any] | None = None) -> ShownKernels:
        """What source() shows: the kernels of a call with sizes, or shapes, as asked; a size is a thousand without."""
        sizes = {**dict.fromkeys(self.call_keywords(), SHOWN_SIZE), **(options or {})}
        samples = []
        for each in self.built.inputs:
            shape = asked.shapes.get(each.name, asked.shape)
            shape = tuple(at(extent, sizes) for extent in each.shape) if shape is None else shape
            samples.append(np.empty(shape, each.type.numpy))
        return self.listed(samples, {})

    def described(self) -> tuple[str, str]:
        """The graph's head, and what it is."""
        return f"{self.name}({', '.join(self.params)})", "A compiled graph of arrays; see fusec.graph."

    def __repr__(self) -> str:
        return f"<compiled graph {self.described()[0]}>"

    def __reduce__(self) -> tuple[object, ...]:
        """The graph's text. Raises GraphBroken for one that calls functions other than NumPy's."""
        if not all(isinstance(each, NumpyCall) for each in self.built.functions.values()):
            cure = "pickle its text, and read it with fusec.graph.parse(text, functions=...)"
            raise GraphBroken(f"graph '{self.name}' calls functions, which have no text", cure).at()
        return _from_text, (print_arrays(self.built),)


def _is_readonly(given: Any) -> bool:
    return isinstance(given, np.ndarray) and not given.flags.writeable


def _from_text(text: str) -> CompiledGraph:
    from fusec.graphs.parse import parse_arrays

    return CompiledGraph(parse_arrays(text, NumpyCalls()))


def check(graph: ArrayGraph) -> None:
    """Raise GraphBroken for a graph without outputs, or with sizes that no input has as an extent."""
    if not graph.outputs:
        raise GraphBroken(
            f"graph '{graph.name}' has no outputs", "name them with g.output(value, name), where g is the graph"
        ).at()
    known = decided(extent for each in graph.inputs for extent in each.shape)
    for value in inner_first([*graph.inputs, *(value for _, value in graph.outputs)]):
        extents = [*nodes.shape_of(value), *getattr(value, "starts", ()), getattr(value, "extent", 0)]
        unknown = sorted(frozenset().union(*map(names_of, extents)) - known)
        if unknown:
            cure = "give an input an axis of that extent, or write the extent as a number"
            raise GraphBroken(f"no input of graph '{graph.name}' has an axis of size '{unknown[0]}'", cure).at()


def _miscounted(graph: ArrayGraph, given: int, more: str = "") -> Exception:
    """The error for a wrong number of arguments. more: of the hint."""
    names = ", ".join(each.name for each in graph.inputs)
    what = f"graph '{graph.name}' takes {counted(len(graph.inputs), 'argument')}, given {given}"
    return GraphArguments(
        what, (f"its inputs are, in this order: {names}" if names else "it has no inputs") + more
    ).at()


class Lowering:
    """One call of a graph as values of a trace."""

    def __init__(self, graph: ArrayGraph, args: Sequence[Any]) -> None:
        self.graph = graph
        count = len(graph.inputs)
        if len(args) not in (count, count + len(graph.outputs)):
            raise _miscounted(graph, len(args))
        self.given, self.out = args[:count], args[count:]
        self.sizes = bound(graph, [self._shape(each, value) for each, value in zip(graph.inputs, args, strict=False)])
        self.trace: Trace = RECORDING.get().trace
        # Calls that share a plan are not looked at again: what they are asked must follow from equal extents alone.
        is_open = all(
            each in (0, 1) or str(each).isidentifier() for declared in graph.inputs for each in declared.shape
        )
        self.trace.has_looked |= not is_open or bool(self.out) or any(each.donated for each in graph.inputs)
        self.values: dict[Expr, ArrayValue] = {}
        self.called: dict[object, Sequence[Tracer]] = {}  # the results of functions
        self.wholes: dict[Expr, Tracer] = {}  # operands of libraries, which are stored once

    def _shape(self, declared: ArrayInput, given: Any) -> Shape:
        """The shape of an argument of the declared dtype. Raises GraphArguments."""
        if not isinstance(given, Tracer):
            what = f"input '{declared.name}' of graph '{self.graph.name}' is no array"
            raise GraphArguments(what, f"pass one, e.g. np.asarray(x, dtype='{declared.type}')").at()
        kind = given._read().kind
        fits = holds(declared.type, kind) if isinstance(kind, PythonType) else kind == declared.type
        if not fits:
            name, dtype = declared.name, str(declared.type)
            shown, cure = f"a {kind}", f"np.asarray({name}, dtype={dtype!r})"
            if isinstance(kind, DType):
                shown, cure = str(kind), f"{name}.astype({dtype!r})"
            what = f"input '{name}' of graph '{self.graph.name}' is {dtype}, given {shown}"
            raise GraphArguments(what, f"convert the argument: {cure}").at()
        return given._seen.shape

    def shape(self, value: Expr) -> Shape:
        """The extents of a value in this call, on which the plan depends."""
        self.trace.has_looked = True
        return shape_at(nodes.shape_of(value), self.sizes)

    def results(self) -> Any:
        """All outputs, in given arrays or those of donated inputs where there are such."""
        values = [value for _, value in self.graph.outputs]
        rooms = None if self.out else Rooms(self.graph, self.given, self.shape)
        for value in inner_first(values) if rooms is None else rooms.order:
            is_there = rooms is not None and value in rooms.in_place
            self.values[value] = self._updated(value, rooms) if is_there else self._value(value)  # type: ignore[arg-type]
        if rooms is None:
            results = self._in_given([self.values[each] for each in values])
        else:
            results = []
            for value, room in zip(values, rooms.rooms, strict=True):
                if room is not None and value not in rooms.in_place:
                    room._write(self.values[value])
                results.append(tracer.made(self.trace, self.values[value]) if room is None else room)
        return results[0] if len(results) == 1 else tuple(results)

    def _in_given(self, found: Sequence[ArrayValue]) -> list[Tracer]:
        """All outputs in the arrays of out=. Raises GraphArguments."""
        memories = [each._memory.buffer for each in self.out if isinstance(each, Tracer)]
        groups = [each.group for each in memories if each is not None]
        if len(set(groups)) < len(groups):
            what = f"arrays of out= for graph '{self.graph.name}' share memory"
            raise GraphArguments(what, "pass arrays that do not overlap").at()
        return list(map(self._stored, self.out, found, [name for name, _ in self.graph.outputs]))

    def _updated(self, node: Expr, rooms: Rooms) -> ArrayValue:
        """An update in the array of a donated input."""
        assert isinstance(node, nodes.Update), "only these are in place"
        rooms.keep(self.trace, node, self.values)
        whole = rooms.in_place[node]
        whole._view(self._index(node.shape, (node.starts, node.steps, node.extents)))._write(self.values[node.part])
        return whole._read()

    def _stored(self, out: Any, value: ArrayValue, name: str) -> Tracer:
        """A value in an array that the caller gives. Raises GraphArguments."""
        if not isinstance(out, Tracer) or out.shape != value.shape or _kind(out) != value.dtype:
            given = f"{_kind(out)}{list(out.shape)}" if isinstance(out, Tracer) else type(out).__name__
            what = f"out= for '{name}' of graph '{self.graph.name}' is {given}"
            raise GraphArguments(what, f"pass an array of {value.dtype}{list(value.shape)}").at()
        if not out._seen.flags.writeable:
            what = f"out= for '{name}' of graph '{self.graph.name}' is read-only"
            raise GraphArguments(what, "pass a writable array, e.g. a copy").at()
        out._write(value)
        return out

    # --- values --------------------------------------------------------------------------------------------------

    def _value(self, value: Expr) -> ArrayValue:
        """A node's value; its operands have theirs."""
        args = [self.wholes[each]._read() if each in self.wholes else self.values[each] for each in value.children]
        match value:
            case ArrayInput():
                place = self.graph.inputs.index(value)
                return self.trace.adapted(self.given[place]._read(), value.type)
            case Const():
                return constant(value.value, value.type)
            case nodes.SizeNumber(extent, dtype):
                return self._size(extent, dtype)
            case nodes.Map(op, _, dtype):
                return self._mapped(op, args, dtype)
            case nodes.Slice(_, starts, steps):
                index = self._index(nodes.shape_of(value.value), (starts, steps, value.shape))
                return self._viewed(args[0], index)
            case nodes.Transpose(_, axes):
                return self._viewed(args[0], ViewOf(np.transpose, (axes,)))
            case nodes.Reshape(inner):
                own, shape = nodes.shape_of(inner), value.shape
                if [each for each in own if each != 1] == [each for each in shape if each != 1]:
                    return self._viewed(self._viewed(args[0], _ones(np.squeeze, own)), _ones(np.expand_dims, shape))
                shape = self.shape(value)
                return reshaped(tracer.made(self.trace, args[0]), shape)._read()  # type: ignore[no-any-return]
            case nodes.Broadcast():
                shape = self.shape(value)
                return self._viewed(args[0], lambda array: np.broadcast_to(array, shape))
            case nodes.Fold(op, _, axes, dtype):
                return self._folded(op, args[0], axes, dtype)
            case nodes.Accumulated(op, _, axis):
                return graph_elements.accumulated(self.trace, op, args[0], axis)
            case nodes.Update(_, _, starts, steps, extents):
                index = self._index(value.shape, (starts, steps, extents))
                whole = tracer.made(self.trace, args[0])
                whole._view(index)._write(args[1])
                return whole._read()
            case nodes.Literal():
                return self._literal(value)
            case nodes.Positions(axis):
                return graph_elements.positions(axis, self.shape(value))
            case nodes.Bounded(_, extent, axis):
                return graph_elements.bounded(self.trace, args[0], at(extent, self.sizes), axis)
            case nodes.Strided(_, starts, steps):
                if 0 in self.shape(value):
                    return ArrayValue(constant(0, value.type).scalar, phantom(self.shape(value), value.type.numpy))
                return self._viewed(args[0], graph_elements.walked(starts, steps, self.shape(value)))
            case nodes.Inside() | nodes.Near():
                return args[0] if args else constant(0, value.type)  # the Take reads it
            case nodes.Take():
                return graph_elements.Taking(self.trace, self.sizes, self.values).taken(value)
            case nodes.External(nodes.PRODUCT):
                factors = tuple(self._operands(value.children))
                return METHODS["_product"](np.matmul, factors, {})._read()  # type: ignore[no-any-return]
            case nodes.External():
                return self._called(value)[value.at]._read()
        raise AssertionError(f"a graph has no {type(value).__name__}")

    def _size(self, extent: Size, dtype: DType) -> ArrayValue:
        """An extent as a number: how many elements an input has along axes, or one of this call alone."""
        factors = [] if isinstance(extent, int) else [str(each) for each in str(extent).split(" * ")]
        for declared, given in zip(self.graph.inputs, self.given, strict=True):
            own = [str(each) for each in declared.shape]
            if factors and set(factors) <= set(own) and len(set(factors)) == len(factors):
                return self.trace.count(given._read(), tuple(sorted(map(own.index, factors))), dtype)
        self.trace.has_looked = True
        return self.trace.number(("known", at(extent, self.sizes)), dtype)

    def _literal(self, value: nodes.Literal) -> ArrayValue:
        """An array of constants."""
        array = np.frombuffer(value.data, np.uint8).view(value.type.numpy).reshape(self.shape(value))
        memory = self.trace.constant(array, value.type)
        return self.trace.read(memory, (), memory.base)

    def _operands(self, given: Sequence[Expr]) -> list[Tracer]:
        """Operands of a library; a transpose and what it is of are one array, as where functions are traced."""
        return [
            self._whole(each.value)._view(ViewOf(np.transpose, (each.axes,)))
            if isinstance(each, nodes.Transpose)
            else self._whole(each)
            for each in given
        ]

    def _whole(self, value: Expr) -> Tracer:
        """The array of a value; what reads the value later reads the array, if it is stored."""
        if value not in self.wholes:
            self.wholes[value] = tracer.made(self.trace, self.values[value])
        return self.wholes[value]

    def _called(self, value: nodes.External) -> Sequence[Tracer]:
        """All results of a function, which is called once."""
        key = (value.function, value.args, value.results)
        if key not in self.called:
            kinds = [(dtype, shape_at(shape, self.sizes)) for dtype, shape in value.results]
            given = self.graph.functions[value.function]
            orders = getattr(given, "orders", None) or ()  # of those that come from traces
            orders = orders if len(orders) == len(kinds) else (None,) * len(kinds)
            wanted = tuple(phantom(shape, kind.numpy, axes) for (kind, shape), axes in zip(kinds, orders, strict=True))
            function = CheckedFunction(self.graph.name, value.function, given, wanted)
            args = self._operands(value.args)
            call = LibraryFunction(
                function,
                value.function,
                tuple(range(len(args))),
                (),
                True,
                lambda _: wanted,
                takes_out=False,
                follows=False,
            )
            self.called[key] = call(*args)
        return self.called[key]

    def _viewed(self, value: ArrayValue, step: Step) -> ArrayValue:
        return tracer.viewed(self.trace, value, step)

    def _mapped(self, op: str, args: Sequence[ArrayValue], dtype: DType) -> ArrayValue:
        """An op applied as the op table defines it; narrow floats are rounded after each."""
        args = self.trace.ready(args)
        if op == "convert":
            return self.trace.adapted(args[0], dtype)
        exprs = [each.expr for each in args]
        if op == "bitcast":
            found = widened(apply("bitcast", convert(exprs[0], args[0].dtype), target=dtype), dtype)
        else:
            found = rounded_to(apply(op, *exprs), dtype)
        return self.trace.combined(Scalar(dtype, found), args)

    def _folded(self, op: str, value: ArrayValue, axes: tuple[int, ...], dtype: DType) -> ArrayValue:
        is_empty = any(value.shape[axis] == 0 for axis in axes)
        if is_empty and op not in IDENTITIES:
            what = f"a fold by '{op}' of no elements: {list(value.shape)} along {list(axes)}"
            raise GraphShapes(what, "only add, multiply and bitwise ops have a value for none").at()
        if op == SPREAD:
            return graph_elements.spread(self.trace, value, axes, dtype)
        identity = constant(IDENTITIES[op], dtype) if op in IDENTITIES else None
        return reducing.totals(self.trace, op, value, axes, dtype, identity)

    def _index(self, shape: Extents, part: Any) -> Indexed:
        """A slice in this call. Raises GraphShapes if it does not stay within the array."""
        found = []
        for axis, (extent, *given) in enumerate(zip(shape, *part, strict=True)):
            whole, start, step, count = (at(each, self.sizes) for each in (extent, *given))
            last = start + (count - 1) * step
            if count < 0 or (count > 0 and not (0 <= start < whole and 0 <= last < whole)):
                what = f"a slice of {count} elements from {start} by {step} of axis {axis}, which has {whole}"
                raise GraphShapes(what, f"sizes are {self.sizes}").at()
            stop = start + count * step
            found.append(slice(start, None if stop < 0 else stop, step) if count else slice(0, 0))
        plain = [_as_slice(*each) for each in zip(shape, *part, strict=True)]
        self.trace.has_looked |= None in plain
        return Indexed(tuple(own if each is None else each for each, own in zip(plain, found, strict=True)) or (...,))


def _as_slice(extent: Size, start: Size, step: int, count: Size) -> slice | None:
    """A slice that takes the same of an axis of every extent; None if it is known for one extent alone."""
    if step == 1 and isinstance(start, int):
        rest = extent - start - count
        return slice(start or None, -rest or None) if isinstance(rest, int) and start >= 0 and rest >= 0 else None
    if (step, start, count) == (-1, extent - 1, extent):
        return slice(None, None, -1)
    is_all = step > 1 and start == 0 and count == (extent + step - 1) // step
    return slice(None, None, step) if is_all else None


def _ones(function: Callable[..., Any], shape: Extents) -> ViewOf:
    """The view that takes away, or puts in, the axes of one element of a shape."""
    return ViewOf(function, (tuple(axis for axis, extent in enumerate(shape) if extent == 1),))


@dataclass(frozen=True)
class CheckedFunction:
    """A function of the user's, whose results must be as declared."""

    graph: str
    name: str
    function: Callable[..., Any]
    wanted: tuple[Array, ...]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """The results. Raises GraphArguments for others."""
        found = self.function(*args)
        results = found if isinstance(found, (tuple, list)) else (found,)
        if len(results) != len(self.wanted):
            what = f"function '{self.name}' of graph '{self.graph}' gave {counted(len(results), 'result')}"
            raise GraphArguments(what, f"it is declared with {len(self.wanted)}").at()
        for each, wanted in zip(map(np.asarray, results), self.wanted, strict=True):
            if each.shape != wanted.shape or each.dtype != wanted.dtype:
                what = f"function '{self.name}' of graph '{self.graph}' gave {each.dtype}{list(each.shape)}"
                raise GraphArguments(what, f"it is declared with {wanted.dtype}{list(wanted.shape)}").at()
        return tuple(results)


def bound(graph: ArrayGraph, shapes: Sequence[Shape]) -> dict[str, int]:
    """The sizes by name. Raises GraphArguments for shapes that are not as declared."""
    sizes: dict[str, int] = {}
    pairs = list[tuple[Size, int]]()
    for declared, shape in zip(graph.inputs, shapes, strict=True):
        if len(shape) != len(declared.shape):
            raise _unlike(graph, declared, shape)
        pairs += zip(declared.shape, shape, strict=True)
    pairs = [each for each in pairs if names_of(each[0])]
    pairs.sort(key=lambda each: not str(each[0]).isidentifier())  # names by themselves come first
    for _ in pairs:
        for extent, given in pairs:
            sizes.update(solved(extent, given, sizes))
        if all(names_of(extent) <= sizes.keys() for extent, _ in pairs):
            break
    for declared, shape in zip(graph.inputs, shapes, strict=True):
        is_known = all(names_of(each) <= sizes.keys() for each in declared.shape)
        if not is_known or tuple(at(each, sizes) for each in declared.shape) != shape:
            raise _unlike(graph, declared, shape, sizes)
    return sizes


def _unlike(graph: ArrayGraph, declared: ArrayInput, shape: Shape, sizes: Mapping[str, int] | None = None) -> Exception:
    wanted = ", ".join(map(str, declared.shape))
    names = sorted(frozenset().union(*map(names_of, declared.shape)))
    found = [f"{name} is {sizes[name]}" for name in names if sizes and name in sizes]
    known = f", where {' and '.join(found)}" if found else ""
    what = f"input '{declared.name}' of graph '{graph.name}' has shape [{wanted}]{known}; given {list(shape)}"
    return GraphArguments(what, "pass an array of that shape").at()


def _kind(array: Tracer) -> DType:
    """The row of an array's dtype."""
    from fusec.fusion.trace.elementwise import known_dtype

    return known_dtype(array.dtype)
