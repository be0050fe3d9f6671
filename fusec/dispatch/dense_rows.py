"""The facts of a call that reduces dense rows, derived from those of a call with other extents.

The facts of one kernel over dense rows follow from dtypes, axes, and the extents that are 1, as long as one kernel
takes every row and none is short. So the code and the order of operations are the same, and only extents and strides
are computed again.
"""

from __future__ import annotations

from math import prod
from typing import Any

from fusec.arguments.layouts import WIDE, Shape, View
from fusec.base.records import dataclass, replace
from fusec.dispatch.spec import Bound, Given, KernelSpec
from fusec.ir.reductions import REDUCED, SHORT, TOTALS
from fusec.kinds.reduction import Phase

WIDEST = 16  # bytes of an element
WHOLE = (True,)


def kind_of(kernel: KernelSpec, given: Given) -> object:
    """What calls over dense rows have in common; None for other calls."""
    if kernel.uses_index or given.mask is not None:
        return None
    walked: Shape | None = None
    is_whole = False
    found: list[object] = [given.numbers, given.options.key, given.outputs is None]
    for name, view in given.inputs.items():
        varies = _varies(view)
        if varies is None or (name in kernel.once and not all(varies)):
            return None
        if name not in kernel.once:
            walked = view.shape if walked is None else walked
            if view.shape != walked:
                return None
            is_whole = is_whole or all(varies)
        found.append((name, view.dtype, varies))
    for view in given.outputs or ():
        if not all(_varies(view) or (False,)):
            return None
        found.append(view.dtype)
    if not walked or 0 in walked or not is_whole:  # which decides on the order of axes
        return None
    return (*found, tuple([extent == 1 for extent in walked]))


def _varies(view: View) -> tuple[bool, ...] | None:
    """Whether elements lie apart along each axis that has several, the last one first; None if they are not dense."""
    step = view.dtype.nbytes
    if view.pointer % step:
        return None
    found: tuple[bool, ...] = WHOLE
    for extent, stride in zip(view.shape[::-1], view.strides[::-1], strict=True):
        if extent != 1:
            if stride == step:
                step *= extent
            elif stride:
                return None
            found = (*found, stride != 0)
    return found


@dataclass(eq=False)
class DenseRows:
    """What was found for a call whose rows one kernel walks.

    axes: the reduced axes. walked: the axes of the call that make up each axis of the walk. longest: the most elements
    of a row.
    """

    bound: Bound
    axes: tuple[int, ...]
    walked: tuple[tuple[int, ...], ...]
    longest: int

    def bound_of(self, kernel: KernelSpec, given: Given) -> Bound | None:
        """The facts of a call of the same kind; None if its rows are of another kind."""
        axes = self.axes
        shape = next(view.shape for name, view in given.inputs.items() if name not in kernel.once)
        extents = tuple([prod([shape[axis] for axis in each]) for each in self.walked])
        if not SHORT < extents[-1] <= self.longest or prod(extents) * WIDEST >= WIDE:
            return None
        kept = tuple([extent for axis, extent in enumerate(shape) if axis not in axes])
        with_axes = tuple([1 if axis in axes else extent for axis, extent in enumerate(shape)])
        result = with_axes if given.options.keepdims else kept
        shapes = tuple([shape if param.name in kernel.elements else result for param in kernel.out_params])
        if given.outputs is not None and tuple([each.shape for each in given.outputs]) != shapes:
            return None
        if any(given.inputs[name].shape not in (kept, with_axes) for name in kernel.once if name in given.inputs):
            return None
        count = extents[-1]
        return replace(
            self.bound, shape=shape, shapes=shapes, launches=(self._launch(extents),), kept=kept, count=count,
            sizes={REDUCED: count, TOTALS: prod(kept)},
        )  # fmt: skip

    def _launch(self, extents: Shape) -> Phase:
        """The kernel over other extents; what each operand varies along, it is dense along."""
        before = self.bound.launches[0]
        assert isinstance(before, Phase), "it is one of a reduction"
        operands = []
        for name, strides, _ in before.operands:
            step = self.bound.types[name].nbytes
            found = []
            for extent, stride in zip(extents[::-1], strides[::-1], strict=True):
                found.append(step if stride else 0)
                step *= extent if stride else 1
            operands.append((name, tuple(found[::-1]), 0))
        return replace(before, extents=extents, operands=tuple(operands), stored=(*extents[:-1], 1))


def dense_rows(kernel: KernelSpec, given: Given, bound: Bound, axes: tuple[int, ...], longest: int) -> DenseRows | None:
    """What makes the facts of calls of the same kind, if it makes these. longest: see `DenseRows`."""
    phase: Any = bound.launches[0] if len(bound.launches) == 1 else None
    if phase is None or phase.role != "whole" or not phase.is_last or bound.raw:
        return None
    if phase.row.is_narrow:  # so that alignment makes a difference
        return None
    walked: list[tuple[int, ...]] = []
    for axis, extent in enumerate(bound.shape):
        if extent == 1:
            continue
        if walked and (walked[-1][-1] in axes) == (axis in axes):
            walked[-1] = (*walked[-1], axis)
        else:
            walked.append((axis,))
    if len(walked) != len(phase.extents):
        return None
    found = DenseRows(bound, axes, tuple(walked), longest)
    return found if found.bound_of(kernel, given) == bound else None
