"""Scans: the launches of their calls, and how a CPU runs their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape
from fusec.arguments.operands import Array
from fusec.base.diagnostics import counted
from fusec.base.dtypes import BOOL, DType
from fusec.base.kernel_abi import Kernel
from fusec.base.records import replace
from fusec.codegen import TARGETS
from fusec.compiler import scan_pipeline as pipeline
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch.axes import canonical, normalised, walk_shape
from fusec.dispatch.reductions import check
from fusec.dispatch.spec import STRIDES, Bound, Given, KernelSpec, Kind, Lines, fp_line
from fusec.errors.arguments import OutShapeMismatch
from fusec.errors.reductions import AxisNeeded, SegmentsNotBool, axis_outside
from fusec.ir.loops import GROUP
from fusec.ir.reductions import addressed
from fusec.ir.scans import chunk_of
from fusec.kinds.launch import Machine, Request
from fusec.kinds.reduction import Operand, dense
from fusec.kinds.scan import ScanLaunch, chain_of, steps_of, walk_of

ROWS_PER_THREAD = 4  # rows that let threads end together
COLUMNS_PER_THREAD = 64  # columns that are worth a thread of their own
TOGETHER = 1024  # columns that a thread takes side by side, at most about
UNIT = 16  # columns that a vector takes, or a part of it
LEAST_STRIPES = 1 << 18  # elements in columns that threads share
LEAST_BLOCKS = 2  # of a chain
LEAST = 1 << 16  # elements that one thread scans sooner than others wake up


def machine_of(threads: int) -> Machine:
    """What keeps so many threads busy; one is busy with whatever there is."""
    if threads == 1:
        return Machine(1, 1, LEAST)
    rows, columns = threads * ROWS_PER_THREAD, threads * COLUMNS_PER_THREAD
    return Machine(rows, columns, LEAST, chain=LEAST_BLOCKS, twice=threads > 2)


def _side_by_side(step: ScanLaunch, threads: int) -> int:
    """How many columns a thread should take at a time: whole lines of bytes, so that all threads end together.

    All of them where a cache holds everything: rows that do not begin their lines share some at the edges of stripes.
    """
    positions = step.positions
    if positions * step.elements < LEAST_STRIPES:
        return positions
    rounds = -(-positions // (threads * TOGETHER))
    return -(-positions // (rounds * threads * UNIT)) * UNIT


def bind(kernel: KernelSpec, given: Given, machine: Machine, known: Mapping[str, DType] | None) -> Bound:
    """Bind types and order the walk. Raises for shapes, axes and types that do not fit together.

    known: the types of all parameters, for calls that are only shown.
    """
    definition, inputs = _definition(kernel), given.inputs
    outputs = given.outputs or ()
    types = given.types(kernel) if known is None else known
    if definition.segments and types[definition.segments] != BOOL:
        raise SegmentsNotBool(kernel.name, definition.segments, str(types[definition.segments])).at()
    raw = {param.name: inputs[param.name] for param in kernel.in_params if param.raw}
    along = {name: each for name, each in inputs.items() if name not in raw}
    shape = walk_shape(kernel.name, {name: each.shape for name, each in along.items()})
    number = axis_of(kernel.name, given.options.axis, shape)
    for param, each in zip(kernel.out_params, outputs, strict=False):
        if each.shape != shape:
            raise OutShapeMismatch(kernel.name, param.name, each.shape, shape).at()
    ndims = tuple((name, len(each.shape)) for name, each in raw.items())
    request = Request(tuple(types.items()), given.numbers, kernel.fp, ndims=ndims)
    scan = pipeline.lower(definition, request)
    loaded = frozenset(each.name for each in scan.reduction.arrays if each.written and each.read)
    found = Bound(types, shape, (shape,) * kernel.nout, (), raw, request, loaded, kept=shape)
    if 0 in shape:
        return found
    views = outputs or [dense(shape, types[param.name]) for param in kernel.out_params]
    operands = [Operand(name, each, layouts.broadcast_strides(each, shape), False) for name, each in along.items()]
    for param, each in zip(kernel.out_params, views, strict=True):
        operands.append(Operand(param.name, each, layouts.broadcast_strides(each, shape), True))
    walk = replace(walk_of(shape, number, operands, backwards=given.options.reverse), raw=tuple(raw.items()))
    return planned(kernel, replace(found, walk=walk), machine)


def _definition(kernel: KernelSpec) -> ScanDefinition:
    assert isinstance(kernel.definition, ScanDefinition), "a scan"
    return kernel.definition


def planned(kernel: KernelSpec, bound: Bound, machine: Machine) -> Bound:
    """The same with the kernels for a machine; there is something to scan."""
    assert bound.walk is not None, "there are elements"
    scan = pipeline.lower(_definition(kernel), bound.request)
    read = frozenset(addressed(scan.stage.body, (scan.running.value,)))
    totals = [dtype for _, dtype in scan.running.parts]
    is_expensive = pipeline.is_expensive(scan)
    steps = steps_of(bound.walk, totals, read, machine, is_expensive=is_expensive)
    nbytes = [view.dtype.nbytes for _, view, _, _ in bound.walk.operands]
    return replace(bound, launches=steps, chain=chain_of(steps, totals, nbytes, machine))


def axis_of(name: str, axis: object, shape: Shape) -> int:
    """The axis to scan. Raises NumPy's errors."""
    if axis is None or isinstance(axis, (tuple, list)) or not shape:
        if axis is None and len(shape) == 1:
            return 0
        if not shape and not isinstance(axis, (tuple, list)) and axis is not None:
            raise axis_outside(name, int(str(axis)), shape).at()
        raise AxisNeeded(name, repr(axis), len(shape)).at()
    (number,) = normalised(name, axis, shape)
    return number


def _on_device(kernel: KernelSpec, bound: Bound, machine: Machine) -> Bound:
    return bound if bound.walk is None else planned(kernel, bound, machine)


def _fitted(kernel: KernelSpec, bound: Bound) -> Bound:
    """The last step stores results around the caches if they exceed the last one."""
    from fusec.runtime.cpu.machine import last_level_cache_bytes

    nbytes = sum(prod(bound.shape) * bound.types[param.name].nbytes for param in kernel.out_params)
    if nbytes <= last_level_cache_bytes() or not bound.launches:
        return bound
    chain = (*bound.chain[:-1], _around_caches(bound.chain[-1])) if bound.chain else ()
    return replace(bound, launches=(*bound.launches[:-1], _around_caches(bound.launches[-1])), chain=chain)


def _around_caches(step: Any) -> Any:
    return replace(step, layout=replace(step.layout, streaming=True))


def _grain(step: ScanLaunch, threads: int) -> tuple[int, int]:
    """Elements of a position, and positions that a thread takes side by side."""
    return step.elements, 1 if step.is_last else _side_by_side(step, threads)


# --- reports -------------------------------------------------------------------------------------------------------


WHAT = {
    "whole": "scans", "totals": "computes the totals of chunks of", "advance": "scans",
    "results": "computes results from scanned totals and", "clear": "clears the words of the next kernel for",
    "one_pass": "scans, and reads memory once,",
}  # fmt: skip


def _describe(kernel: KernelSpec, bound: Bound, compiled: Sequence[Kernel]) -> tuple[int, Lines]:
    """The bytes that a scan moves, and what it does."""
    walk = bound.walk
    moved = sum(view.size * view.dtype.nbytes for view in bound.raw.values())
    lines: Lines = []
    if walk is None:
        lines.append(("kernels", "none: there is nothing to scan"))
    else:
        extents, is_last = walk.extents, walk.axis == len(walk.extents) - 1
        for _, view, row, _ in walk.operands:
            moved += view.dtype.nbytes * prod(extent for extent, step in zip(extents, row, strict=True) if step)
        place = "along the innermost axis" if is_last else f"along axis {walk.axis} of {len(extents)}"
        rows = prod(extents) // extents[walk.axis]
        times = "once" if rows == 1 else f"{rows:,} times"
        lines.append(("scans", f"{counted(extents[walk.axis], 'element')} {place}, {times}"))
        how = f"groups of {GROUP} by doubling distances" if is_last else "one after the other"
        lines.append(("order", f"chunks of {chunk_of(is_last):,} elements, {how}; then their totals by the same rules"))
        if bound.chain:
            block = f"{GROUP * chunk_of(True):,} elements"
            lines.append(("a chain", f"threads run the kernels block by block, {block} at a time, which stay in cache"))
        pairs = zip(bound.chain or bound.launches, compiled, strict=True)
        lines += [(f"kernel {at}", _line(step, each)) for at, (step, each) in enumerate(pairs, 1)]
    lines += [("bytes moved", f"{moved:,}, if everything is read and written once"), fp_line(kernel)]
    return moved, lines


def _line(step: Any, kernel: Kernel) -> str:
    """What one kernel does."""
    arrays = [(name, row) for name, row in step.layout.steps if not name.startswith("_")]
    walks = "; ".join(f"'{name}' {STRIDES[row[-1]]}" for name, row in arrays) or "between the others"
    extent = counted(step.extent, "total" if step.of_totals else "element")
    threads = f"; {counted(step.positions, 'thread')}" if TARGETS[kernel.target].threads else ""
    return f"{WHAT[step.role]} {extent}; {walks}{threads}"


def _interpret(kernel: KernelSpec, bound: Bound, arrays: dict[str, Array], values: Mapping[str, object]) -> None:
    from fusec.dispatch.interpret_launches import run_scan

    run_scan(kernel, bound, arrays, values)


def _effort(kernel: KernelSpec, bound: Bound) -> float:
    from fusec.dispatch.interpret_launches import scan_effort

    return scan_effort(kernel, bound)


SCAN = Kind(
    name="scan",
    along_axes=True,
    keeps_shape=True,
    overlap="stage outputs",
    bind=bind,
    generate=pipeline.generate,
    program=pipeline.program_of,
    interpret=_interpret,
    effort=_effort,
    describe=_describe,
    canonical=canonical,
    check=check,
    grain=_grain,
    machine=lambda threads: machine_of(threads),  # looked up at each call: tests put other machines there
    fitted=_fitted,
    on_device=_on_device,
)
