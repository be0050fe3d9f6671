"""What fusec makes of a scan, to be read: the texts of its kernels, and a report of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from fusec.arguments.layouts import Shape
from fusec.base.kernel_abi import Kernel
from fusec.base.records import replace
from fusec.codegen import DEFAULT_TARGET, TARGETS, target_of
from fusec.compiler import pipeline, texts
from fusec.compiler import scan_pipeline as stages
from fusec.dispatch.explain import FP, Explanation
from fusec.dispatch.explain_reduction import STEPS
from fusec.dispatch.host_scan import Bound, bind, planned
from fusec.errors.arguments import UnknownScalar
from fusec.ir.loops import GROUP
from fusec.ir.scans import chunk_of
from fusec.kinds.reduction import dense
from fusec.kinds.scan import MANY_THREADS, Machine, Step

if TYPE_CHECKING:
    from fusec.dispatch.planned_scan import Scanning

ALONE = Machine(1, 1, 1)  # the shortest texts: one kernel whatever comes
WHAT = {
    "whole": "scans", "totals": "makes the totals of chunks of", "results": "makes results from scanned totals and",
    "advance": "scans",
}  # fmt: skip


def canonical(
    kernel: Scanning,
    types: Mapping[str, object],
    shape: Shape,
    axis: object,
    scalars: Sequence[str],
    *,
    reverse: bool = False,
    target: str = DEFAULT_TARGET,
) -> Bound:
    """What a call with contiguous arrays of a shape would be; raw ones have one axis.

    scalars: inputs passed by value. target: decides on how many kernels there are; one for a CPU, whatever its threads.
    Raises TypesIncomplete, UnknownScalar, and what a call raises for its axis.
    """
    names = [param.name for param in kernel.in_params]
    for name in scalars:
        if name not in names:
            raise UnknownScalar(kernel.name, name, ", ".join(names)).at()
    bound = kernel.signature.bind_names(types)
    inputs = {
        param.name: dense((prod(shape),) if param.raw else shape, bound[param.name])
        for param in kernel.in_params
        if param.name not in scalars
    }
    outputs = [dense(shape, bound[param.name]) for param in kernel.out_params]
    machine = MANY_THREADS if target_of(target).threads else ALONE
    return bind(kernel, inputs, frozenset(scalars), outputs, axis, reverse, machine)


def text_of(kernel: Scanning, bound: Bound, target: str) -> str:
    """The text of all kernels of a call; those for many threads whatever the call ran on."""
    if target_of(target).threads and bound.walk is not None:
        bound = planned(kernel, bound, MANY_THREADS)
    forms = dict.fromkeys(step.form for step in bound.steps)
    return texts.joined(
        target,
        lambda: kernels_of(kernel, bound, target),
        lambda: [stages.program_of(kernel.scan, bound.request, form, on_device=True) for form in forms],
    )


def kernels_of(kernel: Scanning, bound: Bound, target: str) -> list[Kernel]:
    """The kernels of all steps in order, equal ones once, each with a name of its own."""
    counts: dict[str, int] = {}
    found = []
    steps = bound.steps if target_of(target).threads else bound.chain or bound.steps
    for form in dict.fromkeys(step.form for step in steps):
        made = stages.generate(kernel.scan, bound.request, form, target)
        counts[made.name] = counts.get(made.name, 0) + 1
        number = counts[made.name]
        if number > 1:
            made = stages.generate(kernel.scan, bound.request, form, target, number)
        found.append(made)
    return found


# --- reports -------------------------------------------------------------------------------------------------------


def explain(kernel: Scanning, bound: Bound, compiled: Sequence[Kernel]) -> Explanation:
    """Describe a call. compiled: its kernels, in order."""
    walk = bound.walk
    moved = sum(view.size * view.dtype.nbytes for view in bound.raw.values())
    lines = [
        ("types", ", ".join(f"{name}: {dtype}" for name, dtype in bound.types.items())),
        ("by value", ", ".join(sorted(bound.request.scalars)) or "none"),
    ]
    if walk is None:
        lines.append(("kernels", "none: there is nothing to scan"))
    else:
        extents, is_last = walk.extents, walk.axis == len(walk.extents) - 1
        for _, view, row, _ in walk.operands:
            moved += view.dtype.nbytes * prod(extent for extent, step in zip(extents, row, strict=True) if step)
        place = "along the innermost axis" if is_last else f"along axis {walk.axis} of {len(extents)}"
        rows = prod(extents) // extents[walk.axis]
        times = "once" if rows == 1 else f"{rows:,} times"
        lines.append(("scans", f"{extents[walk.axis]:,} elements {place}, {times}"))
        how = f"groups of {GROUP} by doubling distances" if is_last else "one after the other"
        lines.append(("order", f"chunks of {chunk_of(is_last):,} elements, {how}; then their totals by the same rules"))
        if bound.chain:
            block = f"{GROUP * chunk_of(True):,} elements"
            lines.append(("a chain", f"threads run the kernels block by block, {block} that stay in a cache meanwhile"))
        pairs = zip(bound.chain or bound.steps, compiled, strict=True)
        lines += [(f"kernel {at}", _step(step, each)) for at, (step, each) in enumerate(pairs, 1)]
    lines += [("bytes moved", f"{moved:,}, if everything is read and written once"), ("fp", FP[kernel.fp])]
    return Explanation(str(kernel.signature), tuple(lines), moved)


def _step(step: Step, kernel: Kernel) -> str:
    """What one kernel does."""
    arrays = [(name, row) for name, row in step.form.layout.steps if not name.startswith("_")]
    walks = "; ".join(f"'{name}' {STEPS[row[-1]]}" for name, row in arrays) or "between the others"
    extents = "totals" if step.form.of_totals else "elements"
    threads = f"; {step.positions:,} threads" if TARGETS[kernel.target].threads else ""
    return f"{WHAT[step.form.role]} {step.extent:,} {extents}; {walks}{threads}"


def in_mode(bound: Bound, fp: str | None) -> Bound:
    """The same in another floating-point mode."""
    return bound if fp is None else replace(bound, request=replace(bound.request, fp=pipeline.check_fp(fp)))
