"""The readable form of a reduction or a scan: the texts of its kernels, and a report of a call."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fusec.arguments.signature import types_named
from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import Fp, Kernel
from fusec.base.kernel_abi import Step as Stride
from fusec.base.records import dataclass, replace
from fusec.codegen import TARGETS, target_of
from fusec.compiler import pipeline, reduction_pipeline, scan_pipeline, texts
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch.axis_spec import Along, AxisSpec, Bound, Given, Launch
from fusec.dispatch.explain import FP, Explanation
from fusec.dispatch.scans import planned
from fusec.dispatch.shown import Showing
from fusec.errors.arguments import UnknownScalar
from fusec.ir.loops import GROUP, Program
from fusec.ir.reductions import ROUNDS
from fusec.ir.scans import chunk_of
from fusec.kinds.reduction import Phase, dense
from fusec.kinds.scan import MANY_THREADS, Machine, Step

SHOWN = (1_000_000,)  # the shape of the arrays if nobody says
STRIDES = {Stride.ZERO: "repeated", Stride.UNIT: "contiguous", Stride.ANY: "strided"}
ALONE = Machine(1, 1, 1)  # the shortest texts: one kernel whatever comes
WHAT = {
    "whole": "scans", "totals": "computes the totals of chunks of", "advance": "scans",
    "results": "computes results from scanned totals and",
}  # fmt: skip


def canonical(kernel: AxisSpec, asked: Showing) -> Bound:
    """The plan of a call with contiguous arrays of a shape; raw ones have one axis.

    A scan for a CPU is one kernel, whatever its threads. Raises TypesIncomplete, UnknownScalar, and what a call raises
    for its axes.
    """
    names = [param.name for param in kernel.in_params]
    for name in asked.scalars:
        if name not in names:
            raise UnknownScalar(kernel.name, name, ", ".join(names)).at()
    bound = kernel.signature.bind_names(types_named(asked.types))
    shape = SHOWN if asked.shape is None else asked.shape
    axis = -1 if asked.axis is None and kernel.kind.keeps_shape else asked.axis

    def shown(taken: tuple[str, ...]) -> Bound:
        inputs = {
            param.name: dense((prod(shape),) if param.raw else shape, bound[param.name])
            for param in kernel.in_params
            if param.name not in taken
        }
        given = Given(inputs, frozenset(taken), None, None, Along(axis, reverse=asked.reverse))
        return kernel.kind.bind(kernel, given, machine_of(asked.target), bound)

    return pipeline.by_value(names, asked.scalars, shown)


def machine_of(target: str) -> Machine:
    """What the kernels that are shown for a target keep busy."""
    return MANY_THREADS if target_of(target).threads else ALONE


@dataclass(frozen=True)
class AlongAxes:
    """The kernels of a call of a kernel along axes."""

    kernel: AxisSpec
    bound: Bound

    def kernels(self, target: str) -> list[Kernel]:
        """All, each with its own name."""
        return kernels_of(self.kernel, self.bound, target)

    def text(self, target: str) -> str:
        """The text of all of them."""
        return text_of(self.kernel, self.bound, target)

    def in_mode(self, fp: Fp | None) -> AlongAxes:
        """The same in another floating-point mode; None for its own."""
        if fp is None:
            return self
        return replace(self, bound=replace(self.bound, request=replace(self.bound.request, fp=fp)))


def text_of(kernel: AxisSpec, bound: Bound, target: str) -> str:
    """The text of all kernels of a call; those for many threads, whatever the call ran on."""
    if target_of(target).threads and bound.walk is not None:
        bound = planned(kernel, bound, MANY_THREADS)
    distinct = {_code_of(launch, target): launch for launch in reversed(bound.launches)}
    shown = [distinct[code] for code in dict.fromkeys(_code_of(launch, target) for launch in bound.launches)]
    return texts.joined(
        target, lambda: kernels_of(kernel, bound, target), lambda: [_ir(kernel, bound, launch) for launch in shown]
    )


def kernels_of(kernel: AxisSpec, bound: Bound, target: str) -> list[Kernel]:
    """The kernels of all launches in order, equal ones once, each with its own name."""
    launches = bound.launches if target_of(target).threads else bound.chain or bound.launches
    distinct = {_code_of(launch, target): launch for launch in reversed(launches)}
    counts: dict[str, int] = {}
    found = []
    for code in dict.fromkeys(_code_of(launch, target) for launch in launches):
        made = kernel.kind.generate(kernel, bound.request, distinct[code], target, 1)
        counts[made.name] = counts.get(made.name, 0) + 1
        if (number := counts[made.name]) > 1:
            made = kernel.kind.generate(kernel, bound.request, distinct[code], target, number)
        found.append(made)
    return found


def _code_of(launch: Launch, target: str) -> object:
    """What the code of a launch depends on."""
    if isinstance(launch, Phase) and not target_of(target).threads:
        return launch.role, launch.axis, launch.layout
    return launch.kind


def _ir(kernel: AxisSpec, bound: Bound, launch: Launch) -> Program:
    """A launch as a program for targets of many threads."""
    definition, request = kernel.definition, bound.request
    if isinstance(launch, Phase):
        prepared = reduction_pipeline.prepared(definition, request, launch)
        return reduction_pipeline.threaded(prepared, launch)
    assert isinstance(launch, Step), "a step of a scan"
    assert isinstance(definition, ScanDefinition), "a scan"
    return scan_pipeline.program_of(definition, request, launch.form, on_device=True)


# --- reports -------------------------------------------------------------------------------------------------------


def explain(kernel: AxisSpec, bound: Bound, compiled: Sequence[Kernel]) -> Explanation:
    """Describe a call. compiled: its kernels, in order."""
    lines = [
        ("types", ", ".join(f"{name}: {dtype}" for name, dtype in bound.types.items())),
        ("by value", ", ".join(each.name for each in kernel.in_params if each.name in bound.request.scalars) or "none"),
    ]
    moved, more = (_scan if kernel.kind.keeps_shape else _reduction)(bound, compiled)
    lines += [*more, ("fp", FP[kernel.fp])]
    if not bound.launches and not kernel.kind.keeps_shape:
        lines.append(("kernels", "none: there is nothing to combine"))
    return Explanation(str(kernel.signature), tuple(lines), moved)


Lines = list[tuple[str, str]]


def _reduction(bound: Bound, compiled: Sequence[Kernel]) -> tuple[int, Lines]:
    """The bytes that a reduction moves, and what it does."""
    phases = [launch for launch in bound.launches if isinstance(launch, Phase)]
    moved = sum(_bytes_of(bound, phase) for phase in phases)
    lines = [("reduces", f"{bound.shape} to {bound.kept}: {counted(bound.count, 'element')} for each total")]
    named = zip(phases, compiled, strict=True)
    lines += [(f"kernel {at}", _phase(phase, each)) for at, (phase, each) in enumerate(named, 1)]
    lines.append(("bytes moved", f"{moved:,}"))
    return moved, lines


def _phase(phase: Phase, kernel: Kernel) -> str:
    """What one kernel does, and in which order."""
    extent, totals = phase.extents[phase.axis], phase.positions // phase.chunks
    if phase.is_last:
        order = f"chunks of up to {ROUNDS} elements for each accumulator; accumulators are then combined by halves"
    else:
        order = f"chunks of up to {ROUNDS}, one element after the other"
    walks = "; ".join(f"'{name}' {STRIDES[row[-1]]}" for name, row in phase.layout.steps)
    place = "along the innermost axis" if phase.is_last else f"along axis {phase.axis} of {len(phase.extents)}"
    threads = ""
    if TARGETS[kernel.target].threads:
        threads = f"; {counted(prod(phase.threads), 'thread')}{f' in groups of {GROUP}' if kernel.group > 1 else ''}"
    counts = f"{counted(extent, 'element')} {place}, {counted(phase.chunks, 'chunk')} for each of {totals:,}"
    return f"{counts}; {order}; {walks}{threads}"


def _bytes_of(bound: Bound, phase: Phase) -> int:
    """Bytes that a kernel reads and writes, every element once."""
    between = {known: dtype for launch in bound.launches for known, _, dtype in launch.made}
    written = {known for known, _, _ in phase.made}
    total = 0
    for (name, strides, _), (_, known) in zip(phase.operands, phase.arrays, strict=True):
        once = known in written or (name in bound.types and strides[phase.axis] == 0)
        extents = phase.space if once else phase.extents
        count = prod(extent for extent, stride in zip(extents, strides, strict=True) if stride)
        dtype = bound.types.get(name) or between.get(known)
        total += count * (dtype.nbytes if dtype else 1)  # a mask has a byte for each
    return total + sum(view.size * view.dtype.nbytes for view in bound.raw.values())


def _scan(bound: Bound, compiled: Sequence[Kernel]) -> tuple[int, Lines]:
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
        lines += [(f"kernel {at}", _step(step, each)) for at, (step, each) in enumerate(pairs, 1)]
    lines.append(("bytes moved", f"{moved:,}, if everything is read and written once"))
    return moved, lines


def _step(step: Launch, kernel: Kernel) -> str:
    """What one kernel does."""
    assert isinstance(step, Step), "a step of a scan"
    arrays = [(name, row) for name, row in step.form.layout.steps if not name.startswith("_")]
    walks = "; ".join(f"'{name}' {STRIDES[row[-1]]}" for name, row in arrays) or "between the others"
    extent = counted(step.extent, "total" if step.form.of_totals else "element")
    threads = f"; {counted(step.positions, 'thread')}" if TARGETS[kernel.target].threads else ""
    return f"{WHAT[step.form.role]} {extent}; {walks}{threads}"
