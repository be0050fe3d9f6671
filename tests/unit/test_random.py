"""Philox: the published answers, the same numbers compiled, interpreted and by NumPy, and that they look random."""

import hypothesis
import numpy as np
import pytest
from scipy import stats

import fusec
from fusec import random
from fusec.errors.targets import JitMissing
from fusec.kernels import elementary

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


PARTS = {
    "uniform32": 1, "uniform32x4": 4, "uniform64": 1, "uniform64x2": 2,
    "normal32": 1, "normal32x4": 4, "normal64": 1, "normal64x2": 2,
}  # fmt: skip
NAMES = [f"{name}_{part}" for name, parts in PARTS.items() for part in range(parts)]
LINES = [
    f"    {', '.join(f'{n}_{k}' for k in range(parts))} = random.{n}(key, counter, use)" for n, parts in PARTS.items()
]
every = fusec.elementwise(
    "\n".join(["def every(key, counter, use):", *LINES, f"    return {', '.join(NAMES)}", ""]), names={"random": random}
)
WORDS = hypothesis.strategies.integers(0, (1 << 64) - 1)
SHAPES = hypothesis.strategies.sampled_from([(), (1,), (7,), (0,), (3, 5), (1001,)])
DTYPES = hypothesis.strategies.sampled_from(["uint64", "int32", "uint8"])


@fusec.elementwise
def whole_numbers(key, counter, low, high):
    return random.integers(key, counter, low, high)


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
    np.testing.assert_array_equal(gauss.T, random.normal32x4(KEY, i, 2))
    np.testing.assert_array_equal(wide.T, random.normal64x2(KEY, i, 3))
    for whole_array, part in zip(sample, drawn(1001), strict=True):
        np.testing.assert_array_equal(whole_array[:1001], part)
    for name in ("uniform32", "uniform64", "normal32", "normal64"):
        several = getattr(random, f"{name}x{4 if name[-2:] == '32' else 2}")
        np.testing.assert_array_equal(getattr(random, name)(KEY, i[:99]), several(KEY, i[:99])[0])


def counters(seed, shape, dtype):
    """Numbers that are not negative, of all sizes that a dtype has."""
    rng = np.random.default_rng(seed)
    high = np.iinfo(dtype).max
    return rng.integers(0, high, shape, dtype, endpoint=True) >> rng.integers(0, np.iinfo(dtype).bits, shape, dtype)


@hypothesis.given(WORDS, WORDS, WORDS, SHAPES, DTYPES)
@hypothesis.settings(max_examples=30, deadline=None)
def test_every_distribution_has_the_same_bits_inside_and_outside_of_kernels(key, stream, seed, shape, dtype):
    counter, key, stream = counters(seed, shape, dtype), np.uint64(key), np.uint64(stream)
    wanted = []
    for name, parts in PARTS.items():
        found = getattr(random, name)(key, counter, stream)
        wanted += [found] if parts == 1 else found
    for name, one, other in zip(NAMES, every(key, counter, stream), wanted, strict=True):
        assert one.dtype == other.dtype, name
        assert one.tobytes() == other.tobytes(), name


@hypothesis.given(WORDS, WORDS, SHAPES, hypothesis.strategies.integers(-(1 << 40), 1 << 40), WORDS)
@hypothesis.settings(max_examples=30, deadline=None)
def test_integers_are_the_same_inside_and_outside_of_kernels(key, seed, shape, low, span):
    counter, high = counters(seed, shape, "uint64"), low + 1 + span % (1 << 32)
    found = whole_numbers(np.uint64(key), counter, low, high)
    np.testing.assert_array_equal(found, random.integers(np.uint64(key), counter, low, high))


def test_normals_are_the_same_where_nothing_can_be_compiled(monkeypatch):
    i = np.arange(500)
    wanted = random.normal32(KEY, i), random.normal64(KEY, i)

    def refuse(*_):
        raise JitMissing("none here").at()

    elementary._same.cache_clear()
    monkeypatch.setattr(fusec.ElementwiseKernel, "__call__", refuse)
    for one, other in zip((random.normal32(KEY, i), random.normal64(KEY, i)), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


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


NOT_WHOLE = [1.9, [0.2, 0.8], "5", ["5"], None, 1j, np.zeros(2), np.array([1, None]), [[1], [1, 2]]]
NOT_WORDS = [-1, 1 << 64, np.int8(-3), np.array([2, -1]), [4, -4], [3, 1 << 64], np.array([1 << 70], object)]


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(
    ("given", "code"), [*((each, "F730") for each in NOT_WHOLE), *((each, "F731") for each in NOT_WORDS)], ids=repr
)
def test_keys_counters_and_streams_are_words(at, given, code):
    args = [1, 2, 3]
    args[at] = given
    for name in ("philox", *PARTS):
        param = ("key", "counter", "stream")[at]
        with pytest.raises(fusec.FusecError, match=rf"(the {param} of|{param}=|{param} has).*\[{code}\]"):
            getattr(random, name)(*args)
    with pytest.raises(fusec.FusecError, match=code):
        random.integers(*args[:2], 0, 5, args[2])


def test_all_words_are_taken_outside_of_kernels():
    last = (1 << 64) - 1
    for each in (0, last, True, np.uint64(last), np.int8(5), [0, last], [], np.zeros((0, 3), int), np.array(3)):
        assert np.shape(random.uniform64(each, 1, each)) == np.shape(each)


@pytest.mark.parametrize(
    ("low", "high", "code"),
    [
        (10, 0, "F732"), (3, 3, "F732"), (0, (1 << 32) + 1, "F732"), (-(1 << 63), (1 << 63) - 1, "F732"),
        ([0, 5], [4, 5], "F732"), (np.arange(4), 3, "F732"), (0, 1 << 63, "F731"), (0, 2.5, "F730"), ("0", 4, "F730"),
        (None, 4, "F730"), (np.uint64(1 << 63), 5, "F731"),
    ],
)  # fmt: skip
def test_ranges_of_integers_hold_numbers(low, high, code):
    with pytest.raises(fusec.FusecError, match=code):
        random.integers(1, np.arange(2), low, high)


def test_the_widest_range_and_the_ends_of_int64_are_taken():
    i = np.arange(1000)
    for low, high in ((-(1 << 63), (1 << 32) - (1 << 63)), ((1 << 63) - 5, (1 << 63) - 1), (0, 1), (-3, i - 2)):
        found = random.integers(1, i, low, high)
        assert ((found >= low) & (found < high)).all()


def test_what_fused_functions_know_is_checked_too():
    assert (
        fusec.fuse(lambda i: random.integers(1, i, 0, 9))(np.arange(5)).tolist()
        == random.integers(1, np.arange(5), 0, 9).tolist()
    )
    with pytest.raises(fusec.FusecError, match="F732"):
        fusec.fuse(lambda i: random.integers(1, i, 9, 0))(np.arange(5))
    with pytest.raises(fusec.FusecError, match="F730"):
        fusec.fuse(lambda i: random.uniform32(1.5, i))(np.arange(5))


@pytest.mark.parametrize(
    ("name", "cure"),
    [("normal", "normal32"), ("seed", "pass a key"), ("default_rng", "pass a key"), ("randint", "integers"),
     ("rand", "uniform32"), ("uniform", "uniform32"), ("uniform23", "uniform32")],
)  # fmt: skip
def test_names_that_are_not_there_say_what_to_use(name, cure):
    with pytest.raises(AttributeError, match=rf"'fusec.random' has no attribute '{name}'; .*{cure}"):
        getattr(random, name)
