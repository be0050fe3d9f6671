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

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes it is fitted for."""
        return ("float32",) * bool(self.bits32) + ("float64",) * bool(self.bits64)


def of_square(function: Function) -> Function:
    """A function of z = x^2 from an even function of x."""
    return lambda z: function(mp.sqrt(z))


def one(_: mp.mpf) -> mp.mpf:
    """The weight of an absolute error."""
    return mp.mpf(1)


TINY = mp.mpf(10) ** -5
LN2 = mp.log(2)
THIRD = mp.mpf(1) / 3
REDUCED = LN2 / 2 * mp.mpf("1.001")
ATANH_MAX = (THIRD / (2 - THIRD)) ** 2 * mp.mpf("1.001")  # s^2 for s = f / (2 + f), f in [-1/3, 1/3]
EIGHTH = (mp.pi / 4 * mp.mpf("1.005")) ** 2
TAN_EIGHTH = (mp.sqrt(2) - 1) ** 2 * mp.mpf("1.001")


LOG_RANGE = mp.mpf("0.0214")  # of what is left of the argument where tables are used


def _log_rest(x: mp.mpf) -> mp.mpf:
    with mp.workdps(90):  # what is left of the logarithm has lost 36 digits where x is least
        return (mp.log1p(x) - x + x**2 / 2) / x**3


def _erf_tail(x: mp.mpf) -> mp.mpf:
    return -mp.log(mp.erfc(x))


def _erfcx(x: mp.mpf) -> mp.mpf:
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def _along(t: mp.mpf, centre: float) -> mp.mpf:
    """The x whose (x - centre) / (x + centre) is t."""
    return centre * (1 + t) / (1 - t)


ELEMENTARY = (
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
        "log_near",
        "(log(1 + x) - x + x^2 / 2) / x^3, for tables",
        _log_rest,
        lambda x: x**2 + TINY**2,
        -LOG_RANGE,
        LOG_RANGE,
        33,
        65.2,
    ),
    Fit(
        "exp2_near",
        "(2^x - 1) / x, for tables",
        lambda x: mp.expm1(x * LN2) / x,
        lambda x: abs(x) + TINY,
        -mp.mpf(1) / 32,
        mp.mpf(1) / 32,
        29,
        56.5,
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
        "atanh_third",
        "(2 atanh(s) - 2 s) / s^3 of s^2",
        of_square(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3),
        lambda z: z + TINY,
        mp.mpf(0),
        mp.mpf("0.1112"),
        27,
        56,
    ),
    Fit(
        "tanh",
        "(tanh(x) - x) / x^3 of x^2",
        of_square(lambda x: (mp.tanh(x) - x) / x**3),
        of_square(lambda x: x**3 / mp.tanh(x) + TINY),
        mp.mpf(0),
        mp.mpf("0.8101"),
        0,
        55.5,
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
        mp.mpf("1.0001"),
        27.5,
        55.5,
    ),
    Fit(
        "erf_within",
        "erf(x) / x - 1 of x^2 - 1/2",
        lambda y: mp.erf(mp.sqrt(y + 0.5)) / mp.sqrt(y + 0.5) - 1,
        lambda y: mp.sqrt(y + 0.5) / mp.erf(mp.sqrt(y + 0.5)),
        mp.mpf("-0.49999"),
        mp.mpf("0.5001"),
        0,
        56,
    ),
    Fit(
        "erf_tail",
        "-log(erfc(x))",
        _erf_tail,
        mp.erfc,
        mp.mpf("0.9999"),
        mp.mpf("5.94"),
        0,
        56,
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
    "degree": lambda: mp.pi / 180,
    "radian": lambda: 180 / mp.pi,
    "log_sqrt_two_pi": lambda: mp.log(2 * mp.pi) / 2,
}
