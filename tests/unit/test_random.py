"""Philox: the published answers, the same numbers compiled, interpreted and by NumPy, and that they look random."""

import numpy as np
import pytest
from scipy import stats

import fusec
from fusec import random

# J. Salmon and others, Random123, kat_vectors: philox4x32 10 rounds; counter, key, answer
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
KEY = 0x1234_5678_9ABC_DEF1
COUNT = 1 << 18


@fusec.elementwise
def words(key, counter, use):
    a, b, c, d = random.philox(key, counter, use)
    return a, b, c, d


@fusec.kernel
def draw(single, double, gauss, wide, whole, key):
    for i in fusec.grid(single.shape[0]):
        single[i, 0], single[i, 1], single[i, 2], single[i, 3] = random.uniform32x4(key, i)
        double[i, 0], double[i, 1] = fusec.random.uniform64x2(key, i, 1)
        gauss[i, 0], gauss[i, 1], gauss[i, 2], gauss[i, 3] = random.normal32x4(key, i, 2)
        wide[i, 0], wide[i, 1] = random.normal64x2(key, i, 3)
        whole[i] = random.integers(key, i, -3, 7, 4)


def drawn(count, key=KEY):
    arrays = [
        np.zeros((count, 4), "float32"),
        np.zeros((count, 2)),
        np.zeros((count, 4), "float32"),
        np.zeros((count, 2)),
        np.zeros(count, "int64"),
    ]
    draw(*arrays, key)
    return arrays


@pytest.fixture(scope="module")
def sample():
    return drawn(COUNT)


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_the_published_answers(counter, key, answer):
    given = [np.uint64(low | high << 32) for low, high in (key, counter[:2], counter[2:])]
    assert tuple(map(int, random.philox(*given))) == answer
    assert tuple(map(int, words(*given))) == answer
    assert tuple(map(int, fusec.simulate(words)(*given))) == answer


def test_numbers_are_those_of_numpy_and_of_any_split(sample):
    single, double, gauss, wide, whole = sample
    i = np.arange(COUNT)
    np.testing.assert_array_equal(single.T, random.uniform32x4(KEY, i))
    np.testing.assert_array_equal(double.T, random.uniform64x2(KEY, i, 1))
    np.testing.assert_array_equal(whole, random.integers(KEY, i, -3, 7, 4))
    np.testing.assert_allclose(gauss.T, random.normal32x4(KEY, i, 2), rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(wide.T, random.normal64x2(KEY, i, 3), rtol=1e-13, atol=1e-14)
    for whole_array, part in zip(sample, drawn(1001), strict=True):
        np.testing.assert_array_equal(whole_array[:1001], part)
    for name in ("uniform32", "uniform64", "normal32", "normal64"):
        several = getattr(random, f"{name}x{4 if name[-2:] == '32' else 2}")
        np.testing.assert_array_equal(getattr(random, name)(KEY, i[:99]), several(KEY, i[:99])[0])


def test_the_interpreter_draws_the_same_bits(sample):
    few = [each[:50].copy() * 0 for each in sample]
    fusec.simulate(draw)(*few, KEY)
    for array, other in zip(sample, few, strict=True):
        np.testing.assert_array_equal(array[:50], other)


def test_numbers_are_spread_as_they_should_be(sample):
    single, double, gauss, wide, whole = sample
    for uniform in (single, double):
        assert uniform.min() >= 0
        assert uniform.max() < 1
        assert stats.kstest(uniform.ravel(), "uniform").pvalue > 1e-3
    for normal in (gauss, wide):
        assert stats.kstest(normal.ravel(), "norm").pvalue > 1e-3
        assert np.abs(np.corrcoef(normal.T) - np.eye(normal.shape[1])).max() < 5 / np.sqrt(COUNT)
    assert stats.chisquare(np.bincount(whole + 3, minlength=10)).pvalue > 1e-3
    serial = np.corrcoef(single[:-1, 0], single[1:, 0])[0, 1]
    assert abs(serial) < 5 / np.sqrt(COUNT)


def test_keys_counters_and_streams_are_told_apart():
    base = [int(word) for word in random.philox(1, 2, 3)]
    for other in ((2, 2, 3), (1, 3, 3), (1, 2, 4), (1 | 1 << 63, 2, 3), (1, 2 | 1 << 40, 3)):
        assert all(int(word) != old for word, old in zip(random.philox(*other), base, strict=True))


def test_integers_span_up_to_two_to_the_32():
    @fusec.elementwise
    def throw(i, low, high):
        return random.integers(5, i, low, high)

    found = throw(np.arange(20000), -(1 << 31), 1 << 31)
    assert found.min() < -(1 << 31) * 0.999
    assert found.max() > (1 << 31) * 0.999
    assert (throw(np.arange(100), 4, 5) == 4).all()


def test_single_precision_stays_single_on_metal():
    @fusec.elementwise
    def noise(i, key):
        return random.normal32(key, i) + random.uniform32(key, i, 1)

    text = noise.source("metal", {"i": "uint32", "key": "uint64"}, scalars=("key",))
    assert "kernel void" in text
    assert "double" not in text
