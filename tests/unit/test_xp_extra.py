"""The functions of xp.extra are what their definitions say, for arrays that are and that are not evaluated yet."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusec.xp as xp

RNG = np.random.default_rng(7)
X = RNG.normal(size=(5, 7)) * 3
Y = RNG.normal(size=(5, 7))
Z = X + 1j * Y
N = RNG.integers(-9, 9, (5, 7))
ROWS = np.arange(35).reshape(5, 7)
ERF = np.vectorize(math.erf)
SOFT = np.exp(X - X.max(-1, keepdims=True)) / np.exp(X - X.max(-1, keepdims=True)).sum(-1, keepdims=True)
WANTED = {
    "seq((5, 7), 2, 3)": 2 + 3 * ROWS,
    "seq(3, 2**63 - 5)": np.arange(2**63 - 5, 2**63 - 2),
    "logseq(4, 4, -1, 2)": np.array([16.0, 8.0, 4.0, 2.0]),
    "nearly_equal(X, X * (1 + 5e-16))": np.ones((5, 7), bool),
    "nearly_equal(X, X + 1e-3)": np.zeros((5, 7), bool),
    "round_half_away(N / 2)": np.sign(N) * np.floor(np.abs(N) / 2 + 0.5),
    "round_half_away(N)": N,
    "sinc_unnormalized(X)": np.sin(X) / X,
    "mul_i(Z)": 1j * Z,
    "with_real(Z, Y)": Y + 1j * Z.imag,
    "with_imag(Z, X)": Z.real + 1j * X,
    "popcount(N)": np.bitwise_count(N),
    "poly(X, 1, 2, 3)": 1 + X * (2 + X * 3),
    "poly(X, Y, N)": Y + X * N,
    "rms(X)": np.sqrt(np.mean(X * X)),
    "rms(Z, axis=1)": np.sqrt(np.mean(np.abs(Z) ** 2, axis=1)),
    "minmax(X, axis=0)": (X.min(0), X.max(0)),
    "mean_var(X, axis=1, correction=1)": (X.mean(1), X.var(1, ddof=1)),
    "mulsum(X, Y, axis=1)": (X * Y).sum(1),
    "mulsum(Z, Z)": (Z * Z).sum(),
    "none(X > 99)": np.True_,
    "none(X > 0, axis=1)": ~(X > 0).any(1),
    "max_index(X)": np.argmax(X),
    "max_index(X, axis=0)": ROWS[X.argmax(0), np.arange(7)],
    "min_index(X, axis=1)": ROWS[np.arange(5), X.argmin(1)],
    "sort_index(X)": np.take_along_axis(ROWS, X.argsort(-1), -1),
    "sort_index(X, axis=0)": np.take_along_axis(ROWS, X.argsort(0), 0),
    "where2(X > 0)": (np.flatnonzero(X > 0), np.flatnonzero(X <= 0)),
    "cummax(X, axis=1)": np.maximum.accumulate(X, 1),
    "cummin(X, axis=0)": np.minimum.accumulate(X, 0),
    "logcumsumexp(X, axis=1)": np.logaddexp.accumulate(X, 1),
    "gemm(X, Y.T)": X @ Y.T,
    "gemm(X, Y.T, X[:, :5], alpha=2, beta=0.5)": 2 * (X @ Y.T) + 0.5 * X[:, :5],
    "softmax(X)": SOFT,
    "softmax(X.T, axis=0)": SOFT.T,
    "log_softmax(X)": np.log(SOFT),
    "logsumexp(X, axis=-1)": np.log(np.exp(X).sum(-1)),
    "layer_norm(X)": (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5),
    "one_hot(N, 5)": np.eye(5)[np.clip(N, 0, 4)] * ((N >= 0) & (N < 5))[..., None],
    "one_hot(N, 5, axis=0, dtype='int8')": (np.arange(5)[:, None, None] == N).astype("int8"),
    "relu(X)": np.maximum(X, 0),
    "leaky_relu(X, 0.2)": np.where(X > 0, X, 0.2 * X),
    "sigmoid(X)": 1 / (1 + np.exp(-X)),
    "silu(X)": X / (1 + np.exp(-X)),
    "gelu(X)": X * (1 + ERF(X / math.sqrt(2))) / 2,
    "gelu_tanh(X)": X / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (X + 0.044715 * X**3))),
    "softmax_cross_entropy(X, abs(N[:, 0]) % 7)": -np.log(SOFT)[np.arange(5), np.abs(N[:, 0]) % 7],
    "erf(X)": ERF(X),
    "erfc(X)": 1 - ERF(X),
    "exp10(N)": 10.0**N,
    "gamma(abs(X) + 1)": np.vectorize(math.gamma)(np.abs(X) + 1),
    "gammaln(abs(X) + 1)": np.vectorize(math.lgamma)(np.abs(X) + 1),
    "nanmean(X, axis=1)": X.mean(1),
    "median(X, axis=1)": np.median(X, axis=1),
    "bincount(abs(N[0]))": np.bincount(np.abs(N[0])),
    "cov(X)": np.cov(X),
}


def names(convert):
    return {name: convert(value) for name, value in (("X", X), ("Y", Y), ("Z", Z), ("N", N))}


def each(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("text", WANTED)
@pytest.mark.sampled(5)
def test_a_function_is_what_its_definition_says(text):
    for convert in (xp.asarray, lambda value: xp.asarray(value) + 0):
        found = each(eval(f"extra.{text}", {"extra": xp.extra, "abs": abs, **names(convert)}))
        for ours, theirs in zip(found, each(WANTED[text]), strict=True):
            assert isinstance(ours, xp.Array)
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-12, atol=1e-14)


def test_a_dtype_that_the_function_computes_in_stays():
    x = xp.asarray(X, dtype="float32")
    for name in ("softmax", "rms", "sigmoid", "gelu", "gelu_tanh", "silu", "relu", "erf", "round_half_away"):
        assert getattr(xp.extra, name)(x).dtype == np.float32, name


@settings(deadline=None, max_examples=50)
@given(npst.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e300, 1e300)))
def test_softmax_adds_up_to_one_and_is_never_nan(x):
    found = np.asarray(xp.extra.softmax(xp.asarray(x)))
    assert math.isclose(found.sum(), 1, rel_tol=1e-12)
    assert (np.asarray(xp.extra.log_softmax(x)) <= 0).all()


@settings(deadline=None, max_examples=50)
@given(npst.arrays(np.float64, st.integers(0, 40), elements=st.floats(allow_nan=False)))
def test_frexp_and_ldexp_undo_each_other(x):
    mantissa, exponent = xp.extra.frexp(xp.asarray(x))
    assert np.asarray(xp.extra.ldexp(mantissa, exponent)).tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: xp.extra.one_hot(xp.asarray([1.5]), 3), TypeError, "float64"),
        (lambda: xp.extra.leaky_relu(xp.asarray([1.5])), TypeError, "slope"),
        (lambda: xp.extra.bincount(xp.asarray([-1])), ValueError, "negative"),
        (lambda: xp.extra.softmax(xp.asarray([1.5]), axis=1), IndexError, "axis 1"),
        (lambda: xp.extra.gemm(xp.zeros((2, 3)), xp.zeros((2, 3))), ValueError, "matmul"),
        (lambda: xp.extra.nosuch, AttributeError, "nosuch"),
    ],
)
def test_mistakes_are_errors_that_say_so(call, error, words):
    with pytest.raises(error, match=words):
        call()
