"""A plan: the kernels of one trace in order, the sources of their arrays, and the results of the call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.operands import memory_order
from fusec.base import locks
from fusec.base.records import dataclass, replace
from fusec.dispatch.axis_spec import Along
from fusec.dispatch.fast_path_host import Entries
from fusec.dispatch.plan import ElementwiseCall
from fusec.dispatch.plan import Plan as KernelPlan
from fusec.dispatch.planned import Planned
from fusec.dispatch.planned_axis import AxisKernel
from fusec.errors import FusecError
from fusec.errors.reductions import RowsTooLong
from fusec.fusion import numbers
from fusec.fusion.groups import Group
from fusec.fusion.numbers import Fetch
from fusec.fusion.schedule import schedule
from fusec.fusion.trace import Trace
from fusec.fusion.trace_values import Array, Buffer, Leaf, Statement, Write, leaves_of, outermost_first, replaced
from fusec.ir.expr import Expr
from fusec.ir.graph import Graph, Input, TotalInput
from fusec.ir.text import print_graph
from fusec.kinds.reduction import Phase
from fusec.library.arguments import totals
from fusec.library.graph_kernel import GraphKernel
from fusec.library.graph_sources import ElementwiseSource, ReducingSource, signature_of

Shape = tuple[int, ...]


class MapKernel(Planned):
    """A graph without reductions, as a function of arrays; returns its output, or a tuple of several."""

    def __init__(self, source: ElementwiseSource) -> None:
        super().__init__(source, signature_of(source))
        self.source_graph = source
        self._entries = Entries(self._from_python)
        self._fast: Callable[..., Any] = self._from_python

    def __call__(self, *args: object) -> Any:
        """The output, or a tuple of several."""
        return self._fast(*args)

    def _from_python(self, *args: object) -> object:
        found = self.run(args)
        return found[0] if self.nout == 1 else found

    def hasten(self, plan: KernelPlan, call: ElementwiseCall, again: bool) -> None:
        """Install a native entry once a kind of call has come twice."""
        self._fast = self._entries.after(self, plan, call, again) or self._fast


_map_kernel = lru_cache(maxsize=512)(MapKernel)


@lru_cache(maxsize=512)
def _reducing(source: ReducingSource, scalars: frozenset[str]) -> AxisKernel:
    return GraphKernel(source.graph).whole(scalars)


@dataclass(eq=False)
class KernelStep:
    """One kernel with its operands."""

    group: Group
    kernel: MapKernel | AxisKernel
    leaves: list[Leaf]
    inputs: tuple[Fetch, ...]
    stores: tuple[Fetch, ...]  # what each output is written to; empty if the kernel makes its outputs itself
    makes: tuple[tuple[int, ...], tuple[Shape | None, ...]]  # where those are kept, and in which shapes
    written: tuple[Array, ...]

    def run(self, args: Sequence[Any], held: list[Any]) -> None:
        """Run on the arguments of a call and the buffers of the plan."""
        pick = self.pick
        inputs = tuple([fetch(args, held) for fetch in self.inputs]) if pick is None else pick(args)
        if self.stores:
            outputs = tuple([fetch(args, held) for fetch in self.stores])
            self.check(outputs)
            if isinstance(self.kernel, MapKernel):
                self.kernel(*inputs, *outputs)
            else:
                self.kernel.run(inputs, outputs, Along(self.axis, keepdims=True))
            return
        kernel, (places, shapes) = self.kernel, self.makes
        found = kernel(*inputs) if isinstance(kernel, MapKernel) else totals(kernel, inputs, None, self.axis, True)
        results = (found,) if len(places) == 1 else found
        self.check(results)
        for place, shape, each in zip(places, shapes, results, strict=True):
            held[place] = each if shape is None else each.reshape(shape)

    def without_fast_path(self) -> KernelStep:
        """The same step, whose kernel comes to Python at every call."""
        return replace(self, kernel=MapKernel(self.kernel.source_graph)) if isinstance(self.kernel, MapKernel) else self

    def named(self, error: FusecError, names: Sequence[str]) -> FusecError:
        """A kernel's error for a number, with the function's parameter instead of the kernel's."""
        numbers = [leaf.number for leaf in self.leaves if leaf.buffer is None]
        param = getattr(error.error, "param", "")
        given = numbers[int(param[1:])] if param[:1] == "s" and param[1:].isdigit() else None
        if given is None or not isinstance(given[1], int) or given[0] != "argument":
            return error
        return type(error.error)(**vars(error.error) | {"param": names[given[1]]}).at(error.span)

    def check(self, outputs: Sequence[Any]) -> None:
        """Outputs have the size that the plan states, which their readers rely on. Kernels check strides themselves."""
        for found, wanted in zip(outputs, self.written, strict=True):
            assert found.size == wanted.size, "a kernel has outputs as large as its plan"
            assert found.dtype == wanted.dtype, "a kernel has outputs of the dtypes of its plan"

    @cached_property
    def places(self) -> tuple[int, ...] | None:
        """The arguments that are the inputs unchanged; None if there are other inputs."""
        found = [_place(leaf, self.group) for leaf in self.leaves]
        known = [each for each in found if each is not None]
        return tuple(known) if len(known) == len(found) else None

    @cached_property
    def pick(self) -> Callable[[Sequence[Any]], tuple[Any, ...]] | None:
        """A function from the arguments of a call to the inputs, if these are among them."""
        return numbers.picking(self.places) if self.places else None

    def phases(self) -> Sequence[Phase]:
        """The kernels of a reduction in order; none for an element-wise step."""
        if isinstance(self.kernel, MapKernel):
            return ()
        bound, _ = self.kernel.planned(tuple(map(self._example, self.leaves)), Along(self.group.axes, keepdims=True))
        return tuple(each for each in bound.launches if isinstance(each, Phase))

    def _example(self, leaf: Leaf) -> Any:
        """What a kernel reads, but for its content."""
        if leaf.buffer is None:
            return 1 if leaf.phantom.dtype.kind in "biu" else 1.0
        if self.group.axes is None or leaf.phantom.shape == self.group.shape or isinstance(leaf.input, TotalInput):
            return leaf.phantom
        return np.broadcast_to(leaf.phantom, self.group.shape)

    def is_plain(self, count: int) -> bool:
        """Whether the inputs are exactly the arguments of a call."""
        return self.places == tuple(range(count))

    @cached_property
    def axis(self) -> int | tuple[int, ...] | None:
        """The reduced axes in the shortest form for a call."""
        axes = self.group.axes or ()
        if len(axes) == len(self.group.shape):
            return None
        return axes[0] if len(axes) == 1 else axes


def _place(leaf: Leaf, group: Group) -> int | None:
    """The argument that a leaf is, if it is read as it is."""
    if leaf.number is not None:
        which, place = leaf.number
        return place if which == "argument" and isinstance(place, int) else None
    buffer = leaf.buffer
    if buffer is None or buffer.kind != "argument" or leaf.steps:
        return None
    return buffer.place if group.axes is None or leaf.phantom.shape == group.shape else None


class PlanBuilder:
    """Makes the plan of a trace."""

    def __init__(self, trace: Trace, needed: Sequence[Buffer]) -> None:
        self.trace, self.needed = trace, needed
        self.unstaged: dict[object, str] = {}

    @locks.fork_safe
    def steps(self) -> list[KernelStep]:
        """The kernels in order; rows that do not fit a chunk are walked once."""
        while True:
            groups = schedule(self.trace, self.needed, self.unstaged)
            found = [self._step(at, group, groups) for at, group in enumerate(groups)]
            long = next((step for step in found if not self._fits(step)), None)
            if long is None:
                return found
            self.unstaged[long.group.shape, long.group.axes] = ""

    def size(self) -> int:
        """How many places a call needs for numbers and buffers, once the kernels are known."""
        buffers = [each.buffer for each in self.trace.statements]
        places = [each.place for each in buffers if each.kind == "temporary"]
        return 1 + max((*self.trace.numbers, *places), default=-1)

    def _fits(self, step: KernelStep) -> bool:
        """Whether every row of a staged kernel is one chunk."""
        if isinstance(step.kernel, MapKernel) or not step.group.is_staged:
            return True
        try:
            step.phases()
        except FusecError as error:
            if isinstance(error.error, RowsTooLong):
                return False
            raise
        return True

    # --- one kernel ----------------------------------------------------------------------------------------------

    def _leaf(self, name: Input, group: Group) -> Leaf:
        """What an input of a kernel's expressions stands for."""
        return group.beside.get(name) or self.trace.leaves[name]

    def _leaves(self, group: Group) -> list[Leaf]:
        """What a kernel reads, in order."""
        found: dict[Input, Leaf] = {}
        for statement in group.statements:
            for each in leaves_of(group.exprs[statement]):
                found[each] = self._leaf(each, group)
        return list(found.values())

    def _step(self, at: int, group: Group, groups: Sequence[Group]) -> KernelStep:
        elsewhere = {
            leaf.buffer for number, other in enumerate(groups) if number != at for leaf in self._leaves(other)
        } | set(self.needed)
        elsewhere |= {each.buffer for other in groups for each in other.statements if isinstance(each, Write)}
        stored = [each for each in group.statements if isinstance(each, Write) or each.buffer in elsewhere]
        exprs = [group.exprs[each] for each in stored]
        leaves = [self._leaf(each, group) for each in dict.fromkeys(name for expr in exprs for name in leaves_of(expr))]
        known: dict[Expr, Expr] = {}
        arrays = numbers = 0
        inputs = []
        for leaf in leaves:
            if leaf.buffer is None:
                name, numbers = f"s{numbers}", numbers + 1
            else:
                name, arrays = f"a{arrays}", arrays + 1
            known[leaf.input] = type(leaf.input)(name, leaf.input.type)
            inputs.append(known[leaf.input])
        outputs = tuple((f"z{number}", replaced(expr, known)) for number, expr in enumerate(exprs))
        graph = Graph(self.trace.name, tuple(inputs), outputs)  # type: ignore[arg-type]
        text = print_graph(graph)
        kernel: MapKernel | AxisKernel
        if group.axes is None:
            kernel = _map_kernel(ElementwiseSource(text, graph))
        else:
            kernel = _reducing(ReducingSource(text, graph), frozenset(f"s{number}" for number in range(numbers)))
        fetches = tuple(self._fetch(leaf, group) for leaf in leaves)
        written = tuple(each.phantom if isinstance(each, Write) else each.buffer.phantom for each in stored)
        if self._makes_outputs(stored, leaves, group):
            shapes = tuple(
                None if self._made(each, group) == each.buffer.phantom.shape else each.buffer.phantom.shape
                for each in stored
            )
            makes = (tuple(each.buffer.place for each in stored), shapes)
            return KernelStep(group, kernel, leaves, fetches, (), makes, written)
        targets = tuple(self._target(each, group) for each in stored)
        return KernelStep(group, kernel, leaves, fetches, targets, ((), ()), written)

    def _made(self, statement: Statement, group: Group) -> Shape:
        """The shape in which a kernel makes an output."""
        return group.kept if group.axes is not None and group.kinds[statement] == "totals" else group.shape

    def _makes_outputs(self, stored: Sequence[Any], leaves: Sequence[Leaf], group: Group) -> bool:
        """Whether a kernel left to itself makes its outputs as NumPy would lay them out."""
        if any(isinstance(each, Write) for each in stored):
            return False
        if group.axes is not None:
            return all(each.buffer.phantom.flags.c_contiguous for each in stored)
        views = [
            layouts.View(0, leaf.phantom.shape, leaf.phantom.strides, leaf.buffer.dtype)
            for leaf in leaves
            if leaf.buffer is not None
        ]
        shapes = [view.shape for view in views]
        if not shapes or np.broadcast_shapes(*shapes) != group.shape:
            return False
        order = memory_order(group.shape, [layouts.broadcast_strides(view, group.shape) for view in views])
        return all(order == outermost_first(each.buffer.phantom) for each in stored)

    def _fetch(self, leaf: Leaf, group: Group) -> Fetch:
        if leaf.number is not None:
            return self.trace.fetched(leaf)[0]
        assert leaf.buffer is not None, "a number or an array"
        fetch = viewed(leaf.buffer, leaf.steps)
        if group.axes is None or leaf.phantom.shape == group.shape or isinstance(leaf.input, TotalInput):
            return fetch
        shape = group.shape
        return lambda args, held: np.broadcast_to(fetch(args, held), shape)

    def _target(self, statement: Any, group: Group) -> Fetch:
        """Where an output is written."""
        buffer: Buffer = statement.buffer
        if isinstance(statement, Write):
            fetch, shape = viewed(buffer, statement.steps), statement.phantom.shape
        else:
            fetch, shape = _allocated(buffer), buffer.phantom.shape
        wanted = self._made(statement, group)
        if shape == wanted:
            return fetch
        return lambda args, held: fetch(args, held).reshape(wanted)


def _allocated(buffer: Buffer) -> Fetch:
    """A new array for a buffer."""
    from fusec.runtime.cpu import memory

    place, shape, dtype = buffer.place, buffer.phantom.shape, buffer.phantom.dtype
    order = outermost_first(buffer.phantom)
    axes = None if order == tuple(range(len(shape))) else order

    def fetch(args: Sequence[Any], held: list[Any]) -> Any:
        del args
        held[place] = found = memory.empty(shape, dtype, axes)
        return found

    return fetch


def viewed(buffer: Buffer, steps: Sequence[Callable[[Array], Array]]) -> Fetch:
    """A view of a buffer."""
    if buffer.kind == "constant":
        whole = numbers.constant(buffer.array)
    else:
        whole = (numbers.argument if buffer.kind == "argument" else numbers.held)(buffer.place)
    if not steps:
        return whole

    def fetch(args: Sequence[Any], held: list[Any]) -> Any:
        found = whole(args, held)
        for step in steps:
            found = step(found)
        return found

    return fetch
