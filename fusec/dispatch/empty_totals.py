"""Totals of no elements, which the host computes in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusec.arguments.operands import Array
from fusec.base.rounding_mode import default_rounding
from fusec.compiler import reduction_pipeline as pipeline
from fusec.dispatch.spec import Bound, KernelSpec
from fusec.ir.loops import Query, ScalarParam, Stmt
from fusec.ir.walk import expressions, roots_of


def asks_for_positions(finish: Sequence[Stmt]) -> bool:
    """Whether the work on a total depends on its position."""
    roots = roots_of(finish)
    return any(isinstance(each, Query) and each.what == "coordinate" for each in expressions(roots))


@default_rounding()
def empty_totals(
    kernel: KernelSpec, bound: Bound, values: Mapping[str, object], held: Sequence[Array] | None = None
) -> list[Array]:
    """The outputs for one total of no elements. values: of the inputs that are numbers.

    held: what the outputs hold, without axes kept for their place; then the outputs for all totals.
    """
    from fusec.ir.interpret import interpret
    from fusec.passes.expand import expand

    _, empty = pipeline.lower(kernel.definition, bound.request)
    shape = () if held is None else bound.kept
    if asks_for_positions(empty.body):  # then axes are those of the walk, and totals differ
        shape = tuple(1 if axis in bound.request.reduced else extent for axis, extent in enumerate(bound.shape))
    arrays = {param.name: np.zeros(shape, bound.types[param.name].numpy) for param in kernel.out_params}
    for array, each in zip(arrays.values(), held or (), strict=False):
        array[...] = each.reshape(shape)
    numbers = {**values, **bound.sizes}
    scalars = {param.name: numbers[param.name] for param in empty.params if isinstance(param, ScalarParam)}
    interpret(expand(empty), arrays, scalars, shape)
    return [each.reshape(bound.kept) if each.shape else each for each in arrays.values()]
