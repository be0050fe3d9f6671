"""Reductions on the GPU: the bits of the CPU, whatever the sizes, axes, types and strides."""

from unittest import mock

import numpy as np
import pytest

import fusec
from fusec.library import arguments
from fusec.runtime import cuda
from tests.gpu.test_same_bits import assert_same_bits, hard_values

SUM = fusec.ReductionKernel("T x", "T z", "x", "a + b", "z = a", "0", "total")
LENGTH = fusec.ReductionKernel("T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = sqrt(a)", "0", "distance")
EXTREMES = fusec.ReductionKernel(
    "T x", "T low, T high", "Pair{x, x}", "Pair{min(a.low, b.low), max(a.high, b.high)}", "low = a.low; high = a.high",
    None, "extremes", "Pair", preamble="struct Pair { float low, high; };",
)  # fmt: skip
WHERE = fusec.ReductionKernel(
    "T x", "T least, int64 at", "Least{x, _J}",
    "a.value < b.value || (a.value == b.value && a.at < b.at) ? a : b", "least = a.value; at = a.at", None, "argmin",
    "Least", preamble="struct Least { float value; long long at; };",
)  # fmt: skip


@fusec.reduction(finish=lambda held, count, indices: (held[1], held[2] / count, indices[0]), identity=(0, 0.0, 0.0))
class moments:
    """Means and variances, and where each stands in the result."""

    def map(x):
        return 1, x, 0.0

    def combine(a, b):
        (n, mean, squares), (m, other, rest) = a, b
        if n + m == 0:
            return a
        step = other - mean
        return n + m, mean + step * m / (n + m), squares + rest + step * step * n * m / (n + m)


TYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
SIZES = (1, 2, 31, 32, 33, 127, 128, 129, 4095, 4097, 8191, 8192, 8193, 100_000)


def normal(*shape, dtype="f4", seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def compare(kernel, *args, **kwargs):
    """Run on both and compare every output; what the device gave."""

    def there(value):
        return cuda.from_numpy(value) if isinstance(value, np.ndarray) else value

    host = kernel(*args, **kwargs)
    device = kernel(*map(there, args), **{name: there(value) for name, value in kwargs.items()})
    pairs = [each if isinstance(each, tuple) else (each,) for each in (device, host)]
    for got, expected in zip(*pairs, strict=True):
        assert_same_bits(got, np.asarray(expected))
    return device


@pytest.mark.parametrize("count", SIZES)
def test_sums_around_every_boundary(count):
    compare(SUM, normal(count))
    compare(SUM, normal(3, count), axis=1)
    compare(SUM, normal(count, 3), axis=0)


@pytest.mark.parametrize("name", TYPES)
def test_sums_of_every_type(name):
    for shape, axis in (((5000,), None), ((7, 700), 1), ((700, 7), 0)):
        compare(SUM, hard_values(name, 5000)[: np.prod(shape)].reshape(shape), axis=axis)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_sums(name):
    x = (normal(40, 300) + 1j * normal(40, 300, seed=1)).astype(name)
    for axis in (None, 0, 1):
        compare(SUM, x, axis=axis)


def test_bools_are_counted():
    kernel = fusec.ReductionKernel("bool x", "int64 z, bool every", "(long long)x", "a + b", "z = a; every = a > 10", 0)
    compare(kernel, hard_values("bool", 70_000))


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (0, 2), (1, 2), (0, 1, 2), ()])
def test_axes(axis):
    x, y = normal(13, 65, 40), normal(65, 1, seed=1)
    compare(LENGTH, x, y, axis=axis)
    compare(LENGTH, x, 0.5, axis=axis, keepdims=True)
    compare(EXTREMES, x, axis=axis)
    compare(WHERE, np.round(x, 1), axis=axis)


def test_strided_and_broadcast_operands(strided):
    base = normal(40, 60, 50)
    views = (
        base.T, base[::2, ::-3], base[:, :, ::-1], base[::-1, ::-1, ::-1], np.broadcast_to(base[:, :1], base.shape),
        np.asfortranarray(base), base[3:4], base.transpose(1, 0, 2),
    )  # fmt: skip
    for view in views:
        for axis in (None, 0, 1, 2, (0, 2)):
            assert_same_bits(SUM(strided(view), axis=axis), np.asarray(SUM(view, axis=axis)))
            for got, expected in zip(WHERE(strided(view), axis=axis), WHERE(view, axis=axis), strict=True):
                assert_same_bits(got, np.asarray(expected))


@pytest.mark.parametrize("shape", [(300, 70), (20_000,), (3, 9000)])
def test_masks(shape):
    x = normal(*shape)
    compare(SUM, x, where=x > 0)
    compare(SUM, x, where=x > 0, axis=0)
    compare(SUM, x, where=False)


def test_raw_inputs():
    kernel = fusec.ReductionKernel("raw T x, int64 at", "T z", "x[at]", "a + b", "z = a", "0", "gather")
    at = np.random.default_rng(0).integers(0, 1000, (30, 400))
    compare(kernel, normal(1000), at, axis=1)
    compare(kernel, normal(1000), at, axis=0)


def test_empty_reductions():
    compare(SUM, normal(0, 5), axis=0)
    compare(SUM, normal(0, 5), axis=1)
    with pytest.raises(ValueError, match="identity"):
        EXTREMES(cuda.from_numpy(normal(0, 5)), axis=0)


def test_outputs_that_are_given(strided):
    x = normal(30, 50)
    given = cuda.from_numpy(np.zeros(50, "f4"))
    assert SUM(cuda.from_numpy(x), axis=0, out=given) is given
    assert_same_bits(given, SUM(x, axis=0))
    columns = strided(np.zeros((50, 2), "f4")[:, 1])
    SUM(cuda.from_numpy(x), columns, axis=0)
    assert_same_bits(columns, SUM(x, axis=0))
    with pytest.raises(ValueError, match="shape"):
        SUM(cuda.from_numpy(x), axis=1, out=given)


def test_an_output_inside_the_input_is_written_last():
    x = normal(40, 40)
    device = cuda.from_numpy(x)

    class Row:
        __cuda_array_interface__ = {
            "shape": (40,), "strides": (160,), "typestr": "<f4", "data": (device.pointer, False), "version": 3,
        }  # fmt: skip

    SUM(device, axis=0, out=Row())
    expected = x.copy()
    expected[:, 0] = SUM(x, axis=0)
    assert_same_bits(device, expected)


def test_reductions_on_several_streams():
    x = normal(200_000)
    from cuda.core import Device

    Device(0).set_current()
    streams = [Device(0).create_stream() for _ in range(3)]
    arrays = [cuda.from_numpy(x + number, stream=stream) for number, stream in enumerate(streams)]
    totals = [SUM(each, stream=stream) for each, stream in zip(arrays, streams, strict=True)]
    for number, total in enumerate(totals):
        assert_same_bits(total, np.asarray(SUM(x + np.float32(number))))


@pytest.mark.hardware
@pytest.mark.parametrize("count", [10_000_000, 100_000_001])
def test_many_elements(count):
    ones = np.ones(count, "f4")
    assert SUM(cuda.from_numpy(ones)).numpy() == np.float32(count)
    x = normal(count)
    compare(SUM, x)
    compare(SUM, x[: count // 1000 * 1000].reshape(-1, 1000), axis=0)
    compare(SUM, x[: count // 1000 * 1000].reshape(1000, -1), axis=1)


@pytest.mark.hardware
def test_more_than_two_to_the_31_elements():
    x = np.ones((1 << 16, (1 << 15) + 3), "i1")
    kernel = fusec.ReductionKernel("int8 x", "int64 z", "(long long)x", "a + b", "z = a", "0", "wide")
    device = cuda.from_numpy(x)
    assert int(kernel(device).numpy()) == x.size
    assert (kernel(device, axis=0).numpy() == x.shape[0]).all()
    assert (kernel(device, axis=1).numpy() == x.shape[1]).all()


BUILT_IN = (
    "sum", "prod", "mean", "var", "std", "mean_var", "min", "max", "ptp", "minmax", "any", "all", "count_nonzero",
    "argmin", "argmax", "logsumexp", "norm", "nansum", "nanmean", "nanvar", "nanmax", "nanargmin",
)  # fmt: skip


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_reductions(name):
    x = normal(70, 300)
    x[3, 5] = np.nan if name.startswith("nan") else x[3, 5]
    for axis in (None, 0, 1):
        compare(getattr(fusec, name), x, axis=axis)


@pytest.mark.parametrize("name", ["argmin", "argmax", "nanargmax"])
def test_positions_are_found_along_one_axis_of_elements_in_c_order(name):
    x = np.random.default_rng(0).integers(-5, 5, (7, 30, 5)).astype("f4")
    device = cuda.from_numpy(x)
    for found, wanted, axes in (
        (device, x, 1),
        (device.T, x.T, 3),
        (device[:, ::2], x[:, ::2], 3),
        (device[2], x[2], 1),
    ):
        with mock.patch.object(arguments, "run", wraps=arguments.run) as ran:
            place = getattr(fusec, name)(found)
        assert int(place.numpy()) == getattr(np, name)(wanted)
        assert ran.call_args.args[1][0].ndim == axes
    assert getattr(fusec, name)(device, keepdims=True).shape == (1, 1, 1)


@pytest.mark.parametrize("name", ["argmin", "argmax", "nanargmax", "max", "sum", "mean", "var", "logsumexp"])
@pytest.mark.parametrize("columns", [1, 2, 5, 8, 31, 32])
def test_many_short_rows(name, columns):
    x = normal(1500, columns)
    x[3, 0] = x[3, 0] if columns == 1 and name.startswith("nan") else np.nan
    compare(getattr(fusec, name), x, axis=1)
    compare(getattr(fusec, name), x.astype("f8")[::2], axis=1)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm"])
def test_functions_of_rows(name):
    for shape in ((7, 30), (5, 1000), (3, 4096), (1500, 2), (1030, 5), (70_001, 12), (1100, 31)):
        compare(getattr(fusec, name), normal(*shape))
        compare(getattr(fusec, name), normal(*shape).astype("f8"))


@pytest.mark.parametrize("name", ["vecdot", "mulsum"])
def test_products(name):
    compare(getattr(fusec, name), normal(70, 300), normal(70, 300, seed=1), axis=-1)


@pytest.mark.parametrize(("shape", "axis"), [((3, 20_000), 1), ((300, 5, 7), 0), ((40, 6, 500), (0, 2)), ((3, 0), 1)])
def test_reductions_of_functions(shape, axis):
    x = normal(*shape)
    compare(moments, x, axis=axis)
    compare(moments, x, axis=axis, keepdims=True, where=x > 0)
    scaled = fusec.reduction(map=lambda x, k=2: x * k, combine=max, identity=-np.inf)
    for args in ((), (3.0,), (np.float32(3),)) * 3:  # the short way of repeated calls, and others between
        compare(scaled, x, *args, axis=axis)
