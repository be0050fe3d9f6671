"""Functions of tuples, tables and arguments by name give what Python and NumPy give for every element."""

import math

import numpy as np
import pytest

import fusec
from fusec import FusecError
from tests.support.python_law import law

RNG = np.random.default_rng(3)
HARD = [0.0, -0.0, 1, -1.5, 2.675, 0.125, 1e300, -1e-300, np.inf, -np.inf, np.nan, 1 / 3, 2.5]
FLOATS = np.concatenate([HARD, [1e15 + 0.5, 2.0**52 - 0.5], RNG.normal(size=100) * 100])
FLOATS = np.concatenate([FLOATS, np.round(RNG.normal(size=100) * 100) / 1000 + 0.0005])
INTS = np.array([0, 1, 5, 15, 25, 125, 127, -128, -5, -15, 55, 45, -1])
PLACES, VALUES = np.array([-1.0, 0, 0.5, 0.5, 2, 3]), (1, 2.5, -1, 4, 0, np.inf)
MANY = np.linspace(-3, 3, 100)
SINES = np.sin(MANY)


def cast(values, dtype):
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint8", "int64"])
def test_divmod_is_both_results(dtype):
    def f(x, y):
        quotient, rest = divmod(x, y)
        return quotient, rest, np.divmod(x, y)[1], divmod(x, 7)[0]

    x = cast(INTS if "int" in dtype else FLOATS, dtype)
    law(f, x, np.where(np.roll(x, 3) == 0, cast(3, dtype), np.roll(x, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpys_numbers_are_rounded_as_numpy_does(dtype):
    def f(x):
        return round(x, 2), np.round(x, 3), round(x, -1), np.round(x, -2), np.round(x), np.around(x, decimals=1)

    law(f, cast(FLOATS, dtype))


def test_pythons_numbers_are_rounded_exactly():
    def f(x):
        value = float(x)
        return round(value, 2), round(value, -1), round(value, 7), round(value, 0), round(value, 22), round(value, -15)

    near = np.round(RNG.normal(size=2000) * 1e4) / 1000 + 0.0005
    law(f, np.concatenate([FLOATS, near, near * 1e12, near * 1e-20]))
    law(lambda x: (round(int(x), -1), round(int(x), -18), round(int(x), 2), round(2.675, 2) * x), INTS * 10**15)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_integers_are_rounded_to_powers_of_ten(dtype):
    law(lambda x: (round(x, -1), round(x, 2), np.round(x, -2)), cast(INTS, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_closeness_is_pythons_and_numpys(dtype):
    def f(x, y):
        return (
            math.isclose(x, y),
            math.isclose(x, y, rel_tol=0.1, abs_tol=0.01),
            np.isclose(x, y),
            np.isclose(x, y, 1e-2, atol=0.1, equal_nan=True),
        )

    x = cast(FLOATS, dtype)
    with np.errstate(all="ignore"):
        y = cast(FLOATS * (1 + RNG.choice([0, 1e-10, 1e-6, 0.05, 0.3], len(FLOATS))), dtype)
    law(f, x, y)
    law(f, x, np.roll(y, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool", "complex64"])
def test_nan_to_num_is_numpys(dtype):
    def f(x):
        return np.nan_to_num(x), np.nan_to_num(x, nan=1.5, posinf=2, neginf=-3.0), np.nan_to_num(x, True, 7)

    law(f, cast(FLOATS, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_interpolation_is_numpys(dtype):
    def f(x):
        return (
            np.interp(x, PLACES, VALUES),
            np.interp(x, MANY, SINES),
            np.interp(x, MANY, SINES, left=-7, right=np.float32(8)),
            np.interp(x, (1,), (2,)),
            np.interp(x, (1, 2), (2, 3)),
        )

    law(f, cast(np.concatenate([FLOATS, PLACES, MANY, MANY + 1e-9]), dtype))


def test_interpolation_between_numbers_that_are_computed():
    law(lambda x, y: np.interp(x, (0.0, 1.0, 2.0), (y, 2 * y, 7.0)), np.linspace(-1, 3, 50), np.linspace(1, 2, 50))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64", "bool"])
def test_bits_are_counted_as_numpy_does(dtype):
    law(lambda x: np.bitwise_count(x), cast([0, 1, -1, 127, -128, 5, 2**62], dtype))


def test_combinations_products_and_extremes_of_tuples():
    def f(n, k):
        chosen = math.comb(int(n), int(k))
        return chosen, math.prod((int(n), int(k), 2)), math.prod((n, 2.5), start=3), max((n, k, 3)), min((n, k))

    n, k = np.meshgrid(np.arange(67), np.arange(34))
    law(f, n.ravel(), k.ravel())


def test_distances_are_pythons_within_rounding():
    def f(x, y):
        return math.dist((x, y, 1), (y, 2, x)), math.hypot(x, y, 2), math.dist((x,), (y,)), math.dist((1,), (x,))

    x, y = FLOATS[np.isfinite(FLOATS)], np.roll(FLOATS[np.isfinite(FLOATS)], 1)
    for found, wanted in zip(fusec.elementwise(f)(x, y), zip(*map(f, x, y), strict=True), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-15)
    wide = fusec.elementwise(lambda x: math.dist((x,), (-1,)))(np.array([127], "int8"))
    assert wide[0] == 128


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("math.dist((x, x), (x,))", "points of 2 and 1 coordinates"),
        ("math.prod(x)", "float64 as 'iterable'"),
        ("math.comb(x, 1)", "'comb' does not take float64"),
        ("round(x, y)", "as 'ndigits'"),
        ("round(float(x), 30)", "at most 22 digits"),
        ("np.interp(x, (1, 0), (1, 2))", "positions that do not ascend"),
        ("np.interp(x, (1, 2, 3), (1, 2))", "3 and 2 points"),
        ("np.interp(x, (1, 2), (1, 2), period=3)", "'period='"),
        ("math.isclose(x, y, rtol=1)", "'rtol='"),
        ("math.isclose(x)", "takes 2 argument"),
        ("divmod(x, y, x)", "takes 2 argument"),
        ("np.isclose(x, x, a=1)", "'a=' of 'isclose' twice"),
        ("math.isclose(1j * x, y)", "complex numbers"),
        ("np.bitwise_count(x)", "it is for integers"),
    ],
)
def test_what_they_do_not_take_is_named(text, message):
    function = fusec.elementwise(f"def f(x, y):\n    return {text}", names={"math": math, "np": np})
    with pytest.raises(FusecError, match=message):
        function(np.ones(3), np.ones(3))


def parts_of(x, y):
    return x // y, x % y


PAIRS = ((1, 2), (3, 4))


def of_call(x, y):
    return parts_of(x, y)


def of_builtin(x, y):
    return divmod(x, y)


def of_name(x, y):
    both = parts_of(x, y)
    if x > 3:
        both = both[1], both[0]
    return both


def of_choice(x, y):
    return np.divmod(x, y) if x > 3 else (x, y)


def of_inner(x, y):
    def inner(a, b):
        return a, b, a + b

    return inner(x, y)


def of_table(x, y):
    return PAIRS[x % 2]


def of_later(x, y):
    return later(x, y)  # noqa: F821


@pytest.mark.parametrize("function", [of_call, of_builtin, of_name, of_choice, of_inner, of_table, of_later])
def test_a_tuple_is_returned_however_it_was_made(function):
    kernel = fusec.elementwise(function)
    globals()["later"] = parts_of
    x, y = np.arange(10), np.arange(10) % 3 + 1
    expected = [np.array(each) for each in zip(*map(function, x.tolist(), y.tolist()), strict=True)]
    out = tuple(np.empty_like(each) for each in expected)
    for found in (kernel(x, y), kernel(x, y, out=out), kernel(x, y, *out)):
        assert isinstance(found, tuple)
        for each, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(each, wanted)
    assert kernel(7, 2) == tuple(function(7, 2))


def test_stencils_reductions_and_lambdas_return_such_tuples():
    x = np.arange(10)
    quotient, rest = fusec.stencil(lambda a: divmod(a[0], 3))(x)
    np.testing.assert_array_equal([quotient, rest], np.divmod(x, 3))
    total = fusec.reduction(lambda a, b: a + b, finish=lambda a: divmod(a, 7))
    assert total(x) == divmod(45, 7)
    np.testing.assert_array_equal(fusec.elementwise("lambda x: np.divmod(x, 3)")(x), np.divmod(x, 3))
