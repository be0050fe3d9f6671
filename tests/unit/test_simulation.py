"""What is simulated gives the bits of what is compiled, and Python runs the function that is written."""

import numpy as np
import pytest

import fusec
from fusec import FusecError


@fusec.elementwise
def both(x, y):
    if x > 2:
        return x, np.sqrt(y)
    return y, x


def test_functions_and_texts_give_the_same_bits():
    x = np.linspace(-3, 5, 77, dtype="float32")
    for args in ((x, 2.5), (x, x[:, None]), (2.0, 3.0)):
        for found, wanted in zip(fusec.simulate(both)(*args), both(*args), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype
    kernel = fusec.ElementwiseKernel("T x, int32 k", "T z, T w", "z = sin(x) * k; w = erf(x) + i")
    for found, wanted in zip(fusec.simulate(kernel)(x, 3), kernel(x, 3), strict=True):
        np.testing.assert_array_equal(found, wanted)
    stencil = fusec.stencil("def f(a, w): return a[-1, 0] + a[0, 2] * w", boundary="mirror")
    image = x[:70].reshape(7, 10)
    out = np.empty_like(image)
    fusec.simulate(stencil)(image, w=3, out=out)
    np.testing.assert_array_equal(out, stencil(image, 3))


def test_raw_kernels_take_a_size():
    kernel = fusec.ElementwiseKernel("raw _non_const T x", "", "x[i] += 1", no_return=True)
    x = np.zeros(5)
    assert fusec.simulate(kernel)(x, size=3) is None
    assert x.tolist() == [1, 1, 1, 0, 0]


def test_python_runs_functions_that_print(capsys):
    @fusec.elementwise
    def noisy(x, y):
        print("x is", x)
        return x + y

    np.testing.assert_array_equal(fusec.simulate(noisy, python=True)(np.arange(2.0), 1), [1, 2])
    assert capsys.readouterr().out == "x is 0.0\nx is 1.0\n"
    with pytest.raises(FusecError, match="'print' is not part"):
        noisy(np.arange(2.0), 1)
    x = np.linspace(0, 4, 6)
    for found, wanted in zip(
        fusec.simulate(both, python=True)(x[:, None], 2.0 * x), both(x[:, None], 2.0 * x), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
    out = (np.zeros(6), np.zeros(6))
    assert fusec.simulate(both, python=True)(x, 1.0, out=out)[0] is out[0]
    assert out[1][0] == x[0]
    assert fusec.simulate(both, python=True)(3, 4) == (3, 2)


@fusec.reduction(
    map=lambda x, y, index: (x * y, index), finish=lambda held, count, indices: (held[0], held[1], indices[0])
)
def least(a, b):
    if b[0] < a[0] or (b[0] == a[0] and b[1] < a[1]):
        return b
    return a


def test_reductions_give_the_same_bits():
    x = np.random.default_rng(0).normal(size=(3, 70, 40)).astype("f4")
    total = fusec.ReductionKernel(
        "T x, T y", "T z, int64 n", "x * y + _J", "a + b", "z = sin(a); n = _out_ind.get()[0]", "0"
    )
    for kernel, args, axis in (
        (total, (x, x[:, ::-1]), 2), (total, (x, 0.5), (0, 2)), (total, (x.T[:, ::-2], x.T[:, :35]), 1),
        (total, (x[:, :0], 2.0), 1),
        (least, (x, np.round(x)), (1, 2)), (least, (x, 2), 1), (least, (np.ones((2, 9000), "f4"), 1.0), 1),
    ):  # fmt: skip
        for found, wanted in zip(fusec.simulate(kernel)(*args, axis=axis), kernel(*args, axis=axis), strict=True):
            assert (found.tobytes(), found.dtype, found.shape) == (wanted.tobytes(), wanted.dtype, wanted.shape)
    masked = fusec.reduction(np.add, identity=0)
    out = np.zeros((1, 1, 40), "f4")
    assert fusec.simulate(masked)(x, axis=(0, 1), where=x > 0, keepdims=True, out=out) is out
    assert out.tobytes() == masked(x, axis=(0, 1), where=x > 0, keepdims=True).tobytes()


def test_what_cannot_be_simulated_is_told_so():
    for wrong in (len, np.sin, 3):
        with pytest.raises(FusecError, match="cannot be simulated"):
            fusec.simulate(wrong)
    for kernel, kind in (
        (fusec.stencil("def f(a): return a[1]"), "a stencil"),
        (fusec.ElementwiseKernel("T x", "T z", "z = x"), "a kernel of C"),
        (fusec.elementwise("def f(x): return x"), "a function given as a text"),
        (least, "a reduction"),
        (fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a"), "a scan"),
        (fusec.fuse(lambda x: x + 1), "a fused function"),
        (fusec.NumExpr("a + b"), "an expression"),
    ):
        with pytest.raises(FusecError, match=f"^{kind} cannot be simulated with python=True"):
            fusec.simulate(kernel, python=True)
    with pytest.raises(FusecError, match="Wrong number of arguments"):
        fusec.simulate(fusec.ElementwiseKernel("T x", "T z", "z = x"))()


SCANS = {
    "sums": fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", "0"),
    "of those before": fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a * 2", "0", inclusive=False),
    "segments": fusec.ScanKernel("T x, bool first", "T y", "x", "a + b", "y = a", "0", segments="first"),
    "a raw array": fusec.ScanKernel("T x, raw T w", "T y", "exp(x) * w[0]", "max(a, b)", "y = a"),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans_give_the_same_bits(name):
    kernel = SCANS[name]
    for shape, axis in (((7,), -1), ((3000,), 0), ((70, 40), 0), ((5, 0), 1), ((0,), 0)):
        x = np.random.default_rng(1).normal(size=shape).astype("float32")
        for view in (x, x[::-1], x.T):
            more = {"segments": [view > 1], "a raw array": [np.full(3, 1.5, "float32")]}.get(name, [])
            for reverse in (False, True):
                found = fusec.simulate(kernel)(view, *more, axis=axis, reverse=reverse)
                assert found.tobytes() == kernel(view, *more, axis=axis, reverse=reverse).tobytes()
    out = np.zeros(4)
    assert fusec.simulate(SCANS["sums"])(out + 1, out=out) is out
    assert out.tolist() == [1, 2, 3, 4]
