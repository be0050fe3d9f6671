"""Values at zeros, infinities, nan and the ends of domains, as in C99's Annex F, and laws of symmetry."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.dtypes import COMPUTE_FLOATS, DType
from fusec.ir.interpret import call
from fusec.math import callees, define

INF, NAN = np.inf, np.nan
SPECIAL: dict[str, list[tuple[float, float]]] = {
    # op: (argument, value) pairs
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1e5, INF), (-1e5, 0.0)],
    "exp2": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (10.0, 1024.0), (-3.0, 0.125), (1e5, INF)],
    "exp10": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (3.0, 1000.0), (1e5, INF), (-1e5, 0.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (1e-42, 1e-42)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.125, -3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN)],
    "log10": [(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (INF, INF), (-1.0, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-2.0, NAN), (1e-42, 1e-42)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "sinpi": [(0.0, 0.0), (-0.0, -0.0), (1.0, 0.0), (-3.0, -0.0), (0.5, 1.0), (1.5, -1.0), (1e30, 0.0), (INF, NAN)],
    "cospi": [(0.0, 1.0), (1.0, -1.0), (0.5, 0.0), (2.5, 0.0), (1e30, 1.0), (INF, NAN)],
    "sinc": [(0.0, 1.0), (1.0, 0.0), (7.0, 0.0), (INF, 0.0), (-INF, 0.0)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN), (1e-42, 1e-42)],
    "acos": [(1.0, 0.0), (1.5, NAN), (INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (1e-42, 1e-42)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e5, INF)],
    "cosh": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (-1e5, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (50.0, 1.0)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (INF, INF), (0.5, NAN), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (INF, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (27.0, 3.0), (-8.0, -2.0), (INF, INF), (-INF, -INF)],
    "rsqrt": [(4.0, 0.5), (0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (9.0, 1.0)],
    "erfc": [(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (30.0, 0.0)],
    "erfinv": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (INF, NAN)],
    "erfcinv": [(1.0, 0.0), (0.0, INF), (2.0, -INF), (-1.0, NAN), (3.0, NAN)],
    "normcdf": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0)],
    "normcdfinv": [(0.5, 0.0), (0.0, -INF), (1.0, INF), (-1.0, NAN), (2.0, NAN)],
    "sigmoid": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-1e5, 0.0)],
    "softplus": [(INF, INF), (-INF, 0.0), (1000.0, 1000.0), (-1e5, 0.0)],
    "gamma": [(1.0, 1.0), (5.0, 24.0), (0.0, INF), (-0.0, -INF), (-1.0, NAN), (-INF, NAN), (INF, INF), (1e5, INF)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF)],
    "i0": [(0.0, 1.0), (INF, INF), (-INF, INF)],
    "i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "j1": [(0.0, 0.0), (-0.0, -0.0)],
    "y0": [(0.0, -INF), (-1.0, NAN), (INF, 0.0)],
    "y1": [(0.0, -INF), (-1.0, NAN), (INF, 0.0)],
    "round": [(0.5, 1.0), (-0.5, -1.0), (0.25, 0.0), (-0.25, -0.0), (INF, INF)],
}

POWERS = [
    (0.0, -1.0, INF), (-0.0, -1.0, -INF), (-0.0, -2.0, INF), (0.0, 2.0, 0.0), (-0.0, 3.0, -0.0), (-1.0, INF, 1.0),
    (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (NAN, 0.0, 1.0), (-2.0, 0.5, NAN), (0.5, -INF, INF), (0.5, INF, 0.0),
    (2.0, -INF, 0.0), (2.0, INF, INF), (-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF),
    (INF, -1.0, 0.0), (INF, 1.0, INF), (-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-2.0, -1.0, -0.5), (NAN, 1.0, NAN),
]  # fmt: skip

ANGLES = [(0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, -0.0, np.pi), (-0.0, -0.0, -np.pi), (0.0, -1.0, np.pi)]
ANGLES += [(1.0, 0.0, np.pi / 2), (-1.0, -0.0, -np.pi / 2), (INF, INF, np.pi / 4), (INF, -INF, 3 * np.pi / 4)]
ANGLES += [(1.0, INF, 0.0), (-1.0, -INF, -np.pi), (-INF, 1.0, -np.pi / 2), (NAN, 1.0, NAN), (1.0, NAN, NAN)]

ODD = "sin tan sinpi asin atan sinh tanh asinh atanh cbrt erf erfinv i1 j1".split()
EVEN = "cos cospi cosh sinc i0 j0".split()


def run(op: str, *args: np.ndarray) -> np.ndarray:
    dtype: DType = next(t for t in COMPUTE_FLOATS if t.numpy == args[0].dtype)
    function = define(op, (dtype,) * len(args))
    return call(function, list(args), callees(function))


def assert_identical(found: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", SPECIAL)
def test_special_values(op: str, dtype: DType) -> None:
    x, wanted = (np.array(column, dtype.numpy) for column in zip(*SPECIAL[op], (NAN, NAN), strict=True))
    assert_identical(run(op, x), wanted)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize(("op", "rows"), [("pow", POWERS), ("atan2", ANGLES)])
def test_special_values_of_two_arguments(op: str, rows: list[tuple[float, float, float]], dtype: DType) -> None:
    x, y, wanted = (np.array(column, dtype.numpy) for column in zip(*rows, strict=True))
    assert_identical(run(op, x, y), wanted)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_hypot_prefers_infinity_to_nan(dtype: DType) -> None:
    x, y = np.array([INF, NAN, NAN, 3.0, 0.0], dtype.numpy), np.array([NAN, -INF, 1.0, -4.0, -0.0], dtype.numpy)
    assert_identical(run("hypot", x, y), np.array([INF, INF, NAN, 5.0, 0.0], dtype.numpy))


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
@pytest.mark.parametrize("op", ODD + EVEN)
def test_odd_and_even_functions_are_exactly_so(op: str, dtype: DType) -> None:
    random = np.random.default_rng(5)
    x = np.concatenate([random.uniform(0, 1, 200), random.uniform(0, 90, 200), 10.0 ** random.uniform(-40, 30, 200)])
    x = x.astype(dtype.numpy)
    left, right = run(op, -x), run(op, x)
    assert_identical(left, -right if op in ODD else right)


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_integral_powers_of_small_numbers_are_exact(dtype: DType) -> None:
    x, y = (grid.ravel().astype(dtype.numpy) for grid in np.meshgrid(np.arange(-9.0, 10), np.arange(0.0, 7)))
    assert_identical(
        run("pow", x, y), np.array([float(int(a) ** int(b)) for a, b in zip(x, y, strict=True)], dtype.numpy)
    )


@pytest.mark.parametrize("dtype", COMPUTE_FLOATS, ids=repr)
def test_logarithms_are_exact_at_powers(dtype: DType) -> None:
    least = -149 if dtype.bits == 32 else -1074
    exponents = np.arange(least, -least - 30).astype(dtype.numpy)
    with np.errstate(over="ignore", under="ignore"):
        powers = np.ldexp(dtype.numpy.type(1), exponents.astype(np.int32))
    finite = np.isfinite(powers)
    assert_identical(run("log2", powers[finite]), exponents[finite])
    assert_identical(run("exp2", exponents[finite]), powers[finite])
    tens = np.arange(0, 11 if dtype.bits == 32 else 23).astype(dtype.numpy)
    assert_identical(run("log10", np.array([float(10 ** int(n)) for n in tens], dtype.numpy)), tens)
