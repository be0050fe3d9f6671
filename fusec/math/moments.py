"""Counts, means and sums of squared deviations of two sets of elements together, as formulas.

Chan, Golub and LeVeque, The American Statistician 37, 1983. Means are pairs of numbers, the second one what the first
lacks: differences of means are then as good as the elements allow, also where these lie far from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.math.value import Term, make_complex, where


def over(value: Term, by: Term) -> Term:
    """A real or complex value divided by a real one."""
    return make_complex(value.real / by, value.imag / by) if value.dtype.is_complex else value / by


def _times(value: Term, by: Term) -> Term:
    return make_complex(value.real * by, value.imag * by) if value.dtype.is_complex else value * by


def square(value: Term) -> Term:
    """The squared distance from 0."""
    if value.dtype.is_complex:
        return value.real * value.real + value.imag * value.imag
    return value * value


def together(a: Mapping[str, Term], b: Mapping[str, Term]) -> Sequence[Term]:
    """Count, mean, what the mean lacks, and sum of squared deviations of two sets of elements together."""
    n = a["n"] + b["n"]
    share = b["n"] / where(n.eq(0), 1.0, n)
    delta = (b["mean"] - a["mean"]) + (b["rest"] - a["rest"])
    step = _times(delta, share) + a["rest"]
    mean, rest = _exact_sum(a["mean"], step)
    return [n, mean, rest, (a["square"] + b["square"]) + square(delta) * (a["n"] * share)]


def _exact_sum(x: Term, y: Term) -> tuple[Term, Term]:
    """A sum and what rounding has taken from it (Knuth, The Art of Computer Programming 2, 4.2.2)."""
    total = x + y
    shadow = total - x
    return total, (x - (total - shadow)) + (y - shadow)
