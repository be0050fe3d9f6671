"""Products on devices: cuBLAS computes them, and no CuPy is needed."""

import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.runtime import cuda

X, W = np.random.default_rng(3).random((64, 96)), np.random.default_rng(4).random((96, 40))
WARM = 3  # calls before all of a call is known


@pytest.fixture(autouse=True)
def _no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def whole(shape, dtype):
    """Small whole numbers, whose products are exact."""
    values = np.random.default_rng(len(shape)).integers(-3, 4, shape)
    return (values * (1 + 2j) if np.dtype(dtype).kind == "c" else values).astype(dtype)


@pytest.mark.parametrize("turned", range(8))
@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "D"])
def test_matrices_of_all_dtypes_and_orders(dtype, turned):
    a, b = whole((33, 150), dtype), whole((150, 41), dtype)
    a = np.asfortranarray(a) if turned & 1 else a
    b = np.asfortranarray(b) if turned & 2 else b
    fused = fusec.fuse((lambda a, b: (a @ b).T) if turned & 4 else (lambda a, b: a @ b))
    wanted = a @ b
    for _ in range(WARM + 1):
        found = fused(cuda.from_numpy(a), cuda.from_numpy(b)).numpy()
        np.testing.assert_array_equal(found, wanted.T if turned & 4 else wanted)


def test_narrow_floats_have_float32_results():
    a, b = (whole(shape, ml_dtypes.bfloat16) for shape in ((33, 50), (50, 41)))
    found = fusec.fuse(lambda a, b: a @ b)(cuda.from_numpy(a), cuda.from_numpy(b)).numpy()
    np.testing.assert_array_equal(found.astype("f"), a.astype("f") @ b.astype("f"))


CASES = [
    lambda x: x @ np.arange(96.0), lambda x: np.arange(64.0) @ x, lambda x: x[::-2, ::-3] @ x[::2, ::3].T,
    lambda x: x.reshape(8, 8, 96) @ x.reshape(8, 8, 96).swapaxes(1, 2), lambda x: x[:, :0] @ x[:0],
    lambda x: x.reshape(8, 8, 96) @ x[:40].T,
    lambda x: x.reshape(8, 1, 8, 96) @ x.reshape(1, 8, 8, 96)[:, 1:].swapaxes(2, 3),
    lambda x: np.tensordot(x.reshape(8, 8, 96), x.reshape(96, 8, 8), ([2, 0], [0, 2])), lambda x: x[:0] @ x.T,
    lambda x: np.einsum("aij,bji->abi", x.reshape(8, 8, 96), x.reshape(8, 96, 8)), lambda x: np.inner(x, x[:20]),
    lambda x: np.matvec(x.reshape(8, 8, 96), x[0]), lambda x: np.vecmat(x[:, :64] * 1j, x),
    lambda x: np.vecdot(x * 1j, x),
    lambda x: np.broadcast_to(x[:, :1], (64, 50)) @ np.broadcast_to(x[:1, :30], (50, 30)), lambda x: x[:1] @ x[:1].T,
    lambda x: x.astype("f") @ x.T, lambda x: (x * 8).astype(int) @ x.T, lambda x: x[1:, 1:] @ x[:63, 1:].T,
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CASES)))
def test_other_layouts_and_functions(case):
    fused, wanted = fusec.fuse(CASES[case]), CASES[case](X)
    for _ in range(WARM + 1):
        np.testing.assert_allclose(fused(cuda.from_numpy(X)).numpy(), wanted, 1e-12, 1e-12)


def layered(x, w, factor):
    hidden = np.tanh(x @ w * factor)
    product = hidden.T @ hidden
    x[1:] += (hidden @ product)[1:, :1] * 1e-3
    return product, np.sqrt(product + 1), (hidden @ product)[:, ::2].sum(axis=0), x @ w


@pytest.mark.parametrize("library", ["torch", "jax", "own"])
def test_products_between_kernels(library):
    if library == "own":
        make, back = cuda.from_numpy, lambda each: each.numpy()
    elif library == "torch":
        torch = pytest.importorskip("torch")
        make, back = (lambda each: torch.from_numpy(each).cuda()), lambda each: each.cpu().numpy()
    else:
        jax = pytest.importorskip("jax")
        make, back = (lambda each: jax.device_put(each.astype("f"), jax.devices("gpu")[0])), np.asarray
    function = layered if library != "jax" else lambda x, w, factor: (np.tanh(x @ w * factor) @ w.T, w.T @ x.T)
    fused = fusec.fuse(function)
    for turn in range(WARM + 3):
        given, w = X + turn * 0.1, W * (1 + turn)
        found = fused(make(given.copy()), make(w), 0.01 + turn)
        wanted = function(given, w, 0.01 + turn)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(back(one), other, 1e-3 if library == "jax" else 1e-10)


def test_float32_is_not_rounded_to_tf32():
    rng = np.random.default_rng(0)
    a, b = (rng.random((256, 256), np.float32) for _ in range(2))
    found = fusec.fuse(lambda a, b: a @ b)(cuda.from_numpy(a), cuda.from_numpy(b)).numpy()
    wanted = a.astype(float) @ b.astype(float)
    assert np.abs(found / wanted - 1).max() < 2e-6  # TF32: 1e-4


@pytest.mark.parametrize("turn", range(3))
def test_products_of_a_stream_have_the_same_bits_each_time(turn):
    fused, x, w = fusec.fuse(lambda x, w: x @ w), cuda.from_numpy(X.astype("f")), cuda.from_numpy(W.astype("f"))
    first = fused(x, w).numpy()
    for _ in range(20):
        np.testing.assert_array_equal(fused(x, w).numpy(), first)


def test_lazy_arrays_multiply():
    for turn in range(WARM + 2):
        a, b = (xp.asarray(each, device="cuda:0") for each in (X + turn, W))
        found = [xp.tanh(a @ b) @ b.T, xp.tensordot(a, b, axes=1), xp.einsum("ij,jk->ki", a, b), xp.vecdot(a, a)]
        wanted = [np.tanh((X + turn) @ W) @ W.T, (X + turn) @ W, ((X + turn) @ W).T, np.vecdot(X + turn, X + turn)]
        for one, other in zip(xp.compute(*found), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-10)


def test_threads_multiply_at_once():
    fused, found = fusec.fuse(lambda x, w: np.tanh((x @ w) @ w.T) @ w), {}

    def run(turn):
        x, w = cuda.from_numpy(X + turn), cuda.from_numpy(W)
        found[turn] = [fused(x, w) for _ in range(20)][-1].numpy()

    threads = [threading.Thread(target=run, args=(turn,)) for turn in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for turn in range(4):
        np.testing.assert_allclose(found[turn], np.tanh((X + turn) @ W @ W.T) @ W, 1e-10)


@pytest.mark.hardware
def test_graphs_of_pytorch_capture_products():
    torch = pytest.importorskip("torch")

    def function(x, w):
        return np.tanh(x @ w) @ w.T + 1

    fused, (x, w) = fusec.fuse(function), (torch.from_numpy(each).cuda() for each in (X, W))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            fused(x, w)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fused(x, w)
    for turn in range(1, 4):
        x.copy_(torch.from_numpy(X * turn))
        graph.replay()
        other = fused(x + 1, w)  # has memory of its own between its kernels
        torch.cuda.synchronize()
        np.testing.assert_allclose(found.cpu().numpy(), function(X * turn, W), 1e-10)
        np.testing.assert_allclose(other.cpu().numpy(), function(X * turn + 1, W), 1e-10)
