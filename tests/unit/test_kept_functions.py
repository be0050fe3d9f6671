"""Functions that call each other many times stay functions, and give the bits that they give where written out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fusec import ElementwiseKernel, ReductionKernel
from fusec.base.dtypes import COMPLEX64, FLOAT32, INT32, INT64
from fusec.codegen.llvm import routines
from fusec.ir.expr import Pointer, Struct, apply, const, convert
from fusec.ir.loops import ArrayParam as Array
from fusec.ir.loops import (
    Assign,
    At,
    Call,
    CallStatement,
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
    Query,
    Return,
    Store,
)
from tests.support.llvm_check import check, element, elementwise
from tests.unit.test_llvm_control import random_case

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.fixture
def keeps_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function stays one, however small."""
    monkeypatch.setattr(routines, "WHOLE", 0)
    monkeypatch.setattr(routines, "PIECE", 0)


def tree(levels: int, dtype: str, leaf: str, step: Callable[[int], str]) -> str:
    """Functions of which each calls the one before twice."""
    lines = [f"__device__ {dtype} f0({dtype} x) {{ return {leaf}; }}"]
    lines += [f"__device__ {dtype} f{k}({dtype} x) {{ return {step(k)}; }}" for k in range(1, levels + 1)]
    return "\n".join(lines)


def sums(levels: int) -> str:
    """Level k: 2^k x + k 2^(k-1)."""
    return tree(levels, "unsigned int", "x", lambda k: f"f{k - 1}(x) + f{k - 1}(x + 1u)")


def closed(levels: int, x: np.ndarray) -> np.ndarray:
    return (x.astype("u8") * 2**levels + levels * 2 ** (levels - 1)).astype("u4")


def test_the_text_does_not_double_with_every_level() -> None:
    def length(levels: int) -> int:
        kernel = ElementwiseKernel("uint32 x", "uint32 y", f"y = f{levels}(x)", preamble=sums(levels))
        return len(kernel.source("llvm"))

    assert length(28) < 8 * length(14)  # written out at every call, it would be 16384 times as much


def test_a_tree_of_24_levels_is_computed() -> None:
    x = np.arange(5, dtype="u4")
    kernel = ElementwiseKernel("uint32 x", "uint32 y", "y = f24(x)", preamble=sums(24))
    assert np.array_equal(kernel(x), closed(24, x))


@pytest.mark.parametrize("where", ["map", "combination", "end"])
def test_a_tree_is_computed_in_every_part_of_a_reduction(where: str) -> None:
    x = np.arange(100, dtype="u4")
    map_expr = "f17(x)" if where == "map" else "x"
    combined = "f17(a) - (a << 17) + a + b" if where == "combination" else "a + b"
    total = "f17(a)" if where == "end" else "a"
    kernel = ReductionKernel("uint32 x", "uint32 y", map_expr, combined, f"y = {total}", "0", preamble=sums(17))
    if where == "combination":  # the tree's constant comes in once for each combination, of whatever number
        rest = int(kernel(x)) - int(x.sum())
        assert rest > 0
        assert rest % (17 * 2**16) == 0
    else:
        expected = closed(17, x).sum(dtype="u4") if where == "map" else closed(17, x.sum(dtype="u4"))
        assert kernel(x) == expected


def test_floats_keep_their_bits() -> None:
    def value(level: int, x: np.ndarray) -> np.ndarray:
        if level == 0:
            return x * np.float32(0.7) + np.float32(1)
        return value(level - 1, x) * np.float32(0.3) + value(level - 1, x + np.float32(level))

    x = np.linspace(-3, 3, 37, dtype="f4")
    text = tree(13, "float", "x * 0.7f + 1.0f", lambda k: f"f{k - 1}(x) * 0.3f + f{k - 1}(x + {k}.0f)")
    kernel = ElementwiseKernel("float32 x", "float32 y", "y = f13(x)", preamble=text)
    assert "fusec.call" in kernel.source("llvm")
    assert np.array_equal(kernel(x).view("u4"), value(13, x).view("u4"))


def test_small_programs_have_no_calls() -> None:
    kernel = ElementwiseKernel("float64 x", "float64 y", "y = lgamma(x) + sin(x) * pow(x, x) + erfinv(x)")
    assert "fusec.call" not in kernel.source("llvm")


@pytest.mark.usefixtures("keeps_all")
def test_random_programs_run_as_interpreted_with_every_function_kept() -> None:
    for seed in range(8):
        program, arrays, shape = random_case(seed)
        check(program, arrays, shape, {"s": seed % 7 - 3}, lanes=(1, 16), cuts=(shape[0] // 3,))


@pytest.mark.usefixtures("keeps_all")
@pytest.mark.parametrize("bits", [128, 512])
def test_arguments_of_every_kind_pass(bits: int) -> None:
    """Structs, complex values, pointers to arrays of each lane, raw arrays; under a mask and without one."""
    pair = Struct("pair", (("value", COMPLEX64), ("count", INT32)))
    pointer = Pointer(INT32, "local")
    p, s, memory = Local("p", pointer), Local("s", pair), LocalArray("a", pointer)
    count = Field(s, "count", INT32)
    third = convert(apply("bitwise_and", count, const(3, INT32)), INT64)
    fill = Function(
        "fill",
        (("p", pointer), ("s", pair)),
        pair,
        (
            Store(Offset(p, third, pointer), apply("add", Load(p, INT32), count)),
            If(apply("greater", count, const(9, INT32)), (Return(s),)),
            Return(Make((apply("negative", Field(s, "value", COMPLEX64)), const(1, INT32)), pair)),
        ),
    )
    size = Query("C", "size", None, INT64)
    entry = Load(At("C", (apply("modulo", Local("k", INT64), size),), Pointer(FLOAT32, "global", const=True)), FLOAT32)
    read = Function("read", (("k", INT64),), FLOAT32, (Return(entry),))
    call = Call("fill", (memory, Local("s", pair)), pair)
    body = (
        DeclareArray("a", INT32, 4, (const(3, INT32), const(4, INT32))),
        Declare("n", INT32, Load(element("n", INT32), INT32)),
        Declare("s", pair, Make((apply("complex", const(2, FLOAT32), const(5, FLOAT32)), Local("n", INT32)), pair)),
        CallStatement(call, "s"),
        If(apply("less", Local("n", INT32), const(5, INT32)), (CallStatement(call, "s"),)),
        Declare("t", INT32, const(0, INT32)),
        *(
            Assign("t", apply("add", Local("t", INT32), Load(Offset(memory, const(k, INT64), pointer), INT32)))
            for k in range(4)
        ),
        Store(element("z", INT32), apply("add", Local("t", INT32), count)),
        Store(element("w", FLOAT32), Call("read", (convert(Local("n", INT32), INT64),), FLOAT32)),
    )
    params = (Array("n", INT32), Array("C", FLOAT32, raw=True, ndim=1),
              Array("z", INT32, written=True, read=False), Array("w", FLOAT32, written=True, read=False))  # fmt: skip
    arrays = {"n": np.arange(77, dtype="i4") % 13, "C": np.arange(5, dtype="f4"), "z": np.zeros(77, "i4"),
              "w": np.zeros(77, "f4")}  # fmt: skip
    check(Program("k", params, body, (fill, read)), arrays, (77,), lanes=(1, 4, 16), vector_bits=(bits,))


@pytest.mark.usefixtures("keeps_all")
def test_a_function_that_asks_for_the_position_is_written_out() -> None:
    where = Function("where_", (("x", INT32),), INT64, (Return(Query("", "index", None, INT64)),))
    outer = Function("outer", (("x", INT32),), INT64, (Return(Call("where_", (Local("x", INT32),), INT64)),))
    program = elementwise(
        {"x": INT32}, {"z": INT64}, lambda x, **_: [Assign("z", Call("outer", (x,), INT64))], (where, outer)
    )
    check(program, {"x": np.zeros(50, "i4"), "z": np.zeros(50, "i8")}, (50,))
