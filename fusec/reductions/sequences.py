"""The kernels of a call on a CPU as one executable, so that repeated calls need no Python between them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from fusec.dtypes import DType
from fusec.generated import Layout, Slot, Step
from fusec.records import dataclass
from fusec.reductions.plans import Arguments
from fusec.runtime.cpu import composites
from fusec.runtime.cpu.composites import Composite, Outside, Piece

if TYPE_CHECKING:
    from fusec.reductions.calls import Plan
    from fusec.reductions.kernels import Reducing
    from fusec.runtime.cpu.engine import Executable

MOST_BYTES = 4 << 20  # between kernels: a composite keeps that much memory for its next call


@dataclass(frozen=True)
class Used:
    """One of the kernels. arrays: what its parameters are called among all kernels, where that differs."""

    executable: Executable
    arguments: Arguments
    arrays: Mapping[str, str]
    positions: int


def join(kernel: Reducing, plan: Plan) -> tuple[Composite, Arguments] | None:
    """The kernels of a reduction one after the other; None if too much lies between them."""
    between = {
        f"{stored}{number}": prod(step.phase.space) * dtype.nbytes
        for number, step in enumerate(plan.steps[:-1])
        for stored, _, dtype in plan.bound.partials
    }
    if sum(between.values()) > MOST_BYTES:
        return None
    used = []
    for number, step in enumerate(plan.steps):
        names = {stored: f"{stored}{number}" for stored, _, _ in plan.bound.partials}
        names |= {given: f"{stored}{number - 1}" for stored, given, _ in plan.bound.partials}
        used.append(Used(step.executable, step.arguments, names, step.phase.positions))
    numbers = {name: plan.bound.types[name] for name in plan.bound.request.scalars}
    arrays = {param.name: plan.bound.types[param.name] for param in kernel.params if param.name not in numbers}
    outside = outside_of(kernel.name, arrays, numbers, between)
    made = composites.sequence(outside, pieces_of(used, outside))
    return made, arguments_of(made, outside)


def outside_of(
    name: str, arrays: Mapping[str, DType], numbers: Mapping[str, DType], between: Mapping[str, int]
) -> Outside:
    """What a composite of kernels takes. between: bytes of the arrays between kernels."""
    slots = [Slot("pointer", each, 0, dtype) for each, dtype in arrays.items()]
    for each, dtype in numbers.items():
        slots += [Slot("scalar", each, half, dtype) for half in range(2 if dtype.bits == 128 else 1)]
    layout = Layout(1, tuple((each, (Step.UNIT,)) for each in arrays))
    return Outside(name, slots, layout, between)


def pieces_of(used: Sequence[Used], outside: Outside) -> list[Piece]:
    """Kernels whose slots are copies of the composite's, or addresses in the area of a call."""
    where = {(slot.param, slot.axis): at for at, slot in enumerate(outside.slots, 1)}
    pieces = []
    for each in used:
        copies = [(slot, where[name, half], 0) for slot, name, _, half in each.arguments.scalars]
        places = []
        for slot, name, offset in each.arguments.pointers:
            known = each.arrays.get(name, name)
            if known in outside.arrays:
                places.append((slot, known, offset))
            else:
                copies.append((slot, where[known, 0], offset))
        pieces.append(Piece(each.executable, each.arguments.template, copies, places, each.positions))
    return pieces


def arguments_of(made: Composite, outside: Outside) -> Arguments:
    """The description in slot 0, then what calls give."""
    assert made.description is not None, "composites have descriptions"
    template = array("q", [made.description.address, *[0] * len(outside.slots)])
    numbered = list(enumerate(outside.slots, 1))
    pointers = tuple((at, slot.param, 0) for at, slot in numbered if slot.kind == "pointer")
    scalars = tuple((at, slot.param, slot.dtype, slot.axis) for at, slot in numbered if slot.kind == "scalar")
    return Arguments(template, pointers, scalars)
