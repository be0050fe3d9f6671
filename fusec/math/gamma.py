"""The gamma function and its logarithm, by Stirling's series in pairs.

Below the series' range the argument is moved up by a fixed number of steps, whose product is divided out; negative
arguments are reflected, gamma(x) gamma(1 - x) = pi / sin(pi x).
"""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.math.error import pair_polynomial
from fusec.math.exponential import expm1_rest, reduce
from fusec.math.formats import INF, NAN, constant_pair, copy_sign, format_of, horner, scale
from fusec.math.hyperbolic import log_of_pair
from fusec.math.logarithm import log_of
from fusec.math.pairs import Pair, choose, quick_sum, reciprocal, two_product, two_sum
from fusec.math.trigonometric import cosine_pair, half_turns, sine_pair
from fusec.math.value import Term, floor, trunc, where


@dataclass(frozen=True, slots=True)
class Stirling:
    """gamma(z) = exp(logarithm) / product, for a positive bounded z."""

    logarithm: Pair
    product: Pair


def _stirling(z: Pair) -> Stirling:
    """Both parts of gamma(z); z is moved up where it lies below the series' range."""
    form = format_of(z.hi)
    steps = int(form.pick(4, 8))
    low = z.hi < float(steps)
    zero = z.hi.like(0.0)
    product = z
    for k in range(1, steps):
        product = product * (z + float(k))
    moved = choose(low, z + float(steps), z)
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

    Near the zeros left of 0 the error is small against 1, not against the result.
    """
    form = format_of(x)
    size = abs(x)
    great = size > 2.0 ** (form.mantissa + 2)
    negative = x < 0.0
    bounded = where(great, 1.0, size)
    one, zero = x.like(1.0), x.like(0.0)
    parts = _stirling(choose(negative, two_sum(one, bounded), Pair(bounded, zero)))
    sine = _sine_of_half_turns(bounded)
    sine = choose(sine.hi > 0.0, sine, Pair(one, zero))
    factor = choose(negative, parts.product * constant_pair("pi", x) / sine, reciprocal(parts.product))
    other = log_of_pair(factor, zero)
    rising = choose(negative, other - parts.logarithm, other + parts.logarithm)
    near = rising.value()
    for centre, name in ((1.0, "lgamma_one"), (2.0, "lgamma_two")):
        t = x - centre
        root = (pair_polynomial(name, Pair(t, zero)) * t).value()
        near = where(abs(t) <= 0.25, root, near)
    # beyond 2^digits: x log x - x, to the last place
    far = log_of_pair(Pair(where(great, size, 1.0), zero), zero) + -1.0
    product = two_product(far.hi, size)
    far_value = product.hi + (product.lo + far.lo * size)
    far_value = where(abs(product.lo) < INF, far_value, product.hi)
    near = where(great, far_value, near)
    tiny = size < 2.0 ** -(form.mantissa * 2)
    near = where(tiny, -log_of(where(tiny & (size > 0.0), size, 1.0)).value(), near)
    whole = (x <= 0.0) & trunc(x).eq(x)
    return where(x.ne(x), x, where(whole | size.eq(INF), INF, near))
