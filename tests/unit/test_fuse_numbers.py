"""Fused functions: what they make of Python numbers that they are passed."""

import warnings

import numpy as np
import pytest

import fusec


def plans_of(fused):
    return sum(map(len, fused._plans.values()))


def test_a_number_made_of_numbers_must_fit_the_dtype_that_it_meets_at_every_call():
    fused, x = fusec.fuse(lambda x, n: x + 2 * n), np.array([1, 2], np.uint8)
    for n, wanted in ((3, [7, 8]), (127, [255, 0]), (0, [1, 2])):
        np.testing.assert_array_equal(fused(x, n), np.array(wanted, np.uint8), strict=True)
    for n in (128, 200, -1, 2**70):
        with pytest.raises(OverflowError, match=rf"{2 * n} does not fit uint8.*F219"):
            fused(x, n)
    np.testing.assert_array_equal(fused(x, 3), [7, 8])
    assert plans_of(fused) == 1
    with pytest.raises(OverflowError, match="F219"):
        fusec.fuse(lambda x, n: x + 2 * n)(np.arange(3), 2**62)
    assert fusec.fuse(lambda x, n: x * (n * n))(np.ones(2), 2**40).tolist() == [2.0**80] * 2


def test_numbers_that_are_returned_are_exact():
    fused = fusec.fuse(lambda x, n, m: (x + 1, n * n, n + m, -n, n << m, n > m, n / m, abs(n), divmod(n, m)))
    for n, m in ((3, 2), (-(2**63), 70), (2**62 + 1, 3)):
        _, *found = fused(np.ones(2), n, m)
        assert found == [n * n, n + m, -n, n << m, n > m, n / m, abs(n), divmod(n, m)]
        assert list(map(type, found)) == [int, int, int, int, bool, float, int, tuple]
    assert plans_of(fused) == 1
    with pytest.raises(ZeroDivisionError):
        fused(np.ones(2), 1, 0)


def test_a_number_made_of_many_is_computed_once():
    def doubled(x, n):
        m = n
        for _ in range(70):
            n, m = n + m, n
        return x * (n % 1000 + m % 7)

    for n in (1, 2, 1):
        assert fusec.fuse(doubled)(np.ones(2), n).tolist() == doubled(np.ones(2), n).tolist()


def test_a_number_whose_type_depends_on_values_is_what_python_makes_of_it():
    fused = fusec.fuse(lambda x, n, m: x * n**m)
    for n, m in ((2, 3), (2, -3), (2, 4), (-8.0, 0.5), (4.0, 0.5), (2, -1), (2, 5)):
        np.testing.assert_array_equal(fused(np.ones(2), n, m), np.ones(2) * n**m, strict=True)
    assert plans_of(fused) == 4
    with pytest.raises(ValueError, match="Integers to negative integer powers"):
        fusec.fuse(lambda x, n: x**n)(np.arange(3), -1)


def test_a_number_that_python_needs_is_traced_for_whatever_it_is_made_of():
    fused = fusec.fuse(lambda x, n, m: x * 2 if 2 * n > m else x[n + m :] + n)
    x = np.arange(6)
    for n, m in ((1, 1), (1, 3), (0, 2)):
        np.testing.assert_array_equal(fused(x, n, m), x * 2 if 2 * n > m else x[n + m :] + n)


def test_numbers_of_objects_and_modules_are_computed_with_as_well():
    scale = [1]

    @fusec.fuse
    def scaled(x):
        return x + scale[0] * 2

    x = np.zeros(2, np.uint8)
    for number in (1, 2, 3, 100):
        scale[0] = number
        assert scaled(x).tolist() == [2 * number] * 2
    scale[0] = 200
    with pytest.raises(OverflowError):
        scaled(x)


def test_a_bool_compared_with_a_number_that_is_passed_warns_where_the_answer_is_constant():
    def count(a, n):
        return a == n

    bools, fused = np.array([True, False]), fusec.fuse(count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in (1, 0, True, 1.0):
            np.testing.assert_array_equal(fused(bools, n), bools == n)
    for n in (2, -1, 1.5, 300):
        with pytest.warns(fusec.FusecWarning, match=rf"'== {n}' is always false.*F720") as caught:
            np.testing.assert_array_equal(fused(bools, n), [False, False])
        assert caught[0].filename == __file__
        assert caught[0].lineno == count.__code__.co_firstlineno + 1


def test_a_bool_compared_with_a_constant_warns_where_the_answer_is_constant():
    bools = np.array([True, False])
    for n in (np.int8(2), np.uint8(200), np.float32(1.5), np.int64(-1), 3):
        with pytest.warns(fusec.FusecWarning, match="a bool is 0 or 1.*F720"):
            found = fusec.fuse(lambda a: (a == n, n < a, np.greater_equal(a, n)))(bools)  # noqa: B023
        for ours, theirs in zip(found, (bools == n, n < bools, bools >= n), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)


def test_float16_is_compared_with_a_number_as_it_holds_it():
    x = np.array([1.1, 2], np.float16)
    for fused in (fusec.fuse(lambda x, n: (x == n, n < x)), fusec.fuse(lambda x, n: (x == 1.1, x > 1.1))):
        for found, wanted in zip(fused(x, 1.1), ([True, False], [False, True]), strict=True):
            assert found.tolist() == wanted


def test_bounds_of_clip_that_are_passed_and_bound_nothing_need_not_fit():
    fused, x = fusec.fuse(lambda x, low, high: np.clip(x, low, 2 * high)), np.array([1, 2, 200], np.uint8)
    for low, high in ((-2, 50), (-2, 150), (5, 2**70), (0, 100)):
        np.testing.assert_array_equal(fused(x, low, high), np.clip(x, low, 2 * high), strict=True)
    with pytest.raises(OverflowError):
        fused(x, 300, 400)


def test_an_exception_of_a_number_is_the_functions_own_at_its_call_alone():
    def caught(x, n):
        try:
            return x + 1 / n
        except ZeroDivisionError:
            return x

    def written(x, n):
        x[...] = 5
        return x + 1 // n

    for numbers in ((0, 2, 0), (2, 0, 2, 4)):
        fused, halved = fusec.fuse(caught), fusec.fuse(written)
        for n in numbers:
            assert fused(np.ones(2), n).tolist() == caught(np.ones(2), n).tolist()
            x = np.ones(2)
            if n:
                assert halved(x, n).tolist() == written(np.ones(2), n).tolist()
            else:
                with pytest.raises(ZeroDivisionError):
                    halved(x, n)
            assert x.tolist() == [5, 5]
        assert plans_of(halved) == 1


def test_what_only_python_numbers_have_is_asked_of_the_number():
    fused = fusec.fuse(lambda x, n: (x * n.bit_length(), n.to_bytes(2, "big"), hasattr(n, "is_integer")))
    for n in (5, 300, 5):
        found, *rest = fused(np.ones(2), n)
        assert found.tolist() == [n.bit_length()] * 2
        assert rest == [n.to_bytes(2, "big"), hasattr(n, "is_integer")]
    assert fusec.fuse(lambda x, n: x * (n / 2).is_integer())(np.ones(2), 4.0).tolist() == [1, 1]
    assert fusec.fuse(lambda x, n: x * n.is_integer())(np.ones(2), np.float32(4)).tolist() == [1, 1]
    with pytest.raises(TypeError, match=r"'is_integer' needs values.*F280"):
        fusec.fuse(lambda x: x.sum().is_integer())(np.ones(2))


def test_pow_takes_a_modulus():
    fused = fusec.fuse(lambda x, n, m: x * pow(n, 3, m))
    for n, m in ((5, 7), (-5, 7), (2, 5)):
        assert fused(np.ones(2), n, m).tolist() == [pow(n, 3, m)] * 2
    assert plans_of(fused) == 1
    with pytest.raises(TypeError, match="unsupported operand"):
        fusec.fuse(lambda x: pow(x, 2, 3))(np.ones(2))


def test_lists_of_numbers_that_are_passed_are_operands():
    for given in ([1, 2, 3], (1, 2.5, 3), [4, 5, 6]):
        np.testing.assert_array_equal(fusec.fuse(lambda x, n: x * n)(np.arange(3), given), np.arange(3) * given)


@pytest.mark.parametrize(
    "function",
    [
        np.allclose,
        np.array_equal,
        np.array_equiv,
        lambda x, y: (np.allclose(x, y), [np.array_equal(x, x)]),
        lambda x, y: type(np.allclose(x, y)),
        lambda x, y: np.allclose(x.sum(), y[0]),
        lambda x, y: np.array_equal(x, y, equal_nan=True),
        lambda x, y: x * np.allclose(x, x),
        lambda x, y: np.logical_not(np.allclose(x, y)),
        lambda x, y: np.i0(x.sum()),
    ],
)
def test_what_numpy_returns_as_a_bool_of_python_or_an_array_without_axes_is_one(function):
    for x, y in ((np.arange(4.0), np.arange(4.0)), (np.arange(4.0), np.ones(4)), (np.array([np.nan]), np.ones(1))):
        fused = fusec.fuse(function)
        for _ in range(3):
            found = fused(x, y)
        wanted = function(x, y)
        assert type(found) is type(wanted)
        if isinstance(wanted, type | tuple | bool):
            assert repr(found) == repr(wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_what_is_written_before_a_number_that_does_not_fit_stays():
    class Counts:
        calls = 0

    counts = Counts()

    def add(x, n, y):
        counts.calls += 1
        y += 1
        y[0] = y[1:].sum()
        x += 2 * n
        return x

    fused = fusec.fuse(add)
    for n in (3, 3, 200, 300, 4):  # the plan of 3 is run before, and afterwards
        mine, theirs = ([np.arange(3, dtype="uint8"), np.zeros(3)] for _ in range(2))
        problems = []
        for function, (x, y) in ((fused, mine), (add, theirs)):
            try:
                function(x, n, y)
            except OverflowError as problem:
                problems.append(str(problem).partition(" [")[0])
        assert problems == [f"Python integer {2 * n} out of bounds for uint8"] * 2 * (n > 100)
        for ours, their in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(ours, their)
    assert counts.calls == 10


def test_arrays_in_another_byte_order_are_not_written():
    x = np.arange(4.0).astype(">f8")

    @fusec.fuse
    def write(x):
        x[1:] += 1

    write(np.arange(4.0))
    for _ in range(2):
        with pytest.raises(TypeError, match=r"dtype '>f8' of parameter 'x' of kernel 'write' is not supported.*F206"):
            write(x)
    np.testing.assert_array_equal(x, np.arange(4.0))


LIMIT = 3
COMPARISONS = {
    "less": lambda x, k: x < k, "equal": lambda x, k: x == k, "turned": lambda x, k: k >= x,
    "a ufunc": lambda x, k: np.not_equal(x, k), "computed": lambda x, k: 2 * k <= x,
    "counted": lambda x, k: (x > k).sum(),
}  # fmt: skip
BEYOND = (3, -1, 2**63, 4, 2**64, -(2**70), 2**64 - 1, 2**63, 2**70, -(2**63), 5)


@pytest.mark.parametrize("compare", COMPARISONS.values(), ids=COMPARISONS)
@pytest.mark.parametrize("dtype", ["uint64", "int64", "int8", "float64"])
def test_comparisons_with_integers_of_any_size_are_exact(dtype, compare):
    x = np.array(
        {"uint64": [0, 1, 2**63, 2**64 - 1], "int64": [-(2**63), 4, 2**63 - 1]}.get(dtype, [-8, 4, 100]), dtype
    )
    fused, of_global = fusec.fuse(compare), fusec.fuse(lambda x: compare(x, LIMIT))
    for k in BEYOND:
        globals()["LIMIT"] = k
        np.testing.assert_array_equal(fused(x, k), compare(x, k), strict=True)
        np.testing.assert_array_equal(of_global(x), compare(x, k), strict=True)


def test_calls_with_a_large_integer_are_traced_once():
    compare, x = fusec.fuse(lambda x, k: x < k), np.array([0, 2**64 - 1], "uint64")
    for k in (5, 2**63, 2**63, 7, 2**63):
        np.testing.assert_array_equal(compare(x, k), x < k)
    assert len(compare._plans) == 2


def test_powers_of_bools_have_numpys_dtype_for_every_exponent():
    b = np.array([True, False])
    power, of_length = fusec.fuse(lambda x, k: x**k), fusec.fuse(lambda x: x ** len(x))
    for k in (2, 3, 0, 1, 2, True, 2.5):
        np.testing.assert_array_equal(power(b, k), b**k, strict=True)
    for x in (b, b.repeat(2)):
        np.testing.assert_array_equal(of_length(x), x ** len(x), strict=True)


def test_dot_products_of_bools_are_bools():
    for x in (np.array([True, True, False]), np.zeros(0, bool), np.ones((2, 2), bool)):
        np.testing.assert_array_equal(fusec.fuse(np.vdot)(x, x), np.vdot(x, x), strict=True)


@pytest.mark.parametrize("decimals", [0, 1, -1])
def test_parts_of_complex_numbers_are_rounded_apart(decimals):
    z = np.array([complex(np.nan, 0), 1.25 + 0.35j, complex(0, np.nan), complex(-0.0, -0.1), complex(np.inf, 1)])
    for x in (z, z.astype("complex64"), z[1], np.complex64(12.5 + 1j)):
        found, wanted = fusec.fuse(lambda x: np.round(x, decimals))(x), np.round(x, decimals)
        assert found.tobytes() == wanted.tobytes()
        assert type(found) is type(wanted)
