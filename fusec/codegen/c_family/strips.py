"""Strips: a thread takes several rows of one column, so that what is loaded for one of them serves the next.

A 3x3 stencil reads nine elements for each result. The compiler finds the equal loads of neighbouring rows once they
stand in one block: in the interior, where no branch asks for a border, a strip of eight rows reads thirty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusec.base.kernel_abi import Layout
from fusec.base.records import dataclass
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.file import indented
from fusec.ir.loops import Program
from fusec.passes.peel_borders import Split, split

if TYPE_CHECKING:
    from fusec.codegen.c_family.frame import Frame

ROWS = (8, 4, 2)
WORK_LIMIT = 1024  # scalar operations of an unrolled strip


@dataclass(frozen=True)
class Strip:
    """How many rows a thread takes, where the interior is, and its body, printed for one element."""

    rows: int
    parts: Split
    body: list[str]


def strips(program: Program, layout: Layout) -> tuple[int, Split] | None:
    """The rows of a strip and the parts of a program that reads neighbours in other rows; None if strips do not pay."""
    if layout.ndim < 2 or facts.has_loops(program):
        return None
    parts = split(program, layout.ndim)
    if parts is None or not parts.low[-2] + parts.high[-2]:
        return None
    work = facts.cost(parts.interior)
    return next(((rows, parts) for rows in ROWS if rows * work <= WORK_LIMIT), None)


def strip_loop(frame: Frame, strip: Strip, inside: list[str], threads: str, first: str, long: str) -> list[str]:
    """A loop over strips: all rows of the interior at once, those of other strips one by one.

    inside: declarations for every element. first, threads: this thread's first strip, and how far the next one is.
    """
    places, fresh, parts, rows = frame.places, frame.names.fresh, strip.parts, strip.rows
    position, pieces, begin, row, k, count = (
        fresh(name) for name in ("strip", "pieces", "begin", "row", "k", "strips")
    )
    *outer, along, last = range(frame.layout.ndim)
    extent = [places.use("extent", "", axis).text for axis in range(frame.layout.ndim)]
    names, c_type, narrow = places.coordinates, *frame.coordinate_types()
    wide = long.strip()
    head = [
        f"const {wide} {pieces} = ({narrow}{extent[along]} + {rows - 1}) / {rows};",
        f"const {wide} {count} = {narrow}{places.use('size').text} / {narrow}{extent[along]} * {pieces};",
        f"for ({long}{position} = {first}; {position} < {count}; {position} += {threads}) {{",
    ]
    at = f"{narrow}{position}"
    lines = [f"const {c_type} {names[last]} = {at} % {narrow}{extent[last]};"]
    wrapped = f" % {narrow}{pieces}" if outer else ""
    lines.append(f"const {c_type} {begin} = {at} / {narrow}{extent[last]}{wrapped} * {rows};")
    for axis in outer:
        inner = "".join(f" / {narrow}{extent[after]}" for after in reversed(outer[axis + 1 :]))
        wrapped = f" % {narrow}{extent[axis]}" if axis else ""
        lines.append(
            f"const {c_type} {names[axis]} = {at} / {narrow}{extent[last]} / {narrow}{pieces}{inner}{wrapped};"
        )
    conditions = [f"{begin} >= {parts.low[along]}", f"{begin} + {rows} <= {extent[along]} - {parts.high[along]}"]
    for axis in (*outer, last):
        conditions += [f"{names[axis]} >= {parts.low[axis]}"] if parts.low[axis] else []
        conditions += [f"{names[axis]} < {extent[axis]} - {parts.high[axis]}"] if parts.high[axis] else []
    at_row = f"const {c_type} {names[along]} = "
    lines += [f"if ({' && '.join(conditions)}) {{", "    #pragma unroll"]
    lines += [f"    for (int {k} = 0; {k} < {rows}; ++{k}) {{", f"        {at_row}{begin} + {k};"]
    lines += [*indented([*inside, *strip.body], 2), "    }", "} else {"]
    end = f"{row} < {begin} + {rows} && {row} < {extent[along]}"
    lines += [f"    for ({c_type} {row} = {begin}; {end}; ++{row}) {{", f"        {at_row}{row};"]
    lines += [*indented([*inside, *frame.body], 2), "    }", "}"]
    return [*head, *indented(lines, 1), "}"]
