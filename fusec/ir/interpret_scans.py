"""The oracle of scans: runs one in NumPy in the order that `fusec.ir.scans` defines, see Note [Scan order]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.ir.interpret import interpret, two_place, whole_value
from fusec.ir.interpret_reductions import ReductionRun, parts_by_name
from fusec.ir.loops import GROUP
from fusec.ir.reductions import OneAxis, finish_program, stage_program
from fusec.ir.scans import ROWS, Scan, chunk_of, first_program

Array = NDArray[Any]
Combine = Callable[[Array, Array], Array]


def interpret_scan(scan: Scan, arrays: Mapping[str, Array], scalars: Mapping[str, object], along: OneAxis) -> None:
    """Scan an axis, writing outputs in place.

    arrays: by parameter name; those that are not raw broadcast to the walk, outputs have its shape.
    Raises InterpreterError as `interpret` does.
    """
    shape, axis = along.shape, along.axis
    if 0 in shape:
        return
    raw = {param.name for param in scan.arrays if param.raw}
    whole = {name: array if name in raw else np.broadcast_to(array, shape) for name, array in arrays.items()}
    whole |= {param.name: arrays[param.name] for param in scan.arrays if param.written}
    walk = ReductionRun(scan.reduction, whole, scalars, along)
    found = walk.run(stage_program(scan.reduction, 0), {}, shape, whole)
    elements = np.moveaxis(whole_value(found, scan.running.type), axis, -1)
    combine = two_place(scan.running.combine, scan.reduction.functions)
    totals = scanned(elements, combine, is_last=along.walks_last)
    totals = np.moveaxis(totals, -1, axis)

    def part(where: slice) -> dict[str, Array]:
        """What lies along the walk, at some positions of the axis."""
        return {name: array if name in raw else array[along.part(where)] for name, array in whole.items()}

    rest = shape
    if scan.exclusive:
        totals = totals[along.part(slice(None, -1))]
        rest = along.with_extent(along.extent - 1)
        interpret(first_program(scan), part(slice(0, 1)), {}, along.with_extent(1))
    if 0 not in rest:
        results = parts_by_name(totals, scan.total)
        walk.run(finish_program(scan.reduction), results, rest, part(slice(1 if scan.exclusive else 0, None)))


def scanned(values: Array, combine: Combine, *, is_last: bool) -> Array:
    """The running totals along the last axis of `values`."""
    count, chunk = values.shape[-1], chunk_of(is_last)
    chunks = -(-count // chunk)
    missing = np.repeat(values[..., -1:], chunks * chunk - count, -1)  # behind all others, so that nothing meets it
    padded = np.concatenate([values, missing], -1).reshape(*values.shape[:-1], chunks, chunk)
    inside = _in_groups(padded, combine) if is_last else _in_rows(padded, combine)
    if chunks > 1:
        prefixes = scanned(inside[..., :-1, -1], combine, is_last=is_last)[..., None]
        inside[..., 1:, :] = combine(np.broadcast_to(prefixes, inside[..., 1:, :].shape), inside[..., 1:, :])
    return inside.reshape(*values.shape[:-1], chunks * chunk)[..., :count]


def _in_rows(values: Array, combine: Combine) -> Array:
    """One element after the other."""
    made = values.copy()
    for at in range(1, ROWS):
        made[..., at] = combine(made[..., at - 1], made[..., at])
    return made


def _in_groups(values: Array, combine: Combine) -> Array:
    """Groups by doubling distances, one group after the other."""
    made = values.reshape(*values.shape[:-1], -1, GROUP).copy()
    distance = 1
    while distance < GROUP:
        made[..., distance:] = combine(made[..., :-distance].copy(), made[..., distance:])
        distance *= 2
    carry = made[..., 0, -1].copy()
    for group in range(1, made.shape[-2]):
        last = made[..., group, -1].copy()
        made[..., group, :] = combine(np.broadcast_to(carry[..., None], made[..., group, :].shape), made[..., group, :])
        carry = combine(carry, last)
    return made.reshape(values.shape)
