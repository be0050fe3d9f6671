"""Functions whose results NumPy or C defines exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fusec.base.dtypes import (
    COMPUTE_FLOATS,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    INTEGERS,
    UINT8,
    UINT64,
    DType,
)
from fusec.ir.interpret import call
from fusec.math import callees, define

HARD = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 1e-300, 5e-324, 1e-40, -1e-45, 2.0**24 + 1, 1e30]
HARD += [
    1e308,
    3e38,
    2.2250738585072014e-308,
    1.1754943508222875e-38,
    math.pi,
    np.inf,
    -np.inf,
    np.nan,
    0.49999999999999994,
]


def floats(dtype: DType, count: int = 300) -> np.ndarray:
    random = np.random.default_rng(3)
    span = 40 if dtype == FLOAT32 else 300
    wide = random.choice([-1, 1], count) * 10.0 ** random.uniform(-span, span, count)
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([HARD, wide, random.uniform(-9, 9, count)]).astype(dtype.numpy)


def integers(dtype: DType) -> np.ndarray:
    bounds = np.iinfo(dtype.numpy)
    random = np.random.default_rng(4)
    drawn = random.integers(bounds.min, bounds.max, 60, dtype=dtype.numpy, endpoint=True)
    near = np.array([bounds.min, bounds.min + 1, bounds.max, 0, 1, 2, 3, 7], dtype.numpy)
    return np.concatenate([near, near - near.dtype.type(1), drawn])


def pairs(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left, right = np.meshgrid(x[:90], x[-90:])
    return np.concatenate([left.ravel(), x]), np.concatenate([right.ravel(), x[::-1]])


def run(op: str, *args: np.ndarray) -> np.ndarray:
    types = tuple(next(t for t in (*INTEGERS, *COMPUTE_FLOATS) if t.numpy == arg.dtype) for arg in args)
    function = define(op, types)
    return call(function, list(args), callees(function))


def assert_same_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype
    same = (found == wanted) & (np.signbit(found) == np.signbit(wanted)) if found.dtype.kind == "f" else found == wanted
    both_nan = (found != found) & (wanted != wanted)
    wrong = np.flatnonzero(~(same | both_nan))
    assert not len(wrong), f"{found[wrong[:5]]} instead of {wanted[wrong[:5]]}"


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", ["fmod", "remainder", "floor_divide", "nextafter", "copysign", "minimum", "maximum"])
def test_binary_functions_are_numpys(op: str, dtype: DType) -> None:
    x, y = pairs(floats(dtype))
    with np.errstate(all="ignore"):
        wanted = getattr(np, op)(x, y)
    found = run(op, x, y)
    if op in ("minimum", "maximum"):  # NumPy leaves the sign of equal zeros open
        found, wanted = found + dtype.numpy.type(0), wanted + dtype.numpy.type(0)
    assert_same_bits(found, wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("op", ["remainder", "floor_divide", "minimum", "maximum"])
def test_integer_functions_are_numpys(op: str, dtype: DType) -> None:
    x, y = pairs(integers(dtype))
    with np.errstate(all="ignore"):
        assert_same_bits(run(op, x, y), getattr(np, op)(x, y))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize(("op", "combine"), [("minimum", np.bitwise_or), ("maximum", np.bitwise_and)])
def test_zeros_are_ordered_by_sign(op: str, combine: np.ufunc, dtype: DType) -> None:
    x, y = np.array([0.0, 0.0, -0.0, -0.0], dtype.numpy), np.array([0.0, -0.0, 0.0, -0.0], dtype.numpy)
    assert_same_bits(np.signbit(run(op, x, y)), combine(np.signbit(x), np.signbit(y)))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", ["fmin", "fmax"])
def test_fmin_and_fmax_prefer_numbers(op: str, dtype: DType) -> None:
    x, y = pairs(floats(dtype))
    zero = dtype.numpy.type(0)
    assert_same_bits(run(op, x, y) + zero, getattr(np, op)(x, y) + zero)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", ["sign", "signbit", "isnan", "isinf", "isfinite"])
def test_classes_are_numpys(op: str, dtype: DType) -> None:
    x = floats(dtype)
    assert_same_bits(run(op, x), getattr(np, op)(x))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_round_takes_halves_away_from_zero(dtype: DType) -> None:
    x = np.concatenate([floats(dtype), np.arange(-6, 6, 0.5).astype(dtype.numpy)])
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        wanted = np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(dtype.numpy)
    assert_same_bits(run("round", x), np.where(np.isinf(x), x, np.copysign(wanted, x)))


@pytest.mark.parametrize("count_dtype", [INT8, INT16, INT32, INT64, UINT8, UINT64], ids=repr)
@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_ldexp_rounds_once(dtype: DType, count_dtype: DType) -> None:
    x, n = np.meshgrid(floats(dtype, 60), integers(count_dtype))
    with np.errstate(all="ignore"):
        wanted = np.ldexp(x, np.clip(n.astype(np.float64), -9999, 9999).astype(np.int32))
    assert_same_bits(run("ldexp", x.ravel(), n.ravel()), wanted.ravel())


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_ilogb_is_the_exponent(dtype: DType) -> None:
    x = floats(dtype)
    exponents = np.frexp(x)[1] - 1
    least, greatest = -(2**31), 2**31 - 1
    wanted = np.where((x == 0) | np.isnan(x), least, np.where(np.isinf(x), greatest, exponents)).astype(np.int32)
    assert_same_bits(run("ilogb", x), wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("op", ["gcd", "lcm"])
def test_divisors_and_multiples_are_numpys(op: str, dtype: DType) -> None:
    x, y = pairs(integers(dtype))
    assert_same_bits(run(op, x, y), getattr(np, op)(x, y))


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_binomial_coefficients_are_pythons_or_the_largest_integer(dtype: DType) -> None:
    x, y = pairs(integers(dtype))
    near = np.arange(71).astype(dtype.numpy)
    x, y = np.concatenate([x, np.repeat(near, 71)]), np.concatenate([y, np.tile(near, 71)])
    limit = int(np.iinfo(dtype.numpy).max)

    def choose(n: int, k: int) -> int:
        if not 0 <= k <= n:
            return 0
        return limit if 70 < k < n - 70 else min(math.comb(n, k), limit)

    wanted = np.array([choose(n, k) for n, k in zip(x.tolist(), y.tolist(), strict=True)], dtype.numpy)
    assert_same_bits(run("comb", x, y), wanted)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_a_position_counts_as_python_does_and_stays_inside(dtype: DType) -> None:
    x = integers(dtype)
    for length in (1, 2, 100):
        found = run("position", x, np.full_like(x, length))
        wanted = [range(length)[max(min(each, length - 1), -length)] for each in x.tolist()]
        assert_same_bits(found, np.array(wanted, dtype.numpy))


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_integer_powers_are_numpys_and_truncate_where_numpy_refuses(dtype: DType) -> None:
    x, y = pairs(integers(dtype))
    found, kept = run("pow", x, y), y >= 0
    assert_same_bits(found[kept], np.power(x[kept], y[kept]))
    odd = (y & 1) != 0
    wanted = np.select([x == 1, x == np.array(-1).astype(dtype.numpy)], [np.ones_like(x), np.where(odd, x, 1)], 0)
    assert_same_bits(found[~kept], wanted.astype(dtype.numpy)[~kept])


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_pieces_of_floats_are_numpys(dtype: DType) -> None:
    greatest = np.finfo(dtype.numpy).max
    x = np.concatenate([floats(dtype), np.array([greatest, -greatest], dtype.numpy)])
    with np.errstate(all="ignore"):
        wanted = {"frexp_mantissa": np.frexp(x)[0], "frexp_exponent": np.frexp(x)[1], "modf_fraction": np.modf(x)[0]}
        wanted |= {name: getattr(np, name)(x) for name in ("spacing", "square", "reciprocal")}
    for op, values in wanted.items():
        assert_same_bits(run(op, x), values)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_heaviside_and_clip_are_numpys(dtype: DType) -> None:
    x, y = pairs(floats(dtype))
    assert_same_bits(run("heaviside", x, y), np.heaviside(x, y))
    z, zero = np.roll(x, 7), dtype.numpy.type(0)
    assert_same_bits(run("clip", x, y, z) + zero, np.clip(x, y, z) + zero)  # NumPy leaves the sign of equal zeros open


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_the_remainder_of_c_is_the_nearest(dtype: DType) -> None:
    x, y = pairs(floats(dtype))
    defined = np.isfinite(x) & ~np.isnan(y) & (y != 0)
    wanted = [math.remainder(float(a), float(b)) if ok else np.nan for a, b, ok in zip(x, y, defined, strict=True)]
    assert_same_bits(run("ieee_remainder", x, y), np.array(wanted, dtype.numpy))


def test_fmod_is_exact_at_the_ends_of_the_range() -> None:
    x = np.array([1.7e308, 1.7e308, 8.9e307, 1.0], np.float64)
    y = np.array([5e-324, 2.3e-308, 3e-310, 5e-324], np.float64)
    assert_same_bits(run("fmod", x, y), np.fmod(x, y))
    assert define("fmod", (FLOAT64, FLOAT64)) is define("fmod", (FLOAT64, FLOAT64))
