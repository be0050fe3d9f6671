"""Rows that are no whole number of vectors, for bodies too long to be there twice."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fusec.base.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT64, UINT8, DType
from fusec.base.kernel_abi import Kernel
from fusec.codegen.llvm import LlvmOptions, generate
from fusec.ir.expr import Expr, apply, const, convert
from fusec.ir.loops import ArrayParam, Assign, Declare, If, Load, Local, Offset, Program, Stmt, Store, While
from tests.support.llvm_check import POSITION, at, check, element, elementwise, int64
from tests.support.llvm_runner import layout_of

RNG = np.random.default_rng(11)
LONG = 110  # additions, and as many assignments: more operations than a body that is there twice has
COUNTS = (1, 63, 64, 65, 191)


def chain(dtype: DType) -> list[Stmt]:
    """Statements that make z of x in so many operations; t is the value before the last one."""
    wide = {BOOL: INT64, FLOAT16: FLOAT32}.get(dtype, dtype)
    body: list[Stmt] = [Declare("t", wide, convert(Local("x", dtype), wide))]
    body += [Assign("t", apply("add", Local("t", wide), const(number % 5 + 1, wide))) for number in range(LONG)]
    result: Expr = Local("t", wide)
    if dtype == BOOL:
        result = apply("less", apply("bitwise_and", result, const(3, wide)), const(2, wide))
    return [*body, Assign("z", convert(result, dtype))]


def long_program(dtype: DType) -> Program:
    return elementwise({"x": dtype}, {"z": dtype}, lambda **_: chain(dtype))


def kernel_of(program: Program, arrays: dict[str, np.ndarray], shape: tuple[int, ...], **flags: object) -> Kernel:
    return generate(program, layout_of(program, arrays, shape, **flags), LlvmOptions(vector_bits=512))


def tail_of(kernel: Kernel) -> str:
    (note,) = [note for note in kernel.notes if note.startswith("rest of a row: ")]
    return note.removeprefix("rest of a row: ")


def filled(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return RNG.integers(0, 2 if dtype == BOOL else 100, shape).astype(dtype.numpy)


DTYPES = [BOOL, INT8, UINT8, INT16, INT64, FLOAT16, FLOAT32, FLOAT64, COMPLEX64]
CASES = [(each, "unit") for each in DTYPES] + [(BOOL, "strided"), (COMPLEX64, "backwards"), (FLOAT32, "strided")]


@pytest.mark.parametrize(("dtype", "source"), [*CASES, (FLOAT32, "broadcast")], ids=str)
def test_rests_of_long_bodies_are_exact(dtype: DType, source: str) -> None:
    program = long_program(dtype)
    for count in COUNTS if source == "unit" and dtype == FLOAT32 else (75,):
        room = filled((2 * count,), dtype)
        x = {"unit": room[:count], "strided": room[::2], "backwards": room[:count][::-1]}.get(source, room[:1])
        arrays = {"x": x, "z": filled((count,), dtype)}
        assert tail_of(kernel_of(program, arrays, (count,))) == "copied"
        check(program, arrays, (count,), lanes=(16, None), cuts=(0, count // 3, count))


def test_short_rows_strided_outputs_and_broadcast_axes() -> None:
    program = elementwise(
        {"x": FLOAT32, "y": FLOAT32},
        {"z": FLOAT32},
        lambda x, y, **_: [*chain(FLOAT32), Assign("z", apply("add", Local("t", FLOAT32), y))],
    )
    for columns in (5, 70):
        room = filled((7, 2 * columns), FLOAT32)
        arrays = {"x": filled((7, columns), FLOAT32), "y": filled((7, 1), FLOAT32), "z": room[:, ::2]}
        check(program, arrays, (7, columns), lanes=(64,), cuts=(0, 3, 5 * columns + columns // 2, 7 * columns))
        arrays = {"x": filled((columns,), FLOAT32), "y": filled((7, 1), FLOAT32), "z": filled((columns, 7), FLOAT32).T}
        check(program, arrays, (7, columns), lanes=(16,), cuts=(0, 7 * columns))


def test_only_elements_of_the_range_are_written() -> None:
    program = long_program(FLOAT32)
    room = filled((200,), FLOAT32)
    arrays = {"x": filled((100,), FLOAT32), "z": room[50:150]}
    for low, high in ((7, 93), (99, 100)):
        check(program, arrays, (100,), lanes=(64,), cuts=(low, high))


def test_an_output_that_is_read_and_written_for_some_elements_only() -> None:
    x, z = Local("x", FLOAT32), Local("z", FLOAT32)
    params = (ArrayParam("x", FLOAT32), ArrayParam("z", FLOAT32, written=True))
    body = (
        Declare("x", FLOAT32, Load(element("x", FLOAT32), FLOAT32)),
        Declare("z", FLOAT32, const(0, FLOAT32)),
        *chain(FLOAT32),
        If(apply("less", x, const(50, FLOAT32)), (Store(element("z", FLOAT32), z),)),
    )
    arrays = {"x": filled((100,), FLOAT32), "z": filled((100,), FLOAT32)}
    assert tail_of(kernel_of(Program("k", params, body), arrays, (100,))) == "copied"
    check(Program("k", params, body), arrays, (100,), lanes=(64,))


def test_lanes_without_an_element_end_with_the_last_one() -> None:
    """A loop that would never end for an element of 0."""
    x, t = Local("x", INT64), Local("t", INT64)
    loop = While(apply("not_equal", t, int64(96)), (Assign("t", apply("add", t, x)),))
    program = elementwise(
        {"x": INT64},
        {"z": INT64},
        lambda **_: [*chain(INT64), Assign("t", int64(0)), loop, Assign("z", apply("add", Local("z", INT64), t))],
    )
    arrays = {"x": RNG.choice(np.array([1, 2, 3, 4, 6, 8]), 75), "z": filled((75,), INT64)}
    assert tail_of(kernel_of(program, arrays, (75,))) == "copied"
    check(program, arrays, (75,), lanes=(16, None))


def test_bodies_that_reach_beyond_their_own_elements_are_not_copied() -> None:
    raw = elementwise(
        {"x": FLOAT32},
        {"z": FLOAT32},
        lambda **_: [
            *chain(FLOAT32),
            Assign("z", apply("add", Local("t", FLOAT32), Load(at("w", FLOAT32, POSITION), FLOAT32))),
        ],
    )
    raw = Program("k", (*raw.params, ArrayParam("w", FLOAT32, raw=True, ndim=1)), raw.body)
    arrays = {"x": filled((75,), FLOAT32), "z": filled((75,), FLOAT32), "w": filled((75,), FLOAT32)}
    assert tail_of(kernel_of(raw, arrays, (75,))) == "narrow"
    check(raw, arrays, (75,), lanes=(16, None), cuts=(0, 20, 75))
    place = elementwise(
        {"x": INT64},
        {"z": INT64},
        lambda **_: [*chain(INT64), Assign("z", apply("multiply", Local("t", INT64), POSITION))],
    )
    arrays = {"x": filled((75,), INT64), "z": filled((75,), INT64)}
    assert tail_of(kernel_of(place, arrays, (75,))) == "narrow"
    check(place, arrays, (75,), lanes=(16, None), cuts=(0, 20, 75))
    beside = elementwise(
        {"x": INT64},
        {"z": INT64},
        lambda **_: [
            *chain(INT64),
            Assign("z", Load(Offset(element("x", INT64), int64(0), element("x", INT64).type), INT64)),
        ],
    )
    assert tail_of(kernel_of(beside, arrays, (75,))) == "narrow"


def test_whole_vectors_of_long_bodies_know_no_mask() -> None:
    """The one body between the copies is free of them, and is there once."""
    program = long_program(FLOAT32)
    arrays = {"x": filled((75,), FLOAT32), "z": filled((75,), FLOAT32)}
    source = kernel_of(program, arrays, (75,)).source
    assert len(re.findall(r"= fadd <", source)) == LONG
    loop = source[source.index("\nloop") : source.index("\nafter")]
    assert loop.count("fadd") == LONG
    assert "mask" not in loop
    assert "i1>" not in loop


@pytest.mark.parametrize("dtype", [INT8, FLOAT32, FLOAT64, COMPLEX64], ids=str)
def test_long_rows_begin_with_a_line_wherever_they_lie(dtype: DType) -> None:
    program = elementwise({"x": dtype}, {"z": dtype}, lambda x, **_: [Assign("z", apply("add", x, x))])
    arrays = {"x": filled((3000,), dtype), "z": filled((3000,), dtype)}
    assert tail_of(kernel_of(program, arrays, (3000,))) == "masked"
    if dtype == FLOAT32:
        check(long_program(dtype), arrays, (3000,), lanes=(16, None), cuts=(1, 40, 2999))
    for low, high in ((0, 3000), (1, 2999), (7, 1200), (63, 64 + 512)):
        check(program, arrays, (3000,), lanes=(None,), cuts=(low, high))
    rows = {"x": filled((3, 1001), dtype), "z": filled((3, 1001), dtype)}
    check(program, rows, (3, 1001), lanes=(None,), cuts=(3, 3003))


@pytest.mark.parametrize("dtype", [INT8, FLOAT32, FLOAT64], ids=str)
def test_rests_of_many_rows_run_in_narrow_vectors(dtype: DType) -> None:
    program = elementwise({"x": dtype}, {"z": dtype}, lambda x, **_: [Assign("z", apply("add", x, x))])
    for columns in (3, 37, 150):
        arrays = {"x": filled((5, columns + 3), dtype)[:, :columns], "z": filled((5, columns + 1), dtype)[:, :columns]}
        kernel = kernel_of(program, arrays, (5, columns))
        assert tail_of(kernel) == "narrow"
        check(program, arrays, (5, columns), lanes=(None,), cuts=(1, 2 * columns, 5 * columns - 1))
