"""The gamma function and its logarithm, by Stirling's series in pairs.

Below the series' range the argument is moved up by a fixed number of steps, whose product is divided out; negative
arguments are reflected, gamma(x) gamma(1 - x) = pi / sin(pi x). Near 0 the logarithm is one logarithm and a polynomial.
"""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.math.body import call, guard, write
from fusec.math.error import pair_polynomial
from fusec.math.exponential import expm1_rest, reduce
from fusec.math.formats import INF, NAN, constant_pair, copy_sign, format_of, horner, scale
from fusec.math.hyperbolic import log_of_pair
from fusec.math.logarithm import log_of
from fusec.math.pairs import Pair, choose, quick_sum, two_product, two_sum
from fusec.math.trigonometric import cosine_pair, half_turns, sine_pair
from fusec.math.value import Term, floor, fma, rint, trunc, where

_NEAR = 4.5  # magnitudes up to which lgamma takes steps to a number near 2


@dataclass(frozen=True, slots=True)
class Stirling:
    """gamma(z) = exp(logarithm) / product, for a positive bounded z."""

    logarithm: Pair
    product: Pair


def _stirling(z: Pair, least: int = 0) -> Stirling:
    """Both parts of gamma(z); z is moved up where it lies below the series' range. least: z is not less."""
    form = format_of(z.hi)
    limit = int(form.pick(4, 8))
    low = z.hi < float(limit)
    zero = z.hi.like(0.0)
    product, moved = z, z
    for k in range(1, limit - least):
        product = product * (z + float(k))
    if least < limit:
        moved = choose(low, z + float(limit - least), z)
    inverse = 1.0 / moved.hi
    series = horner(form.pick_name("stirling_near", "stirling"), inverse * inverse) * inverse
    power = log_of_pair(moved, zero) * (moved + -0.5)
    constant = constant_pair("log_sqrt_two_pi", z.hi)
    total = (power - moved) + constant
    total = quick_sum(total.hi, total.lo + series)
    return Stirling(total, choose(low, product, Pair(zero + 1.0, zero)))


def _sine_of_half_turns(size: Term) -> Pair:
    """|sin(pi size)| for a finite magnitude."""
    angle = half_turns(size)
    odd = (angle.quadrant & 1).ne(0)
    loose = choose(odd, cosine_pair(angle.rest, careful=True), sine_pair(angle.rest, careful=True))
    sine = quick_sum(loose.hi, loose.lo)
    return choose(sine.hi < 0.0, -sine, sine)


def gamma(x: Term) -> Term:
    """The gamma function; nan at negative integers and -inf, an infinity of the zero's sign at zeros.

    Greatest error seen: float32 0.91 ulp (all arguments), float64 0.91 ulp.
    """
    form = format_of(x)
    size = abs(x)
    negative = x < 0.5
    limit = form.pick(43.5, 184.5)
    bounded = where(size > limit, limit, size)
    one = x.like(1.0)
    # left of 1/2: gamma(x) = pi / (sin(pi x) gamma(1 - x)), with 1 - x = 1 + size or 1 - size
    reflected = two_sum(one, -copy_sign(bounded, x))
    z = choose(negative, reflected, Pair(bounded, x.like(0.0)))
    parts = _stirling(z)
    reduced = reduce(parts.logarithm)
    less = expm1_rest(reduced.rest)
    head = quick_sum(one, less.hi)
    power = quick_sum(head.hi, head.lo + less.lo)
    sine = _sine_of_half_turns(bounded)
    tiny = size < 2.0 ** -(form.mantissa + 2)  # there it is 1 / x, and sine could be subnormal
    sine = choose(sine.hi > 0.0, sine, Pair(one, x.like(0.0)))
    below = choose(negative, power * sine, parts.product)
    above = choose(negative, constant_pair("pi", x) * parts.product, power)
    exponent = where(negative, -reduced.integer, reduced.integer)
    near = scale((above / below).value(), exponent)
    whole = floor(x)
    half = whole * 0.5
    odd = negative & trunc(half).ne(half)
    near = where(odd, -near, near)
    near = where(tiny, 1.0 / x, near)
    near = where((x < 0.0) & whole.eq(x), NAN, near)
    near = where((x < -limit) & whole.ne(x), where(odd, x.like(-0.0), 0.0), near)
    return where(x > limit, INF, where(x.ne(x), x, near))


def lgamma(x: Term) -> Term:
    """log(|gamma(x)|); inf at zero, the negative integers and both infinities.

    Up to 4.5, gamma(|x|) is a quotient of products times gamma(2 + t), |t| <= 1/2; beyond, Stirling's series has it.
    Near the zeros left of 0 the error is small against 1, not against the result. Greatest error seen, counted so:
    float32 0.68 ulp, float64 0.67 ulp.
    """
    form = format_of(x)
    size, negative = abs(x), x < 0.0
    whole = rint(size)
    t = size - whole  # exact
    rest = pair_polynomial("lgamma_two", Pair(t, x.like(0.0))) * t
    above, below = _steps_from_two(size, whole)
    sine = _sine_of_half_turns(size) * size
    factor = _ratio(choose(negative, sine * above, below), choose(negative, below * constant_pair("pi", x), above))
    near = (choose(negative, -rest, rest) - log_of_pair(factor, x.like(0.0))).value()
    usual = (size >= 2.0 ** -(form.mantissa * 2)) & (size <= _NEAR)
    near = guard(~usual, call(write(f"fusec_lgamma_far_{x.dtype}", (x.dtype,), _lgamma_far), x), near)
    return where((x <= 0.0) & trunc(x).eq(x), INF, near)


def _steps_from_two(size: Term, whole: Term) -> tuple[Pair, Pair]:
    """Products that make gamma(size) of gamma(2 + size - whole), for the nearest whole number up to 4."""
    one, zero = size.like(1.0), size.like(0.0)
    above = two_product(size - 1.0, where(whole > 3.0, size - 2.0, 1.0))  # both differences are exact
    square = two_product(size, size)
    below = quick_sum(size, square.hi)  # size + size^2
    below = choose(whole < 1.0, Pair(below.hi, below.lo + square.lo), Pair(where(whole < 2.0, size, 1.0), zero))
    return choose(whole < 3.0, Pair(one, zero), above), below


def _ratio(above: Pair, below: Pair) -> Pair:
    """The quotient, by one division."""
    inverse = 1.0 / below.hi
    near = above.hi * inverse
    rest = fma(-near, below.hi, above.hi) + fma(-near, below.lo, above.lo)
    return quick_sum(near, rest * inverse)


def _lgamma_far(x: Term) -> Term:
    """The same beyond 4.5."""
    form = format_of(x)
    size, negative = abs(x), x < 0.0
    one, zero = x.like(1.0), x.like(0.0)
    parts = _stirling(choose(negative, two_sum(one, size), Pair(size, zero)), int(_NEAR))
    above = choose(negative, parts.product * constant_pair("pi", x), Pair(one, zero))
    other = log_of_pair(_ratio(above, choose(negative, _sine_of_half_turns(size), parts.product)), zero)
    near = (other + choose(negative, -parts.logarithm, parts.logarithm)).value()
    usual = (size > _NEAR) & (size <= 2.0 ** (form.mantissa + 2))
    return guard(~usual, call(write(f"fusec_lgamma_extreme_{x.dtype}", (x.dtype,), _lgamma_extreme), x), near)


def _lgamma_extreme(x: Term) -> Term:
    """The same beyond 2^digits, where it is x log x - x to the last place, and near 0."""
    size = abs(x)
    logarithm = log_of(where((size > 0.0) & (size < INF), size, 1.0))
    less = logarithm + -1.0
    product = two_product(less.hi, size)
    great = product.hi + (product.lo + less.lo * size)
    great = where(abs(product.lo) < INF, great, product.hi)
    return where(x.ne(x), x, where(size.eq(INF), INF, where(size > 1.0, great, -logarithm.value())))
