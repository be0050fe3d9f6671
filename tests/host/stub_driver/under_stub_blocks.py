"""Run by test_stub_driver.py where libcuda is the stand-in: block programs through the real cuda.core, end to end."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
import stub
from cuda.bindings import driver as api
from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch

sys.path.append(str(Path(__file__).parents[1]))
import fibers_cuda_texts as texts

library = ctypes.CDLL("libcuda.so.1")
library.stub_fault.restype = ctypes.c_char_p
SPOILT = {bug.name: bug for bug in texts.BUGS}
FOUND = {
    "missing barrier in the loop": "CUDA_ERROR_LAUNCH_FAILED",
    "barrier in divergent flow": "CUDA_ERROR_LAUNCH_FAILED",
    "write overrun": "CUDA_ERROR_ILLEGAL_ADDRESS",
}
DYNAMIC_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@pytest.fixture(scope="module")
def device() -> Device:
    found = Device(0)
    found.set_current()
    return found


@pytest.fixture(scope="module")
def code(device) -> ObjectCode:
    """All programs, and the spoilt ones, as the kernels of one image."""
    spoilt = [SPOILT[name].text(texts.PROGRAMS, f"spoilt{at}") for at, name in enumerate(FOUND)]
    source = "\n".join([texts.TREE, texts.LAST, texts.TRANSPOSE, *spoilt])
    image = Program(source, "c++", ProgramOptions(arch="sm_90")).compile("cubin").code
    marked = bytes(image) + b"TWIN:blocks"
    stub.block_twin(marked, source)
    return ObjectCode.from_cubin(marked)


class Memory:
    """Arrays on the device, for the time of a test."""

    def __init__(self, device: Device) -> None:
        self.stream = device.create_stream()
        self.device = device
        self.buffers = {}

    def put(self, array: np.ndarray) -> int:
        buffer = self.device.memory_resource.allocate(array.nbytes, stream=self.stream)
        address = int(buffer.handle)
        self.buffers[address] = buffer
        api.cuMemcpyHtoD(address, array.ctypes.data, array.nbytes)
        return address

    def take(self, address: int, like: np.ndarray) -> np.ndarray:
        got = np.empty_like(like)
        (code,) = api.cuMemcpyDtoH(got.ctypes.data, address, got.nbytes)
        assert code == api.CUresult.CUDA_SUCCESS, code
        return got


@pytest.fixture
def memory(device):
    library.stub_forget_fault()
    yield Memory(device)
    library.stub_forget_fault()


VALUES = np.arange(1000, dtype="f4")
PARTS = np.array([VALUES[np.arange(1000) // 128 % 4 == b].sum() for b in range(4)], "f4")


def run_tree(memory: Memory, code: ObjectCode, name: str = "tree", **config: int) -> np.ndarray:
    x, out = memory.put(VALUES), memory.put(np.zeros(4, "f4"))
    settings = LaunchConfig(**{"grid": 4, "block": 128, **config})
    launch(memory.stream, settings, code.get_kernel(name), x, out, np.int32(1000))
    memory.stream.sync()
    return memory.take(out, PARTS)


def test_a_kernel_with_barriers_and_shared_memory_runs(memory, code):
    np.testing.assert_array_equal(run_tree(memory, code), PARTS)


def test_kernels_of_one_image_and_dynamic_shared_memory_run(memory, code):
    x, partial, counter, out = (memory.put(each) for each in (VALUES, np.empty(5, "f4"), np.zeros(1, "u4"), VALUES[:1]))
    config = LaunchConfig(grid=5, block=128, shmem_size=16)
    for _ in range(2):  # the kernel leaves the counter as it found it
        launch(memory.stream, config, code.get_kernel("last"), x, partial, counter, out, np.int32(1000))
        memory.stream.sync()
        assert memory.take(out, VALUES[:1]) == VALUES.sum()


def test_blocks_and_grids_of_two_axes_run(memory, code):
    table = np.arange(37 * 21, dtype="i2").reshape(37, 21)
    x, out = memory.put(table), memory.put(np.zeros_like(table))
    config = LaunchConfig(grid=(2, 3), block=(16, 16))
    launch(memory.stream, config, code.get_kernel("transpose"), x, out, np.int32(37), np.int32(21))
    memory.stream.sync()
    np.testing.assert_array_equal(memory.take(out, table.T.copy()), table.T)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({"block": 1056}, "CUDA_ERROR_INVALID_VALUE"),
        ({"block": (8, 4, 65)}, "CUDA_ERROR_INVALID_VALUE"),
        ({"grid": (1, 65536)}, "CUDA_ERROR_INVALID_VALUE"),
        ({"grid": (1, 1, 65536)}, "CUDA_ERROR_INVALID_VALUE"),
        ({"block": 160}, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        ({"shmem_size": 49152}, "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_launches_beyond_the_limits_are_the_errors_of_the_driver(memory, code, config, error):
    kernel = code.get_kernel("tree")
    x, out = memory.put(VALUES), memory.put(np.zeros(4, "f4"))
    settings = {"grid": 4, "block": 128, "shmem_size": 0, **config}
    shape = [
        (*each, 1, 1, 1)[:3] if isinstance(each, tuple) else (each, 1, 1)
        for each in map(settings.get, ("grid", "block"))
    ]
    values = (ctypes.c_uint64(x), ctypes.c_uint64(out), ctypes.c_int(1000))
    params = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
    function = api.CUfunction(int(kernel.handle))
    shared = settings["shmem_size"]
    (code_,) = api.cuLaunchKernel(function, *shape[0], *shape[1], shared, 0, ctypes.addressof(params), 0)
    assert code_.name == error
    np.testing.assert_array_equal(run_tree(memory, code), PARTS)  # a launch that is refused leaves no fault behind


def test_more_shared_memory_can_be_asked_for(memory, code):
    kernel = code.get_kernel("last")
    function = api.CUfunction(int(kernel.handle))
    x, partial, counter, out = (memory.put(each) for each in (VALUES, np.empty(5, "f4"), np.zeros(1, "u4"), VALUES[:1]))
    (refused,) = api.cuFuncSetAttribute(function, api.CUfunction_attribute(DYNAMIC_BYTES), 232448)
    assert refused == api.CUresult.CUDA_ERROR_INVALID_VALUE  # the kernel has a static variable too
    (done,) = api.cuFuncSetAttribute(function, api.CUfunction_attribute(DYNAMIC_BYTES), 65536)
    assert done == api.CUresult.CUDA_SUCCESS
    config = LaunchConfig(grid=5, block=128, shmem_size=65536)
    launch(memory.stream, config, kernel, x, partial, counter, out, np.int32(1000))
    memory.stream.sync()
    assert memory.take(out, VALUES[:1]) == VALUES.sum()


@pytest.mark.parametrize("at", range(len(FOUND)), ids=list(FOUND))
def test_faults_of_a_kernel_stay_in_its_context(memory, code, at):
    name, error = list(FOUND.items())[at]
    with pytest.raises(Exception, match=error):
        run_tree(memory, code, f"spoilt{at}")
    assert SPOILT[name].name in FOUND
    assert f"spoilt{at}: " in library.stub_fault().decode()
    with pytest.raises(Exception, match=error):
        run_tree(memory, code)
