"""Exact values of the elementary functions, by mpmath: 40 digits, more where an argument cancels."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

Exact = Callable[..., mp.mpf]
DIGITS = 40


def inverse_erfc(y: mp.mpf) -> mp.mpf:
    """The argument at which erfc is y: Newton for log(erfc(g)) = log(y), which converges from either side."""
    if y > 1:
        return -inverse_erfc(2 - y)
    g = mp.erfinv(1 - y) if y > 1e-6 else mp.sqrt(-mp.log(y))
    for _ in range(60):
        tail = mp.erfc(g)
        step = tail * mp.log(tail / y) * mp.sqrt(mp.pi) / 2 * mp.exp(g * g)
        g += step
        if abs(step) < mp.mpf(10) ** -30 * abs(g):
            break
    return g


def inverse_erf(x: mp.mpf) -> mp.mpf:
    """The argument at which erf is x."""
    return mp.sign(x) * inverse_erfc(1 - abs(x)) if abs(x) > 0.5 else mp.erfinv(x)


def cbrt(x: mp.mpf) -> mp.mpf:
    """The real cube root."""
    return mp.sign(x) * mp.cbrt(abs(x))


def sinc(x: mp.mpf) -> mp.mpf:
    """sin(pi x) / (pi x)."""
    return mp.sinpi(x) / (mp.pi * x) if x else mp.mpf(1)


def softplus(x: mp.mpf) -> mp.mpf:
    """log(1 + e^x)."""
    return mp.log1p(mp.exp(x)) if x < 1000 else x


def sigmoid(x: mp.mpf) -> mp.mpf:
    """1 / (1 + e^-x)."""
    return 1 / (1 + mp.exp(-x))


def lgamma(x: mp.mpf) -> mp.mpf:
    """log(|gamma(x)|); left of 0 by reflection, with digits to lose near the zeros there."""
    if x > 0:
        with mp.workdps(2 * DIGITS):
            return mp.loggamma(x)
    with mp.workdps(3 * DIGITS):
        return mp.log(mp.pi / abs(x * mp.sinpi(x))) - mp.loggamma(-x)


def logaddexp(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    """log(e^x + e^y), with digits to lose where it is near 0."""
    with mp.workdps(3 * DIGITS):
        high, low = max(x, y), min(x, y)
        return high + mp.log1p(mp.exp(low - high))


def logaddexp2(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    """log2(2^x + 2^y), with digits to lose where it is near 0."""
    with mp.workdps(3 * DIGITS):
        high, low = max(x, y), min(x, y)
        return high + mp.log1p(mp.mpf(2) ** (low - high)) / mp.ln2


def erfcx(x: mp.mpf) -> mp.mpf:
    """exp(x^2) erfc(x); by its asymptotic series where erfc is too small for mpmath."""
    if x < 1000:
        with mp.workdps(2 * DIGITS):
            return mp.exp(x * x) * mp.erfc(x)
    z = 1 / (2 * x * x)
    return (1 - z * (1 - 3 * z * (1 - 5 * z * (1 - 7 * z * (1 - 9 * z))))) / (x * mp.sqrt(mp.pi))


def hypot(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    """sqrt(x^2 + y^2)."""
    return mp.sqrt(x * x + y * y)


def power(x: mp.mpf, y: mp.mpf) -> mp.mpf:
    """x^y of reals."""
    return mp.re(mp.power(x, y))


EXACT: dict[str, Exact] = {
    "exp": mp.exp,
    "exp2": lambda x: mp.mpf(2) ** x,
    "exp10": lambda x: mp.mpf(10) ** x,
    "expm1": mp.expm1,
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.ln2,
    "log10": lambda x: mp.log(x) / mp.ln10,
    "log1p": mp.log1p,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "sinpi": mp.sinpi,
    "cospi": mp.cospi,
    "sinc": sinc,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "cbrt": cbrt,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "sigmoid": sigmoid,
    "softplus": softplus,
    "erf": mp.erf,
    "erfc": lambda x: mp.erfc(x) if x < 1000 else mp.mpf(2) ** -5000,
    "erfcx": erfcx,
    "deg2rad": mp.radians,
    "rad2deg": mp.degrees,
    "erfinv": inverse_erf,
    "erfcinv": inverse_erfc,
    "normcdf": lambda x: mp.ncdf(x) if x > -1000 else mp.mpf(2) ** -5000,
    "normcdfinv": lambda p: -mp.sqrt(2) * inverse_erfc(2 * p),
    "gamma": mp.gamma,
    "lgamma": lgamma,
    "i0": lambda x: mp.besseli(0, x),
    "i1": lambda x: mp.besseli(1, x),
    "j0": mp.j0,
    "j1": mp.j1,
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "pow": power,
    "atan2": mp.atan2,
    "hypot": hypot,
    "logaddexp": logaddexp,
    "logaddexp2": logaddexp2,
}


def exact_values(op: str, *arguments: object) -> list[mp.mpf]:
    """The exact values at points given as sequences of floats, one for each operand."""
    function = EXACT[op]
    with mp.workdps(DIGITS):
        columns = [[mp.mpf(float(value)) for value in column] for column in arguments]  # type: ignore[attr-defined]
        return [_total(function, point) for point in zip(*columns, strict=True)]


def _total(function: Exact, point: tuple[mp.mpf, ...]) -> mp.mpf:
    """The value; nan outside the domain and at poles."""
    try:
        value = function(*point)
    except (ZeroDivisionError, ValueError):  # what mpmath says of poles
        return mp.nan
    return value if isinstance(value, mp.mpf) and mp.isfinite(value) else mp.nan
