"""The kernels of a call on a CPU as one executable: in order, or long rows in one pass over memory.

Repeated calls then need no Python between kernels. `fusec.runtime.cpu.chain_text` says how the threads of a chain hand
totals of blocks on.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fusec.base.kernel_abi import Layout, Slot
from fusec.base.kernel_abi import Step as Stride
from fusec.dispatch.plan import CompiledLaunch
from fusec.dispatch.spec import Bound, KernelSpec
from fusec.ir.loops import GROUP
from fusec.ir.scans import COUNT, NUMBER, STATE
from fusec.kinds.launch import Launch
from fusec.kinds.slots import Arguments
from fusec.runtime.cpu import composites
from fusec.runtime.cpu.composites import Composite, CompositeInterface, CompositePiece, Job, Moving

SPAN = GROUP * GROUP  # positions of a block of a chain: a group for each of GROUP chunks


def sequence(kernel: KernelSpec, bound: Bound, steps: Sequence[CompiledLaunch[Any]]) -> CompiledLaunch[Any]:
    """One step that runs several steps in order, which fit."""
    outside = _outside(kernel, bound, _between(steps))
    return _whole(composites.sequence(outside, [[each] for each in _pieces(steps, outside)]), outside)


def chain(kernel: KernelSpec, bound: Bound, steps: Sequence[CompiledLaunch[Any]]) -> CompiledLaunch[Any] | None:
    """One step that runs the kernels of a chain: totals, advance, results; None if there are no threads."""
    sums, results = steps[0].launch, steps[-1].launch
    outside = _outside(kernel, bound, _between(steps))
    chunks, slots = results.extents[-1] // GROUP, steps[1].code.kernel.slots
    job = Job(
        rows=prod(results.extents[:-1]),
        blocks=-(-chunks // GROUP),
        span=SPAN,
        sums=sums.extents[-1],
        results=results.extents[-1],
        group=GROUP,
        number=_scalar(slots, NUMBER),
        count=_scalar(slots, COUNT),
    )
    moving = [
        Moving(at, slot.dtype.nbytes * GROUP, slot.dtype.nbytes * (chunks - 1))
        for at, slot in enumerate(slots)
        if slot.kind == "pointer" and not slot.param.startswith(STATE)
    ]
    made = composites.chain(outside, job, _pieces(steps, outside), moving)
    return None if made is None else _whole(made, outside)


def _between(steps: Sequence[CompiledLaunch[Any]]) -> dict[str, int]:
    """Bytes of the arrays between kernels."""
    return {known: prod(shape) * dtype.nbytes for step in steps for known, shape, dtype in step.launch.made}


def _whole(made: Composite, outside: CompositeInterface) -> CompiledLaunch[Any]:
    """A composite as a step."""
    names = tuple((name, name) for name, _ in outside.layout.steps)
    launch = Launch(outside.layout, (1,), (), arrays=names)  # one position, which is everything
    return CompiledLaunch(launch, made, _arguments(made, outside))


def _scalar(slots: Sequence[Slot], name: str) -> int:
    """The slot of a number."""
    return next(at for at, slot in enumerate(slots) if slot.kind == "scalar" and slot.param == name)


def _outside(kernel: KernelSpec, bound: Bound, between: Mapping[str, int]) -> CompositeInterface:
    """What a composite of a kernel's launches takes. between: bytes of the arrays between these."""
    numbers = [param.name for param in kernel.params if param.name in bound.request.scalars]
    arrays = [param.name for param in kernel.params if param.name not in numbers]
    slots = [Slot("pointer", each, 0, bound.types[each]) for each in arrays]
    for each in numbers:
        dtype = bound.types[each]
        slots += [Slot("scalar", each, half, dtype) for half in range(2 if dtype.bits == 128 else 1)]
    layout = Layout(1, tuple((each, (Stride.UNIT,)) for each in arrays))
    return CompositeInterface(kernel.name, slots, layout, between)


def _pieces(steps: Sequence[CompiledLaunch[Any]], outside: CompositeInterface) -> list[CompositePiece]:
    """Kernels whose slots are copies of the composite's, or addresses in the area of a call."""
    where = {(slot.param, slot.axis): at for at, slot in enumerate(outside.slots, 1)}
    pieces = []
    for step in steps:
        copies = [(slot, where[name, half], 0) for slot, name, _, half in step.arguments.scalars]
        places = []
        for slot, name, offset in step.arguments.pointers:
            if name in outside.arrays:
                places.append((slot, name, offset))
            else:
                copies.append((slot, where[name, 0], offset))
        pieces.append(CompositePiece(step.code, step.arguments.template, copies, places, step.launch.positions))
    return pieces


def _arguments(made: Composite, outside: CompositeInterface) -> Arguments:
    """The description in slot 0, then what calls give."""
    assert made.description is not None, "composites have descriptions"
    template = array("q", [made.description.address, *[0] * len(outside.slots)])
    numbered = list(enumerate(outside.slots, 1))
    pointers = tuple((at, slot.param, 0) for at, slot in numbered if slot.kind == "pointer")
    scalars = tuple((at, slot.param, slot.dtype, slot.axis) for at, slot in numbered if slot.kind == "scalar")
    return Arguments(template, pointers, scalars)
