"""Counter-based random numbers for kernels: Philox 4x32-10, the same numbers on every target and division of the work.

A generator without state: `philox(key, counter, stream)` scrambles a counter under a key, so that element i of a
computation just takes the numbers of counter i. The key is what others call the seed; the stream tells several uses of
one counter apart, such as time steps. All three are whole numbers from 0 to 2^64 - 1.

    @fusec.kernel
    def throw(hits, key):
        for i in fusec.grid(hits.shape[0]):
            x, y, _, _ = fusec.random.uniform32x4(key, i)
            hits[i] = x * x + y * y < 1

The functions are written in the subset that kernels are, in `fusec.elementwise` and `fusec.stencil` too; called
elsewhere they work on numbers and NumPy arrays, with the same bits. The algorithm, its constants and the known answers
in the tests are those of J. Salmon, M. Moraes, R. Dror, D. Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC'11),
who report that it passes BigCrush. numpy.random.Philox is another of the family, 4x64-10, with other numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.kernels.elementary import cospi, log, sinpi
from fusec.language.random_checks import checks_range, checks_words

STEP32, STEP64 = np.float32(2.0**-24), np.float64(2.0**-53)
WORD32, HALF32, TURN32 = np.float32(2.0**-32), np.float32(2.0**-33), np.float32(2.0**-31)
MINUS2 = np.float32(-2.0)

__all__ = [
    "exponential32",
    "exponential64",
    "integers",
    "normal32",
    "normal32x4",
    "normal64",
    "normal64x2",
    "philox",
    "uniform32",
    "uniform32x4",
    "uniform64",
    "uniform64x2",
]

Number = Any
"""A number, or an array of them where the functions are called outside of kernels."""


@checks_words
def philox(key: Number, counter: Number, stream: Number = 0) -> tuple[Number, Number, Number, Number]:
    """Four uint32: the block cipher of ten rounds on the counter's words, low and high, followed by the stream's.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> [int(each) for each in fusec.random.philox(7, 0)]
    [4099963437, 3221879260, 490388034, 367897730]
    """
    k0, k1 = np.uint64(key) & 0xFFFFFFFF, np.uint64(key) >> 32
    c0, c1 = np.uint32(np.uint64(counter) & 0xFFFFFFFF), np.uint32(np.uint64(counter) >> 32)
    c2, c3 = np.uint32(np.uint64(stream) & 0xFFFFFFFF), np.uint32(np.uint64(stream) >> 32)
    for _ in range(10):
        left, right = np.uint64(c0) * 0xD2511F53, np.uint64(c2) * 0xCD9E8D57
        c0 = np.uint32(right >> 32) ^ c1 ^ np.uint32(k0)
        c2 = np.uint32(left >> 32) ^ c3 ^ np.uint32(k1)
        c1, c3 = np.uint32(right & 0xFFFFFFFF), np.uint32(left & 0xFFFFFFFF)
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def uniform32(key: Number, counter: Number, stream: Number = 0) -> Number:
    """A float32 in [0, 1): a multiple of 2^-24, from the first word.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.uniform32(7, np.arange(3)).round(4)
    array([0.9546, 0.407 , 0.0061], dtype=float32)
    """
    word, _, _, _ = philox(key, counter, stream)
    return _unit32(word)


def uniform32x4(key: Number, counter: Number, stream: Number = 0) -> tuple[Number, Number, Number, Number]:
    """Four float32 in [0, 1), one from each word; the first is that of `uniform32`.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> [round(float(each), 4) for each in fusec.random.uniform32x4(7, 0)]
    [0.9546, 0.7502, 0.1142, 0.0857]
    """
    a, b, c, d = philox(key, counter, stream)
    return _unit32(a), _unit32(b), _unit32(c), _unit32(d)


def uniform64(key: Number, counter: Number, stream: Number = 0) -> Number:
    """A float64 in [0, 1): a multiple of 2^-53, from the first two words.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.uniform64(7, np.arange(3)).round(4)
    array([0.7502, 0.7953, 0.0085])
    """
    low, high, _, _ = philox(key, counter, stream)
    return _unit64(low, high)


def uniform64x2(key: Number, counter: Number, stream: Number = 0) -> tuple[Number, Number]:
    """Two float64 in [0, 1), each from two words; the first is that of `uniform64`.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> [round(float(each), 4) for each in fusec.random.uniform64x2(7, 0)]
    [0.7502, 0.0857]
    """
    a, b, c, d = philox(key, counter, stream)
    return _unit64(a, b), _unit64(c, d)


def normal32(key: Number, counter: Number, stream: Number = 0) -> Number:
    """A float32 from the standard normal distribution, from the first two words; at most 6.77 from 0.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.normal32(7, np.arange(3)).round(4)
    array([3.0000e-04, 3.7640e-01, 3.1904e+00], dtype=float32)
    """
    first, second, _, _ = philox(key, counter, stream)
    x, _ = _box_muller32(first, second)
    return x


def normal32x4(key: Number, counter: Number, stream: Number = 0) -> tuple[Number, Number, Number, Number]:
    """Four float32 from the standard normal distribution; the first is that of `normal32`.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> [round(float(each), 4) for each in fusec.random.normal32x4(7, 0)]
    [0.0003, -0.3048, 1.7888, 1.0679]
    """
    a, b, c, d = philox(key, counter, stream)
    x, y = _box_muller32(a, b)
    z, w = _box_muller32(c, d)
    return x, y, z, w


def normal64(key: Number, counter: Number, stream: Number = 0) -> Number:
    """A float64 from the standard normal distribution, from all words; at most 8.58 from 0.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.normal64(7, np.arange(3)).round(4)
    array([1.43  , 1.719 , 0.0757])
    """
    x, _ = normal64x2(key, counter, stream)
    return x


def normal64x2(key: Number, counter: Number, stream: Number = 0) -> tuple[Number, Number]:
    """Two float64 from the standard normal distribution; the first is that of `normal64`.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> [round(float(each), 4) for each in fusec.random.normal64x2(7, 0)]
    [1.43, 0.8537]
    """
    a, b, c, d = philox(key, counter, stream)
    radius = np.sqrt(-2.0 * log(1.0 - _unit64(a, b)))
    angle = 2.0 * _unit64(c, d)
    return radius * cospi(angle), radius * sinpi(angle)


def exponential32(key: Number, counter: Number, stream: Number = 0) -> Number:
    """A float32 from the exponential distribution of mean 1, from the first word; at most 22.88.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.exponential32(7, np.arange(3)).round(4)
    array([0.0465, 0.899 , 5.1036], dtype=float32)
    """
    word, _, _, _ = philox(key, counter, stream)
    return np.float32(0.0) - log(_inside32(word))


def exponential64(key: Number, counter: Number, stream: Number = 0) -> Number:
    """A float64 from the exponential distribution of mean 1, from the first two words; at most 36.74.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.exponential64(7, np.arange(3)).round(4)
    array([1.3869, 1.5861, 0.0085])
    """
    low, high, _, _ = philox(key, counter, stream)
    return 0.0 - log(1.0 - _unit64(low, high))


@checks_range
def integers(key: Number, counter: Number, low: Number, high: Number, stream: Number = 0) -> Number:
    """An int64 from `low` to `high` - 1, at most 2^32 apart; equally likely up to one part in 2^32.

    key, counter, stream: whole numbers from 0 to 2^64 - 1, or arrays of them, whose shape the result has.
    low, high: int64. Raises FusecTypeError and FusecOverflowError for other numbers.

    >>> fusec.random.integers(7, np.arange(4), 0, 6)
    array([4, 4, 0, 1])
    """
    first, second, _, _ = philox(key, counter, stream)
    count = np.uint64(np.int64(high) - np.int64(low))
    part = np.uint64(second) * count + ((np.uint64(first) * count) >> 32)
    return np.int64(low) + np.int64(part >> 32)


def _unit32(word: Number) -> Number:
    return np.float32(word >> 8) * STEP32


def _unit64(low: Number, high: Number) -> Number:
    return np.float64(((np.uint64(high) << 32) | np.uint64(low)) >> 11) * STEP64


def _word64(key: Number, counter: Number, stream: Number = 0) -> Number:
    low, high, _, _ = philox(key, counter, stream)
    return np.uint64(high) << 32 | np.uint64(low)


def _inside32(word: Number) -> Number:
    """A float32 in (0, 1], in steps of 2^-32 where it is small."""
    return np.float32(word) * WORD32 + HALF32


def _box_muller32(first: Number, second: Number) -> tuple[Number, Number]:
    """Two independent normal numbers of two uniform ones."""
    radius = np.sqrt(MINUS2 * log(_inside32(first)))
    angle = np.float32(second) * TURN32
    return radius * cospi(angle), radius * sinpi(angle)


if not TYPE_CHECKING:  # a type checker would take every name for one that there is

    def __getattr__(name: str) -> object:
        from fusec.base.diagnostics import did_you_mean
        from fusec.errors.alternatives import RANDOM

        cure = RANDOM.get(name) or did_you_mean(name, __all__)
        raise AttributeError(f"module 'fusec.random' has no attribute {name!r}{'; ' * bool(cure)}{cure}")


def __dir__() -> list[str]:
    """The generators, and Python's own names."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
