"""The kernels of a scan on a CPU as one executable: one after the other, or long rows in one pass over memory.

`fusec.runtime.cpu.chain_text` says how threads hand totals of blocks on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

from fusec.base.kernel_abi import Slot
from fusec.dispatch.launch_sequence import MOST_BYTES, Used, arguments_of, outside_of, pieces_of
from fusec.ir.loops import GROUP
from fusec.ir.scans import COUNT, NUMBER, STATE
from fusec.kinds.reduction import Arguments
from fusec.kinds.scan import Step
from fusec.runtime.cpu import composites
from fusec.runtime.cpu.composites import CompositeInterface, Job, Moving

if TYPE_CHECKING:
    from fusec.dispatch.host_scan import Bound, Plan
    from fusec.dispatch.planned_scan import Scanning
    from fusec.runtime.cpu.engine import Executable

SPAN = GROUP * GROUP  # positions of a block: a group for each of GROUP chunks

Compiled = tuple[Step, "Executable", Arguments]


def join(kernel: Scanning, bound: Bound, compiled: tuple[Compiled, ...]) -> Compiled | None:
    """One step that does what the kernels of a chain do; None if threads cannot be had.

    compiled: those of totals, advance and results.
    """
    (sums, *_), (_, advance, _), (results, *_) = compiled
    outside = outside_of(kernel, bound, _between(compiled))
    chunks, slots = results.space[-1] // GROUP, advance.kernel.slots
    job = Job(
        rows=prod(results.space[:-1]),
        blocks=-(-chunks // GROUP),
        span=SPAN,
        sums=sums.space[-1],
        results=results.space[-1],
        group=GROUP,
        number=_scalar(slots, NUMBER),
        count=_scalar(slots, COUNT),
    )
    moving = [
        Moving(at, slot.dtype.nbytes * GROUP, slot.dtype.nbytes * (chunks - 1))
        for at, slot in enumerate(slots)
        if slot.kind == "pointer" and not slot.param.startswith(STATE)
    ]
    made = composites.chain(outside, job, pieces_of(_used(compiled), outside), moving)
    return None if made is None else (_whole(results, outside), made, arguments_of(made, outside))


def line_up(kernel: Scanning, plan: Plan) -> Compiled | None:
    """One step that does what several do one after the other; None if too much lies between them."""
    between = _between(plan.steps)
    if sum(between.values()) > MOST_BYTES:
        return None
    outside = outside_of(kernel, plan.bound, between)
    made = composites.sequence(outside, pieces_of(_used(plan.steps), outside))
    return _whole(plan.steps[-1][0], outside), made, arguments_of(made, outside)


def _between(compiled: Iterable[Compiled]) -> dict[str, int]:
    """Bytes of the arrays between kernels."""
    return {known: prod(shape) * dtype.nbytes for step, *_ in compiled for known, shape, dtype in step.made}


def _used(compiled: Iterable[Compiled]) -> list[Used]:
    return [Used(executable, arguments, dict(step.arrays), step.positions) for step, executable, arguments in compiled]


def _whole(step: Step, outside: CompositeInterface) -> Step:
    """The step of a composite: one position, which is everything."""
    return Step(step.form, (1,), 1, (), tuple((name, name) for name, _ in outside.layout.steps), ())


def _scalar(slots: Sequence[Slot], name: str) -> int:
    """The slot of a number."""
    return next(at for at, slot in enumerate(slots) if slot.kind == "scalar" and slot.param == name)
