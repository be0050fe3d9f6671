"""Degrees and radians."""

from __future__ import annotations

from fusec.math.formats import INF, constant_pair
from fusec.math.value import Term, fma, where


def _times(name: str, x: Term) -> Term:
    """X times a split constant, with little more than one rounding."""
    factor = constant_pair(name, x)
    return where((abs(x) < INF) & x.ne(0.0), fma(x, factor.hi, x * factor.lo), x)  # x * lo may be 0 of the other sign


def deg2rad(x: Term) -> Term:
    """Degrees to radians."""
    return _times("degree", x)


def rad2deg(x: Term) -> Term:
    """Radians to degrees."""
    return _times("radian", x)
