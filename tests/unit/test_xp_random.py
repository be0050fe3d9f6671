"""Random arrays: laws of division, the bits of kernels, distributions, and what is refused."""

import ast
import inspect

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies
from scipy import stats

import fusec
import fusec.xp as xp
from fusec import random

KEY, COUNT = 0x1234_5678_9ABC_DEF1, 1 << 16
DRAWS = {
    "uniform32": lambda size, key, **more: xp.random.uniform(size, key, dtype="float32", **more),
    "uniform64": xp.random.uniform,
    "normal32": lambda size, key, **more: xp.random.normal(size, key, dtype="float32", **more),
    "normal64": xp.random.normal,
    "exponential32": lambda size, key, **more: xp.random.exponential(size, key, dtype="float32", **more),
    "exponential64": xp.random.exponential,
}
OTHERS = {
    "complex64": lambda size, key, **more: xp.random.normal(size, key, dtype="complex64", **more),
    "complex128": lambda size, key, **more: xp.random.normal(size, key, dtype="complex128", **more),
    "integers": lambda size, key, **more: xp.random.integers(size, key, -3, 1 << 31, **more),
    "int8": lambda size, key, **more: xp.random.integers(size, key, -3, 7, dtype="int8", **more),
    "scaled": lambda size, key, **more: xp.random.normal(size, key, loc=3, scale=0.5, **more),
}
WORDS = strategies.integers(0, (1 << 63) - 1)


def every_draw(key, counter, use):
    return (
        random.uniform32(key, counter, use), random.uniform64(key, counter, use),
        random.normal32(key, counter, use), random.normal64(key, counter, use),
        random.exponential32(key, counter, use), random.exponential64(key, counter, use),
    )  # fmt: skip


every, fused = fusec.elementwise(every_draw), fusec.fuse(every_draw)


def same(one, other):
    one, other = np.asarray(one), np.asarray(other)
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", [*DRAWS, *OTHERS])
@hypothesis.given(strategies.sampled_from([0, 1, 7, 400]), strategies.sampled_from([1, 65, 1000]), WORDS, WORDS, WORDS)
@hypothesis.settings(max_examples=10, deadline=None)
@pytest.mark.sampled(3)
def test_an_offset_goes_on_where_an_array_has_ended(name, first, then, key, offset, stream):
    draw = (DRAWS | OTHERS)[name]
    whole = draw(first + then, key, offset=offset, stream=stream)
    begin = draw(first, key, offset=offset, stream=stream)
    end = draw(then, key, offset=offset + first, stream=stream)
    same(whole, np.concatenate([np.asarray(begin), np.asarray(end)]))


@hypothesis.given(strategies.sampled_from([(5,), (2, 3, 4), (1, 9), (0, 2)]), WORDS, WORDS, WORDS)
@hypothesis.settings(max_examples=15, deadline=None)
def test_arrays_have_the_bits_of_kernels(shape, key, offset, stream):
    counter = np.uint64(offset) + np.arange(np.prod(shape), dtype=np.uint64).reshape(shape)
    words = np.uint64(key), counter, np.uint64(stream)
    inside, traced = every(*words), fused(*words)
    for place, (name, draw) in enumerate(DRAWS.items()):
        found = draw(shape, key, offset=offset, stream=stream)
        same(found, getattr(random, name)(*words))
        same(found, inside[place])
        same(found, traced[place])
    same(xp.random.integers(shape, key, -3, 7, offset=offset, stream=stream),
         random.integers(key, counter, -3, 7, stream))  # fmt: skip


def test_the_interpreter_draws_the_same_bits():
    counter = np.arange(40, dtype=np.uint64)
    found = fusec.simulate(every)(np.uint64(KEY), counter, np.uint64(1))
    for one, draw in zip(found, DRAWS.values(), strict=True):
        same(one, draw(40, KEY, stream=1))


def test_words_may_be_pending_arrays():
    key = xp.sum(xp.asarray([3, 4]))
    offset = xp.asarray(5) * 2
    same(xp.random.uniform(9, key, offset=offset), xp.random.uniform(9, 7, offset=10))
    same(xp.random.normal((), xp.asarray(7)), xp.random.normal(1, 7)[0])


def test_draws_fuse_with_what_follows():
    x = xp.random.normal((100, 10), KEY)
    total = xp.sum(x * x, axis=1)
    values = np.asarray(xp.random.normal((100, 10), KEY))
    np.testing.assert_allclose(np.asarray(total), (values * values).sum(axis=1), rtol=1e-14)


def test_distributions():
    for name, law in (("uniform", "uniform"), ("normal", "norm"), ("exponential", "expon")):
        for bits in ("32", "64"):
            values = np.asarray(DRAWS[name + bits](COUNT, KEY))
            assert stats.kstest(values, law).pvalue > 1e-3
            assert values.min() >= (-7 if name == "normal" else 0)
    wide = np.asarray(xp.random.uniform(COUNT, KEY, low=-2, high=3))
    assert stats.kstest(wide, stats.uniform(-2, 5).cdf).pvalue > 1e-3
    for dtype in ("complex64", "complex128"):
        both = np.asarray(xp.random.normal(COUNT, KEY, dtype=dtype))
        assert stats.kstest(both.real * 2**0.5, "norm").pvalue > 1e-3
        assert stats.kstest(both.imag * 2**0.5, "norm").pvalue > 1e-3
        assert abs(np.mean(both.real * both.imag)) < 5 * 0.5 / COUNT**0.5
    whole = np.asarray(xp.random.integers(COUNT, KEY, high=10))
    assert stats.chisquare(np.bincount(whole, minlength=10)).pvalue > 1e-3


def test_permutations():
    found = np.asarray(xp.random.permutation(1000, KEY))
    assert sorted(found.tolist()) == list(range(1000))
    assert found.tolist() != list(range(1000))
    rows = xp.asarray(np.arange(3000).reshape(1000, 3))
    same(xp.random.permutation(rows, KEY), np.asarray(rows)[found])
    orders = {tuple(np.asarray(xp.random.permutation(3, key)).tolist()) for key in range(60)}
    assert len(orders) == 6


def test_vectors_have_their_mean_and_covariance():
    mean, cov = np.array([1.0, -2.0, 5.0]), np.array([[4.0, 1.0, 0.5], [1.0, 2.0, -0.3], [0.5, -0.3, 1.0]])
    found = np.asarray(xp.random.multivariate_normal(COUNT, KEY, mean, cov))
    assert np.abs(found.mean(axis=0) - mean).max() < 5 * 2 / COUNT**0.5
    assert np.abs(np.cov(found.T) - cov).max() < 5 * 4 * 2**0.5 / COUNT**0.5
    same(xp.random.multivariate_normal(COUNT, KEY, mean, factor=np.linalg.cholesky(cov)), found)
    part = np.asarray(xp.random.multivariate_normal(100, KEY, mean, cov, offset=50))
    np.testing.assert_allclose(part, found[50:150], rtol=1e-12, atol=1e-12)


REFUSED = [
    ("F731", lambda: xp.random.uniform(3, -1)),
    ("F731", lambda: xp.random.uniform(3, 1, offset=2**64 - 1)),
    ("F730", lambda: xp.random.uniform(3, 1.5)),
    ("F730", lambda: xp.random.normal(3, xp.asarray(1.5))),
    ("F779", lambda: xp.random.uniform(3, [1, 2])),
    ("F779", lambda: xp.random.uniform(3, 1, low=[1, 2])),
    ("F787", lambda: xp.random.uniform(-1, 1)),
    ("F778", lambda: xp.random.uniform(2.5, 1)),
    ("F778", lambda: xp.random.permutation(2.5, 1)),
    ("F775", lambda: xp.random.uniform(3, 1, dtype="int32")),
    ("F775", lambda: xp.random.uniform(3, 1, low=1j)),
    ("F732", lambda: xp.random.integers(3, 1, 5, 5)),
    ("F788", lambda: xp.random.integers(3, 1, high=300, dtype="int8")),
    ("F779", lambda: xp.random.multivariate_normal(3, 1, [0.0], [[1.0, 2.0]])),
    ("F779", lambda: xp.random.multivariate_normal(3, 1, [0.0])),
    ("F779", lambda: xp.random.normal(3, 1, scale=-1)),
    ("F779", lambda: xp.random.exponential(2, 1, scale=[1, -1.5])),
    ("F782", lambda: xp.random.uniform(0, 1, 5)),
    ("F782", lambda: xp.random.integers(0, 10, 5)),
    ("F782", lambda: xp.random.integers(0, 10, size=5)),
    ("F782", lambda: xp.random.permutation(5)),
    ("F772", lambda: xp.random.rand),
]


@pytest.mark.parametrize(("code", "wrong"), REFUSED)
def test_wrong_arguments_are_refused_when_they_are_given(code, wrong):
    with pytest.raises(fusec.FusecError) as caught:
        wrong()
    assert caught.value.code == code


@pytest.mark.parametrize("draw", [xp.random.normal, xp.random.uniform])
def test_parameters_before_a_size_are_refused_unless_they_are_a_size(draw):
    with pytest.raises(TypeError, match=r"(?s)the size 0\.0.*loc=, scale=, low= and high= are given by name"):
        draw(0.0, 1.0)
    with pytest.raises(TypeError, match="takes a size and a key before anything else"):
        draw(0, 1, 5)
    assert draw(0, 1).shape == (0,)  # as the draws before the first one


@pytest.mark.parametrize("name", xp.random.__all__)
def test_the_cure_of_a_wrong_call_is_one_that_the_function_takes(name):
    function = getattr(xp.random, name)
    with pytest.raises(fusec.FusecError) as caught:
        function()
    call = ast.parse(caught.value.hint.removeprefix("write ").partition(", where")[0], mode="eval").body
    bound = inspect.signature(function).bind(*call.args, **{each.arg: each.value for each in call.keywords})
    assert ast.unparse(call.func) == f"xp.random.{name}"
    assert [each.id for each in call.args] == [*bound.arguments][: len(call.args)]
