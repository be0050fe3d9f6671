"""Questions that only a device answers: what other libraries and other contexts make of fusec's arrays and kernels."""

import numpy as np
import pytest

import fusec
from fusec.base import dtypes
from fusec.runtime import cuda
from fusec.runtime.cuda import driver

pytestmark = pytest.mark.hardware
KERNEL = ("float32 x", "float32 z", "z = x * 2 + 1", "update")


def made(count=1 << 20):
    """An array that a kernel still on its way writes, on the legacy default stream."""
    return fusec.ElementwiseKernel(*KERNEL)(cuda.from_numpy(np.arange(count, dtype="f4")))


EXPECTED = np.arange(1 << 20, dtype="f4") * 2 + 1


def test_cupy_takes_an_exported_array_on_any_stream():
    cupy = pytest.importorskip("cupy")
    np.testing.assert_array_equal(cupy.asarray(made()).get(), EXPECTED)
    np.testing.assert_array_equal(cupy.from_dlpack(made()).get(), EXPECTED)
    with cupy.cuda.Stream(non_blocking=True):
        np.testing.assert_array_equal(cupy.asarray(made()).get(), EXPECTED)
        np.testing.assert_array_equal(cupy.from_dlpack(made()).get(), EXPECTED)


def test_torch_takes_an_exported_array_on_any_stream():
    torch = pytest.importorskip("torch")
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            np.testing.assert_array_equal(torch.from_dlpack(made()).cpu().numpy(), EXPECTED)
            array = made()
            if stream != torch.cuda.default_stream():
                stream.wait_stream(torch.cuda.default_stream())  # as_tensor does not look at the interface's stream
            np.testing.assert_array_equal(torch.as_tensor(array, device="cuda").cpu().numpy(), EXPECTED)


def test_jax_takes_an_exported_array():
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(made())), EXPECTED)


def test_numba_takes_an_exported_array():
    numba_cuda = pytest.importorskip("numba.cuda")
    np.testing.assert_array_equal(numba_cuda.as_cuda_array(made()).copy_to_host(), EXPECTED)


def test_kernels_run_in_a_context_that_is_not_the_primary_one():
    api = __import__("cuda.bindings.driver", fromlist=["driver"])
    device = driver.device(0)
    kernel = fusec.ElementwiseKernel(*KERNEL)
    x = cuda.from_numpy(np.arange(100, dtype="f4"))
    kernel(x)
    handle = driver.check(api.cuDeviceGet(0), "open")
    resource = driver.check(api.cuDeviceGetDevResource(handle, api.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM), "ask")
    made_of, _, _ = driver.check(api.cuDevSmResourceSplitByCount(1, resource, 0, 16), "split")
    description = driver.check(api.cuDevResourceGenerateDesc(list(made_of[:1]), 1), "describe")
    flags = api.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
    green = driver.check(api.cuGreenCtxCreate(description, handle, flags), "make a green context")
    context = driver.check(api.cuCtxFromGreenCtx(green), "take its context")
    driver.check(api.cuCtxPushCurrent(context), "enter")
    try:
        z = kernel(kernel(x))
        np.testing.assert_array_equal(z.numpy(), np.arange(100, dtype="f4") * 4 + 3)
        stream = driver.check(api.cuGreenCtxStreamCreate(green, api.CUstream_flags.CU_STREAM_NON_BLOCKING, 0), "stream")
        z = kernel(x, stream=int(stream))
        np.testing.assert_array_equal(z.numpy(), np.arange(100, dtype="f4") * 2 + 1)
        del z
    finally:
        driver.check(api.cuCtxPopCurrent(), "leave")
    assert int(api.cuCtxGetDevice()[1]) == device.ordinal


def test_the_driver_tells_the_device_of_memory_of_every_kind():
    api = __import__("cuda.bindings.driver", fromlist=["driver"])
    driver.device(0)
    entered = driver.enter(driver.device(0))
    try:
        managed = driver.check(api.cuMemAllocManaged(4096, api.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value), "take")
        plain = driver.check(api.cuMemAlloc(4096), "take")
        assert driver.ordinal_of_pointer(int(managed)) == 0
        assert driver.ordinal_of_pointer(int(plain) + 100) == 0
        assert driver.ordinal_of_pointer(cuda.empty((10,), dtypes.INT8).pointer) == 0
        assert driver.ordinal_of_pointer(np.zeros(3).ctypes.data) is None
        driver.check(api.cuMemFree(managed), "free")
        driver.check(api.cuMemFree(plain), "free")
    finally:
        driver.leave(entered)


def test_division_and_square_root_keep_subnormals():
    tiny = np.frombuffer(np.arange(1, 1 << 16, 37, dtype="u4").tobytes(), "f4")  # subnormal
    kernel = fusec.ElementwiseKernel("float32 x, float32 y", "float32 a, float32 b", "a = x / y; b = sqrt(x) * y")
    for y in (np.float32(3), np.float32(1e-3), np.float32(1e20)):
        there = kernel(cuda.from_numpy(tiny), cuda.from_numpy(np.full_like(tiny, y)))
        for got, expected in zip(there, kernel(tiny, np.full_like(tiny, y)), strict=True):
            np.testing.assert_array_equal(got.numpy().view("u4"), expected.view("u4"))
