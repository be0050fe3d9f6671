"""Tiles: arrays that run along another axis than the others are read in squares, transposed in shared memory.

The threads of a warp read neighbours in memory and write neighbours in memory; between the two, the values of a turned
array go through a square that all threads of the block fill and read. All that a thread loads is under way before it
waits.

Note [Words]: elements of fewer than 4 bytes travel in words of two or four neighbours, for a warp moves as many words
at a time whatever is in them. A thread loads as many neighbours from as many lines, and turns this small square in
registers: what were neighbours along the array's own axis are now neighbours along the last one. So the words of a
square in shared memory are what the body reads, and it loads and stores words of all arrays. What waits in registers
for the rest is not taken apart, since that would be to wait for it. Where lines begin between words, or end there,
threads load elements one by one, and the square takes them as they are.

Note [Banks]: a thread stores down a column of the square and loads along a row. In row r, what belongs into column c is
in column c ^ r (of words: r counts rows of small squares), so that columns, too, lie in different banks.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.arguments.layouts import TILE
from fusec.base.kernel_abi import SHARED_BYTES, VECTOR_BYTES, Layout, Step
from fusec.base.records import dataclass
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.groups import LoadGroup, group_of
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.pieces import POSTFIX, PRIMARY, Piece
from fusec.codegen.c_family.places import AddressText
from fusec.ir.loops import REGISTER, ArrayParam, Element, Program

SQUARE_THREADS = 256  # that share a square; a block of more lets the others wait
SIDE_IN_WORDS = 64  # elements along both sides of a square of narrow elements
AHEAD_BYTES = 64  # that a thread loads beside the square before it waits
TURNED_BYTES = 128  # of turned arrays that a thread holds, if it takes words of them
WORK_LIMIT = 1024  # scalar operations of the elements of a thread, if it takes words of them


@dataclass(frozen=True)
class Turned:
    """An array that goes through a square.

    ahead: what holds a thread's elements before. group: a word of the square.
    """

    array: ArrayParam
    square: str
    ahead: str
    group: str


@dataclass(frozen=True)
class Tiles:
    """The transposed arrays and what is loaded beside them.

    axis: that the turned arrays run along. side: elements along both sides of a square. lanes: neighbours in a word.
    ahead: others that are loaded before, each with the name of what holds a thread's elements. groups: the others of
    which a thread takes words. along, across: the names of the positions in a square, along the arrays' own axis and,
    in words, along the last one. k: what counts a thread's words; neighbour: what counts the elements of a word.
    """

    axis: int
    side: int
    lanes: int
    arrays: list[Turned]
    ahead: list[tuple[ArrayParam, str]]
    groups: list[LoadGroup]
    along: str
    across: str
    k: str
    neighbour: str

    @property
    def words(self) -> int:
        """The words along a side."""
        return self.side // self.lanes

    @property
    def elements(self) -> int:
        """Of the square, those of a thread."""
        return self.side * self.side // SQUARE_THREADS

    @property
    def blocks(self) -> int:
        """How many blocks a multiprocessor should have room for; left alone, ptxas gives threads 80 registers."""
        return 4 if self.lanes > 1 else 0

    @property
    def note(self) -> str:
        """What was specialised."""
        words = f", in words of {self.lanes}" if self.lanes > 1 else ""
        return f"squares of {self.side} x {self.side} elements, turned in shared memory{words}"

    def column(self, along: str, across: str) -> str:
        """Where a word is in its row of a square; see Note [Banks]."""
        return f"{across} ^ {along}{f' / {self.lanes}' if self.lanes > 1 else ''}"

    def places(self) -> list[tuple[str, AddressText]]:
        """Where the body finds its elements, by array."""
        if self.lanes == 1:
            column = self.column(self.along, self.across)
            squares = [(each.array.name, _at(f"{each.square}[{self.along}]", column)) for each in self.arrays]
            return squares + [(array.name, _at(name, self.k)) for array, name in self.ahead]
        groups = [(each.array.name, each.group) for each in self.arrays]
        groups += [(each.array.name, each.name) for each in self.groups]
        return [(array, _at(f"{group}.v", self.neighbour)) for array, group in groups]


def _at(base: str, index: str) -> AddressText:
    return AddressText(Piece(base, POSTFIX), Piece(index, PRIMARY))


def turned(program: Program, layout: Layout, names: ScopeNames) -> Tiles | None:
    """The inputs that run along another axis while the others run along the last one; None if there are none.

    With these, those others that are worth loading before a thread waits.
    """
    body = program.body
    if not layout.tiled or program.block or facts.has_shuffles(body) or facts.asks_where_it_is(body):
        return None
    if facts.has_element_pointers(body) or facts.updates_beyond_elements(body):
        return None
    used = {node.param for node in facts.nodes(body) if isinstance(node, Element)}
    arrays = [each for each in program.arrays if each.name in used]
    inputs = [each for each in arrays if not each.written]
    found = [each for each in inputs if layout.step(each.name)[-1] is Step.ANY and Step.UNIT in layout.step(each.name)]
    if not found:
        return None
    axis = layout.step(found[0].name).index(Step.UNIT)
    found = [each for each in found if layout.step(each.name)[axis] is Step.UNIT]
    beside = [each for each in arrays if each not in found]
    lanes = _lanes(program, layout, found, beside)
    side = TILE if lanes == 1 else SIDE_IN_WORDS
    if side * side * _nbytes(found) > SHARED_BYTES:
        return None
    dense = [each for each in beside if layout.step(each.name)[-1] is Step.UNIT]
    groups = [group_of(each, program, names) for each in dense] if lanes > 1 else []
    others = (
        [each.array for each in groups if each.loaded] if lanes > 1 else [each for each in beside if each in inputs]
    )
    if side * side // SQUARE_THREADS * _nbytes(others) > AHEAD_BYTES:
        others = []
    ahead = [(each, names.fresh(f"{each.name}_ahead")) for each in others]
    squares = [Turned(each, *(names.fresh(f"{each.name}_{what}") for what in _PARTS)) for each in found]
    return Tiles(axis, side, lanes, squares, ahead, groups, *map(names.fresh, ("along", "across", "k", "lane")))


_PARTS = ("tile", "ahead", "group")


def _lanes(program: Program, layout: Layout, found: Sequence[ArrayParam], beside: Sequence[ArrayParam]) -> int:
    """The neighbours in a word, as many as the narrowest array has; 1 if nothing is narrow, or words do not pay."""
    if layout.aligned < VECTOR_BYTES:
        return 1  # rows of an odd number of elements, mostly: words would be loaded one element at a time
    steps = {each.name: layout.step(each.name) for each in (*found, *beside)}
    dense = [each for each in beside if steps[each.name][-1] is Step.UNIT]
    lanes = max(1, REGISTER // min(each.dtype.nbytes for each in (*found, *dense)))
    elements = SIDE_IN_WORDS**2 // SQUARE_THREADS
    if any(steps[each.name].count(Step.UNIT) > 1 for each in (*found, *dense)):
        return 1  # lines begin one element after each other
    if any(each.written and each not in dense for each in beside):
        return 1  # past the end of a line, its last element is computed again, and only words are not stored again
    if elements * _nbytes(found) > TURNED_BYTES:
        return 1
    if facts.has_loops(program) or elements * facts.cost(program) > WORK_LIMIT:
        return 1
    return lanes


def _nbytes(arrays: Sequence[ArrayParam]) -> int:
    return sum(each.dtype.nbytes for each in arrays)
