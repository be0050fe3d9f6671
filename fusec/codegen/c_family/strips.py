"""Strips: a thread takes several rows of one column, so that values loaded for one row serve the next.

A 3x3 stencil reads nine elements for each result. The compiler finds the equal loads of neighbouring rows once they
stand in one block: in the interior, where no branch asks for a border, a strip of eight rows reads thirty.
"""

from __future__ import annotations

from fusec.base.kernel_abi import Layout
from fusec.base.records import dataclass
from fusec.codegen.c_family import facts
from fusec.ir.loops import Program
from fusec.passes.peel_borders import Peeled, peel_borders

ROWS = (8, 4, 2)
WORK_LIMIT = 1024  # scalar operations of an unrolled strip


@dataclass(frozen=True)
class Strip:
    """The number of rows of a thread, the place of the interior, and its body, printed for one element."""

    rows: int
    parts: Peeled
    body: list[str]


def strips(program: Program, layout: Layout) -> tuple[int, Peeled] | None:
    """The rows of a strip and the parts of a program that reads neighbours in other rows; None if strips do not pay."""
    if layout.ndim < 2 or layout.copies or facts.has_loops(program):
        return None
    parts = peel_borders(program, layout.ndim)
    if parts is None or not parts.low[-2] + parts.high[-2]:
        return None
    work = facts.cost(parts.interior)
    return next(((rows, parts) for rows in ROWS if rows * work <= WORK_LIMIT), None)
