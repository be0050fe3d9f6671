"""Hyperbolic functions and their inverses."""

from __future__ import annotations

from fusec.math.exponential import reduce, tail
from fusec.math.formats import copy_sign, format_of, horner, power_of_two
from fusec.math.pairs import Pair
from fusec.math.value import Value, fma, where


def tanh(x: Value) -> Value:
    """The hyperbolic tangent: an odd polynomial up to 1, then 1 - 2 / (e^2x + 1)."""
    form = format_of(x)
    size = abs(x)
    square = x * x
    small = fma(horner("tanh", square) * square, size, size)
    limit = form.pick(9.02, 19.1)
    bounded = where(size > limit, limit, size)
    reduced = reduce(Pair(bounded + bounded, x.like(0.0)))
    factor = power_of_two(reduced.integer)
    rest = reduced.rest.hi + reduced.rest.lo
    grown = fma(rest + tail(rest), factor, factor + 1.0)
    return copy_sign(where(size > 1.0, 1.0 - 2.0 / grown, small), x)
