"""Where neighbours are: positions moved beyond the ends of an axis and mapped back, and who has all neighbours."""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import BOOL, INT64
from fusec.ir.expr import Expr, apply, const
from fusec.ir.loops import query

ZERO, ONE = const(0, INT64), const(1, INT64)


def inside(before: Sequence[int], after: Sequence[int]) -> Expr:
    """Whether so many elements exist before and after the element along every axis, as `peel_borders` looks for it."""
    found: Expr = const(True, BOOL)
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        here, extent = query("coordinate", axis), query("shape", axis)
        tests = []
        if low > 0:
            tests.append(apply("greater_equal", here, const(low, INT64)))
        if high > 0:
            tests.append(apply("less", here, apply("subtract", extent, const(high, INT64))))
        for test in tests:
            found = test if found == const(True, BOOL) else apply("logical_and", found, test)
    return found


def mapped(mode: str, index: Expr, extent: Expr) -> tuple[Expr, Expr | None]:
    """An index outside mapped inside, as scipy.ndimage has its modes; with constant, whether it is inside.

    Right for any distance, also beyond several widths of the array: reflect repeats it with a period of 2n, mirror with
    one of 2n - 2. Most elements of a border find most of their neighbours inside, and divide for the others only.
    """
    last = apply("subtract", extent, ONE)
    inside = apply("logical_and", apply("greater_equal", index, ZERO), apply("less", index, extent))
    match mode:
        case "nearest":
            return apply("minimum", apply("maximum", index, ZERO), last), None
        case "wrap":
            back: Expr = apply("remainder", index, extent)
        case "reflect":
            back = _there_and_back(index, extent, apply("add", extent, extent), ONE)
        case "mirror":
            back = _there_and_back(index, extent, apply("maximum", apply("add", last, last), ONE), ZERO)
        case _:  # constant, and skip, which stores nothing there
            return index, inside
    return apply("where", inside, index, back), None


def _there_and_back(index: Expr, extent: Expr, period: Expr, twice: Expr) -> Expr:
    """An index that runs to the end of an axis and back again; twice: 1 if the ends come twice, else 0."""
    rest = apply("remainder", index, period)
    back = apply("subtract", apply("subtract", period, twice), rest)
    return apply("where", apply("less", rest, extent), rest, back)
