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
    Case("tan", mp.tan, ((-4, 4), (-1e5, 1e5)), ((-100, 120),), bound=1.1),
    Case("sinpi", mp.sinpi, ((-4, 4), (-1e3, 1e3)), ((-100, 20),)),
    Case("cospi", mp.cospi, ((-4, 4), (-1e3, 1e3)), ((-10, 20),)),
    Case("asin", mp.asin, ((-1, 1),), ((-100, 0),)),
    Case("acos", mp.acos, ((-1, 1),), ((-10, 0),)),
    Case("atan", mp.atan, ((-3, 3),), ((-100, 100),)),
    Case("tanh", mp.tanh, ((-10, 10), (-1, 1)), ((-100, 3),)),
    Case("cbrt", lambda x: mp.sign(x) * mp.cbrt(abs(x)), ((-30, 30),), ((-120, 120),)),
    Case("rsqrt", lambda x: 1 / mp.sqrt(x), ((0, 30),), ((-120, 120),), positive=True),
    Case("sigmoid", lambda x: 1 / (1 + mp.exp(-x)), ((-80, 80), (-2, 2))),
    Case("erf", mp.erf, ((-5, 5), (-1, 1)), ((-100, 0),)),
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
