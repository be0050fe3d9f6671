"""What fusec makes of a reduction, to be read: the texts of its kernels, and a report of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from fusec.arguments.layouts import Shape
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel, Step
from fusec.base.records import replace
from fusec.codegen import TARGETS
from fusec.compiler import pipeline, texts
from fusec.compiler import reduction_pipeline as stages
from fusec.dispatch.bind import Axis, Bound, Given, bind
from fusec.dispatch.explain import FP, Explanation
from fusec.errors.arguments import UnknownScalar
from fusec.ir.loops import GROUP
from fusec.ir.reductions import ROUNDS
from fusec.kinds.reduction import Phase, dense

if TYPE_CHECKING:
    from fusec.dispatch.planned_reduction import Reducing
    from fusec.ir.loops import Program

SHOWN = (1_000_000,)  # the shape of the arrays if nobody says
STEPS = {Step.ZERO: "repeated", Step.UNIT: "contiguous", Step.ANY: "strided"}


def canonical(kernel: Reducing, types: Mapping[str, object], shape: Shape, axis: Axis, scalars: Sequence[str]) -> Bound:
    """What a call with contiguous arrays of a shape would be; raw ones have one axis.

    scalars: inputs passed by value. Raises TypesIncomplete, UnknownScalar, and what a call raises for its axes.
    """
    names = [param.name for param in kernel.in_params]
    for name in scalars:
        if name not in names:
            raise UnknownScalar(kernel.name, name, ", ".join(names)).at()
    bound = kernel.signature.bind_names(types)

    def shown(taken: tuple[str, ...]) -> Bound:
        inputs = {
            param.name: dense((prod(shape),) if param.raw else shape, bound[param.name])
            for param in kernel.in_params
            if param.name not in taken
        }
        return bind(kernel, Given(inputs, frozenset(taken), None, None, axis, keepdims=False), bound)

    return pipeline.by_value(names, scalars, shown)


def text_of(kernel: Reducing, bound: Bound, target: str) -> str:
    """The text of all kernels of a call."""
    return texts.joined(
        target, lambda: kernels_of(kernel, bound, target), lambda: [_ir(kernel, bound, each) for each in bound.phases]
    )


def kernels_of(kernel: Reducing, bound: Bound, target: str) -> list[Kernel]:
    """The kernels of all phases in order, equal ones once, each with a name of its own."""
    seen: dict[object, tuple[Phase, int]] = {}
    counts: dict[str, int] = {}
    for phase in bound.phases:
        kind = (phase.role, phase.axis, phase.threads_layout if TARGETS[target].threads else phase.layout)
        if kind not in seen:
            counts[phase.role] = counts.get(phase.role, 0) + 1
            seen[kind] = phase, counts[phase.role]
    return [stages.generate(kernel.definition, bound.request, phase, target, number) for phase, number in seen.values()]


def _ir(kernel: Reducing, bound: Bound, phase: Phase) -> Program:
    """A phase as a program over chunks, as targets of many threads get it."""
    return stages.threaded(stages.prepared(kernel.definition, bound.request, phase), phase)


# --- reports -------------------------------------------------------------------------------------------------------


def explain(kernel: Reducing, bound: Bound, compiled: Sequence[Kernel]) -> Explanation:
    """Describe a call. compiled: the kernels of its phases, in order."""
    moved = sum(_bytes_of(bound, phase) for phase in bound.phases)
    named = zip(bound.phases, compiled, strict=True)
    lines = [
        ("types", ", ".join(f"{name}: {dtype}" for name, dtype in bound.types.items())),
        ("by value", ", ".join(sorted(bound.request.scalars)) or "none"),
        ("reduces", f"{bound.shape} to {bound.kept}: {bound.count:,} elements make a total"),
        *((f"kernel {at}", _phase(phase, each)) for at, (phase, each) in enumerate(named, 1)),
        ("bytes moved", f"{moved:,}"),
        ("fp", FP[kernel.fp]),
    ]
    if not bound.phases:
        lines.append(("kernels", "none: there is nothing to combine"))
    return Explanation(str(kernel.signature), tuple(lines), moved)


def _phase(phase: Phase, kernel: Kernel) -> str:
    """What one kernel does, and in which order."""
    extent, totals = phase.extents[phase.axis], phase.positions // phase.chunks
    if phase.is_last:
        order = f"chunks of up to {ROUNDS} elements for each accumulator, which then meet by halves"
    else:
        order = f"chunks of up to {ROUNDS}, one element after the other"
    walks = "; ".join(f"'{name}' {STEPS[row[-1]]}" for name, row in phase.layout.steps)
    place = "along the innermost axis" if phase.is_last else f"along axis {phase.axis} of {len(phase.extents)}"
    threads = ""
    if TARGETS[kernel.target].threads:
        threads = f"; {prod(phase.threads):,} threads{f' in groups of {GROUP}' if kernel.group > 1 else ''}"
    counts = f"{extent:,} elements {place}, {phase.chunks:,} chunk{'s' * (phase.chunks > 1)} for each of {totals:,}"
    return f"{counts}; {order}; {walks}{threads}"


def _bytes_of(bound: Bound, phase: Phase) -> int:
    """Bytes that a kernel reads and writes, every element once."""
    dtypes: dict[str, DType] = dict(bound.types)
    for stored, given, dtype in bound.partials:
        dtypes |= {stored: dtype, given: dtype}
    written = {stored for stored, _, _ in bound.partials}
    total = 0
    for name, strides, _ in phase.operands:
        once = name in written or (name in bound.types and strides[phase.axis] == 0)
        extents = phase.space if once else phase.extents
        count = prod(extent for extent, stride in zip(extents, strides, strict=True) if stride)
        total += count * (dtypes[name].nbytes if name in dtypes else 1)  # a mask has a byte for each
    return total + sum(view.size * view.dtype.nbytes for view in bound.raw.values())


def in_mode(bound: Bound, fp: str | None) -> Bound:
    """The same in another floating-point mode."""
    return bound if fp is None else replace(bound, request=replace(bound.request, fp=pipeline.check_fp(fp)))
