"""Quotients by constants are those of IEEE's division, though no kernel divides."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import fusec
from fusec.base.dtypes import COMPUTE_FLOATS, FLOAT32, FLOAT64, DType
from fusec.ir.interpret import call
from fusec.math import quotient_by

Array = NDArray[Any]

USUAL = [3, 5, 6, 7, 9, 10, 12, 14, 25, 49, 60, 100, 255, 360, 1000, 0.1, 0.2, 0.3, 1.5, 2.5, 1e-3, 1e-6, math.pi]
RANDOM = np.random.default_rng(11)
WHOLE = [*(int(number) for number in RANDOM.integers(3, 1 << 21, 120)), (1 << 21) - 1, 3 << 18]
ANY = [float(number) for number in np.exp(RANDOM.uniform(-20, 15, 160))]
NEAR_POWERS = [math.nextafter(2.0**at, side) * scale for at in (0, 5) for side in (0, 9e9) for scale in (1, 3)]


def bits_of(array: Array) -> Array:
    """The bits, with all nans alike."""
    return np.where(np.isnan(array), -1, array.view(f"i{array.itemsize}"))


@cache
def kernel(dtype: DType, number: float) -> fusec.ElementwiseKernel:
    """Both signs of a divisor at once."""
    return fusec.ElementwiseKernel(f"{dtype} x", f"{dtype} y, {dtype} z", f"y = x / {number!r}; z = x / -{number!r}")


def check(dtype: DType, number: float, x: Array) -> None:
    divisor = dtype.numpy.type(number)
    kernel_of = kernel(dtype, float(divisor))
    for found, by in zip(kernel_of(x), (divisor, -divisor), strict=True):
        with np.errstate(all="ignore"):
            wanted = x / by
        wrong = np.flatnonzero(bits_of(found) != bits_of(wanted))[:4]
        assert not len(wrong), f"{x[wrong]} / {by}: {found[wrong]} instead of {wanted[wrong]}"


def ends(dtype: DType, number: float) -> Array:
    """Dividends whose quotients overflow, are subnormal, or lie at or beside the middle between two subnormals."""
    info = np.finfo(dtype.numpy)
    least, form = info.smallest_subnormal, dtype.numpy.type
    near = np.random.default_rng(1).integers(0, 1 << dtype.mantissa, 1 << 16)
    middles = np.concatenate([np.arange(1 << 12), near]) + 0.5
    with np.errstate(all="ignore"):
        close = (middles * number).astype(dtype.numpy) * least  # exactly the middle wherever that is a number
        limits = np.array([info.max, info.tiny, 1, np.inf, np.nan, 0, 2.0**-100, 2.0**100], form)
        close = np.concatenate([close, limits, limits * form(number), np.arange(1 << 12).astype(form) * least])
        bits = close.view(f"i{close.itemsize}")
        beside = np.concatenate([bits + at for at in range(-2, 3)]).view(close.dtype)
    return np.concatenate([beside, -beside])


def hardest(dtype: DType, number: float) -> Array:
    """Dividends whose quotients are as near to a middle as they get."""
    digits = dtype.mantissa + 1
    divisor, found = int(math.ldexp(math.frexp(number)[0], digits)), []
    for places in (digits, digits + 1):
        for gap in range(-9, 10):
            shared = math.gcd(divisor, 1 << places)
            if gap == 0 or gap % shared:
                continue
            step = (1 << places) // shared
            least = -gap // shared * pow(divisor // shared, -1, step) % step
            first = least + ((1 << digits) - least + step - 1) // step * step
            middles = range(first, 2 << digits, step)[:64]
            found += [(divisor * middle + gap) >> places for middle in middles]
    return np.array(found, dtype.numpy)


def shifted(x: Array) -> Array:
    """Also near the ends of the range, where residues over- and underflow."""
    info = np.finfo(x.dtype)
    top, bottom = info.maxexp - info.nmant - 2, info.minexp + info.nmant
    return np.concatenate([np.ldexp(x, at) for at in (0, top - 12, top - 1, bottom, bottom - info.nmant)])


@pytest.mark.parametrize("number", [*USUAL, *WHOLE, *ANY, *NEAR_POWERS])
@pytest.mark.sampled(4)
def test_every_float32_mantissa_is_divided_exactly(number: float) -> None:
    check(FLOAT32, number, np.arange(1 << 23, 2 << 23).astype(np.float32))
    check(FLOAT32, number, np.concatenate([ends(FLOAT32, number), shifted(hardest(FLOAT32, number))]))


@pytest.mark.parametrize("number", [*USUAL, *WHOLE, *ANY, *NEAR_POWERS])
@pytest.mark.sampled(4)
def test_the_hardest_float64_are_divided_exactly(number: float) -> None:
    drawn = np.random.default_rng(2).uniform(1, 4, 1 << 16)
    near = (np.rint(drawn * 2**52) + 0.5) * 2.0**-52 * number  # quotients near to a middle
    dividends = np.concatenate([drawn, near, np.nextafter(near, 0), hardest(FLOAT64, number)])
    check(FLOAT64, number, np.concatenate([shifted(dividends), ends(FLOAT64, number)]))


@pytest.mark.parametrize("number", [6, 14, 94, 362, 446, 698, 970])
def test_every_middle_of_float32_subnormals_goes_to_even(number: int) -> None:
    halves = np.arange(1, 1 << 24, 2) * (number // 2)  # of the divisor, odd numbers of them
    units = halves[halves < 1 << 30]
    exact = units.astype(np.float32).astype(np.int64) == units
    check(FLOAT32, number, units[exact].astype(np.float32) * np.float32(2.0**-149))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_number_by_any_constant_is_the_quotient(dtype: DType, data: st.DataObject) -> None:
    floats = st.floats(width=dtype.bits, allow_subnormal=True)  # type: ignore[arg-type]
    number = data.draw(st.integers(3, 1 << 20) | st.floats(2.0**-20, 2.0**20, width=dtype.bits))  # type: ignore[arg-type]
    function = quotient_by(dtype, float(number))
    if function is None:
        return
    x = np.array(data.draw(st.lists(floats, min_size=1, max_size=30)), dtype.numpy)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, x * dtype.numpy.type(number)])
        assert (bits_of(call(function, [x], ())) == bits_of(x / dtype.numpy.type(number))).all()


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_usual_constants_need_no_division(dtype: DType) -> None:
    assert [number for number in USUAL if not quotient_by(dtype, float(dtype.numpy.type(number)))] == []


@pytest.mark.parametrize("number", [0.0, 1.0, 0.25, math.inf, math.nan, 1e-300, 1e300, 2.0**53 - 1, 5e-324])
def test_others_are_left_to_division(number: float) -> None:
    assert quotient_by(FLOAT64, number) is None


def test_no_target_divides_by_the_constant() -> None:
    kernel = fusec.ElementwiseKernel("float32 x", "float32 y", "y = x / 25 + x / -0.1f + x / 4")
    assert "fusec_over_25_float32(x) + fusec_over_0_1_float32(-x) + x * 0.25f" in kernel.source("cuda")
    assert " / " not in kernel.source("cuda").partition("extern")[2].replace("y = x / 25 + x / -0.1f + x / 4", "")
    assert "fdiv" not in kernel.source("llvm")


def test_fast_kernels_multiply_only() -> None:
    kernel = fusec.ElementwiseKernel("float32 x", "float32 y", "y = x / 25", fp="fast")
    assert "fusec_over" not in kernel.source("cuda")
