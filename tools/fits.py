"""What `tools/coefficients.py` fits: one row per polynomial, and the constants that are split into parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 45
Function = Callable[[mp.mpf], mp.mpf]


@dataclass(frozen=True)
class Fit:
    """One polynomial: the function on [low, high] with a weight; bits: wanted error 2^-bits, 0 for no such dtype."""

    name: str
    text: str
    function: Function
    weight: Function
    low: mp.mpf
    high: mp.mpf
    bits32: float
    bits64: float
    start: int = 2  # the least number of coefficients tried
    paired: int = 0  # leading coefficients kept as unevaluated sums of two floats


def of_square(function: Function) -> Function:
    """A function of z = x^2 from an even function of x."""
    return lambda z: function(mp.sqrt(z))


def one(_: mp.mpf) -> mp.mpf:
    """The weight of an absolute error."""
    return mp.mpf(1)


CENTRE = mp.mpf(0.074)  # as a float64
TINY = mp.mpf(10) ** -5
LN2 = mp.log(2)
THIRD = mp.mpf(1) / 3
REDUCED = LN2 / 2 * mp.mpf("1.001")
ATANH_MAX = (THIRD / (2 - THIRD)) ** 2 * mp.mpf("1.001")  # s^2 for s = f / (2 + f), f in [-1/3, 1/3]
EIGHTH = (mp.pi / 4 * mp.mpf("1.005")) ** 2
TAN_EIGHTH = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001")


def _erf_tail(x: mp.mpf) -> mp.mpf:
    return -mp.log(mp.erfc(x))


def _erfcx(x: mp.mpf) -> mp.mpf:
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _along(t: mp.mpf, centre: float) -> mp.mpf:
    """The x whose (x - centre) / (x + centre) is t."""
    return centre * (1 + t) / (1 - t)


def _bessel_near(order: int, t: mp.mpf) -> mp.mpf:
    x = 2 * mp.sqrt(t)
    return mp.besseli(0, x) if order == 0 else 2 * mp.besseli(1, x) / x


def _bessel_far(order: int, x: mp.mpf) -> mp.mpf:
    return mp.exp(-x) * mp.sqrt(x) * mp.besseli(order, x)


def _zeros(order: int) -> tuple[mp.mpf, mp.mpf]:
    return mp.besseljzero(order, 1), mp.besseljzero(order, 2)


def _j_near(order: int, v: mp.mpf) -> mp.mpf:
    square = max(32 * (v + 1), mp.mpf(10) ** -20)
    x = mp.sqrt(square)
    first, second = _zeros(order)
    value = mp.besselj(order, x) / (1 if order == 0 else x)
    return value / ((square - first**2) * (square - second**2))


def _y_near(order: int, v: mp.mpf) -> mp.mpf:
    x = mp.sqrt(max(32 * (v + 1), mp.mpf(10) ** -20))
    if order == 0:
        return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def _hankel(order: int, x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    """P and Q with J = sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), Y = the same with (P sin(c) + Q cos(c))."""
    if x > mp.mpf(10) ** 5:
        mu, far = 4 * order * order, 8 * x
        third = mp.mpf((mu - 1) * (mu - 9) * (mu - 25)) / (6 * far**3)
        return 1 - mp.mpf((mu - 1) * (mu - 9)) / (2 * far**2), (mu - 1) / far - third
    c = x - (2 * order + 1) * mp.pi / 4
    j, y, size = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
    return size * (j * mp.cos(c) + y * mp.sin(c)), size * (y * mp.cos(c) - j * mp.sin(c))


def _stirling(u: mp.mpf) -> mp.mpf:
    """Z (log gamma(z) - (z - 1/2) log z + z - log(2 pi) / 2) of u = 1 / z^2."""
    z = 1 / mp.sqrt(u)
    if z > 1000:
        return mp.mpf(1) / 12 - u / 360 + u**2 / 1260 - u**3 / 1680 + u**4 / 1188
    return z * (mp.loggamma(z) - (z - mp.mpf(1) / 2) * mp.log(z) + z - mp.log(2 * mp.pi) / 2)


def _erfinv(s: mp.mpf) -> mp.mpf:
    """erfinv(x) / x of s = sqrt(-log(1 - x^2))."""
    if s < mp.mpf(10) ** -9:
        return mp.sqrt(mp.pi) / 2
    w = s * s
    x = mp.sqrt(-mp.expm1(-w))
    y = mp.exp(-w) / (1 + x)
    g = mp.sqrt(max(w - mp.log(mp.pi * (w + 1)) / 2, w / 4 + mp.mpf("0.01") * s)) if s > 1 else s * mp.mpf("0.87")
    for _ in range(60):
        tail = mp.erfc(g)
        # Newton for log(erfc(g)) = log(y), whose second derivative is small everywhere
        step = tail * mp.log(tail / y) * mp.sqrt(mp.pi) / 2 * mp.exp(g * g)
        g += step
        if abs(step) < mp.mpf(10) ** -38 * g:
            break
    return g / x


FITS = (
    Fit(
        "exp",
        "(exp(x) - 1 - x) / x^2",
        lambda x: (mp.exp(x) - 1 - x) / x**2,
        lambda x: (x * x + TINY) / mp.exp(x),
        -REDUCED,
        REDUCED,
        29,
        57,
    ),
    Fit(
        "log",
        "(log(1 + x) - x) / x^2",
        lambda x: (mp.log1p(x) - x) / x**2,
        lambda x: abs(x * x / mp.log1p(x)) + TINY,
        -THIRD,
        THIRD,
        26.5,
        0,
    ),
    Fit(
        "atanh_series",
        "(2 atanh(s) - 2 s) / s^3 of s^2",
        of_square(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3),
        lambda z: z + TINY,
        mp.mpf(0),
        ATANH_MAX,
        30,
        59,
    ),
    Fit(
        "atanh_series_2",
        "(2 atanh(s) - 2 s - 2 s^3 / 3) / s^5 of s^2",
        of_square(lambda s: (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5),
        lambda z: z * z + TINY**2,
        mp.mpf(0),
        ATANH_MAX,
        36,
        69,
    ),
    Fit(
        "tanh",
        "(tanh(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.tanh(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.tanh(x) + TINY),
        mp.mpf(0),
        mp.mpf("1.001"),
        27.5,
        57,
    ),
    Fit(
        "sinh",
        "(sinh(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.sinh(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.sinh(x) + TINY),
        mp.mpf(0),
        mp.mpf(1.01),
        28,
        58,
    ),
    Fit(
        "erf",
        "erf(x) / x - 1 of x^2",
        of_square(lambda x: mp.erf(x) / x - 1),
        of_square(lambda x: x / mp.erf(x)),
        mp.mpf(0),
        mp.mpf("1.001"),
        27.5,
        55.5,
    ),
    Fit(
        "erf_tail",
        "-log(erfc(x))",
        _erf_tail,
        lambda x: mp.erfc(x) + mp.mpf(2) ** -40,
        mp.mpf("0.99"),
        mp.mpf("4.0"),
        27,
        0,
    ),
    Fit(
        "erf_far_tail",
        "-log(erfc(x))",
        _erf_tail,
        lambda x: mp.erfc(x) + mp.mpf(2) ** -70,
        mp.mpf("0.99"),
        mp.mpf("6.0"),
        0,
        57,
    ),
    Fit(
        "sin",
        "(sin(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.sin(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.sin(x) + TINY),
        mp.mpf(0),
        EIGHTH,
        28,
        59,
    ),
    Fit(
        "cos",
        "(cos(x) - 1 + x^2 / 2) / x^4 of x^2",
        of_square(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4),
        of_square(lambda x: x**4 + TINY**2),
        mp.mpf(0),
        EIGHTH,
        28,
        59,
    ),
    Fit(
        "atan",
        "(atan(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.atan(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.atan(x) + TINY),
        mp.mpf(0),
        TAN_EIGHTH,
        28,
        58,
    ),
    Fit(
        "asin",
        "(asin(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.asin(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.asin(x) + TINY),
        mp.mpf(0),
        mp.mpf("0.2501"),
        28,
        58,
    ),
    Fit(
        "asinh",
        "(asinh(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.asinh(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.asinh(x) + TINY),
        mp.mpf(0),
        mp.mpf("0.2501"),
        28,
        58,
    ),
    Fit(
        "atanh",
        "(atanh(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.atanh(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.atanh(x) + TINY),
        mp.mpf(0),
        mp.mpf("0.2501"),
        28,
        58,
    ),
    Fit(
        "erfcx_near",
        "(1 + 2 x) exp(x^2) erfc(x) of (x - 2) / (x + 2)",
        lambda t: _erfcx(2 * (1 + t) / (1 - t)),
        lambda t: 1 / _erfcx(2 * (1 + t) / (1 - t)),
        mp.mpf(-1),
        mp.mpf("0.675"),
        28,
        0,
        paired=3,
    ),
    Fit(
        "erfcx",
        "(1 + 2 x) exp(x^2) erfc(x) of (x - 4) / (x + 4)",
        lambda t: _erfcx(4 * (1 + t) / (1 - t)),
        lambda t: 1 / _erfcx(4 * (1 + t) / (1 - t)),
        mp.mpf(-1),
        mp.mpf("0.746"),
        0,
        58,
        paired=3,
    ),
    Fit("cbrt", "x^(-1/3)", lambda x: 1 / mp.cbrt(x), lambda x: mp.cbrt(x), mp.mpf(1), mp.mpf(8), 7, 7),
    Fit(
        "i0",
        "I0(x) of x^2 / 4",
        lambda t: _bessel_near(0, t),
        lambda t: 1 / _bessel_near(0, t),
        mp.mpf(0),
        mp.mpf(16),
        27,
        57,
        start=8,
        paired=6,
    ),
    Fit(
        "i0_far",
        "exp(-x) sqrt(x) I0(x) of 16 / x - 1",
        lambda v: _bessel_far(0, 16 / (1 + v)),
        lambda v: 1 / _bessel_far(0, 16 / (1 + v)),
        mp.mpf("-0.99"),
        mp.mpf(1),
        27,
        57,
        start=3,
        paired=3,
    ),
    Fit(
        "i1",
        "2 I1(x) / x of x^2 / 4",
        lambda t: _bessel_near(1, t),
        lambda t: 1 / _bessel_near(1, t),
        mp.mpf(0),
        mp.mpf(16),
        27,
        57,
        start=8,
        paired=6,
    ),
    Fit(
        "i1_far",
        "exp(-x) sqrt(x) I1(x) of 16 / x - 1",
        lambda v: _bessel_far(1, 16 / (1 + v)),
        lambda v: 1 / _bessel_far(1, 16 / (1 + v)),
        mp.mpf("-0.99"),
        mp.mpf(1),
        27,
        57,
        start=3,
        paired=3,
    ),
    Fit(
        "stirling_near",
        "Stirling's series for log(gamma(z)), times z, of 1 / z^2",
        _stirling,
        lambda u: mp.sqrt(u) + TINY,
        mp.mpf(10) ** -12,
        mp.mpf(1) / 16,
        30,
        0,
    ),
    Fit(
        "stirling",
        "Stirling's series for log(gamma(z)), times z, of 1 / z^2",
        _stirling,
        lambda u: mp.sqrt(u) + TINY,
        mp.mpf(10) ** -12,
        mp.mpf(1) / 64,
        0,
        60,
    ),
    Fit(
        "lgamma_one",
        "log(gamma(1 + t)) / t",
        lambda t: mp.loggamma(1 + t) / t,
        lambda t: t / mp.loggamma(1 + t),
        mp.mpf("-0.26"),
        mp.mpf("0.26"),
        28,
        58,
        start=8,
        paired=2,
    ),
    Fit(
        "lgamma_two",
        "log(gamma(2 + t)) / t",
        lambda t: mp.loggamma(2 + t) / t,
        lambda t: t / mp.loggamma(2 + t),
        mp.mpf("-0.26"),
        mp.mpf("0.26"),
        28,
        58,
        start=6,
        paired=2,
    ),
    Fit(
        "erfinv",
        "erfinv(x) / x of w - 3.125, w = -log(1 - x^2)",
        lambda v: _erfinv(mp.sqrt(v + 3.125)),
        lambda v: 1 / _erfinv(mp.sqrt(v + 3.125)),
        mp.mpf(-3.125),
        mp.mpf(3.126),
        27,
        57,
        start=8,
        paired=4,
    ),
    Fit(
        "erfinv_middle",
        "erfinv(x) / x of s - 3.25, s = sqrt(-log(1 - x^2))",
        lambda v: _erfinv(v + 3.25),
        lambda v: 1 / _erfinv(v + 3.25),
        mp.mpf("2.499") - 3.25,
        mp.mpf("4.01") - 3.25,
        27,
        57,
        start=8,
        paired=4,
    ),
    Fit(
        "erfinv_far",
        "erfinv(x) / x of s - 6, s = sqrt(-log(1 - x^2))",
        lambda v: _erfinv(v + 6),
        lambda v: 1 / _erfinv(v + 6),
        mp.mpf("3.99") - 6,
        mp.mpf("9.01") - 6,
        0,
        57,
        start=8,
        paired=4,
    ),
    Fit(
        "erfinv_far_single",
        "erfinv(x) / x of s - 7, s = sqrt(-log(1 - x^2))",
        lambda v: _erfinv(v + 7),
        lambda v: 1 / _erfinv(v + 7),
        mp.mpf("3.99") - 7,
        mp.mpf("10.3") - 7,
        27,
        0,
        start=8,
        paired=4,
    ),
    Fit(
        "erfinv_extreme",
        "erfinv(x) / (x s) of 1 / s - 0.074, s = sqrt(-log(1 - x^2))",
        lambda v: _erfinv(1 / (v + CENTRE)) * (v + CENTRE),
        lambda v: 1 / (_erfinv(1 / (v + CENTRE)) * (v + CENTRE)),
        1 / mp.mpf("27.5") - CENTRE,
        1 / mp.mpf("8.99") - CENTRE,
        0,
        57,
        start=8,
        paired=4,
    ),
    Fit(
        "j0",
        "J0(x) / ((x^2 - a^2) (x^2 - b^2)) of x^2 / 32 - 1, a and b the first zeros",
        lambda v: _j_near(0, v),
        lambda v: 1 / _j_near(0, v),
        mp.mpf(-1),
        mp.mpf(1),
        27,
        56,
        start=5,
        paired=8,
    ),
    Fit(
        "y0",
        "Y0(x) - 2 log(x) J0(x) / pi of x^2 / 32 - 1",
        lambda v: _y_near(0, v),
        one,
        mp.mpf(-1),
        mp.mpf(1),
        27,
        57,
        start=5,
        paired=6,
    ),
    Fit(
        "bessel_p0",
        "P of Hankel's expansion of order 0, of 64 / x^2",
        lambda u: _hankel(0, 8 / mp.sqrt(u))[0],
        one,
        mp.mpf(0),
        mp.mpf(1),
        28,
        57,
        start=3,
        paired=1,
    ),
    Fit(
        "bessel_q0",
        "Q of Hankel's expansion of order 0, times x / 8, of 64 / x^2",
        lambda u: _hankel(0, 8 / mp.sqrt(u))[1] * (1 / mp.sqrt(u)),
        one,
        mp.mpf(0),
        mp.mpf(1),
        26,
        55,
        start=3,
    ),
    Fit(
        "j1",
        "J1(x) / (x (x^2 - a^2) (x^2 - b^2)) of x^2 / 32 - 1, a and b the first zeros",
        lambda v: _j_near(1, v),
        lambda v: 1 / _j_near(1, v),
        mp.mpf(-1),
        mp.mpf(1),
        27,
        56,
        start=5,
        paired=8,
    ),
    Fit(
        "y1",
        "(Y1(x) - 2 (log(x) J1(x) - 1 / x) / pi) / x of x^2 / 32 - 1",
        lambda v: _y_near(1, v),
        one,
        mp.mpf(-1),
        mp.mpf(1),
        27,
        57,
        start=5,
        paired=6,
    ),
    Fit(
        "bessel_p1",
        "P of Hankel's expansion of order 1, of 64 / x^2",
        lambda u: _hankel(1, 8 / mp.sqrt(u))[0],
        one,
        mp.mpf(0),
        mp.mpf(1),
        28,
        57,
        start=3,
        paired=1,
    ),
    Fit(
        "bessel_q1",
        "Q of Hankel's expansion of order 1, times x / 8, of 64 / x^2",
        lambda u: _hankel(1, 8 / mp.sqrt(u))[1] * (1 / mp.sqrt(u)),
        one,
        mp.mpf(0),
        mp.mpf(1),
        26,
        55,
        start=3,
    ),
)

CONSTANTS: dict[str, Callable[[], mp.mpf]] = {
    "ln2": lambda: mp.log(2),
    "ln10": lambda: mp.log(10),
    "log2e": lambda: 1 / mp.log(2),
    "log10e": lambda: 1 / mp.log(10),
    "log10_2": lambda: mp.log(2) / mp.log(10),
    "log2_10": lambda: mp.log(10) / mp.log(2),
    "pi": lambda: +mp.pi,
    "half_pi": lambda: mp.pi / 2,
    "quarter_pi": lambda: mp.pi / 4,
    "two_over_pi": lambda: 2 / mp.pi,
    "third": lambda: mp.mpf(1) / 3,
    "two_thirds": lambda: mp.mpf(2) / 3,
    "two_over_sqrt_pi": lambda: 2 / mp.sqrt(mp.pi),
    "sqrt_two": lambda: mp.sqrt(2),
    "two_pi": lambda: 2 * mp.pi,
    "sqrt_inverse_pi": lambda: mp.sqrt(1 / mp.pi),
    "j0_first": lambda: mp.besseljzero(0, 1) ** 2,
    "j0_second": lambda: mp.besseljzero(0, 2) ** 2,
    "j1_first": lambda: mp.besseljzero(1, 1) ** 2,
    "j1_second": lambda: mp.besseljzero(1, 2) ** 2,
    "log2_less_euler": lambda: mp.log(2) - mp.euler,
    "sqrt_half": lambda: mp.sqrt(mp.mpf(1) / 2),
    "log_sqrt_two_pi": lambda: mp.log(2 * mp.pi) / 2,
}
