"""Products of integers and bools on devices: a reduction over the axes that both operands have and the result has not.

Integers wrap as on the CPU, so that the order of additions does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

from fusec.base import dtypes, locks
from fusec.fusion.devices.recipes import KernelStage, Part, Recipe, RecipeBuilder
from fusec.fusion.functions.matrix_products import Label, labels_axes, terms_of
from fusec.fusion.trace.trace_values import LibraryCall

ROWS = frozenset((dtypes.BOOL, *dtypes.INTEGERS))


def LIBRARY() -> None:  # noqa: N802 - as the other modules of recipes name theirs
    """No library is needed."""


def computes(call: LibraryCall) -> bool:
    """Whether a call is such a product."""
    return labels_axes(call) and call.buffers[0].dtype in ROWS


@cache
def _kernel(is_truth: bool) -> Any:
    with locks.lock:
        from fusec.kernels.reduction_kernel import ReductionKernel

    if is_truth:
        return ReductionKernel("T x, U y", "bool z", "bool(x) && bool(y)", "a || b", "z = a", "false", "any_product")
    return ReductionKernel("T x, U y", "V z", "V(x) * V(y)", "a + b", "z = a", "0", "integer_product")


def recipe(call: LibraryCall, forms: Sequence[Any], device: int) -> Recipe:
    """How a product is computed. forms: of the operands and the result."""
    del device
    builder = RecipeBuilder(forms)
    *operands, result = map(builder.whole, range(len(forms)))
    terms = terms_of(call, *[len(each.form.shape) for each in operands])
    extents: dict[Label, int] = {}
    for labels, each in zip(terms.labels, (*operands, result), strict=True):
        for label, extent in zip(labels, each.form.shape, strict=True):
            extents[label] = extent if extents.get(label, 1) == 1 else extents[label]
    order = [*terms.result, *(label for label in extents if label not in terms.result)]
    shape = tuple([extents[label] for label in order])
    if not prod(result.form.shape):
        return builder.made()
    if not prod(shape):
        builder.clear(result)
        return builder.made()
    spread = [_spread(each, labels, order, shape) for labels, each in zip(terms.labels, operands, strict=False)]
    kernel = _kernel(result.form.row == dtypes.BOOL)
    axes = tuple(range(len(terms.result), len(order)))
    builder.stages.append(KernelStage(kernel, (*spread, result), axes))
    return builder.made()


def _spread(part: Part, labels: Sequence[Label], order: Sequence[Label], shape: tuple[int, ...]) -> Part:
    """An operand with all axes in order; it is the same along those that it has not."""
    steps = dict.fromkeys(order, 0)
    for label, extent, step in zip(labels, part.form.shape, part.form.strides, strict=True):
        steps[label] += step if extent > 1 else 0
    return part._replace(form=part.form._replace(shape=shape, strides=tuple(steps.values())))
