"""The passes over a scan: each part goes through them as a program of its own, and comes back."""

from __future__ import annotations

from collections.abc import Callable

from fusec.base.records import replace
from fusec.ir.loops import Program
from fusec.ir.scans import Scan, first_program
from fusec.passes.reductions import run_on_reduction


def run_on_scan(scan: Scan, run: Callable[[Program], Program]) -> Scan:
    """The scan after `run`, passes over a program, has seen each of its parts.

    Requires and ensures what `run_on_reduction` does.
    """
    reduction = run_on_reduction(scan.reduction, run)
    if not scan.first:
        return replace(scan, reduction=reduction)
    first = run(first_program(scan))
    known = {function.name for function in reduction.functions}
    more = tuple(function for function in first.functions if function.name not in known)
    return replace(scan, reduction=replace(reduction, functions=(*reduction.functions, *more)), first=first.body)
