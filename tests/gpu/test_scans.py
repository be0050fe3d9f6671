"""Scans on the GPU: the bits of the CPU, whatever the sizes, axes, directions, types and strides."""

import numpy as np
import pytest

import fusec
from fusec.runtime import cuda
from tests.gpu.test_reductions import compare, normal
from tests.gpu.test_same_bits import assert_same_bits, hard_values

ADD = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")
BEFORE = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add_before", inclusive=False)
PARTS = fusec.ScanKernel("T x, bool starts", "T y", "x", "a + b", "y = a", 0, "add_parts", segments="starts")
PARTS_BEFORE = fusec.ScanKernel(
    "T x, bool starts", "T y", "x", "a + b", "y = a", 0, "add_parts_before", inclusive=False, segments="starts"
)
LINE = fusec.ScanKernel(
    "float32 p, float32 q", "float32 y, bool high", "Line{p, q}", "Line{a.p * b.p, a.q * b.p + b.q}",
    "y = a.q; high = a.q > 1", None, "line", "Line", "struct Line { float p; float q; };",
)  # fmt: skip
BUILT_IN = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
TYPES = (
    "bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32",
    "float64",
)  # fmt: skip
SIZES = (1, 2, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 2047, 2048, 2049, 4097, 32 * 2048 + 1, 100_003)


@pytest.mark.parametrize("count", SIZES)
def test_sums_around_every_boundary(count):
    compare(ADD, normal(count))
    compare(ADD, normal(3, count), axis=1)
    compare(ADD, normal(count, 3), axis=0)
    compare(ADD, normal(2, count, 35), axis=1)


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_scans(name):
    kernel, signs = getattr(fusec, name), np.sign(normal(100_003, seed=1))
    scale = (1 + normal(100_003) / 1000) * signs if name == "cumprod" else normal(100_003) * 10
    x = scale.astype("f4")
    x[70_000:70_002] = -np.inf, np.nan
    compare(kernel, x)
    compare(kernel, x[:99_990].reshape(303, 330), axis=0)
    compare(kernel, x[:99_990].reshape(303, 330), axis=1)


@pytest.mark.parametrize("name", TYPES)
def test_sums_and_extremes_of_every_type(name):
    for shape, axis in (((5000,), None), ((7, 700), 1), ((700, 7), 0)):
        x = hard_values(name, 5000)[: np.prod(shape)].reshape(shape)
        compare(fusec.cumsum, x, axis=axis)
        compare(fusec.cummax, x, axis=axis)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex_sums_and_products(name):
    angles = normal(40, 300)
    for axis in (0, 1):
        compare(fusec.cumsum, (angles + 1j * normal(40, 300, seed=1)).astype(name), axis=axis)
        compare(fusec.cumprod, np.exp(1j * angles).astype(name), axis=axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(13, 65, 40), (2, 3000, 3), (3, 4, 2500), (2100, 3, 5)])
def test_axes_directions_and_several_outputs(shape, axis):
    p, q = normal(*shape), normal(*shape, seed=1)
    compare(LINE, p / 4, q, axis=axis)
    compare(BEFORE, q, axis=axis)
    for reverse in (False, True):
        compare(ADD, p, axis=axis, reverse=reverse)


@pytest.mark.parametrize("kernel", [PARTS, PARTS_BEFORE])
@pytest.mark.parametrize(("shape", "axis"), [((100_003,), 0), ((300, 70), 0), ((70, 300), 1), ((5, 200, 40), 1)])
def test_segments(kernel, shape, axis):
    starts = np.random.default_rng(2).random(shape) < 0.01
    for reverse in (False, True):
        compare(kernel, normal(*shape), starts, axis=axis, reverse=reverse)


def test_strided_and_broadcast_operands(strided):
    base = normal(40, 60, 50)
    views = (
        base.T, base[::2, ::-3], base[:, :, ::-1], base[::-1, ::-1, ::-1], np.broadcast_to(base[:, :1], base.shape),
        np.asfortranarray(base), base[3:4], base.transpose(1, 0, 2),
    )  # fmt: skip
    for view in views:
        for axis in (0, 1, 2):
            assert_same_bits(ADD(strided(view), axis=axis), np.asarray(ADD(view, axis=axis)))
            assert_same_bits(LINE(strided(view), 0.5, axis=axis)[0], np.asarray(LINE(view, 0.5, axis=axis)[0]))


def test_long_strided_rows(strided):
    base = normal(2, 120_000)
    for view in (base[:, ::2], base[0, ::-1], base[0, 7::3]):
        assert_same_bits(ADD(strided(view)), np.asarray(ADD(view)))


def test_raw_inputs():
    kernel = fusec.ScanKernel("raw T x, int64 at", "T z", "x[at]", "a + b", "z = a", 0, "gathered")
    at = np.random.default_rng(0).integers(0, 1000, (30, 9000))
    compare(kernel, normal(1000), at, axis=1)
    compare(kernel, normal(1000), at, axis=0)


def test_empty_arrays():
    compare(ADD, normal(0, 5), axis=0)
    compare(ADD, normal(5, 0), axis=0)
    compare(ADD, normal(0))


def test_outputs_that_are_given(strided):
    x = normal(300, 70)
    given = cuda.from_numpy(np.zeros_like(x))
    assert ADD(cuda.from_numpy(x), axis=0, out=given) is given
    assert_same_bits(given, ADD(x, axis=0))
    columns = strided(np.zeros((300, 140), "f4")[:, ::2])
    ADD(cuda.from_numpy(x), columns, axis=0)
    assert_same_bits(columns, ADD(x, axis=0))
    with pytest.raises(ValueError, match="shape"):
        ADD(cuda.from_numpy(x), axis=0, out=cuda.from_numpy(np.zeros((70, 300), "f4")))


def test_an_output_may_be_the_input():
    for shape, axis in (((100_003,), 0), ((300, 70), 0), ((300, 70), 1)):
        x = normal(*shape)
        device = cuda.from_numpy(x)
        assert ADD(device, axis=axis, out=device) is device
        assert_same_bits(device, np.asarray(ADD(x, axis=axis)))


@pytest.mark.parametrize("order", ["C", "F"])
def test_no_axis_means_the_flattened_array(order, strided):
    x = np.asarray(normal(30, 41), order=order)
    expected = np.asarray(fusec.cumsum(np.ascontiguousarray(x)))
    for there in (cuda.from_numpy(x), strided(x), strided(np.repeat(x, 2, axis=1)[:, ::2])):
        found = fusec.cumsum(there)
        assert found.shape == (30 * 41,)
        assert_same_bits(found, expected)
    assert_same_bits(fusec.cummax(cuda.from_numpy(np.float32(3))), np.float32([3]))


@pytest.mark.parametrize("axis", [0, 1])
def test_results_before_the_first_element(axis):
    x = normal(30, 41)
    for _ in range(2):
        for kernel in (fusec.cumulative_sum, fusec.cumulative_prod):
            expected = np.asarray(kernel(x, axis=axis, include_initial=True))
            there, out = cuda.from_numpy(x), cuda.from_numpy(np.zeros_like(expected))
            assert_same_bits(kernel(there, axis=axis, include_initial=True), expected)
            assert kernel(there, axis=axis, include_initial=True, out=out) is out
            assert_same_bits(out, expected)
    with pytest.raises(ValueError, match="shape"):
        fusec.cumulative_sum(there, axis=axis, include_initial=True, out=cuda.from_numpy(x))
    whole = cuda.from_numpy(np.arange(12, dtype="f4"))
    fusec.cumulative_sum(whole.part(0, 0, 11), include_initial=True, out=whole)
    assert_same_bits(whole, np.cumsum([0, *range(11)], dtype="f4"))


def test_the_same_call_again_and_with_other_arrays():
    for seed in range(4):
        compare(ADD, normal(30_000, seed=seed))
        compare(ADD, normal(500, 40, seed=seed), axis=0)


def test_scans_on_several_streams():
    x = normal(200_000)
    from cuda.core import Device

    Device(0).set_current()
    streams = [Device(0).create_stream() for _ in range(3)]
    arrays = [cuda.from_numpy(x + number, stream=stream) for number, stream in enumerate(streams)]
    sums = [ADD(each, stream=stream) for each, stream in zip(arrays, streams, strict=True)]
    for number, each in enumerate(sums):
        assert_same_bits(each, np.asarray(ADD(x + np.float32(number))))


LARGE = 2048 * 2048  # elements of a large chunk
WIDE = fusec.ScanKernel(
    "float64 x", "float64 y", "Wide{x, x, x, x, x}", "Wide{a.a + b.a, a.b + b.b, a.c + b.c, a.d + b.d, a.e + b.e}",
    "y = a.a + a.e", None, "wide_state", "Wide", "struct Wide { double a, b, c, d, e; };",
)  # fmt: skip


def test_one_pass_where_threads_hold_elements_and_where_they_read_them_again():
    """Of 4, 8, 12 and 40 bytes; the last take three kernels."""
    x = normal(5 * 2048 + 7)
    at = np.arange(x.size)
    least = fusec.ScanKernel(
        "float32 x, int64 at", "float32 y, int64 where", "Least{x, at}", "b.x < a.x ? b : a", "y = a.x; where = a.at",
        None, "least", "Least", "struct Least { float x; long long at; };",
    )  # fmt: skip
    compare(ADD, x)
    compare(ADD, x.astype("f8"))
    compare(least, x, at)
    compare(WIDE, x.astype("f8"))


@pytest.mark.parametrize("shape", [(65, 2048), (4097, 2049), (129, 2, 70, 33)])
def test_columns_in_one_pass(shape):
    """Of elements of 4, 8 and 16 bytes, of which threads hold the first two; chunks that are not whole."""
    x = normal(*shape)
    for each in (ADD, BEFORE, fusec.cumsum):
        compare(each, x, axis=0)
    compare(PARTS, x, normal(*shape, seed=1) > 2, axis=0)
    compare(ADD, x.astype("f8"), axis=0)
    compare(fusec.cumsum, x.astype("c16"), axis=0)
    compare(ADD, np.ascontiguousarray(x[::2]).astype("f2"), axis=0, reverse=True)


@pytest.mark.hardware
@pytest.mark.parametrize("shape", [(1 << 13, 1 << 13), (3001, 5003), (262_144, 2048), (3, 10_000, 1000)])
def test_columns_that_many_blocks_share(shape):
    x = normal(*shape)
    there, expected = cuda.from_numpy(x), np.asarray(ADD(x, axis=-2))
    for _ in range(5):
        assert_same_bits(ADD(there, axis=-2), expected)


@pytest.mark.hardware
@pytest.mark.parametrize("count", [LARGE, LARGE + 1, 2 * LARGE + 2049, 33 * LARGE + 70_001])
def test_large_chunks(count):
    compare(ADD, normal(count))
    compare(BEFORE, normal(count))


@pytest.mark.hardware
def test_scans_at_the_same_time_have_the_same_bits_whoever_comes_first():
    """Each has words of its own; few rows and many, on three streams, again and again."""
    from cuda.core import Device

    Device(0).set_current()
    streams = [Device(0).create_stream() for _ in range(3)]
    shapes = [(1 << 22,), (7, 300_001), (1000, 6000)]
    given = [normal(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    wanted = [np.asarray(ADD(each, axis=-1)) for each in given]
    arrays = [cuda.from_numpy(each, stream=stream) for each, stream in zip(given, streams, strict=True)]
    for _ in range(50):
        found = [ADD(each, axis=-1, stream=stream) for each, stream in zip(arrays, streams, strict=True)]
    for each, expected in zip(found, wanted, strict=True):
        assert_same_bits(each, expected)


@pytest.mark.hardware
@pytest.mark.parametrize("count", [10_000_000, 100_000_001])
def test_many_elements(count):
    ones = np.ones(count, "i4")
    assert_same_bits(fusec.cumsum(cuda.from_numpy(ones)), np.arange(1, count + 1))
    x = normal(count)
    compare(ADD, x)
    compare(BEFORE, x)
    compare(ADD, x[: count // 1000 * 1000].reshape(-1, 1000), axis=0)
    compare(ADD, x[: count // 1000 * 1000].reshape(1000, -1), axis=0)
    compare(ADD, x[: count // 1000 * 1000].reshape(1000, -1), axis=1)
    compare(ADD, x[: count // 1000 * 1000].reshape(-1, 1000), axis=1)


@pytest.mark.hardware
def test_more_than_two_to_the_31_elements():
    x = np.ones((1 << 16, (1 << 15) + 3), "i1")
    kernel = fusec.ScanKernel("int8 x", "uint8 y", "x", "a + b", "y = a", 0, "wide", reduce_type="uint8")
    for array, axis in ((x, 0), (x, 1), (x.reshape(-1), 0)):
        found = kernel(cuda.from_numpy(array), axis=axis).numpy()
        assert np.array_equal(found.reshape(-1)[:1000], kernel(array, axis=axis).reshape(-1)[:1000])
        assert np.array_equal(
            found.take(-1, axis=axis), np.full_like(found.take(-1, axis=axis), array.shape[axis] % 256)
        )


@pytest.mark.parametrize("kernel", [ADD, BEFORE], ids=["inclusive", "exclusive"])
@pytest.mark.parametrize(("shape", "axis"), [((100_003,), 0), ((303, 330), 0), ((303, 330), 1)])
def test_a_mask_leaves_elements_out(kernel, shape, axis):
    x = normal(*shape)
    compare(kernel, x, where=x > 0, axis=axis)
    compare(kernel, x, where=x.ravel()[: shape[-1]] > 0, axis=axis)


def test_calls_on_a_device_are_explained():
    x = cuda.from_numpy(normal(40, 300))
    for kernel in (fusec.ElementwiseKernel("T x", "T y", "y = x + 1", "inc"), ADD, fusec.sum):
        report = dict(fusec.explain(kernel, x).lines)
        assert "launches again with other addresses" in report["path"]
