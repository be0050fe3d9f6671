"""Rows: arrays of which each thread has a short row of its own go through shared memory.

The rows of neighbours follow one another in memory. If each thread walked its own there, what threads load and store at
once would be as far apart as rows are. So the threads of a block copy all their rows together, element by element, and
find them in shared memory, where rows begin in different banks.
"""

from __future__ import annotations

from fusec.base.kernel_abi import SHARED_BYTES, USUAL_BLOCK, Layout, Step
from fusec.base.records import dataclass
from fusec.codegen.c_family.names import ScopeNames
from fusec.ir.expr import Expr
from fusec.ir.loops import ArrayParam, Element, Load, Moved, Program, Store
from fusec.ir.walk import inner_first, operands, statements

WORD = 4  # bytes of a bank
FEW = 8  # elements of rows that threads load on their own: so many loads touch each line again while caches have it


@dataclass(frozen=True)
class CopiedRow:
    """An array whose rows are copied.

    block: the array in shared memory. own: what points to a thread's row there. pitch: elements from row to row there.
    is_loaded: whether the rows are copied before threads use them; those of what is written are copied back.
    """

    array: ArrayParam
    block: str
    own: str
    pitch: int
    is_loaded: bool


@dataclass(frozen=True)
class Rows:
    """The arrays whose rows are copied. length: elements of a row."""

    arrays: list[CopiedRow]
    length: int


def copied_rows(program: Program, layout: Layout, names: ScopeNames) -> Rows | None:
    """The arrays with rows that are worth copying, and for which there is room, those that are stored first."""
    if program.block or not layout.rows:
        return None
    axis = layout.step(layout.rows[0][0]).index(Step.UNIT)
    is_loaded, placed = dict(layout.rows), _placed(program, axis)
    left, found = SHARED_BYTES // USUAL_BLOCK, []
    for array in sorted(program.arrays, key=lambda each: not each.written):
        pitch = _pitch(layout.row, array.dtype.nbytes)
        if layout.row <= FEW and not array.written:
            continue
        if array.name in is_loaded and array.name in placed and pitch * array.dtype.nbytes <= left:
            left -= pitch * array.dtype.nbytes
            block, own = names.fresh(f"{array.name}_rows"), names.fresh(f"{array.name}_row")
            found.append(CopiedRow(array, block, own, pitch, is_loaded[array.name]))
    return Rows(found, layout.row) if found else None


def _placed(program: Program, axis: int) -> set[str]:
    """The arrays of which a thread loads and stores elements of its row, and whose addresses nothing else uses."""
    used: set[str] = set()
    other: set[str] = set()

    def note(place: Expr, is_plain: bool) -> None:
        if isinstance(place, Element | Moved):
            is_own = is_plain and (isinstance(place, Element) or place.axes == (axis,))
            (used if is_own else other).add(place.param)

    for stmt in statements(program.body):
        roots = operands(stmt)
        for root in roots:
            note(root, isinstance(stmt, Store) and root is stmt.pointer)
        for node in inner_first(roots):
            for child in node.children:
                note(child, isinstance(node, Load))
    return used - other


def _pitch(length: int, nbytes: int) -> int:
    """The least elements from row to row with which rows of neighbours begin in different banks."""
    unit = max(1, WORD // nbytes)
    words = -(-length // unit)
    return (words | 1) * unit
