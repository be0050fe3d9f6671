"""Run by test_stub_driver.py: products on devices by a stand-in for cuBLAS, without CuPy."""

import ctypes
import sys
import threading
from unittest import mock

import numpy as np
import pytest
from under_stub_fuse import logged, python_calls
from under_stub_scans import tensor  # noqa: F401 - a fixture

import fusec
import fusec.xp as xp
from fusec.errors import FusecError
from fusec.fusion.devices.device_repeats import RepeatedCall
from fusec.runtime import cuda
from fusec.runtime.cuda import libraries, products

pytestmark = [pytest.mark.usefixtures("host_twins"), pytest.mark.usefixtures("no_cupy")]
X, W = np.random.default_rng(3).random((50, 14)), np.random.default_rng(4).random((14, 30))


@pytest.fixture
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def called(*entries):
    """How many calls of these entries of cuBLAS there were since the last look."""
    library = ctypes.CDLL("libcublas.so.13")
    library.stub_cublas_log.restype = ctypes.c_char_p
    log = library.stub_cublas_log().decode()
    library.stub_cublas_log_clear()
    return [log.count(f"{each} ") for each in entries]


def layered(x, w, factor):
    """Products that nobody sees, that are returned, and of which views are returned or written."""
    hidden = np.tanh(x @ w * factor)
    product = hidden.T @ hidden
    scaled = (hidden[:, ::2] @ product[::2, 1:]) @ np.ones((29, 12))
    x[1:] += scaled[1:, :1] * 1e-3
    return (
        product,
        np.sqrt(product + 1),
        (hidden @ product)[::-1],
        scaled.sum(axis=0),
        np.einsum("ij,kj->ki", x, x[:20]),
    )


def compare(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        one = getattr(one, "own", one)
        np.testing.assert_allclose(one.numpy(), other, 1e-12)
        assert (one.dtype, one.shape) == (np.asarray(other).dtype, np.shape(other))


@pytest.mark.parametrize("library", ["tensor", None])
def test_products_between_kernels_are_cublas(library, request):
    asarray = cuda.from_numpy if library is None else request.getfixturevalue(library)
    fused, kept = fusec.fuse(layered), []
    with mock.patch.object(RepeatedCall, "_run", autospec=True, side_effect=RepeatedCall._run) as ran:
        for turn in range(6):
            x, w = asarray(X + turn), asarray(W * turn)
            called()
            found, given = fused(x, w, 0.5 + turn), X + turn
            assert called("cublasGemmEx_64") == [6]
            kept.append(((*found, x), (*layered(given, W * turn, 0.5 + turn), given)))
    for found, wanted in kept:
        compare(found, wanted)
    assert ran.call_count == (0 if library else 4)  # such tensors have no reversed views


def test_products_that_nobody_sees_take_no_memory_of_their_own():
    fused, x, w = fusec.fuse(lambda x, w: np.tanh((x @ w) @ (w.T @ w)).sum()), cuda.from_numpy(X), cuda.from_numpy(W)
    for turn in range(5):
        logged()
        compare([fused(x, w)], [np.tanh((X @ W) @ (W.T @ W)).sum()])
        if turn < 3:
            assert logged("cuMemAllocFromPoolAsync")[0] <= 5
        else:  # there is that between kernels, and the result
            assert logged("cuMemAllocFromPoolAsync") == [0]


def test_repeated_products_run_little_python():
    fused, x, w = fusec.fuse(lambda x, w: x @ w), cuda.from_numpy(X), cuda.from_numpy(W)
    for _ in range(4):
        compare([fused(x, w)], [X @ W])
    assert len(python_calls(fused, x, w)) < 42


def test_a_stream_is_set_when_it_changes():
    fused, x, w = fusec.fuse(lambda x, w: (x @ w) @ w.T + 1), cuda.from_numpy(X), cuda.from_numpy(W)
    for turn in range(8):
        called()
        compare([fused(x, w, stream=1 + turn // 4)], [X @ W @ W.T + 1])
        if turn in (3, 4, 7):
            assert called("cublasSetStream_v2", "cublasCreate_v2") == [int(turn == 4), 0]


def test_threads_and_devices_have_handles_of_their_own():
    fused, found = fusec.fuse(lambda x, w: x @ w + 1), {}

    def run(device, turn):
        x, w = (cuda.from_numpy(each, device) for each in (X + turn, W))
        for _ in range(4):
            found[device, turn] = fused(x, w)

    for device in (0, 1):
        threads = [threading.Thread(target=run, args=(device, turn)) for turn in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    for (device, turn), each in found.items():
        assert each.device == device
        compare([each], [(X + turn) @ W + 1])
    threads = [threading.Thread(target=run, args=(device, 6)) for device in (0, 1)]
    for each in threads:
        called()
        each.start()
        each.join()
        assert called("cublasCreate_v2") == [0]  # one of a thread that has ended


CASES = [
    (lambda x: x @ x.astype(np.float32).T, X), (lambda x: np.dot(x, np.arange(14)) + 0 * x[:, 0], X.astype("F")),
    (lambda x: x[:, :0] @ x[:0], X), (lambda x: x[:0] @ x.T, X), (lambda x: x[::-1, ::-3] @ x[::-1, ::-3].T, X),
    (lambda x: np.matmul(x.reshape(5, 10, 14), x.reshape(5, 10, 14)[:, ::2].swapaxes(1, 2)), X),
    (lambda x: np.tensordot(x.reshape(5, 10, 14), x.reshape(10, 5, 14), ([2, 0], [2, 1])), X),
    (lambda x: np.einsum("aij,jak->kia", x.reshape(5, 10, 14), x.reshape(14, 5, 10)[:, :, ::3]), X),
    (lambda x: np.vecdot(x[:, ::2], x[3, ::2] * 1j), X * (1 + 2j)),
    (lambda x: np.broadcast_to(x[:, :1], (50, 20)) @ np.broadcast_to(x[:1, :9], (20, 9)), X),
    (lambda x: np.inner(x, x) + np.matvec(x, x[:, :]).sum(), X[:14]),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_products_of_other_layouts_and_dtypes_are_numpys(case):
    function, values = CASES[case]
    fused, wanted = fusec.fuse(function), function(values)
    for _ in range(4):
        found = fused(cuda.from_numpy(values)).numpy()
        np.testing.assert_allclose(found, wanted, 1e-6 if wanted.dtype.char in "fF" else 1e-12)
        assert found.dtype == wanted.dtype


def test_lazy_arrays_multiply_without_cupy():
    for turn in range(5):
        a, b = (xp.asarray(each, device="cuda:0") for each in (X + turn, W))
        found = [xp.tanh(a @ b) @ b.T, xp.tensordot(a, b, axes=1), xp.einsum("ij,jk->ki", a, b), xp.vecdot(a, a)]
        wanted = [np.tanh((X + turn) @ W) @ W.T, (X + turn) @ W, ((X + turn) @ W).T, np.vecdot(X + turn, X + turn)]
        for one, other in zip(xp.compute(*found), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-12)


def test_a_missing_library_is_named_with_its_cure(monkeypatch):
    def missing(name):
        raise RuntimeError(f'Failure finding "{name}": no such file\nmore')

    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", missing)
    for each in (libraries.math_library, products.library):
        each.cache_clear()
    try:
        fused = fusec.fuse(lambda x, w: x @ w + 1)
        with pytest.raises(
            FusecError, match=r"(?s)libcublas, which .*Failure finding .* no such file.*fusec\[cuda-math\]"
        ) as caught:
            fused(cuda.from_numpy(X), cuda.from_numpy(W))
        assert caught.value.code == "F368"
        assert "x @ w + 1" in str(caught.value)
    finally:
        for each in (libraries.math_library, products.library):
            each.cache_clear()


def test_what_cublas_refuses_is_named(monkeypatch):
    fused, x, w = fusec.fuse(lambda x, w: x @ w), cuda.from_numpy(X), cuda.from_numpy(W)
    for _ in range(4):
        fused(x, w)
    monkeypatch.setenv("FUSEC_STUB_FAIL", "cublasGemmEx_64=15")
    with pytest.raises(FusecError, match="CUBLAS_STATUS_NOT_SUPPORTED") as caught:
        fused(x, w)
    assert caught.value.code == "F369"
