"""The kernels of a call on a CPU as one executable, so that repeated calls need no Python between them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Protocol

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Layout, Slot, Step
from fusec.base.records import dataclass
from fusec.kinds.reduction import Arguments
from fusec.runtime.cpu import composites
from fusec.runtime.cpu.composites import Composite, CompositeInterface, CompositePiece

if TYPE_CHECKING:
    from fusec.dispatch.host_reduction import Plan
    from fusec.dispatch.planned_reduction import Reducing
    from fusec.kinds.reduction import Request
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
    outside = outside_of(kernel, plan.bound, between)
    made = composites.sequence(outside, pieces_of(used, outside))
    return made, arguments_of(made, outside)


class Typed(Protocol):
    """What is known of a call: the dtypes of its parameters, and what it is specialised for."""

    @property
    def types(self) -> Mapping[str, DType]:
        """By the names of parameters."""

    @property
    def request(self) -> Request:
        """It says which parameters are numbers."""


def outside_of(kernel: Reducing, bound: Typed, between: Mapping[str, int]) -> CompositeInterface:
    """What a composite of a kernel's phases or steps takes. between: bytes of the arrays between these."""
    numbers = [param.name for param in kernel.params if param.name in bound.request.scalars]
    arrays = [param.name for param in kernel.params if param.name not in numbers]
    slots = [Slot("pointer", each, 0, bound.types[each]) for each in arrays]
    for each in numbers:
        dtype = bound.types[each]
        slots += [Slot("scalar", each, half, dtype) for half in range(2 if dtype.bits == 128 else 1)]
    layout = Layout(1, tuple((each, (Step.UNIT,)) for each in arrays))
    return CompositeInterface(kernel.name, slots, layout, between)


def pieces_of(used: Sequence[Used], outside: CompositeInterface) -> list[CompositePiece]:
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
        pieces.append(CompositePiece(each.executable, each.arguments.template, copies, places, each.positions))
    return pieces


def arguments_of(made: Composite, outside: CompositeInterface) -> Arguments:
    """The description in slot 0, then what calls give."""
    assert made.description is not None, "composites have descriptions"
    template = array("q", [made.description.address, *[0] * len(outside.slots)])
    numbered = list(enumerate(outside.slots, 1))
    pointers = tuple((at, slot.param, 0) for at, slot in numbered if slot.kind == "pointer")
    scalars = tuple((at, slot.param, slot.dtype, slot.axis) for at, slot in numbered if slot.kind == "scalar")
    return Arguments(template, pointers, scalars)
