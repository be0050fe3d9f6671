"""The oracle of reductions: runs one in NumPy in the order that `fusec.ir.reductions` defines, see Note [Order].

Stages run as programs over all elements of a chunk at once; what they accumulate is combined lane by lane and chunk by
chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.base.records import dataclass, field
from fusec.ir.expr import Struct
from fusec.ir.interpret import interpret, two_place, whole_value
from fusec.ir.loops import ArrayParam, Declare, Program, ScalarParam
from fusec.ir.reductions import (
    AXIS,
    COVERED,
    KEPT,
    Accumulator,
    OneAxis,
    ReductionIR,
    chunk_of,
    declared,
    finish_program,
    stage_program,
    then_program,
)

Array = NDArray[Any]


def interpret_reduction(
    reduction: ReductionIR, arrays: Mapping[str, Array], scalars: Mapping[str, object], along: OneAxis
) -> None:
    """Reduce an axis, writing outputs in place; it may have any number of chunks.

    arrays: by parameter name; those of stages broadcast to the walk, others to the walk without the axis.
    Raises InterpreterError as `interpret` does, and ValueError if the axis has no element.
    """
    if along.extent == 0:
        raise ValueError("an axis without elements has no total")
    walk = ReductionRun(reduction, arrays, {**scalars, AXIS: along.extent}, along)
    chunk = chunk_of(reduction.lanes, along.walks_last)
    assert reduction.total is not None or along.extent <= chunk, "what does not combine has one chunk"
    values = [walk.chunk(start, min(start + chunk, along.extent)) for start in range(0, along.extent, chunk)]
    results = walk.left
    if reduction.total is not None:
        whole = fold(np.stack(values, -1), reduction.total, reduction, is_last=along.walks_last)
        results = parts_by_name(whole, reduction.total)
    walk.run(finish_program(reduction), results, along.rest, dict(arrays))


def fold(values: Array, accumulator: Accumulator, reduction: ReductionIR, *, is_last: bool) -> Array:
    """The combination of the last axis of `values`, chunk after chunk until one value is left."""
    chunk = chunk_of(reduction.lanes, is_last)
    while values.shape[-1] > 1:
        parts = [
            _fold_chunk(values[..., start : start + chunk], accumulator, reduction, is_last)
            for start in range(0, values.shape[-1], chunk)
        ]
        values = np.stack(parts, -1)
    return values[..., 0]


def _fold_chunk(values: Array, accumulator: Accumulator, reduction: ReductionIR, is_last: bool) -> Array:
    """Lanes take every so many-th element, one after the other; then halves of the lanes meet."""
    combine = two_place(accumulator.combine, reduction.functions)

    def joined(left: Array, right: Array) -> Array:
        """Combine with as many elements as there are on the right; the others stay."""
        width = right.shape[-1]
        if width == left.shape[-1]:
            return combine(left, right)
        return np.concatenate([combine(left[..., :width], right), left[..., width:]], -1) if width else left

    lanes = reduction.lanes if is_last else 1
    held = values[..., :lanes]
    for start in range(lanes, values.shape[-1], lanes):
        held = joined(held, values[..., start : start + lanes])
    half = lanes // 2
    while half:
        held = joined(held[..., :half], held[..., half:])
        half //= 2
    return held[..., 0]


@dataclass
class ReductionRun:
    """One reduction over given arrays."""

    reduction: ReductionIR
    arrays: Mapping[str, Array]
    scalars: Mapping[str, object]
    along: OneAxis
    left: dict[str, Array] = field(default_factory=dict)  # what the stages over the last chunk have left

    def chunk(self, start: int, stop: int) -> Array:
        """All stages over some elements of the axis; returns the value of the total."""
        axis, shape, reduction = self.along.axis, self.along.shape, self.reduction
        here, kept = self.along.with_extent(stop - start), self.along.rest
        given = {
            param.name: array if param.raw else _along(array, shape)[self.along.part(slice(start, stop))]
            for param in reduction.arrays
            for array in [self.arrays[param.name]]
            if param.raw or _broadcasts(array, shape)
        }
        results: dict[str, Array] = {}
        value = np.zeros(kept)
        for number, stage in enumerate(reduction.stages):
            along = {name: np.expand_dims(each, axis) for name, each in results.items()}
            found = self.run(stage_program(reduction, number), along, here, given)
            if stage.accumulator is not None:
                elements = np.moveaxis(whole_value(found, stage.accumulator.type), axis, -1)
                total = fold(elements, stage.accumulator, reduction, is_last=self.along.walks_last)
                results |= parts_by_name(total, stage.accumulator)
            covered = {COVERED: np.array(stop - start, np.int64)}
            found = self.run(then_program(reduction, number), results | covered, kept, dict(self.arrays))
            names = [name for name, _ in declared(stage.then)]
            results |= dict(zip(names, found, strict=False))
            if number == len(reduction.stages) - 1 and reduction.total is not None:
                value = whole_value(found[len(names) :], reduction.total.type)
        self.left = results
        return value

    def run(
        self, program: Program, results: Mapping[str, Array], shape: tuple[int, ...], arrays: dict[str, Array]
    ) -> list[Array]:
        """Run a part of the reduction, with arrays for results of earlier parts; return the values that it keeps."""
        taken = [param for param in program.params if isinstance(param, ScalarParam) and param.name in results]
        params = [param for param in program.params if param not in taken]
        inputs = [ArrayParam(f"{param.name}_of", param.dtype) for param in taken]
        loads = [Declare(param.name, param.dtype, each.load()) for param, each in zip(taken, inputs, strict=True)]
        params += inputs
        changed = Program(program.name, tuple(params), (*loads, *program.body), program.functions, program.source)
        kept = [param for param in program.arrays if param.name.startswith(KEPT)]
        outputs = {param.name: np.zeros(shape, param.dtype.numpy) for param in kept}
        given = {f"{param.name}_of": np.broadcast_to(results[param.name], shape) for param in taken}
        scalars = {param.name: self.scalars[param.name] for param in params if isinstance(param, ScalarParam)}
        own = {param.name: arrays[param.name] for param in program.arrays if param.name in arrays}
        interpret(changed, {**own, **outputs, **given}, scalars, shape)
        return list(outputs.values())


def _broadcasts(array: Array, shape: tuple[int, ...]) -> bool:
    """Whether an array lies along the walk; an output of the totals need not."""
    trailing = zip(reversed(array.shape), reversed(shape), strict=False)
    return array.ndim <= len(shape) and all(extent in (1, limit) for extent, limit in trailing)


def _along(array: Array, shape: tuple[int, ...]) -> Array:
    """The array over the walk; one of the walk's own shape stays writable."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def parts_by_name(value: Array, accumulator: Accumulator) -> dict[str, Array]:
    """The parts of an accumulated value, by the names of their locals."""
    if isinstance(accumulator.type, Struct):
        names = [name for name, _ in accumulator.type.fields]
        return {part: value[name] for (part, _), name in zip(accumulator.parts, names, strict=True)}
    return {accumulator.name: value}
