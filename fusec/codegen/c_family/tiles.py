"""Tiles: arrays that run along another axis than the others are read in squares, transposed in shared memory.

The threads of a warp read neighbours in memory and write neighbours in memory; between the two, the values of a turned
array go through a square that all threads of the block fill and read. Its rows are one element longer than they need
to be, so that its columns, too, lie in different banks. All that a thread loads is under way before it waits.
"""

from __future__ import annotations

from fusec.arguments.layouts import TILE
from fusec.base.kernel_abi import SHARED_BYTES, Layout, Step
from fusec.base.records import dataclass
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.pieces import POSTFIX, PRIMARY, Piece
from fusec.codegen.c_family.places import AddressText
from fusec.ir.loops import ArrayParam, Element, Program

SQUARE_THREADS = 256  # that share a square; a block of more lets the others wait
LANES = TILE * TILE // SQUARE_THREADS
AHEAD_BYTES = 64  # that a thread loads beside the square before it waits


@dataclass(frozen=True)
class Tiles:
    """The transposed arrays, each with the name of its square, and the axis that they run along.

    ahead: other inputs, each with the name of the array that holds a thread's elements. along, across, lane: the names
    of the positions in a square, along the arrays' own axis and along the last one, and of what counts a thread's.
    """

    axis: int
    arrays: list[tuple[ArrayParam, str]]
    ahead: list[tuple[ArrayParam, str]]
    along: str
    across: str
    lane: str

    def places(self) -> list[tuple[str, AddressText]]:
        """Where the body finds its elements, by array."""
        squares = [(array.name, _at(f"{name}[{self.along}]", self.across)) for array, name in self.arrays]
        return squares + [(array.name, _at(name, self.lane)) for array, name in self.ahead]


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
    inputs = [each for each in program.arrays if each.name in used and not each.written and not each.raw]
    found = [each for each in inputs if layout.step(each.name)[-1] is Step.ANY and Step.UNIT in layout.step(each.name)]
    if not found:
        return None
    axis = layout.step(found[0].name).index(Step.UNIT)
    found = [each for each in found if layout.step(each.name)[axis] is Step.UNIT]
    if sum(TILE * (TILE + 1) * each.dtype.nbytes for each in found) > SHARED_BYTES:
        return None
    others = [each for each in inputs if each not in found]
    if LANES * sum(each.dtype.nbytes for each in others) > AHEAD_BYTES:
        others = []
    squares = [(array, names.fresh(f"{array.name}_tile")) for array in found]
    ahead = [(array, names.fresh(f"{array.name}_ahead")) for array in others]
    return Tiles(axis, squares, ahead, names.fresh("along"), names.fresh("across"), names.fresh("k"))
