"""Scans in the IR, made of the reductions of `reduction_examples`, and their programs put together in every way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from fusec.base.dtypes import FLOAT32, FLOAT64, INT8, INT64
from fusec.base.records import replace
from fusec.ir.expr import const
from fusec.ir.interpret_scans import interpret_scan
from fusec.ir.loops import GROUP, ArrayParam, Program
from fusec.ir.reductions import AXIS, GIVEN, PARTIAL, OneAxis
from fusec.ir.scans import PREFIX, Scan, between, chunk_of, first_program, in_segments, levels_of
from fusec.passes import Loops
from fusec.passes.expand import expand
from fusec.passes.reductions import run_on_reduction
from fusec.passes.scans import write_loops
from tests.support import reduction_examples as examples

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Program, dict[str, np.ndarray], dict[str, object], tuple[int, ...]], None]


def segmented(scan: Scan) -> Scan:
    reduction = replace(scan.reduction, params=(*scan.reduction.params, ArrayParam("new", examples.BOOL)))
    return in_segments(replace(scan, reduction=reduction), "new")


SUM = Scan(examples.simple("add", FLOAT32))
ZERO = (examples.store("z", const(0, FLOAT32), FLOAT32),)
EXAMPLES: dict[str, tuple[Scan, dict[str, str], dict[str, str]]] = {
    "sum": (SUM, {"x": "f4"}, {"z": "f4"}),
    "product": (Scan(examples.simple("multiply", FLOAT64)), {"x": "f8"}, {"z": "f8"}),
    "small": (Scan(examples.simple("add", INT8, INT64)), {"x": "i1"}, {"z": "i8"}),
    "extremes": (Scan(examples.extremes(FLOAT32)), {"x": "f4"}, {"low": "f4", "high": "f4"}),
    "argmin": (Scan(examples.argmin(FLOAT32)), {"x": "f4", "at": "i8"}, {"value": "f4", "where": "i8"}),
    "exclusive": (Scan(SUM.reduction, True, ZERO), {"x": "f4"}, {"z": "f4"}),
    "segments": (segmented(SUM), {"x": "f4", "new": "?"}, {"z": "f4"}),
    "both": (segmented(Scan(SUM.reduction, True, ZERO)), {"x": "f4", "new": "?"}, {"z": "f4"}),
}


def run_on_scan(scan: Scan, run: Callable[[Program], Program]) -> Scan:
    """The scan after `run`, passes over a program, has seen each of its parts."""
    reduction = run_on_reduction(scan.reduction, run)
    if not scan.first:
        return replace(scan, reduction=reduction)
    first = run(first_program(scan))
    known = {function.name for function in reduction.functions}
    more = tuple(function for function in first.functions if function.name not in known)
    return replace(scan, reduction=replace(reduction, functions=(*reduction.functions, *more)), first=first.body)


def inputs(names: Mapping[str, str], shape: tuple[int, ...], axis: int) -> dict[str, np.ndarray]:
    """Values of mixed size; few starts of segments."""
    rng = np.random.default_rng(shape[axis])
    made = {name: rng.integers(-50, 50, shape) * rng.choice([1, 0.37], shape) for name in names}
    if names.get("x") == "f8":
        made["x"] = 1 + made["x"] / 1000  # products stay in range
    if "at" in made:
        steps = np.arange(shape[axis]).reshape([-1 if each == axis else 1 for each in range(len(shape))])
        made["at"] = np.broadcast_to(steps, shape)
    if "new" in made:
        made["new"] = rng.random(shape) < 0.01
    return {name: made[name].astype(dtype) for name, dtype in names.items()}


def oracle(scan: Scan, given: Arrays, outputs: Mapping[str, str], shape: tuple[int, ...], axis: int) -> Arrays:
    made = {name: np.zeros(shape, dtype) for name, dtype in outputs.items()}
    interpret_scan(run_on_scan(scan, expand), {**given, **made}, {}, OneAxis(shape, axis))
    return made


def program_of(scan: Scan, shape: tuple[int, ...], axis: int, role: str) -> tuple[Program, tuple[int, ...]]:
    """A program and its space."""
    is_last, extent = axis == len(shape) - 1, shape[axis]
    chunks = -(-extent // chunk_of(is_last))
    count = {"whole": 1, "totals": chunks - 1, "results": chunks}[role]
    levels = levels_of(extent, is_last) if role == "whole" else 0
    program = write_loops(scan, Loops(axis, is_last, role, levels))  # type: ignore[arg-type]
    return program, (*shape[:axis], count * GROUP if is_last else count, *shape[axis + 1 :])


def scanned(
    scan: Scan, given: Arrays, outputs: Mapping[str, str], shape: tuple[int, ...], axis: int, run: Run, *, parted: bool
) -> dict[str, np.ndarray]:
    """The outputs by programs: one for all, or three, of which the second may be three again."""
    made = {name: np.zeros(shape, dtype) for name, dtype in outputs.items()}
    chunks = -(-shape[axis] // chunk_of(axis == len(shape) - 1))

    def step(role: str, arrays: dict[str, np.ndarray]) -> None:
        program, space = program_of(scan, shape, axis, role)
        run(program, arrays, {AXIS: shape[axis]}, space)

    if not parted or chunks == 1:
        step("whole", {**given, **made})
        return made
    few = (*shape[:axis], chunks - 1, *shape[axis + 1 :])
    parts = {f"{at}": dtype.numpy for at, (_, dtype) in enumerate(scan.total.parts)}
    totals = {PARTIAL + at: np.zeros(few, dtype) for at, dtype in parts.items()}
    step("totals", {**given, **totals})
    renamed = {GIVEN + at: totals[PARTIAL + at] for at in parts}
    kinds = {PARTIAL + at: dtype for at, dtype in parts.items()}
    prefixes = scanned(between(scan), renamed, kinds, few, axis, run, parted=parted)
    step("results", {**given, **made, **{PREFIX + at: prefixes[PARTIAL + at] for at in parts}})
    return made
