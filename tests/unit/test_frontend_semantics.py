# ruff: noqa: E501 - the tables read best with one case a line
"""The kernel language means what C++ means by it: texts are run by the IR interpreter and compared with known values."""

import numpy as np
import pytest

from fusec.base.dtypes import BY_NAME, from_numpy
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.lower import lower, parse
from fusec.ir.interpret import interpret
from fusec.ir.text import print_program
from fusec.ir.verify import verify
from fusec.passes.expand import expand
from tests.support.parse_ir import parse_program


def run(in_params, out_params, operation, inputs, outputs, size=None, **texts):
    """Run a kernel; inputs and outputs are arrays by name, Python numbers are passed by value."""
    scalars = {name: value for name, value in inputs.items() if not isinstance(value, np.ndarray)}
    arrays = {name: value for name, value in (inputs | outputs).items() if name not in scalars}
    kernel = parse(Definition(in_params, out_params, operation, **texts))
    types = {}
    for param in kernel.params:
        types[param.name] = param.dtype or from_numpy(arrays[param.name].dtype if param.name in arrays else np.float64)
    ndims = {param.name: arrays[param.name].ndim for param in kernel.params if param.raw and param.name in arrays}
    program = lower(kernel, types, ndims=ndims, scalars=frozenset(scalars))
    verify(program)
    shapes = [arrays[param.name].shape for param in kernel.params if not param.raw and param.name in arrays]
    shape = np.broadcast_shapes(*shapes) if size is None else (size,)
    interpret(expand(program), arrays, scalars, shape)
    return program


def value(expression, out="float64", preamble="", declare="", **inputs):
    """One expression over scalar inputs, in a given output dtype."""
    given = {name: np.asarray([each]) for name, each in inputs.items()}
    params = ", ".join(f"{array.dtype} {name}" for name, array in given.items())
    result = np.zeros(1, out)
    run(params, f"{out} z", f"{declare} z = {expression};", given, {"z": result}, preamble=preamble)
    return result[0]


f32, f64 = np.float32, np.float64


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("7 / 2", 3), ("-7 / 2", -3), ("7 % -3", 1), ("-7 % 3", -1), ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3), ("2 * 3 % 4", 2), ("1 << 3 + 1", 16), ("5 & 3 == 3", 1), ("1 | 2 ^ 3 & 2", 1),
        ("1 < 2 == 1", 1), ("!0 + 1", 2), ("-2 * -3", 6), ("~5", -6), ("1 ? 2 : 0 ? 3 : 4", 2), ("0 ? 1 : 0 ? 3 : 4", 4),
        ("(1, 2, 3)", 3), ("1 && 2", 1), ("0 || 0", 0), ("not 0 and 1 or 0", 1), ("5 bitand 6", 4), ("5 xor 1", 4),
        ("compl 0", -1), ("1 not_eq 2", 1), ("'a'", 97), ("'\\n'", 10), ("'\\x41'", 65), ("sizeof(double)", 8),
        ("sizeof(int) * 2", 8), ("true + true", 2), ("0x10 + 010 + 0b10", 26), ("1'000", 1000), ("+'b'", 98),
        ("int(3.9) + (int)-3.9", 0), ("static_cast<int>(2.5f)", 2), ("unsigned(3) - 1", 2), ("(long long)7", 7),
        ("1 ? 2, 3 : 4", 3), ("3 > 2 > 1", 0), ("1 - -1", 2), ("2 - - - 1", 1), ("8 >> 1 << 2", 16),
    ],
)  # fmt: skip
def test_operators_bind_as_in_c(expression, expected):
    assert value(expression, "int64") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("2147483647 + 1", -(2**31)), ("2147483648 + 1", 2**31 + 1), ("4294967295u + 1", 0), ("-1 < 1u", 0),
        ("-1 < 1l", 1), ("0xffffffff > 0", 1), ("sizeof(0xffffffff)", 4), ("sizeof(2147483648)", 8), ("sizeof(1ull)", 8),
        ("(signed char)200", -56), ("(unsigned char)-1 + 1", 256), ("(unsigned short)70000", 4464), ("1u - 2", 2**32 - 1),
        ("sizeof(1 + 1.0f)", 4), ("sizeof('a' + 'b')", 4), ("sizeof(true ? 1 : 1.0)", 8), ("-2147483648 / -1", 2**31),
        ("(int)1e10", 2**31 - 1), ("(int)(0.0 / 0.0)", 0), ("5 / 0", 0), ("5 % 0", 0), ("1 << 32", 0), ("-8 >> 40", -1),
        ("1 << 4294967296ll", 0), ("-1 >> 4294967297ll", -1), ("1 << -1", 0), ("1ll << 33", 2**33),
        ("18446744073709551615 == 0xffffffffffffffff", 1), ("INT_MAX + LLONG_MIN", 2**31 - 1 - 2**63), ("(bool)0.5 + 1", 2),
        ("(char)'A' == 65", 1), ("(short)1 << 20", 2**20), ("UINT_MAX", 2**32 - 1),
    ],
)  # fmt: skip
def test_integers_have_the_types_of_c_and_wrap(expression, expected):
    assert value(expression, "int64") == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / 2.0", 0.5), ("0.1f", f64(f32(0.1))), ("0.1f + 0.1", f64(f32(0.1)) + 0.1), ("0x1.8p3", 12.0),
        ("0x1p-2f", 0.25), (".5 + 5.", 5.5), ("1e3", 1000.0), ("M_PI", np.pi), ("DBL_EPSILON", 2.0**-52), ("FLT_MAX", 3.4028234663852886e38),
        ("16777217.0f", 16777216.0), ("7.038531e-26f", float.fromhex("0x1.5c87fap-84")), ("nan(\"\")", np.nan), ("-INFINITY", -np.inf),
        ("numeric_limits<float>::epsilon()", 2.0**-23), ("std::numeric_limits<int>::max()", 2.0**31 - 1),
        ("is_same<int, int>::value ? 1.5 : 2.5", 1.5), ("min(1, 2.5)", 1.0), ("max(1u, 2)", 2.0), ("fmaxf(1, 2)", 2.0),
        ("abs(-3)", 3.0), ("abs(-3.5)", 3.5), ("fabs(-3)", 3.0), ("pow(2.0f, 3)", 8.0), ("floor(-2.5)", -3.0), ("round(-2.5)", -3.0),
        ("rint(2.5)", 2.0), ("lrint(2.5)", 2.0), ("fmod(-7.0, 3.0)", -1.0), ("remainder(7.0, 4.0)", -1.0), ("remainder(5.0, 2.0)", 1.0),
        ("remainder(6.0, 4.0)", -2.0), ("remainder(-7.0, 4.0)", 1.0), ("remainder(3.0, INFINITY)", 3.0), ("remainder(2.0, 4.0)", 2.0),
        ("copysign(2, -0.0)", -2.0), ("hypot(3, 4)", 5.0), ("ldexp(0.75, 3)", 6.0), ("fdim(3, 5)", 0.0), ("fma(2.0, 3.0, 1.0)", 7.0),
        ("__popc(255)", 8.0), ("__clz(1)", 31.0), ("__ffs(8)", 4.0), ("__ffs(0)", 0.0), ("__brev(1)", 2.0**31), ("__clzll(1)", 63.0),
        ("__float_as_int(1.0f)", float(0x3F800000)), ("__int_as_float(0x40000000)", 2.0), ("__mulhi(1 << 30, 8)", 2.0),
        ("__umulhi(0xffffffff, 2)", 1.0), ("isnan(0.0 / 0)", 1.0), ("isinf(1)", 0.0), ("signbit(-0.0)", 1.0), ("__fdividef(1, 4)", 0.25),
        ("__float2int_rd(-1.5f)", -2.0), ("_floor_divide(-7, 2)", -4.0), ("real(3)", 3.0), ("imag(3.0f)", 0.0), ("cbrt(27.0)", 3.0),
        ("(true ? 1 : 2.5)", 1.0), ("sqrtf(16)", 4.0), ("double(3) / 2", 1.5), ("float{3} / 2", 1.5), ("int()", 0.0),
    ],
)  # fmt: skip
def test_floats_and_functions(expression, expected):
    np.testing.assert_equal(value(expression), expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sigmoid(0.0)", 0.5), ("softplus(0.0)", np.log(2)), ("logaddexp(0.0, 0.0)", np.log(2)), ("sinc(0.0)", 1.0),
        ("i0(0.0) + i1(0.0)", 1.0), ("sign(-3)", -1), ("sign(0u)", 0), ("sign(-2.5f)", -1), ("square(-3)", 9), ("square(1.5)", 2.25),
        ("minimum(1, 2.5)", 1), ("maximum(1, 2.5)", 2.5), ("minimum(NAN, 1)", np.nan), ("maximum(1.0, NAN)", np.nan), ("reciprocal(4)", 0.25),
        ("absolute(-3)", 3), ("clip(5, 0, 3)", 3), ("clip(-1.5, 0, 3)", 0), ("clip(2.5f, 0, 3)", 2.5), ("clip(NAN, 0, 1)", np.nan),
        ("clip(1, 3, 2)", 2), ("sizeof(clip(1, 0, 3))", 4), ("sizeof(sigmoid(1.0f))", 4), ("sizeof(maximum((char)1, (char)2))", 4),
    ],
)  # fmt: skip
def test_functions_of_the_array_api_that_c_lacks(expression, expected):
    np.testing.assert_equal(value(expression), expected)


def test_a_preamble_may_define_a_function_of_a_built_in_name():
    assert value("sigmoid(2.0)", preamble="__device__ double sigmoid(double x) { return x * 100; }") == 200


def test_squares_and_reciprocals_are_complex_too():
    assert value("square(x) + reciprocal(x)", "complex64", x=np.complex64(2j)) == -4 - 0.5j


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x * 2", 2 + 4j), ("x * complex<float>(0, 1)", -2 + 1j), ("conj(x)", 1 - 2j), ("complex<double>(x.imag(), 3)", 2 + 3j),
        ("x == thrust::complex<float>(1, 2) ? x : 0", 1 + 2j), ("-x", -1 - 2j), ("thrust::polar(2.0f, 0.0f)", 2 + 0j),
        ("norm(x)", 5 + 0j), ("x.real() + imag(x)", 3 + 0j), ("x / x", 1 + 0j), ("x != 0 ? 1 : 0", 1), ("+x + 1", 2 + 2j),
    ],
)  # fmt: skip
def test_complex_values(expression, expected):
    assert value(expression, "complex64", x=np.complex64(1 + 2j)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("int j = 3; z = j++ + 10; z += j * 100;", 413), ("int j = 3; z = ++j; z += j-- * 10; z += j * 100;", 344),
        ("int j = 0; z = 0; while (j++ < 4) z += j;", 10), ("z = 0; for (int j = 0; j < 10; j++) { if (j == 5) break; z += j; }", 10),
        ("z = 0; for (int j = 0; j < 5; j++) { if (j % 2) continue; z += j; }", 6), ("z = 0; int j = 5; do { z += j; } while (--j > 3);", 9),
        ("z = 0; int j = 0; do { if (j == 2) continue; z += j; } while (j++ < 4);", 8), ("int a, b; a = b = 4; z = a * b;", 16),
        ("int a = 1; a += a *= 3; z = a;", 6), ("int j = 0; (j > 0 && ++j); z = j;", 0), ("int j = 0; z = (j == 0 || ++j) + j;", 1),
        ("int j = 1; z = j ? j++ : j--; z += j * 10;", 21), ("int j = 1; j ? j = 5 : j = 7; z = j;", 5),
        ("int a[3] = {1, 2}; a[2] = a[0] + a[1]++; z = a[1] * 10 + a[2];", 33), ("int a[2][3] = {{1, 2, 3}, {4}}; z = a[1][0] * 10 + a[1][2] + a[0][2];", 43),
        ("int a[] = {5, 6, 7}; const int n3 = 3; int b[n3]; for (int k = 0; k < n3; ++k) b[k] = a[n3 - 1 - k]; z = b[0];", 7),
        ("int a[4] = {1, 2, 3, 4}; int* p = a; z = *p++; z += *p * 10; p += 2; z += p[0] * 100; z += p[-1] * 1000; z += *(p - 2) * 10000;", 23421),
        ("int a = 2; int& r = a; r += 3; z = a;", 5), ("int a[2] = {1, 2}; int k = 0; int& r = a[k]; k = 1; r = 9; z = a[0];", 9),
        ("int a = 2; int* p = &a; *p = 7; z = a;", 7), ("int a = 1, b = 2; int* p; if (a > b) p = &a; else p = &b; *p += 5; z = a * 10 + b;", 17),
        ("int a = 3; { int a = 4; z = a; } z = z * 10 + a;", 43), ("for (int i = 0; i < 3; i++) z = i;", 2), ("int z2 = 5; using I = long long; I q = z2; typedef I J; J w = q; z = w;", 5),
        ("switch (3) { case 1: z = 1; break; case 2: case 3: z = 23; break; default: z = 9; }", 23),
        ("z = 0; for (int j = 0; j < 4; j++) { switch (j) { case 1: continue; case 2: if (j == 2) break; z += 100; break; default: z += 1; } z += 10; }", 32),
        ("z = 0; for (int j = 0; j < 4; j++) { switch (j) { case 1: if (z) continue; break; case 3: if (z) break; z = 7; break; default: z += 1; break; } z += 10; }", 32),
        ("switch ('b') { default: z = 1; break; case 'b': z = 2; }", 2), ("auto q = 2.5f; z = q * 2;", 5), ("const auto& q = 4; z = q;", 4),
        ("int j = 5; if (j > 3) if (j > 9) z = 1; else z = 2;", 2), ("z = 4; return; z = 5;", 4), ("z = 4; continue; z = 5;", 4), ("z = 1; if (z) { z = 8; return; } z = 3", 8),
        ("int j = 0; while (true) { if (++j == 6) { z = j; return; } }", 6), ("unsigned char c = 250; c += 10; z = c;", 4), ("short s = 1; s <<= 15; z = s;", -32768),
        ("double d {}; int k { 3 }; z = d + k;", 3), ("uint64_t s[2]; s[0] = 0x5c721fd808f616b6; z = s[0] >> 60;", 5), ("int k = 2.9; z = k;", 2),
        ("int j = 0, m = 0; for (; ; ) { if (j++ > 3) break; m += j; } z = m", 10), ("int j = 3; int k = (j++, j + 1); z = k;", 5),
        ("float m; double w = modf(3.75, &m) ; z = m * 100 + w * 4;", 303), ("int e; double m = frexp(6.0, &e); z = e * 100 + m * 4;", 303),
        ("double s, c; sincos(0.0, &s, &c); z = s * 10 + c;", 1), ("int old = 5; int was = atomicAdd(&old, 3); z = old * 10 + was;", 85),
        ("int k = 4; z = atomicCAS(&k, 4, 9) * 10 + k;", 49), ("const int* p = nullptr; int a[1] = {6}; p = a; z = *p;", 6),
        ("bool b = 2; z = b + b;", 2), ("int a = 1; a ? (void)(a = 7) : (void)0; z = a;", 7), ("long long unsigned int q = 3; z = q;", 3),
    ],
)  # fmt: skip
def test_statements(body, expected):
    result = np.zeros(1, np.int64)
    run("", "int64 z", body, {}, {"z": result}, size=1)
    assert result[0] == expected


def test_texts_of_programs_parse_back():
    program = run("T x", "T y", "int k = x; while (k > 0) { y += k--; }", {"x": np.arange(3.0)}, {"y": np.zeros(3)})
    assert print_program(parse_program(print_program(program))) == print_program(program)


@pytest.mark.parametrize(
    ("preamble", "expression", "expected"),
    [
        ("__device__ inline float f(float a) { return a * 2; }", "f(3)", 6),
        ("__device__ int f(int a) { a = a + 1; return a; }", "f(3) + f(4)", 9),
        ("__device__ static int f(int a) { for (int k = 0; k < 9; k++) { if (k == a) return k * 10; } }", "f(3) + f(20)", 30),
        ("template<typename R> __device__ R twice(R a) { return a + a; }", "twice(3) + twice(0.25)", 6.5),
        ("template<typename A, typename B> __device__ A as(B b) { return (A)b; }", "as<int>(2.75)", 2),
        ("template<class A = float, int N = 4> __device__ int sz() { return sizeof(A) * N; }", "sz() + sz<double, 1>()", 24),
        ("__device__ void set(double* p, double v) { *p = v; } __device__ double g(double v) { double q; set(&q, v); return q; }", "g(5)", 5),
        ("__device__ void swap(int& a, int& b) { int t = a; a = b; b = t; } __device__ int g(int a, int b) { swap(a, b); return a * 10 + b; }", "g(1, 2)", 21),
        ("__device__ int sum(const int* a, int n) { int s = 0; for (int k = 0; k < n; k++) s += a[k]; return s; } __device__ int g() { int a[3] = {1, 2, 3}; return sum(a, 3) + sum(a + 1, 2) + sum(&a[2], 1); }", "g()", 14),
        ("struct P { float re; int im; }; __device__ P make(float a) { P p; p.re = a; p.im = 7; return p; }", "make(2).re * 10 + make(1).im", 27),
        ("struct P { int a; int b; }; __device__ P flip(P p) { return P{p.b, p.a}; } __device__ int g() { P p = {1, 2}; P q = flip(p); q.a += 10; return q.a * 100 + q.b; }", "g()", 1201),
        ("typedef struct { int a; int b; } P; __device__ int g(P p) { return p.a; }", "g(P{4, 5})", 4),
        ("#define N 3\n#define ADD(a, b) \\\n  ((a) + \\\n   (b))\n#define TWICE(x) ADD(x, x)", "TWICE(N) * N", 18),
        ("#define STEP(v) v += 1; v *= 2\n__device__ int f(int q) { STEP(q); return q; }", "f(2)", 6),
        ("#ifdef __HIP_DEVICE_COMPILE__\n#define W 1\n#elif defined(__CUDACC__) && (2 > 1)\n#define W 2\n#else\n#define W 3\n#endif", "W", 2),
        ("#if 0\nthis is not C at all\n#endif\n#if __CUDA_ARCH__ >= 600\n#define W 6\n#endif", "W", 6),
        ("#define CAT(a, b) a##b\n__device__ int f1() { return 1; }", "CAT(f, 1)() + CAT(1, 2)", 13),
        ("#define EMPTY\n#define V(...) max(__VA_ARGS__)", "EMPTY V(3, 4)", 4),
        ("const float X = 0.5f; __constant__ double table[3] = {1, 2, 3}; constexpr int K = 2;", "X + table[K]", 3.5),
        ("#include <cupy/math_constants.h>\n#include <cuda_fp16.h>\n#pragma unroll\n", "CUDART_PI == M_PI", 1),
        ("template<typename A> __device__ typename std::enable_if<std::is_floating_point<A>::value, int>::type kind(A a) { return 1; } template<typename A> __device__ typename std::enable_if<!std::is_floating_point<A>::value, int>::type kind(A a) { return 2; }", "kind(1) * 10 + kind(1.0)", 21),
        ("__device__ int kind(int a) { return 1; } __device__ int kind(double a) { return 2; }", "kind(1) * 10 + kind(1.0)", 12),
        ("using D = conditional<is_same<int, long long>::value, unsigned long long, double>::type; __device__ D f() { return 1 / D(2); }", "f()", 0.5),
        ("__device__ int f(void) { return 4; }", "f()", 4),
        ("__device__ int g(int a); __device__ int f(int a) { return g(a) + 1; } __device__ int g(int a) { return a * 2; }", "f(3)", 7),
        ("template<typename A> __device__ A abs2(complex<A> z) { return z.real() * z.real() + z.imag() * z.imag(); }", "abs2(complex<float>(3, 4))", 25),
        ("__device__ int outer(int a) { int f = a; return f; } __device__ int f(int a) { return outer(a); }", "f(6)", 6),
    ],
)  # fmt: skip
def test_preambles(preamble, expression, expected):
    assert value(expression, preamble=preamble) == expected


def test_raw_arrays_are_addressed_by_flat_index_or_by_axes():
    a = np.arange(12.0).reshape(3, 4).T  # not contiguous
    flat, by_axes, sizes, stride = (np.zeros(12) for _ in range(4))
    body = """
        flat = a[i];
        ptrdiff_t idx[] = {i / 3, i % 3};
        by_axes = a[idx];
        sizes = a.size() * 100 + a.shape()[0] * 10 + a.ndim;
        stride = a.strides()[1];
    """
    outputs = {"flat": flat, "by_axes": by_axes, "sizes": sizes, "stride": stride}
    run("raw T a", "T flat, T by_axes, T sizes, T stride", body, {"a": a}, outputs)
    np.testing.assert_array_equal(flat, a.ravel())
    np.testing.assert_array_equal(by_axes, a.ravel())
    assert set(sizes) == {1242.0}
    assert set(stride) == {32.0}


def test_pointers_into_arguments_ignore_strides():
    a = np.arange(8.0)[::2]
    z = np.zeros(1)
    run("raw T a", "T z", "const T* p = &(a[1]); z = p[1] * 10 + a[2];", {"a": a}, {"z": z})
    assert z[0] == 3 * 10 + 4


def test_the_iteration_space_is_visible():
    z = np.zeros((2, 3), np.int64)
    run(
        "",
        "int64 z",
        "z = _ind.get()[0] * 100 + _ind.get()[1] * 10 + _ind.ndim; z += n * 1000 + _ind.size() * 10000 + i * 100000",
        {},
        {"z": z},
    )
    rows, columns = np.indices((2, 3))
    np.testing.assert_array_equal(z, rows * 100 + columns * 10 + 2 + 66000 + np.arange(6).reshape(2, 3) * 100000)


def test_parts_of_complex_elements_are_set():
    v = np.zeros(3, np.complex64)
    run("T x", "raw C v", "v[i].real(x * 2); v[i].imag(-x);", {"x": np.arange(3, dtype=np.float32)}, {"v": v})
    np.testing.assert_array_equal(v, np.arange(3) * (2 - 1j))


def test_narrow_floats_compute_in_float32_and_round_once():
    x = np.array([2049.0, 0.1], np.float16)
    z = np.zeros(2, np.float16)
    run("T x", "T z", "T y = x + x; y += 1; z = y / 3;", {"x": x}, {"z": z})
    y = (x.astype(f32) + x.astype(f32)).astype(np.float16)
    y = (y.astype(f32) + f32(1)).astype(np.float16)
    np.testing.assert_array_equal(z, (y.astype(f32) / f32(3)).astype(np.float16))


def test_atomics_update_raw_arguments():
    x = np.array([0, 1, 1, 2, 1], np.int32)
    counts, largest = np.zeros(3, np.int32), np.full(1, -1, np.int32)
    old = np.zeros(5, np.int32)
    body = (
        "old = atomicAdd(&counts[x], 1); atomicMax(&largest[0], x); using U = unsigned int; atomicOr((U*)&counts[0], 0)"
    )
    run(
        "int32 x",
        "raw int32 counts, raw int32 largest, int32 old",
        body,
        {"x": x},
        {"counts": counts, "largest": largest, "old": old},
    )
    np.testing.assert_array_equal(counts, [1, 3, 1])
    np.testing.assert_array_equal(old, [0, 0, 1, 0, 2])
    assert largest[0] == 2


def test_references_alias_elements():
    a, v = np.zeros(4), np.arange(4.0)
    run("T v", "raw T a", "T &out0 = a[i]; const T &in0 = v; out0 = in0 * 2; out0 += 1;", {"v": v}, {"a": a})
    np.testing.assert_array_equal(a, v * 2 + 1)


def test_loop_prep_and_after_loop_surround_the_operation():
    z, total = np.zeros(3), np.zeros(1)
    run(
        "T x", "T z, raw T total", "if (x == 1) continue; local += x; z = x * scale", {"x": np.arange(3.0)}, {"z": z, "total": total},
        loop_prep="const double scale { 2.0 }; double local = 0", after_loop="atomicAdd(&total[0], local + 1)",
    )  # fmt: skip
    np.testing.assert_array_equal(z, [0, 0, 4])
    assert total[0] == 5


def test_options_define_macros_and_make_constants_single():
    kernel = parse(
        Definition(
            "", "float64 z", "z = W * 0.1;", options=("-DW=3", "-D", "Q", "--std=c++17", "-fsingle-precision-constant")
        )
    )
    z = np.zeros(1)
    interpret(lower(kernel, {"z": BY_NAME["float64"]}, ndims={}, scalars=frozenset()), {"z": z}, {}, (1,))
    assert z[0] == f64(f32(3) * f32(0.1))


def test_byte_addresses_are_moved_and_cast_back():
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    y = np.zeros(4, np.float32)
    body = """
        const unsigned char* data = (const unsigned char*)&x[0];
        int offset = 2 * x.strides()[0] + i * x.strides()[1];
        y = *(X*)&data[offset] + _raw_y.shape()[0] * 100;
    """
    run("raw X x", "X y", body, {"x": x}, {"y": y})
    np.testing.assert_array_equal(y, x[2] + 400)
