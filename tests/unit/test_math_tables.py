"""The constant tables hold what the definitions that use them rely on."""

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

from fusec.base.dtypes import FLOAT32, FLOAT64, DType
from fusec.math.formats import FORMATS
from fusec.math.lookups import INTERVALS, LOG2_START, table

BOTH = pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=repr)
WORD = {FLOAT32: np.uint32, FLOAT64: np.uint64}


def ends_of_intervals(dtype: DType) -> list[tuple[np.floating, np.floating]]:
    """The first and the last float of every interval of the logarithm."""
    step = 1 << FORMATS[dtype].mantissa - 5
    starts = [LOG2_START[dtype.name] + i * step for i in range(32)]
    pairs = np.array([[start, start + step - 1] for start in starts], WORD[dtype]).view(dtype.numpy)
    return [(low, high) for low, high in pairs]


@BOTH
def test_what_a_factor_leaves_of_an_argument_is_exact_and_small(dtype: DType) -> None:
    with mp.workprec(200):
        for (low, high), factor in zip(ends_of_intervals(dtype), table("log2_inverse", dtype), strict=True):
            inside = np.random.default_rng(1).uniform(low, high, 20).astype(dtype.numpy)
            for x in (low, high, *inside):
                rest = mp.mpf(float(x)) * mp.mpf(factor) - 1
                assert mp.mpf(float(dtype.numpy.type(float(rest)))) == rest, (x, factor)
                assert abs(rest) < 0.0214


@BOTH
def test_logarithms_of_factors_are_precise_and_add_up_exactly(dtype: DType) -> None:
    factors, highs, lows = (table(f"log2_{part}", dtype) for part in ("inverse", "high", "low"))
    greatest = FORMATS[dtype].bias + FORMATS[dtype].mantissa + 1
    with mp.workprec(200):
        for factor, high, low in zip(factors, highs, lows, strict=True):
            assert abs(mp.mpf(high) + mp.mpf(low) + mp.log(factor, 2)) <= FORMATS[dtype].pick(2.0**-41, 2.0**-96)
            for exponent in (greatest, -greatest, 1, -1):
                exact = mp.mpf(exponent) + mp.mpf(high)
                assert mp.mpf(float(dtype.numpy.type(exponent) + dtype.numpy.type(high))) == exact


@BOTH
@pytest.mark.parametrize("number", [-37, -16, -1, 0, 5, 16, 31, 1000])
def test_adding_a_number_of_sixteenths_to_the_bits_gives_that_power_of_two(dtype: DType, number: int) -> None:
    form, at = FORMATS[dtype], number % 16
    bits = int(np.array([table("exp2_bits", dtype)[at]], dtype.numpy).view(WORD[dtype])[0])
    found = np.array([bits + (number << form.mantissa - 4)], WORD[dtype]).view(dtype.numpy)[0]
    with mp.workprec(200):
        power = mp.mpf(2) ** (mp.mpf(number) / 16)
        whole = mp.mpf(float(found)) * (1 + mp.mpf(table("exp2_rest", dtype)[at]))
        assert abs(whole / power - 1) < 2.0 ** -(2 * form.mantissa)


def interval_of(name: str, x: np.ndarray) -> np.ndarray:
    """The entries that a definition by intervals takes for float32 numbers."""
    rule = INTERVALS[name]
    shifted = (x.astype(np.float64) * rule.scale + rule.start).astype(np.float32)
    return (shifted.view(np.uint32) >> rule.dropped) & 15


@pytest.mark.parametrize(("name", "function"), [("tanh", mp.tanh), ("erf", mp.erf)])
def test_polynomials_of_intervals_stay_within_a_third_of_the_last_place(
    name: str, function: Callable[[mp.mpf], mp.mpf]
) -> None:
    rule = INTERVALS[name]
    x = np.linspace(0, rule.limit, 1500, dtype=np.float32)[1:]
    for at, i in zip(x, interval_of(name, x), strict=True):
        distance = mp.mpf(float(at)) - table(f"{name}_centre", FLOAT32)[i]
        powers = (table(f"{name}_c{power}", FLOAT32)[i] * distance**power for power in range(rule.coefficients))
        slope = sum(powers, mp.mpf(0))
        value = max(table(f"{name}_value", FLOAT32)[i], distance) + distance * slope
        exact = function(mp.mpf(float(at)))
        assert abs(value - exact) < 0.33 * float(np.spacing(np.float32(float(exact) * (1 - 2.0**-25)))), at


@pytest.mark.parametrize("name", INTERVALS)
def test_distances_are_less_than_values_but_in_the_first_interval(name: str) -> None:
    x = np.linspace(0, INTERVALS[name].limit, 100_001, dtype=np.float32)
    number = interval_of(name, x)
    distance = x - np.array(table(f"{name}_centre", FLOAT32), np.float32)[number]
    assert np.array_equal(
        distance > np.array(table(f"{name}_value", FLOAT32), np.float32)[number], (x > 0) & (number == number[0])
    )
