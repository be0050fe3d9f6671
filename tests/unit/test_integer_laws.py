"""Integer arithmetic of kernels on the CPU is that of exact integers, taken into C's common type and made total."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import (
    BOOL,
    COMPUTE_FLOATS,
    INT8,
    INT32,
    INT64,
    INTEGERS,
    UINT8,
    UINT32,
    UINT64,
    DType,
    c_common,
    c_promote,
)

WHOLE = (BOOL, *INTEGERS)


def limits(dtype: DType) -> tuple[int, int]:
    if dtype == BOOL:
        return 0, 1
    return int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)


def values(dtype: DType) -> list[int]:
    low, high = limits(dtype)
    some = [
        0,
        1,
        2,
        3,
        7,
        -1,
        -2,
        -7,
        31,
        32,
        33,
        63,
        64,
        65,
        -32,
        -64,
        100,
        low,
        low + 1,
        high,
        high - 1,
        1 << 31,
        1 << 32,
    ]
    return [value for value in dict.fromkeys(some) if low <= value <= high]


def wrapped(value: int, dtype: DType) -> int:
    low, _ = limits(dtype)
    return (value - low) % (1 << dtype.bits) + low


def truncated(a: int, b: int) -> int:
    """C's quotient; 0 for a divisor of 0."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted_left(a: int, count: int) -> int:
    return a << count if 0 <= count < 64 else 0


def shifted_right(a: int, count: int) -> int:
    return a >> count if 0 <= count < 64 else -(a < 0)


OPERATORS: dict[str, Callable[[int, int], int]] = {
    "x + y": operator.add,
    "x - y": operator.sub,
    "x * y": operator.mul,
    "x / y": truncated,
    "x % y": lambda a, b: 0 if b == 0 else a - truncated(a, b) * b,
    "x & y": operator.and_,
    "x | y": operator.or_,
    "x ^ y": operator.xor,
    "min(x, y)": min,
    "max(x, y)": max,
    "floor_divide(x, y)": lambda a, b: 0 if b == 0 else a // b,
    "x < y": lambda a, b: int(a < b),
    "x == y": lambda a, b: int(a == b),
}
SHIFTS = {"x << y": shifted_left, "x >> y": shifted_right}
UNARY: dict[str, Callable[[int], int]] = {"-x": operator.neg, "~x": operator.invert, "!x": operator.not_, "abs(x)": abs}


def computed(texts: list[str], results: list[DType], **arrays: np.ndarray) -> list[np.ndarray]:
    """What a kernel leaves of each expression; every one is an output of its own."""
    inputs = ", ".join(f"{array.dtype.name} {name}" for name, array in arrays.items())
    outputs = ", ".join(f"{result} z{at}" for at, result in enumerate(results))
    body = "; ".join(f"z{at} = {text}" for at, text in enumerate(texts))
    found = fusec.ElementwiseKernel(inputs, outputs, body)(*arrays.values())
    return list(found) if isinstance(found, tuple) else [found]


FEW = (BOOL, INT8, UINT8, INT32, UINT32, INT64, UINT64)


@pytest.mark.parametrize("left", [d if d in FEW else pytest.param(d, marks=pytest.mark.slow) for d in WHOLE], ids=repr)
@pytest.mark.sampled(3)
def test_operators_are_those_of_exact_integers(left: DType) -> None:
    """In the common type, whatever the other operand; a shift has the promoted type of what is shifted."""
    for right in FEW if left in FEW else WHOLE:
        pairs = list(itertools.product(values(left), values(right)))
        x, y = (
            np.array(column, dtype.numpy) for column, dtype in zip(zip(*pairs, strict=True), (left, right), strict=True)
        )
        common, promoted = c_common(left, right), c_promote(left)
        texts = [*OPERATORS, *SHIFTS]
        found = computed(texts, [common] * len(OPERATORS) + [promoted] * len(SHIFTS), x=x, y=y)
        for text, result in zip(texts, found, strict=True):
            if text in SHIFTS:
                wanted = [wrapped(SHIFTS[text](a, b), promoted) for a, b in pairs]
            else:
                wanted = [wrapped(OPERATORS[text](wrapped(a, common), wrapped(b, common)), common) for a, b in pairs]
            np.testing.assert_array_equal(result, np.array(wanted, result.dtype), err_msg=f"{left} {text} {right}")


@pytest.mark.parametrize("dtype", WHOLE, ids=repr)
@pytest.mark.sampled(3)
def test_signs_and_complements_wrap(dtype: DType) -> None:
    x = np.array(values(dtype), dtype.numpy)
    promoted = c_promote(dtype)
    for (text, exact), found in zip(UNARY.items(), computed([*UNARY], [promoted] * len(UNARY), x=x), strict=True):
        np.testing.assert_array_equal(
            found, np.array([wrapped(int(exact(v)), promoted) for v in values(dtype)], found.dtype), text
        )


def literal(value: int, dtype: DType) -> str:
    return f"(({dtype}){'0x%xull' % (value % (1 << 64))})"


@pytest.mark.parametrize("dtype", [INT32, UINT64], ids=repr)
def test_a_constant_operand_is_no_different(dtype: DType) -> None:
    """Constants take other ways through the passes and the code generators: powers of two, 0, -1, over-wide counts."""
    x = np.array(values(dtype), dtype.numpy)
    promoted = c_promote(dtype)
    for constant in (0, 1, 7, 8, 33, 64, limits(dtype)[1], -1 if dtype.kind == "signed" else 128):
        y = np.full_like(x, constant)
        variable = [*OPERATORS, *SHIFTS]
        for place, other in (("y", "x"), ("x", "y")):
            fixed = [text.replace(place, literal(constant, dtype)) for text in variable]
            fixed = [
                text.replace("ma" + literal(constant, dtype), "max") for text in fixed
            ]  # the x of max is no operand
            arrays = {"x": x, "y": y} if other == "x" else {"x": y, "y": x}
            types = [promoted] * len(variable)
            given = {other: arrays[other]}
            for text, a, b in zip(
                fixed, computed(variable, types, **arrays), computed(fixed, types, **given), strict=True
            ):
                np.testing.assert_array_equal(b, a, err_msg=text)


@pytest.mark.parametrize("target", WHOLE, ids=repr)
@pytest.mark.sampled(3)
def test_conversions_wrap_integers_and_saturate_floats(target: DType) -> None:
    """nan gives 0; a bool is whether the number differs from 0; assignment converts as a cast does."""
    low, high = limits(target)
    for source in INTEGERS:
        x = np.array(values(source), source.numpy)
        wanted = [int(value != 0) if target == BOOL else wrapped(value, target) for value in values(source)]
        for found in computed([f"({target})x", "x"], [target, target], x=x):
            np.testing.assert_array_equal(found, np.array(wanted, target.numpy), err_msg=f"{source}")
    edges = [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 5e-324, 1e-45]
    edges += [
        side * (2.0**k + d) for k in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, -0.5, 0, 0.5) for side in (1, -1)
    ]
    for source in COMPUTE_FLOATS:
        x = np.array(edges).astype(source.numpy)
        wanted = [saturated(float(value), target, low, high) for value in x]
        for found in computed([f"({target})x", "x"], [target, target], x=x):
            np.testing.assert_array_equal(found, np.array(wanted, target.numpy), err_msg=f"{source}")


def saturated(value: float, target: DType, low: int, high: int) -> int:
    if target == BOOL:
        return int(value != 0)
    if np.isnan(value):
        return 0
    return low if value < low else high if value > high else int(value)


def test_arithmetic_of_bools_is_that_of_ints() -> None:
    """An int result counts; a bool result is whether the sum differs from 0."""
    x, y = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    texts = ["x + y", "x - y", "x * y", "-x", "~x", "x << y", "x / y", "x && !y"]
    wanted = [
        [0, 1, 1, 2],
        [0, -1, 1, 0],
        [0, 0, 0, 1],
        [0, 0, -1, -1],
        [-1, -1, -2, -2],
        [0, 0, 1, 2],
        [0, 0, 0, 1],
        [0, 0, 1, 0],
    ]
    for text, number, truth, row in zip(
        texts, computed(texts, [INT32] * 8, x=x, y=y), computed(texts, [BOOL] * 8, x=x, y=y), wanted, strict=True
    ):
        np.testing.assert_array_equal(number, row, err_msg=text)
        np.testing.assert_array_equal(truth, np.array(row) != 0, err_msg=text)
