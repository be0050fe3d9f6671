"""Traces as graphs of arrays: what users save, look at, or hand to another backend; the inverse of `graph_calls`.

A trace changes memory, a graph has values. So every buffer of the trace has a node for each version of its contents: a
statement that writes part of a buffer makes a new value of all of it, and a view of a buffer is a view of a value.
Extents are names as long as the trace depends on none, else the integers of the traced call.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import BOOL, FLOAT64, INT64, STORAGE_FLOATS, UINT8, DType
from fusec.base.records import dataclass
from fusec.errors import FusecError
from fusec.errors.graphs import GraphBroken, GraphShapes
from fusec.frontends.python.types import PYTHON_TYPES, storage
from fusec.fusion.arguments import pattern_of
from fusec.fusion.functions.composing import _run, _run_plainly
from fusec.fusion.functions.gathering import CHECK_OF_INDICES
from fusec.fusion.functions.libraries import Place, _called_plainly
from fusec.fusion.functions.scans import SCANS
from fusec.fusion.graphs.graph_libraries import NumpyCalls, is_product, open_shapes, text_of
from fusec.fusion.graphs.graph_views import ArrayStep, view_of
from fusec.fusion.outside import constants
from fusec.fusion.outside.reads import title_of
from fusec.fusion.trace import trace_values as t
from fusec.fusion.trace.conditions import ANYWHERE
from fusec.fusion.trace.numbers import Computed, Source, plain
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.tracer import Tracer
from fusec.graphs import nodes, rules
from fusec.graphs.building import Graph
from fusec.graphs.extents import Shape, Size, at, product, size
from fusec.ir.expr import Apply, Const, Expr, Lookup, const, scalar_type
from fusec.ir.graph import Input, Neighbour, Position, Taken, Within
from fusec.library import cumulative

if TYPE_CHECKING:
    from fusec.fusion.running import TracedRun

SIZES = "nmklpqrs"  # names of extents, in the order in which inputs have them
EXACT: dict[Callable[..., Any], str] = {
    operator.add: "add", operator.sub: "subtract", operator.mul: "multiply", operator.truediv: "divide",
    operator.neg: "negative",
}  # fmt: skip
"""Arithmetic of Python's floats that float64 has with the same bits."""

Frame = tuple[int, ...]
"""The shape in which an expression is computed."""


def graph_of(run: TracedRun) -> Graph:
    """What a function does, as a graph. Raises GraphBroken for what graphs have no nodes for."""
    result, problem = run.ran()
    stored = run.recording.stored(run.function)
    run.recording.restore()
    if problem is not None:
        raise problem
    if stored:
        what = f"fused function '{run.trace.name}' assigns {stored[0].name!r}, which is outside of it"
        raise GraphBroken(what, "return the value instead: a graph has inputs and outputs").at()
    run.trace.finish()
    writes = [each.buffer.place for each in run.trace.written if each.buffer is not None]
    if pattern_of([*map(run.found.outline, run.flat)], writes) is not None:
        what = f"arguments of '{run.trace.name}' share memory that it writes"
        raise GraphBroken(what, "pass arrays that do not overlap: a graph has values, and no memory").at()
    outputs = _Outputs()
    outputs.collect(result, "")
    read = [(name, each._read() if isinstance(each, Tracer) else each) for name, each in outputs.found]
    run.trace.finish()
    try:
        if not _is_open(run):
            raise _IrregularError
        return _open_graph(run, read)
    except _IrregularError:
        return TracedGraph(run, is_open=False).made(read)


def _open_graph(run: TracedRun, read: Sequence[tuple[str, Any]]) -> Graph:
    """The graph with names for extents. Raises _IrregularError if its shapes need others than those of inputs."""
    try:
        return TracedGraph(run, is_open=True).made(read)
    except FusecError as problem:
        if isinstance(problem.error, GraphShapes):
            raise _IrregularError from None
        raise


class _IrregularError(Exception):
    """Extents that no names express."""


def _is_open(run: TracedRun) -> bool:
    """Whether a trace depends on no extents."""
    trace = run.trace
    calls = [each for each in trace.statements if isinstance(each, t.LibraryCall)]
    looks = trace.has_looked or bool(trace.conditions) or trace.extents.is_asked
    if looks or not all(is_product(each) or each.again is not None for each in calls):
        return False
    exprs = [each.value.expr for each in trace.statements if not isinstance(each, t.LibraryCall)]
    return all(size_of(expr).kinds <= ANYWHERE for expr in exprs)


@dataclass(frozen=True)
class OpaqueFunction:
    """A call of a library as a function of arrays. orders: in which its results lie in memory, axes outermost first."""

    function: Callable[..., tuple[Any, ...]]
    numbers: tuple[bool | None, ...]  # operands that are numbers: whether they are Python's
    orders: tuple[tuple[int, ...], ...]

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Its results."""
        given = [
            each if is_python is None else each.item() if is_python else each[()]
            for each, is_python in zip(args, self.numbers, strict=True)
        ]
        return self.function(*given)


class _Outputs:
    """Collects what a function returns, with names."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []

    def collect(self, given: Any, name: str) -> None:
        """Take a result, or all parts of it. Raises GraphBroken for what is no array."""
        given = plain(given)
        if type(given) in (tuple, list) or constants.is_named_tuple(given):
            names = getattr(given, "_fields", range(len(given)))
            for key, each in zip(names, given, strict=True):
                self.collect(each, f"{name}_{key}" if name else key if isinstance(key, str) else f"output{key}")
        elif type(given) in constants.DICTS:
            for key, each in given.items():
                self.collect(each, f"{name}_{key}" if name else str(key))
        elif isinstance(given, (Tracer, np.ndarray, np.generic, bool, int, float, complex)):
            self.found.append((name or "output", given))
        elif given is not None:
            what = f"a graph cannot return a value of type {type(given).__name__}"
            raise GraphBroken(what, "return arrays and numbers, and tuples, lists and dictionaries of them").at()


def identifiers(given: Sequence[str]) -> list[str]:
    """Names of inputs or outputs, each an identifier and none twice."""
    plainer = [re.sub(r"\W+", "_", each, flags=re.ASCII).strip("_") or "x" for each in given]
    plainer = [each if each.isidentifier() else f"x{each}" for each in plainer]
    times = Counter(plainer)
    taken, found = set(times), list[str]()
    for name in plainer:
        number = 0
        new = name
        while times[name] > 1 and (new in taken or new in found):
            new, number = f"{name}_{number}", number + 1
        found.append(new)
    return found


class TracedGraph:
    """Makes the graph of one trace. is_open: extents have names."""

    def __init__(self, run: TracedRun, is_open: bool) -> None:
        self.run, self.trace, self.is_open = run, run.trace, is_open
        self.sizes: dict[int, Size] = {0: 0, 1: 1}
        self.known: dict[str, int] = {}  # sizes by name in this call
        self.contents: dict[tuple[t.Buffer, int], Expr] = {}
        self.leaves: dict[Input, Expr] = {}
        self.values: dict[tuple[Expr, Frame], Expr] = {}
        self.numbers: dict[int, nodes.ArrayInput] = {}
        self.computed: dict[int, Expr] = {}
        self.functions: dict[str, Callable[..., object]] = {}

    def made(self, results: Sequence[tuple[str, Any]]) -> Graph:
        """The graph. results: with names."""
        inputs = self._inputs()
        for statement in self.trace.statements:
            self._run(statement)
        written = [each.buffer for each in self.trace.written if each.buffer is not None]
        outputs = []
        for buffer in sorted(dict.fromkeys(written), key=attrgetter("place")):
            name = next(each.name for each in inputs if each is self.contents[buffer, 0])
            outputs.append((name, self.contents[buffer, self.trace.version(buffer)]))
        returned = [(name, self._result(each)) for name, each in results]
        names = identifiers([*(name for name, _ in outputs), *(name for name, _ in returned)])
        outputs = list(zip(names, (each for _, each in [*outputs, *returned]), strict=True))
        if not outputs:
            what = f"fused function '{self.trace.name}' returns no arrays, and writes none"
            raise GraphBroken(what, "a graph has outputs").at()
        return Graph.of(nodes.ArrayGraph(self.trace.name, tuple(inputs), tuple(outputs), self.functions))

    def _inputs(self) -> list[nodes.ArrayInput]:
        """An input for each array and number of the call, those from outside last."""
        run, found = self.run, []
        titles = map(title_of, run.recording.paths)
        names = identifiers([name for name, _ in zip([*run.found.names(), *titles], run.flat, strict=False)])
        written = {each.buffer for each in self.trace.written}
        for place, name in enumerate(names):
            if place in run.arguments:
                tracer = run.arguments[place]
                shape = tuple(map(self._size, map(int, tracer._seen.shape)))
                buffer = tracer._memory.buffer
                assert buffer is not None, "arguments have memory"
                if (buffer, 0) in self.contents:
                    continue
                made = nodes.ArrayInput(name, buffer.dtype, shape, buffer in written)
                self.contents[buffer, 0] = made
            else:
                dtype = None if place in run.values else self._uses(place)
                if dtype is None:  # it is part of the trace
                    continue
                made = self.numbers[place] = nodes.ArrayInput(name, dtype, (), False)
            found.append(made)
        return found

    def _uses(self, place: int) -> DType | None:
        """The dtype in which kernels take a number: its own if they do not agree; None if it is none."""
        if not constants.is_number(self.run.flat[place]):
            return None
        taken = {leaf.input.type for leaf in self.trace.leaves.values() if leaf.number == ("argument", place)}
        own = storage(self.run._kind(self.run.flat[place]))
        is_computed = any(place in each.arguments for each in self.trace.numbers.values())
        return taken.pop() if len(taken) == 1 and not is_computed else own

    def _size(self, extent: int) -> Size:
        """The extent of an input: a name for all that are equal."""
        if not self.is_open:
            return extent
        if extent not in self.sizes:
            at_hand = len(self.sizes) - 2
            name = SIZES[at_hand] if at_hand < len(SIZES) else f"n{at_hand}"
            self.sizes[extent], self.known[name] = size(name), extent
        return self.sizes[extent]

    # --- statements ----------------------------------------------------------------------------------------------

    def _run(self, statement: t.Statement) -> None:
        """Make the values of what a statement writes."""
        if isinstance(statement, t.LibraryCall):
            self._call(statement)
            return
        buffer, value = statement.buffer, statement.value
        found = self._value(value)
        if isinstance(statement, t.Write):
            before = (buffer, statement.version - 1)
            if before not in self.contents:  # a temporary that is written in pieces
                self.contents[before] = self._full(const(0, buffer.dtype), buffer.phantom.shape)
            whole = self.contents[before]
            made = self._written(whole, buffer.phantom, statement.steps, _stored(found, buffer.dtype))
            self.contents[buffer, statement.version] = made
            return
        if isinstance(statement, t.Total):
            found = self._full(found, value.shape)
            found = rules.folded(statement.op, found, statement.axes)
        self.contents[buffer, 0] = self._full(_stored(found, buffer.dtype), buffer.phantom.shape)

    def _full(self, node: Expr, shape: Frame) -> Expr:
        """A value in a shape that it broadcasts to."""
        own = tuple(at(each, self.known) for each in nodes.shape_of(node))
        if own == shape:
            return node
        if self.is_open and any(each not in self.sizes for each in shape):
            raise _IrregularError
        return rules.broadcast(node, tuple(self.sizes[each] if self.is_open else each for each in shape))

    def _written(self, whole: Expr, array: t.Array, steps: Sequence[t.Step], part: Expr) -> Expr:
        """All of an array of which a view has another value."""
        if not steps:
            return self._full(part, array.shape)
        step, seen = self._step(array, steps[0])
        inner = self._written(step.seen(whole), seen, steps[1:], part)
        return step.put_back(whole, inner)

    def _step(self, array: t.Array, step: t.Step) -> tuple[ArrayStep, t.Array]:
        """One step from an array to a view of it, which graphs have a node for, and the view."""
        seen = step(array)
        found = view_of(array, seen, step, self.is_open)
        if found is None:
            raise _IrregularError
        return found, seen

    def _call(self, call: t.LibraryCall) -> None:
        """The results of a function that the graph does not look into; a check of indices is a node of its own."""
        operands = [self.trace.leaves[each] for each in call.operands]
        args = [self._leaf(each) for each in operands]
        if call.name == CHECK_OF_INDICES:
            (leaf, count), (arg, _), (axis,) = operands, args, call.function.args  # type: ignore[attr-defined]
            _, extent = count.number  # type: ignore[misc]
            checked = self.leaves[leaf.input] = rules.bounded(arg, extent, axis)
            if leaf.buffer is not None and leaf.geometry == leaf.buffer.geometry:
                self.contents[leaf.buffer, leaf.version] = checked
            return
        scan = _scan_of(call, args)
        if scan is not None:
            self.contents[call.buffers[0], 0] = scan
            return
        if is_product(call) and {scalar_type(each) for each in args} == {call.buffers[0].dtype}:
            self.contents[call.buffers[0], 0] = rules.multiplied(*args)
            return
        shapes: list[Shape] | None = [each.phantom.shape for each in call.buffers]
        if self.is_open:
            shapes = open_shapes(call, [each.phantom for each in operands], list(map(nodes.shape_of, args)), self.known)
        if shapes is None:
            raise _IrregularError
        numbers = tuple(None if leaf.buffer is not None else self._is_python(leaf) for leaf in operands)
        orders = tuple(t.outermost_first(each.phantom) for each in call.buffers)
        name = text_of(call.function, numbers, orders)
        if name:
            self.functions.update({name: NumpyCalls()[name]})
        else:
            (name,) = identifiers([call.name])
            name = f"{name}_{len(self.functions)}" if name in self.functions else name
            self.functions[name] = OpaqueFunction(call.function, numbers, orders)
        kinds = [(each.dtype, tuple(shape)) for each, shape in zip(call.buffers, shapes, strict=True)]
        for buffer, made in zip(call.buffers, rules.called(name, args, kinds), strict=True):
            self.contents[buffer, 0] = made

    def _is_python(self, leaf: t.Leaf) -> bool:
        assert leaf.number is not None, "a number"
        which, found = leaf.number
        return which != "argument" or not isinstance(self.run.flat[found], np.generic)

    # --- values --------------------------------------------------------------------------------------------------

    def _result(self, given: Any) -> Expr:
        """What the function returns, as its dtype holds it."""
        if isinstance(given, t.ArrayValue):
            return self._full(_stored(self._value(given), given.dtype), given.shape)
        array = np.asarray(given)
        dtype = dtypes.from_numpy(array.dtype)
        if dtype is None:
            raise GraphBroken(f"a graph cannot return an array of {array.dtype}", "convert it").at()
        return self._array(array, dtype)

    def _array(self, array: Any, dtype: DType) -> Expr:
        """An array of constants."""
        if not array.size or not array.ndim:
            return self._full(const(array[()] if array.size else 0, dtype), array.shape)
        return rules.literal_of(np.ascontiguousarray(array).tobytes(), dtype, array.shape)

    def _leaf(self, leaf: t.Leaf) -> Expr:
        """What is read, as a value."""
        found = self.leaves.get(leaf.input)
        if found is None:
            found = self._number(leaf) if leaf.buffer is None else self._view(leaf, leaf.buffer)
            self.leaves[leaf.input] = found
        return found

    def _view(self, leaf: t.Leaf, buffer: t.Buffer) -> Expr:
        if buffer.kind == "constant" and (buffer, 0) not in self.contents:
            assert buffer.array is not None, "a constant"
            self.contents[buffer, 0] = self._array(buffer.array, buffer.dtype)
        found, array = self.contents[buffer, leaf.version], buffer.phantom
        for each in leaf.steps:
            step, array = self._step(array, each)
            found = step.seen(found)
        return found

    def _number(self, leaf: t.Leaf) -> Expr:
        """A number that is passed, known, or computed by Python."""
        assert leaf.number is not None, "an array or a number"
        if self.is_open and leaf.input in self.trace.counts:
            leaves, axes = self.trace.counts[leaf.input]
            shape = rules.common_shape([nodes.shape_of(self._leaf(each)) for each in leaves])
            count = product([shape[axis] for axis in axes])
            return rules.converted(rules.number_of(count), leaf.input.type)
        return rules.converted(self._source(leaf.number), leaf.input.type)

    def _source(self, number: Source) -> Expr:
        which, found = number
        if which == "argument":
            return self.numbers[found]
        if which == "known":
            if isinstance(found, int) and not isinstance(found, bool) and found >= 0 and found < 1 << 63:
                return rules.number_of(found)
            return const(found, storage(_kind_of(found)))
        if found not in self.computed:
            self.computed[found] = self._computed(found)
        return self.computed[found]

    def _computed(self, place: int) -> Expr:
        """A number that Python computes, as the result of a function."""
        given = self.trace.numbers[place]
        op = self._float_op(given)
        if op:
            return rules.mapped(op, [self._as_float(each) for each in given.operands])
        args = [self._source(each) for each in given.operands]
        name = f"python_{place}"
        self.functions[name] = OpaqueFunction(partial(_called_plainly, given.function), (True,) * len(args), ((),))
        return rules.called(name, args, [(storage(_kind_of(given.value)), ())])[0]

    def _float_op(self, given: Computed) -> str:
        """The op that gives the bits and the errors of Python's arithmetic of floats; "" if there is none."""
        kinds = [type(self.trace._number_at(each)) for each in given.operands]
        if float not in kinds or type(given.value) is not float:
            return ""
        which, by = given.operands[-1]
        is_safe = given.function is not operator.truediv or (which == "known" and by != 0)
        return EXACT.get(given.function, "") if is_safe else ""

    def _as_float(self, number: Source) -> Expr:
        """An operand of Python's arithmetic of floats."""
        which, found = number
        return const(float(found), FLOAT64) if which == "known" else rules.converted(self._source(number), FLOAT64)

    def _value(self, value: t.ArrayValue) -> Expr:
        """A value of the trace."""
        return self._expr(value.expr, value.shape)

    def _expr(self, root: Expr, frame: Frame) -> Expr:
        """An expression that is computed for each element of a shape."""
        pending = [root]
        while pending:
            expr = pending[-1]
            below = [] if isinstance(expr, Taken) else [
                each for each in expr.children if (each, frame) not in self.values]  # fmt: skip
            if not below:
                if (expr, frame) not in self.values:
                    self.values[expr, frame] = self._made(expr, frame)
                pending.pop()
            pending += below
        return self.values[root, frame]

    def _made(self, expr: Expr, frame: Frame) -> Expr:
        """A part of an expression, whose operands are known."""
        args = [] if isinstance(expr, Taken) else [self.values[each, frame] for each in expr.children]
        match expr:
            case Const():
                return expr
            case Input():
                return self._leaf(self.trace.leaves[expr])
            case Apply(op):
                return rules.mapped(op, args, expr.type if op in ("convert", "bitcast") else None)
            case Position(axis):
                return rules.positions(axis, (1,) * (len(frame) + axis) + (frame[axis],) + (1,) * (-axis - 1))
            case Lookup(entries):
                table = rules.literal(entries, (len(entries),))
                index = rules.converted(args[-1], INT64)
                return rules.taken(table, [index], nodes.shape_of(index), const(0, expr.type))
            case Taken(array, outside, index):
                return self._taken(expr, array, outside, index)
        raise GraphBroken(f"graphs have no node for {type(expr).__name__}", "leave this part out").at()

    def _taken(self, expr: Taken, array: Expr, outside: Expr, index: Sequence[Expr]) -> Expr:
        frame = tuple(map(int, expr.shape))
        assert isinstance(array, Input), "elements of what some memory holds"
        whole = self._leaf(self.trace.leaves[array])
        places: list[Expr] = []
        for each in index:
            if isinstance(each, Neighbour):
                places.append(rules.near(len(frame) + each.axis, each.offset, each.mode))
            elif isinstance(each, Within):
                places.append(rules.inside(self._expr(each.index, frame)))
            else:
                places.append(self._expr(each, frame))
        return rules.taken(whole, places, frame, self._expr(outside, ()))


def _scan_of(call: t.LibraryCall, args: Sequence[Expr]) -> Expr | None:
    """A scan, as a node of its own; None for other calls, and for scans in another dtype than their operand's."""
    if not isinstance(call.function, partial) or call.function.func not in (_run, _run_plainly):
        return None
    asked, *others = call.function.args
    is_run = call.function.func is _run
    function, rest, options = (asked.function, asked.args[1:], asked.options) if is_run else (asked, *others)
    ops = [op for op, name in SCANS.items() if function is getattr(cumulative, name)]
    if isinstance(options.get("out"), Place) and len(args) == 2 and scalar_type(args[0]) == call.buffers[0].dtype:
        args, options = args[:1], {name: each for name, each in options.items() if name != "out"}
    if not ops or rest or len(args) != 1 or not options.keys() <= {"axis", "dtype"} or len(call.buffers) != 1:
        return None
    (value,), (buffer,) = args, call.buffers
    if scalar_type(value) != buffer.dtype and scalar_type(value).kind in ("float", "complex"):
        return None
    axis = options.get("axis")
    value = rules.reshaped(value, (-1,)) if axis is None else value
    value = rules.converted(value, UINT8 if buffer.dtype == BOOL else buffer.dtype)
    return rules.converted(rules.accumulated(ops[0], value, 0 if axis is None else axis), buffer.dtype)


def _stored(value: Expr, dtype: DType) -> Expr:
    """A value in a dtype that holds it; narrow floats are computed in wider ones."""
    if isinstance(value, nodes.Map) and value.op == "convert" and dtype in STORAGE_FLOATS:
        (inner,) = value.args
        if scalar_type(inner) == dtype:
            return inner
    return rules.converted(value, dtype)


def _kind_of(number: Any) -> Any:
    """The type of a number."""
    found = PYTHON_TYPES.get(type(number))
    return dtypes.from_numpy(np.asarray(number).dtype) if found is None else found
