"""Repeated calls take the native entry whatever numbers and outputs they have, and mean what the first call meant."""

import gc
import random
import resource
import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import fusec
from fusec.runtime.cpu import fastcall

pytestmark = pytest.mark.skipif(bool(fastcall.objection_to_build()), reason=fastcall.objection_to_build())

Call = Callable[[], object]
NUMBERS = [2, 2.5, True, -3] + [
    np.dtype(code).type(value)
    for code, value in zip("?bhilBHILefd", (1, -3, 300, 5, -7, 200, 9, 11, 1 << 40, 2.5, 0.1, 1e300), strict=True)
]
COMPLEX = [1 + 2j, np.complex64(1 - 2j), np.complex128(0.1 + 3j)]


def python_calls(call: Call) -> int:
    """How many functions of Python a call runs, its own lambda aside."""
    count = 0

    def see(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count - 1


def warm(call: Call) -> object:
    """The result of the first call, after some more."""
    first = call()
    for _ in range(4):
        call()
    return first


def named(number: object) -> str:
    return type(number).__name__


@fusec.elementwise
def scaled(x, a):
    return x * a


@fusec.elementwise
def scaled_declared(x, a: "float32"):  # noqa: F821 - a dtype
    return x * a


X = np.linspace(0, 3, 32, dtype=np.float32)


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", NUMBERS + COMPLEX, ids=named)
@pytest.mark.sampled(5)
def test_numbers_of_functions_keep_their_dtypes_and_take_the_entry(number: object) -> None:
    scaled = fusec.elementwise("def scaled(x, a): return x * a")
    for x in (X, X.astype(np.float64), np.arange(32)):
        first = warm(lambda x=x: scaled(x, number))
        with np.errstate(all="ignore"):
            expected = x * number
        assert first.dtype == expected.dtype
        np.testing.assert_array_equal(first, expected)
        again = scaled(x, number)
        assert again.dtype == first.dtype
        np.testing.assert_array_equal(again, first)
    assert python_calls(lambda: scaled(np.arange(32), number)) <= 1  # the object's own __call__


def test_numbers_of_one_value_and_several_types_never_meet() -> None:
    numbers = [2, 2.0, np.float16(2), np.float32(2), np.float64(2), np.int8(2), np.int64(2), np.uint64(2), np.bool_(1)]
    rng = random.Random(3)
    for dtype in (np.float32, np.int16):
        x = np.arange(8).astype(dtype)
        for _ in range(400):
            number = rng.choice(numbers)
            assert scaled(x, number).dtype == (x * number).dtype, number


@pytest.mark.parametrize("number", NUMBERS, ids=named)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_numbers_of_texts_convert_and_take_the_entry(number: object, dtype: str) -> None:
    kernel = fusec.ElementwiseKernel(f"T x, {dtype} a", f"{dtype} y", "y = a", f"native_{dtype}")
    try:
        first = warm(lambda: kernel(X, number))
    except fusec.FusecError:
        assert dtype == "int64"
        assert float(number) != int(number) or abs(number) > 2**62
        return
    with np.errstate(all="ignore"):
        assert (first == np.asarray(getattr(number, "item", lambda: number)()).astype(dtype)).all()
    again = kernel(X, number)
    assert again.tobytes() == first.tobytes()
    if dtype != "int64" or isinstance(number, (int, np.integer, np.bool_)):
        assert python_calls(lambda: kernel(X, number)) <= 1


@pytest.mark.parametrize("number", [2, 2.5, np.float32(0.1), np.float64(0.1), np.int8(3)], ids=named)
def test_numbers_of_other_doors_take_the_entry(number: object) -> None:
    x = X.astype(np.float64)
    text = fusec.ReductionKernel("T x, T w", "T y", "x * w", "a + b", "y = a", "0", "native_weighted")
    scan = fusec.ScanKernel("T x, T w", "T y", "x * w", "a + b", "y = a", "0", "native_running")
    function = fusec.reduction(map=lambda x, w: x * w, combine=lambda a, b: a + b, identity=0)
    for call in (lambda: text(x, number), lambda: scan(x, number), lambda: function(x, number)):
        first = warm(call)
        np.testing.assert_array_equal(call(), first)
        assert python_calls(call) <= 8  # what finds the entry of an axis
    expected = warm(lambda: fusec.evaluate("x * number", {"x": x, "number": number}))
    assert expected.dtype == (x * number).dtype
    assert python_calls(lambda: fusec.evaluate("x * number", {"x": x, "number": number})) <= 5


def test_dtypes_that_are_none_are_refused_each_time() -> None:
    kernel = fusec.ElementwiseKernel("T x, T a", "T y", "y = x * a", "native_refusing")
    warm(lambda: kernel(X, 2.0))
    warm(lambda: scaled(X, np.float32(2)))
    for bad in (np.longdouble(2), np.clongdouble(2), np.str_("2"), np.datetime64(2, "s"), np.void(b"12")):
        for run in (kernel, scaled, lambda x, b: fusec.evaluate("x * b", {"x": x, "b": b})):
            for _ in range(4):
                with pytest.raises(fusec.FusecError):
                    run(X, bad)


def test_subclasses_and_arrays_without_axes_mean_what_they_meant() -> None:
    own_float, own_int = type("F", (float,), {})(2.0), type("I", (int,), {})(2)
    own_scalar = type("S", (np.float64,), {})(2.0)
    for number, like in ((own_float, 2.0), (own_int, 2), (own_scalar, np.float64(2)), (np.array(2.0), np.array(2.0))):
        warm(lambda like=like: scaled(X, like))
        for _ in range(6):
            found = scaled(X, number)
            assert found.dtype == (X * like).dtype
            np.testing.assert_array_equal(found, X * like)


def test_declared_dtypes_take_numbers_of_all_sorts() -> None:
    for number in NUMBERS:
        with np.errstate(all="ignore"):
            expected = X * np.float32(number)
        for _ in range(5):
            np.testing.assert_array_equal(scaled_declared(X, number), expected)
        assert python_calls(lambda number=number: scaled_declared(X, number)) <= 1


def test_a_number_that_decides_on_the_grid_may_be_numpys() -> None:
    @fusec.kernel
    def first_ones(out, n):
        for i in fusec.grid(n):
            out[i] = 1.0

    for kind in (int, np.int64, np.int8, np.uint16):
        for count in (3, 5, 3, 5, 3):
            out = np.zeros(8)
            first_ones(out, kind(count))
            assert out.sum() == count
    out = np.zeros(8)
    assert python_calls(lambda: first_ones(out, np.int64(3))) <= 1


# --- outputs that are read -------------------------------------------------------------------------------------------


UPDATE = fusec.ElementwiseKernel("T g, T rate", "T p", "p -= rate * g", "native_update")
ADD = fusec.ElementwiseKernel("T a, T b", "T y", "y = a + b", "native_add")


def test_outputs_that_are_read_take_the_entry() -> None:
    for step in (1, 2, -1, -3):
        p, g = np.zeros(96)[::step], np.ones(96)[::step]
        warm(lambda p=p, g=g: UPDATE(g, 0.5, p))
        assert (p == -2.5).all()
        assert python_calls(lambda p=p, g=g: UPDATE(g, np.float64(0.5), p)) <= 1
        assert python_calls(lambda p=p, g=g: UPDATE(g, 0.5, out=p)) <= 1
        assert (p == -3.5).all()
        warm(lambda g=g: UPDATE(g, 0.5))
        assert (UPDATE(g, 0.5) == -0.5).all(), "a new output starts as zeros"


def test_an_output_that_is_an_input_takes_the_entry() -> None:
    scaled = fusec.elementwise("def scaled(x, a): return x * a")
    for step in (1, 2, -1):
        a, b = np.zeros(64)[::step], np.ones(64)[::step]
        for run in (
            lambda a=a, b=b: ADD(a, b, a),
            lambda a=a, b=b: ADD(a, b, out=a),
            lambda a=a, b=b: scaled(a, 1.0, out=a),
        ):
            warm(run)
            assert python_calls(run) <= 1
        assert (a == 12).all()


def test_outputs_that_stay_partly_unassigned_are_zero_or_what_they_were() -> None:
    kernel = fusec.ElementwiseKernel("T x", "T y", "if (x > 1) y = x", "native_partly")
    for x in (X, np.linspace(0, 3, 200_000, dtype=np.float32)):
        for _ in range(5):
            np.testing.assert_array_equal(kernel(x), np.where(x > 1, x, 0))
            np.testing.assert_array_equal(kernel(x, np.full_like(x, 9)), np.where(x > 1, x, 9))
        given = np.full_like(x, 9)
        assert python_calls(lambda x=x, given=given: kernel(x, given)) <= 1
    assert python_calls(lambda: kernel(X)) <= 4  # what clears the output


def test_raw_outputs_take_the_entry() -> None:
    kernel = fusec.ElementwiseKernel("int64 at, T x", "raw T y", "y[at] = x", "native_scatter")
    at, y = np.array([3, 1, 2]), np.zeros(5, np.float32)
    warm(lambda: kernel(at, X[:3], y))
    assert python_calls(lambda: kernel(at, X[:3], y)) <= 1
    np.testing.assert_array_equal(y[[3, 1, 2]], X[:3])
    for _ in range(4):
        with pytest.raises(fusec.FusecError):
            kernel(at, X[:3])


@pytest.mark.parametrize("seed", range(4))
def test_outputs_over_inputs_are_as_if_the_inputs_had_been_copied_first(seed: int) -> None:
    rng = random.Random(seed)
    shapes = [(12,), (3, 4)]
    for _ in range(150):
        block, shape = np.arange(160.0), rng.choice(shapes)

        def view(block: np.ndarray, place: tuple[int, int, bool], shape: tuple[int, ...] = shape) -> np.ndarray:
            start, step, flipped = place
            found = block[start : start + 12 * step : step].reshape(shape)
            return found[::-1] if flipped else found

        step = rng.choice((1, 2, 3))
        places = [(rng.choice((40, 40, 41, 42, 52, 100)), step, rng.random() < 0.2) for _ in range(3)]
        for run, formula in ((ADD, lambda a, b, y: a + b), (UPDATE_TWO, lambda a, b, y: y + a * b)):
            for turn in range(3):
                block[:] = np.arange(160.0)
                a, b, y = (view(block, place) for place in places)
                expected = block.copy()
                view(expected, places[2])[...] = formula(a.copy(), b.copy(), y.copy())
                assert run(a, b, y) is y
                np.testing.assert_array_equal(block, expected, err_msg=f"{places} {turn}")


UPDATE_TWO = fusec.ElementwiseKernel("T a, T b", "T y", "y += a * b", "native_update_two")


def test_reductions_and_scans_into_their_inputs_are_as_if_these_had_been_copied() -> None:
    text = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "native_sum")
    scan = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", "0", "native_scan")
    for size in (5, 9000):
        for _ in range(5):
            x = np.ones(size)
            scan(x, x)
            np.testing.assert_array_equal(x, np.arange(1, size + 1))
            x = np.ones((3, size))
            text(x, x[:, 0], axis=1)
            assert (x[:, 0] == size).all()
            x = np.linspace(0, 1, 3 * size).reshape(3, size)
            expected = fusec.softmax(x.copy(), axis=1)
            np.testing.assert_array_equal(fusec.softmax(x, axis=1), expected)


def test_outputs_that_must_not_be_written_are_refused_each_time() -> None:
    p, g = np.zeros(32), np.ones(32)
    warm(lambda: UPDATE(g, 0.5, p))
    p.flags.writeable = False
    before = p.copy()
    warns = np.broadcast_arrays(np.zeros(32), np.zeros((1, 32)))[0]
    for _ in range(4):
        with pytest.raises(fusec.FusecError):
            UPDATE(g, 0.5, p)
        with pytest.raises(fusec.FusecError):
            UPDATE(g, 0.5, np.broadcast_to(np.zeros(1), (32,)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            UPDATE(np.ones((1, 32)), 0.5, warns)
    np.testing.assert_array_equal(p, before)


def test_misaligned_arrays_have_the_same_results() -> None:
    block = np.zeros(8 * 33 + 1, np.uint8)
    p = block[1 : 1 + 8 * 32].view(np.float64)
    assert not p.flags.aligned
    for turn in range(1, 6):
        UPDATE(np.ones(32), np.float32(-1), p)
        assert (p == turn).all()


# --- threads, references ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [64, 300_000])  # with the interpreter's lock held, and without
def test_threads_call_one_kernel_at_the_same_time(size: int) -> None:
    kernel = fusec.ElementwiseKernel("T g, T rate", "T p", "p += rate * g", f"native_threads_{size}")
    turns, wrong = 60, list[object]()

    def work(number: int) -> None:
        p, g = np.zeros(size), np.full(size, 1.0 + number)
        rates = [1, 1.0, np.float64(1), np.float32(1), np.int16(1)]
        for turn in range(turns):
            kernel(g, rates[turn % 5], p)
            if scaled(g, np.float64(2))[0] != 2.0 + 2 * number:
                wrong.append(number)
        if not (p == turns * (1.0 + number)).all():
            wrong.append((number, p[0]))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def calls_leave_nothing(turns: int) -> None:
    kernel = fusec.ElementwiseKernel("T x, T a", "T y", "y += x * a", "native_leaks")
    x, y = np.ones(8), np.zeros(8)
    numbers = [np.float64(0.5), np.float32(0.5), np.float16(0.5), np.int8(1), np.uint64(1 << 63), np.bool_(1), 0.1, 1j]
    for number in numbers:
        warm(lambda number=number: scaled(x, number))
    warm(lambda: kernel(x, numbers[0], y))
    warm(lambda: kernel(x, numbers[0]))
    held = [x, y, kernel, scaled, *numbers[:-2], np.float64, np.float16]
    gc.collect()
    before, used = [sys.getrefcount(each) for each in held], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(turns):
        for number in numbers:
            scaled(x, number)
        kernel(x, numbers[0], y)
        kernel(x, numbers[1], out=y)
        kernel(x, numbers[2])
    del number
    assert [sys.getrefcount(each) for each in held] == pytest.approx(before, abs=3)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 20_000  # kilobytes


def test_calls_leave_no_references() -> None:
    calls_leave_nothing(2000)


@pytest.mark.slow
def test_a_million_calls_leave_no_references() -> None:
    calls_leave_nothing(100_000)


def test_explain_says_why_calls_have_no_entry() -> None:
    kernel = fusec.ElementwiseKernel("T x", "T y", "y = x", "native_explained")
    assert "no native entry" not in str(kernel.explain(X))
    assert "no native entry  no elements" in str(kernel.explain(X[:0]))


@fusec.stencil(boundary="nearest")
def spread(p):
    return p[-1] + p[1]


@fusec.stencil(boundary="nearest")
def spread_plus(p, q):
    return p[-1] + p[1] + q


@pytest.mark.parametrize("size", [1, 5, 7])
@pytest.mark.parametrize("kernel", [spread, spread_plus])
def test_repeated_calls_of_a_stencil_look_at_the_shapes_of_arrays(kernel: Callable[..., object], size: int) -> None:
    x = np.arange(6.0)
    inputs = (x,) if kernel is spread else (x, np.ones(6))
    warm(lambda: kernel(*inputs, out=np.zeros(6)))
    with pytest.raises(fusec.FusecValueError):
        kernel(x, *(np.ones(size) for _ in inputs[1:]), out=np.zeros(size))


def test_a_repeated_call_of_a_stencil_with_out_makes_no_call_of_python() -> None:
    x, out = np.arange(6.0), np.zeros(6)
    warm(lambda: spread(x, out=out))
    assert python_calls(lambda: spread(x, out=out)) <= 1
