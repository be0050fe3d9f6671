"""Tagged words: values as integers of 64 bits that say whether they were stored.

The lower half of a word has 32 bits of a value, the upper half is 1. Whoever reads words until all have the 1 has a
whole value, in whatever order they were stored: no fence takes part.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import BOOL, UINT32, UINT64, DType, real_type, unsigned_of
from fusec.ir.expr import Expr, apply, const, convert
from fusec.ir.scans import WORD, words_of


def word(value: int) -> Expr:
    """A constant."""
    return const(value, UINT64)


def packed(values: Sequence[Expr], dtypes: Sequence[DType]) -> list[Expr]:
    """The words of values."""
    tag = word(1 << WORD)
    return [apply("bitwise_or", half, tag) for pair in zip(values, dtypes, strict=True) for half in _halves(*pair)]


def unpacked(words: Sequence[Expr], dtypes: Sequence[DType]) -> tuple[Expr, ...]:
    """The values that words have."""
    found, left = [], list(words)
    for dtype in dtypes:
        count = words_of([dtype])
        found.append(_whole(left[:count], dtype))
        left = left[count:]
    return tuple(found)


def are_stored(words: Sequence[Expr]) -> Expr:
    """Whether all of them were."""
    both = words[0]
    for each in words[1:]:
        both = apply("bitwise_and", both, each)
    return apply("greater_equal", both, word(1 << WORD))


def _halves(value: Expr, dtype: DType) -> list[Expr]:
    """The bits of a value, 32 to an integer of 64."""
    if dtype.is_complex:
        part = real_type(dtype)
        return [half for op in ("real", "imag") for half in _halves(apply(op, value), part)]
    if dtype == BOOL:
        return [convert(value, UINT64)]
    unsigned = unsigned_of(dtype.bits)
    bits = convert(value if dtype == unsigned else apply("bitcast", value, target=unsigned), UINT64)
    if dtype.bits <= WORD:
        return [bits]
    return [apply("bitwise_and", bits, word((1 << WORD) - 1)), apply("right_shift", bits, word(WORD))]


def _whole(words: Sequence[Expr], dtype: DType) -> Expr:
    """The inverse of that."""
    if dtype.is_complex:
        part, half = real_type(dtype), len(words) // 2
        return apply("complex", _whole(words[:half], part), _whole(words[half:], part))
    if dtype == BOOL:
        return apply("not_equal", apply("bitwise_and", words[0], word(1)), word(0))
    bits = convert(words[0], UINT32)
    if dtype.bits > WORD:
        lower, upper = convert(bits, UINT64), apply("left_shift", words[1], word(WORD))
        bits = apply("bitwise_or", lower, upper)
    unsigned = unsigned_of(dtype.bits)
    narrow = convert(bits, unsigned)
    return narrow if dtype == unsigned else apply("bitcast", narrow, target=dtype)
