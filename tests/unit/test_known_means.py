"""Variances about means that are known, and sums that begin with a negative zero."""

import warnings

import numpy as np
import pytest

import fusec

RNG = np.random.default_rng(0)
TOLERANCE = {"float16": 2e-3, "float32": 2e-6}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "complex128"])
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.sampled(5)
def test_variances_about_known_means_are_numpys(dtype, axis):
    x = (RNG.normal(size=(5, 7)) * 9).astype(dtype)
    x = x + 1j * x[::-1] if dtype == "complex128" else x
    mean = np.mean(x, axis=axis, keepdims=True)
    for options in ({}, {"correction": 1}, {"keepdims": True}, {"where": RNG.random((5, 7)) > 0.3}):
        for name in ("var", "std"):
            found = getattr(fusec, name)(x, axis=axis, mean=mean, **options)
            wanted = getattr(np, name)(x, axis=axis, mean=mean, **options)
            assert np.asarray(found).dtype == np.asarray(wanted).dtype
            np.testing.assert_allclose(found, wanted, rtol=TOLERANCE.get(dtype, 1e-13))


def test_a_known_mean_is_what_is_taken():
    x = RNG.normal(size=100)
    assert fusec.var(x, mean=np.mean(x)) == pytest.approx(fusec.var(x), rel=1e-14)
    assert fusec.var(np.ones(3, "float32"), mean=0.5) == np.float32(0.25)
    assert fusec.var(np.ones(3, "float32"), mean=0.5).dtype == np.float32
    assert fusec.std(np.arange(3), mean=1) == np.std(np.arange(3))
    assert np.isnan(fusec.var(np.zeros(0), mean=1.0))
    x[0] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(fusec.nanvar(x, mean=0.25), np.nanvar(x, mean=np.array([0.25])), rtol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_a_sum_keeps_the_negative_zero_it_begins_with(dtype):
    for x in (np.zeros(0, dtype), np.array([-0.0], dtype), np.zeros((3, 0), dtype), np.array([0.0], dtype)):
        found, wanted = (each.sum(x, axis=-1, initial=-0.0) for each in (fusec, np))
        np.testing.assert_array_equal(np.signbit(np.real(found)), np.signbit(np.real(wanted)))
    nothing = np.array([False, False])
    assert np.signbit(fusec.sum(np.array([5.0, 6]), initial=-0.0, where=nothing))
    assert not np.signbit(fusec.sum(np.zeros(0)))
    assert not np.signbit(fusec.sum(np.zeros(0), initial=0.0))


def test_texts_are_shown_with_the_numbers_that_calls_would_pass():
    kernel = fusec.ElementwiseKernel("T x, raw T w", "T z", "z = x * w")
    shown = kernel.source("cuda", {"T": "float32"})
    assert shown == kernel.source("cuda", {"T": "float32"}, scalars=["w"])
    np.testing.assert_array_equal(kernel(np.ones(3, "float32"), 2.0), [2, 2, 2])
    finish = fusec.ReductionKernel("T x, T s", "T y", "x", "a + b", "y = a * s", "0", "scaled")
    shown = finish.source("cuda", {"T": "float32"})
    assert shown == finish.source("cuda", {"T": "float32"}, scalars=["s"])
    assert finish(np.ones(3), 2.0) == 6
    raw = fusec.ReductionKernel("T x, raw T w", "T y", "x * w", "a + b", "y = a", "0", "weighted")
    assert "float w" in raw.source("cuda", {"T": "float32"})
    assert raw(np.ones(3), 2.0) == 6


def test_what_is_wrong_with_a_text_is_told_as_it_is_for_arrays():
    kernel = fusec.ElementwiseKernel("T x, raw T w", "T z", "z = x * w + w[0]")
    with pytest.raises(fusec.FusecError, match="raw array 'w' is not a value"):
        kernel.source("cuda", {"T": "float32"})
