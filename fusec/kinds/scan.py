"""How a scan walks its arrays, and its kernels: one, or totals, their scan, and results.

Plain numbers only. The walk is part of the order of operations (`fusec.ir.scans`) and must not depend on a target; the
number of kernels is not, since they give the same bits in any number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from fusec.arguments import layouts
from fusec.arguments.layouts import WIDE, MergedSpace, Shape, View
from fusec.base.dtypes import UINT64, DType
from fusec.base.kernel_abi import Layout
from fusec.base.records import dataclass, replace
from fusec.ir import scans
from fusec.ir.loops import GROUP
from fusec.ir.reductions import AXIS, GIVEN, PARTIAL
from fusec.ir.scans import COUNT, NUMBER, PREFIX, SHORT, STATE, Role, chunk_of, levels_of
from fusec.kinds.launch import Launch, Machine
from fusec.kinds.reduction import Operand, dense

MOST_BLOCK_BYTES = 1 << 21
"""Of what a block of a chain reads and writes: a second cache, about."""


@dataclass(frozen=True)
class ScanLaunch(Launch):
    """One kernel of a scan, over its positions; role, levels: of `fusec.passes.scans`."""

    role: Role
    levels: int
    of_totals: bool  # it scans totals of chunks, not elements
    axis: int  # of the walk
    length: int  # of the axis

    def code(self, threads: bool) -> str:
        """A text that differs for launches with different code, the same on every target."""
        del threads
        return f"{self.role}{self.levels}{'t' if self.of_totals else ''}/{self.axis}/{self.layout.key}"

    @property
    def is_last(self) -> bool:
        """Whether the axis is the innermost of the walk."""
        return self.axis == self.layout.ndim - 1

    @property
    def extent(self) -> int:
        """Elements along the axis, or totals."""
        return self.length

    @property
    def known(self) -> Mapping[str, int]:
        """The numbers that its code may ask for; a chain sets the last two."""
        return {AXIS: self.length, NUMBER: 0, COUNT: 0}

    @property
    def threads_layout(self) -> Layout:
        """Threads take one position each."""
        return replace(self.layout, aligned=1)

    @property
    def elements(self) -> int:
        """The approximate number of elements for each position."""
        return max(1, self.length // self.extents[self.axis])


@dataclass(frozen=True)
class Walk:
    """The axes in order, from the outermost to the innermost. operands: as those of a step, with their views."""

    extents: Shape
    axis: int
    operands: tuple[tuple[str, View, Shape, int], ...]
    raw: tuple[tuple[str, View], ...] = ()  # the arrays that the texts address


def walk_of(shape: Shape, axis: int, operands: Sequence[Operand], *, backwards: bool) -> Walk:
    """The walk over `shape`: axes in the order of the inputs' memory, merged where all operands allow it.

    backwards: the scan begins at the end of the axis. Requires: no extent is 0.
    """
    rows = {each.name: list(each.strides) for each in operands}
    offsets = dict.fromkeys(rows, 0)
    inputs = [each.name for each in operands if not each.is_output]
    for at, extent in enumerate(shape):
        column = [rows[name][at] for name in inputs]
        downwards = min(column, default=0) < 0 and max(column) <= 0
        if backwards if at == axis else downwards:
            for name, row in rows.items():
                offsets[name] += (extent - 1) * row[at]
                row[at] = -row[at]
    ranked = [rows[name] for name in sorted(inputs, key=lambda name: -sum(map(bool, rows[name])))]
    order = [at for at, extent in enumerate(shape) if extent != 1 or at == axis]
    order.sort(key=lambda at: tuple(-abs(row[at]) for row in ranked))
    groups = _joined(order, shape, axis, rows)
    extents = [prod(shape[at] for at in group) for group in groups]
    place = next(number for number, group in enumerate(groups) if axis in group)
    if place == len(groups) - 1 and extents[place] <= SHORT and place:
        groups.insert(place, groups.pop(place - 1))
        extents.insert(place, extents.pop(place - 1))
        place -= 1
    taken = tuple(
        (each.name, each.view, tuple(rows[each.name][group[-1]] for group in groups), offsets[each.name])
        for each in operands
    )
    return Walk(tuple(extents), place, taken)


def _joined(order: Sequence[int], shape: Shape, axis: int, rows: Mapping[str, Sequence[int]]) -> list[list[int]]:
    """Neighbours that every operand steps over evenly, as one; the axis itself stays alone."""
    groups: list[list[int]] = []
    for at in order:
        before = groups[-1][-1] if groups else axis
        even = all(row[before] == row[at] * shape[at] for row in rows.values())
        if axis not in (before, at) and even:
            groups[-1].append(at)
        else:
            groups.append([at])
    return groups


def steps_of(
    walk: Walk,
    totals: Sequence[DType],
    inputs: frozenset[str],
    machine: Machine,
    *,
    is_expensive: bool = False,
) -> tuple[ScanLaunch, ...]:
    """The kernels in order. totals: dtypes of a total's parts. inputs: arrays that a kernel for totals reads.

    is_expensive: elements take longer to compute than to read.
    """
    if is_expensive and not machine.twice:
        machine = replace(machine, groups=1, columns=1)
    if is_expensive:  # then one pass does twice what takes longest, on fewer threads
        machine = replace(machine, waits=False)
    return tuple(_steps(walk, totals, inputs, machine, 0))


def chain_of(
    steps: Sequence[ScanLaunch], totals: Sequence[DType], nbytes: Sequence[int], machine: Machine
) -> tuple[ScanLaunch, ...]:
    """The kernels of a chain instead of several steps: totals, a group of their scan, results; none if impossible.

    A block is a group of chunks, see Note [Chains] in `fusec.runtime.cpu.chain_text`. nbytes: of one element of each
    input and output.
    """
    if len(steps) < 2 or not machine.chain or not steps[0].is_last:
        return ()
    first, last = steps[0], steps[-1]
    chunks = last.extents[-1] // GROUP
    blocks = prod(last.extents[:-1]) * -(-chunks // GROUP)
    if blocks < machine.chain or GROUP * chunk_of(True) * sum(nbytes) > MOST_BLOCK_BYTES:
        return ()
    levels = levels_of(chunks - 1, True)
    pairs = list(enumerate(totals))
    dense_ones = [(f"{GIVEN}{at}", f"totals1.{at}", dtype) for at, dtype in pairs]
    dense_ones += [(f"{PARTIAL}{at}", f"scanned1.{at}", dtype) for at, dtype in pairs]
    held = [(f"{STATE}{at}", f"state.{at}", dtype) for at, dtype in enumerate([*totals] * (1 + 3 * levels))]
    arrays = [(name, dense((GROUP,), dtype)) for name, _, dtype in (*dense_ones, *held)]
    nest = MergedSpace((GROUP,), tuple(view.strides for _, view in arrays), (0,) * len(arrays))
    layout = layouts.make_layout(nest, arrays, (), c_order=False)
    few = (*last.extents[:-1], chunks - 1)
    made = [(f"scanned1.{at}", few, dtype) for at, dtype in pairs]
    made += [(known, (GROUP,), dtype) for _, known, dtype in held]
    advance = ScanLaunch(
        layout,
        (GROUP,),
        tuple((name, view.strides, 0) for name, view in arrays),
        "advance",
        levels,
        of_totals=True,
        axis=0,
        length=chunks - 1,
        arrays=tuple((name, known) for name, known, _ in (*dense_ones, *held)),
        made=tuple(made),
    )
    return first, advance, last


def _steps(
    walk: Walk, totals: Sequence[DType], inputs: frozenset[str], machine: Machine, depth: int
) -> list[ScanLaunch]:
    extents, axis = walk.extents, walk.axis
    is_last, extent = axis == len(extents) - 1, extents[axis]
    chunks = -(-extent // chunk_of(is_last))
    alone = prod(extents) // extent
    enough = alone >= (machine.groups if is_last else machine.columns)
    if chunks == 1 or enough or prod(extents) < machine.least:
        return [_step(walk, "whole", 1, levels_of(extent, is_last), depth)]
    if not depth and scans.fits_one_pass(extent, totals, is_last) and _may_wait(walk, machine):
        return _one_pass(walk, chunks, totals)
    few = (*extents[:axis], chunks - 1, *extents[axis + 1 :])
    views = [(at, dense(few, dtype)) for at, dtype in enumerate(totals)]
    names = {kind: [(f"{kind}{at}", view, view.strides, 0) for at, view in views] for kind in (GIVEN, PARTIAL, PREFIX)}
    kept = tuple(each for each in walk.operands if each[0] in inputs or (depth and each[0].startswith(GIVEN)))
    first = replace(walk, operands=(*kept, *names[PARTIAL]))
    middle = Walk(few, axis, (*names[GIVEN], *names[PARTIAL]))
    last = replace(walk, operands=(*walk.operands, *names[PREFIX]))
    return [
        _step(first, "totals", chunks - 1, 0, depth),
        *_steps(middle, totals, inputs, machine, depth + 1),
        _step(last, "results", chunks, 0, depth),
    ]


def _may_wait(walk: Walk, machine: Machine) -> bool:
    """Whether blocks may wait for those before, and do not wait for long. Of neighbouring columns there are as many as
    a group has threads, so that no thread waits for another of its group.
    """
    extents, axis = walk.extents, walk.axis
    columns = prod(extents) // extents[axis]
    is_last, inner = axis == len(extents) - 1, prod(extents[axis + 1 :])
    return machine.waits and (is_last or (inner >= GROUP and columns >= machine.handed))


def _one_pass(walk: Walk, chunks: int, totals: Sequence[DType]) -> list[ScanLaunch]:
    """The kernels of a scan that reads memory once: Note [Look-back] in `fusec.passes.look_back`, Note [Hand down] in
    `fusec.passes.hand_down`.
    """
    extents, axis = walk.extents, walk.axis
    extent, is_last = extents[axis], axis == len(extents) - 1
    words_along = scans.published(chunks, totals, is_last)
    seen = dense((*extents[:axis], words_along, *extents[axis + 1 :]), UINT64)
    turn = dense((1,), UINT64)
    size = prod(seen.shape)
    words = ((scans.SEEN, dense((size,), UINT64), (UINT64.nbytes,), 0), (scans.TURN, turn, (0,), 0))
    cleared = _step(Walk((size,), 0, words), "clear", 1, 0, 0)
    operands = (*walk.operands, (scans.SEEN, seen, seen.strides, 0), (scans.TURN, turn, (0,) * len(walk.extents), 0))
    found = _step(replace(walk, operands=operands), "one_pass", chunks, levels_of(extent, is_last), 0)
    plain = _step(walk, "results", chunks, 0, 0).layout  # the words are fewer than elements
    wide = plain.wide or size * UINT64.nbytes >= WIDE
    return [
        replace(cleared, extents=(size,), made=((scans.SEEN, (size,), UINT64), (scans.TURN, (1,), UINT64))),
        replace(found, layout=replace(found.layout, wide=wide)),
    ]


def _step(walk: Walk, role: Role, count: int, levels: int, depth: int) -> ScanLaunch:
    extents, axis = walk.extents, walk.axis
    is_last = axis == len(extents) - 1
    space = (*extents[:axis], count * GROUP if is_last else count, *extents[axis + 1 :])
    rows = tuple(row for _, _, row, _ in walk.operands)
    nest = MergedSpace(extents, rows, tuple(offset for *_, offset in walk.operands))
    arrays = [(name, view) for name, view, _, _ in walk.operands]
    layout = layouts.make_layout(nest, arrays, walk.raw, c_order=False)
    layout = replace(layout, wide=layout.wide or prod(space) >= WIDE)
    operands = tuple((name, row, offset) for name, _, row, offset in walk.operands)
    known = {name: _known_as(name, role, depth) for name, *_ in operands}
    made = tuple((known[name], view.shape, view.dtype) for name, view, *_ in walk.operands if name.startswith(PARTIAL))
    return ScanLaunch(
        layout, space, operands, role, levels, depth > 0, axis, extents[axis], arrays=tuple(known.items()), made=made
    )


def _known_as(name: str, role: Role, depth: int) -> str:
    """What an array between kernels is called among all: totals and their scans, by how often chunks were combined."""
    at = name.lstrip("_abcdefghijklmnopqrstuvwxyz")
    if name.startswith(GIVEN) and depth:
        return f"totals{depth}.{at}"
    if name.startswith(PARTIAL):
        return f"totals{depth + 1}.{at}" if role == "totals" else f"scanned{depth}.{at}"
    if name.startswith(PREFIX):
        return f"scanned{depth + 1}.{at}"
    return name
