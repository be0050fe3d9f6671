"""Elementary functions of complex numbers, from real ones.

Branch cuts and signs of zeros follow W. Kahan, "Branch cuts for complex elementary functions", 1987. Finite arguments
give results that are accurate in norm; infinite and nan parts follow C99's Annex G for abs, arg, sqrt, exp and log.
"""

from __future__ import annotations

from functools import partial

from fusec.math import exponential, hyperbolic, logarithm, power, trigonometric, trigonometric_inverse
from fusec.math.body import Formula, call, write
from fusec.math.complex_basic import divide, multiply
from fusec.math.formats import INF, NAN, constant_pair, copy_sign, flip_sign, format_of
from fusec.math.pairs import Pair, quick_sum, two_product, two_sum
from fusec.math.value import Term, fma, make_complex, sqrt, where


def _real(name: str, formula: Formula, *args: Term) -> Term:
    """A call of the function of real numbers that an op of that name has."""
    types = tuple(arg.dtype for arg in args)
    return call(write(f"fusec_{name}_{types[0]}", types, formula), *args)


_exp = partial(_real, "exp", exponential.exp)
_sin = partial(_real, "sin", trigonometric.sin)
_cos = partial(_real, "cos", trigonometric.cos)
_sinh = partial(_real, "sinh", hyperbolic.sinh)
_cosh = partial(_real, "cosh", hyperbolic.cosh)
_asinh = partial(_real, "asinh", hyperbolic.asinh)
_hypot = partial(_real, "hypot", power.hypot)
_atan2 = partial(_real, "atan2", trigonometric_inverse.atan2)


def _turn(z: Term) -> Term:
    """I z."""
    return make_complex(-z.imag, z.real)


def _turn_back(z: Term) -> Term:
    """-i z."""
    return make_complex(z.imag, -z.real)


def abs_complex(z: Term) -> Term:
    """The absolute value."""
    return _hypot(z.real, z.imag)


def arg(z: Term) -> Term:
    """The angle, in [-pi, pi]."""
    return _atan2(z.imag, z.real)


def exp(z: Term) -> Term:
    """e^z."""
    form = format_of(z.real)
    a, b = z.real, z.imag
    step = form.pick(64.0, 512.0)
    great = (a > step) & (a < 3.0 * step)  # in two factors, for a small cosine may bring the product back into range
    first, second = _exp(where(great, a - step, a)), where(great, _exp(a.like(step)), 1.0)
    cosine, sine = _cos(b), _sin(b)
    endless = ~(abs(b) < INF)
    vanishing, flat = a.eq(-INF) & endless, b.eq(0.0)
    re = where(vanishing, 0.0, first * cosine * second)
    re = where(flat, _exp(a), where(a.eq(INF) & endless, INF, re))
    im = where(vanishing, copy_sign(b.like(0.0), b), first * sine * second)
    return make_complex(re, where(flat, b, im))


def log_of_size(x: Pair, y: Term) -> Pair:
    """The logarithm of sqrt(x^2 + y^2) for finite parts, not both 0, from the sum of squares in two parts."""
    form = format_of(y)
    high, low = abs(x.hi), abs(y)
    larger, smaller = where(high < low, low, high), where(high < low, high, low)
    great, small = larger > 2.0 ** (form.bias // 2 - 2), larger < 2.0 ** -(form.bias // 2 - form.mantissa - 4)
    count = form.bias // 2 + form.mantissa
    factor = where(great, 2.0**-count, where(small, larger.like(2.0**count), 1.0))
    larger, smaller = larger * factor, smaller * factor
    head, rest = two_product(larger, larger), two_product(smaller, smaller)
    total = quick_sum(head.hi, rest.hi)
    cross = (x.hi * factor) * (x.lo * factor)
    square = quick_sum(total.hi, total.lo + (head.lo + rest.lo + (cross + cross)))
    more = where(great, larger.like(2.0 * count), where(small, larger.like(-2.0 * count), 0.0))
    return hyperbolic.log_of_pair(square, more).scaled(0.5)


def _log_real(x: Pair, y: Term, logarithm: Term) -> Term:
    """`logarithm` for finite parts, not both 0, and what it is elsewhere."""
    result = where(x.hi.eq(0.0) & y.eq(0.0), -INF, logarithm)
    result = where(x.hi.ne(x.hi) | y.ne(y), NAN, result)
    return where(abs(x.hi).eq(INF) | abs(y).eq(INF), INF, result)


def log(z: Term) -> Term:
    """The principal logarithm."""
    x = Pair(z.real, z.real.like(0.0))
    return make_complex(_log_real(x, z.imag, log_of_size(x, z.imag).value()), arg(z))


def log1p(z: Term) -> Term:
    """log(1 + z), accurate near 0."""
    x = two_sum(z.real.like(1.0), z.real)
    x = Pair(x.hi, where(abs(z.real) < 2.0 ** (format_of(z.real).bias // 2), x.lo, 0.0))
    re = _log_real(x, z.imag, log_of_size(x, z.imag).value())
    nothing = z.real.eq(0.0) & z.imag.eq(0.0)
    return make_complex(where(nothing, z.real, re), _atan2(z.imag, x.hi))


def _to_base(name: str, z: Term) -> Term:
    x, factor = Pair(z.real, z.real.like(0.0)), constant_pair(name, z.real)
    angle = arg(z)
    size = _log_real(x, z.imag, (log_of_size(x, z.imag) * factor).value())
    scaled = fma(angle, factor.hi, angle * factor.lo)
    return make_complex(size, where(angle.eq(0.0), angle, scaled))  # angle * lo may be 0 of the other sign


def log2(z: Term) -> Term:
    """The logarithm to base 2."""
    return _to_base("log2e", z)


def log10(z: Term) -> Term:
    """The logarithm to base 10."""
    return _to_base("log10e", z)


def expm1(z: Term) -> Term:
    """e^z - 1, accurate near 0; the real part is written as (e^a - 1) cos b - 2 sin^2(b / 2)."""
    form = format_of(z.real)
    a, b = z.real, z.imag
    power = call(write(f"fusec_exp_{z.dtype}", (z.dtype,), exp), z)
    half = _sin(b * 0.5)
    grown = _real("expm1", exponential.expm1, a)
    near = where(b.eq(0.0), grown, fma(grown, _cos(b), -2.0 * half * half))
    beyond = a > 2.0 * form.mantissa  # there 1 is nothing beside the power
    re = where(beyond, power.real, where(a.eq(-INF), -1.0, near))
    return make_complex(re, power.imag)


def sqrt_complex(z: Term) -> Term:
    """The principal square root."""
    form = format_of(z.real)
    a, b = z.real, z.imag
    great = (abs(a) > 2.0 ** (form.bias - 3)) | (abs(b) > 2.0 ** (form.bias - 3))
    small = (abs(a) < form.tiny * 16.0) & (abs(b) < form.tiny * 16.0)
    up = 2.0 ** (2 * form.mantissa)
    factor = where(great, 2.0**-4, where(small, a.like(up), 1.0))
    back = where(great, 4.0, where(small, a.like(2.0**-form.mantissa), 1.0))
    x, y = abs(a) * factor, b * factor
    root = sqrt((x + _hypot(x, y)) * 0.5)
    other = abs(y) / (root + root)
    left = a < 0.0
    re = where(left, other, root) * back
    im = copy_sign(where(left, root, other) * back, b)
    zero = a.eq(0.0) & b.eq(0.0)
    re, im = where(zero, 0.0, re), where(zero, b, im)
    flat_end = a.eq(-INF) & (abs(b) < INF)
    re = where(flat_end, 0.0, where(a.eq(INF), INF, re))
    im = where(flat_end, copy_sign(a.like(INF), b), where(a.eq(INF) & (abs(b) < INF), copy_sign(a.like(0.0), b), im))
    upright = abs(b).eq(INF)
    return make_complex(where(upright, INF, re), where(upright, b, im))


def _endless(z: Term) -> Term:
    """Whether a part is infinite."""
    return abs(z.real).eq(INF) | abs(z.imag).eq(INF)


def sinh(z: Term) -> Term:
    """The hyperbolic sine."""
    a, b = z.real, z.imag
    product = _sinh(a) * _cos(b)
    kept = a.eq(0.0) | abs(a).eq(INF)  # where the product with the cosine of an infinity says nothing
    re = where(kept & product.ne(product), a, product)
    return make_complex(re, where(b.eq(0.0), b, _cosh(a) * _sin(b)))


def cosh(z: Term) -> Term:
    """The hyperbolic cosine."""
    a, b = z.real, z.imag
    re, im = _cosh(a) * _cos(b), _sinh(a) * _sin(b)
    zero = flip_sign(copy_sign(a.like(0.0), a), b)
    im = where((a.eq(0.0) | b.eq(0.0)) & im.ne(im), zero, im)
    return make_complex(where(abs(a).eq(INF) & re.ne(re), INF, re), im)


def tanh(z: Term) -> Term:
    """The hyperbolic tangent, from tan b and sinh a (Kahan)."""
    form = format_of(z.real)
    a, b = z.real, z.imag
    limit = form.pick(11.0, 22.0)
    bounded = copy_sign(where(abs(a) < limit, a, limit), a)
    tangent = _real("tan", trigonometric.tan, b)
    sine = _sinh(bounded)
    stretch = 1.0 + tangent * tangent
    below = 1.0 + stretch * sine * sine
    upright = abs(tangent).eq(INF)
    re = where(upright, 1.0 / sine, stretch * sqrt(1.0 + sine * sine) * sine / below)
    im = where(upright, 0.0, tangent / below)
    far = ~(abs(a) < limit)
    half = _exp(-abs(a))
    im_far = 4.0 * _sin(b) * _cos(b) * half * half
    im_far = where((abs(b) < INF) | abs(a).ne(INF), im_far, copy_sign(b.like(0.0), b))
    lost = a.ne(a) | far & im_far.ne(im_far)
    re = where(far, copy_sign(a.like(1.0), a), re)
    re = where(lost, NAN, where(a.eq(0.0), a, re))
    im = where(b.eq(0.0), b, where(a.ne(a), NAN, where(far, im_far, im)))
    return make_complex(re, im)


def sin(z: Term) -> Term:
    """The sine."""
    return _turn_back(sinh(_turn(z)))


def cos(z: Term) -> Term:
    """The cosine."""
    return cosh(_turn(z))


def tan(z: Term) -> Term:
    """The tangent."""
    return _turn_back(tanh(_turn(z)))


def pow_(x: Term, y: Term) -> Term:
    """x^y = e^(y log x); 1 where y is 0, and 0 to a power with a positive real part is 0."""
    logarithm = log(x)
    exponent = make_complex(
        _difference(y.real, logarithm.real, y.imag, logarithm.imag),
        _difference(y.real, logarithm.imag, -y.imag, logarithm.real),
    )
    result = exp(exponent)
    nothing = x.real.eq(0.0) & x.imag.eq(0.0) & (y.real > 0.0)
    unit = y.real.eq(0.0) & y.imag.eq(0.0)
    re = where(unit, 1.0, where(nothing, 0.0, result.real))
    return make_complex(re, where(unit | nothing, 0.0, result.imag))


def by_products(exponent: int, x: Term) -> Term:
    """x^exponent by squares and products in NumPy's order; powers of 0 are 0 without signs, or nan."""
    if exponent == 1:
        return x
    one = make_complex(x.real.like(1.0), x.real.like(0.0))
    if exponent in (2, 3):
        found = multiply(x, x) if exponent == 2 else multiply(x, multiply(x, x))
    else:
        found, square, count = one, x, abs(exponent)
        while count:
            found = multiply(found, square) if count % 2 else found
            count //= 2
            square = multiply(square, square) if count else square
    if exponent == 0:
        return one
    found = divide(one, found) if exponent < 0 else found
    nothing, zero = x.real.eq(0.0) & x.imag.eq(0.0), 0.0 if exponent > 0 else NAN
    return make_complex(where(nothing, zero, found.real), where(nothing, zero, found.imag))


def _difference(a: Term, b: Term, c: Term, d: Term) -> Term:
    """A b - c d with one rounding or little more."""
    first, second = two_product(a, b), two_product(-c, d)
    total = two_sum(first.hi, second.hi)
    rest = total.lo + (first.lo + second.lo)
    return total.hi + where(abs(rest) < INF, rest, 0.0)


def _roots(z: Term) -> tuple[Term, Term]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    root = write(f"fusec_sqrt_complex_{z.dtype}", (z.dtype,), sqrt_complex)
    first = call(root, make_complex(1.0 - z.real, -z.imag))
    return first, call(root, make_complex(1.0 + z.real, z.imag))


def _great(z: Term) -> Term:
    """Whether |z|, and so a product of the roots above, may be beyond the greatest number or nearly so."""
    limit = 2.0 ** (format_of(z.real).bias - 3)
    return (abs(z.real) > limit) | (abs(z.imag) > limit)


def _asinh_of_difference(great: Term, first: tuple[Term, Term], second: tuple[Term, Term]) -> Term:
    """The size of asinh(a b - c d); where `great`, of an eighth of it, plus log 8, since there asinh(s) is log(2 s)."""
    factor = where(great, first[0].like(0.125), 1.0)
    difference = (first[0] * factor) * first[1] - (second[0] * factor) * second[1]
    more = 3.0 * constant_pair("ln2", factor).hi
    return abs(_asinh(difference)) + where(great, more, 0.0)


def asin(z: Term) -> Term:
    """The arc sine."""
    minus, plus = _roots(z)
    endless, great = _endless(z), _great(z)
    factor = where(great, z.real.like(0.125), 1.0)
    below = (minus.real * factor) * plus.real - (minus.imag * factor) * plus.imag
    below = where(endless, abs(z.imag), below)
    im = where(endless, INF, _asinh_of_difference(great, (minus.real, plus.imag), (minus.imag, plus.real)))
    upright = z.real.eq(0.0)
    re = where(upright, z.real, _atan2(z.real * factor, below))
    return make_complex(re, copy_sign(im, z.imag))


def acos(z: Term) -> Term:
    """The arc cosine."""
    minus, plus = _roots(z)
    endless = _endless(z)
    im = where(endless, INF, _asinh_of_difference(_great(z), (plus.real, minus.imag), (plus.imag, minus.real)))
    re = where(endless, _atan2(abs(z.imag), z.real), 2.0 * _atan2(minus.real, plus.real))
    re = where(z.real.eq(0.0), constant_pair("half_pi", z.real).hi, re)
    return make_complex(re, copy_sign(im, -z.imag))


def atanh(z: Term) -> Term:
    """The inverse hyperbolic tangent: log((1 + z) / (1 - z)) / 2 by its parts."""
    form = format_of(z.real)
    x, y = abs(z.real), z.imag
    gap = 1.0 - x
    below = gap * gap + y * y
    re = 0.25 * _real("log1p", logarithm.log1p, 4.0 * x / below)
    im = 0.5 * _atan2(2.0 * y, gap * (1.0 + x) - y * y)
    # above the pole y^2 underflows, and log(1 + 4 / y^2) is log 4 - 2 log |y|; beside it the gap's square is a normal
    # number, as 1 - x is exact there
    height = abs(y)
    above = gap.eq(0.0) & (height < 2.0 ** -(form.mantissa + 1))
    re = where(above, 0.5 * (constant_pair("ln2", x).hi - _real("log", logarithm.log, height)), re)
    far = (x > 2.0 ** (form.bias // 3)) | (abs(y) > 2.0 ** (form.bias // 3))
    size = _hypot(x * 0.25, y * 0.25)  # a quarter of |z|, which may overflow
    re = where(far, where(size < INF, (x * 0.25) / size / size * 0.25, 0.0), re)
    im = where(far, copy_sign(constant_pair("half_pi", x).hi, y), im)
    endless = abs(y).eq(INF)
    lost = x.ne(x) & ~endless | y.ne(y) & x.ne(0.0) & x.ne(INF)
    re = where(lost, NAN, where(y.ne(y), 0.0, re))
    im = where(lost | y.ne(y), NAN, im)
    return make_complex(copy_sign(re, z.real), im)


def asinh(z: Term) -> Term:
    """The inverse hyperbolic sine."""
    return _turn_back(asin(_turn(z)))


def acosh(z: Term) -> Term:
    """The inverse hyperbolic cosine."""
    angle = acos(z)
    # i acos(z) or -i acos(z), whichever has a positive real part
    return make_complex(abs(angle.imag), copy_sign(angle.real, z.imag))


def atan(z: Term) -> Term:
    """The arc tangent."""
    return _turn_back(atanh(_turn(z)))
