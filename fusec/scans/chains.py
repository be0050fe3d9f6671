"""Long rows on a CPU in one pass over memory: the kernels of a scan as one executable, block by block.

`fusec.runtime.cpu.chain_text` says how threads hand totals on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from fusec.dtypes import DType
from fusec.generated import Kernel, Slot
from fusec.ir.loops import GROUP
from fusec.ir.scans import COUNT, NUMBER, STATE
from fusec.records import replace
from fusec.reductions.plans import Arguments
from fusec.runtime.cpu import chains
from fusec.runtime.cpu.chains import Chain, Job, Moving, Piece
from fusec.scans.plans import Form, Step

if TYPE_CHECKING:
    from fusec.runtime.cpu.engine import Executable

SPAN = GROUP * GROUP  # positions of a block: a group for each of GROUP chunks

Compiled = tuple[Step, "Executable", Arguments]


def join(name: str, compiled: Sequence[Compiled], numbers: Mapping[str, DType]) -> Compiled | None:
    """One step that does what the kernels of a chain do; None if threads cannot be had.

    compiled: those of totals, advance and results. numbers: parameters that are passed by value.
    """
    sums, advance, results = compiled
    own = dict.fromkeys(known for step, *_ in compiled for known, *_ in step.made)
    users = {
        known: slot.dtype
        for step, executable, _ in compiled
        for slot in executable.kernel.slots
        if slot.kind == "pointer" and (known := dict(step.arrays).get(slot.param, slot.param)) not in own
    }
    slots = [Slot("pointer", known, 0, dtype) for known, dtype in users.items()]
    for number, dtype in numbers.items():
        slots += [Slot("scalar", number, half, dtype) for half in range(2 if dtype.bits == 128 else 1)]
    where = {(slot.param, slot.axis): at for at, slot in enumerate(slots, 1)}
    arrays = {known: prod(shape) * dtype.nbytes for step, *_ in compiled for known, shape, dtype in step.made}
    pieces = [_piece(each, where) for each in compiled]
    step, kernel = results[0], advance[1].kernel
    chunks = step.space[-1] // GROUP
    job = Job(
        rows=prod(step.space[:-1]),
        blocks=-(-chunks // GROUP),
        span=SPAN,
        sums=sums[0].space[-1],
        results=step.space[-1],
        group=GROUP,
        number=_scalar(kernel, NUMBER),
        count=_scalar(kernel, COUNT),
    )
    moving = [
        Moving(at, slot.dtype.nbytes * GROUP, slot.dtype.nbytes * (chunks - 1))
        for at, slot in enumerate(kernel.slots)
        if slot.kind == "pointer" and not slot.param.startswith(STATE)
    ]
    layout = results[1].kernel.layout
    layout = replace(layout, steps=tuple((each, row) for each, row in layout.steps if each in users))
    chain = chains.make(name, slots, layout, job, pieces, moving, arrays)
    if chain is None:
        return None
    return _whole(chain, step.form, tuple(users)), chain, _arguments(chain, slots)


def _whole(chain: Chain, form: Form, users: Sequence[str]) -> Step:
    """The step: one position, which is everything."""
    del chain
    return Step(form, (1,), 1, (), tuple((name, name) for name in users), ())


def _arguments(chain: Chain, slots: Sequence[Slot]) -> Arguments:
    """The description in slot 0, then what calls give."""
    from array import array

    template = array("q", [chain.description.buffer_info()[0], *[0] * len(slots)])
    numbered = list(enumerate(slots, 1))
    pointers = tuple((at, slot.param, 0) for at, slot in numbered if slot.kind == "pointer")
    scalars = tuple((at, slot.param, slot.dtype, slot.axis) for at, slot in numbered if slot.kind == "scalar")
    return Arguments(template, pointers, scalars)


def _piece(compiled: Compiled, where: Mapping[tuple[str, int], int]) -> Piece:
    """A kernel whose slots are copies of the chain's, or addresses in the area of a call."""
    step, executable, arguments = compiled
    named = dict(step.arrays)
    copies = [(slot, where[name, half], 0) for slot, name, _, half in arguments.scalars]
    places = []
    for slot, name, offset in arguments.pointers:
        known = named.get(name, name)
        if (known, 0) in where:
            copies.append((slot, where[known, 0], offset))
        else:
            places.append((slot, known, offset))
    return Piece(executable, arguments.template, copies, places)


def _scalar(kernel: Kernel, name: str) -> int:
    """The slot of a number."""
    return next(at for at, slot in enumerate(kernel.slots) if slot.kind == "scalar" and slot.param == name)
