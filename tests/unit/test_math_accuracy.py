"""Every elementary function stays within its bound of the exact value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest

from fusec.dtypes import FLOAT32, FLOAT64, DType
from fusec.ir.interpret import call
from fusec.math import callees, define

mp.mp.dps = 40


@dataclass(frozen=True)
class Case:
    """A function of one argument, its exact value, and arguments as (low, high) of a uniform or log-uniform draw."""

    op: str
    exact: Callable[[mp.mpf], mp.mpf]
    ranges: tuple[tuple[float, float], ...]
    logarithmic: tuple[tuple[int, int], ...] = ()  # exponents of two, both signs unless positive
    positive: bool = False
    bound: float = 1.0


def inverse_erfc(y: mp.mpf) -> mp.mpf:
    """Newton for log(erfc(g)) = log(y), which converges from either side."""
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
    return mp.sign(x) * inverse_erfc(1 - abs(x)) if abs(x) > 0.5 else mp.erfinv(x)


CASES = (
    Case("exp", mp.exp, ((-87, 88), (-1, 1)), ((-30, 0),)),
    Case("exp2", lambda x: mp.mpf(2) ** x, ((-125, 127), (-1, 1))),
    Case("exp10", lambda x: mp.mpf(10) ** x, ((-37, 38), (-1, 1))),
    Case("expm1", mp.expm1, ((-20, 88), (-1, 1)), ((-100, 0),)),
    Case("log", mp.log, ((0.5, 2), (0, 1000)), ((-125, 127),), positive=True),
    Case("log2", lambda x: mp.log(x, 2), ((0.5, 2), (0, 1000)), ((-125, 127),), positive=True),
    Case("log10", lambda x: mp.log(x, 10), ((0.5, 2), (0, 1000)), ((-125, 127),), positive=True),
    Case("log1p", mp.log1p, ((-0.999, 2),), ((-120, 127),), positive=True),
    Case("sin", mp.sin, ((-4, 4), (-1e5, 1e5)), ((-100, 120),)),
    Case("cos", mp.cos, ((-4, 4), (-1e5, 1e5)), ((-10, 120),)),
    Case("tan", mp.tan, ((-4, 4), (-1e5, 1e5)), ((-100, 120),)),
    Case("sinpi", mp.sinpi, ((-4, 4), (-1e3, 1e3)), ((-100, 20),)),
    Case("cospi", mp.cospi, ((-4, 4), (-1e3, 1e3)), ((-10, 20),)),
    Case("asin", mp.asin, ((-1, 1),), ((-100, 0),)),
    Case("acos", mp.acos, ((-1, 1),), ((-10, 0),)),
    Case("atan", mp.atan, ((-3, 3),), ((-100, 100),)),
    Case("tanh", mp.tanh, ((-10, 10), (-1, 1)), ((-100, 3),)),
    Case("cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), ((-30, 30),), ((-120, 120),)),
    Case("rsqrt", lambda x: 1 / mp.sqrt(x), ((0, 30),), ((-120, 120),), positive=True),
    Case("sigmoid", lambda x: 1 / (1 + mp.exp(-x)), ((-80, 80), (-2, 2))),
    Case("softplus", lambda x: mp.log1p(mp.exp(x)), ((-80, 80), (-2, 2))),
    Case("sinc", lambda x: mp.sinpi(x) / (mp.pi * x), ((-4, 4), (-100, 100)), ((-30, 0),)),
    Case("sinh", mp.sinh, ((-80, 80), (-2, 2)), ((-100, 0),)),
    Case("cosh", mp.cosh, ((-80, 80), (-2, 2))),
    Case("asinh", mp.asinh, ((-4, 4),), ((-100, 120),)),
    Case("acosh", mp.acosh, ((1, 4), (1, 1.001)), ((1, 120),), positive=True),
    Case("atanh", mp.atanh, ((-1, 1),), ((-100, -1),)),
    Case("erf", mp.erf, ((-5, 5), (-1, 1)), ((-100, 0),)),
    Case("erfc", mp.erfc, ((-3, 9), (-1, 1)), ((-30, 0),)),
    Case("normcdf", mp.ncdf, ((-12, 5), (-1, 1))),
    Case("erfinv", inverse_erf, ((-1, 1),), ((-30, -1),)),
    Case("erfcinv", inverse_erfc, ((0.01, 1.99),), ((-120, -1),), positive=True),
    Case("normcdfinv", lambda p: -mp.sqrt(2) * inverse_erfc(2 * p), ((0.01, 0.99),), ((-120, -1),), positive=True),
    Case("gamma", mp.gamma, ((-8, 30), (0, 4)), ((-30, 0),)),
    Case("lgamma", lambda x: mp.loggamma(x).real, ((0, 40), (0.9, 2.1)), ((-100, 100),), positive=True),
    Case("i0", lambda x: mp.besseli(0, x), ((-80, 80), (0, 9))),
    Case("i1", lambda x: mp.besseli(1, x), ((-80, 80), (0, 9)), ((-30, 0),)),
)


def arguments(case: Case, dtype: DType, count: int) -> np.ndarray:
    random = np.random.default_rng(7)
    drawn = [random.uniform(low, high, count) for low, high in case.ranges]
    for low, high in case.logarithmic:
        sign = 1 if case.positive else random.choice([-1, 1], count)
        drawn.append(np.exp2(random.uniform(low, high, count)) * sign)
    return np.concatenate(drawn).astype(dtype.numpy)


def errors_in_ulp(found: np.ndarray, exact: list[mp.mpf]) -> list[float]:
    """Distance in units of the last place of the exact value, as Python's own format defines it."""
    digits, least = (24, -125) if found.dtype == np.float32 else (53, -1021)
    result = []
    for value, wanted in zip(found, exact, strict=True):
        exponent = max(mp.frexp(wanted)[1], least)
        result.append(float(abs(mp.mpf(float(value)) - wanted) / mp.mpf(2) ** (exponent - digits)))
    return result


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=repr)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_errors_stay_within_the_bound(case: Case, dtype: DType) -> None:
    x = arguments(case, dtype, 300)
    function = define(case.op, (dtype,))
    found = call(function, [x], callees(function))
    errors = errors_in_ulp(found, [case.exact(mp.mpf(float(value))) for value in x])
    worst = int(np.argmax(errors))
    assert errors[worst] <= case.bound, f"{case.op}({x[worst]!r}) = {found[worst]!r} errs by {errors[worst]:.3f} ulp"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=repr)
@pytest.mark.parametrize(("op", "exact"), [("j0", mp.j0), ("j1", mp.j1), ("y0", mp.bessely), ("y1", mp.bessely)])
def test_bessel_errors_are_small_against_the_amplitude(op: str, exact: Callable[..., mp.mpf], dtype: DType) -> None:
    random = np.random.default_rng(8)
    x = np.concatenate([random.uniform(0.01, 8, 80), random.uniform(8, 1000, 80)]).astype(dtype.numpy)
    function = define(op, (dtype,))
    found = call(function, [x], callees(function))
    digits = 24 if dtype == FLOAT32 else 53
    for value, at in zip(found, x, strict=True):
        point = mp.mpf(float(at))
        wanted = exact(int(op[1]), point) if op[0] == "y" else exact(point)
        amplitude = max(abs(wanted), min(mp.mpf(1), mp.sqrt(2 / (mp.pi * point))))
        assert abs(mp.mpf(float(value)) - wanted) <= 4 * amplitude * mp.mpf(2) ** -digits, (op, at)


POWER_RANGES = {"pow": ((0, 9), (-30, 30)), "atan2": ((-9, 9), (-9, 9)), "hypot": ((-9, 9), (-1e3, 1e3))}
EXACT = {"pow": mp.power, "atan2": mp.atan2, "hypot": lambda x, y: mp.sqrt(x * x + y * y)}


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=repr)
@pytest.mark.parametrize("op", POWER_RANGES)
def test_errors_of_two_arguments_stay_within_the_bound(op: str, dtype: DType) -> None:
    random = np.random.default_rng(9)
    x, y = (random.uniform(low, high, 600).astype(dtype.numpy) for low, high in POWER_RANGES[op])
    function = define(op, (dtype, dtype))
    found = call(function, [x, y], callees(function))
    exact = [EXACT[op](mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(x, y, strict=True)]
    assert max(errors_in_ulp(found, exact)) <= 0.9


def nearest_to_quarter_turns(dtype: DType) -> np.ndarray:
    """Floats m * 2^e that lie closest to multiples of pi / 2: m is a denominator of a convergent of 2^e * 2 / pi."""
    digits, greatest = (24, 104) if dtype == FLOAT32 else (53, 971)
    found = []
    with mp.workprec(1400):
        for exponent in range(-digits, greatest, 1 if dtype == FLOAT32 else 7):
            rest = mp.frac(mp.mpf(2) ** exponent * 2 / mp.pi)
            before, current = 0, 1
            while current < 2**digits:
                if current >= 2 ** (digits - 1):
                    found.append(float(current) * 2.0**exponent)
                inverse = 1 / rest
                rest = mp.frac(inverse)
                before, current = current, int(mp.floor(inverse)) * current + before
    return np.array(found).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=repr)
@pytest.mark.parametrize(("op", "exact"), [("sin", mp.sin), ("cos", mp.cos), ("tan", mp.tan)])
def test_the_hardest_reductions_stay_within_the_bound(op: str, exact: Callable[[mp.mpf], mp.mpf], dtype: DType) -> None:
    x = nearest_to_quarter_turns(dtype)
    assert len(x) > 50
    function = define(op, (dtype,))
    found = call(function, [x], callees(function))
    with mp.workprec(1400):
        wanted = [exact(mp.mpf(float(value))) for value in x]
    errors = errors_in_ulp(found, wanted)
    assert max(errors) <= 1.0, x[int(np.argmax(errors))]
