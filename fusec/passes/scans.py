"""Scans: the loops of one kernel of a scan, by its role and the axis that it walks."""

from __future__ import annotations

from fusec.ir.loops import Program
from fusec.ir.scans import Scan
from fusec.passes import Loops
from fusec.passes.hand_down import scan_down_in_one_pass
from fusec.passes.look_back import clear, scan_in_one_pass
from fusec.passes.scan_columns import scan_columns
from fusec.passes.scan_rows import advance_row, scan_rows


def write_loops(scan: Scan, loops: Loops) -> Program:
    """The program of a kernel.

    Requires: a scan as front ends make it, or one of totals. Ensures: the order of combinations of Note [Scan order].
    """
    if loops.role == "advance":
        return advance_row(scan, loops)
    if loops.role == "clear":
        return clear(scan)
    if loops.role == "one_pass":
        return scan_in_one_pass(scan, loops) if loops.is_last else scan_down_in_one_pass(scan, loops)
    return scan_rows(scan, loops) if loops.is_last else scan_columns(scan, loops)
