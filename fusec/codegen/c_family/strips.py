"""Strips: a thread takes several rows and columns of a stencil's interior, and loads what these read once for all.

A 5x5 stencil reads 25 elements for each result, and 64 for four rows of four. They are loaded before anything is
computed: a quotient, say, branches, and no load would be moved to before it. Elements whose neighbours do not all exist
are left to threads that take one at a time, so that no thread of a warp waits for one that asks for borders.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusec.base.kernel_abi import VECTOR_BYTES, Layout, Step
from fusec.base.records import dataclass
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.groups import LoadGroup, group_of
from fusec.codegen.c_family.names import ScopeNames
from fusec.ir.axes import distances_of
from fusec.ir.expr import Expr
from fusec.ir.loops import REGISTER, ArrayParam, At, Load, Local, Program
from fusec.ir.walk import map_expressions, rewriter
from fusec.passes.peel_borders import Peeled, peel_borders

LONG_ROWS = (8, 4, 2)  # of one column
ROWS = (4, 2, 1)  # of several columns
WORK_LIMIT = 2048  # scalar operations of an unrolled strip
HELD_BYTES = 4 * 48  # of neighbours that a thread holds
FEW_BYTES = 4 * 40  # with which a thread needs no more than 64 registers
ROW_BYTES = 4 * 112  # of one row: there is no smaller strip of several columns

Distances = tuple[int, ...]


@dataclass(frozen=True)
class NearElements:
    """The neighbours of a strip in one array, at one distance along all axes but the last two.

    name: of the local array that holds them. outer: the distances. first, rows: the distance of its first row, and how
    many rows it has. before, columns: how far its first column is before the strip, and how many columns it has.
    """

    array: ArrayParam
    name: str
    outer: Distances
    first: int
    rows: int
    before: int
    columns: int

    def words(self, columns: int) -> list[tuple[int, int]]:
        """Where in a row words of one, two or four elements are, if one begins so often, and how long they are."""
        found, at = [], 0
        while at < self.columns:
            count = columns
            while (at - self.before) % count or at + count > self.columns:
                count //= 2
            found.append((at, count))
            at += count
        return found


@dataclass(frozen=True)
class Shape:
    """The rows and columns of a strip."""

    rows: int
    columns: int

    def word(self, array: ArrayParam) -> int:
        """The bytes of the columns in an array; 0 if they are no whole words."""
        nbytes = self.columns * array.dtype.nbytes
        return nbytes if self.columns > 1 and nbytes % REGISTER == 0 else 0


@dataclass(frozen=True)
class HeldStrip:
    """What a thread holds of a strip. row, column: the counters of its rows and columns.

    interior: the program for one element, with locals for neighbours. near: what is loaded before. places: where the
    locals are. groups: the results of which all columns are stored at once.
    """

    row: str
    column: str
    interior: Program
    near: list[NearElements]
    places: dict[str, str]
    groups: list[LoadGroup]


@dataclass(frozen=True)
class Strip:
    """What a thread takes at once. parts: the place of the interior. body: printed for one element."""

    shape: Shape
    parts: Peeled
    held: HeldStrip
    body: list[str]

    @property
    def blocks(self) -> int:
        """How many blocks a multiprocessor should have room for; left alone, ptxas wants more and spills registers."""
        return 4 if self.shape.columns > 1 and _nbytes(self.held.near) <= FEW_BYTES else 2

    def reach(self, axis: int) -> tuple[int, int]:
        """How many elements at both ends of an axis are not taken in strips; first along the last one, whole words."""
        low, high = self.parts.low, self.parts.high
        unit = self.shape.columns if axis == len(low) - 1 else 1
        return -(-low[axis] // unit) * unit, high[axis]


def strips(program: Program, layout: Layout) -> tuple[Shape, Peeled] | None:
    """The shape of strips and the parts of a program that reads neighbours in other rows; None if strips do not pay."""
    if layout.ndim < 2 or layout.copies or facts.has_loops(program):
        return None
    parts = peel_borders(program, layout.ndim)
    if parts is None or not parts.low[-2] + parts.high[-2]:
        return None
    work = facts.cost(parts.interior)
    arrays = {each.name: each for each in program.arrays}
    found = _neighbours(parts.interior, layout.ndim)
    together = [arrays[name] for name, _ in found] + _dense(program, layout)
    widest = max((each.dtype.nbytes for each in together), default=VECTOR_BYTES)
    is_dense = bool(found) and all(dict(layout.raw)[name][1] for name, _ in found)
    columns = min(4, VECTOR_BYTES // widest) if is_dense else 1
    spans = [max(row for row, _ in near) - min(row for row, _ in near) for near in found.values()]
    for rows in ROWS if columns > 1 else ():
        shape = Shape(rows, columns)
        near = _near(program, parts.interior, layout.ndim, shape, ScopeNames())
        fits = _nbytes(near) <= (ROW_BYTES if rows == 1 else HELD_BYTES) and rows * columns * work <= WORK_LIMIT
        if fits and rows <= max(1, max(spans) // len(found)):
            return shape, parts
    return next(((Shape(rows, 1), parts) for rows in LONG_ROWS if rows * work <= WORK_LIMIT // 2), None)


def held(program: Program, layout: Layout, shape: Shape, parts: Peeled, names: ScopeNames) -> HeldStrip:
    """What a thread holds of a strip of the interior."""
    near = _near(program, parts.interior, layout.ndim, shape, names)
    row, column = names.fresh("k"), names.fresh("lane") if shape.columns > 1 else ""
    places: dict[str, str] = {}
    found = {(each.array.name, each.outer): each for each in near}

    def change(expr: Expr) -> Expr:
        match expr:
            case Load(At(name, index), kind):
                distances = distances_of(index)
                each = (
                    found.get((name, distances[:-2]))
                    if distances is not None and len(distances) == layout.ndim
                    else None
                )
                if each is None or distances is None:
                    return expr
                down, across = distances[-2] - each.first, distances[-1] + each.before
                local = f"{each.name}.{down}.{across}"  # no name of a user has dots
                places[local] = f"{each.name}[{_plus(row, down)}][{_plus(column, across)}]"
                return Local(local, kind)
        return expr

    inside = parts.interior
    body = map_expressions(inside.body, rewriter(change))
    interior = Program(inside.name, inside.params, body, inside.functions, inside.source)
    results = _dense(program, layout) if shape.columns > 1 else []
    groups = [group_of(each, interior, names) for each in results if shape.word(each)]
    return HeldStrip(row, column, interior, near, places, [each for each in groups if not each.loaded])


def _neighbours(interior: Program, ndim: int) -> dict[tuple[str, Distances], set[tuple[int, int]]]:
    """By array and distances along the outer axes, the distances along the last two at which elements are loaded."""
    found: dict[tuple[str, Distances], set[tuple[int, int]]] = {}
    for name, distances in _loads(interior, ndim):
        found.setdefault((name, distances[:-2]), set()).add((distances[-2], distances[-1]))
    return found


def _loads(interior: Program, ndim: int) -> Iterator[tuple[str, Distances]]:
    for node in facts.nodes(interior.body):
        match node:
            case Load(At(name, index)):
                distances = distances_of(index)
                if distances is not None and len(distances) == ndim:
                    yield name, distances


def _near(program: Program, interior: Program, ndim: int, shape: Shape, names: ScopeNames) -> list[NearElements]:
    """The rectangles around what is loaded; what nothing reads of them is not loaded."""
    arrays = {each.name: each for each in program.arrays}
    result = []
    for (name, outer), near in _neighbours(interior, ndim).items():
        rows, columns = zip(*near, strict=True)
        first, before = min(rows), -min(columns)
        height, width = max(rows) - first + shape.rows, before + shape.columns + max(columns)
        result.append(NearElements(arrays[name], names.fresh(f"{name}_near"), outer, first, height, before, width))
    return result


def _nbytes(near: list[NearElements]) -> int:
    """The bytes of registers that neighbours take."""
    return sum(each.rows * each.columns * max(REGISTER, each.array.dtype.nbytes) for each in near)


def _dense(program: Program, layout: Layout) -> list[ArrayParam]:
    """The results that run along the last axis only."""
    steps = dict(layout.steps)
    written = [each for each in program.arrays if each.written and each.name in steps]
    return [each for each in written if steps[each.name][-1] is Step.UNIT and steps[each.name].count(Step.UNIT) == 1]


def _plus(name: str, number: int) -> str:
    return f"{name} + {number}" if name and number else name or str(number)
