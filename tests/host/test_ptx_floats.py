"""Every floating-point instruction and conversion of the PTX interpreter computes what rationals and NumPy say."""

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from ptx.types import NUMPY
from ptx_evaluate import evaluate, wrap

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # hard values overflow in what is expected, too
INTS = ("u16", "s16", "u32", "s32", "u64", "s64")


def floats(kind: str, count: int = 300, seed: int = 0) -> np.ndarray:
    """Random bits, numbers near 1, and special values."""
    dtype = NUMPY[kind]
    rng = np.random.default_rng(seed)
    bits = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
    near = rng.standard_normal(count).astype(dtype)
    info = ml_dtypes.finfo(dtype)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, math.inf, -math.inf, math.nan]
    edges = [info.max, -info.max, info.smallest_normal, info.smallest_subnormal, -info.smallest_subnormal]
    values = np.concatenate([bits, near, np.array(special, dtype), np.array(edges, dtype)])
    return values[rng.permutation(len(values))]


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    raw = f"u{found.dtype.itemsize}"
    with np.errstate(all="ignore"):
        nan = np.isnan(found.astype("f8"))
        return bool(
            (nan == np.isnan(expected.astype("f8"))).all() and (nan | (found.view(raw) == expected.view(raw))).all()
        )


def exactly(value: Fraction, dtype: np.dtype, mode: str) -> float:
    """A rational rounded in a mode, by a search among neighbours."""
    near = dtype.type(np.float64(value.numerator / value.denominator))
    candidates = {float(near)}
    for limit in (-math.inf, math.inf):
        step = near
        for _ in range(2):
            step = np.nextafter(step, dtype.type(limit))
            candidates.add(float(step))
    finite = [each for each in candidates if math.isfinite(each)]
    if mode == "rn":
        return min(
            finite, key=lambda each: (abs(Fraction(each) - value), int(dtype.type(each).view(f"u{dtype.itemsize}")) & 1)
        )
    if mode == "rz":
        mode = "rm" if value > 0 else "rp"
    if mode == "rm":
        return max(
            each for each in candidates if each == -math.inf or (math.isfinite(each) and Fraction(each) <= value)
        )
    return min(each for each in candidates if each == math.inf or (math.isfinite(each) and Fraction(each) >= value))


EXACT = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fma": lambda a, b, c: a * b + c,
}


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("name", EXACT)
def test_arithmetic_rounds_the_exact_result_once(name, mode, kind):
    count = 3 if name == "fma" else 2
    operands = [floats(kind, 100, seed) for seed in range(count)]
    with np.errstate(all="ignore"):
        operands[-1][::3] = -3 * operands[0][::3]  # so that something cancels
    keep = np.logical_and.reduce([np.isfinite(each) for each in operands])
    operands = [each[keep] for each in operands]
    found = evaluate(f"{name}.{mode}.{kind}", (kind,) * count, kind, *operands)
    limit = Fraction(float(np.finfo(NUMPY[kind]).max))
    for at, row in enumerate(zip(*operands, strict=True)):
        exact = EXACT[name](*(Fraction(float(each)) for each in row))
        if exact and abs(exact) <= limit:
            assert float(found[at]) == exactly(exact, NUMPY[kind], mode), (name, mode, row)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_division_and_roots_are_numpys(kind):
    a, b = floats(kind, seed=1), floats(kind, seed=2)
    with np.errstate(all="ignore"):
        assert same(evaluate(f"div.rn.{kind}", (kind, kind), kind, a, b), a / b)
        assert same(evaluate(f"sqrt.rn.{kind}", (kind,), kind, a), np.sqrt(a))
        assert same(evaluate(f"rcp.rn.{kind}", (kind,), kind, a), 1 / a)
    assert same(evaluate(f"neg.{kind}", (kind,), kind, a), -a)
    assert same(evaluate(f"abs.{kind}", (kind,), kind, a), np.abs(a))
    assert same(evaluate(f"copysign.{kind}", (kind, kind), kind, a, b), np.copysign(b, a))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_minimum_and_maximum_prefer_numbers_and_know_signed_zeros(kind):
    a = np.array([0.0, -0.0, math.nan, 1.0, math.nan, -math.inf, 3.0], NUMPY[kind])
    b = np.array([-0.0, 0.0, 2.0, math.nan, math.nan, 5.0, -3.0], NUMPY[kind])
    low, high = ([-0.0, -0.0, 2.0, 1.0, math.nan, -math.inf, -3.0], [0.0, 0.0, 2.0, 1.0, math.nan, 5.0, 3.0])
    assert same(evaluate(f"min.{kind}", (kind, kind), kind, a, b), np.array(low, NUMPY[kind]))
    assert same(evaluate(f"max.{kind}", (kind, kind), kind, a, b), np.array(high, NUMPY[kind]))
    if kind == "f32":
        assert np.isnan(evaluate("min.NaN.f32", (kind, kind), kind, a, b)).tolist() == [0, 0, 1, 1, 1, 0, 0]


def test_pairs_are_computed_half_by_half():
    a, b, c = (floats("f32", 200, seed) for seed in (11, 12, 13))
    packed = [each[: len(each) // 2 * 2].view(np.uint64) for each in (a, b, c)]
    for name, count in (("add", 2), ("mul", 2), ("fma", 3)):
        found = evaluate(f"{name}.rn.f32x2", ("b64",) * count, "b64", *packed[:count]).view(np.float32)
        halves = [each[: len(found)] for each in (a, b, c)]
        assert same(found, evaluate(f"{name}.rn.f32", ("f32",) * count, "f32", *halves[:count]))


def test_the_least_and_the_greatest_of_three():
    rows = [floats("f32", 200, seed) for seed in (11, 12, 13)]
    for name, numpy in (("min", np.fmin), ("max", np.fmax)):
        found = evaluate(f"{name}.f32", ("f32",) * 3, "f32", *rows)
        assert (np.isnan(found) | (found == numpy(numpy(rows[0], rows[1]), rows[2]))).all()
        assert (np.isnan(found) == np.logical_and.reduce([np.isnan(each) for each in rows])).all()


FLOAT_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq, "ne": lambda a, b: a < b or a > b, "lt": operator.lt, "le": operator.le, "gt": operator.gt,
    "ge": operator.ge, "num": lambda a, b: a == a and b == b, "nan": lambda a, b: a != a or b != b,
    "equ": lambda a, b: not (a < b or a > b), "neu": operator.ne, "ltu": lambda a, b: not a >= b,
    "leu": lambda a, b: not a > b, "gtu": lambda a, b: not a <= b, "geu": lambda a, b: not a < b,
}  # fmt: skip


@pytest.mark.parametrize("order", FLOAT_ORDERS)
def test_comparisons_with_nan_are_ordered_or_not(order):
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    a, b = (each.ravel().astype(np.float32) for each in np.meshgrid(values, values))
    found = evaluate(f"setp.{order}.f32", ("f32", "f32"), "pred", a, b)
    assert found.tolist() == [FLOAT_ORDERS[order](float(x), float(y)) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("source", ["f32", "f64"])
@pytest.mark.parametrize("target", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_floats_become_integers_by_rounding_and_saturating(source, target, mode):
    rounded = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode]
    info = np.iinfo(NUMPY[target])
    scaled = floats(source, 100, 3) * 2.0 ** np.random.default_rng(4).integers(0, 66, 216)
    values = np.concatenate([floats(source, 20), scaled, [info.max, info.min, info.max + 0.5, -0.5]]).astype(
        NUMPY[source]
    )
    found = evaluate(f"cvt.{mode}.{target}.{source}", (source,), target, values)
    pattern = 1 << info.bits - 1 if source == "f64" or info.bits == 64 else 0
    for value, got in zip(values.tolist(), found.tolist(), strict=True):
        if math.isnan(value):
            assert got == wrap(pattern, target)
        elif math.isinf(value):
            assert got == (info.max if value > 0 else info.min)
        else:
            assert got == max(info.min, min(info.max, rounded(value)))


@pytest.mark.parametrize("source", ["s8", "u8", *INTS])
def test_integers_convert_to_integers_and_floats(source):
    info = np.iinfo(NUMPY[source])
    rng = np.random.default_rng(5)
    drawn = rng.integers(info.min, info.max, 200, NUMPY[source], endpoint=True)
    values = np.concatenate([drawn, np.array([info.min, info.max], NUMPY[source])])
    for target in ("s8", "u8", *INTS):
        found = evaluate(f"cvt.{target}.{source}", (source,), target, values)
        assert found.tolist() == [wrap(each, target) for each in values.tolist()]
        own = np.iinfo(NUMPY[target])
        found = evaluate(f"cvt.sat.{target}.{source}", (source,), target, values)
        assert found.tolist() == [max(own.min, min(own.max, each)) for each in values.tolist()]
    for target in ("f32", "f64"):
        found = evaluate(f"cvt.rn.{target}.{source}", (source,), target, values)
        assert same(found, values.astype(NUMPY[target]))
        for mode in ("rz", "rm", "rp"):
            found = evaluate(f"cvt.{mode}.{target}.{source}", (source,), target, values)
            assert found.tolist() == [exactly(Fraction(each), NUMPY[target], mode) for each in values.tolist()]


@pytest.mark.parametrize("target", ["f16", "bf16", "f32"])
@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_are_narrowed_with_one_rounding(source, target):
    if source == target or (source, target) == ("f64", "bf16"):
        return
    dtype = NUMPY[target]
    info = ml_dtypes.finfo(dtype)
    scale = 2.0 ** np.random.default_rng(6).integers(info.minexp - 12, info.maxexp + 2, 400)
    with np.errstate(all="ignore"):
        values = np.concatenate([np.random.default_rng(7).standard_normal(400) * scale, floats(source, 10)])
        values = values.astype(NUMPY[source])
        assert same(evaluate(f"cvt.rn.{target}.{source}", (source,), target, values), values.astype(dtype))
    if target == "f32":
        for mode in ("rz", "rm", "rp"):
            found = evaluate(f"cvt.{mode}.f32.f64", ("f64",), "f32", values)
            for value, got in zip(values, found, strict=True):
                if np.isfinite(value) and value and abs(value) <= float(info.max):
                    assert float(got) == exactly(Fraction(float(value)), dtype, mode)


def test_packed_conversions_put_the_first_operand_on_top():
    a, b = floats("f32", 200, 8), floats("f32", 200, 9)
    with np.errstate(all="ignore"):
        for target, dtype in (("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)):
            found = evaluate(f"cvt.rn.{target}.f32", ("f32", "f32"), "b32", a, b)
            low, high = found.view(np.uint16)[::2].view(dtype), found.view(np.uint16)[1::2].view(dtype)
            assert same(low, b.astype(dtype))
            assert same(high, a.astype(dtype))
        for target, dtype, top in (
            ("e4m3x2", ml_dtypes.float8_e4m3fn, 448),
            ("e5m2x2", ml_dtypes.float8_e5m2, 57344),
        ):
            found = evaluate(f"cvt.rn.satfinite.{target}.f32", ("f32", "f32"), "b16", a, b)
            low, high = found.view(np.uint8)[::2].view(dtype), found.view(np.uint8)[1::2].view(dtype)
            assert same(low, np.clip(b, -top, top).astype(dtype))
            assert same(high, np.clip(a, -top, top).astype(dtype))
            both = evaluate(f"cvt.rn.f16x2.{target}", ("b16",), "b32", found)
            assert same(both.view(np.uint16)[::2].view(np.float16), low.astype(np.float16))


def test_rounding_to_whole_keeps_the_type_and_the_sign_of_zero():
    values = floats("f64", 200, 10)
    for mode, numpy in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
        assert same(evaluate(f"cvt.{mode}.f64.f64", ("f64",), "f64", values), numpy(values))
