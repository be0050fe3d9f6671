"""Every primitive op against exact integers and fractions, on hard values of every dtype."""

import math
import warnings
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fusec.base.dtypes import (
    ALL,
    BFLOAT16,
    BOOL,
    COMPLEX64,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    INTEGERS,
    STORAGE_FLOATS,
    UINT8,
    UINT64,
    DType,
    unsigned_of,
)
from fusec.base.ops import TABLE
from fusec.ir.arithmetic import convert, evaluate

FEW = settings(max_examples=150, deadline=None)
doubles = st.floats(width=64)
singles = st.floats(width=32)


def exact_fma(a: float, b: float, c: float) -> float:
    """By fractions; infinities and nan as IEEE 754 has them."""
    if not all(map(math.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            product = np.float64(a) * np.float64(b) if not (math.isfinite(a) and math.isfinite(b)) else np.float64(0)
            return float(product + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if 0 in (a, b) else 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def same(left: float, right: float) -> bool:
    return (math.isnan(left) and math.isnan(right)) or (
        left == right and math.copysign(1, left) == math.copysign(1, right)
    )


@FEW
@given(doubles, doubles, doubles)
@example(1 + 2.0**-52, 1 + 2.0**-52, -(1 + 2.0**-51))
@example(2.0**-1074, 0.5, 2.0**-1074)
@example(2.0**-1074, -0.5, 2.0**-1022)
@example(-(2.0**-600), 2.0**-600, 0.0)
@example(1.7976931348623157e308, 2.0, -1.7976931348623157e308)
@example(1.7976931348623157e308, 1.0, 2.0**969)
@example(2.0**600, 2.0**600, -math.inf)
@example(2.0**-1022, 1 - 2.0**-53, 2.0**-1074)
@example(3.0, 2.0**-1074, 2.0**53)
def test_fma_of_float64_rounds_once(a: float, b: float, c: float) -> None:
    found = evaluate("fma", [np.array([v]) for v in (a, b, c)], FLOAT64)
    assert same(float(found[0]), exact_fma(a, b, c))


@FEW
@given(singles, singles, singles)
@example(1 + 2.0**-23, 1 + 2.0**-23, 2.0**-149)
@example(2.0**-149, 0.5, 2.0**-149)
@example(2.0**-100, -(2.0**-100), -0.0)
@example(3.4028234663852886e38, 2.0, -3.4028234663852886e38)
def test_fma_of_float32_rounds_once(a: float, b: float, c: float) -> None:
    found = evaluate("fma", [np.array([v], np.float32) for v in (a, b, c)], FLOAT32)
    assert same(float(found[0]), rounded(exact_fraction(a, b, c), a, b, c))


def exact_fraction(a: float, b: float, c: float) -> Fraction | None:
    return Fraction(a) * Fraction(b) + Fraction(c) if all(map(math.isfinite, (a, b, c))) else None


def rounded(exact: Fraction | None, a: float, b: float, c: float) -> float:
    """The float32 nearest a fraction, by scaling to an integer: Python's round goes half to even."""
    if not exact:
        return exact_fma(a, b, c)
    exponent = max(math.floor(math.log2(abs(exact.numerator)) - math.log2(exact.denominator)) - 23, -149)
    for step in (exponent - 1, exponent, exponent + 1):
        digits = round(exact / Fraction(2) ** max(step, -149))
        if abs(digits) <= 1 << 24:
            value = float(digits * Fraction(2) ** max(step, -149))
            if abs(value) >= 2.0**128:
                return math.copysign(math.inf, value)
            return math.copysign(value, exact)
    raise AssertionError(exact)


def wrap(value: int, dtype: DType) -> int:
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if dtype.kind == "signed" and value >> (dtype.bits - 1) else value


def quotient(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT = {
    "add": lambda a, b, bits: a + b,
    "subtract": lambda a, b, bits: a - b,
    "multiply": lambda a, b, bits: a * b,
    "quotient": lambda a, b, bits: quotient(a, b),
    "modulo": lambda a, b, bits: 0 if b == 0 else a - quotient(a, b) * b,
    "multiply_high": lambda a, b, bits: a * b >> bits,
    "bitwise_and": lambda a, b, bits: a & b,
    "bitwise_or": lambda a, b, bits: a | b,
    "bitwise_xor": lambda a, b, bits: a ^ b,
    "left_shift": lambda a, b, bits: a << b if 0 <= b < bits else 0,
    "right_shift": lambda a, b, bits: a >> b if 0 <= b < bits else -(a < 0),
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("op", EXACT)
def test_integer_ops_are_those_of_exact_integers_wrapped(op: str, dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)
    hard = {
        0,
        1,
        2,
        3,
        7,
        8,
        13,
        31,
        32,
        33,
        63,
        64,
        limits.max,
        limits.max - 1,
        limits.min,
        limits.min + 1,
        -1,
        -2,
        -7,
    }
    values = [value for value in sorted(hard) if limits.min <= value <= limits.max]
    pairs = [(a, b) for a in values for b in values]
    left, right = (np.array([pair[side] for pair in pairs], dtype.numpy) for side in (0, 1))
    found = evaluate(op, [left, right], dtype)
    assert found.dtype == dtype.numpy
    assert found.tolist() == [wrap(EXACT[op](a, b, dtype.bits), dtype) for a, b in pairs]


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
def test_unary_integer_ops(dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)
    values = [limits.min, limits.min + 1, 0, 1, 5, 1 << (dtype.bits - 2), limits.max]
    array = np.array(values, dtype.numpy)
    unsigned = [value % (1 << dtype.bits) for value in values]
    assert evaluate("count_ones", [array], INT32).tolist() == [value.bit_count() for value in unsigned]
    zeros = [dtype.bits - value.bit_length() for value in unsigned]
    assert evaluate("count_leading_zeros", [array], INT32).tolist() == zeros
    assert evaluate("negative", [array], dtype).tolist() == [wrap(-value, dtype) for value in values]
    assert evaluate("absolute", [array], dtype).tolist() == [wrap(abs(value), dtype) for value in values]
    assert evaluate("bitwise_invert", [array], dtype).tolist() == [wrap(~value, dtype) for value in values]


@pytest.mark.parametrize("target", INTEGERS, ids=repr)
@pytest.mark.parametrize("source", [FLOAT32, FLOAT64, FLOAT16, BFLOAT16], ids=repr)
def test_floats_become_integers_by_truncation_and_saturation(source: DType, target: DType) -> None:
    limits = np.iinfo(target.numpy)
    numbers = [0.0, -0.0, 0.7, -0.7, 1.5, -1.5, 127.5, -129.0, 255.9, 65504.0, 2.0**31, 2.0**63, 2.0**64, -(2.0**63)]
    with np.errstate(over="ignore"):
        array = np.array([*numbers, np.inf, -np.inf, np.nan]).astype(source.numpy)
    expected = []
    for value in array.astype(np.float64).tolist():
        if math.isnan(value):
            expected.append(0)
        else:
            whole = int(value) if math.isfinite(value) else int(math.copysign(1 << 70, value))
            expected.append(min(max(whole, int(limits.min)), int(limits.max)))
    assert convert(array, target).tolist() == expected


@pytest.mark.parametrize("target", STORAGE_FLOATS, ids=repr)
def test_float64_becomes_a_narrow_float_in_one_rounding(target: DType) -> None:
    """Just above a midpoint between neighbours; a stop at float32 would land on the midpoint and go to even."""
    smallest = ml_dtypes.finfo(target.numpy).smallest_subnormal.astype(np.float64)
    for scale in (1.0, float(smallest) * 2.0 ** (target.mantissa - 1)):
        unit = 2.0**-target.mantissa if scale == 1.0 else 2.0 ** (1 - target.mantissa)
        even = scale * 1.0
        above = np.array([even * (1 + unit / 2 + 2.0**-40), even * (1 + unit / 2), even * (1 + unit / 2 - 2.0**-40)])
        found = convert(above, target).astype(np.float64)
        assert found.tolist() == [even * (1 + unit), even, even]


def test_wide_integers_become_bfloat16_in_one_rounding() -> None:
    values = [2**31 - 1, 2**30 + 2**22, 2**30 + 2**22 + 1, 2**30 + 2**22 - 1, 2**62 + 2**54 + 1, -(2**62 + 2**54 + 1)]
    expected = [2**31, 2**30, 2**30 + 2**23, 2**30, 2**62 + 2**55, -(2**62 + 2**55)]
    assert convert(np.array(values), BFLOAT16).astype(np.float64).tolist() == expected
    assert convert(np.array([2**63 + 2**55 + 1], np.uint64), BFLOAT16).astype(np.float64)[0] == 2**63 + 2**56


@FEW
@given(st.integers(-(2**63), 2**63 - 1))
def test_int64_becomes_float32_correctly_rounded(value: int) -> None:
    assert float(convert(np.array([value]), FLOAT32)[0]) == rounded(Fraction(value), 0.0, 0.0, 0.0)


def test_every_conversion_is_defined_and_silent() -> None:
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in ALL:
            octets = rng.integers(0, 256, 64 * source.nbytes, dtype=np.uint8)
            values = octets.view(source.numpy) if source != BOOL else octets > 100
            for target in ALL:
                found = convert(values, target)
                assert found.dtype == target.numpy
                if target == BOOL:
                    assert (found == (values.astype(source.numpy) != source.numpy.type(0))).all()


def test_fp8_overflow_and_nan() -> None:
    values = np.array([448.0, 464.0, 465.0, np.nan, np.inf])
    assert np.isnan(convert(values, FLOAT8_E4M3FN).astype(np.float64)).tolist() == [False, False, True, True, True]
    assert convert(np.array([57344.0, 1e9]), FLOAT8_E5M2).astype(np.float64).tolist() == [57344.0, np.inf]


def test_bitcast_keeps_bits() -> None:
    bits = np.array([0x7F800001, 0xFFC00000, 0x80000000, 1], np.uint32)
    there = evaluate("bitcast", [bits], FLOAT32)
    assert evaluate("bitcast", [there], unsigned_of(32)).tolist() == bits.tolist()
    assert evaluate("bitcast", [np.array(-1, np.int8)], UINT8).tolist() == 255


def test_complex_parts_survive_infinities() -> None:
    made = evaluate("complex", [np.float32([1.0, np.inf]), np.float32([np.inf, np.nan])], COMPLEX64)
    assert made.real.tolist() == [1.0, np.inf]
    assert made.imag[0] == np.inf
    assert np.isnan(made.imag[1])


@FEW
@given(st.complex_numbers(width=128), st.complex_numbers(width=128))
def test_complex_division_is_numpys(a: complex, b: complex) -> None:
    left, right = np.array([a]), np.array([b])
    with np.errstate(all="ignore"):
        expected = left / right
    found = evaluate("divide", [left, right], ALL[-1])
    assert same(float(found.real[0]), float(expected.real[0]))
    assert same(float(found.imag[0]), float(expected.imag[0]))


def test_primitive_ops_with_a_reference_agree_with_numpy() -> None:
    values = np.array([0.0, -0.0, 1.5, -2.5, 0.5, 1e300, 5e-324, np.inf, -np.inf, np.nan])
    left, right = (part.ravel() for part in np.meshgrid(values, values))
    for op in TABLE.values():
        if op.primitive and op.reference and "float" in op.accepts and op.name not in ("where", "modulo"):
            args = (left, right)[: op.arity]
            with np.errstate(all="ignore"):
                expected = getattr(np, op.reference)(*args)
            found = evaluate(op.name, args, BOOL if op.result == "bool" else FLOAT64)
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected, equal_nan=expected.dtype != np.bool_), op.name


def test_storage_floats_compute_in_float32_and_round_once() -> None:
    half = np.array([1.0, 2048.0], np.float16)
    assert evaluate("add", [half, half], FLOAT16).tolist() == [2.0, 4096.0]
    assert evaluate("less", [half, half[::-1]], BOOL).tolist() == [True, False]


def test_a_defined_op_is_refused() -> None:
    with pytest.raises(AssertionError, match="exp is defined"):
        evaluate("exp", [np.zeros(1)], FLOAT64)


def test_integers_stay_their_type() -> None:
    assert evaluate("add", [np.array([127], np.int8), np.array([1], np.int8)], INT8).tolist() == [-128]
    assert evaluate("negative", [np.array([1], np.uint64)], UINT64).tolist() == [2**64 - 1]
    assert evaluate("where", [np.array([True]), np.array([1]), np.array([2])], INT64).dtype == np.int64
