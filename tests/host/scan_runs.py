"""Scans as launches: the kernels of a call for a target, and the bits that every target must leave in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from fibers import Buffer, Output, Workspace
from reduction_runs import Reduced, _bytes, view_of

from fusec import passes
from fusec.arguments import layouts
from fusec.base.kernel_abi import Kernel
from fusec.compiler.scan_pipeline import BATCH_ON_DEVICE
from fusec.ir.interpret_scans import interpret_scan
from fusec.ir.reductions import AXIS, OneAxis
from fusec.ir.scans import between
from fusec.kinds.launch import Machine
from fusec.kinds.reduction import Operand
from fusec.kinds.scan import steps_of, walk_of
from fusec.kinds.slots import arrange
from fusec.passes.expand import expand
from fusec.passes.scans import write_loops
from tests.support.scan_examples import EXAMPLES, inputs, run_on_scan

ALONE, PARTED = Machine(1, 1, 1), Machine(1 << 62, 1 << 62, 1)  # one kernel whatever comes, or three wherever it can be
WAITING, HELD = (Machine(1 << 62, 1 << 62, 1, waits=True, vectors=held) for held in (False, True))
"""One pass; elements are read twice, or stay in registers between totals and results."""


@dataclass(frozen=True)
class Scanned(Reduced):
    """One scan of given arrays."""

    def values(self, at: int, kernel: Kernel) -> list[str | bytes]:
        """The arguments of a kernel: names of buffers for pointers, and bytes."""
        step = self.phases[at]
        arguments = arrange(kernel, step, step.extents, {}, {AXIS: step.extent})
        assert all(offset == 0 for *_, offset in arguments.pointers), "axes are not reversed here"
        words = arguments.fill(dict.fromkeys(dict(step.arrays).values(), 0), {}, self.name)
        names = {slot: name for slot, name, _ in arguments.pointers}
        return [
            names[number] if number in names else _bytes(word, slot)
            for number, (word, slot) in enumerate(zip(words, kernel.slots, strict=True))
        ]

    @property
    def buffers(self) -> dict[str, Buffer]:
        """Memory for all launches."""
        made: dict[str, Buffer] = dict(self.arrays)
        for step in self.phases:
            made |= {name: Workspace(shape, dtype.numpy) for name, shape, dtype in step.made}
        return made | {name: Output(each.shape, each.dtype) for name, each in self.expected.items()}


def case(name: str, shape: tuple[int, ...], axis: int, machine: Machine, costly: bool = False) -> Scanned:
    """An example over random arrays, with the oracle's answer. costly: as if combinations took long."""
    scan, names, dtypes = EXAMPLES[name]
    given = {each: np.ascontiguousarray(array) for each, array in inputs(names, shape, axis).items()}
    outputs: Mapping[str, np.ndarray] = {each: np.zeros(shape, dtype) for each, dtype in dtypes.items()}
    operands = [
        Operand(each, view_of(array), layouts.broadcast_strides(view_of(array), shape), each in outputs)
        for each, array in {**given, **outputs}.items()
    ]
    walk = walk_of(shape, axis, operands, backwards=False)
    totals = [dtype for _, dtype in scan.running.parts]
    steps = steps_of(walk, totals, frozenset(given), machine)
    programs = []
    for step in steps:
        here = between(scan) if step.of_totals else scan
        batch = 1 if machine is ALONE else BATCH_ON_DEVICE
        loops = passes.Loops(step.axis, step.is_last, step.role, step.levels, batch, machine is HELD, costly)
        programs.append(passes.run(write_loops(here, loops)))
    is_last = steps[-1].is_last
    interpret_scan(run_on_scan(scan, expand), {**given, **outputs}, {}, OneAxis(shape, axis, is_last=is_last))
    title = f"{name} of {shape} along {axis} in {len(steps)} kernels"
    texts = [step.threads_layout for step in steps]
    return Scanned(title, steps, programs, texts, given, outputs, {}, 0)  # type: ignore[arg-type]
