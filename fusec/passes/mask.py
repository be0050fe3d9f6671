"""Mask: a reduction that excludes elements replaces them by the identity."""

from __future__ import annotations

from fusec.base.dtypes import BOOL
from fusec.base.records import replace
from fusec.ir.expr import Expr, apply, scalar_type
from fusec.ir.loops import ArrayParam, Assign, Declare, If, Load, Local, Program, Stmt
from fusec.ir.reductions import ReductionIR, Stage, parts_of, whole_of


def mask(reduction: ReductionIR, name: str, empty: Program) -> ReductionIR:
    """The reduction with one more input, a bool array `name`, of the elements that take part.

    empty: the program for a total of no elements, which declares the parts of the identity under the total's names.
    Requires: one stage. Ensures: what the body does otherwise happens only where the mask holds.
    """
    (stage,) = reduction.stages
    assert stage.accumulator is not None, "a stage that accumulates"
    assert reduction.total is not None, "an identity belongs to a total"
    names = [part for part, _ in reduction.total.parts]
    declared = {stmt.name: stmt for stmt in empty.body if isinstance(stmt, Declare)}
    identity = [declared[part] for part in names]
    before = empty.body[: empty.body.index(identity[0])]
    loads = tuple(stmt for stmt in stage.body if isinstance(stmt, Declare) and isinstance(stmt.value, Load))
    rest = stage.body[len(loads) :]
    results: list[Stmt] = []
    values: list[Expr] = []
    assigned: list[Stmt] = []
    for stmt, value in zip(identity, parts_of(stage.accumulator.value), strict=True):
        dtype = scalar_type(value)
        results.append(Declare(f"{name}_{stmt.name}", dtype, stmt.value))
        values.append(Local(f"{name}_{stmt.name}", dtype))
        assigned.append(Assign(f"{name}_{stmt.name}", value))
    param = ArrayParam(name, BOOL)
    takes = param.load()
    if rest:
        body: tuple[Stmt, ...] = (*before, *results, *loads, If(takes, (*rest, *assigned)))
    else:
        body = (*before, *results, *loads)
        pairs = zip(parts_of(stage.accumulator.value), values, strict=True)
        values = [apply("where", takes, value, instead) for value, instead in pairs]
    accumulator = replace(stage.accumulator, value=whole_of(tuple(values), stage.accumulator.type))
    return replace(reduction, params=(*reduction.params, param), stages=(Stage(body, accumulator, stage.then),))
