"""Branches, loops and exits mean for a vector of lanes what they mean for each of them."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from fusec.base.dtypes import BOOL, COMPLEX64, FLOAT32, INT32, INT64, UINT8, DType
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Pointer, Struct, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Assign,
    Break,
    Call,
    CallStatement,
    Continue,
    Declare,
    DeclareArray,
    Field,
    Function,
    If,
    Load,
    Local,
    LocalArray,
    Make,
    Offset,
    Program,
    Return,
    ScalarParam,
    SetField,
    Store,
    While,
)
from tests.support.llvm_check import POSITION, at, check, element, elementwise, int64
from tests.support.llvm_random import RAW_SIZE, Writer
from tests.support.llvm_runner import layout_of

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def zero(dtype: object) -> object:
    return const(0, dtype)


def random_case(seed: int) -> tuple[Program, dict[str, np.ndarray], tuple[int]]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 150))
    arrays = {
        "x": rng.integers(-10, 10, count).astype("i4"),
        "f": (rng.normal(size=count) * 3).astype("f4"),
        "A": rng.integers(-100, 100, RAW_SIZE).astype("i4"),
        "C": np.zeros(RAW_SIZE, "i4"),
        "y": np.zeros(count, "i4"),
        "g": np.zeros(count, "f4"),
    }
    return Writer(seed).program(), arrays, (count,)


@pytest.mark.parametrize("start", range(0, 60, 10))
@pytest.mark.sampled(3)
def test_random_programs_run_as_interpreted(start: int) -> None:
    for seed in range(start, start + 10):
        program, arrays, shape = random_case(seed)
        check(program, arrays, shape, {"s": seed % 7 - 3}, lanes=(1, 16), cuts=(shape[0] // 3,))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_random_programs_run_as_interpreted(start: int) -> None:
    for seed in range(start, start + 100):
        program, arrays, shape = random_case(seed)
        check(program, arrays, shape, {"s": seed % 7 - 3}, lanes=(1, 4, 16, 64), cuts=(shape[0] // 3,))


def mandelbrot() -> Program:
    zx, zy, k = Local("zx", FLOAT32), Local("zy", FLOAT32), Local("k", INT32)
    x2, y2, two = Local("x2", FLOAT32), Local("y2", FLOAT32), const(2, FLOAT32)
    body = (
        Declare("x2", FLOAT32, apply("multiply", zx, zx)),
        Declare("y2", FLOAT32, apply("multiply", zy, zy)),
        If(apply("greater", apply("add", x2, y2), const(4, FLOAT32)), (Break(),)),
        Assign("zy", apply("add", apply("multiply", apply("multiply", two, zx), zy), Local("y", FLOAT32))),
        Assign("zx", apply("add", apply("subtract", x2, y2), Local("x", FLOAT32))),
    )
    step = (Assign("k", apply("add", k, const(1, INT32))),)
    return elementwise(
        {"x": FLOAT32, "y": FLOAT32},
        {"z": INT32},
        lambda **_: [
            Declare("zx", FLOAT32, zero(FLOAT32)),
            Declare("zy", FLOAT32, zero(FLOAT32)),
            Declare("k", INT32, zero(INT32)),
            While(apply("less", k, const(50, INT32)), body, step),
            Assign("z", k),
        ],
    )


def mandelbrot_arrays() -> dict[str, np.ndarray]:
    x, y = np.meshgrid(np.linspace(-2, 1, 37, dtype="f4"), np.linspace(-1, 1, 11, dtype="f4"))
    return {"x": x.copy(), "y": y.copy(), "z": np.zeros(x.shape, "i4")}


def test_mandelbrot_counts_exactly() -> None:
    check(mandelbrot(), mandelbrot_arrays(), (11, 37), lanes=(1, 16, 32, None), vector_bits=(512, 256), cuts=(50, 51))


def test_a_loop_that_lanes_leave_is_a_loop_of_vectors() -> None:
    program, arrays = mandelbrot(), mandelbrot_arrays()
    kernel = generate(program, layout_of(program, arrays, (11, 37)), LlvmOptions(symbol="m"))
    assert kernel.lanes >= 16
    assert f"fmul <{kernel.lanes} x float>" in kernel.source


def test_the_counter_of_a_uniform_loop_stays_a_scalar() -> None:
    k, z = Local("k", INT32), Local("z", FLOAT32)
    loop = While(
        apply("less", k, Local("n", INT32)),
        (Assign("z", apply("add", z, Load(at("A", FLOAT32, convert(k, INT64)), FLOAT32))),),
        (Assign("k", apply("add", k, const(1, INT32))),),
    )
    program = Program(
        "k",
        (
            ScalarParam("n", INT32),
            ArrayParam("A", FLOAT32, raw=True, ndim=1),
            ArrayParam("x", FLOAT32),
            ArrayParam("z", FLOAT32, written=True, read=False),
        ),
        (
            Declare("z", FLOAT32, Load(element("x", FLOAT32), FLOAT32)),
            Declare("k", INT32, zero(INT32)),
            loop,
            Store(element("z", FLOAT32), z),
        ),
    )
    arrays = {"A": np.arange(20, dtype="f4"), "x": np.linspace(0, 1, 70, dtype="f4"), "z": np.zeros(70, "f4")}
    check(program, arrays, (70,), {"n": 20})
    kernel = generate(program, layout_of(program, arrays, (70,)), LlvmOptions(symbol="k", lanes=16))
    assert "gather" not in kernel.source
    assert "add i32" in kernel.source


@pytest.mark.parametrize("dtype", [FLOAT32, UINT8, COMPLEX64])
def test_a_condition_guards_what_must_not_be_read(dtype: DType) -> None:
    """The array is at the end of its memory; a lane outside would fault or read what the interpreter forbids."""
    count = 100
    inside = apply("logical_and", apply("greater", POSITION, int64(0)), apply("less", POSITION, int64(count - 1)))
    neighbours = apply(
        "add",
        Load(at("A", dtype, apply("subtract", POSITION, int64(1))), dtype),
        Load(at("A", dtype, apply("add", POSITION, int64(1))), dtype),
    )
    program = Program(
        "k",
        (ArrayParam("A", dtype, raw=True, ndim=1), ArrayParam("z", dtype, written=True, read=False)),
        (Store(element("z", dtype), apply("where", inside, neighbours, const(1, dtype))),),
    )
    numbers = np.random.default_rng(0).integers(0, 9, count).astype(dtype.numpy)
    arrays = {"A": numbers, "z": np.zeros_like(numbers)}
    check(program, arrays, (count,), cuts=(1, 99))
    for permutes in (0, 512):  # a processor has an instruction for it, or all loads of a kernel share a function
        kernel = generate(
            program, layout_of(program, arrays, (count,)), LlvmOptions(symbol="k", lanes=16, permutes=permutes)
        )
        assert ("llvm.masked.load" in kernel.source) == (permutes == 512)
        assert kernel.source.count("define internal <") == (permutes == 0)
        assert "gather" not in kernel.source


def test_functions_return_early_lane_by_lane() -> None:
    p, q = Local("p", INT32), Local("q", INT32)
    early = Function(
        "early",
        (("p", INT32),),
        INT32,
        (
            If(apply("less", p, const(0, INT32)), (Return(const(-1, INT32)),)),
            Declare("q", INT32, const(1, INT32)),
            While(
                apply("less", q, p),
                (
                    If(apply("equal", q, const(64, INT32)), (Return(const(99, INT32)),)),
                    Assign("q", apply("multiply", q, const(2, INT32))),
                ),
            ),
            Return(q),
        ),
    )
    program = elementwise(
        {"x": INT32}, {"z": INT32}, lambda x, **_: [Assign("z", Call("early", (x,), INT32))], (early,)
    )
    check(program, {"x": np.arange(-20, 200, dtype="i4"), "z": np.zeros(220, "i4")}, (220,))


def test_a_function_writes_through_a_pointer_to_a_local_array() -> None:
    pointer = Pointer(INT32, "local")
    p, v = Local("p", pointer), Local("v", INT32)
    fill = Function(
        "fill",
        (("p", pointer), ("v", INT32)),
        None,
        (
            Store(p, v),
            If(
                apply("greater", v, const(3, INT32)),
                (Store(Offset(p, convert(apply("bitwise_and", v, const(3, INT32)), INT64), pointer), v),),
            ),
        ),
    )
    array = LocalArray("a", pointer)
    program = elementwise(
        {"x": INT32},
        {"z": INT32},
        lambda x, **_: [
            DeclareArray("a", INT32, 4, (const(7, INT32),)),
            CallStatement(Call("fill", (array, x), INT32)),
            *(
                Assign("z", apply("add", Local("z", INT32), Load(Offset(array, int64(k), pointer), INT32)))
                for k in range(4)
            ),
        ],
        (fill,),
    )
    check(program, {"x": np.arange(90, dtype="i4"), "z": np.zeros(90, "i4")}, (90,))


@pytest.mark.parametrize("varying_index", [False, True])
@pytest.mark.parametrize("dtype", [INT32, BOOL, COMPLEX64], ids=str)
def test_local_arrays_hold_every_dtype(varying_index: bool, dtype: object) -> None:
    pointer = Pointer(dtype, "local")
    array = LocalArray("a", pointer)
    index = convert(apply("bitwise_and", Local("x", INT32), const(7, INT32)), INT64) if varying_index else int64(5)
    program = elementwise(
        {"x": INT32},
        {"z": dtype},
        lambda x, **_: [
            DeclareArray("a", dtype, 8),
            Store(Offset(array, index, pointer), convert(x, dtype)),
            If(
                apply("greater", x, const(40, INT32)),
                (Store(Offset(array, index, pointer), convert(const(1, INT32), dtype)),),
            ),
            Assign("z", Load(Offset(array, index, pointer), dtype)),
        ],
    )
    check(program, {"x": np.arange(90, dtype="i4"), "z": np.zeros(90, dtype.numpy)}, (90,))


def test_structs_are_their_fields() -> None:
    pair = Struct("pair", (("value", COMPLEX64), ("count", INT32)))
    s = Local("s", pair)
    program = elementwise(
        {"x": COMPLEX64, "n": INT32},
        {"z": COMPLEX64, "m": INT32},
        lambda x, n, **_: [
            Declare("s", pair, Make((x, const(1, INT32)), pair)),
            If(
                apply("greater", n, const(5, INT32)),
                (SetField("s", "count", n), SetField("s", "value", apply("negative", Field(s, "value", COMPLEX64)))),
            ),
            Assign("z", Field(s, "value", COMPLEX64)),
            Assign("m", Field(s, "count", INT32)),
        ],
    )
    rng = np.random.default_rng(1)
    arrays = {"x": (rng.normal(size=77) + 1j * rng.normal(size=77)).astype("c8"), "n": np.arange(77, dtype="i4") % 11}
    check(program, {**arrays, "z": np.zeros(77, "c8"), "m": np.zeros(77, "i4")}, (77,))


def test_a_continue_skips_only_its_lanes() -> None:
    k, z = Local("k", INT32), Local("z", INT32)
    odd = apply("equal", apply("bitwise_and", apply("add", k, Local("x", INT32)), const(1, INT32)), const(1, INT32))
    program = elementwise(
        {"x": INT32},
        {"z": INT32},
        lambda **_: [
            Declare("k", INT32, zero(INT32)),
            While(
                apply("less", k, const(9, INT32)),
                (If(odd, (Continue(),)), Assign("z", apply("add", z, k))),
                (Assign("k", apply("add", k, const(1, INT32))),),
            ),
        ],
    )
    check(program, {"x": np.arange(50, dtype="i4"), "z": np.zeros(50, "i4")}, (50,))


def test_a_deep_expression_does_not_exhaust_the_stack() -> None:
    value = Local("x", FLOAT32)
    for _ in range(200):
        value = apply("add", value, const(1.5, FLOAT32))
    program = elementwise({"x": FLOAT32}, {"z": FLOAT32}, lambda **_: [Assign("z", value)])
    check(program, {"x": np.arange(20, dtype="f4"), "z": np.zeros(20, "f4")}, (20,), lanes=(1, 16))


def calls_to_write(links: int) -> int:
    """Python calls that write a chain of branches."""
    body: tuple[If, ...] = ()
    for number in range(links):
        body = (If(apply("equal", Local("x", INT32), const(number, INT32)), (Assign("y", const(1, INT32)),), body),)
    program = elementwise({"x": INT32}, {"y": INT32}, lambda x, y: body)
    layout = layout_of(program, {name: np.zeros(8, "i4") for name in "xy"}, (8,))
    count = itertools.count()
    sys.setprofile(lambda *_: next(count))
    try:
        generate(program, layout)
    finally:
        sys.setprofile(None)
    return next(count)


def test_a_chain_of_branches_takes_time_in_proportion_to_its_length() -> None:
    """Once, each link asked anew what all links after it do, by as many generators as there were links before it."""
    assert calls_to_write(80) < 2.5 * calls_to_write(40)
