"""Tiles: arrays that run along another axis than the others are read by squares, turned in shared memory.

The threads of a warp read neighbours in memory and write neighbours in memory; between the two, the values of a turned
array go through a square that all threads of the block fill and read. Its rows are one element longer than they need
to be, so that its columns, too, lie in different banks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusec.codegen.c_family import facts
from fusec.generated import Layout, Step
from fusec.ir.loops import ArrayParam, Element, Program
from fusec.layouts import TILE
from fusec.records import dataclass

if TYPE_CHECKING:
    from fusec.codegen.c_family.frame import Frame

SHARED_BYTES = 48 << 10  # what a block has on every device


@dataclass(frozen=True)
class Tiles:
    """The arrays that are turned, each with the name of its square, and the axis that they run along.

    along, across: the names of the positions in a square, along the arrays' own axis and along the last one.
    """

    axis: int
    arrays: list[tuple[ArrayParam, str]]
    along: str
    across: str


def turned(program: Program, layout: Layout) -> tuple[int, list[ArrayParam]] | None:
    """The axis that some inputs run along while the others run along the last one; None if there is nothing to turn."""
    body = program.body
    if not layout.tiled or program.block or facts.has_shuffles(body) or facts.asks_where_it_is(body):
        return None
    if facts.has_element_pointers(body) or facts.updates_beyond_elements(body):
        return None
    used = {node.param for node in facts.expressions(body) if isinstance(node, Element)}
    arrays = [each for each in program.arrays if each.name in used and layout.step(each.name)[-1] is Step.ANY]
    found = [each for each in arrays if not each.written and Step.UNIT in layout.step(each.name)]
    if not found:
        return None
    axis = layout.step(found[0].name).index(Step.UNIT)
    found = [each for each in found if layout.step(each.name)[axis] is Step.UNIT]
    return (axis, found) if sum(TILE * (TILE + 1) * each.dtype.nbytes for each in found) <= SHARED_BYTES else None


def tile_loop(frame: Frame, tiles: Tiles, inside: list[str], long: str, barrier: str) -> list[str]:
    """Every block takes a square after the other; any number of threads will do.

    inside: declarations for every element.
    """
    places, names = frame.places, frame.places.coordinates
    tile, first, second, k, count = (frame.names.fresh(name) for name in ("tile", "begin", "begin", "k", "tiles"))
    c_type, narrow = frame.coordinate_types()
    axis, last = tiles.axis, frame.layout.ndim - 1
    outer = [each for each in range(last) if each != axis]
    extent = [f"{narrow}{places.use('extent', '', each).text}" for each in range(last + 1)]
    pieces = {each: f"(({extent[each]} + {TILE - 1}) / {TILE})" for each in (axis, last)}
    wide = long.strip()
    lines = [
        f"__shared__ {frame.spelling.type(array.dtype)} {name}[{TILE}][{TILE + 1}];" for array, name in tiles.arrays
    ]
    size = f"{narrow}{places.use('size').text}"
    lines.append(f"const {wide} {count} = {size} / {extent[axis]} / {extent[last]} * {pieces[axis]} * {pieces[last]};")
    lines.append(f"for ({long}{tile} = blockIdx.x; {tile} < {count}; {tile} += gridDim.x) {{")
    at = f"{narrow}{tile}"
    body = [f"const {c_type} {second} = {at} % {pieces[last]} * {TILE};"]
    body.append(f"const {c_type} {first} = {at} / {pieces[last]} % {pieces[axis]} * {TILE};")
    for number, each in enumerate(outer):
        inner = "".join(f" / {extent[after]}" for after in reversed(outer[number + 1 :]))
        wrapped = f" % {extent[each]}" if number else ""
        body.append(f"const {c_type} {names[each]} = {at} / {pieces[last]} / {pieces[axis]}{inner}{wrapped};")

    def over(along: str, across: str, statements: list[str]) -> list[str]:
        loop = f"for (unsigned {k} = threadIdx.x; {k} < {TILE * TILE}; {k} += blockDim.x) {{"
        at_axes = [
            f"const unsigned {tiles.along} = {k} {along} {TILE}, {tiles.across} = {k} {across} {TILE};",
            f"const {c_type} {names[axis]} = {first} + {tiles.along};",
            f"const {c_type} {names[last]} = {second} + {tiles.across};",
            f"if ({names[axis]} >= {extent[axis]} || {names[last]} >= {extent[last]}) continue;",
        ]
        return ["#pragma unroll 4", loop, *_moved([*at_axes, *statements], 1), "}"]

    squares = [
        f"{name}[{tiles.along}][{tiles.across}] = {places.own_element(array.name).value.text};"
        for array, name in tiles.arrays
    ]
    body += [*over("%", "/", squares), barrier, *over("/", "%", [*inside, *frame.body]), barrier]
    return [*lines, *_moved(body, 1), "}"]


def _moved(lines: list[str], depth: int) -> list[str]:
    return ["    " * depth + line if line else line for line in lines]
