# ruff: noqa: F841 - the variables are named in texts
"""Reductions in texts: anywhere, of anything, with NumPy's types and shapes."""

import numpy as np
import pytest

import fusec
from fusec.fusion import evaluate

NAMES = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all, "where": np.where}


def same(text, **names):
    found, wanted = fusec.evaluate(text, names, {}), np.asarray(eval(text, NAMES, names))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-12 if wanted.dtype.itemsize >= 8 else 1e-6)
    return found


def test_what_numexprs_own_test_asks():
    for x in (np.linspace(0.1, 1.0, 2000), np.arange(10) + 0.1j):
        same("sum(x**2+2,axis=0)", x=x)
        same("prod(x-1,axis=0)", x=x)
        if x.dtype.kind != "c":
            same("min(x**2+2,axis=0)", x=x)
            same("max(x-1)", x=x)
    y = np.arange(9.0).reshape(3, 3)
    for name in ("sum", "prod", "min", "max"):
        same(f"{name}(y**2, axis=1)", y=y)
    row = np.arange(10).reshape(1, 10)
    for axis in (0, 1, None):
        same(f"sum(x, axis={axis})", x=row)
    same("sum(x+2,axis=None)", x=np.zeros(100_000) + 0.01)


def test_reductions_stand_anywhere():
    a, b, k = np.arange(12.0).reshape(3, 4), np.arange(4.0) + 1, 2.5
    for text in (
        "a - sum(a, axis=0)", "a/sum(a*b)", "sum(a*b, axis=0) + b", "max(a - sum(a)/12, axis=1)", "k*sum(a) + 1",
        "sum(sum(a, axis=1)*2)", "sum(a, axis=(0, 1)) - max(b)", "where(a > min(b), a, prod(b))", "sum(a > 3, axis=0)",
        "any(a > b) & all(b, axis=0)", "sum(k*a)", "max(sum(a, axis=0)) - min(sum(a, axis=1))", "sum(b, 0)*b",
    ):  # fmt: skip
        same(text, a=a, b=b, k=k)


@pytest.mark.parametrize("dtype", ["?", "i2", "u1", "i8"])
def test_totals_of_integers_are_exact_and_as_wide_as_numpys(dtype):
    x = (np.arange(3 * 4096).reshape(3, 4096) % 7 - 3).astype(dtype)
    for text in ("sum(x)", "sum(x, axis=0)", "prod(x, axis=0)", "min(x, axis=1)", "max(x)", "any(x)"):
        found = fusec.evaluate(text)
        wanted = np.asarray(eval(text, NAMES, {"x": x}))
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


def test_the_layout_of_arrays_does_not_matter():
    x = np.arange(120.0).reshape(4, 5, 6)
    for view in (x.T, x[::-1, ::2, 1:3], np.broadcast_to(x[0, 0], (3, 6)), x[:, :0]):
        for axis in (0, None):
            same(f"sum(v + 1, axis={axis})", v=view)


def test_extremes_keep_nan():
    x = np.array([[1.0, np.nan, -3.0], [4.0, 2.0, -0.0]])
    for text in ("min(x)", "max(x, axis=0)", "min(x, axis=1)"):
        assert np.array_equal(fusec.evaluate(text), eval(text, NAMES, {"x": x}), equal_nan=True)


def test_totals_of_nothing_are_numpys():
    x = np.zeros((0, 3))
    same("sum(x)", x=x)
    same("prod(x, axis=0)", x=x)
    same("sum(x, axis=1)", x=x)
    same("all(x) | any(x)", x=x)
    with pytest.raises(ValueError, match=r"no identity|zero-size|no elements"):
        fusec.evaluate("min(x)")


def test_axes_are_checked_in_the_text():
    y = np.zeros((2, 3))
    for text, what in {
        "sum(y, axis=2)": "no axis 2", "1 + sum(y, axis=-1)": "counts from the end", "sum(y, axis=(1, 1))": "twice",
        "sum(sum(y, axis=0), axis=1)": "no axis 1", "sum(y, axis=y)": "a number in the expression",
        "max(2**70, 1)": r"maximum\(a, b\) compares two values",
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=what) as caught:
            fusec.evaluate(text)
        assert caught.value.span.file.text == text


def test_complex_numbers_have_sums_but_no_extremes():
    z = np.array([1 + 2j, 3 - 1j])
    assert fusec.evaluate("sum(z*2) - prod(z)") == 2 * z.sum() - z.prod()
    with pytest.raises(TypeError, match="complex numbers have no order"):
        fusec.evaluate("max(z)")


def test_repeated_totals_are_of_the_arrays_given_then():
    for size in (3, 3, 1000, 3, 100_000, 3):
        for dtype in ("f4", "i4"):
            x = np.arange(size).astype(dtype)
            found = fusec.evaluate("sum(x*2)")
            assert found.dtype == (x * 2).sum().dtype
            np.testing.assert_allclose(found, (x * 2).sum(), rtol=1e-5)
    for x in (2, 2.5, np.float32(1.5), [1, 2], np.arange(4)):
        assert fusec.evaluate("sum(x*2)") == np.sum(np.asarray(x) * 2)


def test_repeated_totals_have_a_native_entry():
    x, y = np.arange(30.0), np.arange(30.0).reshape(5, 6)
    for text in ("sum(x*x + 1)", "max(y + 1, axis=1)"):
        for _ in range(4):
            fusec.evaluate(text)
        part = evaluate._known(text).only
        assert type(part._quick[part._choice]).__name__ == "builtin_function_or_method"


def test_totals_have_an_output_and_an_order_too():
    y = np.arange(6).reshape(2, 3)
    out = np.zeros(3)
    assert fusec.evaluate("sum(y, axis=0)", out=out) is out
    assert np.array_equal(out, y.sum(0))
    with pytest.raises(ValueError, match="shape"):
        fusec.evaluate("sum(y, axis=1)", out=out)
    cube = np.arange(24.0).reshape(2, 3, 4)
    assert fusec.evaluate("sum(cube, axis=0)", order="F").flags.f_contiguous
