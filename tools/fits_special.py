"""What `tools/coefficients.py` fits for Bessel, gamma and inverse error functions."""

from __future__ import annotations

import mpmath as mp
from fits import TINY, Fit, one

CENTRE = mp.mpf(0.074)  # as a float64


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


SPECIAL = (
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
        "lgamma_two",
        "log(gamma(2 + t)) / t",
        lambda t: mp.loggamma(2 + t) / t,
        lambda t: t / mp.loggamma(2 + t),
        mp.mpf("-0.5"),
        mp.mpf("0.5"),
        28,
        58,
        start=9,
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
