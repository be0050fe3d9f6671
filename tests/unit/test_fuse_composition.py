"""Kernels and functions of fusec within fused functions: parts of kernels where expressions say them, else steps."""

import math

import numpy as np
import pytest

import fusec
from fusec.fusion.functions import known
from tests.unit.test_fuse_totals import integers, kernels


@fusec.elementwise
def logistic(x):
    power = math.exp(-abs(x))
    return 1 / (1 + power) if x >= 0 else power / (1 + power)


@fusec.elementwise
def shifted(x, by=2):
    if x > by:
        return logistic(x) * by
    y = x * 2
    y += by
    return y


@fusec.elementwise
def both(x, y):
    return x + y, x - y


@fusec.elementwise
def repeated(x):
    total = x
    for k in range(3):
        total += x * k
    return total


@fusec.stencil
def around(x):
    return x[-1, 0] + x[1, 0] + x[0, -1] * 2


@fusec.kernel
def bump(x, out):
    for i in fusec.grid(out.shape[0]):
        out[i] += x[i]


@fusec.reduction
class least:
    identity = np.inf

    def map(x):
        return x

    def combine(a, b):
        return min(a, b)


SQUARED = fusec.vectorize(lambda t: t * t)
TRIPLE = fusec.ElementwiseKernel("T x, T y", "T z", "T t = x * y; z = t > 3 ? t : 3 * t", "triple")
WEIGHTED = fusec.ElementwiseKernel("raw T x, T y", "T z", "z = x[_ind.size() - 1 - i] + y", "weighted")
CHECKED = fusec.ElementwiseKernel("raw T x, int64 at", "T z", "z = x[at]", "checked", bounds="check")
SQUARES = fusec.ReductionKernel("T x", "T z", "x * x", "a + b", "z = a", "0", "squares")
RUNNING = fusec.ScanKernel("T x", "T z", "x", "a + b", "z = a", name="running")
X = np.random.default_rng(0).integers(-8, 8, (6, 7)) / 4.0

FUSED = {
    "function": lambda x: logistic(x * 2) + 1,
    "default": lambda x: shifted(x) + shifted(x, 1) + shifted(by=3, x=x),
    "several": lambda x: both(x, x[0])[1] * 2,
    "mixed": lambda x: both(x, x.astype("f4"))[0],
    "kernel": lambda x: TRIPLE(x, x + 1) - x,
    "number": lambda x: TRIPLE(x, 2.0),
    "vectorize": lambda x: SQUARED(x) + 1,
    "evaluate": lambda x: fusec.evaluate("where(x > 1, x, 2) * y", {"x": x, "y": x[:, :1]}) + x,
    "half": lambda x: logistic(x.astype("f2")) * np.float16(3),
    "sum": lambda x: fusec.sum(x * 2, axis=1),
    "mean": lambda x: x - fusec.mean(x, axis=1, keepdims=True),
    "var": lambda x: fusec.var(x, axis=0, correction=1),
    "argmax": lambda x: fusec.argmax(x, axis=1),
    "softmax": lambda x: fusec.softmax(x + 1, axis=1) * 2,
    "log_softmax": lambda x: fusec.log_softmax(x, axis=0),
    "layer_norm": lambda x: fusec.layer_norm(x, axis=1, weight=x[0], bias=x[1] * 2),
}
STEPS = {
    "loop": lambda x: repeated(x + 1) * 2,
    "raw": lambda x: WEIGHTED(x * 2, x) + 1,
    "reduction": lambda x: SQUARES(x * 2, axis=1) + 1,
    "scan": lambda x: RUNNING(x * 2, axis=1) + 1,
    "stencil": lambda x: around(x * 2) + 1,
    "class": lambda x: least(x * 2, axis=0) + 1,
    "logsumexp": lambda x: fusec.logsumexp(x * 2, axis=1) + 1,
    "minmax": lambda x: fusec.minmax(x * 2, axis=1)[1] + 1,
    "cumsum": lambda x: fusec.cumsum(x * 2, axis=1) + 1,
}


def assert_same(found, expected):
    assert (type(found), found.dtype, found.shape) == (type(expected), expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-12 if expected.dtype.itemsize > 4 else 1e-3, atol=1e-12)


@pytest.mark.parametrize("name", FUSED)
@pytest.mark.sampled(5)
def test_what_expressions_say_is_part_of_the_kernel(name):
    fast = fusec.fuse(FUSED[name])
    for x in (X, X[:, ::-1].T.copy().T, X[:, 1:3]):
        assert_same(fast(x), FUSED[name](x))
    assert kernels(fast, X) == 1


@pytest.mark.parametrize("name", STEPS)
def test_other_kernels_run_between(name):
    fast = fusec.fuse(STEPS[name])
    for x in (X, X[:, ::-1], X[:, 1:4]):
        for _ in range(2):
            assert_same(fast(x), STEPS[name](x))
    assert kernels(fast, X) == 3
    assert "library call" not in dict(fast.explain(X).lines)
    assert_same(fusec.simulate(fast)(X), STEPS[name](X))


def test_numbers_of_calls_are_numbers_of_kernels():
    fast = fusec.fuse(lambda x, n, axis: (TRIPLE(x, n), shifted(x, n), fusec.cumsum(x * n, axis)))
    for n, axis in ((2.0, 0), (3.0, 0), (-1.5, 1), (2, 1)):
        for ours, theirs in zip(fast(X, n, axis), (TRIPLE(X, n), shifted(X, n), np.cumsum(X * n, axis)), strict=True):
            assert_same(ours, theirs)


def test_outputs_of_kernels_are_written():
    def write(x, out, row, total):
        TRIPLE(x, x, out)
        out *= 2
        logistic(x[0], out=row)
        SQUARES(out, total, axis=1)
        bump(total, total)
        fusec.cumsum(x[1], out=x[0])
        return total + 1

    given, mine = ([X.copy(), np.zeros((6, 7)), np.zeros(7), np.zeros(6)] for _ in range(2))
    fast = fusec.fuse(write)
    for _ in range(2):
        assert_same(fast(*mine), write(*given))
        for ours, theirs in zip(mine, given, strict=True):
            assert_same(ours, theirs)


def test_kernels_with_fast_paths_are_noted_all_the_same():
    def work(x, out, row):
        fusec.evaluate("x * 2", {"x": x}, out=out)
        total = fusec.evaluate("sum(x, axis=1)", {"x": x})
        SQUARES(x, row, axis=1)
        return SQUARED(x) + logistic(x) + TRIPLE(x, x), total, fusec.NumExpr("x + 1")(x)

    for _ in range(3):  # they get native entries meanwhile
        expected = work(X, out := np.zeros(X.shape), row := np.zeros(6))
    for function in (work, lambda *xs: work(*xs)):
        ours, mine = np.zeros(X.shape), np.zeros(6)
        for found, wanted in zip(fusec.fuse(function)(X, ours, mine), expected, strict=True):
            assert_same(found, wanted)
        assert_same(ours, out)
        assert_same(mine, row)


def test_given_outputs_are_what_calls_return():
    for function in (lambda x: TRIPLE(x, x, x), lambda x: fusec.evaluate("x * 2", out=x), lambda x: logistic(x, out=x)):
        x = X.copy()
        assert fusec.fuse(function)(x) is x
        assert_same(x, function(X.copy()))


def test_functions_of_numbers_alone():
    def work(x):
        return logistic(x.sum()) + logistic(2.0), TRIPLE(x, x.max()), fusec.sum([x.sum(), x.max(), 3.0])

    for found, wanted in zip(fusec.fuse(work)(X), work(X), strict=True):
        assert_same(found, wanted)


def test_what_was_written_before_a_kernel_raises_stays():
    def pick(x, at, out):
        out *= 2
        found = CHECKED(x, at)
        out += 1
        return found

    fast = fusec.fuse(pick)
    x, out = np.arange(5.0), np.ones(3)
    for at, left in ((2, 3.0), (7, 6.0), (1, 13.0)):
        if at < 5:
            assert fast(x, np.array([at]), out).tolist() == [at]
        else:
            with pytest.raises(IndexError, match="outside its 5 elements"):
                fast(x, np.array([at]), out)
        assert out.tolist() == [left] * 3


def test_kernels_that_change_are_looked_up_again(monkeypatch):
    fast = fusec.fuse(lambda x: TRIPLE(x, x) + shifted(x))
    assert_same(fast(X), TRIPLE(X, X) + shifted(X))
    other = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - y", "other")
    monkeypatch.setitem(globals(), "TRIPLE", other)
    monkeypatch.setitem(globals(), "shifted", fusec.elementwise(lambda x: x + 100))
    assert_same(fast(X), X + 100)


def test_functions_of_fusec_can_be_fused_themselves():
    for function in (fusec.sum, fusec.softmax, fusec.median, logistic, TRIPLE, SQUARES, fusec.NumExpr("x * 2 + 1")):
        args = (X, X) if function is TRIPLE else (X,)
        assert_same(fusec.fuse(function)(*args), function(*args))


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (2, 9000), ()])
def test_shapes_of_every_kind(shape):
    def function(x):
        return logistic(x) * 2, fusec.cumsum(x * 2), fusec.sum(x), TRIPLE(x, 2.0)

    x = integers(*shape).astype("f8")
    for ours, theirs in zip(fusec.fuse(function)(x), function(x), strict=True):
        assert np.shape(ours) == np.shape(theirs)
        np.testing.assert_allclose(ours, theirs)
    if x.ndim > 1 and x.size:
        assert_same(fusec.fuse(lambda x: fusec.softmax(x, axis=1))(x), fusec.softmax(x, axis=1))


def test_errors_are_those_of_the_kernel():
    for function in (
        lambda x: TRIPLE(x, x[:2]),
        lambda x: TRIPLE(x, x.astype("i4")),
        lambda x: logistic(x, x, x),
        lambda x: fusec.softmax(x, axis=5),
        lambda x: fusec.cumsum(x, axis=(0, 1)),
        lambda x: SQUARES(x, axis=3),
        lambda x: logistic(x, out=x[0]),
        lambda x: SQUARES(x, x[0, :4], axis=1),
    ):
        with pytest.raises(fusec.FusecError) as theirs:
            function(X)
        with pytest.raises(fusec.FusecError) as ours:
            fusec.fuse(function)(X)
        assert ours.value.code == theirs.value.code


@pytest.mark.parametrize("name", ["layer_norm", "softmax", "mean", "var", "argmax", "kernel", "evaluate", "cumsum"])
def test_calls_of_other_extents_are_not_those_of_the_first(name):
    function = (FUSED | STEPS)[name]
    fast = fusec.fuse(function)
    for shape in ((4, 6), (4, 8), (5, 6), (6, 6), (6, 4), (4, 6)):
        x = integers(*shape) / 4.0
        assert_same(fast(x), function(x))


def test_fused_functions_that_are_refused_run_once():
    runs = []

    @fusec.fuse
    def inner(x):
        runs.append(1)
        return x if x.sum() > 3 else -x

    with pytest.raises(fusec.FusecTypeError, match="F280"):
        fusec.fuse(lambda x: inner(x) + 1)(X)
    assert len(runs) <= 1


def test_arrays_of_numpy_are_not_written():
    with pytest.raises(fusec.FusecTypeError, match="outside of the trace"):
        fusec.fuse(lambda x: TRIPLE(x, x, np.arange(42.0).reshape(6, 7)))(X)
    made = np.zeros(X.shape)
    fusec.fuse(lambda x: TRIPLE(x, x, made))(X)
    assert_same(made, TRIPLE(X, X))


@pytest.mark.parametrize("dtype", ["?", "u1", "f2", "F"])
def test_cumulative_functions_are_numpys(dtype):
    functions = (
        lambda x: (np.cumsum(x, 0), x.cumprod(-1)),
        lambda x: (np.cumsum(x * 1), np.nancumsum(x, 0), np.nancumprod(x)),
        lambda x: (np.cumulative_sum(x, axis=1), np.cumulative_prod(x, axis=1, include_initial=True)),
        lambda x: (np.add.accumulate(x), np.maximum.accumulate(x, 1), np.minimum.accumulate(x, axis=-1)),
        lambda x: (np.cumsum(x, 1, dtype="c16"), np.logical_or.accumulate(x, 1)),
    )
    x = integers(3, 5).astype(dtype) // 3 if dtype not in "?F" else integers(3, 5).astype(dtype)
    for function in functions if dtype == "u1" else functions[:1]:
        for ours, theirs in zip(fusec.fuse(function)(x), function(x), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours.astype("c16"), theirs.astype("c16"), rtol=1e-2 if dtype == "f2" else 1e-6)


def test_scans_write_where_out_says_and_take_numbers_without_axes():
    def step(x, out):
        np.cumsum(x, 1, out=x)
        np.multiply.accumulate(x, 0, None, out)
        return x.sum().cumsum(), np.cumsum(x[0, 0], 0)

    given, mine = ([X.copy(), X.copy()] for _ in range(2))
    fast = fusec.fuse(step)
    for _ in range(2):
        for ours, theirs in zip(fast(*mine), step(*given), strict=True):
            assert_same(ours, theirs)
        for ours, theirs in zip(mine, given, strict=True):
            assert_same(ours, theirs)
    with pytest.raises(ValueError, match="axis"):
        fusec.fuse(lambda x: np.cumulative_sum(x))(X)


def test_calls_of_kernels_take_operands_and_constants_in_every_order():
    def function(x, n):
        far = np.argmax(x), np.argmin(x + n)
        return *far, fusec.cumsum(x, 0), fusec.cumsum(n * x, axis=0), far[0] + n

    def plain(x, n):
        far = np.argmax(x), np.argmin(x + n)
        return *far, np.cumsum(x, 0), np.cumsum(x * n, 0), far[0] + n

    fused, rng = fusec.fuse(function), np.random.default_rng(3)
    for n in (2.0, 3.0, np.float64(0.5), 4.0):
        x = rng.normal(size=5000)
        for _ in range(2):
            for one, other in zip(fused(x, n), plain(x, n), strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-9)
                assert (type(one), np.asarray(one).dtype) == (type(other), np.asarray(other).dtype)


def test_a_long_chain_of_kernels_is_not_followed_at_each_call(monkeypatch):
    visits, contents = [], known._contents
    monkeypatch.setattr(known, "_contents", lambda *given: visits.append(given) or contents(*given))
    total = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total_of_chain")

    @fusec.fuse
    def normed(x):
        for _ in range(400):
            x = x / total(x)
        return x

    np.testing.assert_allclose(normed(np.ones(10)), 0.1)
    assert len(visits) <= 3 * 400
