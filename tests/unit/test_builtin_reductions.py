"""Built-in reductions: NumPy's values where these are exact, a proven bound elsewhere, one set of bits always."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import fusec
from fusec.compiler.lowering import lower_reduction
from fusec.dispatch.shown import Showing
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.reductions import REDUCED, SHORT, OneAxis
from fusec.library import dtype_rules, reductions
from fusec.passes.expand import expand
from fusec.passes.reductions import run_on_reduction
from tests.support.reduction_bounds import bound

Array = np.ndarray[Any, Any]
INTEGERS = ("bool", "int8", "uint16", "int64", "uint64")
NARROW = ("float16", ml_dtypes.bfloat16)
CHUNK = 8192  # of float32 along the last axis


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def draw(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Any bits for integers; small numbers of both signs with zeros, infinities and nan for floats."""
    kind = np.dtype(dtype)
    random = rng(seed)
    if kind.kind in "biu":
        bits = random.integers(0, 256, (*shape, kind.itemsize), np.uint8)
        return (bits[..., 0] & 1).astype(bool) if kind.kind == "b" else bits.view(kind)[..., 0]
    found = random.normal(size=shape) * 50
    found.flat[:: max(1, found.size // 5)] = 0
    return found.astype(kind)


def same(found: object, expected: object) -> None:
    """Equal in dtype, shape and value, nan like nan."""
    a, b = np.asarray(found), np.asarray(expected)
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    if a.dtype == ml_dtypes.bfloat16:  # NumPy takes its nan for different
        a, b = a.astype("f4"), b.astype("f4")
    np.testing.assert_array_equal(a, b)


# --- exact ---------------------------------------------------------------------------------------------------------

EXACT = ("sum", "prod", "min", "max", "ptp", "any", "all", "count_nonzero", "argmin", "argmax")
FEW = ("sum", "max", "argmin", "all")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_numpys(dtype: str) -> None:
    for name in EXACT if dtype in ("int8", "uint64") else FEW:
        x = draw(dtype, (5, 300))
        for axis in (None, 0, 1):
            same(getattr(fusec, name)(x, axis=axis), getattr(np, name)(x, axis=axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", *NARROW])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_extremes_of_floats_are_numpys(dtype: Any) -> None:
    x = draw(dtype, (6, 200))
    x[2, 5], x[3, 7], x[4, 0], x[4, 9] = np.nan, np.inf, -np.inf, np.nan
    if dtype in NARROW:
        same(fusec.max(x, 1), x.max(1))
        same(fusec.argmin(x, 1), x.astype("f4").argmin(1))
        return
    names = ("min", "max", "ptp", "argmin", "argmax", "nanmin", "nanmax", "any", "all", "count_nonzero")
    with np.errstate(invalid="ignore"):
        for name in names if dtype == "float32" else names[:4]:
            for axis in (None, 0, 1):
                same(getattr(fusec, name)(x, axis=axis), getattr(np, name)(x, axis=axis))
    same(fusec.nanargmax(x, 1), np.nanargmax(x, 1))
    same(fusec.nanargmin(x), np.nanargmin(x))


def test_both_extremes_in_one_pass() -> None:
    x = draw("float32", (40, 70))
    low, high = fusec.minmax(x, 1)
    same(low, x.min(1))
    same(high, x.max(1))


def test_zeros_have_an_order() -> None:
    zeros = np.array([0.0, -0.0, 0.0], "f4")
    assert np.signbit(fusec.min(zeros))
    assert not np.signbit(fusec.max(-zeros))
    assert fusec.argmin(zeros) == fusec.argmax(zeros) == 0  # equal for positions


def test_the_first_of_equals_wherever_it_is() -> None:
    for n in (1, 127, 128, 129, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK):
        for at in {0, 1, n // 2, n - 1} & set(range(n)):
            x = np.zeros(n, "f4")
            x[at:] = 7
            assert fusec.argmax(x) == at
            x[at] = np.nan
            assert fusec.argmax(x) == fusec.argmin(x) == at


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape_axes_and_strides(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.sampled_from((0, 1, 2, 3, 5, 33, 70)), max_size=4).map(tuple))
    x = draw("int64", shape, data.draw(st.integers(0, 9)))
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))
    steps = data.draw(st.tuples(*[st.sampled_from((1, -1, 2)) for _ in shape]))
    x = x[tuple(slice(None, None, step) for step in steps)]
    axes = data.draw(st.none() | st.sets(st.integers(0, max(0, x.ndim - 1)), max_size=x.ndim).map(tuple))
    if axes is not None and x.ndim == 0:
        axes = ()
    keepdims = data.draw(st.booleans())
    same(fusec.sum(x, axes, keepdims=keepdims), np.sum(x, axis=axes, keepdims=keepdims))
    if x.size:
        same(fusec.max(x, axes, keepdims=keepdims), np.max(x, axis=axes, keepdims=keepdims))


# --- rounding ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "lanes", "unit"), [("float32", 128, 2.0**-24), ("float64", 64, 2.0**-53)])
def test_sums_keep_the_documented_bound(dtype: str, lanes: int, unit: float) -> None:
    for n in (1, 2, 31, 33, 127, 129, 1000, CHUNK - 1, CHUNK + 1, 100_003, 1_000_000):
        random = rng(n)
        tiny = np.full(n, unit / 2)
        tiny[0] = 1  # one after the other, all but the first would be lost
        for x in (random.normal(size=n), random.uniform(size=n) * 2.0 ** random.integers(-30, 30, n), tiny):
            x = x.astype(dtype)
            exact, size = math.fsum(x.tolist()), math.fsum(np.abs(x).tolist())
            assert abs(float(fusec.sum(x)) - exact) <= bound(n, lanes, unit) * size
            assert abs(float(fusec.mean(x)) - exact / n) <= (bound(n, lanes, unit) + unit) * 1.0001 * size / n
    x = rng(1).normal(size=(5000, 40)).astype(dtype)
    exact = [math.fsum(column.tolist()) for column in x.T]
    size = [math.fsum(np.abs(column).tolist()) for column in x.T]
    assert (np.abs(fusec.sum(x, 0) - exact) <= bound(5000, 1, unit) * np.array(size)).all()


def test_the_variance_of_float32_is_right_to_a_few_units_also_far_from_zero() -> None:
    unit = 2.0**-24
    for n in (10, 1000, CHUNK, CHUNK + 5, 300_000):
        for centre in (0, 1, 1000, 1_000_000):
            x = (centre + rng(n).normal(size=n)).astype("f4")
            exact = x.astype(np.longdouble).var()
            error = abs(float(fusec.var(x) / exact - 1))
            assert error <= 8 * unit
            if centre == 1_000_000:
                assert error < abs(float(np.var(x) / exact - 1))
            assert abs(float(fusec.std(x, correction=1) / np.sqrt(exact * n / (n - 1)) - 1)) <= 8 * unit


def test_several_moments_at_once_are_those_alone() -> None:
    x = draw("float32", (30, 500))
    mean, var = fusec.mean_var(x, 1, correction=1)
    same(var, fusec.var(x, 1, correction=1))
    np.testing.assert_allclose(mean, x.mean(1, dtype="f8"), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c8", "i4"])
def test_mean_and_variance_of_no_elements_are_nan(dtype: str) -> None:
    mean, var = fusec.mean_var(np.ones((3, 0), dtype), 1)
    assert np.isnan(mean.real).all()
    assert np.isnan(mean.imag).all() == (dtype == "c8")
    assert np.isnan(var).all()
    found = fusec.mean_var(np.ones((2, 2), dtype), 1, where=[[True, False], [False, False]])
    for each, wanted in zip(found, (1, 0), strict=True):
        assert each[0] == wanted
        assert np.isnan(each[1])


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_are_rounded_once(dtype: Any) -> None:
    x = draw(dtype, (20, 400))
    same(fusec.sum(x, 1), fusec.sum(x.astype("f4"), 1).astype(dtype))
    same(fusec.mean(x, 0), fusec.mean(x.astype("f4"), 0).astype(dtype))
    same(fusec.var(x, 1), fusec.var(x.astype("f4"), 1).astype(dtype))
    assert fusec.sum(x, dtype="float32").dtype == np.float32


def test_complex_numbers() -> None:
    x = (draw("float64", (9, 90)) + 1j * draw("float64", (9, 90), 1)).astype("c16")
    for axis in (None, 0, 1):
        for name in ("sum", "mean", "var", "std"):
            found, expected = getattr(fusec, name)(x, axis=axis), getattr(np, name)(x, axis=axis)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    small = x[:, :4] / 50
    np.testing.assert_allclose(fusec.prod(small, 1), np.prod(small, 1), rtol=1e-12)
    np.testing.assert_allclose(fusec.vecdot(x, 2 * x), np.vecdot(x, 2 * x), rtol=1e-12)
    same(fusec.any(x, 1), np.any(x, 1))
    np.testing.assert_allclose(fusec.norm(x.astype("c8")), np.linalg.norm(x), rtol=1e-6)


def test_norms_and_logarithms() -> None:
    x = draw("float32", (12, 300))
    for axis in (None, 0, 1):
        for order in (0, 1, 2, 2.5, np.inf, -np.inf):
            expected = np.linalg.vector_norm(x.astype("f8"), ord=order, axis=axis)
            np.testing.assert_allclose(fusec.norm(x, order, axis), expected, rtol=2e-6)
        np.testing.assert_allclose(fusec.logsumexp(x, axis), special.logsumexp(x.astype("f8"), axis=axis), rtol=1e-6)
    edge = np.array([[-np.inf, -np.inf], [np.inf, 1], [np.nan, 1], [-np.inf, 2]], "f4")
    same(fusec.logsumexp(edge, 1), np.array([-np.inf, np.inf, np.nan, 2], "f4"))
    assert fusec.logsumexp(np.full(20_000, 1e30, "f4")) == np.float32(1e30)


def test_medians_are_numpys() -> None:
    for dtype in ("float32", "int16", "float16"):
        x = draw(dtype, (7, 9, 10))
        for axis in (None, 0, (1, 2), -1):
            for keepdims in (False, True):
                same(fusec.median(x, axis, keepdims=keepdims), np.median(x, axis=axis, keepdims=keepdims))
    x = np.array([1, np.nan, 3], "f4")
    assert np.isnan(fusec.median(x))


@pytest.mark.slow
def test_a_hundred_million_ones() -> None:
    assert fusec.sum(np.ones(100_000_000, "f4")) == 100_000_000


# --- options -------------------------------------------------------------------------------------------------------


def test_elements_left_out() -> None:
    x, mask = draw("float32", (8, 300)), draw("bool", (8, 300), 3)
    mask[3] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about rows that nothing is left of
        for axis in (0, 1):
            chosen = {"where": mask, "axis": axis}
            same(fusec.any(x, **chosen), np.any(x, **chosen))
            same(fusec.max(x, initial=-5, **chosen), np.max(x, initial=-5, **chosen))
            for name in ("sum", "mean", "var"):
                found, expected = getattr(fusec, name)(x, **chosen), getattr(np, name)(x, **chosen)
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(fusec.sum(x, 1, where=mask[:, :1]), np.sum(x, 1, where=mask[:, :1]), rtol=1e-5)
    full = np.ones_like(mask)
    assert fusec.sum(x, where=full) == fusec.sum(x)
    assert fusec.sum(x, where=False) == 0


def test_nan_left_out() -> None:
    x = draw("float32", (8, 300))
    x[draw("bool", x.shape, 5)] = np.nan
    for name in ("nansum", "nanmean", "nanvar", "nanstd"):
        for axis in (None, 1):
            np.testing.assert_allclose(getattr(fusec, name)(x, axis), getattr(np, name)(x, axis), rtol=1e-5)
    y = np.where(np.isnan(x), np.float32(1), x)[:, :9]
    same(fusec.nanprod(x[:, :9], 1), fusec.prod(y, 1))
    ints = draw("int8", (5, 9))
    same(fusec.nansum(ints, 0), np.nansum(ints, 0))
    assert np.isnan(fusec.nanmean(np.array([np.nan], "f4")))


def test_outputs_given_and_axes_kept() -> None:
    x = draw("float32", (4, 5, 60))
    for axis in (None, 1, (0, 2), -1):
        for keepdims in (False, True):
            expected = fusec.sum(x, axis, keepdims=keepdims)
            assert expected.shape == np.sum(x, axis=axis, keepdims=keepdims).shape
            out = np.empty_like(expected)
            assert fusec.sum(x, axis, out=out, keepdims=keepdims) is out
            same(out, expected)
    wide = np.empty(4)
    fusec.sum(x[0, :4], 1, out=wide)  # accumulated in float32, stored as what `out` is
    same(wide, fusec.sum(x[0, :4], 1).astype("f8"))
    assert fusec.sum(x, dtype="f8").dtype == np.float64
    assert fusec.sum(np.array([True, True]), dtype="u1").dtype == np.uint8
    assert fusec.sum(x, initial=1e10) == np.float32(1e10) + fusec.sum(x)
    row = x[0, 0].copy()
    fusec.max(np.broadcast_to(row, (3, 60)), 0, out=row)  # over itself
    same(row, x[0, 0])


def test_no_elements_and_no_axes() -> None:
    none = np.zeros((0, 3), "f4")
    for name in ("sum", "prod", "any", "all", "count_nonzero"):
        same(getattr(fusec, name)(none, axis=0), getattr(np, name)(none, axis=0))
    assert np.isnan(fusec.mean(none)).all()
    assert np.isnan(fusec.var(none, 0)).all()
    assert fusec.logsumexp(none) == -np.inf
    assert fusec.min(none, initial=3) == 3
    same(fusec.max(none, 1), np.max(none, 1))
    point = np.array(2.5, "f4")
    for name in ("sum", "max", "mean", "median", "argmax"):
        assert getattr(fusec, name)(point) == getattr(np, name)(point)
    same(fusec.sum(np.arange(4.0), ()), np.arange(4.0))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: fusec.min(np.zeros(0)), ValueError, "zero-size array to reduction operation minimum which has no"),
        (lambda: fusec.argmax(np.zeros((2, 0)), 1), ValueError, "attempt to get argmax of an empty sequence"),
        (lambda: fusec.nanargmin(np.array([np.nan])), ValueError, "All-NaN slice encountered"),
        (lambda: fusec.sum(np.zeros(3), 1), IndexError, "axis 1 is out of bounds for array of dimension 1"),
        (lambda: fusec.sum(np.zeros((3, 3)), (0, -2)), ValueError, "duplicate value in 'axis'"),
        (lambda: fusec.median(np.zeros(3), "x"), TypeError, "axis must be"),
        (lambda: fusec.argmin(np.zeros(3), (0,)), TypeError, "argmin takes one axis"),
        (lambda: fusec.max(np.zeros(3), where=np.ones(3, bool)), ValueError, "one has to specify 'initial'"),
        (lambda: fusec.sum(np.zeros(3), where=np.ones(3)), TypeError, "must be bool"),
        (lambda: fusec.sum(np.zeros(3), where=np.ones((2, 3), bool)), ValueError, "does not broadcast"),
        (lambda: fusec.max(np.zeros(3, "c8")), TypeError, "max is not defined for dtype complex64"),
        (lambda: fusec.ptp(np.zeros(3, bool)), TypeError, "ptp is not defined for dtype bool"),
        (lambda: fusec.mean(np.zeros(3), dtype="i4"), TypeError, "mean is not defined for dtype int32"),
        (lambda: fusec.sum(np.zeros((3, 2)), 0, out=np.zeros(3)), ValueError, "Out shape is mismatched"),
        (lambda: fusec.sum(np.zeros(3), out=np.zeros((), "i4")), TypeError, "int32"),
        (lambda: fusec.sum(np.array(["a"])), TypeError, "U1"),
    ],
)
def test_mistakes(call: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


# --- one set of bits -----------------------------------------------------------------------------------------------


def test_the_walk_decides_not_the_axes_it_goes_by() -> None:
    for shape in ((70, 9000), (200, SHORT), (200, SHORT + 1)):
        x = rng().normal(size=shape).astype("f4")
        for name in ("sum", "var"):
            reduce = getattr(fusec, name)
            for axis in (0, 1):
                same(reduce(x.T, 1 - axis), reduce(x, axis))
                same(reduce(x[::-1, ::-1], axis), reduce(x, axis)[::-1])
                same(reduce(np.repeat(x, 2, 1)[:, ::2], axis), reduce(x, axis))
            same(reduce(x.T), reduce(x))
            same(reduce(x.reshape(2, -1, shape[1]), (0, 1)), reduce(x, 0))


F32 = np.dtype("f4")
KERNELS = {
    "sum": dtype_rules.total("sum", F32, (None, None), starts=False, masked=False),
    "mean": dtype_rules.moments("mean", F32, (None, None), masked=False),
    "nanvar": dtype_rules.moments("nanvar", F32, (None, None), masked=False),
    "var": dtype_rules.moments("var", F32, (None, None), masked=False),
    "logsumexp": dtype_rules.logsumexp("logsumexp", F32),
    "argmax": dtype_rules.place("argmax", F32, short=True),
}


@pytest.mark.parametrize(("shape", "axis"), [((2, CHUNK + 300), 1), ((150, 40), 0)])
def test_the_bits_are_the_oracles(shape: tuple[int, int], axis: int) -> None:
    x = rng(4).normal(size=shape).astype("f4")
    kept, count = shape[1 - axis], shape[axis]
    for name in ("sum", "mean", "nanvar", "var", "logsumexp"):
        kernel = KERNELS[name]
        reduction, _ = lower_reduction(kernel.definition, SimpleNamespace(reduced=(axis,)))
        found = np.zeros(kept, "f4")
        arrays = {"x": x, kernel.out_params[0].name: found}
        scalars = {REDUCED: count, "correction": 0}
        interpret_reduction(run_on_reduction(reduction, expand), arrays, scalars, OneAxis(shape, axis))
        same(getattr(fusec, name)(x, axis), found)


@pytest.mark.parametrize("target", ["cuda", "metal"])
def test_every_kind_of_formula_has_a_text_for_gpus(target: str) -> None:
    for name, kernel in KERNELS.items():
        scalars = [param.name for param in kernel.in_params if param.name == "correction"]
        for axis in (0, 1):
            text = kernel.shown(Showing(target, {}, scalars, (300, 200), axis)).text(target)
            assert kernel.name in text, name


SCRIPT = """
import hashlib, numpy as np, fusec
r = np.random.default_rng(0)
found = hashlib.sha256()
def take(value): found.update(np.ascontiguousarray(value).tobytes())
for n in (1, 100, 8191, 8193, 300_001):
    x = r.normal(size=n).astype("f4")
    for name in ("sum", "var"):
        take(getattr(fusec, name)(x))
x = r.normal(size=(700, 501)).astype("f4")
for axis in (0, 1):
    take(fusec.argmax(x, axis)); take(fusec.mean_var(x, axis)); take(fusec.sum(x.astype("f8"), axis))
take(fusec.softmax(x))
print(found.hexdigest())
"""


def test_threads_and_processors_change_no_bit() -> None:
    levels = ["native", "generic", "native"]
    if sys.platform == "linux" and os.uname().machine == "x86_64":
        levels[1:] = ["sse2", "avx2" if "avx2" in Path("/proc/cpuinfo").read_text() else "native"]
    runs = [{"FUSEC_NUM_THREADS": str(at), "FUSEC_CPU": level} for at, level in enumerate(levels, 1)]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT], env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True
        )
        for environment in runs
    ]
    printed = {each.communicate()[0] for each in started}
    assert all(each.returncode == 0 for each in started)
    assert len(printed) == 1


def test_repeated_calls_give_what_the_first_gave() -> None:
    for shape, axis in (((300,), None), ((50_000,), None), ((300, 400), 0), ((7, 90), 1)):
        x = rng(2).normal(size=shape).astype("f4")
        first = fusec.var(x, axis, correction=1)
        for _ in range(3):
            same(fusec.var(x, axis, correction=1), first)
        other = rng(3).normal(size=shape).astype("f4")
        same(fusec.var(other, axis, correction=1), fusec.var(other.copy(), axis, correction=1))
        assert fusec.var(other, axis, correction=1).tobytes() != first.tobytes()
        same(fusec.var(np.asfortranarray(x), axis, correction=1), first if len(shape) == 1 else _var(x, axis))
        with pytest.raises(TypeError, match="axis"):
            fusec.var(x, axis=True)


def _var(x: Array, axis: int | None) -> object:
    return fusec.var(np.asfortranarray(x), axis, correction=1)


def test_other_libraries_and_lists() -> None:
    class Foreign:
        def __init__(self, array: Array) -> None:
            self.__array_interface__ = array.__array_interface__
            self.kept = array

    x = draw("float32", (5, 70))
    same(fusec.sum(Foreign(x), 1), fusec.sum(x, 1))
    assert fusec.sum([1, 2, 3]) == 6
    assert fusec.max(4.5) == 4.5


def test_every_public_name_is_importable() -> None:
    for names in fusec.HOMES.values():
        for name in names.split():
            assert callable(getattr(fusec, name))
            assert name in dir(fusec)
    assert set(reductions.__all__) == set(fusec.HOMES["library.reductions"].split())


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod"])
def test_bools_asked_for_combine_by_logic_as_in_numpy(name: str) -> None:
    for x in ([True, True], [True, False, True], [False, False], [0.5, 0.5], [256, 256]):
        found, wanted = (getattr(module, name)(np.array(x), dtype=bool) for module in (fusec, np))
        assert np.array_equal(found, wanted), x
