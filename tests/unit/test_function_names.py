"""Functions by the names that C, CUDA, NumPy and SciPy give them: what a call in a kernel computes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.errors import FusecError
from fusec.frontends.c.functions import BUILTINS

X = np.array([2.5, -3.75, 0.5, -0.25, 7.0])


def test_a_result_and_a_pointer_to_the_argument_itself() -> None:
    """The result is of the old value, whatever the function stores."""
    kernel = fusec.ElementwiseKernel(
        "T x", "T f, T w, T m, int32 e", "T y = x; int q; f = modf(y, &y); w = y; m = frexp(x, &q); e = q"
    )
    for found, wanted in zip(kernel(X), (*np.modf(X), *np.frexp(X)), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_real_functions_by_name() -> None:
    y = np.array([1.0, 1.0, -2.0, 3.0, 0.5])
    wanted = {
        "heaviside(x, y)": np.heaviside(X, y),
        "remainder(x, y)": [math.remainder(a, b) for a, b in zip(X, y, strict=True)],
        "remainderf(x, y)": [math.remainder(a, b) for a, b in zip(X, y, strict=True)],
        "logb(x)": np.floor(np.log2(np.abs(X))),
        "clip(x, 0, y)": np.clip(X, 0, y),
        "spacing(x)": np.spacing(X),
        "square(x)": X * X,
        "reciprocal(x)": 1 / X,
        "sign(x)": np.sign(X),
        "gamma(5)": np.full(5, 24.0),
        "popcount((char)7) + clz((short)1) + gcd(12, 18) + lcm(4, 6)": np.full(5, 3 + 15 + 6 + 12.0),
    }
    close = {
        "logaddexp2(x, y)": np.logaddexp2(X, y),
        "deg2rad(x)": np.deg2rad(X),
        "rad2deg(x)": np.rad2deg(X),
        "erfcx(x)": [math.exp(a * a) * math.erfc(a) for a in X],
    }
    outputs = [f"float64 z{at}" for at in range(len(wanted) + len(close))]
    body = "; ".join(f"z{at} = {text}" for at, text in enumerate([*wanted, *close]))
    found = fusec.ElementwiseKernel("float64 x, float64 y", ", ".join(outputs), body)(X, y)
    for text, value in zip(wanted, found, strict=False):
        np.testing.assert_array_equal(value, wanted[text], err_msg=text)
    for text, value in zip(close, found[len(wanted) :], strict=True):
        np.testing.assert_allclose(value, close[text], rtol=1e-14, err_msg=text)


def test_complex_functions_by_name() -> None:
    z = np.array([1 + 1j, -2 + 0.5j, 0.25 - 3j])
    names = ["expm1", "log1p", "log2", "log10", "sign", "reciprocal", "square"]
    outputs = ", ".join(f"T {name}_" for name in names)
    kernel = fusec.ElementwiseKernel(
        "T z", f"{outputs}, T p, bool f", "; ".join(f"{n}_ = {n}(z)" for n in names) + "; p = proj(z); f = isfinite(z)"
    )
    *found, projected, finite = kernel(z)
    for name, value in zip(names, found, strict=True):
        np.testing.assert_allclose(value, getattr(np, name)(z), rtol=1e-14)
    np.testing.assert_array_equal(projected, z)
    assert finite.all()


def test_neighbours_of_narrow_floats_are_narrow_floats() -> None:
    x = np.array([1.0, -1.0, 0.0, 6e-8, 65504.0, np.inf], np.float16)
    towards = np.array([np.inf, 0.0, -1.0, 0.0, np.inf, 0.0], np.float16)
    found, steps = fusec.ElementwiseKernel("T x, T y", "T z, T s", "z = nextafter(x, y); s = spacing(x)")(x, towards)
    np.testing.assert_array_equal(found, np.nextafter(x, towards))
    # NumPy's spacing of negative halves is that of the other side
    np.testing.assert_array_equal(steps, np.float16([2**-10, -(2**-10), 2**-24, 2**-24, np.inf, np.nan]))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_narrow_float_has_its_neighbours_in_python_too(dtype: type) -> None:
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    nextafter = fusec.vectorize("def f(x, y): return nextafter(x, y)")
    fused = fusec.fuse(lambda x, y: np.nextafter(x, y))
    with np.errstate(all="ignore"):
        for towards in (*np.array([np.inf, -np.inf, 0, -1, np.nan], dtype)[:, None], x[::-1], np.roll(x, 12345)):
            wanted = np.nextafter(x, towards).astype("f4")
            for found in (nextafter(x, towards), fused(x, towards), fusec.evaluate("nextafter(x, towards)")):
                assert found.dtype == dtype
                np.testing.assert_array_equal(found.astype("f4"), wanted)
        steps = fusec.vectorize("def f(x): return spacing(x)")(x)
        outward = np.nextafter(x, np.where(np.signbit(x) & (x != 0), -np.inf, np.inf).astype(dtype))
        np.testing.assert_array_equal(steps.astype("f4"), outward.astype("f4") - x.astype("f4"))


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_floats_of_eight_bits_have_the_neighbours_of_their_dtype(dtype: type) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype)
    x, towards = np.repeat(every, 256), np.tile(every, 256)
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = nextafter(x, y)")
    with np.errstate(all="ignore"):
        wanted, steps = np.nextafter(x, towards).astype("f4"), np.spacing(every).astype("f4")
        for found in (kernel(x, towards), fusec.fuse(np.nextafter)(x, towards), np.nextafter(xp.asarray(x), towards)):
            assert found.dtype == dtype
            np.testing.assert_array_equal(np.asarray(found).astype("f4"), wanted)
        np.testing.assert_array_equal(fusec.fuse(np.spacing)(every).astype("f4"), steps)


@pytest.mark.parametrize(("call", "cure"), [("gcd(x, 2)", "pass integers"), ("popcount(x)", "pass an integer")])
def test_functions_of_integers_refuse_floats(call: str, cure: str) -> None:
    with pytest.raises(FusecError, match=cure):
        fusec.ElementwiseKernel("float32 x", "float32 z", f"z = {call}")(np.zeros(1, np.float32))


def test_functions_of_c_and_cuda_have_their_float32_names() -> None:
    plain = (
        "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan sinpi cospi asin acos atan atan2 sinh cosh tanh asinh"
    )
    plain += (
        " acosh atanh pow cbrt rcbrt rsqrt hypot erf erfc erfcx erfinv erfcinv lgamma tgamma normcdf normcdfinv j0 j1"
    )
    plain += (
        " y0 y1 floor ceil trunc rint nearbyint round fabs fmod remainder fmin fmax fma fdim copysign nextafter ldexp"
    )
    plain += " scalbn logb sqrt lrint llrint lround llround"
    plain += " ilogb"
    assert not [name for base in plain.split() for name in (base, f"{base}f") if name not in BUILTINS]
