"""Laws of the printed text: constants keep their bits, parentheses keep the meaning, names stay the user's."""

import re

import numpy as np
import pytest

from fusec import ElementwiseKernel, fuse
from fusec.base.dtypes import ALL, BOOL, FLOAT32, FLOAT64, INT16, INT32, INT64, INTEGERS, UINT32, DType
from fusec.base.kernel_abi import Layout, Step
from fusec.base.records import replace
from fusec.base.source import SourceFile
from fusec.codegen import cuda, metal
from fusec.codegen.c_family import literals
from fusec.codegen.c_family.bounds import BoundsOf, dtype_bounds
from fusec.codegen.c_family.expressions import ExprPrinter
from fusec.codegen.c_family.facts import always_stores, shared
from fusec.codegen.c_family.names import ScopeNames
from fusec.errors import FusecError
from fusec.ir.expr import Expr, Pointer, apply, const, convert
from fusec.ir.loops import (
    ArrayParam,
    Call,
    Declare,
    Element,
    Function,
    If,
    Load,
    Local,
    Program,
    Query,
    Return,
    ScalarParam,
    Store,
)


def printed(value: Expr, spelling=cuda.SPELLING) -> str:
    names = {name: name for name in "abcxyzpq"}
    return ExprPrinter(replace(spelling, called={"f": "f"}), names).text(value)


def local(name: str, dtype: DType = INT32) -> Local:
    return Local(name, dtype)


A, B, C = local("a"), local("b"), local("c")
P, Q = local("p", BOOL), local("q", BOOL)
X, Y, Z = (local(name, FLOAT32) for name in "xyz")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (apply("add", X, apply("multiply", Y, Z)), "x + y * z"),
        (apply("multiply", apply("add", X, Y), Z), "(x + y) * z"),
        (apply("subtract", X, apply("subtract", Y, Z)), "x - (y - z)"),
        (apply("subtract", apply("subtract", X, Y), Z), "x - y - z"),
        (apply("negative", apply("negative", X)), "-(-x)"),
        (apply("subtract", X, apply("negative", Y)), "x - (-y)"),
        (apply("divide", X, apply("multiply", Y, Z)), "x / (y * z)"),
        (apply("where", P, X, apply("where", Q, Y, Z)), "p ? x : q ? y : z"),
        (apply("where", apply("where", P, Q, P), X, Y), "(p ? q : p) ? x : y"),
        (apply("logical_or", apply("logical_and", P, Q), P), "p && q || p"),
        (apply("logical_and", apply("logical_or", P, Q), P), "(p || q) && p"),
        (apply("logical_not", apply("less", X, Y)), "!(x < y)"),
        (apply("equal", apply("bitwise_and", A, const(1, INT32)), const(0, INT32)), "(a & 1) == 0"),
        (apply("multiply", convert(A, FLOAT32), X), "a * x"),
        (apply("multiply", convert(A, FLOAT32), convert(B, FLOAT32)), "(float)a * (float)b"),
        (apply("add", convert(A, INT64), const(1, INT64)), "(long long)a + 1"),
        (apply("fma", X, Y, Z), "__fmaf_rn(x, y, z)"),
        (Call("f", (apply("add", X, Y),), FLOAT32), "f(x + y)"),
    ],
)
def test_parentheses_and_casts_stand_only_where_they_are_needed(value, text):
    assert printed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (apply("add", A, B), "(int)((unsigned)a + b)"),
        (apply("add", apply("multiply", A, B), const(7, INT32)), "(int)((unsigned)a * b + 7)"),
        (apply("add", apply("multiply", A, B), apply("multiply", C, C)), "(int)((unsigned)a * b + (unsigned)c * c)"),
        (apply("add", local("a", UINT32), local("b", UINT32)), "a + b"),
        (apply("add", local("a", INT16), local("b", INT16)), "(short)(a + b)"),
        (apply("multiply", convert(local("a", INT16), INT32), const(9, INT32)), "(int)a * 9"),
        (apply("quotient", A, const(3, INT32)), "a / 3"),
        (apply("quotient", A, B), "fusec_quotient_int32(a, b)"),
        (apply("quotient", A, const(-1, INT32)), "fusec_quotient_int32(a, -1)"),
        (apply("right_shift", A, apply("bitwise_and", B, const(31, INT32))), "a >> (b & 31)"),
        (apply("left_shift", A, B), "fusec_left_shift_int32(a, b)"),
    ],
)
def test_plain_operators_stand_for_what_cannot_overflow(value, text):
    assert printed(value) == text


def test_int64_sums_in_an_index_are_plain_and_wrap_elsewhere():
    n, m = local("a", INT64), local("b", INT64)
    total = apply("add", apply("multiply", n, convert(C, INT64)), apply("subtract", m, const(1, INT64)))
    names = {name: name for name in "abc"}
    assert ExprPrinter(cuda.SPELLING, names).index(total).text == "a * c + (b - 1)"
    assert printed(total) == "(long long)((unsigned long long)a * c + ((unsigned long long)b - 1))"
    masked = apply("bitwise_and", total, const(7, INT64))
    assert ExprPrinter(cuda.SPELLING, names).index(masked).text == f"{printed(total)} & 7"
    narrow = convert(apply("multiply", A, B), INT64)
    assert ExprPrinter(cuda.SPELLING, names).index(narrow).text == "(int)((unsigned)a * b)"
    both = apply("multiply", convert(A, INT64), convert(B, INT64))
    assert ExprPrinter(cuda.SPELLING, names).index(both).text == "(long long)a * (long long)b"


def test_the_remainder_of_a_negative_number_is_left_to_metal_in_no_case():
    assert printed(apply("modulo", A, const(3, INT32)), metal.SPELLING) == "fusec_modulo_int32(a, 3)"
    small = apply("bitwise_and", A, const(15, INT32))
    assert printed(apply("modulo", small, const(3, INT32)), metal.SPELLING) == "(a & 15) % 3"


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
def test_float_literals_read_back_to_their_bits(dtype):
    """The text is read as C reads it; both ways that a compiler may take, directly and through double, agree."""
    rng = np.random.default_rng(0)
    numbers = np.frombuffer(rng.bytes(2000 * dtype.nbytes), dtype.numpy)
    for number in [*numbers, dtype.numpy.type(0.1), dtype.numpy.type(-0.0), dtype.numpy.type(1e22)]:
        text = literals.literal(const(number, dtype), cuda.SPELLING).text
        if "as" in text:
            smallest = np.finfo(dtype.numpy).tiny
            assert not np.isfinite(number) or abs(number) < smallest
            continue
        digits = text.rstrip("f") if dtype == FLOAT32 and not text.startswith(("0x", "-0x")) else text
        value = float.fromhex(text.rstrip("f")) if "0x" in text else float(digits)
        assert dtype.numpy.type(value).tobytes() == number.tobytes()


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_literals_never_exceed_their_type(dtype):
    low, high = dtype_bounds(dtype)
    text = literals.literal(const(low, dtype), cuda.SPELLING).text
    assert str(1 << (dtype.bits - 1)) not in text or dtype.bits < 32
    assert literals.literal(const(high, dtype), cuda.SPELLING).text.startswith(str(high))


def test_names_are_kept_unless_they_mean_something_in_the_target():
    names = ScopeNames(cuda.SPELLING.reserved)
    assert names.fresh("x") == "x"
    assert names.fresh("x") == "x_2"
    assert names.fresh("float4") == "float4_2"
    assert ScopeNames(metal.SPELLING.reserved).fresh("half") == "half_2"
    assert names.fresh("größe").isascii()
    inner = ScopeNames(outer=names)
    assert inner.fresh("x") == "x_3"


def test_bounds_hold_for_index_arithmetic():
    bounds = BoundsOf()
    index = Query("", "index", None, INT64)
    assert bounds(index)[0] == 0
    assert not bounds.overflows(apply("add", apply("multiply", index, const(3, INT64)), const(5, INT64)))
    assert bounds.overflows(apply("multiply", index, Local("n", INT64)))
    assert bounds(apply("modulo", Local("n", INT64), const(5, INT64))) == (-4, 4)


def test_a_value_used_twice_is_named_unless_it_is_guarded():
    total = apply("add", X, Y)
    assert shared([apply("multiply", total, total)]) == [total]
    loaded = Load(Local("at", Pointer(FLOAT32, "local")), FLOAT32)
    assert shared([apply("where", P, apply("add", loaded, loaded), X)]) == []
    assert shared([apply("where", P, apply("add", total, total), X)]) == [total]


def _element(name: str) -> Element:
    return Element(name, Pointer(FLOAT32, "global"))


def test_an_output_is_loaded_first_unless_every_path_stores_it():
    store = Store(_element("z"), X)
    assert always_stores((store,), "z")
    assert always_stores((If(P, (store, Return())), store), "z")
    assert always_stores((If(P, (store,), (store,)),), "z")
    assert not always_stores((If(P, (store,)),), "z")
    assert not always_stores((If(P, (Return(),)), store), "z")


def program(*body, functions=(), source=None) -> Program:
    params = (ScalarParam("a", FLOAT32), ArrayParam("x", FLOAT32), ArrayParam("z", FLOAT32, written=True, read=False))
    return Program("kernel", params, body, functions, source)


UNIT = Layout(1, (("x", (Step.UNIT,)), ("z", (Step.UNIT,))), aligned=16)


def test_a_kernel_takes_only_what_it_uses():
    kernel = cuda.generate(program(Store(_element("z"), const(1, FLOAT32))), UNIT)
    assert [(slot.kind, slot.param) for slot in kernel.slots] == [("size", ""), ("pointer", "z")]
    assert "x_data" not in kernel.source


def test_only_needed_functions_and_helpers_are_printed():
    body = Call("used", (A,), INT32)
    used = Function("used", (("a", INT32),), INT32, (Return(apply("quotient", A, A)),))
    unused = Function("unused", (("a", INT32),), INT32, (Return(A),))
    value = convert(Call("used", (convert(Load(_element("x"), FLOAT32), INT32),), INT32), FLOAT32)
    text = cuda.generate(program(Store(_element("z"), value), functions=(unused, used)), UNIT).source
    assert body.function in text
    assert "unused" not in text
    assert "fusec_quotient_int32" in text
    assert "fusec_modulo" not in text
    assert text.index("fusec_quotient_int32(int a") < text.index("int used(")


def test_a_comment_shows_the_line_of_the_user_and_cannot_escape():
    source = SourceFile("kernel", "first \\\nsecond é\n")
    body = (Declare("t", FLOAT32, Local("a", FLOAT32), line=1), Store(_element("z"), Local("t", FLOAT32), line=2))
    text = cuda.generate(program(*body, source=source), UNIT).source
    assert "// 1: first\n" in text
    assert "// 2: second ?\n" in text


def test_a_line_of_the_user_is_shown_once_before_the_first_of_its_statements():
    source = SourceFile("kernel", "first\nsecond\n")
    x = Load(_element("x"), FLOAT32)
    body = (
        Declare("t", FLOAT32, x, line=2),
        Declare("u", FLOAT32, apply("add", x, local("t", FLOAT32)), line=1),
        Store(_element("z"), apply("multiply", local("u", FLOAT32), local("t", FLOAT32)), line=2),
    )
    for generate in (cuda.generate, metal.generate):
        text = generate(program(*body, source=source), UNIT).source
        assert text.count("// 2: second") == text.count("// 1: first") == 1
        places = [text.index(part) for part in ("// 2: second", "float t = ", "// 1: first", "float u = ")]
        assert places == sorted(places)


def test_a_function_shows_the_first_line_of_its_definition():
    shown = Function("f", (("a", FLOAT32),), FLOAT32, (Return(local("a", FLOAT32)),), "float f(float é) { \\")
    value = Call("f", (Load(_element("x"), FLOAT32),), FLOAT32)
    for generate in (cuda.generate, metal.generate):
        text = generate(program(Store(_element("z"), value), functions=(shown,)), UNIT).source
        assert "// float f(float ?) {\nstatic " in text


def test_metal_has_no_double_and_says_where():
    source = SourceFile("kernel 'k', operation", "z = a\n  * 0.5;")
    wide = apply("multiply", convert(Local("a", FLOAT32), FLOAT64), const(0.5, FLOAT64))
    body = program(Store(_element("z"), convert(wide, FLOAT32), line=2), source=source)
    with pytest.raises(FusecError) as caught:
        metal.generate(body, UNIT)
    assert "line 2 of the kernel has dtype float64, which metal does not have [F320]" in str(caught.value)
    assert "  * 0.5;" in str(caught.value)
    assert "^^^ float64 here\n" in str(caught.value)
    assert "write 0.5f" in str(caught.value)


@pytest.mark.parametrize(
    ("in_params", "operation", "options", "marked", "cure"),
    [
        ("float32 x", "z = x * 0.5 + 2.5f;", (), "0.5", "write 0.5f"),
        ("float32 x", "z = x /* 1.5 */ +\n  2e3 * x; // 3.5", (), "2e3", "write 2e3f"),
        ("float32 x", "double q = x;\nz = q;", (), "double", "declare it float"),
        ("float32 x", "double q = x; z = q * 0.5;", ("-fsingle-precision-constant",), "double", "declare it float"),
        ("float32 x", "complex<double> q(x, 1); z = q.real();", (), "double", "declare it float"),
        ("float32 x", "z = x * M_PI;", (), "M_PI", "write (float)M_PI"),
        ("float32 x", "z = sin(i);", (), "z = sin(i);", "sin((float)i)"),
        ("float32 x", "z = sin(i) * 0.5;", ("-fsingle-precision-constant",), "z = sin(i) * 0.5;", "sin((float)i)"),
        ("float64 x", "z = x;", (), "", "as float32"),
    ],
)
def test_a_type_that_metal_lacks_is_marked_where_it_comes_in(in_params, operation, options, marked, cure):
    with pytest.raises(FusecError, match="F320") as caught:
        ElementwiseKernel(in_params, "float32 z", operation, "k", options=options).source("metal")
    span = caught.value.span
    assert (span.text if span else "") == marked
    assert cure in caught.value.error.cure
    assert options == () or options[0] not in caught.value.error.cure


def test_metal_binds_at_most_thirty_arrays():
    params = tuple(ArrayParam(f"z{at}", FLOAT32, written=True, read=False) for at in range(31))
    stores = tuple(Store(_element(param.name), const(0, FLOAT32)) for param in params)
    layout = Layout(1, tuple((param.name, (Step.UNIT,)) for param in params))
    with pytest.raises(FusecError, match="uses 31 arrays, but metal binds at most 30"):
        metal.generate(Program("many", params, stores), layout)
    assert metal.generate(Program("many", params[1:], stores[1:]), layout).source.count("[[buffer(") == 31


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_group_sizes_use_wide_loads_for_every_dtype(dtype):
    array = ArrayParam("x", dtype)
    out = ArrayParam("z", dtype, written=True, read=False)
    pointer = Pointer(dtype, "global")
    copy = Program("copy", (array, out), (Store(Element("z", pointer), Load(Element("x", pointer), dtype)),))
    assert cuda.generate(copy, UNIT).lanes == max(1, 16 // dtype.nbytes)
    narrow = Layout(UNIT.ndim, UNIT.steps, aligned=8)
    assert cuda.generate(copy, narrow).lanes == 1


@pytest.mark.parametrize("generate", [cuda.generate, metal.generate])
@pytest.mark.parametrize(
    "grow",
    [
        lambda value: apply("add", value, convert(A, INT32)),
        lambda value: apply("subtract", const(3, INT32), value),
        lambda value: apply("where", apply("less", A, const(5, INT32)), apply("negative", A), value),
        lambda value: apply("multiply", value, value),
    ],
)
@pytest.mark.sampled(3)
def test_the_deepest_expressions_are_printed(generate, grow):
    value: Expr = A
    for _ in range(198):
        value = grow(value)
    pointer = Element("z", Pointer(INT32, "global"))
    params = (ScalarParam("a", INT32), ArrayParam("z", INT32, written=True, read=False))
    text = generate(Program("deep", params, (Store(pointer, value),)), Layout(1, (("z", (Step.UNIT,)),))).source
    assert len(text) < 20_000


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_what_few_arguments_need_is_not_inlined_and_does_not_keep_threads_from_groups(name):
    text = ElementwiseKernel("float32 x", "float32 z", f"z = {name}(x)", "work").source("cuda")
    assert f"__noinline__ float fusec_{name}_huge_float32(" in text
    assert f"__noinline__ float fusec_{name}_float32(" not in text
    assert "fusec_load<4>" in text


def test_alternatives_of_a_few_operations_are_both_computed():
    text = ElementwiseKernel("float32 x", "float32 z", "z = sin(x)", "work").source("cuda")
    usual = text.partition(" fusec_sin_float32(")[2].partition("\n}")[0]
    chosen = re.findall(r"\? ([^:()]+) : ([^:()]+)\)", usual)
    assert chosen
    assert all(name.isidentifier() for pair in chosen for name in pair)


def test_bfloat16_is_rounded_by_one_instruction_where_devices_have_it():
    text = ElementwiseKernel("bfloat16 x", "bfloat16 z", "z = x * x", "work").source("cuda")
    rounding = text.partition(" fusec_float32_to_bfloat16(")[2].partition("\n}")[0]
    first, _, second = rounding.partition("#else")
    assert "#if __CUDA_ARCH__ >= 800" in first
    assert "cvt.rn.bf16x2.f32" in first
    assert "magnitude + 0x7fffu" in second


@pytest.mark.parametrize(
    ("function", "instruction"), [(np.maximum, "max.NaN"), (np.minimum, "min.NaN"), (np.fmax, "max"), (np.fmin, "min")]
)
def test_the_greater_of_two_numbers_is_one_instruction_where_devices_have_it(function, instruction):
    fused, x = fuse(lambda x, y: function(x, y)), np.ones(300, np.float32)
    assert f'asm("{instruction}.f32 ' in fused.source("cuda", x, x)
    assert "asm" not in fused.source("cuda", x.astype(np.float64), x.astype(np.float64))
