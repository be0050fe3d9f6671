# ruff: noqa: E501 - the tables read best with one case a line
"""Effects come in C++17's order, each once, and constants have C++'s types; known values are those of g++."""

import time

import numpy as np
import pytest

from fusec.base.dtypes import BY_NAME
from fusec.errors.base import FusecError
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.lower import lower, parse
from fusec.ir.interpret import interpret
from fusec.ir.verify import verify
from fusec.passes.expand import expand

PREAMBLE = """
struct S2 { int a; int b; };
__device__ void f(int& q) { q *= 2; }
__device__ int g(int& a) { return a += 5; }
"""


def result(operation, preamble=PREAMBLE, x=None):
    """What a kernel with an int output `z` stores there."""
    kernel = parse(Definition("" if x is None else "int32 x", "int32 z", operation, preamble=preamble))
    program = lower(kernel, {param.name: param.dtype for param in kernel.params}, ndims={}, scalars=frozenset())
    verify(program)
    arrays = {"z": np.full(1, -77, np.int32)}
    if x is not None:
        arrays["x"] = np.array([x], np.int32)
    interpret(expand(program), arrays, {}, (1,))
    return arrays["z"][0]


A = "int a[3] = {1, 2, 3}; int k = 0;"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("int a = 10; --(--(--a)); z = a;", 7),
        (f"{A} ++a[k++] += 2; z = a[0] + a[1] * 10 + a[2] * 100 + k * 1000;", 1324),
        (f"{A} z = ++(++a[k++]); z += a[0] * 100 + a[1] * 1000 + k * 10000;", 12303),
        (f"{A} f(++a[k++]); z = a[0] + a[1] * 10 + k * 100; int m = 1; f(++m); z += m * 1000;", 4124),
        ("int a[3] = {1, 2, 3}; int* p = a; ++*p++ += 2; z = a[0] + a[1] * 10 + *p * 100; int& r = ++*p; r = 9; z += a[1] * 1000;", 9224),
        ("int a[3] = {0, 5, 7}; ++(++a[a[0]]); z = a[0] * 100 + a[1];", 205),
    ],
)  # fmt: skip
def test_a_prefix_step_evaluates_its_operand_once(operation, expected):
    assert result(operation) == expected


def test_nested_steps_are_lowered_in_linear_time():
    start = time.perf_counter()
    assert result("int a = 0; " + "++(" * 30 + "a" + ")" * 30 + "; z = a;") == 30
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("int u[3] = {q, ++q, q}; z = u[0] + u[1] * 100 + u[2] * 10000;", 40403),
        ("int u[3] = {q++, q, ++q}; z = u[0] + u[1] * 100 + u[2] * 10000;", 50403),
        ("int u[3] = {q, g(q), q}; z = u[0] + u[1] * 100 + u[2] * 10000;", 80803),
        ("int u[2][2] = {{q, ++q}, {q, q = 9}}; z = u[0][0] + u[0][1] * 10 + u[1][0] * 100 + u[1][1] * 1000;", 9443),
        ("struct S2 u = {q, ++q}; z = u.a + u.b * 100;", 403),
        ("struct S2 u = {q, g(q)}; z = u.a + u.b * 100;", 803),
        ("S2 u{q, ++q}; z = u.a + u.b * 100;", 403),
        ("S2 u; u = {q, ++q}; z = u.a + u.b * 100;", 403),
        ("int a[2] = {3, 1}; int u[2] = {a[0], a[0] = 4}; z = u[0] + u[1] * 100;", 403),
        ("complex<float> c{q, ++q}; z = c.real() + c.imag() * 100;", 403),
    ],
)  # fmt: skip
def test_braces_are_evaluated_from_left_to_right(operation, expected):
    assert result("int q = 3; " + operation) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("int a[4] = {1, 2, 3, 4}; int k = 0; a[k = 2] = k; z = a[2];", 0),
        ("int a[8] = {0}; int k = 2; a[k++] = k; z = a[2];", 2),
        ("int a[8] = {0}; int k = 2; a[++k] = k++; z = a[4] * 10 + a[3];", 20),
        ("int a[8] = {5, 9}; int* p = a; *p++ = *p + 1; z = a[0];", 6),
        ("int a[8] = {5, 9}; int* p = a; *p++ = (p += 1, 7); z = a[0] + a[1] * 10;", 75),
        ("int a[8] = {5, 9}; int k = 0; a[k++] += k; z = a[0] + k * 10;", 15),
        ("int a[8] = {5, 9}; int k = 0; a[k] += ++k; z = a[0] + a[1] * 10;", 105),
        ("int q = 1; q += (q = 5); z = q;", 10),
        ("int q = 3; z = q << (q = 1);", 6),
        ("int q = 64; z = q >> (q = 1);", 32),
        ("int q = 3; z = q << (g(q) & 7);", 3),
        ("int q = 3; z = q - g(q);", -5),
        ("int a[2] = {3, 4}; int* p = a; int k; z = p[k = (p += 1, 0)];", 3),
        ("int a[2][2] = {{1, 2}, {3, 4}}; int k = 0; z = a[k][++k];", 2),
    ],
)  # fmt: skip
def test_what_cpp17_sequences_is_sequenced(operation, expected):
    assert result(operation) == expected


def test_a_long_list_with_effects_is_lowered_in_linear_time():
    count = 4000
    start = time.perf_counter()
    assert (
        result(f"int q = 0; int u[] = {{{'q++, ' * count}q}}; z = u[0] + u[1] + u[{count - 1}] + u[{count}];")
        == 2 * count
    )
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("switch (-56) { case (signed char)200: z = 1; break; default: z = 2; }", 1),
        ("long long q = 4294967295LL; switch (q) { case ~0u: z = 1; break; default: z = 2; }", 1),
        ("int a[(unsigned char)258] = {1}; z = sizeof(a);", 8),
        ("const unsigned U = 5; int a[(U - 6 > 0) + 1]; z = sizeof(a);", 8),
        ("int a[-1u >> 29]; z = sizeof(a);", 28),
        ("int a[(int)3.9]; z = sizeof(a);", 12),
        ("constexpr int K = 4; const int M = K * 2 - 1; int b[M]; z = sizeof(b);", 28),
        ("int a[I]; z = sizeof(a);", 12),
        ("int a[true ? 2 : 1 / 0]; z = sizeof(a);", 8),
        ("int a[int{3} + sizeof(int)]; z = sizeof(a);", 28),
        ("z = same<3>() + small<258>() * 10 + flag<2>() * 100 + wide<4294967296LL>() * 1000 + size<(short)65538>() * 10000;", 81124),
    ],
)  # fmt: skip
def test_constant_expressions_have_types(operation, expected):
    preamble = """
        const int I = 7 / 2;
        template<int N> __device__ int same() { return N + 1; }
        template<unsigned char N> __device__ int small() { return N; }
        template<bool B> __device__ int flag() { return B; }
        template<long long N> __device__ int wide() { return (N >> 32) + (sizeof(N) == 8 ? 0 : 7); }
        template<int N> __device__ int size() { int a[N]; return sizeof(a); }
    """
    assert result(operation, preamble) == expected


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("switch (x) { case 5: z = 1; break; case 4 + 1: z = 2; }", "'case 5' appears twice"),
        ("switch (x) { case 5: case 5: z = 1; }", "'case 5' appears twice"),
        ("switch (x) { default: z = 1; break; default: z = 2; }", "'default' appears twice"),
        ("int a[x]; z = 1;", "must be an integer constant"),
        ("int a[2.5]; z = 1;", "must be an integer constant"),
        ("int a[1 / 0]; z = 1;", "must be an integer constant"),
        ("int a[1 << 40]; z = 1;", "must be an integer constant"),
        ("int k = 3; int a[k++]; z = 1;", "must be an integer constant"),
    ],
)
def test_what_is_no_constant_is_refused(operation, message):
    with pytest.raises(FusecError, match=message):
        result(operation, x=1)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("int q = x; z = f(q, q);", 7),
        ("int a[2] = {x, 1}; z = f(a[0], a[0]) * 10 + f(a[1], a[0]);", 71),
        ("int a[2] = {x, 1}; int k = 0; z = f(a[k++], a[0]) * 10 + k;", 71),
        ("int a[2] = {x, 1}; z = p(a[1], a);", 9),
        ("int q = x; int* r = &q; z = f(*r, q) * 100 + f(q, *r);", 707),
        ("int q = x; z = through(q, q);", 7),
        ("int q = x; z = h(q, q);", 7),
        ("int q = x; z = w(q, &q);", 9),
        ("int q = x, r = 2; z = f(q, r) * 10 + r;", 37),
        ("int q = x; z = f(q + 0, q) * 10 + q;", 37),
        ("float q = x; int r = 1; z = f(q, r);", 3),
        ("int r = 1; z = f(x, r) * 10 + f(4, r);", 34),
    ],
)  # fmt: skip
def test_a_reference_to_a_constant_sees_what_an_alias_writes(operation, expected):
    preamble = """
        __device__ int f(const int& a, int& b) { b = 7; return a; }
        __device__ int through(const int& a, int& b) { return f(a, b); }
        template<class T> __device__ T h(const T& a, T& b) { b = 7; return a; }
        __device__ int p(const int& a, int* b) { b[1] = 9; return a; }
        __device__ int w(const int& a, int* b) { *b = 9; return a; }
    """
    assert result(operation, preamble, x=3) == expected


@pytest.mark.parametrize("name", ["uint", "uchar", "ushort", "ulong", "int32", "float64", "complex64", "index_t"])
@pytest.mark.parametrize(
    "declaration",
    ["float {}(float q)", "static inline float {}(float q)", "template<class T> __device__ T {}(T q)", "unsigned {}(int q)"],
)  # fmt: skip
def test_a_function_goes_before_a_convenience_type_of_its_name(name, declaration):
    preamble = f"__device__ {declaration.format(name)} {{ return q + 10; }}"
    assert result(f"z = {name}(x) * 2;", preamble.replace("__device__ template", "template"), x=1) == 22


def test_a_function_named_like_a_type_may_return_an_address():
    preamble = "__device__ const int* uint(const int* q) { return q + 1; }"
    kernel = parse(Definition("raw int32 x", "int32 z", "z = uint(&x[i])[-1] + *uint(&x[i]);", preamble=preamble))
    program = lower(kernel, {"x": BY_NAME["int32"], "z": BY_NAME["int32"]}, ndims={"x": 1}, scalars=frozenset())
    arrays = {"x": np.array([4, 50], np.int32), "z": np.zeros(1, np.int32)}
    interpret(expand(program), arrays, {}, (1,))
    assert arrays["z"][0] == 54


@pytest.mark.parametrize("name", ["size_t", "half", "int32_t", "ptrdiff_t", "cuComplex", "S"])
@pytest.mark.parametrize("head", ["__device__ float", "template<class T> __device__ T", "int*"])
def test_a_function_named_like_a_type_of_cuda_is_refused(name, head):
    kind = "T" if "T" in head else "int"
    with pytest.raises(FusecError, match=f"function '{name}' has the name of a type"):
        result("z = 1;", f"struct S {{ int a; }}; {head} {name}({kind} q) {{ return 0; }}")


def test_a_type_in_an_initialiser_of_a_preamble_is_no_function():
    assert result("z = A + uint(-1) % 7 + B;", "const int A = 3 * uint(2); const uint B = uint(4);") == 6 + 3 + 4


@pytest.mark.parametrize("name", ["true", "not", "and", "xor", "nullptr", "template", "this", "explicit", "alignas"])
def test_keywords_are_no_names_of_parameters(name):
    with pytest.raises(FusecError, match="F103"):
        parse(Definition(f"int32 {name}", "int32 z", "z = 1;"))


@pytest.mark.parametrize(
    ("preamble", "expression", "expected"),
    [
        ("#define CT(a, b) a##b", "CT(x, )", 3),
        ("#define CT(a, b) a##b", "CT(, x) + CT(, ) + CT(1, 2)", 15),
        ("#define CT(a, b, c) a##b##c", "CT(, , x) + CT(1, , 2)", 15),
        ("#define x2 7\n#define y2 x2\n#define CT(a, b) a##b", "CT(y, 2) + CT(x, 2)", 14),
        ("#if -1 > 0u\n#define A 1\n#else\n#define A 2\n#endif", "A", 1),
        ("#if -1 > 0\n#define A 1\n#else\n#define A 2\n#endif", "A", 2),
        ("#if (1 ? -1 : 0u) > 0 && -1 / 2u == 0x7fffffffffffffff && ~0u == 0xffffffffffffffff\n#define A 1\n#endif", "A", 1),
        ("#if 0x7fffffffffffffff + 1 < 0 && (0 || 2) == 1 && -7 / 2 == -3 && -7 % 2 == -1\n#define A 1\n#endif", "A", 1),
        ("#define LONG_\\\nNAME 4\\\n2", "LONG_NAME + x\\\n", 45),
    ],
)  # fmt: skip
def test_the_preprocessor_is_that_of_c(preamble, expression, expected):
    assert result(f"z = {expression};", preamble, x=3) == expected


@pytest.mark.parametrize(
    ("preamble", "operation", "message"),
    [
        ("#define F(a) a", "z = F(x;", "is never closed"),
        ("#define F(a, a) a", "z = 1;", "two parameters of one name"),
        ("#if defined\n#endif", "z = 1;", "defined needs a name"),
        ("#if defined(X\n#endif", "z = 1;", "defined needs a name"),
        ("#if defined(1)\n#endif", "z = 1;", "defined needs a name"),
        ("#if 1 / 0\n#endif", "z = 1;", "must be an integer constant"),
        ("#if sizeof(int) == 4\n#endif", "z = 1;", "must be an integer constant"),
    ],
)
def test_malformed_directives_are_refused(preamble, operation, message):
    with pytest.raises(FusecError, match=message):
        result(operation, preamble, x=1)


def test_an_endless_number_is_not_repeated_in_its_error():
    with pytest.raises(FusecError, match="no integer type holds it") as caught:
        result("z = " + "7" * 100_000 + ";")
    assert len(str(caught.value)) < 1000


def test_a_float_of_many_digits_is_rounded_once():
    halfway = "1.000000059604644775390625"  # between 1 and the next float32
    for tail, expected in (("", 0), ("1", 1), ("0" * 5000, 0), ("0" * 5000 + "1", 1)):
        assert result(f"z = ({halfway}{tail}f > 1.0f);") == expected
