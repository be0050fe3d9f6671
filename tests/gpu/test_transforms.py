"""Fourier transforms on devices: cuFFT computes them, and no CuPy is needed."""

import sys
import threading

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.runtime import cuda

RNG = np.random.default_rng(5)
Z = RNG.random((24, 30, 36)) - 0.5 + 1j * (RNG.random((24, 30, 36)) - 0.5)
WARM = 3  # calls before all of a call is known


@pytest.fixture(autouse=True)
def _no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def close(found, wanted):
    assert found.dtype == wanted.dtype
    scale = np.abs(wanted).max() if wanted.size else 1
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max(initial=0) <= scale * (3e-6 if wanted.dtype.char in "fF" else 1e-14)


def check(function, values, calls=WARM + 1):
    fused, wanted = fusec.fuse(function), function(values.copy())
    for _ in range(calls):
        given = cuda.from_numpy(values)
        found = fused(given)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for one, other in pairs:
            close(one.numpy(), other)
        np.testing.assert_array_equal(given.numpy(), values)  # what is read is left as it is


ALONG_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ALONG_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
NORMS = (None, "ortho", "forward")


def operand(name, dtype):
    if name in ("rfft", "ihfft", "rfftn"):
        return Z.real.astype(dtype.lower())
    return (Z if dtype in "FD" else Z.real).astype(dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ALONG_AXIS)
def test_transforms_along_each_axis_and_of_each_dtype(name, dtype):
    function = getattr(np.fft, name)
    check(lambda x: tuple(function(x, axis=axis, norm=NORMS[axis]) for axis in range(3)), operand(name, dtype))


@pytest.mark.parametrize("n", [1, 2, 5, 31, 47, 64])
@pytest.mark.parametrize("name", ALONG_AXIS)
def test_rows_are_cut_and_padded(name, n):
    function = getattr(np.fft, name)
    check(lambda x: tuple(function(x, n, axis) for axis in range(3)), operand(name, "D"), calls=1)


@pytest.mark.parametrize("axes", [None, (0, 1), (2, 0), (1,), (0, 2, 1)])
@pytest.mark.parametrize("name", ALONG_AXES)
def test_transforms_along_several_axes(name, axes):
    function = getattr(np.fft, name)
    sizes = None if axes is None else (14, 39, 23)[: len(axes)]
    check(
        lambda x: (function(x, axes=axes, norm="ortho"), function(x, sizes or (13, -1, 44), axes or (0, 1, 2))),
        operand(name, "D"),
    )


def test_four_and_more_axes_take_several_plans():
    values = (RNG.random((4, 3, 5, 7, 2)) + 1j).astype("F")
    check(lambda z: (np.fft.fftn(z), np.fft.rfftn(z.real), np.fft.irfftn(z, (4, 3, 5, 7, 3), range(5))), values)


LAYOUTS = [
    lambda x: np.fft.fft(x[::-1, ::2, 1::3]), lambda x: np.fft.rfft(x.real[:, ::-2].T, axis=1),
    lambda x: np.fft.fft2(x.transpose(1, 2, 0)), lambda x: np.fft.ifft(np.broadcast_to(x[:1], (5, 30, 36))),
    lambda x: np.fft.rfft(x.real[..., 1:]), lambda x: np.fft.fft(x.real.astype(int) + 1),
    lambda x: np.fft.rfft(x.real > 0), lambda x: np.fft.fft(x[:0]), lambda x: np.fft.fftn(x[:1, :, :1]),
    lambda x: np.fft.irfft(x[..., 3:].swapaxes(0, 2), axis=1), lambda x: np.fft.rfft(x.real.astype("e")),
    lambda x: np.fft.fft(x[0, 0]), lambda x: np.fft.fft(x[:, :, :0], 4),
    lambda x: np.fft.irfft(x, n=x.shape[1] - 2), lambda x: np.fft.irfft(x.real), lambda x: np.fft.irfft2(x),
    lambda x: np.fft.fftshift(np.fft.fft(x) * 2).real.sum(axis=0), lambda x: np.fft.hfft(x.real, 31, 1),
    lambda x: np.fft.rfft(x.real.reshape(24, 30, 36)[:, 1:], axis=1), lambda x: np.fft.irfft(x, 15, axis=1),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(LAYOUTS)))
def test_other_layouts_and_dtypes(case):
    check(LAYOUTS[case], Z)


@pytest.mark.hardware
@pytest.mark.parametrize("size", [1 << 20, 1_000_003, 3 * 5 * 7 * 11 * 13 * 17])
def test_long_rows(size):
    x = np.random.default_rng(0).random(size)
    check(lambda x: (np.fft.irfft(np.fft.rfft(x), len(x)), np.fft.fft(x)), x, calls=2)


def layered(x, scale):
    spectrum = np.fft.rfft2(x * scale)
    filtered = np.fft.irfft2(spectrum * np.exp(-np.abs(spectrum)), x.shape[1:], (1, 2))
    x[1:] += filtered[1:] * 1e-3
    return spectrum, filtered[:, 1:], (np.fft.fft(x)[..., :3] * 2).real


@pytest.mark.parametrize("library", ["torch", "own"])
def test_transforms_between_kernels(library):
    if library == "own":
        make, back = cuda.from_numpy, lambda each: each.numpy()
    else:
        torch = pytest.importorskip("torch")
        make, back = (lambda each: torch.from_numpy(each).cuda()), lambda each: each.cpu().numpy()
    fused = fusec.fuse(layered)
    for turn in range(WARM + 3):
        given = Z.real + turn * 0.1
        x = make(given.copy())
        found, wanted = fused(x, 0.01 + turn), layered(given, 0.01 + turn)
        for one, other in zip((*found, x), (*wanted, given), strict=True):
            np.testing.assert_allclose(back(one), other, 1e-9, 1e-9)


def test_results_have_the_same_bits_each_time_and_on_other_streams():
    fused, z = fusec.fuse(lambda z: np.fft.ifft2(np.fft.fft2(z))), cuda.from_numpy(Z)
    first = fused(z).numpy()
    for turn in range(12):
        np.testing.assert_array_equal(fused(z, stream=1 + turn % 2).numpy(), first)


def test_lazy_arrays_are_transformed():
    for turn in range(WARM + 1):
        x = xp.asarray(Z.real + turn, device="cuda:0")
        found = [xp.fft.irfft(xp.fft.rfft(x) * 2), xp.fft.fftn(x, axes=(0, 1)), xp.fft.hfft(x + 1j, axis=1)]
        own = Z.real + turn
        wanted = [own * 2, np.fft.fftn(own, axes=(0, 1)), np.fft.hfft(own + 1j, axis=1)]
        for one, other in zip(xp.compute(*found), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-10, 1e-10)


def test_threads_transform_at_once():
    fused, found = fusec.fuse(lambda z: np.fft.fft(np.fft.fft(z) * 2) + 1), {}

    def run(turn):
        z = cuda.from_numpy(Z + turn)
        found[turn] = [fused(z, stream=1 + turn % 2) for _ in range(20)][-1].numpy()

    threads = [threading.Thread(target=run, args=(turn,)) for turn in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for turn in range(4):
        close(found[turn], np.fft.fft(np.fft.fft(Z + turn) * 2) + 1)


@pytest.mark.hardware
def test_graphs_of_pytorch_capture_transforms():
    torch = pytest.importorskip("torch")

    def function(z):
        return np.fft.irfft(np.fft.rfft(z.real) * 2) + np.abs(np.fft.fft(z, axis=1))

    fused, z = fusec.fuse(function), torch.from_numpy(Z).cuda()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            fused(z)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fused(z)
    for turn in range(1, 4):
        z.copy_(torch.from_numpy(Z * turn))
        graph.replay()
        other = fused(z + 1)  # has memory of its own to work in
        torch.cuda.synchronize()
        np.testing.assert_allclose(found.cpu().numpy(), function(Z * turn), 1e-10, 1e-10)
        np.testing.assert_allclose(other.cpu().numpy(), function(Z * turn + 1), 1e-10, 1e-10)
