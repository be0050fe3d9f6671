"""Inverses of the error function and the normal distribution.

erfinv(x) / x is smooth in w = -log(1 - x^2) and, for great w, in sqrt(w), after M. B. Giles, "Approximating the
erfinv function", 2011. The logarithm and the last steps of each polynomial are computed in pairs.
"""

from __future__ import annotations

from fusec.base.dtypes import FLOAT64
from fusec.math.error import pair_polynomial
from fusec.math.formats import INF, NAN, constant_pair, copy_sign, format_of
from fusec.math.hyperbolic import log_of_pair
from fusec.math.logarithm import log_pair
from fusec.math.pairs import Pair, choose, pair_sqrt, quick_sum, two_product
from fusec.math.value import Term, fma, where


def _ratio(w: Pair) -> Pair:
    """erfinv(x) / x of w = -log(1 - x^2)."""
    zero = w.hi.like(0.0)
    near = pair_polynomial("erfinv", choose(w.hi < 6.25, w, Pair(zero, zero)) + -3.125)
    root = pair_sqrt(choose(w.hi < 6.25, Pair(zero + 9.0, zero), w))
    middle = pair_polynomial("erfinv_middle", choose(root.hi < 4.0, root, Pair(zero + 3.0, zero)) + -3.25)
    tail = choose(root.hi < 4.0, middle, _tail(choose(root.hi < 4.0, Pair(zero + 5.0, zero), root)))
    return choose(w.hi < 6.25, near, tail)


def _tail(root: Pair) -> Pair:
    """The same of sqrt(w) from 4 on."""
    if root.hi.dtype != FLOAT64:
        return pair_polynomial("erfinv_far_single", root + -7.0)
    one, zero = root.hi.like(1.0), root.hi.like(0.0)
    far = pair_polynomial("erfinv_far", choose(root.hi < 9.0, root, Pair(one * 6.0, zero)) + -6.0)
    bounded = choose(root.hi < 9.0, Pair(one * 9.0, zero), root)
    extreme = pair_polynomial("erfinv_extreme", (Pair(one, zero) / bounded) + -0.074) * bounded
    return choose(root.hi < 9.0, far, extreme)


def erfinv(x: Term) -> Term:
    """The inverse of erf; infinite at -1 and 1.

    Greatest error seen: float32 0.80 ulp, float64 0.68 ulp.
    """
    size = abs(x)
    zero = x.like(0.0)
    usable = where(size < 1.0, size, 0.5)
    one = x.like(1.0)
    square = two_product(usable, usable)
    central = _negated_log1p(-square)
    outer = -log_of_pair(quick_sum(one, -usable) * quick_sum(one, usable), zero)
    w = choose(usable < 0.5, central, outer)
    ratio = _ratio(w)
    form = format_of(x)
    small, up = size < form.tiny * 16.0, 2.0 ** (form.mantissa + 1)  # where the second product would be subnormal
    scaled = where(small, usable * up, usable)
    near = fma(ratio.hi, scaled, ratio.lo * scaled) * where(small, x.like(1.0 / up), 1.0)
    near = where(size < 1.0, near, where(size.eq(1.0), x.like(INF), NAN))
    return copy_sign(near, x)


def _negated_log1p(x: Pair) -> Pair:
    """-log(1 + x) for x in [-1/4, 0]."""
    return -log_pair(x, x.hi.like(0.0))


def _of_complement(y: Term) -> Pair:
    """The inverse of erfc for y in (0, 1], never negative: 0 at 1."""
    zero, one = y.like(0.0), y.like(1.0)
    form = format_of(y)
    # 1 - x^2 = y (2 - y) for x = 1 - y, which is exact from 1/2 on
    x = quick_sum(one, -y)
    square = x * x
    central = _negated_log1p(-choose(y < 0.5, Pair(zero, zero), square))
    up = 2.0 ** (2 * form.mantissa)
    tiny = y < form.tiny * up
    scaled = where(tiny, y * up, y)
    product = two_product(scaled, -y)
    twice = quick_sum(scaled + scaled, product.hi)
    outer = -log_of_pair(quick_sum(twice.hi, twice.lo + product.lo), where(tiny, y.like(-2.0 * form.mantissa), 0.0))
    return _ratio(choose(y < 0.5, outer, central)) * x


def erfcinv(x: Term) -> Term:
    """The inverse of erfc; infinite at 0 and 2.

    Greatest error seen: float32 0.60 ulp, float64 0.54 ulp.
    """
    right = x > 1.0
    mirrored = where(right, 2.0 - x, x)  # exact
    usable = (mirrored > 0.0) & (mirrored <= 1.0)
    near = _of_complement(where(usable, mirrored, 0.5)).value()
    near = where(mirrored.eq(0.0), INF, where(usable, near, NAN))
    return where(x.ne(x), x, where(right, -near, near))


def normcdfinv(x: Term) -> Term:
    """The inverse of normcdf, -sqrt(2) erfcinv(2 x); infinite at 0 and 1.

    Greatest error seen: float32 0.59 ulp, float64 0.55 ulp.
    """
    right = x > 0.5
    mirrored = where(right, 1.0 - x, x)  # exact
    usable = (mirrored > 0.0) & (mirrored <= 0.5)
    near = (_of_complement(where(usable, mirrored, 0.25) * 2.0) * constant_pair("sqrt_two", x)).value()
    near = where(mirrored.eq(0.0), INF, where(usable, near, NAN))
    return where(x.ne(x), x, where(right, near, where(near.eq(0.0), 0.0, -near)))
