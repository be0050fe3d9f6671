"""Reductions made of Python functions: what they take, what they give, and in which types and order."""

import functools
import inspect
import linecache
import math
import operator
import pickle
import re
import types

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.ir.reductions import ROUNDS

HALF = 0.5


def square(x):
    return x * x


@fusec.reduction(identity=0)
def total(a, b):
    """The sum."""
    return a + b


@fusec.reduction
class moments:
    """Mean and variance in one pass."""

    identity = (0, 0.0, 0.0)

    def map(x):
        return 1, x, 0.0

    def combine(a, b):
        (n, mean, squares), (m, other, rest) = a, b
        if n + m == 0:
            return a
        step = other - mean
        return n + m, mean + step * m / (n + m), squares + rest + step * step * n * m / (n + m)

    def finish(held):
        n, mean, squares = held
        return mean, squares / n


@fusec.reduction(map=lambda x, index: (x, index), finish=lambda held: held[1], identity=(-np.inf, -1))
def place(a, b):
    if b[0] > a[0] or (b[0] == a[0] and b[1] < a[1]):
        return b
    return a


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype("f4")


def test_a_function_that_combines_is_a_reduction():
    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for axis, keepdims in ((None, True), (-1, False), ((0, 2), True), ((), False)):
        wanted = x.sum(axis=axis, keepdims=keepdims)
        found = total(x, axis=axis, keepdims=keepdims)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        assert np.array_equal(found, wanted)
    assert (total(np.array(3.5)), total(3.5), total(np.float32(2)).dtype) == (3.5, 3.5, np.float32)
    assert (total.__name__, total.__doc__, repr(total)) == ("total", "The sum.", "<fusec.reduction total(x)>")
    assert moments.__doc__ == "Mean and variance in one pass."


def test_totals_may_have_several_parts_and_results():
    x = numbers(40, 300)
    mean, variance = moments(x)
    np.testing.assert_allclose(mean, x.mean(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, x.var(), rtol=1e-5)
    mean, variance = moments(x, axis=0, where=x > 0)
    np.testing.assert_allclose(variance, np.var(x, axis=0, where=x > 0), rtol=1e-4)
    mean, variance = out = np.zeros(40, "f4"), np.zeros(40)
    assert moments(x, axis=1, out=out)[1] is variance
    np.testing.assert_allclose(variance, x.var(1), rtol=1e-5)
    assert np.isnan(moments(x[:0], axis=0)[1]).all()


def test_a_map_may_ask_for_the_position():
    x = np.round(numbers(6, 70, 40))
    for axis in (None, 1):
        assert np.array_equal(place(x, axis=axis), x.argmax(axis))
    trace = fusec.reduction(
        map=lambda x, indices: x if indices[0] == indices[1] else 0,
        combine=operator.add,
    )
    assert trace(np.arange(9.0).reshape(3, 3)) == 12
    tagged = fusec.reduction(np.maximum, finish=lambda held, indices: held + 100 * indices[0])
    assert np.array_equal(tagged(x, axis=2), x.max(2) + 100 * np.arange(6, dtype="f4")[:, None])


def test_finish_sees_the_count_and_numbers():
    norm = fusec.reduction(
        map=lambda x, p=2: abs(x) ** p,
        combine=lambda a, b: a + b,
        finish=lambda held, p, count: (held ** (1 / p), count),
    )
    x = numbers(5, 7)
    for args, named, p in (((), {}, 2), ((), {"p": np.float32(4)}, 4)):
        found, count = norm(x, *args, **named, axis=0)
        np.testing.assert_allclose(found, (abs(x.astype("f8")) ** p).sum(0) ** (1 / p), rtol=1e-5)
        assert (found.dtype, count.tolist()) == (np.float32, [5] * 7)


def test_functions_may_be_known_ones_decorated_ones_and_texts():
    x = numbers(3, 50)
    add = fusec.elementwise("def add(a, b): return a + b")
    for combine in (
        operator.add,
        add,
        "lambda a, b: a + b",
        "def one(v): return v\ndef f(a, b): return one(a) + one(b)",
    ):
        found = fusec.reduction(map=square, combine=combine, finish=math.sqrt)(x, axis=1)
        np.testing.assert_allclose(found, np.linalg.norm(x, axis=1), rtol=1e-5)
    text = fusec.reduction("def map(x): return x * SCALE\ndef combine(a, b): return a + b", names={"SCALE": 2})
    np.testing.assert_allclose(text(x), 2 * x.sum(), rtol=1e-4)
    assert fusec.reduction(max)(x) == x.max()


def test_lambdas_of_one_line_are_told_apart():
    low, high = (fusec.reduction(combine=each) for each in (lambda a, b: min(a, b), lambda a, b: max(a, b)))
    x = numbers(20)
    assert (low(x), high(x)) == (x.min(), x.max())
    positive = fusec.reduction(map=lambda x: 1 if x > 0 else 0, combine=lambda a, b: a + b, identity=0)
    count = fusec.reduction(map=lambda x: 1, combine=lambda a, b: a + b, finish=lambda n: n * 2, identity=0)
    assert (positive(x), count(x)) == ((x > 0).sum(), 40)


def test_a_choice_may_be_one_of_two_totals():
    place = fusec.reduction(
        map=lambda x, index: (x, index),
        combine=lambda a, b: a if a[0] > b[0] or (a[0] == b[0] and a[1] < b[1]) else b,
        finish=lambda held: held[1],
    )
    x = np.round(numbers(3, 200))
    assert np.array_equal(place(x, axis=1), x.argmax(1))


def test_names_are_constants_from_the_definition_on(monkeypatch):
    config = types.SimpleNamespace(scale=3)
    scaled = fusec.reduction(map=lambda x: x * HALF * config.scale, combine=lambda a, b: a + b)
    monkeypatch.setitem(globals(), "HALF", 100.0)
    config.scale = 100
    assert scaled(np.ones(4)) == 6
    again = fusec.reduction(map=lambda x: x * HALF, combine=lambda a, b: a + b)
    assert again(np.ones(4)) == 400


@pytest.mark.parametrize(
    ("given", "identity", "held"),
    [
        ("float32", None, "float32"), ("float32", 0.0, "float32"), ("int32", 0, "int32"), ("int32", 0.0, "float64"),
        ("bool", None, "bool"), ("bool", 0, "int64"), ("uint8", np.int64(0), "int64"), ("float16", 0, "float16"),
        ("float32", np.float64(0), "float64"), ("float64", np.float32(0), "float32"), ("complex64", 0, "complex64"),
    ],
)  # fmt: skip
@pytest.mark.sampled(3)
def test_the_types_of_totals(given, identity, held):
    x = (np.arange(3000) % 7).astype(given)
    found = fusec.reduction(lambda a, b: a + b, identity=identity)(x)
    assert found.dtype == held
    if held not in ("bool", "float16"):
        assert found == x.astype(held).sum()


def test_totals_are_widened_until_they_hold_what_is_combined():
    mean = fusec.reduction(map=lambda x: (1, x), combine=lambda a, b: (a[0] + b[0], (a[1] + b[1]) * 0.5))
    count, halved = mean(np.ones(1, "int16"))
    assert (count.dtype, halved.dtype) == (np.int64, np.float64)
    annotated = fusec.reduction("def f(a: np.float64, b: np.float64) -> np.float64: return a + b")
    assert annotated(np.ones(3, "f4")).dtype == np.float64
    rounded = fusec.reduction("lambda a, b: a + b", finish="def f(a) -> np.int32: return a * 2")
    assert (rounded(np.ones(3, "f4")), rounded(np.ones(3, "f4")).dtype) == (6, np.int32)


def test_returns_inside_loops_are_results_too():
    def steps(x):
        n = 0
        while True:
            if x <= 1:
                return n
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            n += 1

    def first(a, b):
        for k in range(3):
            if k > a or k > b:
                return max(a, b)
        return max(a, b)

    longest = fusec.reduction(map=steps, combine=first, finish=lambda a: a)
    assert longest(np.arange(1, 100)) == 118


def reference(combine, values):
    """The documented order: lanes take turns in chunks, then meet by halves; chunks are elements of a new array."""
    lanes = 128
    while len(values) > 1:
        after = []
        for start in range(0, len(values), ROUNDS * lanes):
            chunk = values[start : start + ROUNDS * lanes]
            held = chunk[:lanes].copy()
            for at in range(lanes, len(chunk), lanes):
                part = chunk[at : at + lanes]
                held[: len(part)] = combine(held[: len(part)], part)
            half = lanes // 2
            while half:
                there = held[half : 2 * half]
                held[: len(there)] = combine(held[: len(there)], there)
                held, half = held[: min(half, len(held))], half // 2
            after.append(held[0])
        values = np.array(after, values.dtype)
    return values[0]


def test_the_order_is_the_one_of_the_page_for_what_does_not_commute_too():
    def fading(a, b):
        return a * np.float32(0.75) + b * np.float32(1.25) - a * b * np.float32(0.01)

    kernel = fusec.reduction(fading)
    for n in (1, 2, 3, 64, 127, 128, 129, 200, 8191, 8192, 8193, 20000):
        x = numbers(n)
        assert kernel(x).tobytes() == reference(fading, x).tobytes(), n


def test_repeated_calls_do_not_come_to_python():
    scaled = fusec.reduction(map=lambda x, k=2: x * k, combine=lambda a, b: a + b, identity=0)
    x, calls = numbers(4, 50), []
    python = scaled.run
    scaled.run = lambda *args: (calls.append(args), python(*args))[1]
    scaled._from_keywords = lambda args, **named: (
        calls.append(args),
        type(scaled)._from_keywords(scaled, args, **named),
    )[1]
    for _ in range(4):
        found = [scaled(x, axis=1), scaled(x, 3.0, axis=1), scaled(x > 0, 3, axis=1)]
    before = len(calls)
    for _ in range(4):
        again = [scaled(x, axis=1), scaled(x, 3.0, axis=1), scaled(x > 0, 3, axis=1)]
    assert len(calls) == before
    assert [each.tobytes() for each in again] == [each.tobytes() for each in found]
    assert [each.dtype.name for each in again] == ["float32", "float32", "int64"]
    assert scaled(x > 0, 3.5, axis=1).dtype == np.float64


def test_reductions_pickle_by_their_source():
    x = numbers(30)
    for kernel in (total, moments, place, fusec.reduction(map=square, combine="lambda a, b: a + b")):
        again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(kernel))))
        np.testing.assert_array_equal(again(x), kernel(x))
        assert (again.__name__, again.__doc__, repr(again)) == (kernel.__name__, kernel.__doc__, repr(kernel))
        assert again.captured()[0] == kernel.captured()[0]


def test_a_notebook_has_sources():
    name = "<ipython-input-8-test>"
    text = "import fusec\n\ndouble = 2\nf = fusec.reduction(\n    map=lambda x: x * doubel,\n    combine=max)\n"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {}
    exec(compile(text, name, "exec"), names)
    with pytest.raises(FusecError, match=r"ipython-input-8-test>, line 5, column 23(.|\n)*did you mean 'double'"):
        names["f"](np.ones(3))
    del linecache.cache[name]


def test_every_target_has_a_text_and_calls_are_explained():
    for target, mark in (("cuda", "__global__"), ("metal", "kernel void"), ("llvm", "define void"), ("ir", "kernel")):
        assert mark in place.source(target, {"x": "float32"}, shape=(3000, 200), axis=0)
    assert "moments_first" in moments.source("cuda", {"x": "float32"}, shape=(100_000,))
    assert "elements for each total" in str(moments.explain(numbers(3, 4), axis=1))
    with pytest.raises(FusecError, match="is missing the argument 'x'"):
        fusec.reduction(max).source()


def test_results_may_be_stored_over_what_is_read():
    x = numbers(5, 5)
    wanted = total(x, axis=0)
    assert total(x, axis=0, out=x[0]) is not None
    assert np.array_equal(x[0], wanted)


def test_one_result_in_a_tuple_stays_in_one():
    single = fusec.reduction(lambda a, b: a + b, finish=lambda a: (a,))
    for _ in range(4):
        (found,) = single(np.ones(5), axis=0)
        assert found == 5


def test_what_python_computes_is_what_is_computed():
    x, y = np.random.default_rng(5).integers(-99, 99, (2, 500)).astype("i4")
    kernel = fusec.reduction(map=lambda x, y: (x * y, x ^ y), combine=lambda a, b: (a[0] + b[0], a[1] & b[1]))
    with np.errstate(over="ignore"):
        wanted = functools.reduce(
            lambda a, b: (a[0] + b[0], a[1] & b[1]), [(p * q, p ^ q) for p, q in zip(x, y, strict=True)]
        )
    assert tuple(map(int, kernel(x, y))) == tuple(map(int, wanted))


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 3, 9000), 2), ((9000, 4, 3), 0), ((90, 2, 80, 3), (0, 2)), ((3, 70), ())]
)
def test_places_of_totals_are_those_in_the_result_however_many_kernels_there_are(shape, axis):
    text = fusec.ReductionKernel("T x", "int64 y", "x", "a + b", "y = _out_ind.get()[0] * 10 + _out_ind.get()[1]", "0")
    function = fusec.reduction(max, finish=lambda held, indices: indices[0] * 10 + indices[1])
    x = np.ones(shape, "f4")
    for kernel in (text, function):
        found = kernel(x, axis=axis)
        assert np.array_equal(found, 10 * np.indices(found.shape)[0] + np.indices(found.shape)[1])


def test_repeated_calls_look_at_the_type_and_shape_of_a_given_output():
    total = fusec.reduction("def total(a, b):\n    return a + b\n")
    x = np.arange(1000, dtype="f4").reshape(10, 100)
    for _ in range(3):
        for dtype in ("f4", "f8"):
            out = np.zeros(10, dtype)
            assert total(x, axis=1, out=out) is out
            assert out.tolist() == x.sum(1).tolist()
    with pytest.raises(TypeError, match="int32"):
        total(x, axis=1, out=np.zeros(10, "i4"))
    with pytest.raises(ValueError, match="shape"):
        total(x, axis=1, out=np.zeros(9, "f4"))
    with pytest.raises(ValueError, match="each output: 1, not 2"):
        total(x, axis=1, out=(out, out))
    expected = x.sum(1)
    assert total(x, axis=1, out=x[:, 0]).tolist() == expected.tolist()


def picked(x, at):
    parts = fusec.local(3, np.float64)
    parts[0] = x
    parts[1] = -x
    parts[2] = 2 * x
    return parts[at]


@pytest.mark.parametrize("shape", [(70,), (5, 70), (70, 5)])
def test_the_value_of_an_element_may_come_from_a_local_array(shape):
    """The array is indexed at run time nowhere but in the value itself."""
    total = fusec.reduction(map=picked, combine=lambda a, b: a + b, identity=0)
    at = np.arange(np.prod(shape)).reshape(shape) % 3
    x = np.arange(at.size, dtype="f8").reshape(shape)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(total(x, at, axis=axis), np.choose(at, [x, -x, 2 * x]).sum(axis))
    lines = total.source("cuda", {"x": "float64", "at": "int64"}).splitlines()
    assert any(re.search(r"= local_\d\[at_\d\]", line) for line in lines), "it lies in memory"


def test_signatures_show_the_parameters_of_the_map_and_the_options():
    made = fusec.reduction("def map(x, k=2.5): return x * k\ndef combine(a, b): return a + b")
    assert str(inspect.signature(made)) == "(x, k=2.5, *, axis=None, keepdims=False, out=None, where=True, stream=None)"
    assert str(inspect.signature(fusec.elementwise("lambda x, y=-1: x + y"))) == "(x, y=-1)"


def test_known_functions_have_their_names_in_docstrings():
    norm = fusec.reduction(np.add, map=np.square, finish=np.sqrt)
    shown = norm.described()[1].splitlines()
    assert sorted(shown) == ["lambda a, b: add(a, b)", "lambda a: sqrt(a)", "lambda a: square(a)"]
    assert norm(np.array([3.0, 4.0])) == 5
