"""Functions of complex numbers: small errors in norm, NumPy's values at infinities and on branch cuts."""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

import fusec
from fusec.base.dtypes import COMPLEX, COMPLEX64, DType
from fusec.ir.interpret import call
from fusec.math import callees, define

NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
NUMPY |= {"atanh": "arctanh", "abs_complex": "abs", "arg": "angle", "sqrt_complex": "sqrt"}
EXACT: dict[str, Callable[[mp.mpc], mp.mpc]] = {"abs_complex": mp.fabs, "arg": mp.arg, "sqrt_complex": mp.sqrt}
NAMES = "abs_complex arg sqrt_complex exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split()


def run(op: str, *args: np.ndarray) -> np.ndarray:
    dtype: DType = next(t for t in COMPLEX if t.numpy == args[0].dtype)
    function = define(op, (dtype,) * len(args))
    return call(function, list(args), callees(function))


def arguments(dtype: DType) -> np.ndarray:
    random = np.random.default_rng(1)
    near = random.normal(size=150) + 1j * random.normal(size=150)
    ring = np.exp(random.normal(0, 1.2, 150)) * np.exp(1j * random.uniform(-3.14, 3.14, 150))
    close = 1 + random.normal(0, 1e-4, 60) + 1j * random.normal(0, 1e-4, 60)
    return np.concatenate([near, ring, close]).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", NAMES)
def test_errors_in_norm_are_small(op: str, dtype: DType) -> None:
    mp.mp.dps = 40
    z = arguments(dtype)
    exact = EXACT.get(op) or getattr(mp, op)
    step = float(np.finfo(dtype.numpy).eps)
    for point, value in zip(z, run(op, z), strict=True):
        wanted = exact(mp.mpc(complex(point)))
        assert abs(mp.mpc(complex(value)) - wanted) <= 3 * step * abs(wanted), (op, point, value)


def hard(dtype: DType) -> np.ndarray:
    """Points of any small distance from 1, -1, i and -i, points of the greatest size, and the extremes of both."""
    random, numbers = np.random.default_rng(2), np.finfo(dtype.numpy)
    least, greatest = float(numbers.smallest_subnormal), float(numbers.max)
    exponents = random.uniform(np.log2(least), -1, (2, 64)) * [[1], [0.5]]
    parts = random.choice([-1, 1], (2, 64)) * np.exp2(exponents)
    flat = np.where(random.random(64) < 0.5, 1, 1 + parts[1]) + 1j * parts[0]
    close = [*flat, *-flat, *flat * 1j, *flat * -1j]
    ends = [complex(x, y) for x in (1, -1, least) for y in (least, -least, 1e-20)]
    great = random.choice([-1, 1], (2, 32)) * greatest * random.uniform(0.1, 1, (2, 32))
    top = [complex(x * greatest, y * greatest) for x in (1, -1, 0.8) for y in (1, -0.8)] + [complex(2, greatest)]
    z = np.array([*close, *ends, *(complex(w.imag, w.real) for w in ends), *(great[0] + 1j * great[1]), *top])
    z = z.astype(dtype.numpy)
    return z[(z.real != 0) & (z.imag != 0)]  # on the axes the cuts decide, which mpmath does not draw by signs


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
@pytest.mark.sampled(3)
def test_errors_are_small_beside_branch_points_and_at_the_greatest_numbers(op: str, dtype: DType) -> None:
    z = hard(dtype)
    numbers = np.finfo(dtype.numpy)
    for point, value in zip(z, run(op, z), strict=True):
        with mp.workdps(40 if abs(point.real) > 1e-9 < abs(point.imag) else 120 if dtype == COMPLEX64 else 700):
            wanted = getattr(mp, op)(mp.mpc(complex(point)))
            bound = 3 * max(float(numbers.eps) * abs(wanted), mp.mpf(float(numbers.smallest_subnormal)))
            assert abs(mp.mpc(complex(value)) - wanted) <= bound, (op, point, value)


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
def test_poles_and_overflows_of_inverse_functions_have_their_values(dtype: DType) -> None:
    """Computed by hand: log(2 / y) / 2 above a pole, and log(2 |z|) far out."""
    least, half = float(np.finfo(dtype.numpy).smallest_subnormal), float(np.finfo(dtype.numpy).max) / 2
    above = run("atanh", np.array([complex(1, least), complex(-1, -least)], dtype.numpy))
    height = (1 - np.log2(least)) * np.log(2) / 2
    np.testing.assert_allclose(above, [complex(height, np.pi / 4), complex(-height, -np.pi / 4)], rtol=1e-6)
    far = run("asin", np.array([complex(half, half)], dtype.numpy))
    size = np.log(half) + np.log(8) / 2
    np.testing.assert_allclose(far, [complex(np.pi / 4, size)], rtol=1e-6)
    assert np.isinf(run("atanh", np.array([1], dtype.numpy))[0].real)


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
@pytest.mark.parametrize("op", NAMES)
def test_branch_cuts_are_numpys(op: str, dtype: DType) -> None:
    axis = [complex(x, y) for x in (0.0, -0.0, 0.5, -0.5, 2.0, -2.0) for y in (0.0, -0.0)]
    z = np.array(axis + [complex(w.imag, w.real) for w in axis], dtype.numpy)
    with np.errstate(all="ignore"):
        wanted = getattr(np, NUMPY.get(op, op))(z)
    found = run(op, z)
    np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype.numpy).eps, atol=1e-37)
    for part in ("real", "imag"):
        np.testing.assert_array_equal(np.signbit(getattr(found, part)), np.signbit(getattr(wanted, part)))


@pytest.mark.parametrize("op", ["abs_complex", "arg", "sqrt_complex", "log", "asin", "acos", "asinh", "acosh", "atanh"])
def test_values_at_infinities_are_numpys(op: str) -> None:
    ends = [np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]
    z = np.array([complex(x, y) for x in ends for y in ends if np.isinf(x) or np.isinf(y)], COMPLEX64.numpy)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(run(op, z), getattr(np, NUMPY.get(op, op))(z), rtol=1e-6)


@pytest.mark.parametrize("dtype", COMPLEX, ids=repr)
def test_powers_are_exponentials_of_logarithms(dtype: DType) -> None:
    mp.mp.dps = 40
    random = np.random.default_rng(6)
    x, y = arguments(dtype), random.normal(size=360) + 1j * random.normal(size=360)
    y = y.astype(dtype.numpy)
    step = float(np.finfo(dtype.numpy).eps)
    for base, exponent, value in zip(x, y, run("pow", x, y), strict=True):
        wanted = mp.mpc(complex(base)) ** mp.mpc(complex(exponent))
        # the error of the exponent's last place is magnified by its size
        growth = 1 + abs(exponent * np.log(base))
        assert abs(mp.mpc(complex(value)) - wanted) <= 3 * step * growth * abs(wanted)
    assert run("pow", x[:1], y[:1] * 0)[0] == 1
    assert run("pow", x[:1] * 0, np.array([2 + 1j], dtype.numpy))[0] == 0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("exponent", [0, 1, 2, 4, 5, 7, 13, 64, 99, -1, -2, -3, 0.5])
@pytest.mark.sampled(5)
def test_powers_of_integers_are_exact_and_others_near(dtype: str, exponent: float) -> None:
    parts = np.arange(-3, 4)
    whole = (parts[:, None] + 1j * parts).astype(dtype)
    random = np.random.default_rng(2)
    x = (random.normal(size=200) + 1j * random.normal(size=200)).astype(dtype)
    power = fusec.fuse(lambda x: x**exponent)
    with np.errstate(all="ignore"):
        step = np.finfo(dtype).eps * (4 + abs(exponent))
        np.testing.assert_allclose(power(x), x**exponent, rtol=step)
        if exponent in (4, 5, 7):
            np.testing.assert_array_equal(power(whole), whole**exponent)
        for found in (fusec.evaluate(f"x**{exponent}"), fusec.elementwise(f"def f(x): return x**{exponent}")(x)):
            np.testing.assert_array_equal(found, power(x))


@pytest.mark.parametrize("exponent", [4, 9])
def test_integral_powers_are_numpys_squares_and_products(exponent: int) -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=100) + 1j * random.normal(size=100)
    x[:6] = [0, -0.0, 1j, complex(-0.0, 2), -1, complex(np.inf, 1)]

    def product(a: list[np.ndarray], b: list[np.ndarray]) -> list[np.ndarray]:  # without fma
        return [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]

    with np.errstate(all="ignore"):
        found, square, rest = [np.ones(100), np.zeros(100)], [x.real, x.imag], exponent
        while rest:
            found = product(found, square) if rest % 2 else found
            rest, square = rest // 2, product(square, square)
    ours = fusec.elementwise(lambda x: x**4 if exponent == 4 else x**9)(x)
    kept = x != 0
    np.testing.assert_array_equal([ours.real[kept], ours.imag[kept]], [each[kept] for each in found])
    assert not ours[~kept].any()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_cube_is_two_products(dtype: str) -> None:
    parts = [0.0, -0.0, 1.0, -3.0, 0.1, 1.7e3]
    x = np.array([complex(re, im) for re in parts for im in parts], dtype)
    re, im = x.real, x.imag
    square = re * re - im * im, re * im + im * re
    for found in (fusec.fuse(lambda x: x**3)(x), fusec.evaluate("x**3"), fusec.elementwise(lambda x: x**3.0)(x)):
        np.testing.assert_array_equal(found.real, re * square[0] - im * square[1])
        np.testing.assert_array_equal(found.imag, re * square[1] + im * square[0])
        np.testing.assert_allclose(found, x**3, rtol=1e-6)
