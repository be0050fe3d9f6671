"""Repeated calls take a shorter way through fusec; nothing else about them differs from first calls."""

import sys
import threading

import numpy as np
import pytest

import fusec
from fusec.runtime import cuda

AXPY = ("T x, T y, T a", "T z", "z = a * x + y", "axpy")


def own(values):
    return cuda.from_numpy(values)


def torch(values):
    library = pytest.importorskip("torch")
    return library.from_numpy(np.ascontiguousarray(values)).cuda()


def cupy(values):
    return pytest.importorskip("cupy").asarray(values)


def back(array):
    if isinstance(array, cuda.CudaArray):
        return array.numpy()
    return array.cpu().numpy() if "torch" in type(array).__module__ else array.get()


LIBRARIES = [own, pytest.param(torch, marks=pytest.mark.hardware), pytest.param(cupy, marks=pytest.mark.hardware)]


def is_repeated(kernel, *args):
    """Whether a call with these arguments takes the short way."""
    gone_on = []
    repeated = kernel.path.repeated
    if repeated is None:
        return False
    way, repeated.fallback = repeated.fallback, lambda *args, **kwargs: gone_on.append(args)
    try:
        repeated.call(*args)
    finally:
        repeated.fallback = way
    return not gone_on


@pytest.mark.parametrize("make", LIBRARIES)
def test_later_calls_see_new_values_addresses_and_numbers(make):
    kernel = fusec.ElementwiseKernel(*AXPY)
    rng = np.random.default_rng(0)
    for number in (2.0, -0.5, 1e-3, 3):
        x, y = rng.standard_normal((2, 5, 100)).astype("f4")
        there = make(x), make(y)
        np.testing.assert_array_equal(back(kernel(*there, number)), kernel(x, y, number))
        z = make(np.zeros_like(x))
        assert kernel(*there, number, z) is z
        np.testing.assert_array_equal(back(z), kernel(x, y, number))
        z = make(np.zeros_like(x))
        assert kernel(*there, number, out=z) is z
        np.testing.assert_array_equal(back(z), kernel(x, y, number))
    assert is_repeated(kernel, *there, 2.0)
    assert is_repeated(kernel, *there, 2.0, z)


@pytest.mark.parametrize("make", LIBRARIES)
def test_repeated_calls_of_functions_mean_what_the_first_meant(make):
    blend = fusec.elementwise("def blend(x, weight=0.25, y=1.0):\n    return x * weight + y\n")
    around = fusec.stencil("def around(a, k=2):\n    return k * a[-1, 0] - a[0, 1]\n", boundary="wrap")
    rng = np.random.default_rng(0)
    for _ in range(3):
        x, y = rng.standard_normal((2, 6, 50)).astype("f4")
        a, b = make(x), make(y)
        for given in ((), (0.5,), (3,), (np.float32(0.1),), (0.5, 2.0)):
            np.testing.assert_array_equal(back(blend(a, *given)), blend(x, *given))
        np.testing.assert_array_equal(back(blend(a, b)), blend(x, y))  # b is the weight, and no output
        np.testing.assert_array_equal(back(blend(a, y=b)), blend(x, y=y))
        np.testing.assert_array_equal(back(blend(a, b, b)), blend(x, y, y))
        out = make(np.zeros_like(x))
        assert blend(a, 0.5, b, out=out) is out
        np.testing.assert_array_equal(back(out), blend(x, 0.5, y))
        np.testing.assert_array_equal(back(around(a)), around(x))
        np.testing.assert_array_equal(back(around(a, 3)), around(x, 3))
    assert is_repeated(blend, a)
    assert is_repeated(blend, a, b)
    assert is_repeated(blend, a, 0.5, b, out)
    assert not is_repeated(blend, a, True)
    assert is_repeated(around, a, 3)
    assert around.source("cuda")


@pytest.mark.parametrize("make", LIBRARIES)
def test_results_of_repeated_calls_are_laid_out_like_the_first(make):
    kernel = fusec.ElementwiseKernel(*AXPY)
    x = np.arange(24, dtype="f4").reshape(2, 3, 4)
    turned = make(x).transpose(0, 2) if make is torch else make(x).transpose(2, 1, 0) if make is cupy else make(x)
    first, second = kernel(turned, turned, 1.0), kernel(turned, turned, 1.0)
    strides = (lambda a: a.stride()) if make is torch else (lambda a: a.strides)
    assert strides(first) == strides(second) == strides(turned)
    assert tuple(first.shape) == tuple(second.shape)
    np.testing.assert_array_equal(back(first), back(second))


def test_a_call_whose_output_meets_an_input_is_as_if_the_input_were_copied():
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x + 1", "shift")
    block = cuda.from_numpy(np.arange(100, dtype="f4"))

    def part(first):
        class Part:
            __cuda_array_interface__ = {
                **block.__cuda_array_interface__,
                "shape": (96,),
                "strides": None,
                "data": (block.pointer + 4 * first, False),
            }

        return Part()

    kernel(part(0), part(4))
    expected = np.arange(100, dtype="f4")
    expected[4:] = expected[:96] + 1
    np.testing.assert_array_equal(block.numpy(), expected)


@pytest.mark.hardware
@pytest.mark.parametrize("library", [torch, cupy])
def test_repeated_calls_in_place_and_with_overlap(library):
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x + 1", "shift")
    block = library(np.arange(4096, dtype="f4"))
    apart = library(np.zeros(2048, "f4"))
    for _ in range(2):
        kernel(block[:2048], apart)  # the kind of call is known from here on
    np.testing.assert_array_equal(back(apart), np.arange(1, 2049))
    expected = np.arange(4096, dtype="f4")
    for start in (1024, 4, 0, 2048):
        kernel(block[:2048], block[start : start + 2048])
        expected[start : start + 2048] = expected[:2048] + np.float32(1)
        np.testing.assert_array_equal(back(block), expected)


@pytest.mark.hardware
@pytest.mark.parametrize("library", [torch, cupy])
def test_alignment_is_looked_at_in_every_call(library):
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x * 2", "twice")
    block = library(np.arange(1000, dtype="f4"))
    for start in (0, 0, 1, 1, 2, 4, 3):
        np.testing.assert_array_equal(back(kernel(block[start : start + 900])), np.arange(start, start + 900) * 2)


@pytest.mark.hardware
def test_tensors_that_are_more_than_their_memory_stay_refused():
    library = pytest.importorskip("torch")
    kernel = fusec.ElementwiseKernel("T x", "T z", "z = x + (T)1", "more")
    x = library.ones(8, device="cuda")
    for _ in range(2):
        kernel(x)
    with pytest.raises(TypeError, match=r"requires? grad"):
        kernel(library.ones(8, device="cuda", requires_grad=True))
    turned = library.ones(8, device="cuda", dtype=library.complex64).conj()
    with pytest.raises(TypeError, match="conj"):
        kernel(turned)
    negative = turned.imag
    assert negative.is_neg()
    with pytest.raises(TypeError, match="neg"):
        kernel(negative)


@pytest.mark.hardware
def test_repeated_calls_follow_the_stream_that_is_current():
    library = pytest.importorskip("torch")
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x + 1", "step")
    x = library.zeros(1 << 22, device="cuda")
    side = library.cuda.Stream()
    for turn in range(40):
        stream = (library.cuda.default_stream(), side)[turn % 2]
        stream.wait_stream((side, library.cuda.default_stream())[turn % 2])
        with library.cuda.stream(stream):
            kernel(x, x)
    side.synchronize()
    assert library.all(x == 40)


def test_arrays_used_on_another_stream_are_waited_for():
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x + 1", "step")
    from cuda.core import Device

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    x = np.zeros(1 << 20, "f4")
    there = cuda.from_numpy(x)
    for _ in range(10):
        there = kernel(kernel(kernel(there)), stream=stream)
    np.testing.assert_array_equal(there.numpy(), 30)


def test_threads_may_repeat_the_same_kind_of_call():
    kernel = fusec.ElementwiseKernel("float32 x, float32 a", "float32 z", "z = x * a", "scale")
    x = cuda.from_numpy(np.arange(1000, dtype="f4"))
    kernel(x, 1.0)
    wrong = []

    def run(number):
        for _ in range(50):
            expected = np.arange(1000, dtype="f4") * np.float32(number)
            wrong.extend(number for _ in range(not np.array_equal(kernel(x, number).numpy(), expected)))

    threads = [threading.Thread(target=run, args=(float(number),)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def test_kernels_used_on_both_sides_keep_their_native_entries():
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x + 1", "both")
    x = np.arange(100, dtype="f4")
    for _ in range(4):
        np.testing.assert_array_equal(kernel(x), x + 1)
        np.testing.assert_array_equal(kernel(cuda.from_numpy(x)).numpy(), x + 1)
    assert kernel.path.repeated.fallback is not kernel._from_python


def test_calls_of_other_kinds_take_the_long_way():
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "kinds")
    x = cuda.from_numpy(np.ones(8, "f4"))
    kernel(x, x)
    assert is_repeated(kernel, x, x)
    assert not is_repeated(kernel, x, 1.0)
    assert not is_repeated(kernel, x)
    assert not is_repeated(kernel, np.ones(8, "f4"), x)
    with pytest.raises(TypeError, match="Wrong number of arguments"):
        kernel(x)
    assert sys.getrefcount(x) < 10


# --- reductions and scans ------------------------------------------------------------------------------------------

TOTAL = ("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "total")
RUNNING = ("T x", "T y", "x", "a + b", "y = a", 0, "running")


def goes_on(kernel, choice, *args):
    """Whether a call with these arguments is none of those that the kernel has a short way for."""
    gone_on, repeated = [], kernel.paths.of[choice].repeated
    way, repeated.fallback = repeated.fallback, lambda *args: gone_on.append(args)
    try:
        repeated.call(*args)
    finally:
        repeated.fallback = way
    return bool(gone_on)


@pytest.mark.parametrize("make", LIBRARIES)
def test_repeated_reductions_see_new_values_addresses_and_numbers(make):
    kernel, rng = fusec.ReductionKernel(*TOTAL), np.random.default_rng(0)
    for number in (2.0, -0.5, 3):
        x, y = rng.standard_normal((2, 70, 100)).astype("f4")
        there = make(x), make(y)
        np.testing.assert_array_equal(back(kernel(*there, axis=1)), kernel(x, y, axis=1))
        expected = kernel(x, number, axis=1)
        np.testing.assert_array_equal(back(kernel(there[0], number, axis=(1,))), expected)
        z = make(np.zeros(70, "f4"))
        assert kernel(there[0], number, axis=1, out=z) is z
        np.testing.assert_array_equal(back(z), expected)
        z = make(np.zeros(70, "f4"))
        assert kernel(there[0], number, z, axis=1) is z
        np.testing.assert_array_equal(back(z), expected)
    assert not goes_on(kernel, (1, False, False), *there)
    assert not goes_on(kernel, ((1,), False, False), there[0], 2.0)
    assert not goes_on(kernel, (1, False, True), there[0], 2.0, z)
    assert goes_on(kernel, (1, False, True), there[0], True, z)
    assert goes_on(kernel, (1, False, True), there[0], 2.0, make(np.zeros(71, "f4")))


@pytest.mark.parametrize("make", LIBRARIES)
def test_repeated_scans_see_new_values_and_addresses(make):
    kernel, rng = fusec.ScanKernel(*RUNNING), np.random.default_rng(0)
    for count in (600, 20_000, 600, 600, 20_000, 20_000):
        x = rng.standard_normal(count).astype("f4")
        there, expected = make(x), kernel(x)
        np.testing.assert_array_equal(back(kernel(there)), expected)
        z = make(np.zeros_like(expected))
        assert kernel(there, out=z) is z
        np.testing.assert_array_equal(back(z), expected)
        z = make(np.zeros_like(expected))
        assert kernel(there, z) is z
        np.testing.assert_array_equal(back(z), expected)
    assert not goes_on(kernel, (-1, False, False), there)
    assert not goes_on(kernel, (-1, False, True), there, z)
    assert goes_on(kernel, (-1, False, True), there, make(np.zeros(599, "f4")))
    with pytest.raises(ValueError, match="shape"):
        kernel(there, out=make(np.zeros(599, "f4")))
    with pytest.raises(TypeError, match="Wrong number of arguments"):
        kernel(there, there, there)


def test_repeated_scans_whose_output_meets_the_input_are_those_of_separate_memory():
    kernel = fusec.ScanKernel(*RUNNING)
    values = np.random.default_rng(1).standard_normal(600).astype("f4")
    for start in (300, 300, 4, 0, 299, 300):
        block = cuda.from_numpy(values)
        kernel(block.part(0, 0, 300), out=block.part(0, start, start + 300))
        expected = values.copy()
        expected[start : start + 300] = kernel(values[:300])
        np.testing.assert_array_equal(block.numpy(), expected)
    whole = cuda.from_numpy(values)
    assert not goes_on(kernel, (-1, False, True), whole.part(0, 0, 300), whole.part(0, 300, 600))
    assert goes_on(kernel, (-1, False, True), whole.part(0, 0, 300), whole.part(0, 296, 596))


def test_repeated_scans_wait_for_arrays_of_other_streams_and_are_apart_from_those_of_host_arrays():
    kernel, x = fusec.ScanKernel(*RUNNING), np.arange(600, dtype="f4")
    for _ in range(3):
        np.testing.assert_array_equal(kernel(x), np.cumsum(x))
        np.testing.assert_array_equal(kernel(cuda.from_numpy(x)).numpy(), np.cumsum(x))
    from cuda.core import Device

    Device(0).set_current()
    stream = Device(0).create_stream()
    elsewhere = cuda.from_numpy(x, stream=stream)
    assert goes_on(kernel, (-1, False, False), elsewhere)
    np.testing.assert_array_equal(kernel(elsewhere).numpy(), np.cumsum(x))
    assert not goes_on(kernel, (-1, False, False), elsewhere)  # it has come to the usual stream
    part = elsewhere.part(0, 0, 300)
    kernel(part, stream=stream)
    assert elsewhere.stream == part.stream != cuda.from_numpy(x).stream


@pytest.mark.parametrize("make", LIBRARIES)
def test_repeated_built_in_functions_look_at_type_and_shape_anew(make):
    for _ in range(3):
        for x in (np.arange(6, dtype="f4"), np.arange(6, dtype="i4"), np.ones((2, 3), "f4")):
            found = fusec.sum(make(x), axis=tuple(range(x.ndim)))
            assert (back(found), back(found).dtype) == (x.sum(), fusec.sum(x).dtype)
            if x.dtype == np.float32:
                np.testing.assert_array_equal(back(fusec.cumsum(make(x))), np.cumsum(x))


@pytest.mark.parametrize("make", LIBRARIES)
def test_repeated_reductions_of_functions_fill_the_outputs_given(make):
    total = fusec.reduction("def total(a, b):\n    return a + b\n")
    for number in range(4):
        x = np.arange(210, dtype="f4").reshape(7, 30) + number
        out = make(np.zeros(7, "f4"))
        assert total(make(x), axis=1, out=out) is out
        np.testing.assert_array_equal(back(out), x.sum(1))
    with pytest.raises(ValueError, match="shape"):
        total(make(x), axis=1, out=make(np.zeros(6, "f4")))
