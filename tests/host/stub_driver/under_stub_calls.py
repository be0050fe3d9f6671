"""Run by test_stub_driver.py where libcuda is the stand-in: what repeated calls ask of the driver, and memory."""

import gc
import threading

import numpy as np
import pytest
from under_stub import calls, failing, library  # noqa: F401 - a fixture

import fusec
from fusec.base import dtypes
from fusec.runtime import cuda
from fusec.runtime.cuda import driver

pytestmark = pytest.mark.usefixtures("host_twins")
X = np.random.default_rng(5).random((6, 40))


def softened(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def two_ways(x, y):
    x = x * y / x.sum(axis=0)
    return x / x.sum(axis=1)[:, None]


def stored(x, y):
    y[...] = x * 2 + 1


def cases():
    """Functions of two arrays, and how many launches a repeated call has."""
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y + 1", "two_in")
    scaled = fusec.ElementwiseKernel("T x, T y, float64 a", "T z", "z = x * a + y", "scaled")
    total = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "all_of")
    return {
        "kernel": (kernel, 1),
        "kernel with out": (lambda x, y: kernel(x, y, out=y), 1),
        "kernel with a number": (lambda x, y: scaled(x, y, 2.5), 1),
        "reduction": (lambda x, y: total(x, axis=1), 1),
        "fused": (fusec.fuse(lambda x, y: x * y + np.sin(x)), 1),
        "fused with a number": ((lambda f: lambda x, y: f(x, y, 3.5))(fusec.fuse(lambda x, y, a: x * a + y)), 1),
        "fused with an extent": ((lambda f: lambda x, y: f(x, 3))(fusec.fuse(lambda x, n: x.reshape(n, -1) + n)), 1),
        "fused in place": (fusec.fuse(stored), 1),
        "fused softmax": (fusec.fuse(lambda x, y: softened(x)), 1),
        "fused, several results": (fusec.fuse(lambda x, y: (x + y, [x.T - 1])), 1),
        "fused total": (fusec.fuse(lambda x, y: (x - x.mean()) * y), 1),
        "fused in two launches": (fusec.fuse(two_ways), 2),
    }


def host(found):
    """Results in host memory."""
    if isinstance(found, (tuple, list)):
        return [host(each) for each in found]
    return found.numpy() if isinstance(found, cuda.CudaArray) else found


def compare(found, wanted):
    if isinstance(wanted, list):
        for one, other in zip(found, wanted, strict=True):
            compare(one, other)
    elif wanted is not None:
        np.testing.assert_allclose(found, wanted, 1e-12)


@pytest.mark.parametrize("name", cases())
def test_a_repeated_call_asks_the_driver_for_its_launches_and_nothing_else(name):
    call, launches = cases()[name]
    on_host, x, y = cases()[name][0], cuda.from_numpy(X), cuda.from_numpy(X + 1)
    mine = X + 1
    for _ in range(3):
        found = call(x, y)
        wanted = on_host(X, mine)
        compare(host(found), host(wanted))
    del found
    library.stub_log_clear()
    for _ in range(5):
        call(x, y)
        on_host(X, mine)
    assert [each.split()[0] for each in calls()] == ["cuLaunchKernel"] * 5 * launches
    compare(host(call(x, y)), host(on_host(X, mine)))


@pytest.mark.parametrize("name", ["kernel", "reduction", "fused total", "fused in two launches"])
def test_results_that_are_kept_stay_and_those_that_are_not_are_used_again(name):
    call, _ = cases()[name]
    y = cuda.from_numpy(X)
    inputs = [cuda.from_numpy(X + turn) for turn in range(40)]
    kept = [call(x, y) for x in inputs]
    assert len({each.pointer for each in kept}) == len(kept)
    for turn, each in enumerate(kept):
        compare(each.numpy(), host(cases()[name][0](X + turn, X)))
    del kept, each
    gc.collect()
    assert len({call(inputs[0], y).pointer for _ in range(20)}) <= 2


def test_memory_waits_for_arrays_of_its_size_on_the_legacy_stream_alone():
    one = cuda.empty((77,), dtypes.FLOAT64)
    address = one.pointer
    del one
    on_another = cuda.empty((77,), dtypes.FLOAT64, stream=cuda.LEGACY + 1)
    larger = cuda.empty((78,), dtypes.FLOAT64)
    assert address not in (on_another.pointer, larger.pointer)
    again = cuda.empty((11, 7), dtypes.FLOAT64)
    assert again.pointer == address
    view = again[2:]
    del again
    assert cuda.empty((77,), dtypes.FLOAT64).pointer != address  # since a part of it is there
    view.stream = cuda.LEGACY + 1
    library.stub_log_clear()
    del view
    gc.collect()
    assert calls() == ["cuMemFreeAsync 0x2"]


def test_memory_that_waits_goes_back_before_the_device_has_no_room(failing):  # noqa: F811
    cuda.empty((1001,), dtypes.UINT8)
    library.stub_log_clear()
    failing("cuMemAllocFromPoolAsync", 2)
    held = cuda.empty((1001,), dtypes.UINT8)  # which needs nothing of the driver
    assert calls() == []
    del held
    with pytest.raises(RuntimeError, match="no room for an array of 1003 bytes"):
        cuda.empty((1003,), dtypes.UINT8)
    called = [each.split()[0] for each in calls()]
    assert called.count("cuMemAllocFromPoolAsync") == 2
    assert "cuMemFreeAsync" in called[called.index("cuMemAllocFromPoolAsync") :]


def test_a_refused_launch_says_why_and_later_calls_go_on(monkeypatch):
    for name in ("kernel", "fused", "fused in two launches"):
        call, _ = cases()[name]
        x, y = cuda.from_numpy(X), cuda.from_numpy(X + 1)
        for _ in range(3):
            wanted = host(call(x, y))
        with monkeypatch.context() as patch:
            patch.setenv("FUSEC_STUB_FAIL", "cuLaunchKernel=719")
            with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_FAILED"):
                call(x, y)
        np.testing.assert_array_equal(host(call(x, y)), wanted)


@pytest.mark.parametrize("name", ["kernel", "reduction", "fused total", "fused in two launches"])
def test_repeated_calls_run_on_the_device_of_their_arrays(name):
    call, launches = cases()[name]
    for device in (0, 1):
        x, y = cuda.from_numpy(X, device), cuda.from_numpy(X + 1, device)
        wanted = [host(call(x, y)) for _ in range(3)][-1]
        for current in (0, 1):
            with driver.on_device(current):
                library.stub_log_clear()
                found = call(x, y)
                launched = [each for each in calls() if each.startswith("cuLaunchKernel")]
                assert [each.split()[-1] for each in launched] == [str(device)] * launches
                assert driver.current_ordinal() == current
            assert found.device == device
            np.testing.assert_array_equal(host(found), wanted)


def test_eight_threads_on_two_streams_get_their_own_results():
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y + 1", "of_threads")
    fused, failed = fusec.fuse(lambda x, y: (x - x.mean()) * y), []

    def run(number):
        stream = {} if number % 2 else {"stream": cuda.LEGACY + 1}
        given = X + number
        x, y = cuda.from_numpy(given), cuda.from_numpy(X)
        for _ in range(40):
            product, centred = kernel(x, y, **stream), fused(x, y, **stream)
            if not np.allclose(product.numpy(), given * X + 1) or not np.allclose(
                centred.numpy(), (given - given.mean()) * X
            ):
                failed.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
