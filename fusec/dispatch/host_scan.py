"""A call of a scan with host arrays: the axis, shapes, types, kernels, and where totals lie meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import Array, dtype_of, output_array, view_of, wrapper_of
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.dtypes import BOOL, DType
from fusec.base.locks import forks_wait
from fusec.base.records import dataclass, replace
from fusec.compiler import scan_pipeline
from fusec.dispatch import bind as binding
from fusec.dispatch import host_reduction
from fusec.dispatch.host_reduction import Call
from fusec.errors.arguments import OutputTooLarge, OutShapeMismatch
from fusec.errors.reductions import axis_outside
from fusec.errors.scans import AxisNeeded, SegmentsNotBool
from fusec.ir.reductions import AXIS, addressed
from fusec.ir.scans import COUNT, NUMBER
from fusec.kinds.reduction import Arguments, Operand, Request, arrange, dense
from fusec.kinds.scan import Machine, Step, Walk, chain_of, steps_of, walk_of

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.dispatch.planned_scan import Scanning
    from fusec.runtime.cpu.engine import Executable

ROWS_PER_THREAD = 4  # rows that let threads end together
COLUMNS_PER_THREAD = 64  # columns that are worth a thread of their own
TOGETHER = 1024  # columns that a thread takes side by side, at most about
UNIT = 16  # columns that a vector takes, or a part of it
LEAST_STRIPES = 1 << 18  # elements in columns that threads share
LEAST_BLOCKS = 2  # of a chain
LEAST = 1 << 16  # elements that one thread scans sooner than others wake up


@dataclass(frozen=True)
class Bound:
    """What is known of a call before anything is compiled.

    types: of all parameters. shape: of inputs and outputs. steps: the kernels in order. read: outputs whose elements
    are read, so that those to allocate start as zeros. walk: over all elements, None if there are none. chain: the
    kernels that a CPU runs block by block in place of the steps, none if it does not.
    """

    types: Mapping[str, DType]
    shape: Shape
    steps: tuple[Step, ...]
    raw: Mapping[str, View]
    request: Request
    read: frozenset[str]
    walk: Walk | None
    chain: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A compiled scan for one combination of dtypes, shapes, strides and axis.

    steps: what runs, in order. kernels: of these, or of the chain that is the only step.
    """

    bound: Bound
    steps: tuple[tuple[Step, Executable, Arguments], ...]
    kernels: tuple[Kernel, ...]


def run(
    kernel: Scanning, args: tuple[object, ...], out: object, axis: int | None, *, reverse: bool
) -> tuple[object, ...]:
    """Scan host arrays and return all outputs."""
    call = host_reduction.read(kernel, args, out, axis, False, True)
    asked = call.outputs
    if asked is not None and _disturbed(call, asked):
        pairs = zip(kernel.out_params, asked, strict=True)
        made = [_new(kernel, param, each.shape, each.dtype, zeroed=False) for param, each in pairs]
        call = replace(call, outputs=made)  # the plan is one for their strides
    plan = kernel.scan_plan(call, reverse)
    if asked is not None and call.outputs is not None and asked is not call.outputs and plan.bound.read:
        for target, source in zip(call.outputs, asked, strict=True):
            target[...] = source
    outputs = _allocate(kernel, plan.bound) if call.outputs is None else call.outputs
    _run_steps(kernel, plan, call, outputs)
    if asked is None:
        wrap = wrapper_of(args)
        return tuple(each if wrap is None else wrap(each) for each in outputs)
    if asked is not outputs:
        for target, source in zip(asked, outputs, strict=True):
            target[...] = source
    given: Sequence[object] = out if isinstance(out, (tuple, list)) else (out,)
    return tuple(given) if out is not None else args[kernel.nin :]


def output_of(kernel: Scanning, shape: Shape, out: object) -> Array:
    """The output of one more element along an axis: the array given, or a new one, of the kernel's declared dtype."""
    (param,) = kernel.out_params
    assert param.dtype is not None, "a built-in scan declares its output"
    if out is None:
        return np.empty(shape, param.dtype.numpy)
    view = output_array(out, param.name, kernel.name)
    if view.shape != shape:
        raise OutShapeMismatch(kernel.name, param.name, view.shape, shape).at()
    return view


def _disturbed(call: Call, outputs: Sequence[Array]) -> bool:
    """Whether an output lies where inputs are read."""
    return any(np.may_share_memory(output, each) for output in outputs for each in call.inputs.values())


def _allocate(kernel: Scanning, bound: Bound) -> list[Array]:
    return [
        _new(kernel, param, bound.shape, bound.types[param.name].numpy, zeroed=param.name in bound.read)
        for param in kernel.out_params
    ]


def _new(kernel: Scanning, param: Parameter, shape: Shape, dtype: np.dtype[Any], *, zeroed: bool) -> Array:
    with locks.lock:
        from fusec.runtime.cpu import memory

    try:
        made: Array = memory.zeros(shape, dtype) if zeroed else memory.empty(shape, dtype)
    except (MemoryError, OSError, ValueError) as problem:
        raise OutputTooLarge(kernel.name, param.name, shape, prod(shape) * dtype.itemsize).at() from problem
    return made


def _run_steps(kernel: Scanning, plan: Plan, call: Call, outputs: Sequence[Array]) -> None:
    with locks.lock:
        from fusec.runtime.cpu import memory

    arrays: dict[str, Array] = dict(call.inputs)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, outputs, strict=True)}
    for step, executable, arguments in plan.steps:
        for name, shape, dtype in step.made:
            arrays[name] = memory.empty(shape, dtype.numpy)
        addresses = {name: arrays[known].__array_interface__["data"][0] for name, known in step.arrays}
        addresses |= {name: arrays[name].__array_interface__["data"][0] for name in plan.bound.raw}
        slots = arguments.fill(addresses, call.values, kernel.name)
        executable.run(slots.buffer_info()[0], step.positions)


# --- plans ---------------------------------------------------------------------------------------------------------


@forks_wait
def make_plan(kernel: Scanning, call: Call, reverse: bool) -> Plan:
    """Bind types, order the walk, compile every kernel."""
    with locks.lock:
        from fusec.runtime.cpu.machine import thread_count

    def view(array: Array, param: str) -> View:
        return view_of(array, dtype_of(array, param, kernel.name))

    outputs = None
    if call.outputs is not None:
        named = zip(kernel.out_params, call.outputs, strict=True)
        outputs = tuple(view(each, param.name) for param, each in named)
    inputs = {name: view(each, name) for name, each in call.inputs.items()}
    machine = machine_of(thread_count())
    bound = bind(kernel, inputs, frozenset(call.values), outputs, call.axis, reverse, machine)
    if bound.chain:
        from fusec.dispatch import fused_launch

        compiled = _compiled(kernel, bound, around_caches(kernel, bound, bound.chain))
        if chained := fused_launch.join(kernel, bound, compiled):
            return Plan(bound, (chained,), tuple(executable.kernel for _, executable, _ in compiled))
        bound = replace(bound, chain=())
    steps = _compiled(kernel, bound, around_caches(kernel, bound, bound.steps))
    return Plan(bound, steps, tuple(executable.kernel for _, executable, _ in steps))


def _compiled(kernel: Scanning, bound: Bound, steps: Sequence[Step]) -> tuple[tuple[Step, Executable, Arguments], ...]:
    """Kernels with what no call changes filled in."""
    with locks.lock:
        from fusec.runtime.cpu import engine
        from fusec.runtime.cpu.machine import thread_count

    found = []
    for step in steps:
        executable = scan_pipeline.executable(kernel.scan, bound.request, step.form)
        together = 1 if step.form.is_last else side_by_side(step, thread_count())
        executable = engine.with_grain(executable, step.elements, together)
        known = {AXIS: step.extent, NUMBER: 0, COUNT: 0}
        found.append((step, executable, arrange(executable.kernel, step, step.space, bound.raw, known)))
    return tuple(found)


def around_caches(kernel: Scanning, bound: Bound, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The same kernels, of which the last one stores results around the caches if they exceed the last one."""
    from fusec.runtime.cpu.machine import last_level_cache_bytes

    nbytes = sum(prod(bound.shape) * bound.types[param.name].nbytes for param in kernel.out_params)
    if nbytes <= last_level_cache_bytes():
        return steps
    last = replace(steps[-1], form=replace(steps[-1].form, layout=replace(steps[-1].form.layout, streaming=True)))
    return (*steps[:-1], last)


def machine_of(threads: int) -> Machine:
    """What keeps so many threads busy; one is busy with whatever there is."""
    if threads == 1:
        return Machine(1, 1, LEAST)
    rows, columns = threads * ROWS_PER_THREAD, threads * COLUMNS_PER_THREAD
    return Machine(rows, columns, LEAST, chain=LEAST_BLOCKS, twice=threads > 2)


def side_by_side(step: Step, threads: int) -> int:
    """How many columns a thread should take at a time: whole lines of bytes, so that all threads end together.

    All of them where a cache holds everything: rows that do not begin their lines share some at the edges of stripes.
    """
    positions = step.positions
    if positions * step.elements < LEAST_STRIPES:
        return positions
    rounds = -(-positions // (threads * TOGETHER))
    return -(-positions // (rounds * threads * UNIT)) * UNIT


def bind(
    kernel: Scanning,
    inputs: Mapping[str, View],
    numbers: frozenset[str],
    outputs: Sequence[View] | None,
    axis: object,
    reverse: bool,
    machine: Machine,
) -> Bound:
    """Bind types and order the walk. Raises for shapes, axes and types that do not go together."""
    dtypes = [inputs[param.name].dtype if param.name in inputs else None for param in kernel.in_params]
    dtypes += [each.dtype for each in outputs] if outputs else [None] * kernel.nout
    types = kernel.signature.bind(dtypes)
    if kernel.scan.segments and types[kernel.scan.segments] != BOOL:
        raise SegmentsNotBool(kernel.name, kernel.scan.segments, str(types[kernel.scan.segments])).at()
    raw = {param.name: inputs[param.name] for param in kernel.in_params if param.raw}
    along = {name: each for name, each in inputs.items() if name not in raw}
    shape = binding.walk_shape(kernel, {name: each.shape for name, each in along.items()})
    number = axis_of(kernel, axis, shape)
    for param, each in zip(kernel.out_params, outputs or (), strict=False):
        if each.shape != shape:
            raise OutShapeMismatch(kernel.name, param.name, each.shape, shape).at()
    ndims = tuple((name, len(each.shape)) for name, each in raw.items())
    request = Request(tuple(types.items()), numbers, 1, (0,), ndims, False, kernel.fp)
    scan = scan_pipeline.lower(kernel.scan, request)
    loaded = frozenset(each.name for each in scan.reduction.arrays if each.written and each.read)
    if 0 in shape:
        return Bound(types, shape, (), raw, request, loaded, None)
    views = outputs or [dense(shape, types[param.name]) for param in kernel.out_params]
    operands = [Operand(name, each, layouts.broadcast_strides(each, shape), False) for name, each in along.items()]
    for param, each in zip(kernel.out_params, views, strict=True):
        operands.append(Operand(param.name, each, layouts.broadcast_strides(each, shape), True))
    walk = walk_of(shape, number, operands, backwards=reverse)
    return planned(kernel, Bound(types, shape, (), raw, request, loaded, walk), machine)


def planned(kernel: Scanning, bound: Bound, machine: Machine) -> Bound:
    """The same with the kernels for a machine; there is something to scan."""
    assert bound.walk is not None, "there are elements"
    scan = scan_pipeline.lower(kernel.scan, bound.request)
    read = frozenset(addressed(scan.stage.body, (scan.running.value,)))
    totals = [dtype for _, dtype in scan.running.parts]
    is_dear = scan_pipeline.is_dear(scan)
    steps = steps_of(bound.walk, list(bound.raw.items()), totals, read, machine, is_dear=is_dear)
    nbytes = [view.dtype.nbytes for _, view, _, _ in bound.walk.operands]
    return replace(bound, steps=steps, chain=chain_of(steps, totals, nbytes, machine))


def axis_of(kernel: Scanning, axis: object, shape: Shape) -> int:
    """The axis to scan; raises with NumPy's texts."""
    if axis is None or isinstance(axis, (tuple, list)) or not shape:
        if axis is None and len(shape) == 1:
            return 0
        if not shape and not isinstance(axis, (tuple, list)) and axis is not None:
            raise axis_outside(kernel.name, int(str(axis)), shape).at()
        raise AxisNeeded(kernel.name, repr(axis), len(shape)).at()
    (number,) = binding.normalised(kernel.name, axis, shape)
    return number
