"""Run by test_stub_driver.py where libcuda is the stand-in: the real cuda.core and bindings, end to end."""

import ctypes
import gc
import os
import types
from array import array

import handwritten
import ml_dtypes
import numpy as np
import pytest
from stub import host_twin

from fusec.base import dtypes
from fusec.base.kernel_abi import Kernel
from fusec.errors import targets
from fusec.runtime import cuda
from fusec.runtime.cuda import CompiledModule, dlpack, driver

library = ctypes.CDLL("libcuda.so.1")
library.stub_log.restype = ctypes.c_char_p


def calls() -> list[str]:
    return [line.strip() for line in library.stub_log().decode().splitlines()]


@pytest.fixture(autouse=True)
def _fresh_log():
    gc.collect()
    library.stub_log_clear()


@pytest.fixture
def failing(monkeypatch):
    def fail(entry: str, code: int) -> None:
        monkeypatch.setitem(os.environ, "FUSEC_STUB_FAIL", f"{entry}={code}")

    return fail


modules: dict[str, CompiledModule] = {}


def compiled(kernel: Kernel) -> CompiledModule:
    if kernel.name not in modules:
        modules[kernel.name] = cuda.compile(kernel)
        host_twin(modules[kernel.name].image.code, kernel.source, kernel.name)
    return modules[kernel.name]


# --- launches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 255, 256, 257, 5000])
def test_a_launch_computes_every_element(size):
    rng = np.random.default_rng(size)
    x, y = rng.standard_normal((2, size)).astype("f4")
    a, b = cuda.from_numpy(x), cuda.from_numpy(y)
    cuda.launch(compiled(handwritten.AXPY), (size, a.pointer, b.pointer, 2.5), size)
    np.testing.assert_array_equal(b.numpy(), np.float32(2.5) * x + y)


@pytest.mark.parametrize("block_size", [1, 32, 100, 1024, None])
def test_every_block_size_visits_every_element_once(block_size):
    size = 20_000  # more than 4 multiprocessors hold at once with one thread a block
    z = cuda.from_numpy(np.zeros(size, "i4"))
    cuda.launch(compiled(handwritten.COUNT), (size, z.pointer), size, None, block_size)
    np.testing.assert_array_equal(z.numpy(), 1)


def test_the_module_loads_for_the_device_at_hand_and_only_once():
    module = cuda.compile(handwritten.AXPY)
    assert module.image.goal.arch == "sm_90"
    cuda.launch(module, (0, 0, 0, 0.0), 1)
    cuda.launch(module, (0, 0, 0, 0.0), 1)
    assert len([call for call in calls() if call.startswith("cuLibraryLoadData")]) == 1


def test_size_zero_enqueues_nothing():
    cuda.launch(compiled(handwritten.COUNT), (0, 0), 0)
    assert not [call for call in calls() if call.startswith("cuLaunchKernel")]


def test_every_scalar_type_reaches_the_kernel_with_its_own_bits():
    z = cuda.from_numpy(np.zeros(80, "i1"))
    values = (z.pointer, True, -3, 2**64 - 1, 1.5, -2.5, 1e300, -0.0, 1 - 2j, 3 - 4j, 3 - 4j)
    cuda.launch(compiled(handwritten.SCALARS), values, 1, None, 1)
    words = z.numpy().reshape(10, 8)
    expected = [
        np.bool_(True), np.int8(-3), np.uint64(2**64 - 1), np.float16(1.5), ml_dtypes.bfloat16(-2.5),
        np.float32(np.inf), np.float64(-0.0), np.complex64(1 - 2j), np.float64(3), np.float64(-4),
    ]  # fmt: skip
    for word, value in zip(words, expected, strict=True):
        assert word.tobytes()[: value.nbytes] == value.tobytes(), value


def test_ready_words_are_passed_as_they_are():
    x = cuda.from_numpy(np.arange(4.0))
    z = cuda.empty((4,), dtypes.FLOAT64)
    cuda.launch(compiled(handwritten.STRIDED), array("q", [4, x.pointer, 8, z.pointer]), 4)
    np.testing.assert_array_equal(z.numpy(), np.arange(4.0))


def test_strides_may_be_negative_and_zero():
    x = cuda.from_numpy(np.arange(6.0))
    z = cuda.empty((3,), dtypes.FLOAT64)
    cuda.launch(compiled(handwritten.STRIDED), (3, x.pointer + 40, -16, z.pointer), 3)
    np.testing.assert_array_equal(z.numpy(), [5, 3, 1])
    cuda.launch(compiled(handwritten.STRIDED), (3, x.pointer + 8, 0, z.pointer), 3)
    np.testing.assert_array_equal(z.numpy(), [1, 1, 1])


def test_a_block_is_no_larger_than_the_kernel_can_run(monkeypatch):
    monkeypatch.setitem(os.environ, "FUSEC_STUB_KERNEL_THREADS", "640")
    cuda.launch(cuda.compile(handwritten.COUNT), (0, 0), 5000, None, 1024)
    assert any("grid 8 block 640" in call for call in calls())


def test_launch_errors_carry_the_words_of_the_driver(failing):
    failing("cuLaunchKernel", 701)
    with pytest.raises(
        RuntimeError, match=r"kernel 'count': too many resources.*CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"
    ) as caught:
        cuda.launch(compiled(handwritten.COUNT), (0, 0), 1000, None, 128)
    assert "grid 8, block 128, device 0" in str(caught.value)


def test_a_fault_inside_a_kernel_surfaces_at_synchronise(failing):
    failing("cuStreamSynchronize", 700)
    with pytest.raises(RuntimeError, match="an illegal memory access"):
        cuda.synchronise(1, 0)


def test_an_image_the_driver_refuses_says_so(failing):
    failing("cuLibraryLoadData", 209)
    with pytest.raises(RuntimeError, match="load kernel 'axpy': no kernel image is available"):
        cuda.launch(cuda.compile(handwritten.AXPY), (0, 0, 0, 0.0), 1)


def test_a_driver_of_an_older_cuda_is_named(failing, monkeypatch):
    failing("cuLibraryLoadData", 200)
    monkeypatch.setitem(os.environ, "FUSEC_STUB_VERSION", "12040")
    with pytest.raises(RuntimeError, match=r"driver supports CUDA 12\.4, but NVRTC here generates code for CUDA 13"):
        cuda.launch(cuda.compile(handwritten.AXPY), (0, 0, 0, 0.0), 1)


# --- devices and streams -------------------------------------------------------------------------------------------


def test_another_device_is_current_only_during_the_launch():
    cuda.launch(compiled(handwritten.COUNT), (0, 0), 1, cuda.StreamOn(device=0))
    cuda.launch(compiled(handwritten.COUNT), (0, 0), 1, cuda.StreamOn(device=1))
    launches = [call for call in calls() if call.startswith("cuLaunchKernel")]
    assert [call.rsplit(maxsplit=1)[1] for call in launches] == ["0", "1"]
    assert cuda.current_ordinal() == 0


def test_a_device_that_is_not_there_is_an_error():
    with pytest.raises(RuntimeError, match=r"no CUDA device 7: the driver reports 2 devices"):
        cuda.device(7)


class Foreign:
    """A stream of another library."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Protocol:
    def __cuda_stream__(self):
        return (0, 4096)


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (None, 1), (0, 1), (2, 2), (4096, 4096), (Protocol(), 4096), (Foreign(ptr=4096), 4096), (Foreign(ptr=0), 1),
        (Foreign(cuda_stream=4096), 4096), (Foreign(handle=ctypes.c_void_p(4096)), 4096),
    ],
)  # fmt: skip
def test_streams_of_every_library_become_handles(stream, expected):
    assert cuda.handle(stream) == expected


@pytest.mark.parametrize("stream", ["default", True, 1.0, -1, object()])
def test_other_objects_are_no_streams(stream):
    with pytest.raises(TypeError, match="is not a CUDA stream"):
        cuda.handle(stream)


def test_the_launch_goes_to_the_callers_stream():
    from cuda.core import Device

    Device(0).set_current()
    stream = Device(0).create_stream()
    cuda.launch(compiled(handwritten.COUNT), (0, 0), 1, cuda.StreamOn(stream))
    assert any(f"stream 0x{int(stream.handle):x} " in call for call in calls())


def stream_of_core():
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    return device.create_stream()


def test_a_launch_waits_for_the_producers_streams_and_they_for_it():
    producer, consumer = stream_of_core(), stream_of_core()
    own, ours = int(producer.handle), int(consumer.handle)
    x = cuda.describe(Exporter(cuda.from_numpy(np.zeros(3, "f4")), stream=own))
    library.stub_log_clear()
    cuda.acquire([x], ours, 0)
    assert [call.split()[0] for call in calls()] == ["cuEventCreate", "cuEventRecord", "cuStreamWaitEvent"]
    assert calls()[1].endswith(f"0x{own:x}")
    assert f"cuStreamWaitEvent 0x{ours:x}" in calls()[2]
    library.stub_log_clear()
    cuda.release([x], ours, 0)
    assert calls()[1].endswith(f"0x{ours:x}")
    assert f"cuStreamWaitEvent 0x{own:x}" in calls()[2]


def test_nothing_waits_on_one_and_the_same_stream():
    x = cuda.describe(Exporter(cuda.from_numpy(np.zeros(3, "f4")), stream=1))
    library.stub_log_clear()
    cuda.acquire([x], 1, 0)
    assert not calls()


def test_an_array_of_ours_remembers_the_stream_of_its_last_use():
    z, stream = cuda.empty((3,), dtypes.FLOAT32), int(stream_of_core().handle)
    cuda.acquire([cuda.describe(z)], stream, 0)
    assert z.__cuda_array_interface__["stream"] == stream


# --- arrays --------------------------------------------------------------------------------------------------------


class Exporter:
    """An array of another library that speaks the CUDA array interface alone."""

    def __init__(self, source: cuda.CudaArray, **changes):
        self.source = source
        self.__cuda_array_interface__ = {**source.__cuda_array_interface__, "stream": None, **changes}


class Capsules:
    """An array of another library that speaks DLPack alone."""

    def __init__(self, source: cuda.CudaArray):
        self.source = source
        self.asked = []

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()

    def __dlpack__(self, stream=None, max_version=None):
        self.asked.append(stream)
        return self.source.__dlpack__(stream=stream, max_version=max_version)


NUMERIC = [row for row in dtypes.ALL if row not in (dtypes.BFLOAT16, dtypes.FLOAT8_E4M3FN, dtypes.FLOAT8_E5M2)]


@pytest.mark.parametrize("row", dtypes.ALL, ids=repr)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (4, 0, 2)])
def test_arrays_come_back_from_the_device_as_they_went(row, shape):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(row.numpy)
    back = cuda.from_numpy(values).numpy()
    assert back.dtype == values.dtype
    assert back.shape == shape
    assert back.tobytes() == values.tobytes()


def test_fortran_order_is_kept():
    values = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    there = cuda.from_numpy(values)
    assert there.strides == values.strides
    np.testing.assert_array_equal(there.numpy(), values)


@pytest.mark.parametrize("row", NUMERIC, ids=repr)
@pytest.mark.parametrize("wrap", [Exporter, Capsules, lambda source: source])
def test_both_protocols_describe_the_same_array(row, wrap):
    source = cuda.from_numpy(np.asfortranarray(np.zeros((2, 3), row.numpy)))
    seen = cuda.describe(wrap(source), 1)
    assert (seen.pointer, seen.shape, seen.strides) == (source.pointer, source.shape, source.strides)
    assert (seen.dtype, seen.device, seen.readonly) == (row, 0, False)


def test_the_interface_names_the_device_by_its_address():
    seen = [cuda.describe(Exporter(cuda.empty((3,), dtypes.INT8, device=device))) for device in (0, 1)]
    assert [array.device for array in seen] == [0, 1]
    with pytest.raises(ValueError, match="some are on device 0 and on 1"):
        cuda.same_device(seen)
    assert cuda.same_device(seen[1:]) == 1


def test_version_two_and_missing_strides_mean_c_order():
    source = cuda.from_numpy(np.zeros((2, 3), "i2"))
    assert cuda.describe(Exporter(source, version=2, strides=None)).strides == (6, 2)


def test_empty_arrays_need_no_device():
    seen = cuda.describe(Exporter(cuda.empty((0,), dtypes.INT8), data=(0, False)))
    assert seen.device is None
    assert cuda.same_device([seen]) == 0


def test_a_dlpack_producer_hears_the_consumers_stream_and_its_memory_stays():
    producer = Capsules(cuda.from_numpy(np.arange(5.0)))
    seen = cuda.describe(producer, 2)
    assert producer.asked == [2]
    address = seen.pointer
    del producer
    gc.collect()
    other = cuda.from_numpy(np.arange(5.0))
    assert other.pointer != address
    del seen
    gc.collect()
    assert cuda.from_numpy(np.arange(5.0)).pointer == address  # nobody has it, so that new arrays may


def test_read_only_arrays_are_no_outputs():
    source = cuda.from_numpy(np.zeros(3))
    seen = cuda.describe(Exporter(source, data=(source.pointer, True)))
    with pytest.raises(ValueError, match=r"a read-only .*Exporter cannot be an output"):
        cuda.check_writable(seen)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"version": 1}, "version 1 of its interface is too old"), ({"mask": object()}, "it has a mask"),
        ({"stream": 0}, "0 in its interface is not a stream"), ({"strides": (1, 2)}, "1 extents but 2 strides"),
        ({"data": (64, False)}, "does not know its address 0x40"), ({"data": None}, "malformed"),
    ],
)  # fmt: skip
def test_interfaces_that_cannot_be_honoured_are_refused(changes, text):
    with pytest.raises(TypeError, match=text):
        cuda.describe(Exporter(cuda.from_numpy(np.zeros(3)), **changes))


@pytest.mark.parametrize("typestr", [">f4", "|O8", "<M8[ns]", "<f16", "|V2"])
def test_foreign_types_and_byte_orders_are_refused(typestr):
    with pytest.raises(TypeError, match="is not supported"):
        cuda.describe(Exporter(cuda.from_numpy(np.zeros(3)), typestr=typestr))


def test_a_void_typestr_is_read_by_the_arrays_own_dtype():
    exporter = Exporter(cuda.from_numpy(np.zeros(3, ml_dtypes.bfloat16)))
    exporter.dtype = np.dtype(ml_dtypes.bfloat16)
    assert cuda.describe(exporter).dtype == dtypes.BFLOAT16


def test_host_arrays_are_refused_beside_device_arrays():
    assert not cuda.is_device_array(np.zeros(3))
    with pytest.raises(TypeError, match=r"a numpy\.ndarray in host memory cannot be used together with CUDA arrays"):
        cuda.describe(np.zeros(3))


def test_arrays_of_other_accelerators_are_named():
    class Rocm:
        def __dlpack_device__(self):
            return (10, 0)

        def __dlpack__(self, **options):
            raise AssertionError("must not be asked")

    assert not cuda.is_device_array(Rocm())
    with pytest.raises(TypeError, match="on a device of kind ROCm"):
        cuda.describe(Rocm())


def test_an_exporter_that_refuses_dlpack_is_asked_for_its_interface():
    class Both(Exporter):
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            raise BufferError("conjugated")

    source = cuda.from_numpy(np.zeros(3))
    assert cuda.describe(Both(source)).pointer == source.pointer
    without = Both(source)
    del without.__cuda_array_interface__
    with pytest.raises(TypeError, match="conjugated"):
        cuda.describe(without)


def test_our_arrays_export_dlpack_on_the_consumers_stream():
    array_of_ours = cuda.from_numpy(np.arange(6.0).reshape(2, 3))
    library.stub_log_clear()
    contents = dlpack.read(array_of_ours.__dlpack__(stream=2, max_version=(1, 0)))
    assert (contents.pointer, contents.shape, contents.strides) == (array_of_ours.pointer, (2, 3), (24, 8))
    assert any(call.startswith("cuStreamWaitEvent 0x2") for call in calls())
    with pytest.raises(BufferError, match="without copying"):
        array_of_ours.__dlpack__(copy=True)


def test_our_arrays_never_become_numpy_arrays_silently():
    with pytest.raises(TypeError, match=r"call \.numpy\(\)"):
        np.asarray(cuda.from_numpy(np.zeros(3)))


# --- new arrays ----------------------------------------------------------------------------------------------------


VIEWS = [
    lambda x: x[1], lambda x: x[..., ::-1], lambda x: x[::-2, None, 1:3], lambda x: x.T, lambda x: x[2:2, 5:],
    lambda x: x.transpose(1, 0, 2), lambda x: x.reshape(6, -1), lambda x: x[1].reshape((2, 6)), lambda x: x[0, 1, 2],
    lambda x: x[::-1].T[1:][::-1].transpose(),
]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_our_arrays_are_numpys(view):
    host = np.arange(36, dtype="f4").reshape(3, 3, 4)
    whole = cuda.from_numpy(host)
    seen, wanted = view(whole), view(host)
    assert (seen.shape, seen.dtype) == (np.shape(wanted), np.asarray(wanted).dtype)
    np.testing.assert_array_equal(seen.numpy(), wanted)
    if np.size(wanted):
        assert seen.strides == wanted.strides
        start = int(np.reshape(wanted, -1)[0]) * 4
        assert seen.pointer - whole.pointer == start
    del whole
    gc.collect()
    np.testing.assert_array_equal(seen.numpy(), wanted)


def test_views_of_our_arrays_make_no_copies():
    whole = cuda.from_numpy(np.arange(12.0).reshape(3, 4))
    with pytest.raises(ValueError, match="copy"):
        whole.T.reshape(12)
    with pytest.raises(IndexError, match=r"only integers, slices, None and \.\.\. index"):
        whole[[0, 1]]
    with pytest.raises(IndexError, match="out of bounds"):
        whole[3]
    with pytest.raises(BufferError, match="no strides that are negative"):
        whole[::-1].__dlpack__()
    z = whole[1:, ::-1]
    z.stream = int(stream_of_core().handle)
    assert whole.stream == z.stream


def test_exhausted_memory_names_the_size(failing):
    failing("cuMemAllocFromPoolAsync", 2)
    with pytest.raises(RuntimeError, match="device 0 has no room for an array of 4000 bytes"):
        cuda.empty((1000,), dtypes.FLOAT32)


def test_memory_goes_back_to_the_pool_on_the_stream_of_its_last_use():
    z = cuda.empty((3,), dtypes.FLOAT32)
    stream = int(stream_of_core().handle)
    z.stream = stream
    library.stub_log_clear()
    del z
    gc.collect()
    assert calls() == [f"cuMemFreeAsync 0x{stream:x}"]


def test_memory_is_cleared_on_the_stream():
    z = cuda.from_numpy(np.ones(5))
    cuda.fill_with_zeros(z.pointer, 32, 0, z.stream)
    cuda.fill_with_zeros(0, 0, 0, z.stream)
    np.testing.assert_array_equal(z.numpy(), [0, 0, 0, 0, 1])


@pytest.mark.parametrize("order", [None, (0, 1), (1, 0)])
def test_new_arrays_lie_in_the_order_asked_for(order):
    z = cuda.allocate(cuda.empty((1,), dtypes.INT8), (2, 3), dtypes.FLOAT64, order)
    assert z.strides == ((8, 16) if order == (1, 0) else (24, 8))


class FakeTensor:
    __module__ = "torch"
    is_cuda = True
    device = "cuda:1"


class FakeNdarray:
    __module__ = "cupy"
    device = types.SimpleNamespace(id=1)


class FakeNumba:
    __module__ = "numba.cuda.cudadrv.devicearray"


class FakeJax:
    __module__ = "jaxlib.xla_extension"


class Scope:
    """A context manager that notes what it was made from."""

    log: list = []

    def __init__(self, *values):
        self.values = values

    def __enter__(self):
        Scope.log.append(self.values)

    def __exit__(self, *failure):
        pass


def test_new_arrays_are_of_the_library_of_the_inputs(monkeypatch):
    made = []
    torch = types.SimpleNamespace(
        float32="torch.float32",
        empty_strided=lambda *a, **k: made.append((a, k)) or "tensor",
        cuda=types.SimpleNamespace(
            current_stream=lambda device: Foreign(cuda_stream=64 if "1" in str(device) else 65),
            default_stream=lambda device: "default",
            ExternalStream=lambda handle, device: ("external", handle),
            stream=Scope,
        ),
    )
    monkeypatch.setitem(cuda.allocate.__globals__["sys"].modules, "torch", torch)
    assert cuda.stream_for([3, FakeTensor()]) == 64
    assert cuda.stream_for([FakeTensor()], 5) == 5
    assert cuda.allocate(FakeTensor(), (2, 3), dtypes.FLOAT32, (1, 0), cuda.StreamOn(64, 1)) == "tensor"
    assert made == [(((2, 3), (1, 2)), {"dtype": "torch.float32", "device": "cuda:1"})]
    Scope.log.clear()
    cuda.allocate(FakeTensor(), (2,), dtypes.FLOAT32, on=cuda.StreamOn(128))
    cuda.allocate(FakeTensor(), (2,), dtypes.FLOAT32, on=cuda.StreamOn(1))
    assert Scope.log == [(("external", 128),), ("default",)]


def test_cupy_allocates_packed_and_turns_the_axes(monkeypatch):
    cupy = types.SimpleNamespace(
        empty=lambda shape, dtype: np.empty(shape, dtype),
        cuda=types.SimpleNamespace(Device=Scope, get_current_stream=lambda device: Foreign(ptr=0), Stream=object),
    )
    monkeypatch.setitem(cuda.allocate.__globals__["sys"].modules, "cupy", cupy)
    assert cuda.stream_for([FakeNdarray()]) == 1
    made = cuda.allocate(FakeNdarray(), (2, 3, 4), dtypes.INT16, (2, 0, 1), cuda.StreamOn(1))
    assert made.shape == (2, 3, 4)
    assert made.strides == (6, 2, 12)


@pytest.mark.parametrize("is_old", [False, True])
def test_cupy_allocates_on_the_stream_of_the_call(monkeypatch, is_old):
    of_protocol = {"from_external": lambda stream: Scope(*stream.__cuda_stream__())}
    streams = {"ExternalStream": Scope, "Stream": object} if is_old else {"Stream": Foreign(**of_protocol)}
    streams |= {"Device": Scope, "get_current_stream": lambda device: Foreign(ptr=0)}
    cupy = types.SimpleNamespace(empty=np.empty, cuda=types.SimpleNamespace(**streams))
    monkeypatch.setitem(cuda.allocate.__globals__["sys"].modules, "cupy", cupy)
    Scope.log.clear()
    cuda.allocate(FakeNdarray(), (2,), dtypes.INT16, on=cuda.StreamOn(64, 1))
    assert Scope.log == [(1,), (64, 1) if is_old else (0, 64)]


def test_numba_allocates_with_strides_on_its_device(monkeypatch):
    made = []
    numba_cuda = types.SimpleNamespace(
        gpus={1: Scope("gpu 1")},
        external_stream=lambda handle: ("external", handle),
        device_array=lambda *a, **k: made.append((a, k)) or "device array",
    )
    monkeypatch.setitem(cuda.allocate.__globals__["sys"].modules, "numba.cuda", numba_cuda)
    assert cuda.stream_for([FakeNumba()]) == 1
    Scope.log.clear()
    assert cuda.allocate(FakeNumba(), (2, 3), dtypes.INT16, (1, 0), cuda.StreamOn(64, 1)) == "device array"
    assert made == [(((2, 3), np.dtype("i2"), (2, 4)), {"stream": ("external", 64)})]
    assert Scope.log == [("gpu 1",)]


def test_jax_takes_the_array_once_the_launch_is_enqueued(monkeypatch):
    jax = types.SimpleNamespace(dlpack=types.SimpleNamespace(from_dlpack=lambda array: ("jax", array)))
    monkeypatch.setitem(cuda.allocate.__globals__["sys"].modules, "jax", jax)
    z = cuda.allocate(FakeJax(), (2,), dtypes.INT16)
    assert isinstance(z, cuda.CudaArray)
    assert cuda.deliver(FakeJax(), z) == ("jax", z)
    assert cuda.deliver(FakeTensor(), z) is z


def test_jax_arrays_are_read_only():
    exporter = Exporter(cuda.from_numpy(np.zeros(3)))
    exporter.__class__ = type("ArrayImpl", (Exporter,), {"__module__": "jaxlib.xla_extension"})
    assert cuda.describe(exporter).readonly


def test_errors_of_the_runtime_are_in_the_catalogue():
    assert driver.LIBRARY == "libcuda.so.1"
    assert targets.NoCudaDriver("libcuda.so.1").code == "F351"
