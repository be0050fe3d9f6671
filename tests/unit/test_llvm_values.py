"""Every primitive op and every conversion has the interpreter's bits, for scalars and vectors of every width."""

from __future__ import annotations

import numpy as np
import pytest

from fusec.base.dtypes import ALL, BOOL, COMPLEX, FLOAT32, FLOAT64, INT32, INT64, INTEGERS, UINT64, DType, real_type
from fusec.base.ops import TABLE
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Apply, apply, const, convert, scalar_type
from fusec.ir.interpret import interpret
from fusec.ir.loops import Assign, Local
from tests.support.llvm_check import POSITION, check, elementwise, same_bits
from tests.support.llvm_runner import fresh_symbol, layout_of, run

COUNT = 150
EXPANDED = {("multiply", "complex"), ("divide", "complex")}  # functions define them before code is generated
SHAPED = {"convert", "bitcast", "where", "complex", "real", "imag"}
FLOATS = np.array(
    [
        *(0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, 3e38, 127.5, -128.9, 255.5, -0.4),
        *(2147483648.0, -2147483649.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 464.0, 464.1, 61440.0, 65520.0),
    ]
)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def hard_values(dtype: DType, seed: int) -> np.ndarray:
    """Limits, special values and random bits, shuffled."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, COUNT).astype(bool)
    if dtype.is_complex:
        part = real_type(dtype)
        return (hard_values(part, seed) + 1j * hard_values(part, seed + 1)).astype(dtype.numpy)
    values = rng.integers(0, 256, COUNT * dtype.nbytes, dtype=np.uint8).view(dtype.numpy).copy()
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        special = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, dtype.bits - 1, dtype.bits]
        special += [-1, -2] if dtype.kind == "signed" else []
        values[: len(special)] = special
        values[60:100] = rng.integers(0, min(info.max, 100), 40)
    else:
        values[: len(FLOATS)] = FLOATS.astype(dtype.numpy)
        values[60:100] = (rng.normal(size=40) * 100).astype(dtype.numpy)
    return rng.permutation(values)


def ops_of(dtype: DType) -> list[str]:
    primitive = [op for op in TABLE.values() if op.primitive and op.name not in SHAPED and dtype.kind in op.accepts]
    return [op.name for op in primitive if (op.name, dtype.kind) not in EXPANDED]


@pytest.mark.parametrize("dtype", [BOOL, *INTEGERS, FLOAT32, FLOAT64, *COMPLEX], ids=str)
@pytest.mark.sampled(3)
def test_every_op_has_the_interpreters_bits(dtype: DType) -> None:
    values = {op: apply(op, *(Local(name, dtype) for name in "abc"[: TABLE[op].arity])) for op in ops_of(dtype)}
    program = elementwise(
        dict.fromkeys("abc", dtype),
        {f"z_{op}": scalar_type(value) for op, value in values.items()},
        lambda **_: [Assign(f"z_{op}", value) for op, value in values.items()],
    )
    arrays = {name: hard_values(dtype, seed) for seed, name in enumerate("abc")}
    arrays |= {f"z_{op}": np.zeros(COUNT, scalar_type(value).numpy) for op, value in values.items()}
    check(program, arrays, (COUNT,), lanes=(1, 16))


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.sampled(5)
def test_every_conversion_rounds_and_saturates_as_the_interpreter_does(source: DType) -> None:
    targets = {f"z_{target.name}": target for target in ALL if target != source}
    a = Local("a", source)
    program = elementwise(
        {"a": source},
        targets,
        lambda **_: [Assign(name, Apply("convert", (a,), target)) for name, target in targets.items()],
    )
    arrays = {"a": hard_values(source, 3), **{name: np.zeros(COUNT, t.numpy) for name, t in targets.items()}}
    check(program, arrays, (COUNT,), lanes=(1, 16))


def test_a_wide_integer_rounds_once_to_a_narrow_float() -> None:
    edges = [(1 << k) + d for k in range(20, 63) for d in (-1, 0, 1)]
    halfway = [(0b10000001 << k) + d for k in range(1, 55) for d in (-1, 0, 1)]  # between two bfloat16 values
    values = np.array([*edges, *halfway], np.int64)
    targets = {f"z_{t.name}": t for t in ALL if t.is_float}
    a = Local("a", INT64)
    program = elementwise(
        {"a": INT64}, targets, lambda **_: [Assign(name, convert(a, t)) for name, t in targets.items()]
    )
    arrays = {"a": np.concatenate([values, -values])}
    arrays |= {name: np.zeros(arrays["a"].size, t.numpy) for name, t in targets.items()}
    check(program, arrays, arrays["a"].shape, lanes=(1, 16))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("divisor", [0, 1, -1, 2, 7, -8, 100])
def test_division_by_a_constant_equals_division_by_a_variable(dtype: DType, divisor: int) -> None:
    a, by = Local("a", dtype), const(divisor, dtype)
    program = elementwise(
        {"a": dtype},
        {"q": dtype, "r": dtype, "s": dtype},
        lambda **_: [
            Assign("q", apply("quotient", a, by)),
            Assign("r", apply("modulo", a, by)),
            Assign("s", apply("right_shift", apply("left_shift", a, by), by)),
        ],
    )
    arrays = {"a": hard_values(dtype, 5), **{name: np.zeros(COUNT, dtype.numpy) for name in "qrs"}}
    check(program, arrays, (COUNT,), lanes=(1, 16))


@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 15, 16, 17, 63, 64, 65, 1000, -7, 0, (1 << 62) + 1])
def test_positions_divide_exactly(divisor: int) -> None:
    by = const(divisor, INT64)
    narrow = convert(POSITION, INT32)
    program = elementwise(
        {},
        {"q": INT64, "r": INT64, "s": INT32, "f": FLOAT32},
        lambda **_: [
            Assign("q", apply("quotient", POSITION, by)),
            Assign("r", apply("modulo", POSITION, by)),
            Assign("s", apply("modulo", narrow, convert(by, INT32))),
            Assign("f", convert(apply("subtract", POSITION, const(3, INT64)), FLOAT32)),
        ],
    )
    shape = (300,)
    arrays = {"q": np.zeros(shape, "i8"), "r": np.zeros(shape, "i8"), "s": np.zeros(shape, "i4")}
    arrays["f"] = np.zeros(shape, "f4")
    check(program, arrays, shape, cuts=(7, 131))


@pytest.mark.parametrize("op", ["less", "less_equal", "greater", "greater_equal", "equal"])
@pytest.mark.parametrize("limit", [-5, 0, 17, 64, 99, 100, 1 << 40, -(1 << 63)])
@pytest.mark.sampled(5)
def test_positions_compare_exactly(op: str, limit: int) -> None:
    bound = const(limit, INT64)
    moved = apply("subtract", POSITION, const(1, INT64))
    program = elementwise(
        {},
        {"y": BOOL, "z": BOOL},
        lambda **_: [Assign("y", apply(op, moved, bound)), Assign("z", apply(op, bound, POSITION))],
    )
    check(program, {"y": np.zeros(100, bool), "z": np.zeros(100, bool)}, (100,), cuts=(33,))


def test_bits_keep_their_places() -> None:
    pairs = [(s, t) for s in ALL for t in ALL if s.bits == t.bits and not (s.is_complex or t.is_complex)]
    sources = {f"a_{s.name}": s for s in ALL if not s.is_complex}
    targets = {f"z_{s.name}_{t.name}": t for s, t in pairs if t != BOOL}
    program = elementwise(
        sources,
        targets,
        lambda **_: [
            Assign(f"z_{s.name}_{t.name}", apply("bitcast", Local(f"a_{s.name}", s), target=t))
            for s, t in pairs
            if t != BOOL
        ],
    )
    arrays = {name: hard_values(t, 9) for name, t in sources.items()}
    arrays |= {name: np.zeros(COUNT, t.numpy) for name, t in targets.items()}
    check(program, arrays, (COUNT,), lanes=(1, 16))


def test_any_byte_but_zero_is_true() -> None:
    program = elementwise({"a": BOOL}, {"z": UINT64}, lambda a, **_: [Assign("z", convert(a, UINT64))])
    arrays = {"a": np.arange(256, dtype=np.uint8).view(bool), "z": np.zeros(256, "u8")}
    kernel = generate(program, layout_of(program, arrays, (256,)), LlvmOptions(symbol=fresh_symbol()))
    run(kernel, program, arrays, {}, (256,))
    assert arrays["z"].tolist() == [0] + [1] * 255


def test_the_comparison_itself_can_fail() -> None:
    wrong = elementwise({"a": INT32}, {"z": INT32}, lambda a, **_: [Assign("z", apply("add", a, const(1, INT32)))])
    right = elementwise({"a": INT32}, {"z": INT32}, lambda a, **_: [Assign("z", a)])
    arrays = {"a": np.arange(10, dtype="i4"), "z": np.zeros(10, "i4")}
    kernel = generate(wrong, layout_of(wrong, arrays, (10,)), LlvmOptions(symbol=fresh_symbol()))
    run(kernel, wrong, arrays, {}, (10,))
    expected = dict(arrays, z=np.zeros(10, "i4"))
    interpret(right, expected, {}, (10,))
    assert not same_bits(arrays["z"], expected["z"])
