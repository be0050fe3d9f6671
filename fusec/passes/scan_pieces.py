"""Pieces of scans, for runtimes that put a scan together from its chunks while these lie in a cache.

A chunk is scanned by itself into arrays `PARTIAL`; results are those, from `LOCAL`, with the prefix on their left.
"""

from __future__ import annotations

from fusec.dtypes import INT64
from fusec.ir.expr import Pointer
from fusec.ir.loops import ArrayParam, Declare, Element, If, Load, Local, Program, ScalarParam, Stmt
from fusec.ir.reductions import addressed
from fusec.ir.scans import Scan, between, first_program, params_of, partials, prefixes
from fusec.passes.counting import Running, test
from fusec.passes.scan_columns import scan_columns
from fusec.passes.scan_rows import scan_rows
from fusec.records import replace

LOCAL = "_local"  # and a number: an array of one part of what chunks give by themselves
BEFORE = "_before"  # a scalar that is not 0 where a prefix exists


def local_piece(scan: Scan, *, is_last: bool, batch: int = 1) -> Program:
    """One chunk by itself: along the last axis of one, or along the first axis of two."""
    _, stores = partials(scan.total)
    reduction = replace(scan.reduction, params=params_of(scan, "totals"), finish=stores)
    write = scan_rows if is_last else scan_columns
    return write(Scan(reduction), 0, "whole", 0, batch)


def gather_piece(scan: Scan) -> Program:
    """A group of totals, from `GIVEN` to `PARTIAL`."""
    return scan_rows(between(scan), 0, "whole")


def finish_piece(scan: Scan) -> Program:
    """The results of elements side by side; what `finish` addresses lies where results do."""
    run, reduction, total = Running(scan.running), scan.reduction, scan.total
    values = [ArrayParam(f"{LOCAL}{at}", dtype) for at, (_, dtype) in enumerate(total.parts)]
    before = prefixes(total)
    code: list[Stmt] = run.declare("_mine", [_load(param) for param in values])
    left = run.declare("_prefix", [_load(param) for param in before])
    joined = run.join("_mine", run.variable("_prefix"), run.variable("_mine"))
    code.append(If(test("not_equal", Local(BEFORE, INT64), 0), (*left, *joined)))
    pairs = zip(total.parts, run.variable("_mine"), strict=True)
    code += [Declare(name, dtype, value) for (name, dtype), value in pairs]
    used = addressed(reduction.finish)
    params = [param for param in reduction.params if isinstance(param, ScalarParam) or param.name in used]
    everything = (*params, *values, *before, ScalarParam(BEFORE, INT64))
    return Program(reduction.name, everything, (*code, *reduction.finish), reduction.functions, reduction.source)


def join_piece(scan: Scan) -> Program:
    """Values with those on their left, from `LOCAL` and `PREFIX` to `PARTIAL`."""
    return finish_piece(between(scan))


def first_piece(scan: Scan) -> Program:
    """What the first elements of an exclusive scan get."""
    return first_program(scan)


def _load(param: ArrayParam) -> Load:
    return Load(Element(param.name, Pointer(param.dtype, "global", const=True)), param.dtype)
