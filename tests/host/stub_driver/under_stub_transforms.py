"""Run by test_stub_driver.py: Fourier transforms on devices by a stand-in for cuFFT, without CuPy."""

import ctypes
import threading
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from under_stub_products import no_cupy  # noqa: F401 - a fixture

import fusec
import fusec.xp as xp
from fusec.errors import FusecError
from fusec.fusion.devices.device_repeats import RepeatedCall
from fusec.runtime import cuda
from fusec.runtime.cuda import libraries, transforms

pytestmark = [pytest.mark.usefixtures("host_twins"), pytest.mark.usefixtures("no_cupy")]
RNG = np.random.default_rng(5)
X = RNG.random((6, 7, 10)) - 0.5
Z = X + 1j * (RNG.random(X.shape) - 0.5)


def called(*entries):
    """How many calls of these entries of cuFFT there were since the last look."""
    library = ctypes.CDLL("libcufft.so.12")
    library.stub_cufft_log.restype = ctypes.c_char_p
    log = library.stub_cufft_log().decode()
    library.stub_cufft_log_clear()
    return [log.count(f"{each} ") for each in entries]


def steps(array):
    """The strides along which there is something to step to."""
    pairs = zip(array.shape, array.strides, strict=True)
    return [stride for extent, stride in pairs if extent > 1 and array.size]


def check(function, *values, calls=3, in_order=True):
    """Compare all calls, of which the last ones are repeated ones, with NumPy. in_order: in memory, too."""
    fused, wanted = fusec.fuse(function), function(*(each.copy() for each in values))
    for _ in range(calls):
        given = [cuda.from_numpy(each) for each in values]
        found = fused(*given)
        pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        for one, other in pairs:
            tolerance = 2e-5 if other.dtype.char in "fF" else 1e-11
            np.testing.assert_allclose(one.numpy(), other, tolerance, tolerance)
            assert one.dtype == other.dtype
            assert steps(one) == steps(other) or not in_order
        for one, other in zip(given, values, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)  # what is read is left as it is


ALONG_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
ALONG_AXES = ("fftn", "ifftn", "rfftn", "irfftn")
NORMS = (None, "ortho", "forward")


def operand(name, dtype, values=Z):
    """Values of a dtype for a function; only some take complex numbers."""
    if name in ("rfft", "ihfft", "rfftn"):
        return values.real.astype(dtype.lower())
    return (values if dtype in "FD" else values.real).astype(dtype)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", ALONG_AXIS)
@pytest.mark.sampled(3)
def test_transforms_along_each_axis_and_of_each_dtype(name, dtype):
    function = getattr(np.fft, name)
    check(lambda x: tuple(function(x, axis=axis, norm=NORMS[axis]) for axis in range(3)), operand(name, dtype))


@pytest.mark.parametrize("name", ALONG_AXIS)
def test_rows_are_cut_and_padded(name):
    function = getattr(np.fft, name)
    check(lambda x: tuple(function(x, n, axis) for n in (1, 2, 5, 13) for axis in (0, 2)), operand(name, "D"), calls=2)


AXES = [None, (0, 1), (2, 0), (1,), (0, 2, 1)]


@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("name", ALONG_AXES)
@pytest.mark.sampled(3)
def test_transforms_along_several_axes(name, axes):
    function = getattr(np.fft, name)
    sizes = None if axes is None else (4, 9, 3)[: len(axes)]
    check(
        lambda x: (function(x, axes=axes, norm="ortho"), function(x, sizes or (3, -1, 14), axes or (0, 1, 2))),
        operand(name, "D"),
    )


def test_four_and_more_axes_take_several_plans():
    values = (RNG.random((2, 3, 4, 3, 2)) + 1j).astype("F")
    check(
        lambda z: (np.fft.fftn(z), np.fft.rfftn(z.real), np.fft.irfftn(z, (2, 3, 4, 3, 3), range(5)), np.fft.fft2(z)),
        values,
    )


def test_what_is_no_half_of_a_hermitian_array_is_read_as_numpy_reads_it():
    check(lambda z: (np.fft.irfft2(z), np.fft.irfft(z, 7), np.fft.hfft(z, axis=0), np.fft.irfftn(z, (6, 5), (0, 1))), Z)


LAYOUTS = [
    lambda x: np.fft.fft(x[::-1, ::2, 1::3]), lambda x: np.fft.rfft(x.real[:, ::-2].T, axis=1),
    lambda x: np.fft.fft2(x.transpose(1, 2, 0)), lambda x: np.fft.ifft(np.broadcast_to(x[:1], (5, 7, 10))),
    lambda x: np.fft.rfft(x.real[..., 1:]), lambda x: np.fft.fft(x.reshape(6, 70).T, axis=0),
    lambda x: np.fft.fft(x.real.astype(int) + 1), lambda x: np.fft.rfft(x.real > 0), lambda x: np.fft.fft(x[:0]),
    lambda x: np.fft.irfft(x[..., 3:].swapaxes(0, 2), axis=1), lambda x: np.fft.fftn(x[:1, :, :1]),
    lambda x: np.fft.rfft(x.real.astype("e")), lambda x: np.fft.fft(x[0, 0]), lambda x: np.fft.fft(x[:, :, :0], 4),
    lambda x: np.fft.irfft(x, n=x.shape[1] - 2), lambda x: np.fft.fftshift(np.fft.fft(x) * 2).real.sum(axis=0),
    lambda x: np.fft.irfft(x.real), lambda x: np.fft.fft(np.repeat(x, 5, 1).reshape(30, 7, 10)[:18], axis=1),
    lambda x: np.fft.rfft(np.repeat(x.real, 5, 1).reshape(30, 35, 2), axis=1),
    lambda x: np.fft.irfft(np.repeat(x, 5, 1).reshape(30, 35, 2), axis=1),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(LAYOUTS)))
@pytest.mark.sampled(3)
def test_other_layouts_and_dtypes(case):
    check(LAYOUTS[case], Z)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_layout_of_any_shape(data):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    order = data.draw(st.permutations(range(len(shape))))
    steps = tuple(slice(None, None, data.draw(st.sampled_from([1, 1, 2, -1]))) for _ in shape)
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), unique=True, min_size=1))
    name = data.draw(st.sampled_from(ALONG_AXES))
    sizes = data.draw(st.none() | st.tuples(*(st.integers(1, 6) for _ in axes)))
    values = np.random.default_rng(0).random((*shape, 2)).view("D")[..., 0]
    values = operand(name, data.draw(st.sampled_from("FD")), values)
    if name == "irfftn":
        sizes = sizes or (5,) * len(axes)  # those of one element have no usual size
    function = getattr(np.fft, name)
    # NumPy orders axes by their strides, and so by those along which there is nothing to step to
    in_order = 1 not in values.transpose(order)[steps].shape
    check(lambda x: function(x.transpose(order)[steps], sizes, axes), values, calls=1, in_order=in_order)


def layered(x, scale):
    """Transforms that nobody sees, that are returned, and of which views are returned or written."""
    spectrum = np.fft.rfft2(x * scale)
    filtered = np.fft.irfft2(spectrum * np.exp(-np.abs(spectrum)), x.shape[1:], (1, 2))
    x[1:] += filtered[1:] * 1e-3
    return spectrum, filtered[::-1], (np.fft.fft(x)[..., :3] * 2).real, np.fft.ifft(np.fft.fft(x[0, 0] + 1)).real.max()


def test_transforms_between_kernels_are_repeated():
    fused = fusec.fuse(layered)
    with mock.patch.object(RepeatedCall, "_run", autospec=True, side_effect=RepeatedCall._run) as ran:
        for turn in range(6):
            x, own = cuda.from_numpy(X + turn), X + turn
            called()
            found, wanted = fused(x, 0.5 + turn), layered(own, 0.5 + turn)
            assert called("cufftExecD2Z", "cufftExecZ2D", "cufftExecZ2Z", "cufftCreate")[:3] == [
                1,
                1,
                9,
            ]  # six planes are apart
            for one, other in zip((*found, x), (*wanted, own), strict=True):
                np.testing.assert_allclose(one.numpy(), other, 1e-11, 1e-11)
    assert ran.call_count == 4


def test_plans_are_made_once_and_streams_are_set_when_they_change():
    fused, x = fusec.fuse(lambda x: np.fft.ifft(np.fft.fft(x, axis=0) * 2, axis=0)), cuda.from_numpy(Z[:, 0])
    for turn in range(8):
        called()
        np.testing.assert_allclose(fused(x, stream=1 + turn // 4).numpy(), Z[:, 0] * 2)
        if turn > 3:
            assert called("cufftCreate", "cufftSetStream") == [0, int(turn == 4)]


def test_threads_share_plans_and_devices_have_their_own():
    fused, found = fusec.fuse(lambda z: np.fft.fft(np.fft.fft(z) * 2) + 1), {}

    def run(device, turn):
        z = cuda.from_numpy(Z + turn, device)
        found[device, turn] = [fused(z) for _ in range(5)][-1]

    threads = [threading.Thread(target=run, args=(turn % 2, turn)) for turn in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for (device, turn), each in found.items():
        assert each.device == device
        np.testing.assert_allclose(each.numpy(), np.fft.fft(np.fft.fft(Z + turn) * 2) + 1)


def test_lazy_arrays_are_transformed_without_cupy():
    for turn in range(4):
        x = xp.asarray(X + turn, device="cuda:0")
        found = [xp.fft.irfft(xp.fft.rfft(x) * 2), xp.fft.fftn(x, axes=(0, 1)), xp.fft.hfft(x + 1j, axis=1)]
        wanted = [(X + turn) * 2, np.fft.fftn(X + turn, axes=(0, 1)), np.fft.hfft(X + turn + 1j, axis=1)]
        for one, other in zip(xp.compute(*found), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one.to_device("cpu")), other, 1e-11, 1e-11)


def test_plans_that_nobody_needs_are_freed():
    form = transforms.TransformForm("C2C", True, (8,), 1, *[transforms.Placing(1, (8,), 8)] * 2)
    plan = transforms.TransformPlan(form, 0)
    called()
    del plan
    assert called("cufftDestroy") == [1]


def test_a_missing_library_is_named_with_its_cure(monkeypatch):
    def missing(name):
        raise RuntimeError(f'Failure finding "{name}": no such file\nmore')

    monkeypatch.setattr("cuda.pathfinder.load_nvidia_dynamic_lib", missing)
    for each in (libraries.math_library, transforms.library):
        each.cache_clear()
    try:
        with pytest.raises(FusecError, match=r"(?s)libcufft, which .*Failure finding .*fusec\[cuda-math\]") as caught:
            fusec.fuse(lambda x: np.fft.fft(x) + 1)(cuda.from_numpy(X))
        assert caught.value.code == "F368"
        assert "np.fft.fft(x) + 1" in str(caught.value)
    finally:
        for each in (libraries.math_library, transforms.library):
            each.cache_clear()


def test_what_cufft_refuses_is_named(monkeypatch):
    fused, z = fusec.fuse(lambda z: np.fft.fft(z, axis=1)), cuda.from_numpy(Z)
    for _ in range(4):
        fused(z)
    monkeypatch.setenv("FUSEC_STUB_FAIL", "cufftExecZ2Z=6")
    with pytest.raises(FusecError, match="cuFFT refused to transform 7: CUFFT_EXEC_FAILED") as caught:
        fused(z)
    assert caught.value.code == "F369"
