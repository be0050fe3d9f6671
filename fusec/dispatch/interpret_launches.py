"""Reductions and scans in the interpreter: the launches of a call in NumPy, with the bits of every target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.base.dtypes import INT64
from fusec.base.records import replace
from fusec.compiler import reduction_pipeline, scan_pipeline
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch.spec import Bound, KernelSpec
from fusec.ir.effort import STEP, body_effort, functions_effort
from fusec.ir.expr import Const, Expr, Pointer, const
from fusec.ir.interpret import single_op
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.interpret_scans import interpret_scan
from fusec.ir.loops import GROUP, ArrayParam, Element, Load, Query
from fusec.ir.reductions import OneAxis, ReductionIR, Stage, chunk_of
from fusec.ir.scans import ROWS
from fusec.ir.scans import chunk_of as scanned_at_once
from fusec.ir.walk import map_expressions, rewriter
from fusec.kinds.reduction import Phase

Array = NDArray[Any]
PLACE, TOTALS_PLACE = "_place", "_totals_place"  # and an axis: arrays of coordinates
PART, CALL = 200e-6, 20e-6  # seconds that a stage, and a call of what combines, take besides their statements

_prepared_scan = lru_cache(maxsize=64)(scan_pipeline.prepared)


def run_phases(kernel: KernelSpec, bound: Bound, memory: dict[str, Array], values: Mapping[str, object]) -> None:
    """The phases in order; the results of chunks of one are the inputs of the next."""
    for phase in bound.launches:
        assert isinstance(phase, Phase), "a phase of a reduction"
        memory |= {known: np.zeros(shape, dtype.numpy) for known, shape, dtype in phase.made}
        reduction = reduction_pipeline.prepared(kernel.definition, bound.request, phase)
        here = memory | {name: memory[known] for name, known in phase.arrays}
        scalars = {**values, **bound.sizes}
        _run_phase(_placed(reduction, phase.extents), phase, here, scalars, kernel)


def run_scan(kernel: KernelSpec, bound: Bound, memory: dict[str, Array], values: Mapping[str, object]) -> None:
    """The whole scan at once: the number of kernels makes no difference to its bits."""
    walk = bound.walk
    if walk is None:
        return
    assert isinstance(kernel.definition, ScanDefinition), "a scan"
    scan = _prepared_scan(kernel.definition, bound.request, len(walk.extents))
    given = {name: _window(memory[name], offset, walk.extents, row) for name, _, row, offset in walk.operands}
    given |= {name: memory[name] for name in bound.raw}
    interpret_scan(scan, given, values, OneAxis(walk.extents, walk.axis))


# --- how long that takes -------------------------------------------------------------------------------------------


def phases_effort(kernel: KernelSpec, bound: Bound) -> float:
    """Seconds that `run_phases` takes, infinite for what it should not run."""
    total = 0.0
    for phase in bound.launches:
        assert isinstance(phase, Phase), "a phase of a reduction"
        reduction = reduction_pipeline.prepared(kernel.definition, bound.request, phase)
        if any(param.raw and param.written for param in reduction.arrays):
            return inf
        length = phase.extent if phase.chunks == 1 else chunk_of(reduction.lanes, phase.is_last)
        side = reduction.lanes if phase.is_last else 1
        rows = prod(phase.extents) // phase.extent
        rounds = length // side + side.bit_length()
        total += phase.chunks * _effort(reduction, rows * length, rounds, rows * min(side, length))
    return total


def scan_effort(kernel: KernelSpec, bound: Bound) -> float:
    """Seconds that `run_scan` takes, infinite for what it should not run."""
    walk = bound.walk
    if walk is None:
        return 0.0
    assert isinstance(kernel.definition, ScanDefinition), "a scan"
    scan = _prepared_scan(kernel.definition, bound.request, len(walk.extents))
    if any(param.raw and param.written for param in scan.reduction.arrays):
        return inf
    is_last, extent = walk.axis == len(walk.extents) - 1, walk.extents[walk.axis]
    chunk, rows = scanned_at_once(is_last), prod(walk.extents) // extent
    chunks = -(-extent // chunk)
    rounds = chunk // GROUP + GROUP.bit_length() if is_last else ROWS
    width = rows * chunks * (GROUP if is_last else 1)
    levels = 1 if chunks == 1 else 3
    return levels * _effort(scan.reduction, prod(walk.extents), rounds, width)


def _effort(reduction: ReductionIR, elements: int, rounds: int, width: int) -> float:
    """Seconds for the parts of a reduction. rounds: times that so many values are combined at once."""
    of_elements = functions_effort(reduction.functions, elements)
    total = sum(body_effort(stage.body, of_elements, elements) + PART for stage in reduction.stages)
    total += sum(body_effort((*stage.then, *reduction.finish), of_elements, width) for stage in reduction.stages)
    calls = functions_effort(reduction.functions, width)
    combining = {each.name: STEP if single_op(each) else CALL + calls[each.name] for each in reduction.functions}
    return total + PART + sum(rounds * combining[each.combine] for each in reduction.accumulators)


# --- one phase -----------------------------------------------------------------------------------------------------


def _run_phase(
    reduction: ReductionIR,
    phase: Phase,
    memory: Mapping[str, Array],
    scalars: Mapping[str, object],
    kernel: KernelSpec,
) -> None:
    """One phase, chunk by chunk."""
    axis, extents = phase.axis, phase.extents
    length = extents[axis] if phase.chunks == 1 else chunk_of(reduction.lanes, phase.is_last)
    stored = {param.name for param in reduction.arrays if param.written} - kernel.elements | kernel.once
    raw = {param.name: memory[param.name] for param in reduction.arrays if param.raw}
    for number in range(phase.chunks):
        low = number * length
        high = min(low + length, extents[axis])
        here, kept = (*extents[:axis], high - low, *extents[axis + 1 :]), extents[:axis] + extents[axis + 1 :]
        given = {**raw, **_coordinates(here, kept, axis, low)}
        for name, strides, offset in phase.operands:
            if name in stored:
                steps = strides[:axis] + strides[axis + 1 :]
                given[name] = _window(memory[name], offset + number * strides[axis], kept, steps)
            else:
                given[name] = _window(memory[name], offset + low * strides[axis], here, strides)
        interpret_reduction(reduction, given, scalars, OneAxis(here, axis, is_last=phase.is_last))


def _window(array: Array, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Memory of an array, from so many bytes after its first element on, with other extents and strides."""
    interface = array.__array_interface__
    start = {"data": (interface["data"][0] + offset, False), "shape": shape, "strides": strides}
    return np.asarray(_At({**interface, **start}, array)).view(array.dtype)  # which bfloat16 loses on the way


class _At:
    """An address for NumPy; owner: what keeps the memory."""

    def __init__(self, interface: Mapping[str, object], owner: Array) -> None:
        self.__array_interface__, self.owner = dict(interface), owner


# --- positions -----------------------------------------------------------------------------------------------------


def _placed(reduction: ReductionIR, extents: tuple[int, ...]) -> ReductionIR:
    """The reduction with coordinates read from arrays, and extents known: chunks are run one by one."""

    def changed(name: str, expr: Expr) -> Expr:
        match expr:
            case Query("", "coordinate", Const() as axis):
                return Load(Element(f"{name}{axis.value}", Pointer(INT64, "global", const=True)), INT64)
            case Query("", "shape", Const() as axis):
                return const(extents[int(axis.value)], INT64)
            case Query("", "size"):
                return const(prod(extents), INT64)
            case _:
                return expr

    walk, total = rewriter(lambda expr: changed(PLACE, expr)), rewriter(lambda expr: changed(TOTALS_PLACE, expr))
    stages = []
    for stage in reduction.stages:
        running = stage.accumulator
        running = None if running is None else replace(running, value=walk(running.value))
        stages.append(Stage(map_expressions(stage.body, walk), running, stage.then))
    names = [f"{name}{axis}" for name in (PLACE, TOTALS_PLACE) for axis in range(len(extents))]
    params = (*reduction.params, *(ArrayParam(name, INT64) for name in names))
    return replace(reduction, params=params, stages=tuple(stages), finish=map_expressions(reduction.finish, total))


def _coordinates(here: tuple[int, ...], kept: tuple[int, ...], axis: int, low: int) -> dict[str, Array]:
    """The coordinates of elements of a chunk that begins at `low`, and of totals."""
    grid = np.indices(here, sparse=True)
    found = {f"{PLACE}{at}": index + (low if at == axis else 0) for at, index in enumerate(grid)}
    for at, index in enumerate(grid):
        place = np.zeros((), np.int64) if at == axis else np.squeeze(index, axis)
        found[f"{TOTALS_PLACE}{at}"] = np.broadcast_to(place, kept)
    return found
