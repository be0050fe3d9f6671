"""How a CPU walks a reduction: few columns become vectors of two axes, rows that share elements take turns.

Only the order of positions changes. That of operations, on which the bits depend, is that of the phase.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fusec.arguments import layouts
from fusec.arguments.layouts import LONG
from fusec.base.kernel_abi import Step
from fusec.base.records import replace
from fusec.ir.reductions import ROUNDS, SHORT
from fusec.kinds.reduction import Phase

LINE = 64  # bytes of a row that fills vectors by itself
NEAR = 1 << 18  # bytes of rows that a second cache holds beside others


def in_vectors(phase: Phase, inputs: Collection[str], outputs: Collection[str]) -> Phase:
    """The phase with columns that fill vectors. inputs, outputs: the arrays that it reads and writes along its axis.

    Rows stay as they are if all arrays repeat them, or if a cache line or more of their elements lies side by side.
    """
    axis, last = phase.axis, len(phase.extents) - 1
    if phase.is_last or phase.layout.c_order or phase.extents[last] > SHORT:
        return phase
    steps = [row for name, row in phase.layout.steps if name in inputs]
    rows = [strides for name, strides, _ in phase.operands if name in inputs]
    has_gaps = any(row[last] is Step.ANY for row in steps)
    is_short = 0 < max((strides[last] for strides in rows), default=0) * phase.extents[last] < LINE
    most = ROUNDS if outputs else SHORT  # elements that are worth a tile: outputs are made in a second walk over them
    is_near = axis < last - 1 and phase.extents[last - 1] >= LONG and phase.extents[axis] <= most
    if is_near and (has_gaps or is_short):
        return _in_strips(phase, {*inputs, *outputs})
    return phase


def _in_strips(phase: Phase, walked: Collection[str]) -> Phase:
    """The phase with its two last axes walked as one, if totals allow it. walked: the arrays along the reduced axis."""
    steps, inside = [], phase.extents[-1]
    for (name, (*outer, long, short)), (_, strides, _) in zip(phase.layout.steps, phase.operands, strict=True):
        over = layouts.step_over(strides[-2], strides[-1] * inside, long)
        if name not in walked and (over, short) != (Step.DENSE, Step.UNIT):
            return phase
        steps.append((name, (*outer, over, short)))
    return replace(phase, layout=replace(phase.layout, steps=tuple(steps), strips=True))


def by_chunks(phase: Phase, inputs: Mapping[str, int]) -> Phase:
    """A phase whose rows take turns, chunk by chunk, if one cache does not hold all that several of them read.

    inputs: the arrays that are read along the reduced axis, with the bytes of an element.
    """
    if not phase.is_last or phase.chunks == 1 or phase.layout.c_order:
        return phase
    rows = [strides for name, strides, _ in phase.operands if name in inputs]
    is_shared = any(
        extent > 1 and not stride for row in rows for extent, stride in zip(phase.extents[:-1], row, strict=False)
    )
    if is_shared and phase.extent * sum(inputs.values()) > NEAR:
        return replace(phase, layout=replace(phase.layout, by_chunks=True))
    return phase
