"""Resolve: turn what a memory layout determines into constants, such as the numbers of axes."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import INT64
from fusec.ir.expr import Expr, const
from fusec.ir.loops import Program, Query
from fusec.ir.walk import rewritten


def resolve_axes(program: Program, ndims: Mapping[str, int]) -> Program:
    """Replace every query of a number of axes by the number.

    ndims: raw array -> axes, "" for the iteration space; queries of arrays it does not hold stay.
    Requires: nothing. Ensures: no query of `ndim` is left for the arrays in `ndims`.
    """

    def change(expr: Expr) -> Expr:
        match expr:
            case Query(param, "ndim") if param in ndims:
                return const(ndims[param], INT64)
            case _:
                return expr

    return rewritten(program, change)
