"""Totals under fuse meet arrays of their shape in one kernel, for every layout and size, and in place."""

import warnings
from functools import partial

import ml_dtypes
import numpy as np
import pytest

import fusec
from fusec.dispatch.interpret import interpreted
from fusec.dispatch.spec import CallOptions
from tests.support.parse_ir import parse_graph


def kernels(function, *args):
    return int(dict(function.explain(*args).lines)["kernels"])


def integers(*shape, seed=0, dtype="i8"):
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


NEIGHBOURS = {
    "contiguous": lambda shape: integers(*shape),
    "strided": lambda shape: integers(*(2 * each for each in shape))[tuple(slice(None, None, 2) for _ in shape)],
    "reversed": lambda shape: integers(*shape)[tuple(slice(None, None, -1) for _ in shape)],
    "transposed": lambda shape: integers(*shape[::-1]).T,
    "repeated": lambda shape: np.broadcast_to(integers(*shape[-1:], dtype="i2"), shape),
    "number": lambda _: np.array(7),
}


@pytest.mark.parametrize("layout", NEIGHBOURS)
@pytest.mark.parametrize("axis", [0, 1, 2, (0, 2), None])
@pytest.mark.sampled(5)
def test_totals_meet_arrays_of_their_shape_in_one_kernel(layout, axis):
    def met(x, beside):
        return beside + (3 * x).sum(axis) * beside

    fast = fusec.fuse(met)
    for x in (integers(4, 5, 6), integers(6, 5, 4).T, integers(4, 5, 12)[:, ::-1, ::2]):
        beside = NEIGHBOURS[layout](x.sum(axis).shape)
        for _ in range(3):
            found, expected = fast(x, beside), met(x, beside)
            np.testing.assert_array_equal(found, expected)
            assert type(found) is type(expected)
    assert kernels(fast, x, beside) == 1


def test_neighbours_keep_reduced_axes():
    fast = fusec.fuse(lambda x, beside: beside - x.max(1, keepdims=True))
    x = integers(5, 40)
    for beside in (x[:, :1], x[:1, :1], x[:1, 0], integers(3, 5, 1)):
        np.testing.assert_array_equal(fast(x, beside), beside - x.max(1, keepdims=True))
    assert kernels(fast, x, x[:, :1]) == 1


@pytest.mark.parametrize("shape", [(3, 9000), (20000,), (130, 3)])
def test_totals_of_many_chunks_meet_arrays_after_the_last(shape):
    fast = fusec.fuse(lambda x, beside: x.sum(0) + beside)
    x = integers(*shape)
    beside = integers(*shape[1:])
    np.testing.assert_array_equal(fast(x, beside), x.sum(0) + beside)
    assert kernels(fast, x, beside) == 1


def test_totals_are_added_in_place():
    def step(x, mean):
        mean += x.sum(1)
        mean[::2] -= x[::2].max(1)

    fast = fusec.fuse(step)
    x, ours, theirs = integers(6, 30), integers(6), integers(6)
    for _ in range(3):
        fast(x, ours)
        step(x, theirs)
        np.testing.assert_array_equal(ours, theirs)
    table = integers(6, 6)
    for column in (table[:, 2], table[2], table.diagonal()):  # memory that is reduced, too
        column = column if column.flags.writeable else table[:, 5]
        expected = column + table.sum(1)
        fusec.fuse(lambda x, out: out.__iadd__(x.sum(1)))(table, column)
        np.testing.assert_array_equal(column, expected)


def test_work_between_walks_reads_arrays_once_a_row():
    def scaled(x, beside):
        weight = np.exp(beside - x.max(1))
        return x * weight[:, None], weight, (x * weight[:, None]).sum(1) + beside

    fast = fusec.fuse(scaled)
    x = integers(50, 20) / 16.0
    for beside in (integers(50) / 8.0, integers(100)[::-2] / 8.0):
        for ours, theirs in zip(fast(x, beside), scaled(x, beside), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-12)
    assert kernels(fast, x, beside) == 1
    for view in (x.T.copy().T, x[:40]):
        np.testing.assert_allclose(fast(view, beside[: len(view)])[0], scaled(view, beside[: len(view)])[0], rtol=1e-13)


def test_the_interpreter_gives_the_same_bits():
    fast = fusec.fuse(lambda x, beside: (x * np.exp(beside - x.max(1))[:, None], beside + x.sum(1)))
    x, beside = np.random.default_rng(1).normal(size=(2, 9, 40))
    beside = beside[:, 0]
    fast(x, beside)
    ((plan,),) = fast._plans.values()
    (step,) = plan.steps
    args = (x, beside[:, None], *([beside[:, None]] * (step.kernel.nin - 2)))
    along = CallOptions(1, keepdims=True)
    for ours, theirs in zip(
        step.kernel.run(args, None, along), interpreted(step.kernel, args, None, along), strict=True
    ):
        assert ours.tobytes() == theirs.tobytes()
    graph = step.kernel.definition.graph
    assert parse_graph(step.kernel.definition.text) == graph


@pytest.mark.parametrize("dtype", ["f2", "f4", "c16", "?", "u1"])
def test_neighbours_of_every_kind(dtype):
    def met(x, beside):
        return x.any(1) | (beside != 0), x.sum(1) * beside, x.sum(1).real.astype("f4") + beside.real

    fast = fusec.fuse(met)
    x, beside = integers(7, 40, dtype=dtype), integers(7, dtype=dtype)
    for ours, theirs in zip(fast(x, beside), met(x, beside), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def places(upwards, axis, keepdims):
    method, function = ("argmax", np.argmax) if upwards else ("argmin", np.argmin)
    return (
        lambda x: function(x, axis, keepdims=keepdims),
        lambda x: getattr(x, method)(axis=axis, keepdims=keepdims),
        lambda x: function(x[::-1] * 1, axis, None, keepdims=keepdims),
    )


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f8", "F"])
@pytest.mark.sampled(3)
def test_places_of_extremes_are_numpys(dtype):
    cases = [((7,), None), ((4, 5), None), ((3, 1, 4), 2), ((70, 3), 0), ((), None), ((0, 3), 1), ((2, 5000), -1)]
    for number, (shape, axis) in enumerate(cases):
        x = np.array(integers(*shape, seed=number) // 4).astype(dtype)
        if x.dtype.kind in "fc" and x.size > 4:
            x.ravel()[[2, 4]] = np.nan
        for function in places(number % 2, axis, number % 3 == 0)[: 2 + x.ndim]:
            found, expected = fusec.fuse(function)(x), function(x)
            assert (type(found), found.dtype) == (type(expected), expected.dtype)
            np.testing.assert_array_equal(found, expected)


def test_a_place_shares_the_kernel_of_what_is_searched():
    def best(x, scale):
        scores = x * scale
        return scores.argmax(1), scores.max(1)

    fast = fusec.fuse(best)
    x, scale = integers(20, 30), integers(30)
    for ours, theirs in zip(fast(x, scale), best(x, scale), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert kernels(fast, x, scale) == 1


def test_places_in_long_arrays_are_found_in_one_pass():
    x = integers(3, 6000)
    for function in (lambda x: x.argmax(), lambda x: np.argmin(x * 2, 1, keepdims=True)):
        fast = fusec.fuse(function)
        np.testing.assert_array_equal(fast(x), function(x))
    assert fusec.fuse(lambda x: x.argmax())(x).dtype == np.intp
    np.testing.assert_array_equal(fusec.fuse(lambda x: x.argmax(1))(x), x.argmax(1))
    report = str(fast.explain(x))
    assert "fusec.argmin of int64 (3, 6000): int64 (3, 1)" in report
    several = x + 1j * x[:, ::-1]
    assert fusec.fuse(lambda x: x.argmax())(several) == several.argmax()


def test_places_go_where_out_says_and_fail_as_numpys_do():
    x, out = integers(4, 6), np.zeros(6, np.intp)
    assert fusec.fuse(lambda x, out: np.argmin(x, 0, out))(x, out) is out
    np.testing.assert_array_equal(out, x.argmin(0))
    cases = [
        (lambda x, out: x.argmax(1, out), ValueError), (lambda x, out: x.argmax(2), np.exceptions.AxisError),
        (lambda x, out: x.argmax(0, out.astype("f8")), TypeError), (lambda x, out: x[:0].argmax(0), ValueError),
        (lambda x, out: np.argmax(x, (0, 1)), TypeError),
    ]  # fmt: skip
    for function, kind in cases:
        with pytest.raises(kind):
            function(x, out)
        with pytest.raises(kind):
            fusec.fuse(function)(x, out)


@pytest.mark.parametrize(("shape", "axis"), [((30000,), 0), ((3, 9000), 1), ((300, 5), 0), ((4, 5, 60, 7), (0, 2, 3))])
def test_mean_and_variance_are_one_pass_over_memory(shape, axis):
    def moments(x):
        return x.mean(axis), x.var(axis, ddof=1), x.max(axis).real, x.std(axis) + x.mean(axis)

    fast = fusec.fuse(moments)
    base = np.random.default_rng(0).normal(1e3, 2, size=shape)
    for x in (base, base.astype("f4")) if shape == (300, 5) else (base,):
        for ours, theirs in zip(fast(x), moments(x), strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-4 if x.dtype == "f4" else 1e-11)
    assert kernels(fast, base) == 1  # which combines chunks at its end


@pytest.mark.parametrize("dtype", ["?", "f2", "F"])
def test_variances_of_every_kind(dtype):
    x = integers(70, 3).astype(dtype)
    found, expected = fusec.fuse(lambda x: x.var(0))(x), x.var(0)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == "f2" else 1e-5)
    if dtype == "F":
        x[4, 1] = np.inf
        assert np.isnan(fusec.fuse(lambda x: x.var(0))(x)).tolist() == [False, True, False]


def test_spreads_of_rows_in_cache_and_their_texts():
    fast = fusec.fuse(lambda x: ((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), x.var(1)))
    x = np.random.default_rng(0).normal(size=(6, 80))
    for ours, theirs in zip(fast(x), ((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True), x.var(1)), strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert kernels(fast, x) == 1
    one = fusec.fuse(lambda x: (x.var(1), x.sum(1)))
    one(x)
    ((plan,),) = one._plans.values()
    (step,) = plan.steps
    along = CallOptions(1, keepdims=True)
    for given in (x, x.repeat(100, 1)):
        args = tuple(80.0 if param.name == "s0" else given for param in step.kernel.in_params)
        found, same = (run(args, None, along) for run in (step.kernel.run, partial(interpreted, step.kernel)))
        assert [each.tobytes() for each in found] == [each.tobytes() for each in same]
    graph = step.kernel.definition.graph
    assert parse_graph(step.kernel.definition.text) == graph
    assert fusec.fuse(lambda x: x.var(1))(x[:, :1]).tolist() == [0.0] * 6


def test_totals_of_nothing_meet_arrays():
    fast = fusec.fuse(lambda x, beside: x.sum(1) + beside)
    for x in (np.ones((3, 0)), np.ones((0, 3)), np.ones((3, 1))):
        np.testing.assert_array_equal(fast(x, np.arange(len(x))), x.sum(1) + np.arange(len(x)))


def test_totals_are_written_over_what_they_are_made_of_whatever_the_strides_of_single_rows_are():
    def function(x, means, spreads):
        means *= 0.9
        means += 0.1 * x.mean(axis=0, keepdims=True)
        spreads *= 0.9
        spreads += 0.1 * x.var(axis=0, keepdims=True)
        return ((x - x.mean(axis=0)) / x.std(axis=0),)

    fused, x = fusec.fuse(function), np.arange(11200.0).reshape(1400, 8)
    for step in (8, 64, 800):  # bytes from row to row, of which there is one
        given = [np.lib.stride_tricks.as_strided(np.ones((1, 8)), (1, 8), (step, 8)) for _ in range(4)]
        for _ in range(4):
            found, expected = fused(x, *given[:2]), function(x, *given[2:])
            for one, other in zip((*given[:2], *found), (*given[2:], *expected), strict=True):
                np.testing.assert_allclose(one, other)
    assert all(plan.native for plans in fused._plans.values() for plan in plans)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: [x.max(), x.sum(), np.mean(x), x.argmax()], [3, 6, 1.5, 3]),
        (lambda x: [np.cumsum(x), np.maximum.accumulate(x), x.reshape(2, 2).sum(0)], [[0, 1, 3, 6], range(4), [2, 4]]),
        (
            lambda x: [np.broadcast_arrays(x, x)[0] + x, fusec.max(x), fusec.softmax(x - x)],
            [[0, 2, 4, 6], 3, [0.25] * 4],
        ),
    ],
)
def test_a_float8_that_numpy_cannot_name(function, wanted):
    x = np.arange(4).astype(ml_dtypes.float8_e5m2)
    for found, each in zip(fusec.fuse(function)(x), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(found, "float32"), np.float32(each))


def test_totals_of_what_earlier_totals_scale_are_lowered_once_each():
    @fusec.fuse
    def normed(x):
        for _ in range(40):  # a walk that took the values for trees would meet 2**40 nodes
            x = x / (x * x).sum()
        return x

    x = np.random.default_rng(0).random(100)
    expected = x
    for _ in range(40):
        expected = expected / (expected * expected).sum()
    np.testing.assert_allclose(normed(x), expected, rtol=1e-10)


def test_extremes_of_complex_numbers_have_an_initial_one() -> None:
    x = np.array([[1 + 2j, 3 - 1j, 2j], [0, 4j, 1]])
    for find in (np.max, np.min):
        for given, axis in ((x, 0), (x, 1), (x, None), (x[:0], 0), (x[:, :0], 1), (x[:0, 0], None), (x[:0], 1)):
            for start in (2 + 1j, 1 + 2j, 5j, -1, 3.0):
                for dtype in ("complex64", "complex128"):
                    values = given.astype(dtype)
                    fused = fusec.fuse(
                        lambda values, find=find, axis=axis, start=start: find(values, axis, initial=start)
                    )
                    np.testing.assert_array_equal(fused(values), find(values, axis, initial=start), strict=True)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_extremes_of_complex_numbers_leave_out_those_with_nan(dtype):
    nan, inf = np.nan, np.inf
    rows = [[1 + 2j, nan, 3 - 1j], [nan, complex(nan, 1), complex(2, nan)], [1 + 2j, complex(1, nan), 1 - 7j]]
    rows += [[complex(-inf, 3), complex(-inf, nan), complex(-inf, -3)], [0, complex(nan, inf), -0.0]]
    z = np.array(rows, dtype)
    for function in (np.nanmax, np.nanmin, np.fmax.reduce, np.fmin.reduce):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = function(z, axis=1)
        found = fusec.fuse(function)(z, axis=1)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
        np.testing.assert_array_equal(found[~np.isnan(found)], wanted[~np.isnan(wanted)])


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float32"])
@pytest.mark.parametrize("shape", [(4,), (5, 7), (6000,)])
def test_nan_is_the_extreme_of_every_float(dtype, shape):
    x = np.arange(np.prod(shape)).reshape(shape) % 11
    x = x.astype(getattr(ml_dtypes, dtype, dtype))
    x[..., 2] = np.nan
    for function in (lambda x: x.argmax(), lambda x: x.argmin(-1), lambda x: x.ravel()[x.argmin()]):
        ours, theirs = (np.asarray(call(x), float) for call in (fusec.fuse(function), function))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_positions_of_numbers_are_numpys_and_nothing_but_nan_has_none(name):
    function, x = getattr(np, name), np.array([[1, np.nan, 3], [np.nan, 5, 2]])
    for given in (x, x.astype("f4"), np.arange(6).reshape(2, 3), np.zeros((2, 3), bool)):
        for options in ({}, {"axis": 1}, {"axis": 0, "keepdims": True}):
            fused = fusec.fuse(lambda x, options=options: function(x, **options))
            np.testing.assert_array_equal(fused(given), function(given, **options))
    x[1] = np.nan
    with pytest.raises(ValueError, match="All-NaN"):
        fusec.fuse(lambda x: function(x, axis=1))(x)
    assert fusec.fuse(lambda x: function(x))(x) == function(x)


@pytest.mark.parametrize("dtype", ["i1", "i8", "f4", "f8", "c16"])
@pytest.mark.parametrize("given", ["i1", "i4", "f4", "f8"])
def test_running_totals_are_added_in_what_holds_both_the_numbers_and_the_given_array(given, dtype):
    x, out = (np.arange(12) * 0.05).astype(given), np.zeros(12, dtype)
    for function in (np.cumsum, np.cumprod, lambda x, out: np.add.accumulate(x, out=out)):
        with np.errstate(all="ignore"):
            expected = function(x + x.dtype.type(1), out=out.copy())
        found = fusec.fuse(lambda x, out, function=function: function(x + 1, out=out))(x, out.copy())
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert found.dtype == expected.dtype


def test_running_totals_of_dtypes_without_a_common_one_are_added_in_that_of_the_given_array():
    x = np.arange(7) * 0.25
    for given, dtype in (("f2", ml_dtypes.bfloat16), (ml_dtypes.bfloat16, "f2")):
        found = fusec.fuse(lambda x, out: np.cumsum(x, out=out))(x.astype(given), np.zeros(7, dtype))
        np.testing.assert_array_equal(found.astype(float), np.cumsum(x))


CROSSED = {
    "sum": lambda a: (a.sum(1) * a).sum(1),
    "columns": lambda a: (a.sum(0)[:, None] * a).sum(0),
    "deviation": lambda a: (a / a.std(1)).std(1),
    "turned": lambda a: (a - a.mean(1, keepdims=True).T).mean(1),
    "twice": lambda a: (a + (a + a[0]).min(1)).min(1),
    "both ways": lambda a: (a / np.sqrt(a.sum(1)[:, None] * a.sum(1))).sum(1),
    "place": lambda a: (a.argmax(1) * a).sum(1),
    "stored": lambda a: ((a - a.max(1)).sum(1), a.max(1) + 1, (a.max(1) * a.min(1)).sum()),
    "along their own axis": lambda a: (a - a.mean(1, keepdims=True)).max(1),
}


@pytest.mark.parametrize("name", CROSSED)
@pytest.mark.parametrize("size", [2, 5, 130])
def test_totals_that_are_repeated_along_another_axis_of_squares_are_not_those_of_their_row(name, size):
    function = CROSSED[name]
    x = np.random.default_rng(size).uniform(1, 2, (size, size))
    for array in (x, x.T, np.stack([x, x + 1])[1]):
        for run in (fusec.fuse(function), fusec.fuse(function).graph(array).compile()):
            results = [each if isinstance(each, tuple) else (each,) for each in (run(array), function(array))]
            for found, expected in zip(*results, strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_totals_that_are_repeated_along_another_axis_of_cubes_are_not_those_of_their_row():
    x = integers(3, 4, 4)
    for function in (
        lambda a: (a.sum(-1)[:, None, :] * a).sum(-1),
        lambda a: (a.sum(1)[:, :, None] * a).sum(1),
        lambda a: (a.sum((0, 1))[:, None] * a).sum((0, 1)),
    ):
        np.testing.assert_array_equal(fusec.fuse(function)(x), function(x))
