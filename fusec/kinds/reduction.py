"""How a reduction walks its arrays: the order of axes, and the phases until every total is one value.

Plain numbers only, so that host and device arrays are treated alike; the choices made here are part of the order of
operations (`fusec.ir.reductions`) and must not depend on a target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod

from fusec.arguments import layouts
from fusec.arguments.layouts import WIDE, MergedSpace, Shape, View
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import SHARED_BYTES, USUAL_BLOCK, VECTOR_BYTES, Layout, Step
from fusec.base.records import dataclass, replace
from fusec.ir.loops import GROUP
from fusec.ir.reductions import AXIS, SHORT, Role, chunk_of
from fusec.kinds.launch import Launch
from fusec.kinds.rows import MANY, MOST_AT_END, RowKind, Sharing

FEW = 64  # columns of a row that are better walked with those of other rows
Walked = tuple[str, Shape, int]  # an operand with its strides, and with its offset


@dataclass(frozen=True)
class Phase(Launch):
    """One kernel of a reduction.

    Its extents are those of the walk. The stride along `axis` of arrays stored once for a chunk is from chunk to chunk.
    """

    role: Role  # which part of the reduction
    axis: int  # which of the extents is reduced
    chunks: int  # that it has
    stored: Shape  # of the arrays that later phases read
    row: RowKind = RowKind(1)

    @property
    def is_last(self) -> bool:
        """Whether the reduced axis is the innermost of the walk, and has the order of one."""
        return self.axis == len(self.extents) - 1

    @property
    def positions(self) -> int:
        """The number of chunks of all totals, which is how many times the kernel's work is done."""
        return prod(self.extents[: self.axis]) * self.chunks * prod(self.extents[self.axis + 1 :])

    @property
    def space(self) -> Shape:
        """The walk with the axis replaced by its chunks."""
        return (*self.extents[: self.axis], self.chunks, *self.extents[self.axis + 1 :])

    @cached_property
    def sharing(self) -> Sharing:
        """How threads share a chunk on targets with many threads."""
        if self.is_last:
            is_wide = self.row.fills_sides(self.extent) and self.layout.aligned >= VECTOR_BYTES
            return self.row.sharing(self.role, self.extent, prod(self.space), is_wide)
        return self.row.column(self.role, self.extent)

    @cached_property
    def dense_rows(self) -> tuple[str, ...]:
        """The operands of which each of many threads has a row of its own, which ends where the next one begins."""
        if self.role != "whole" or len(self.extents) != 2 or self.extent < 2 or prod(self.space) < MANY:
            return ()
        if self.chunks > 1 or (self.is_last and self.sharing.few != 1):
            return ()
        along, across = self.axis, 1 - self.axis
        return tuple(
            name
            for name, strides, _ in self.operands
            if self.layout.step(name)[along] is Step.UNIT and strides[across] == self.extent * strides[along]
            if strides[across] < SHARED_BYTES // USUAL_BLOCK  # or a block has no room for its rows
        )

    def code(self, threads: bool) -> str:
        """A text that differs for phases with different code. threads: for targets with many threads."""
        sharing = f"{self.sharing.code}/" if threads and self.sharing.code else ""
        rows = f"{self.extent}:{','.join(self.dense_rows)}/" if threads and self.dense_rows else ""
        return f"{self.role}/{self.axis}/{sharing}{rows}{super().code(threads)}"

    @property
    def extent(self) -> int:
        """Elements along the axis that is reduced."""
        return self.extents[self.axis]

    @property
    def known(self) -> Mapping[str, int]:
        """The number that its code may ask for."""
        return {AXIS: self.extent}

    @property
    def threads(self) -> Shape:
        """The same for targets with many threads, where a group or a block shares each chunk of a last axis."""
        in_groups = self.is_last and not self.sharing.segments
        return (*self.space[:-1], self.chunks * (self.sharing.few or GROUP)) if in_groups else self.space

    @property
    def threads_layout(self) -> Layout:
        """The layout of a kernel over `threads`, which may exceed the number of elements."""
        return replace(self.layout, wide=True) if prod(self.threads) >= WIDE else self.layout


@dataclass(frozen=True)
class Operand:
    """An argument of a reduction as memory: an input over the walk's shape, or an output over the remaining axes.

    strides: along all axes of the walk, in bytes; 0 where an input is broadcast, and for outputs along reduced axes.
    is_output: an input that has one element for each total lies as an output does.
    """

    name: str
    view: View
    strides: Shape
    is_output: bool


@dataclass
class _Walk:
    """Axes from outermost to innermost, while they are ordered and merged. reduced: for each axis."""

    extents: list[int]
    reduced: list[bool]
    rows: dict[str, list[int]]
    offsets: dict[str, int]

    def take(self, order: Sequence[int]) -> None:
        """Keep these axes, in this order."""
        self.extents = [self.extents[axis] for axis in order]
        self.reduced = [self.reduced[axis] for axis in order]
        self.rows = {name: [row[axis] for axis in order] for name, row in self.rows.items()}

    def merge(self) -> None:
        """Join an axis with the next inner one of its kind wherever every operand steps over that evenly."""
        axis = len(self.extents) - 2
        while axis >= 0:
            inner = self.extents[axis + 1]
            even = all(row[axis] == row[axis + 1] * inner for row in self.rows.values())
            if even and self.reduced[axis] == self.reduced[axis + 1]:
                self.extents[axis : axis + 2] = [self.extents[axis] * inner]
                del self.reduced[axis]
                for row in self.rows.values():
                    del row[axis]
            axis -= 1


@dataclass(frozen=True)
class PhaseRules:
    """The properties of a reduction that its phases depend on."""

    row: RowKind
    # Name as output, name as input, dtype of the arrays between phases, in C order of the space of the phase that
    # stores them.
    partials: Sequence[tuple[str, str, DType]]
    raw: Sequence[tuple[str, View]] = ()  # the arrays that the texts address
    as_is: bool = False  # axes are neither merged nor put in another order: the texts ask for positions
    totals_as_is: bool = False  # nor are they afterwards: what is made of totals asks for theirs
    longest: int = 0  # elements of a row that one kernel takes, although it has several chunks


def phases(shape: Shape, axes: Sequence[int], operands: Sequence[Operand], rules: PhaseRules) -> tuple[Phase, ...]:
    """The kernels of a reduction of the axes `axes` of the walk `shape`, in order. Requires: no extent is 0."""
    walk = _Walk(
        list(shape),
        [axis in axes for axis in range(len(shape))],
        {each.name: list(each.strides) for each in operands},
        dict.fromkeys((each.name for each in operands), 0),
    )
    if not rules.as_is:
        walk.take([axis for axis, extent in enumerate(shape) if extent != 1])
        inputs = [each.name for each in operands if not each.is_output]
        _walk_upwards(walk, inputs)
        rows = [walk.rows[name] for name in sorted(inputs, key=lambda name: -sum(map(bool, walk.rows[name])))]
        walk.take(sorted(range(len(walk.extents)), key=lambda axis: tuple(-abs(row[axis]) for row in rows)))
        walk.merge()
        units = [(walk.rows[each.name], each.view.dtype.nbytes) for each in operands if not each.is_output]
        _along_rows(walk, units, rules.row.lanes)
    views = {each.name: each.view for each in operands}
    outputs = [each.name for each in operands if each.is_output]
    found: list[Phase] = []
    while True:
        phase, walk = _phase(walk, views, outputs, rules, is_first=not found)
        found.append(_named(phase, len(found), rules.partials))
        if phase.role in ("whole", "last"):
            return tuple(found)
        rules = replace(rules, raw=(), as_is=rules.totals_as_is)
        views = {name: views[name] for name in outputs}
        views |= {name: dense(phase.stored, dtype) for _, name, dtype in rules.partials}


def has_end(launches: Sequence[Launch]) -> bool:
    """Whether the last of several kernels has so little to do that one block of the kernel before can do it."""
    last = launches[-1]
    return len(launches) > 1 and isinstance(last, Phase) and last.role == "last" and prod(last.extents) <= MOST_AT_END


def _named(phase: Phase, number: int, partials: Sequence[tuple[str, str, DType]]) -> Phase:
    """The phase with the names that its operands have among all phases. number: of phases before it."""
    known = {stored: f"{stored}{number}" for stored, _, _ in partials}
    known |= {given: f"{stored}{number - 1}" for stored, given, _ in partials}
    arrays = tuple((name, known.get(name, name)) for name, _, _ in phase.operands)
    if phase.role in ("whole", "last"):
        return replace(phase, arrays=arrays)
    return replace(
        phase, arrays=arrays, made=tuple((known[stored], phase.stored, dtype) for stored, _, dtype in partials)
    )


def _along_rows(walk: _Walk, inputs: Sequence[tuple[Sequence[int], int]], lanes: int) -> None:
    """Move a reduced axis to the end if all inputs are contiguous along it, and some have gaps along the last axis.

    inputs: their strides, and the bytes of an element. lanes: the least elements of such an axis.
    """
    if walk.reduced[-1:] != [False] or True not in walk.reduced:
        return
    axis = len(walk.reduced) - 1 - walk.reduced[::-1].index(True)
    is_dense = all(row[axis] in (0, unit) for row, unit in inputs)
    if is_dense and walk.extents[axis] >= lanes and any(row[-1] not in (0, unit) for row, unit in inputs):
        walk.take([*(at for at in range(len(walk.extents)) if at != axis), axis])
        walk.merge()


def _walk_upwards(walk: _Walk, inputs: Sequence[str]) -> None:
    """Reverse every axis along which no input moves up and some input moves down."""
    for axis, extent in enumerate(walk.extents):
        column = [walk.rows[name][axis] for name in inputs]
        if min(column, default=0) < 0 and max(column) <= 0:
            for name, row in walk.rows.items():
                walk.offsets[name] += (extent - 1) * row[axis]
                row[axis] = -row[axis]


def _phase(
    walk: _Walk, views: Mapping[str, View], outputs: Sequence[str], rules: PhaseRules, *, is_first: bool
) -> tuple[Phase, _Walk]:
    """The phase that reduces the innermost reduced axis, and the walk that is left after it."""
    if True not in walk.reduced:
        walk.extents.append(1)
        walk.reduced.append(True)
        for row in walk.rows.values():
            row.append(0)
    axis = len(walk.reduced) - 1 - walk.reduced[::-1].index(True)
    if axis == len(walk.extents) - 1 and walk.extents[axis] <= SHORT and False in walk.reduced and not rules.as_is:
        inner = len(walk.reduced) - 1 - walk.reduced[::-1].index(False)
        walk.take([at for at in range(len(walk.extents)) if at != inner] + [inner])
        axis -= 1
    is_last = axis == len(walk.extents) - 1
    chunks = -(-walk.extents[axis] // chunk_of(rules.row.lanes, is_last))
    if is_first and is_last and chunks > 1 and walk.extents[axis] <= rules.longest and prod(walk.extents[:axis]) > 1:
        chunks = 1
    is_done = chunks == 1 and sum(walk.reduced) == 1
    extents = tuple(walk.extents)
    space = (*extents[:axis], chunks, *extents[axis + 1 :])
    stored = [] if is_done else [(name, dense(space, dtype)) for name, _, dtype in rules.partials]
    names = [name for name in views if is_done or name not in outputs]
    rows = [*((name, tuple(walk.rows[name]), walk.offsets[name]) for name in names)]
    rows += [(name, view.strides, 0) for name, view in stored]
    role: Role = ("whole" if is_first else "last") if is_done else ("first" if is_first else "next")
    after = _after(walk, space, axis, outputs, rules)
    if not (is_last or rules.as_is):
        extents, axis, rows = _columns_together(extents, axis, rows)
    nest = MergedSpace(extents, tuple(row for _, row, _ in rows), tuple(offset for *_, offset in rows))
    arrays = [*((name, views[name]) for name in names), *stored]
    is_wide = is_last and role in ("whole", "first") and rules.row.fills_sides(extents[axis])
    layout = layouts.make_layout(nest, arrays, rules.raw, c_order=rules.as_is, vectors=is_wide)
    layout = replace(layout, tiled=False) if is_wide else layout
    return Phase(layout, extents, tuple(rows), role, axis, chunks, space, rules.row), after


def _columns_together(extents: Shape, axis: int, rows: list[Walked]) -> tuple[Shape, int, list[Walked]]:
    """The walk of a phase with few axes of columns: which of them are reduced later does not matter here.

    The axes before the reduced one move behind it if there are few columns.
    """
    kept = [at for at in range(len(extents)) if at != axis]
    order = [axis, *kept] if prod(extents[axis + 1 :]) < FEW else list(range(len(extents)))
    walk = _Walk(list(extents), [at == axis for at in range(len(extents))], {}, {})
    walk.rows = {name: list(row) for name, row, _ in rows}
    walk.take(order)
    walk.merge()
    return tuple(walk.extents), walk.reduced.index(True), [(name, tuple(walk.rows[name]), at) for name, _, at in rows]


def _after(walk: _Walk, space: Shape, axis: int, outputs: Sequence[str], rules: PhaseRules) -> _Walk:
    """The walk over the results of chunks; where positions count, an axis that is done stays, with one element."""
    rows = {name: list(walk.rows[name]) for name in outputs}
    rows |= {name: list(dense(space, dtype).strides) for _, name, dtype in rules.partials}
    left = _Walk([*space], [*walk.reduced], rows, {name: walk.offsets.get(name, 0) for name in rows})
    if rules.totals_as_is:
        left.reduced[axis] = space[axis] > 1
        return left
    left.take([at for at in range(len(space)) if at != axis or space[axis] > 1])
    left.merge()
    return left


def dense(shape: Shape, dtype: DType) -> View:
    """A new array in C order, on the host or on a device."""
    strides, step = [0] * len(shape), dtype.nbytes
    for axis in range(len(shape) - 1, -1, -1):
        strides[axis] = step
        step *= shape[axis]
    return View(0, shape, tuple(strides), dtype)
