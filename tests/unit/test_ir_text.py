"""The text of the IR is readable, exact, and says where it cannot be read."""

import numpy as np
import pytest

from fusec.base.dtypes import ALL, BFLOAT16, FLOAT32, FLOAT64, INT8, INT64
from fusec.base.records import replace
from fusec.ir.expr import Const, Pointer, apply, const, convert
from fusec.ir.graph import Input, KernelGraph
from fusec.ir.loops import (
    ArrayParam,
    Barrier,
    Declare,
    DeclareArray,
    Element,
    Load,
    Local,
    LocalArray,
    Program,
    ScalarParam,
    Store,
)
from fusec.ir.text import constant_text, print_expression, print_graph, print_program
from fusec.ir.verify import verify
from tests.support.parse_ir import parse_graph, parse_program

SAXPY = """\
kernel saxpy(a: float32, x: float32 array read, z: float32 array written) {
    let y: float32 = load(&x) @1
    %1 := (a * y)
    store &z = convert<float32>((convert<float64>((%1 + %1)) + float64(0.1))) @2
}
"""


def saxpy() -> Program:
    pointer = Pointer(FLOAT32, "global")
    product = apply("multiply", Local("a", FLOAT32), Local("y", FLOAT32))
    value = apply("add", convert(apply("add", product, product), FLOAT64), const(0.1, FLOAT64))
    params = (ScalarParam("a", FLOAT32), ArrayParam("x", FLOAT32), ArrayParam("z", FLOAT32, written=True, read=False))
    body = (
        Declare("y", FLOAT32, Load(Element("x", pointer), FLOAT32), line=1),
        Store(Element("z", pointer), convert(value, FLOAT32), line=2),
    )
    return Program("saxpy", params, body)


def test_a_program_reads_well() -> None:
    assert print_program(saxpy()) == SAXPY


def test_parsing_gives_the_very_same_expressions_and_lines() -> None:
    parsed = parse_program(SAXPY)
    assert parsed == saxpy()
    assert parsed.body[1].value is saxpy().body[1].value
    assert [stmt.line for stmt in parsed.body] == [1, 2]


def test_blocks_that_have_a_position_together_and_what_they_tell_each_other_can_be_read():
    told = Pointer(FLOAT32, "told")
    body = (
        DeclareArray("sums", FLOAT32, 2, space="told"),
        Store(LocalArray("sums", told), const(1, FLOAT32)),
        Barrier(),
    )
    program = Program("together", (), body, block=(2, 32), cluster=2)
    assert "block(2, 32) cluster(2)" in print_program(program)
    assert parse_program(print_program(program)) == program
    with pytest.raises(AssertionError, match="blocks have"):
        verify(replace(program, cluster=3))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (const(-3, INT8), "int8(-3)"),
        (const(0.1, FLOAT32), "float32(0.1)"),
        (const(-0.0, FLOAT64), "float64(-0.0)"),
        (const(1e-45, FLOAT32), "float32(1e-45)"),
        (const(float("inf"), FLOAT32), "float32(0x7f800000)"),
        (const(1 / 3, BFLOAT16), "bfloat16(0.333984375)"),
    ],
)
def test_constants_are_short_and_exact(value: Const, text: str) -> None:
    assert constant_text(value) == text


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_every_bit_pattern_of_a_constant_survives(dtype) -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        bits = int.from_bytes(rng.bytes(dtype.nbytes), "little") if dtype.name != "bool" else int(rng.integers(2))
        program = Program("k", (), (Declare("c", dtype, Const(bits, dtype)),))
        assert parse_program(print_program(program)) == program


def test_odd_names_are_quoted() -> None:
    for name in ("let", "x y", 'say "hi"', "größe", "_", "%1", "int8", "add"):
        program = Program("kernel", (ScalarParam(name, INT64),), (Declare("q", INT64, Local(name, INT64)),))
        assert parse_program(print_program(program)) == program


def test_a_local_array_may_hide_a_parameter() -> None:
    param, local = Pointer(FLOAT32, "global"), Pointer(FLOAT32, "local")
    body = (DeclareArray("x", FLOAT32, 1), Store(LocalArray("x", local), Load(Element("x", param), FLOAT32)))
    program = Program("k", (ArrayParam("x", FLOAT32),), body)
    assert parse_program(print_program(program)) == program


def test_types_that_do_not_follow_are_written() -> None:
    assert print_expression(apply("negative", Local("x", FLOAT32))) == "negative((x : float32))"
    pointer = Pointer(FLOAT32, "global", const=True)
    program = Program("k", (ArrayParam("x", FLOAT32),), (Declare("y", FLOAT32, Load(Element("x", pointer), FLOAT32)),))
    assert "load((&x : const float32*))" in print_program(program)
    assert parse_program(print_program(program)) == program


def test_a_shared_value_is_printed_once() -> None:
    value = Local("a", FLOAT32)
    for _ in range(100):
        value = apply("add", value, value)
    program = Program("k", (ScalarParam("a", FLOAT32),), (Declare("y", FLOAT32, value),))
    text = print_program(program)
    assert len(text) < 5000
    assert parse_program(text).body[0].value is value


def test_a_graph_keeps_names_and_lines() -> None:
    x, y = Input("x", FLOAT32), Input("y", FLOAT32)
    total = apply("add", x, y)
    graph = KernelGraph("g", (x, y), (("z", apply("multiply", total, total)),), {total: "total"}, {total: 3})
    text = "graph g(x: float32, y: float32) {\n    total := (x + y) @3\n    z = (total * total)\n}\n"
    assert print_graph(graph) == text
    parsed = parse_graph(text)
    assert parsed == graph
    assert (parsed.names, parsed.lines) == (graph.names, graph.lines)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kernel k() {\n    let y: float31\n}\n", "line 2: expected a type"),
        ("kernel k() {\n    let y: int8 = q\n}\n", "line 2: expected a declared name, not q"),
        ("kernel k() {\n    y ? 1\n}\n", "line 2: unexpected '?'"),
        ("kernel k() {\n", "line 2: expected"),
        ("kernel k() {\n    let y: int8 = (int8(1) := int8(2))\n}\n", "expected an operator"),
    ],
)
def test_what_cannot_be_read_is_located(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="line") as caught:
        parse_program(text)
    assert reason in str(caught.value)
