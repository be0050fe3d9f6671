"""fusec.vectorize is called like numpy.vectorize."""

import pickle

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

SHIFT = 3


def collatz(x):
    """Steps to 1."""
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


def test_functions_run_for_every_element():
    fast, slow = fusec.vectorize(collatz), np.vectorize(collatz)
    x = np.arange(1, 40).reshape(3, 13)
    np.testing.assert_array_equal(fast(x), slow(x))
    assert fast([1, 2, 3]).tolist() == [0, 1, 7]
    assert (fast.__doc__, fast.__name__) == ("Steps to 1.", "collatz")


def test_lambdas_see_their_surroundings():
    scale = 2.5
    fast = fusec.vectorize(lambda x, y: x * scale + y + SHIFT)
    np.testing.assert_array_equal(fast(np.arange(3), 1), np.arange(3) * 2.5 + 4)


def test_dtypes_of_results_can_be_asked_for():
    fast = fusec.vectorize(collatz, otypes="f")
    assert fast(np.arange(1, 4)).dtype == np.float32


def test_what_it_does_not_take_is_refused():
    with pytest.raises(FusecError, match="excluded"):
        fusec.vectorize(collatz, excluded={0})


def test_lambdas_of_one_line_are_told_apart():
    first, second = (fusec.vectorize(each) for each in (lambda x: x + 1, lambda x: x + 2))
    assert (first(1), second(1)) == (2, 3)


def test_what_cupys_refuses_though_python_runs_it_is_computed_as_numpys_does():
    def tuple_then_number(x, y):
        z = x, y
        (a, b), z = z, x
        return a * a + b + z

    def dtype_on_one_way(x, y):
        if x == 3:
            convert = np.dtype("f").type  # noqa: F841
        return x + y

    x, y = np.arange(5), np.arange(5, 10)
    for function in (tuple_then_number, dtype_on_one_way):
        np.testing.assert_array_equal(fusec.vectorize(function)(x, y), np.vectorize(function)(x, y))
    relu = fusec.vectorize(lambda x: x if x > 0.0 else np.float64(0.0))(np.array([-0.5, 0.5], "f"))
    assert (relu.dtype, relu.tolist()) == (np.float64, [0, 0.5])


def test_it_pickles_by_its_source():
    scale = 3
    found = pickle.loads(pickle.dumps(fusec.vectorize(lambda x: x * scale, otypes="f", doc="Thrice.")))
    result = found([1, 2])
    assert (result.dtype, result.tolist(), found.__doc__) == (np.float32, [3, 6], "Thrice.")


def test_otypes_are_as_many_as_results():
    with pytest.raises(ValueError, match=r"one dtype for each output: 2, not 1 \[F225\]"):
        fusec.vectorize("def f(a): return a, a", otypes="i")([1, 2])


def test_a_number_too_large_is_an_overflow_too():
    with pytest.raises(OverflowError, match=r"300 out of bounds for uint8"):
        fusec.vectorize("def f(a): return a + 300")(np.uint8([1]))
    with pytest.raises(ValueError, match="out of bounds"):
        fusec.vectorize("def f(a): return a + 300")(np.uint8([1]))


@pytest.mark.parametrize("boundary", [None, 5])
def test_a_boundary_is_a_text(boundary):
    with pytest.raises(ValueError, match=r"is not a string \[F191\]"):
        fusec.stencil("def f(a): return a[1]", boundary=boundary)


def test_python_floats_are_arrays_of_float64_as_to_numpys():
    x = np.array([1, 2], np.uint8)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(fusec.vectorize(lambda x, y: np.hypot(x, y))(x, 70000.0), np.hypot(x, 70000.0))
