"""The error function and its relatives."""

from __future__ import annotations

from fusec.math.coefficients import polynomial
from fusec.math.exponential import exp_rest, reduce
from fusec.math.formats import copy_sign, format_of, horner, horner_of, power_of_two
from fusec.math.pairs import Pair, quick_sum, two_product
from fusec.math.value import Value, fma, where


def erf(x: Value) -> Value:
    """The error function: x (1 + P(x^2)) up to 1, then 1 - exp(-Q(|x|)), which the next float to 1 bounds."""
    form = format_of(x)
    size = abs(x)
    small = fma(horner("erf", x * x), size, size)
    limit = form.pick(3.95, 5.93)
    bounded = where(size > limit, limit, size)
    last, *others = polynomial(form.pick_name("erf_tail", "erf_far_tail"), x.dtype)
    product = two_product(bounded, horner_of(tuple(others), bounded))
    exponent = quick_sum(product.hi, x.like(last))
    reduced = reduce(Pair(-exponent.hi, -(exponent.lo + product.lo)))
    complement = exp_rest(reduced.rest).value() * power_of_two(reduced.integer)
    return copy_sign(where(size > 1.0, 1.0 - complement, small), x)
