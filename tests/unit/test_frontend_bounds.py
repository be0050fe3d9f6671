"""Hostile and long texts: an error or a program, never a crash, in time in proportion to the text."""

import random
import re
import time

import pytest

from fusec.base.dtypes import COMPLEX64, FLOAT16, FLOAT32, INT32, UINT8
from fusec.errors import FusecError
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.lower import lower, parse
from fusec.ir.verify import verify

FUNCTIONS = "\n".join(f"__device__ float f{k}(float a) {{ return f{k - 1}(a) + f{k - 1}(a); }}" for k in range(1, 26))
LONG = {
    "sum": ("z = " + " + ".join(["x"] * 3000), ""),
    "conjunction": ("z = " + " && ".join(["x"] * 2000), ""),
    "conjunction with effects": ("int j = 0; z = " + " && ".join(["j++"] * 500), ""),
    "commas": (", ".join(["z += x"] * 2000), ""),
    "statements": ("z = x;\n" * 3000, ""),
    "declarations": ("\n".join(f"float v{k} = x;" for k in range(2000)), ""),
    "shadowing": ("{ float v = x; z = v; }\n" * 1000, ""),
    "cases": ("switch ((int)x) {" + "".join(f"case {k}: z = {k}; break;" for k in range(200)) + "}", ""),
    "else if": (" else ".join(f"if (x == {k}) z = {k};" for k in range(500)), ""),
    "labels": ("switch ((int)x) {" + "".join(f"case {k}:" for k in range(1000)) + " z = 1; }", ""),
    "functions that double": ("z = f25(x);", "__device__ float f0(float a) { return a; }\n" + FUNCTIONS),
    "nested calls": ("z = " + "f(" * 60 + "x" + ")" * 60, "template<typename A> __device__ A f(A a) { return a; }"),
    "digits": ("z = 1." + "9" * 50000, ""),
}
HOSTILE = {
    "assignments": ("z = " * 500 + "x", ""),
    "not": ("z = " + "!" * 3000 + "x", ""),
    "casts": ("z = " + "(float)" * 2000 + "x", ""),
    "indices": ("z = a" + "[0]" * 2000, ""),
    "choices": ("z = " + "x ? 1 : " * 1000 + "0", ""),
    "brackets": ("z = " + "(" * 5000 + "x" + ")" * 5000, ""),
    "characters": ("z = x; //" + "a" * 2_000_000, ""),
    "tokens": ("z = " + "x + " * 120_000 + "x", ""),
    "comment": ("z = x; /*" + "*" * 300_000, ""),
    "doubling macro": (
        "z = A30;",
        "#define A0 x\n" + "".join(f"#define A{k} A{k - 1} + A{k - 1}\n" for k in range(1, 31)),
    ),
    "doubling arguments": ("z = " + "F(" * 40 + "x" + ")" * 40 + ";", "#define F(a) a + a\n"),
    "conditions": ("z = x;", "#if 1\n" * 100 + "#endif\n" * 100),
    "deep condition": ("z = x;", "#if " + "!" * 3000 + "1\n#endif"),
    "template recursion": ("z = f<0>(x);", "template<int N> __device__ float f(float a) { return f<N + 1>(a); }"),
    "many instances": (
        "z = " + " + ".join(f"f<{k}>(x)" for k in range(700)),
        "template<int N> __device__ float f(float a) { return a * N; }",
    ),
    "chain of functions": (
        "z = f200(x);",
        "__device__ float f0(float a) { return a; }\n"
        + "\n".join(f"__device__ float f{k}(float a) {{ return f{k - 1}(a); }}" for k in range(1, 201)),
    ),
    "huge hexadecimal": ("z = 0x" + "1" * 5000 + "p9", ""),
    "huge integer": ("z = " + "1" * 5000, ""),
    "huge length": ("int q[1 << 62]; z = x;", ""),
}


def compile_text(operation, preamble="", dtype=FLOAT32):
    kernel = parse(Definition("T x, raw T a, int32 q", "T z, raw T w", operation, preamble=preamble))
    types = dict.fromkeys(("x", "a", "z", "w"), dtype) | {"q": INT32}
    verify(lower(kernel, types, ndims={}, scalars=frozenset({"q"})))


@pytest.mark.parametrize("name", LONG)
@pytest.mark.sampled(3)
def test_long_texts_compile(name):
    compile_text(*LONG[name])


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(5)
def test_hostile_texts_are_refused(name):
    started = time.perf_counter()
    with pytest.raises(FusecError) as caught:
        compile_text(*HOSTILE[name])
    assert len(str(caught.value)) < 10_000
    assert time.perf_counter() - started < 10  # generous: the point is that nothing grows without bound


SEEDS = (
    "for (int j = 0; j < q; ++j) { if (a[j] > x) continue; z += x * a[j]; }",
    "int k = 0; while (k < q && a[k] != x) k++; z = k ? a[k - 1] : x;",
    "T t[3] = {x, 1}; T* p = t; *p++ = 2; z = p[0]; switch (q) { case 1: z = 1; break; default: z = t[2]; }",
    "z = f(x, &w[i]); atomicAdd(&w[0], x); { T& r = w[1]; r += 1; }",
    "typedef T U; using V = unsigned long long; z = (U)(V)q << 2 | 1; auto s = S{1, 2}; s.m = q; z = g<T>(s.m);",
)
PREAMBLE = """
#define TWICE(v) ((v) * 2)
struct S { int m; float n; };
template<typename A> __device__ A g(A v) { return v < 3 ? TWICE(v) : A(1); }
__device__ float f(float v, float* out) { out[0] = v; return sqrtf(v); }
"""


@pytest.mark.parametrize("seed", range(8))
def test_broken_texts_are_refused_with_a_place(seed):
    rng = random.Random(seed)
    words = sorted({word for text in (*SEEDS, PREAMBLE) for word in re.findall(r"\w+|[^\w\s]", text)})
    refused = []
    for _ in range(60):
        tokens = re.findall(r"\s+|\w+|[^\w\s]", rng.choice(SEEDS))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(tokens))
            tokens[at : at + rng.randint(0, 2)] = rng.choices(words, k=rng.randint(0, 2))
        try:
            compile_text("".join(tokens), PREAMBLE, rng.choice((FLOAT32, INT32, FLOAT16, COMPLEX64, UINT8)))
        except FusecError as error:
            refused.append(error)
    assert all(error.span is not None for error in refused)
    assert refused
