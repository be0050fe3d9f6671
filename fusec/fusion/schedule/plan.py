"""A plan: the kernels of one trace in order, and the slots of what they read and write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.operands import memory_order
from fusec.base import locks
from fusec.base.dtypes import compute_type
from fusec.base.records import dataclass, replace
from fusec.dispatch import tiers
from fusec.dispatch.call import KernelCall, read
from fusec.dispatch.fast_path_host import FastPath
from fusec.dispatch.host import HOST
from fusec.dispatch.planned import Planned
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.errors import FusecError
from fusec.errors.base import OfParameter
from fusec.errors.reductions import RowsTooLong
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.slots import Fresh, Slots, SlotView, fresh, replayed
from fusec.fusion.schedule.groups import Group
from fusec.fusion.schedule.schedule import schedule
from fusec.fusion.schedule.together import follows, together
from fusec.fusion.trace import numbers
from fusec.fusion.trace.elsewhere import counted
from fusec.fusion.trace.trace import Trace
from fusec.fusion.trace.trace_values import (
    Array,
    Buffer,
    Computation,
    Leaf,
    Total,
    Write,
    leaves_of,
    outermost_first,
    replaced,
)
from fusec.ir.expr import Expr
from fusec.ir.graph import SPREAD, Input, KernelGraph, TotalInput, asks_position
from fusec.ir.loops import GROUP
from fusec.ir.reductions import ROUNDS, chunk_of
from fusec.kinds.launch import MANY_THREADS
from fusec.kinds.reduction import Phase
from fusec.library.arguments import totals
from fusec.library.graph_kernel import GraphKernel
from fusec.library.graph_sources import ElementwiseSource, ReducingSource, signature_of

Shape = tuple[int, ...]
Rows = tuple[Shape, tuple[int, ...] | None]
"""What is walked, and the axes that are reduced."""


class MapKernel(Planned):
    """A graph without reductions, as a function of arrays; returns its output, or a tuple of several."""

    def __init__(self, source: ElementwiseSource) -> None:
        moves = asks_position(source.graph)
        super().__init__(source, signature_of(source), uses_index=moves, reduce_dims=not moves)
        self.source_graph = source
        self._fast: Callable[..., Any] = self._from_python
        self._path = FastPath(self._from_python, partial(setattr, self, "_fast"))

    def __call__(self, *args: object) -> Any:
        """The output, or a tuple of several."""
        return self._fast(*args)

    def _from_python(self, *args: object) -> object:
        found = self.run(args)
        return found[0] if self.nout == 1 else found

    def fast_path(self, call: KernelCall[Any]) -> FastPath | None:
        """Its own, on the host."""
        return self._path if call.is_on_host else None


_map_kernel = lru_cache(maxsize=512)(MapKernel)


@lru_cache(maxsize=512)
def _reducing(source: ReducingSource, scalars: frozenset[str]) -> Planned:
    return GraphKernel(source.graph).whole(scalars)


@dataclass(eq=False)
class KernelStep:
    """One kernel with its operands, which are slots of a call."""

    group: Group
    kernel: Planned
    leaves: list[Leaf]
    stored: list[Computation]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    fresh: tuple[Fresh, ...] = ()  # results that it is the first to write
    views: tuple[tuple[int, SlotView], ...] = ()  # that it is the first to need
    makes: tuple[tuple[int, Shape | None], ...] = ()  # outputs in host memory that the kernel makes, and their shapes
    releases: tuple[int, ...] = ()  # slots that nobody needs any more
    place: int = 0  # among the steps of its launch
    beside: int = 0  # how many other steps the launch has
    reverse: bool = False  # its arrays are transposed, for it asks for positions, and walks in C order
    follows: bool = False  # at the end of the launch before, if both have one phase
    puts_back: bool = False  # it only copies the result of the call before to the operand that this changes
    row_blocks: int = 0  # by which a device may hold its rows if they are several chunks, see `PlanBuilder`

    @property
    def name(self) -> str:
        """The kernel's."""
        return self.kernel.name

    def run(self, frame: list[Any], memory: Any) -> None:
        """Run on the slots of a call; kernels that make their outputs themselves have a faster native entry."""
        if self.puts_back and frame[self.inputs[0]] is frame[self.outputs[0]]:
            return
        if not (self.makes and memory.takes_results):
            for each in self.fresh:
                frame[each.slot] = memory.new(each)
            for slot, view in self.views:
                frame[slot] = memory.view(frame, view)
            memory.run(self, self._inputs(frame), self._outputs(frame))
            return
        before, after = self._views_of_inputs
        for slot, view in before:
            frame[slot] = memory.view(frame, view)
        kernel, inputs = self.kernel, self._inputs(frame)
        found = kernel(*inputs) if isinstance(kernel, MapKernel) else totals(kernel, inputs, None, self.axis, True)
        results = (found,) if len(self.makes) == 1 else found
        for (slot, shape), each, wanted in zip(self.makes, results, self.fresh, strict=True):
            assert each.size == prod(wanted.shape), "a kernel has outputs as large as its plan"
            assert each.dtype == wanted.dtype, "a kernel has outputs of the dtypes of its plan"
            frame[slot] = each if shape is None else each.reshape(shape)
        for slot, view in after:
            frame[slot] = memory.view(frame, view)

    def elsewhere(
        self, fresh: tuple[Fresh, ...], views: tuple[tuple[int, SlotView], ...],
        makes: tuple[tuple[int, Shape | None], ...],
    ) -> KernelStep:  # fmt: skip
        """The same kernel in a call on the host with other extents; leaves and statements stay those of this one."""
        return KernelStep(
            self.group, self.kernel, self.leaves, self.stored, self.inputs, self.outputs, fresh, views, makes,
            self.releases, self.place, self.beside, self.reverse, self.follows,
        )  # fmt: skip

    @cached_property
    def _views_of_inputs(self) -> tuple[list[tuple[int, SlotView]], list[tuple[int, SlotView]]]:
        """The views that are read, and those that are written, which later kernels may read."""
        found: tuple[list[Any], list[Any]] = ([], [])
        for slot, view in self.views:
            found[slot in self.outputs].append((slot, view))
        return found

    @cached_property
    def _inputs(self) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        return numbers.picking(self.inputs)

    @cached_property
    def _outputs(self) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
        return numbers.picking(self.outputs)

    @cached_property
    def written(self) -> tuple[Array, ...]:
        """What each output is, but for its content."""
        return tuple(each.phantom if isinstance(each, Write) else each.buffer.phantom for each in self.stored)

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
        assert isinstance(error.error, OfParameter), "it has a parameter"
        return error.error.called(names[given[1]]).at(error.span)

    def phases(self) -> Sequence[Phase]:
        """The kernels of a reduction in order; none for an element-wise step."""
        if isinstance(self.kernel, MapKernel):
            return ()
        pairs = zip(self.written, self.stored, strict=True)
        made = [each if each.shape == (shape := self.group.made(of)) else each.reshape(shape) for each, of in pairs]
        given = self._call(tuple(made)).given(HOST)
        machine = replace(MANY_THREADS, row_blocks=self.row_blocks)
        bound = REDUCTION.bind(self.kernel, given, machine, None) if self.row_blocks else None
        bound = bound or HOST.bound(self.kernel, given)
        return tuple(each for each in bound.launches if isinstance(each, Phase))

    def begin(self, seen: set[object]) -> None:
        """Have the kernel compiled beside others, for arrays on the host. seen: the kinds of earlier calls."""
        with suppress(FusecError):  # which the call itself raises
            tiers.begin(self.kernel, self._call(None if self.makes else self.written), seen)

    def _call(self, outputs: tuple[Array, ...] | None) -> KernelCall[Any]:
        """A call like all of the plan's, with stand-ins for what it is given."""
        return read(HOST, self.kernel, tuple(map(self._example, self.leaves)), outputs or (), self.options)

    def _example(self, leaf: Leaf) -> Any:
        """What a kernel reads, but for its content."""
        if leaf.buffer is None:
            return 1 if leaf.phantom.dtype.kind in "biu" else 1.0
        if self.group.axes is None or leaf.phantom.shape == self.group.shape or isinstance(leaf.input, TotalInput):
            return leaf.phantom
        return np.broadcast_to(leaf.phantom, self.group.shape)

    @property
    def has_short_rows(self) -> bool:
        """Whether rows are seen to be one chunk each without a plan: dense ones along the last axes, or very short."""
        shape, axes = self.group.shape, self.group.axes or ()
        count = prod(shape[axis] for axis in axes)
        if count > chunk_of(GROUP, is_last=self.are_last):
            return False
        arrays = [
            leaf.phantom for leaf in self.leaves if leaf.buffer is not None and leaf.input not in self.group.beside
        ]
        inputs = [each for each in arrays if each.shape == shape]
        is_dense = bool(inputs) and all(each.flags.c_contiguous for each in inputs)
        if len(axes) == 1:
            return count <= ROUNDS or is_dense
        if not (is_dense and self.are_last and len(inputs) == len(arrays)):
            return False
        pairs = zip(self.written, self.stored, strict=True)
        return all(each.flags.c_contiguous for each, of in pairs if self.group.kinds[of] == "elements")

    @property
    def are_last(self) -> bool:
        """Whether the last axes are reduced."""
        axes, ndim = self.group.axes or (), len(self.group.shape)
        return axes == tuple(range(ndim - len(axes), ndim))

    def is_plain(self, count: int) -> bool:
        """Whether the inputs are exactly the arguments of a call."""
        return self.inputs == tuple(range(count))

    @cached_property
    def options(self) -> CallOptions:
        """Those of its calls."""
        return PLAIN if self.group.axes is None else CallOptions(self.axis, keepdims=True)

    @cached_property
    def axis(self) -> int | tuple[int, ...] | None:
        """The reduced axes in the shortest form for a call."""
        axes = self.group.axes or ()
        if len(axes) == len(self.group.shape):
            return None
        return axes[0] if len(axes) == 1 else axes


def _puts_back(call: CallStep, after: KernelStep) -> bool:
    """Whether a step only copies the result of a call to the operand that the function of the call changes."""
    if call.changing is None or (after.inputs, after.outputs) != (call.outputs, call.inputs[:1]):
        return False
    is_copy = len(after.leaves) == 1 and after.group.exprs[after.stored[0]] is after.leaves[0].input
    return is_copy and not after.beside and call.outputs[0] in after.releases


class PlanBuilder:
    """Makes the plan of a trace. needed: buffers that are returned."""

    def __init__(self, trace: Trace, needed: Sequence[Buffer]) -> None:
        self.trace, self.needed = trace, needed
        self.unstaged: dict[Rows, int] = {}  # rows that do not fit a chunk, and the elements that do
        self.slots = Slots(trace.numbers)
        self._ready: set[int] = set()  # slots that hold what earlier steps, or the arena, put there
        self.unplaced: list[KernelStep | CallStep] = []  # once there are steps
        self.prior: list[Buffer] | None = []  # what results gave slots before that; None if it is more than buffers

    @locks.fork_safe
    def steps(self) -> list[KernelStep | CallStep]:
        """The kernels and calls of libraries in order; rows that do not fit a chunk are walked once."""
        while True:
            groups = schedule(self.trace, self.needed, self.unstaged)
            shared = self._shared(groups)
            found = [
                self._step(group, shared) if group.call is None else CallStep(group.call, self._leaves(group))
                for group in groups
            ]
            kernels = [step for step in found if isinstance(step, KernelStep)]
            long = [(step.group, most) for step in kernels if (most := self.longest(step))]
            if not long:
                break
            for group, most in long:
                rows = group.shape, group.axes
                self.unstaged[rows] = max(most, self.unstaged.get(rows, 0))
        self.unplaced = found
        known = [*self.slots.known]
        self.prior = [each for each in known if isinstance(each, Buffer)] if len(known) == len(self.slots.own) else None
        return self.placed(found)

    def placed(self, found: Sequence[KernelStep | CallStep]) -> list[KernelStep | CallStep]:
        """The same steps with the slots of their operands."""
        for place in self.trace.numbers:  # also one that nothing reads, which may raise an exception
            self.slots.number(("computed", place))
        of_calls = {buffer for step in found if isinstance(step, CallStep) for buffer in step.call.buffers}
        needed = frozenset(self.needed)
        apart = needed | of_calls
        launches = together(found)
        self.slots.arena.arrange(
            [_temporaries((each.buffer for step in one for each in step.stored), apart) for one in launches],
            [_temporaries((leaf.buffer for step in one for leaf in step.leaves), apart) for one in launches],
        )
        found = [step for one in launches for step in one]
        placed = [
            self._placed(step, needed) if isinstance(step, KernelStep) else self._placed_call(step) for step in found
        ]
        last = {
            buffer: at
            for at, step in enumerate(found)
            for buffer in (*(each.buffer for each in step.stored), *(leaf.buffer for leaf in step.leaves))
            if buffer in of_calls and buffer not in needed
        }
        for buffer, at in last.items():
            placed[at].releases += self.slots.holding(buffer)
        rest = iter(placed)
        before: list[Any] = []
        for one in launches:
            same = [next(rest) for _ in one]
            for place, step in enumerate(same):
                if isinstance(step, KernelStep):
                    step.place, step.beside, step.follows = place, len(one) - 1, follows(before, step)
                    same = [] if step.follows else same
            before = same
        for call, after in pairwise(placed):
            if isinstance(call, CallStep) and isinstance(after, KernelStep) and _puts_back(call, after):
                call.is_put_back = after.puts_back = True
        return placed

    def _shared(self, groups: Sequence[Group]) -> set[Buffer]:
        """The buffers that must be stored: returned, written, or read by other kernels than the one that makes them."""
        found = {*self.needed}
        for group in groups:
            found |= {leaf.buffer for leaf in self._leaves(group) if leaf.buffer and leaf.buffer not in group.defined}
            found |= {each.buffer for each in group.statements if isinstance(each, Write)}
        return found

    def longest(self, step: KernelStep) -> int:
        """The elements of a chunk if rows of a staged kernel have more; 0 if every row is one chunk."""
        if isinstance(step.kernel, MapKernel) or not step.group.is_staged or step.has_short_rows:
            return 0
        try:
            step.phases()
        except FusecError as error:
            if isinstance(error.error, RowsTooLong):
                return error.error.most
            raise
        return 0

    # --- one kernel ----------------------------------------------------------------------------------------------

    def _leaf(self, name: Input, group: Group) -> Leaf:
        """What an input of a kernel's expressions stands for."""
        return group.beside.get(name) or self.trace.leaves[name]

    def _leaves(self, group: Group) -> list[Leaf]:
        """What a kernel reads, in order."""
        found: dict[Input, Leaf] = {}
        if group.call is not None:
            return [self.trace.leaves[each] for each in group.call.operands]
        for statement in group.statements:
            for each in leaves_of(group.exprs[statement]):
                found[each] = self._leaf(each, group)
        return list(found.values())

    def _step(self, group: Group, shared: Collection[Buffer]) -> KernelStep:
        stored = [each for each in group.statements if isinstance(each, Write) or each.buffer in shared]
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
        axes, reverse = len(group.shape), _is_reversed(stored, leaves, group)
        values = (counted(replaced(expr, known), axes, reverse) for expr in exprs)
        outputs = tuple((f"z{number}", value) for number, value in enumerate(values))
        graph = KernelGraph(self.trace.name, tuple(inputs), outputs)  # type: ignore[arg-type]
        kernel: Planned
        if group.axes is None:
            kernel = _map_kernel(ElementwiseSource(graph))
        else:
            kernel = _reducing(ReducingSource(graph), frozenset(f"s{number}" for number in range(numbers)))
        return KernelStep(group, kernel, leaves, stored, reverse=reverse, row_blocks=self._row_blocks(group))

    def _row_blocks(self, group: Group) -> int:
        """By how many blocks a kernel of a device may walk rows that are several chunks, with the bits of the host.

        The host has kernels of totals then, in which any that reduce the same axes may be together. So all of them must
        have the same lanes, whatever kernels they are in.
        """
        if self.trace.device == "cpu" or not group.is_staged:
            return 0
        totals = [each for each in self.trace.statements if isinstance(each, Total)]
        alike = [each for each in totals if (each.value.shape, each.axes) == (group.shape, group.axes)]
        widths = {compute_type(each.buffer.dtype).nbytes for each in alike}
        return self.trace.row_blocks if len(widths) == 1 and all(each.op != SPREAD for each in alike) else 0

    def _placed(self, step: KernelStep, needed: Collection[Buffer]) -> KernelStep:
        """The same step with the slots of its operands. needed: buffers that are returned."""
        group, slots = step.group, self.slots
        inputs = tuple(self._input(leaf, group, step.reverse) for leaf in step.leaves)
        outputs = tuple(self._output(each, group, step.reverse) for each in step.stored)
        new = {each.buffer: None for each in step.stored if each.buffer in needed}
        made = tuple(fresh(slots.buffer(each), each) for each in new if slots.buffer(each) not in self._ready)
        self._ready |= {each.slot for each in made}
        views = self._new_views((*inputs, *outputs))
        makes: tuple[tuple[int, Shape | None], ...] = ()
        if len(made) == len(step.stored) and not step.reverse and self._makes_outputs(step.stored, step.leaves, group):
            makes = tuple(
                (slots.buffer(each.buffer), None if group.made(each) == shape else shape)
                for each in step.stored
                for shape in (each.buffer.phantom.shape,)
            )
        return replace(step, inputs=inputs, outputs=outputs, fresh=made, views=views, makes=makes)

    def _placed_call(self, step: CallStep) -> CallStep:
        """The same call of a library with the slots of its operands and results."""
        inputs = tuple(self._input(leaf) for leaf in step.leaves)
        views = self._new_views(inputs)
        outputs = tuple(self.slots.buffer(each) for each in step.call.buffers)
        self._ready |= {*outputs}
        return replace(step, inputs=inputs, views=views, outputs=outputs)

    def _new_views(self, used: Iterable[int]) -> tuple[tuple[int, SlotView], ...]:
        """The views that a step is the first to need, but for those that last from call to call."""
        slots = self.slots
        views = [slot for slot in dict.fromkeys(used) if slot in slots.views and slot not in self._ready]
        self._ready |= {*views}
        return tuple((slot, slots.views[slot]) for slot in views if not slots.is_lasting(slot))

    def _makes_outputs(self, stored: Sequence[Any], leaves: Sequence[Leaf], group: Group) -> bool:
        """Whether a kernel left to itself makes its outputs as NumPy would lay them out."""
        if any(isinstance(each, Write) for each in stored):
            return False
        if group.axes is not None:
            return all(each.buffer.phantom.flags.c_contiguous for each in stored)
        views = [
            layouts.View(0, leaf.phantom.shape, leaf.phantom.strides, leaf.buffer.dtype)
            for leaf in leaves
            if leaf.buffer is not None and not leaf.is_whole
        ]
        shapes = [view.shape for view in views]
        if not shapes or np.broadcast_shapes(*shapes) != group.shape:
            return False
        order = memory_order(group.shape, [layouts.broadcast_strides(view, group.shape) for view in views])
        return all(order == outermost_first(each.buffer.phantom) for each in stored)

    def _input(self, leaf: Leaf, group: Group | None = None, reverse: bool = False) -> int:
        """The slot of what a kernel or a call of a library reads."""
        if leaf.number is not None:
            return self.slots.number(leaf.number)
        assert leaf.buffer is not None, "a number or an array"
        part = replayed(leaf.buffer, leaf.steps)
        if group is not None and group.axes is not None and not isinstance(leaf.input, TotalInput):
            part = part if leaf.phantom.shape == group.shape else np.broadcast_to(part, group.shape)
        if group is not None and reverse:
            part = part.T if leaf.is_whole else np.broadcast_to(part, group.shape).T
        return self.slots.operand(leaf.buffer, part)

    def _output(self, statement: Computation, group: Group, reverse: bool) -> int:
        """The slot of what a kernel writes."""
        buffer = statement.buffer
        part = replayed(buffer, statement.steps) if isinstance(statement, Write) else buffer.phantom
        wanted = group.made(statement)
        if reverse:
            return self.slots.operand(buffer, part.T)
        return self.slots.operand(buffer, part if part.shape == wanted else part.reshape(wanted))


def _is_reversed(stored: Sequence[Computation], leaves: Sequence[Leaf], group: Group) -> bool:
    """Whether a kernel asks for positions, and all its arrays of several axes are in Fortran order."""
    if group.axes is not None or not any(leaf.is_whole for leaf in leaves):
        return False
    arrays = [each.phantom if isinstance(each, Write) else each.buffer.phantom for each in stored]
    if any(each.ndim != len(group.shape) for each in arrays):
        return False
    arrays += [leaf.phantom for leaf in leaves if leaf.buffer is not None and leaf.phantom.ndim > 1]
    return all(each.flags.fnc or each.size == 0 for each in arrays)


def _temporaries(buffers: Iterable[Buffer | None], apart: Collection[Buffer]) -> list[Buffer]:
    """Those of some buffers that belong to the plan, except those apart."""
    return [each for each in buffers if each and each.kind == "temporary" and each not in apart]
