"""Reductions and scans in the interpreter: a call in NumPy, with the bits of every target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.arguments.operands import dtype_of, outputs_of, view_of
from fusec.base.dtypes import INT64
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.compiler import reduction_pipeline, scan_pipeline
from fusec.compiler.reduction_pipeline import MASK
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch import host_axis
from fusec.dispatch.axis_spec import Along, AxisSpec, Bound, Given
from fusec.dispatch.host_axis import Call
from fusec.dispatch.planned import is_on_device
from fusec.errors.arguments import CannotSimulate
from fusec.ir.expr import Const, Expr, Pointer, const
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.interpret_scans import interpret_scan
from fusec.ir.loops import ArrayParam, Element, Load, Query
from fusec.ir.reductions import ReductionIR, Stage, chunk_of
from fusec.ir.walk import map_expressions, rewriter
from fusec.kinds.reduction import Phase
from fusec.kinds.scan import MANY_THREADS

Array = NDArray[Any]
PLACE, TOTALS_PLACE = "_place", "_totals_place"  # and an axis: arrays of coordinates


@default_rounding()
def interpreted(kernel: AxisSpec, args: tuple[object, ...], out: object, along: Along) -> tuple[object, ...]:
    """Run a call in the interpreter; all outputs. Raises what a call raises."""
    if is_on_device(args, out, along.where):
        raise CannotSimulate("arrays of a device", "copy them to the host first").at()
    call = host_axis.read(kernel, args, out, along)
    bound = kernel.kind.bind(kernel, _given(kernel, call), MANY_THREADS, None)
    made = [
        np.zeros(shape, bound.types[param.name].numpy)
        for param, shape in zip(kernel.out_params, bound.shapes, strict=True)
    ]
    for target, source in zip(made, call.outputs or (), strict=False):
        target[...] = source
    flat = [each.reshape(bound.kept) for each in made]
    if bound.is_empty:
        held = flat if bound.read else None
        for each, value in zip(flat, host_axis.empty_totals(kernel, bound, call.values, held), strict=True):
            each[...] = value
    elif kernel.kind.keeps_shape:
        _run_scan(kernel, bound, call, made)
    else:
        _run(kernel, bound, call, flat)
    if call.outputs is None:
        return tuple(made)
    for asked, source in zip(call.outputs, made, strict=True):
        asked[...] = source
    return args[kernel.nin :] if out is None else outputs_of(out)


def _given(kernel: AxisSpec, call: Call) -> Given:
    """The arguments as memory."""
    views = {name: view_of(each, dtype_of(each, name, kernel.name)) for name, each in call.inputs.items()}
    outputs = None
    if call.outputs is not None:
        named = zip(kernel.out_params, call.outputs, strict=True)
        outputs = tuple(view_of(each, dtype_of(each, param.name, kernel.name)) for param, each in named)
    mask = None if call.mask is None else view_of(call.mask, dtype_of(call.mask, MASK, kernel.name))
    return Given(views, frozenset(call.values), outputs, mask, call.along)


def _run(kernel: AxisSpec, bound: Bound, call: Call, outputs: Sequence[Array]) -> None:
    """The phases in order; the results of chunks of one are the inputs of the next."""
    memory: dict[str, Array] = {**call.inputs, **({} if call.mask is None else {MASK: call.mask})}
    memory |= {param.name: each for param, each in zip(kernel.out_params, outputs, strict=True)}
    for phase in bound.launches:
        assert isinstance(phase, Phase), "a phase of a reduction"
        memory |= {known: np.zeros(shape, dtype.numpy) for known, shape, dtype in phase.made}
        reduction = reduction_pipeline.prepared(kernel.definition, bound.request, phase)
        here = memory | {name: memory[known] for name, known in phase.arrays}
        _run_phase(_placed(reduction, phase.extents), phase, here, {**call.values, **bound.sizes})


def _run_scan(kernel: AxisSpec, bound: Bound, call: Call, outputs: Sequence[Array]) -> None:
    """The whole scan at once: the number of kernels makes no difference to its bits."""
    walk = bound.walk
    if walk is None:
        return
    assert isinstance(kernel.definition, ScanDefinition), "a scan"
    scan = scan_pipeline.prepared(kernel.definition, bound.request, len(walk.extents))
    memory = dict(call.inputs) | {param.name: each for param, each in zip(kernel.out_params, outputs, strict=True)}
    given = {name: _window(memory[name], offset, walk.extents, row) for name, _, row, offset in walk.operands}
    given |= {name: memory[name] for name in bound.raw}
    interpret_scan(scan, given, call.values, walk.extents, walk.axis)


def _run_phase(
    reduction: ReductionIR, phase: Phase, memory: Mapping[str, Array], scalars: Mapping[str, object]
) -> None:
    """One phase, chunk by chunk."""
    axis, extents = phase.axis, phase.extents
    length = extents[axis] if phase.chunks == 1 else chunk_of(reduction.lanes, phase.is_last)
    stored = {param.name for param in reduction.arrays if param.written}
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
        interpret_reduction(reduction, given, scalars, here, axis, is_last=phase.is_last)


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
