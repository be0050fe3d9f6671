"""The same kernel gives the same bits on the GPU as on the CPU, whatever the types, shapes, strides and numbers."""

import ml_dtypes
import numpy as np
import pytest

import fusec
from fusec.base import dtypes
from fusec.runtime import cuda

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def hard_values(name: str, count: int = 1000, seed: int = 0) -> np.ndarray:
    """Random bits of the type, so every magnitude, nan and infinity; the special values come first."""
    dtype = dtypes.BY_NAME[name].numpy
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, count).astype(bool)
    values = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        special = [0, 1, info.max, info.min, info.max - 1, 2, 3]
    else:
        special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, 3.0, 1e-3, 100.0]
    values[: len(special)] = np.array(special, dtype)
    return values


def assert_same_bits(device: object, host: np.ndarray) -> None:
    """Equal bit for bit, but for the payload and sign of nan, which no target promises."""
    got = device.numpy()
    assert got.dtype == host.dtype
    assert got.shape == host.shape
    if host.dtype.kind in "biu":
        np.testing.assert_array_equal(got, host)
        return
    parts = (lambda a: np.stack([a.real, a.imag])) if host.dtype.kind == "c" else (lambda a: a)
    a, b = parts(np.ascontiguousarray(got)), parts(np.ascontiguousarray(host))
    integer = f"u{a.dtype.itemsize}"
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    np.testing.assert_array_equal(a_nan, b_nan)
    np.testing.assert_array_equal(a.view(integer)[~a_nan], b.view(integer)[~b_nan])


def compare(kernel: fusec.ElementwiseKernel, *args: np.ndarray) -> None:
    """Run on both and compare every output."""
    host = kernel(*args)
    device = kernel(*(cuda.from_numpy(each) if isinstance(each, np.ndarray) else each for each in args))
    for got, expected in zip(*((each if isinstance(each, tuple) else (each,)) for each in (device, host)), strict=True):
        assert isinstance(got, cuda.CudaArray)
        assert_same_bits(got, expected)


BODIES = {
    "arithmetic": "z = x * y + x - y",
    "division": "z = x / y",
    "comparison": "z = x < y ? x : (x == y ? (T)7 : y)",
    "loop": "T s = 0; for (int k = 0; k < 5; k++) { if (s > y) break; s += x; } z = s",
}
INTEGER_BODIES = {
    "bits": "z = (x & y) ^ (x | ~y)",
    "shifts": "z = (x << 3) + (y >> 2) + (x << (y & (T)127))",
    "remainder": "z = x % y",
}
FLOAT_BODIES = {
    "sqrt": "z = sqrt(x)",
    "quotients_by_whole_constants": "z = i % 3 == 0 ? x / 25 : i % 3 == 1 ? x / -6 : y / 14",
    "quotients_by_fractions": "z = i % 3 == 0 ? x / (T)0.1 : i % 3 == 1 ? x / (T)-2.5 : y / (T)0.7",
    "fma": "z = fma(x, y, x)",
    "rounding": "z = floor(x) + ceil(y) + trunc(x) + rint(y)",
    "exp": "z = exp(x) + expm1(y)",
    "log": "z = log(x) + log1p(y) + log2(x) + log10(y)",
    "trigonometry": "z = sin(x) + cos(y) + tan(x)",
    "inverse": "z = atan2(x, y) + asin(x) + acos(y)",
    "hyperbolic": "z = tanh(x) + sinh(y) + cosh(x)",
    "power": "z = pow(x, y)",
}


@pytest.mark.parametrize("name", INTEGERS + FLOATS)
@pytest.mark.parametrize("body", BODIES)
def test_arithmetic(name, body):
    compare(
        fusec.ElementwiseKernel("T x, T y", "T z", BODIES[body], body), hard_values(name), hard_values(name, seed=1)
    )


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("body", INTEGER_BODIES)
def test_integers(name, body):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", INTEGER_BODIES[body], body)
    compare(kernel, hard_values(name), hard_values(name, seed=1))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("body", FLOAT_BODIES)
def test_functions(name, body):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", FLOAT_BODIES[body], body)
    rng = np.random.default_rng(2)
    compare(kernel, hard_values(name), hard_values(name, seed=1))
    compare(kernel, *(rng.uniform(-3, 3, (2, 5000)).astype(name)))


@pytest.mark.parametrize("source", ["bool", *INTEGERS, *NARROW, *FLOATS])
@pytest.mark.parametrize("target", ["bool", *INTEGERS, *NARROW, *FLOATS])
def test_every_conversion(source, target):
    compare(fusec.ElementwiseKernel(f"{source} x", f"{target} z", "z = x", "convert"), hard_values(source))


@pytest.mark.parametrize("name", NARROW)
def test_storage_types_compute_in_float32_and_round_once(name):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y + x", "narrow")
    compare(kernel, hard_values(name), hard_values(name, seed=1))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_complex(name):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y + x / y", "complex")
    compare(kernel, hard_values(name), hard_values(name, seed=1))


@pytest.mark.parametrize("name", [row.name for row in dtypes.ALL])
def test_scalars_of_every_type(name):
    x = hard_values(name, 17)
    compare(fusec.ElementwiseKernel("T x, T a", "T z", "z = i % 2 == 0 ? x : a", "scalar"), x, x.dtype.type(1).item())


def test_several_outputs_and_the_index():
    kernel = fusec.ElementwiseKernel("int32 x", "int64 a, float32 b", "a = x + i * 3; b = x * 0.5f", "two")
    compare(kernel, np.arange(1000, dtype="i4").reshape(10, 100))


def test_raw_arrays_and_local_arrays():
    kernel = fusec.ElementwiseKernel(
        "raw float32 x, int32 m",
        "float32 z",
        "float w[3]; for (int k = 0; k < 3; k++) w[k] = x[(i + k) % m]; z = w[0] + w[1] * w[2]",
        "window",
    )
    x = np.linspace(-1, 1, 100, dtype="f4")
    compare(kernel, x, np.full(100, 100, "i4"))


def test_device_functions():
    kernel = fusec.ElementwiseKernel(
        "float32 x", "float32 z", "z = twice(x)", "functions",
        preamble="__device__ float twice(float v) { return v + v; }",
    )  # fmt: skip
    compare(kernel, hard_values("float32"))


# --- shapes and strides --------------------------------------------------------------------------------------------

ADD = ("T x, T y", "T z", "z = x * 2 + y", "add")
INDEXED = ("T x, T y", "T z", "z = x * 2 + y + (T)i", "indexed")


def views() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    base = np.arange(4 * 6 * 10, dtype="f4").reshape(4, 6, 10)
    other = -base[::-1] * 0.5
    return {
        "contiguous": (base, other.copy()),
        "reversed": (base, other),
        "transposed": (base.transpose(2, 0, 1), other.transpose(2, 0, 1)),
        "mixed orders": (base.transpose(2, 1, 0), np.ascontiguousarray(other.transpose(2, 1, 0))),
        "every second": (base[:, ::2, 1::3], other[:, 1::2, ::-3][:, :, :3]),
        "broadcast": (base, other[:1, :, :1]),
        "one row for all": (np.arange(6 * 5 * 16, dtype="f4").reshape(6, 5, 16), np.arange(16, dtype="f4")),
        "padded rows": (np.arange(7 * 12, dtype="f4").reshape(7, 12)[:, :9], np.arange(7, dtype="f4")[:, None]),
        "column and row": (base[:, :1, 0], other[0, :1, :6]),
        "zero strides": (np.broadcast_to(np.float32(3), (4, 5)), base[0, :4, :5]),
        "0-d": (base[1, 2, 3], other[0, 0, 0]),
        "0-d and 2-d": (base[1, 2, 3], other[0]),
        "empty": (base[:, :0], other[:, :0]),
        "one element": (base[:1, :1, :1], other[:1, :1, :1]),
        "misaligned": (base.reshape(-1)[1:102], other.copy().reshape(-1)[3:104]),
        "odd length": (base.reshape(-1)[:101], other.copy().reshape(-1)[:101]),
    }


@pytest.mark.parametrize("texts", [ADD, INDEXED], ids=["free order", "indexed"])
@pytest.mark.parametrize("case", views())
def test_layouts(case, texts, strided):
    x, y = (np.asarray(each) for each in views()[case])
    kernel = fusec.ElementwiseKernel(*texts)
    assert_same_bits(kernel(strided(x), strided(y)), np.asarray(kernel(x, y)))


@pytest.mark.parametrize("case", ["contiguous", "transposed", "every second", "reversed"])
def test_given_outputs_of_any_layout_are_written_and_nothing_else(case, strided):
    x, y = views()[case]
    kernel = fusec.ElementwiseKernel(*ADD)
    whole = np.full((x.shape[0], 2, *x.shape[1:]), 77, "f4")
    out = strided(whole[:, 1])
    kernel(strided(x), strided(y), out)
    kernel(x, y, whole[:, 1])
    assert_same_bits(out, whole[:, 1].copy())


def test_updates_in_place():
    x = np.arange(10, dtype="f4")
    there = cuda.from_numpy(x)
    kernel = fusec.ElementwiseKernel("T x", "T z", "z = x * 3 + 1", "update")
    kernel(there, there)
    np.testing.assert_array_equal(there.numpy(), kernel(x))


@pytest.mark.parametrize("size", [1, 31, 32, 33, 127, 128, 129, 1023, 4097, 100_003])
def test_sizes_around_every_boundary(size):
    compare(fusec.ElementwiseKernel(*ADD), np.arange(size, dtype="f4"), np.ones(size, "f4"))
    compare(fusec.ElementwiseKernel(*ADD), np.arange(size).astype("i1"), np.ones(size, "i1"))


def test_storage_types_keep_their_python_side():
    assert cuda.from_numpy(np.zeros(2, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
