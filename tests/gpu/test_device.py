"""What only a device can show: sizes beyond 2^31, streams, several devices, faults, other libraries' arrays."""

import subprocess
import sys

import numpy as np
import pytest

import fusec
from fusec.base import dtypes
from fusec.errors import FusecError
from fusec.runtime import cuda

UPDATE = ("float32 x", "float32 z", "z = x * 2 + 1", "update")


# --- sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.hardware
@pytest.mark.parametrize("extra", [-1, 0, 1, 12345])
def test_more_than_two_to_the_31_positions_of_a_broadcast_array(extra):
    size = (1 << 31) + extra
    kernel = fusec.ElementwiseKernel(
        "int8 x",
        "raw uint64 z",
        "if (i >= 2147483640) atomicAdd(&z[0], (unsigned long long)(i - 2147483640 + x))",
        "tail",
    )
    one = cuda.from_numpy(np.ones(1, "i1"))

    class Everywhere:
        __cuda_array_interface__ = {**one.__cuda_array_interface__, "shape": (size,), "strides": (0,)}

    z = cuda.from_numpy(np.zeros(1, "u8"))
    kernel(Everywhere(), z)
    expected = sum(position - 2147483640 + 1 for position in range(2147483640, size))
    assert z.numpy()[0] == expected


@pytest.mark.hardware
def test_more_than_two_to_the_31_bytes_of_real_memory():
    size = (1 << 31) + 4099
    kernel = fusec.ElementwiseKernel("int8 x", "int8 z", "z = x + (signed char)(i % 127)", "huge")
    one = cuda.from_numpy(np.ones(1, "i1"))

    class Everywhere:
        __cuda_array_interface__ = {**one.__cuda_array_interface__, "shape": (size,), "strides": (0,)}

    z = kernel(Everywhere()).numpy()
    for start in (0, 1 << 30, (1 << 31) - 50, size - 100):
        at = np.arange(start, min(start + 100, size))
        np.testing.assert_array_equal(z[start : start + 100], (at % 127 + 1).astype("i1"))


def test_zero_size_launches_nothing_and_gives_an_empty_array():
    z = fusec.ElementwiseKernel(*UPDATE)(cuda.from_numpy(np.zeros((3, 0), "f4")))
    assert z.shape == (3, 0)


# --- streams -------------------------------------------------------------------------------------------------------


def new_stream():
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    return device.create_stream()


def test_a_chain_across_streams_keeps_its_order():
    kernel = fusec.ElementwiseKernel(*UPDATE)
    streams = [new_stream() for _ in range(3)]
    x = np.arange(1 << 16, dtype="f4")
    there, here = cuda.from_numpy(x), x
    for step in range(30):
        there, here = kernel(there, stream=streams[step % 3]), kernel(here)
    np.testing.assert_array_equal(there.numpy(), here)


def test_the_result_remembers_the_stream_it_was_made_on():
    stream = new_stream()
    z = fusec.ElementwiseKernel(*UPDATE)(cuda.from_numpy(np.zeros(3, "f4")), stream=stream)
    assert z.__cuda_array_interface__["stream"] == int(stream.handle)


def test_something_that_is_no_stream_is_a_type_error():
    with pytest.raises(TypeError, match="a str is not a CUDA stream"):
        fusec.ElementwiseKernel(*UPDATE)(cuda.from_numpy(np.zeros(3, "f4")), stream="default")


# --- launches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_size", [1, 32, 96, 512, 1024])
def test_the_block_size_does_not_change_the_result(block_size):
    x = np.linspace(-5, 5, 10_001, dtype="f4")
    kernel = fusec.ElementwiseKernel(*UPDATE)
    np.testing.assert_array_equal(kernel(cuda.from_numpy(x), block_size=block_size).numpy(), kernel(x))


@pytest.mark.parametrize("block_size", [0, -1, 1025])
def test_impossible_block_sizes_are_value_errors(block_size):
    with pytest.raises(ValueError, match="block_size"):
        fusec.ElementwiseKernel(*UPDATE)(cuda.from_numpy(np.zeros(3, "f4")), block_size=block_size)


FAULT = """
import numpy as np, fusec
from fusec.runtime import cuda
kernel = fusec.ElementwiseKernel("raw int64 x, int64 at", "int64 z", "z = x[at]", "astray")
try:
    kernel(cuda.from_numpy(np.zeros(4, "i8")), cuda.from_numpy(np.full(64, 1 << 44))).numpy()
except fusec.FusecError as error:
    print(error)
"""


@pytest.mark.hardware
def test_a_fault_inside_a_kernel_becomes_an_error_with_the_words_of_the_driver():
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True)  # it spoils its process
    assert done.returncode == 0, done.stderr
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout


@pytest.mark.hardware
def test_memory_that_is_not_there_is_an_error_that_names_the_size():
    with pytest.raises(RuntimeError, match="has no room for an array of 1152921504606846976 bytes"):
        cuda.empty((1 << 60,), dtypes.INT8)


@pytest.mark.hardware
def test_a_thousand_calls_hold_no_memory():
    from cuda.bindings.driver import cuMemGetInfo

    kernel = fusec.ElementwiseKernel(*UPDATE)
    x = cuda.from_numpy(np.zeros(1 << 22, "f4"))
    kernel(x).numpy()
    before = cuMemGetInfo()[1]
    for _ in range(1000):
        z = kernel(x)
    z.numpy()
    assert before - cuMemGetInfo()[1] < 1 << 28  # 1000 results would take 16 GiB


def test_atomics_count_every_element():
    kernel = fusec.ElementwiseKernel("int32 x", "raw uint32 bins", "atomicAdd(&bins[x], 1u)", "histogram")
    x = np.random.default_rng(0).integers(0, 7, 100_000).astype("i4")
    bins = cuda.from_numpy(np.zeros(7, "u4"))
    kernel(cuda.from_numpy(x), bins)
    np.testing.assert_array_equal(bins.numpy(), np.bincount(x, minlength=7))


@pytest.mark.parametrize(
    ("bins", "dtype"),
    [(1, "int32"), (256, "int32"), (256, "int64"), (256, "int8"), (1500, "uint32"), (9000, "int32"), (50_000, "int32")],
)
def test_histograms_of_many_elements_count_each_of_them(bins, dtype):
    count = fusec.ElementwiseKernel("T x", "raw B bins", "atomicAdd(&bins[x], 1)", "count_each")
    range_of = fusec.ElementwiseKernel(
        "T x", "raw T least, raw T most", "atomicMin(&least[x % 7], x); atomicMax(&most[x % 7], x)", "range_of"
    )
    for size in (1 << 20, (1 << 20) + 4099):
        x = np.random.default_rng(bins).integers(0, bins, size).astype("u1" if bins <= 256 else "i4")
        given, held = cuda.from_numpy(x), cuda.from_numpy(np.ones(bins, dtype))
        for _ in range(3):
            count(given, held)
        np.testing.assert_array_equal(held.numpy(), (3 * np.bincount(x, minlength=bins) + 1).astype(dtype))
    x = np.random.default_rng(bins).integers(-(10**6), 10**6, 1 << 20).astype("i4")
    x -= x % 7 * (x < 0)  # C's remainders of these are not negative
    ends = [np.zeros(7, "i4"), np.zeros(7, "i4")]
    on_device = [cuda.from_numpy(each) for each in ends]
    range_of(cuda.from_numpy(x), *on_device)
    range_of(x, *ends)
    for found, expected in zip(on_device, ends, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected)


# --- devices -------------------------------------------------------------------------------------------------------


def test_host_and_device_arrays_do_not_mix():
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "mixed")
    with pytest.raises(TypeError, match=r"numpy\.ndarray in host memory cannot be used together with CUDA arrays"):
        kernel(cuda.from_numpy(np.zeros(3, "f4")), np.zeros(3, "f4"))


def second_device() -> bool:
    try:
        cuda.device(1)
    except FusecError:
        return False
    return True


def test_the_result_is_on_the_device_of_the_arguments():
    if not second_device():
        pytest.skip("one device only")
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "where_it_is")
    first, second = (cuda.from_numpy(np.ones(3, "f4"), device) for device in (0, 1))
    z = kernel(second, second)
    assert z.device == 1
    np.testing.assert_array_equal(z.numpy(), 2)
    assert cuda.current_ordinal() == 0
    with pytest.raises(ValueError, match="on device 0 and on 1"):
        kernel(first, second)


def test_repeated_calls_stay_on_the_device_of_their_arguments():
    if not second_device():
        pytest.skip("one device only")
    kernel = fusec.ElementwiseKernel(*UPDATE)
    there = [cuda.from_numpy(np.full(1000, device, "f4"), device) for device in (0, 1)]
    for turn in range(8):
        z = kernel(there[turn % 2])
        assert z.device == turn % 2
        np.testing.assert_array_equal(z.numpy(), turn % 2 * 2 + 1)
        kernel(there[turn % 2], z)
        np.testing.assert_array_equal(z.numpy(), turn % 2 * 2 + 1)
        assert cuda.current_ordinal() == 0


def test_the_driver_tells_which_device_an_address_is_on():
    if not second_device():
        pytest.skip("one device only")
    kernel = fusec.ElementwiseKernel(*UPDATE)
    for device in (1, 0, 1):
        owner = cuda.from_numpy(np.full(10, 3, "f4"), device)

        class Bare:
            __cuda_array_interface__ = owner.__cuda_array_interface__

        z = kernel(Bare())
        assert z.device == device
        np.testing.assert_array_equal(z.numpy(), 7)


@pytest.mark.hardware
def test_torch_tensors_of_two_devices_in_turn():
    torch = pytest.importorskip("torch")
    if not second_device():
        pytest.skip("one device only")
    kernel = fusec.ElementwiseKernel(*UPDATE)
    there = [torch.full((1000,), float(device), device=f"cuda:{device}") for device in (0, 1)]
    for turn in range(8):
        z = kernel(there[turn % 2])
        assert z.device == there[turn % 2].device
        assert torch.all(z == turn % 2 * 2 + 1)
        with torch.cuda.device(1):
            assert torch.all(kernel(there[1], torch.empty_like(there[1])) == 3)


# --- other libraries -----------------------------------------------------------------------------------------------


@pytest.mark.hardware
@pytest.mark.parametrize("row", dtypes.ALL, ids=repr)
def test_torch_tensors_in_and_out(row):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or not hasattr(torch, row.name):
        pytest.skip(f"this PyTorch has no {row} on CUDA")
    x = torch.arange(24).reshape(4, 6).to(getattr(torch, row.name)).cuda().T
    z = fusec.ElementwiseKernel("T x", "T z", "z = x", "copy")(x)
    assert isinstance(z, torch.Tensor)
    assert z.stride() == x.stride()
    assert torch.equal(z.view(torch.uint8) if row.bits == 8 else z, x.view(torch.uint8) if row.bits == 8 else x)


@pytest.mark.hardware
def test_torch_streams_order_the_work():
    torch = pytest.importorskip("torch")
    kernel = fusec.ElementwiseKernel(*UPDATE)
    side = torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(20):
            x = kernel(x)
        y = x + 0
    torch.cuda.current_stream().wait_stream(side)
    assert torch.all(y == float((1 << 20) - 1))


@pytest.mark.hardware
def test_torch_tensors_that_need_a_gradient_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"requires? grad"):
        fusec.ElementwiseKernel(*UPDATE)(torch.zeros(3, device="cuda", requires_grad=True))


@pytest.mark.hardware
def test_cupy_arrays_in_and_out():
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(24, dtype="f4").reshape(4, 6).T
    z = fusec.ElementwiseKernel(*UPDATE)(x)
    assert isinstance(z, cupy.ndarray)
    cupy.testing.assert_array_equal(z, cupy.ElementwiseKernel(*UPDATE)(x))
    with cupy.cuda.Stream(non_blocking=True) as stream:
        z = fusec.ElementwiseKernel(*UPDATE)(x + 1)
    stream.synchronize()
    cupy.testing.assert_array_equal(z, (x + 1) * 2 + 1)


@pytest.mark.hardware
def test_numba_arrays_in_and_out():
    numba_cuda = pytest.importorskip("numba.cuda")
    x = numba_cuda.to_device(np.arange(6, dtype="f4"))
    z = fusec.ElementwiseKernel(*UPDATE)(x)
    assert type(z) is type(x)
    np.testing.assert_array_equal(z.copy_to_host(), np.arange(6, dtype="f4") * 2 + 1)


@pytest.mark.hardware
def test_jax_arrays_in_and_out():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(6, dtype="float32")
    if x.device.platform != "gpu":
        pytest.skip("this JAX has no CUDA")
    z = fusec.ElementwiseKernel(*UPDATE)(x)
    assert isinstance(z, jax.Array)
    np.testing.assert_array_equal(np.asarray(z), np.arange(6, dtype="f4") * 2 + 1)
    with pytest.raises(ValueError, match="read-only"):
        fusec.ElementwiseKernel(*UPDATE)(x, x)
