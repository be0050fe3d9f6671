"""Stencils give what scipy.ndimage gives, for every border, dtype and number of axes, also wider than the array."""

import itertools
import pickle

import numpy as np
import pytest
from scipy import ndimage

import fusec
from fusec.errors import FusecError

MODES = ("constant", "nearest", "reflect", "mirror", "wrap")
LAPLACIAN = """
def laplacian(a):
    total = a[-1, -1] + a[-1, 0] + a[-1, 1] + a[0, -1] + a[0, 1] + a[1, -1] + a[1, 0] + a[1, 1]
    return total - 8 * a
"""


def weights(ndim, seed):
    """A few random taps of a window of 5 along each axis."""
    rng = np.random.default_rng(seed)
    kernel = np.zeros((5,) * ndim, "int64")
    for _ in range(4):
        kernel[tuple(rng.integers(0, 5, ndim))] = rng.integers(-3, 4)
    kernel[(2,) * ndim] = 1
    return kernel


def text_of(kernel):
    places = [place for place in itertools.product(range(5), repeat=kernel.ndim) if kernel[place]]
    taps = [f"{kernel[place]} * a[{', '.join(str(at - 2) for at in place)}]" for place in places]
    return f"def window(a):\n    return {' + '.join(taps)}\n"


def numbers(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.integers(-9, 10, shape).astype(dtype)  # whole, so that the order of additions does not matter
    return rng.integers(np.iinfo(dtype).min // 64, np.iinfo(dtype).max // 64 + 1, shape).astype(dtype)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.sampled(5)
def test_a_stencil_is_the_correlation_that_scipy_computes(mode, ndim):
    kernel = weights(ndim, ndim)
    stencil = fusec.stencil(text_of(kernel), boundary=mode, cval=3)
    shapes = [(1,) * ndim, (2,) * ndim, (3, 1, 5)[:ndim], (9, 11, 4)[-ndim:], (40, 6, 5)[:ndim]]
    for at, shape in enumerate(shapes):
        for dtype in ("int32", "float64"):
            a = numbers(shape, dtype, at)
            wanted = ndimage.correlate(a, kernel, mode=mode, cval=3, output=dtype)
            np.testing.assert_array_equal(stencil(a), wanted, err_msg=f"{shape} {dtype}", strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "uint32", "int64", "float32"])
def test_integers_are_exact_in_every_dtype(dtype):
    a = numbers((7, 9), dtype, 5)
    found = fusec.stencil("def f(a): return a[0, 1] + a[1, 0] + a", boundary="mirror")(a)
    padded = np.pad(a, ((0, 1), (0, 1)), mode="reflect")  # NumPy's word for SciPy's mirror
    np.testing.assert_array_equal(found, padded[:-1, 1:] + padded[1:, :-1] + a, strict=True)


def test_every_border_of_a_photograph():
    data = pytest.importorskip("skimage.data")
    camera = data.camera().astype("int32")
    sums = {
        "skip": 10_399_942, "constant": 11_306_809, "nearest": 10_468_458, "reflect": 10_468_458, "mirror": 10_479_892,
        "wrap": 10_845_500,
    }  # fmt: skip
    for mode, total in sums.items():
        found = fusec.stencil(LAPLACIAN, boundary=mode)(camera)
        assert np.abs(found.astype("int64")).sum() == total, mode
        if mode == "skip":
            assert (found.min(), found.max()) == (-913, 722)
        inside = ndimage.convolve(camera, np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]]))[1:-1, 1:-1]
        np.testing.assert_array_equal(found[1:-1, 1:-1], inside)


def test_skip_leaves_the_border_alone():
    a = np.arange(20.0).reshape(4, 5)
    f = fusec.stencil("def f(a): return a[-1, 0] + a[0, 2]", boundary="skip")
    new, given = f(a), np.full((4, 5), 7.0)
    f(a, out=given)
    inside = np.zeros((4, 5), bool)
    inside[1:, :3] = True
    wanted = np.zeros((4, 5))
    wanted[1:, :3] = a[:-1, :3] + a[1:, 2:]
    np.testing.assert_array_equal(new, wanted)
    np.testing.assert_array_equal(given, np.where(inside, wanted, 7.0))


def test_boundaries_differ_by_axis_and_axes_are_chosen():
    a = np.arange(24.0).reshape(4, 6)
    f = fusec.stencil("def f(a): return a[-1, 0] + a[0, 1]", boundary=("nearest", "wrap"))
    wanted = np.pad(a, ((1, 0), (0, 0)), mode="edge")[:4] + np.roll(a, -1, axis=1)
    np.testing.assert_array_equal(f(a), wanted)
    image = np.arange(60.0).reshape(4, 5, 3)
    g = fusec.stencil("def g(a): return a[0, 1] - a", boundary="wrap", axes=(0, 1))
    np.testing.assert_array_equal(g(image), np.roll(image, -1, axis=1) - image)
    with pytest.raises(FusecError, match="2 offsets into 'a', which has 3 axes"):
        fusec.stencil("def g(a): return a[0, 1] - a")(image)


def test_several_arrays_numbers_and_elementwise_work_in_one_kernel():
    a, b = numbers((6, 7), "float32", 1), numbers((6, 7), "float32", 2)
    row = np.arange(7, dtype="float32")
    f = fusec.stencil(
        """
def square(x): return x * x

def f(a, b, row, scale=2):
    left, right = a[0, -1], b[1, 0]
    if left > right:
        return np.clip(scale * left, -5, 5) + row
    return abs(square(right) - a) + row
""",
        boundary="reflect",
    )
    left = np.pad(a, ((0, 0), (1, 0)), mode="symmetric")[:, :-1]
    right = np.pad(b, ((0, 1), (0, 0)), mode="symmetric")[1:]
    wanted = np.where(left > right, np.clip(3 * left, -5, 5), abs(right * right - a)) + row
    np.testing.assert_array_equal(f(a, b, row, 3), wanted, strict=True)


def test_offsets_may_be_computed():
    a = np.arange(10)
    f = fusec.stencil(
        "def f(a, width):\n    s = 0\n    for k in range(-width, width + 1):\n        s += a[k]\n    return s\n",
        boundary="wrap",
    )
    np.testing.assert_array_equal(f(a, 3), sum(np.roll(a, k) for k in range(-3, 4)))
    with pytest.raises(FusecError, match="needs constant offsets"):
        fusec.stencil("def f(a, k): return a[k]", boundary="skip")(a, 1)


def test_any_strides_overlap_and_layout_will_do():
    a = numbers((12, 14), "float64", 3)
    f = fusec.stencil("def f(a): return a[-1, 0] + a[0, 1]", boundary="nearest")
    for view in (a.T, a[::-1, ::2], a[3:4], np.broadcast_to(a[:1], (5, 14)), np.asfortranarray(a)):
        np.testing.assert_array_equal(f(view), f(np.ascontiguousarray(view)))
    inside = a.copy()
    assert f(inside, out=inside) is inside
    np.testing.assert_array_equal(inside, f(a))


def test_a_stencil_is_an_object_like_other_functions():
    f = fusec.stencil(LAPLACIAN, boundary="mirror")
    a = numbers((5, 5), "int64", 0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(a), f(a))
    assert "stencil" in repr(f)
    for target in ("cuda", "metal", "llvm", "ir"):
        assert "laplacian" in f.source(target, {"a": "float32"})
    with pytest.raises(FusecError, match="reads no neighbours"):
        fusec.stencil("def f(a): return a")
    with pytest.raises(FusecError, match="must be an array"):
        f(1.0)
    with pytest.raises(FusecError, match="unknown boundary 'reflekt'"):
        fusec.stencil(LAPLACIAN, boundary="reflekt")
    with pytest.raises(FusecError, match=r"has shape \(1, 5\), not \(5, 5\)"):
        fusec.stencil("def f(a, b): return a[0, 1] + b[0, 1]")(a[:1], a)
    with pytest.raises(FusecError, match=r"array .b. of stencil .f. has shape"):
        fusec.stencil("def f(a, b): return a[0, 1] + b[0, 1]")(a[:4], a)
