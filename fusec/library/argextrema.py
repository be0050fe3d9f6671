"""Positions of extremes: a chunk finds its extreme, then, from cache, the first position of that extreme.

Fewer operations for each element than to carry places along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fusec.base.dtypes import BOOL, INT64, DType
from fusec.ir.expr import const
from fusec.ir.loops import Local, Program, Query
from fusec.library.formula import Fields, Formula, Lowered, combining, parts_named, reduction_of, stage_of
from fusec.math.value import Term, unary, where


def place(*, upwards: bool) -> Callable[[Formula, Sequence[int]], Lowered]:
    """The rule for the first position of the largest or the smallest element; -1 if no element takes part."""

    def rule(formula: Formula, reduced: Sequence[int]) -> Lowered:
        x, index = formula.element(), formula.index
        held = formula.held if x.dtype == BOOL else x.dtype
        x, nowhere = x.to(held), Term(const(np.iinfo(index.numpy).max, index))

        def further(a: Term, b: Term) -> Term:
            beyond = b > a if upwards else b < a
            return where(beyond | unary("isnan", b), b, a) if held.is_float else where(beyond, b, a)

        def first(a: Term, b: Term) -> Term:
            return where(b < a, b, a)

        def together(a: Mapping[str, Term], b: Mapping[str, Term]) -> Sequence[Term]:
            found = further(a["m"], b["m"])
            places = [where(_is(side["m"], found), side["at"], nowhere) for side in (a, b)]
            return [found, first(*places)]

        fields: Fields = (("m", held), ("at", index))
        name = formula.name
        functions = (
            combining(f"{name}_extreme", fields[:1], lambda a, b: [further(a["m"], b["m"])]),
            combining(f"{name}_first", fields[1:], lambda a, b: [first(a["at"], b["at"])]),
            combining(name, fields, together),
        )
        extreme, at = Term(Local("extreme", held)), Term(Local("place", index))
        here = formula.chosen(_is(x, extreme), Term(const(False, BOOL)))
        values = (
            formula.chosen(x, Term(const(end_of(held, not upwards), held))),
            where(here, _position(reduced, index), nowhere),
        )
        stages = tuple(map(partial(stage_of, formula), ("extreme", "place"), ([each] for each in values), functions))
        found = parts_named("total", fields)["at"].to(INT64)
        missing = parts_named("total", fields)["at"].eq(nowhere)
        stores = formula.stores([where(missing, -1, found) if formula.condition is not None else found])
        return reduction_of(formula, stages, [extreme, at], functions, stores), Program(name, (), ())

    return rule


def _is(x: Term, extreme: Term) -> Term:
    """Whether an element is the extreme: equal, or nan, which is one wherever it is."""
    return x.eq(extreme) | unary("isnan", x) if x.dtype.is_float else x.eq(extreme)


def end_of(dtype: DType, upper: bool) -> object:
    """The last value of a dtype at one end."""
    if dtype.is_float:
        return np.inf if upper else -np.inf
    info = np.iinfo(dtype.numpy)
    return info.max if upper else info.min


def _position(reduced: Sequence[int], index: DType) -> Term:
    """The position among the elements of one total, in C order of the axes that are reduced."""
    found = Term(const(0, index))
    for axis in reduced:
        along = const(axis, INT64)
        extent = Term(Query("", "shape", along, INT64)).to(index)
        here = Term(Query("", "coordinate", along, INT64)).to(index)
        found = here if axis == reduced[0] else found * extent + here
    return found
