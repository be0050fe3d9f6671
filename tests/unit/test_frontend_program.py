"""What the front end promises about the program: outputs that must be loaded, what is declared, names and lines."""

import pytest

from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, UINT8
from fusec.errors import FusecError
from fusec.frontends.c.classify import REFUSED
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.lower import lower, parse
from fusec.frontends.c.params import RESERVED, parse_params
from fusec.frontends.grammar_tables import STARTS, load
from fusec.ir.loops import Declare, Return, ScalarParam, Store
from fusec.ir.verify import verify


def program(operation, in_params="T x, T y", out_params="T z", scalars=(), ndims=None, **texts):
    kernel = parse(Definition(in_params, out_params, operation, **texts))
    types = {param.name: param.dtype or FLOAT32 for param in kernel.params}
    found = lower(kernel, types, ndims=ndims or {}, scalars=frozenset(scalars))
    verify(found)
    return found


def is_read(operation, **texts):
    return next(param for param in program(operation, **texts).params if param.name == "z").read


@pytest.mark.parametrize(
    "operation",
    [
        "z = x", "if (x > 0) z = x; else z = y;", "if (x > 0) { z = 1; return; } z = 2;", "z = 1; z += x;",
        "do { z = x; } while (y > z);", "while (true) { if (x > 0) { z = 1; break; } z = 3; break; }",
        "for (;;) { z = x; if (z > y) return; }", "z = x, z = y", "if (x > 0) z = 1; else { z = 2; continue; }",
        "T& r = z; r = x;", "switch ((int)x) { case 1: z = 1; break; default: z = 2; }", "T s; sincos(x, &s, &z);",
        "(x > 0 ? z = 1 : z = 2);", "while ((z = x) > 0) break;",
    ],
)  # fmt: skip
def test_an_output_stored_on_every_path_is_not_loaded(operation):
    assert not is_read(operation)


@pytest.mark.parametrize(
    "operation",
    [
        "", "if (x > 0) z = x;", "z += x", "T t = z; z = t;", "for (int j = 0; j < x; j++) z = j;", "x > 0 && (z = x);",
        "if (x > 0) return; z = 1;", "while (x > 0) { z = 1; break; }", "z = z > 0 ? x : y", "++z;",
        "switch ((int)x) { case 1: z = 1; break; case 2: z = 2; }", "do { if (x > 0) continue; z = x; } while (y < 0);",
        "T* p = &z; *p = x;", "for (;;) { if (x > 0) break; z = 1; }", "T& r = z; r += x;",
    ],
)  # fmt: skip
def test_an_output_that_some_path_keeps_is_loaded(operation):
    assert is_read(operation)


def test_only_inputs_that_are_used_are_loaded():
    declared = [statement.name for statement in program("z = x").body if isinstance(statement, Declare)]
    assert declared == ["x", "z"]


def test_scalars_are_parameters_by_value():
    found = program("z = x[i] * k + m", "raw T x, raw int32 k, T m", scalars=("k", "m"))
    assert found.params[1:3] == (ScalarParam("k", INT32), ScalarParam("m", FLOAT32))


def test_every_return_stores_the_outputs():
    found = program("if (x > 0) { z = 1; return; } z = 2;")
    branch = found.body[2].then
    assert [type(statement) for statement in branch[-2:]] == [Store, Return]
    assert isinstance(found.body[-1], Store)


def test_axes_of_raw_arrays_follow_from_an_index_by_axes():
    found = program("ptrdiff_t idx[] = {0, 1, 2}; z = x[idx] + y[i];", "raw T x, raw T y")
    assert [param.ndim for param in found.params] == [3, 1, 0]


def test_names_are_kept_and_changed_only_where_they_hide_others():
    found = program("T t = x; { T t = y; T x = t; z = x; } z += t;")
    names = [statement.name for statement in found.body if isinstance(statement, Declare)]
    assert names == ["x", "y", "z", "t", "t_1", "x_1"]


def test_lines_are_those_of_the_operation():
    found = program("T t = x;\n\nz = f(t);\n", preamble="\n\n\n\n__device__ float f(float a) {\n return a;\n}")
    assert [statement.line for statement in found.body] == [0, 0, 1, 3, 0]
    assert {statement.line for function in found.functions for statement in function.body} == {0}


def test_functions_come_before_their_callers_once_for_each_type():
    preamble = "template<typename A> __device__ A g(A a) { return a; } __device__ float f(float a) { return g(a); }"
    found = program("z = f(x) + g(y) + g(1) + g(2.0);", preamble=preamble)
    assert [function.name for function in found.functions] == ["g_float32", "f", "g_int32", "g_float64"]


def test_pointer_functions_are_made_for_each_memory():
    preamble = "__device__ float first(const float* p) { return *p; }"
    found = program("T t[2] = {1, 2}; z = first(t) + first(&x[3]);", "raw T x", preamble=preamble)
    assert [function.params[0][1].space for function in found.functions] == ["local", "global"]


def test_parameters_of_cupy_are_understood():
    found = parse_params(" raw T x, _non_const  float16 y ,U z,raw _non_const int8 w, f4 v", "input")
    assert [(p.name, p.type_name, p.raw, p.non_const) for p in found] == [
        ("x", "T", True, False), ("y", "float16", False, True), ("z", "U", False, False),
        ("w", "int8", True, True), ("v", "f4", False, False),
    ]  # fmt: skip
    assert [p.dtype and p.dtype.name for p in found] == [None, "float16", None, "int8", "float32"]
    assert parse_params("  ", "output") == ()


def test_every_word_of_the_grammar_is_reserved():
    words = {word for word in load("kernel", STARTS).words if word.isidentifier() and not word.startswith("__")}
    assert words | {word for word in REFUSED if not word.startswith("__")} <= RESERVED | {"typename"}


@pytest.mark.parametrize("name", ["if", "int", "for", "float", "float32", "and", "new"])
def test_words_of_the_language_are_no_parameters(name):
    with pytest.raises(FusecError, match=r"F103"):
        parse_params(f"float32 {name}", "input")


def test_inputs_that_are_not_const_are_written_back():
    found = program("y += x; z = y", "T x, _non_const T y")
    assert [(param.written, param.read) for param in found.params] == [(False, True), (True, True), (True, False)]


@pytest.mark.parametrize("name", ["half", "complex", "index_t", "uint"])
def test_a_variable_may_have_the_name_of_a_type(name):
    program(f"int {name} = 3; z = {name} * 2 + ({name});")


def test_types_differ_from_call_to_call():
    kernel = parse(Definition("T x", "T z", "z = x / 2"))
    ops = []
    for dtype in (FLOAT64, INT32, UINT8):
        found = lower(kernel, {"x": dtype, "z": dtype}, ndims={}, scalars=frozenset())
        ops.append(str(found.body[2]))
    assert "divide" in ops[0]
    assert "quotient" in ops[1]
    assert "convert" in ops[2]
