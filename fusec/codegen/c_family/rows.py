"""Rows: arrays of which each thread has a short row of its own go through shared memory.

The rows of neighbours follow one another in memory. If each thread walked its own there, what threads load and store at
once would be as far apart as rows are. So the threads of a block copy all their rows together, by words of 16 bytes,
and find them in shared memory, where what they read at once lies in different banks.
"""

from __future__ import annotations

from collections.abc import Iterator

from fusec.base.kernel_abi import SHARED_BYTES, USUAL_BLOCK, VECTOR_BYTES, Layout
from fusec.base.records import dataclass
from fusec.codegen.c_family.names import ScopeNames
from fusec.ir.expr import Expr
from fusec.ir.loops import ArrayParam, Element, Load, Moved, Program, Stmt, Store
from fusec.ir.walk import inner_first, operands, statements

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
    is_loaded, placed = dict(layout.rows), _placed(program, layout.along)
    left, found = SHARED_BYTES // USUAL_BLOCK, list[CopiedRow]()
    for array in sorted(program.arrays, key=lambda each: not each.written):
        pitch = _pitch(layout.row, array.dtype.nbytes)
        if layout.row <= FEW and not array.written:
            continue
        if array.name not in is_loaded or array.name not in placed:
            continue
        own, nbytes = names.fresh(f"{array.name}_row"), pitch * array.dtype.nbytes
        taken = next((each for each in found if _follows(each, array, program, found)), None)
        if taken is not None:
            found.append(CopiedRow(array, taken.block, own, pitch, is_loaded[array.name]))
        elif nbytes <= left:
            left -= nbytes
            found.append(CopiedRow(array, names.fresh(f"{array.name}_rows"), own, pitch, is_loaded[array.name]))
    return Rows(found, layout.row) if found else None


def _follows(stored: CopiedRow, array: ArrayParam, program: Program, found: list[CopiedRow]) -> bool:
    """Whether threads store rows in memory that nothing else uses before, but for rows of another array of this dtype.

    found: all rows so far.
    """
    if array.written or stored.is_loaded or stored.array.dtype != array.dtype:
        return False
    if sum(each.block == stored.block for each in found) > 1:
        return False
    places = [{each.param for each in _places(stmt)} for stmt in program.body]
    last = max((at for at, names in enumerate(places) if array.name in names), default=-1)
    return all(stored.array.name not in names for names in places[: last + 1])


def _places(stmt: Stmt) -> Iterator[Element | Moved]:
    """The elements of arrays that a statement addresses."""
    roots = (root for each in statements([stmt]) for root in operands(each))
    return (each for each in inner_first(roots) if isinstance(each, Element | Moved))


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
    """The elements from row to row, so that threads find their rows in different banks.

    They do in rows of an odd number of words of 1, 2, 4, 8 or 16 bytes, if they read such words. Rows that are an even
    number of words of 16 bytes get one more.
    """
    return length + (VECTOR_BYTES // nbytes if length * nbytes % (2 * VECTOR_BYTES) == 0 else 0)
