# ruff: noqa: E501 - the tables read best with many cases a line
"""What a definition refuses before any types are known, and what it leaves to them."""

import pytest

from fusec.errors import FusecError
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.lower import parse


@pytest.mark.parametrize(
    "operation",
    [
        "z = q;", "z = sinn(x);", "{ T a = x; } z = a;", "for (int j = 0; j < 2; ++j) z = j; z += j;", "if (x > 0) T a = 1; z = a;",
        "T a = b, b = 1; z = a;", "switch (i) { case 0: T a = 1; break; } z = a;", "z = x[q];", "z = x; return; q = 1;", "z = (float)q;",
        "z = int(q);", "T a[] = {x, q}; z = a[0];", "z = x ? q : 1;", "while (q) z = x;", "do z = x; while (q);", "z = q.real();", "z = q.a;",
        "++q; z = x;", "z = f(q);", "z = f(x);", "z = g(x) + h(x);", "z = x; if (x > 0) { } else q = 1;", "T z = x;", "T a = x, x = 2; z = a;",
        "float z[2]; z[0] = x;", "z == x;", "z = x; if (x > 0) z == 1;", "z = x; for (;;) { x; break; }", "z = x ** 2;", "z = 2 * x ** i;",
    ],
)  # fmt: skip
def test_what_no_type_can_mend_is_refused_when_the_kernel_is_defined(operation):
    preamble = "__device__ float g(float a) { return h(a); } __device__ float h(float a) { return a + missing; }"
    with pytest.raises(FusecError, match=r"F1(28|35|37|40|64)"):
        parse(Definition("T x", "T z", operation, preamble=preamble))


@pytest.mark.parametrize(
    "operation",
    [
        "z = tt(x);", "z = o(x);", "for (int z = 0; z < 2; ++z) {} z = x;", "{ float z = 2; z += 1; } z = x;", "if (x > 0) { T x = 1; z = x; }",
        "(void)x; z = x; 0; true;", "int j = 0; for (j; j < 3; ++j) {} z = j;", "z = x, z += 1;", "x > 0 && (z = 1);", "x > 0 ? z = 1 : (z = 2);",
        "z = i + n + _ind.size() + _raw_x.shape()[0] + M_PI;", "T a = x; { T a = 2; z = a; } z += a;", "int j = 0; j++; z = j;",
        "T a[2] = {1, 2}; T* p = a; T* q = NULL; z = x**p;", "T f; f = x; z = f;", "z = x; user(z);", "atomicAdd(&z, x);",
        "T t = x; z = sign(t);", "z = decltype(x)(1);", "z = sizeof(x);", "T a = a0; z = a;",
    ],
)  # fmt: skip
def test_what_may_be_right_is_left_alone(operation):
    preamble = (
        "const float a0 = 1; __device__ float unused(float a) { return nowhere(a, gone); }"
        "template<class A> __device__ A tt(A a) { return chosen_later(a); }"
        "__device__ float o(float a) { return a; } __device__ int o(int a) { return only_on_gpus(a); }"
        "__device__ void user(float& a) { a = 1; }"
    )
    parse(Definition("T x", "T z", operation, preamble=preamble))


def test_locals_of_loop_prep_are_known_in_the_other_texts_and_those_of_the_operation_are_not():
    parse(Definition("T x", "T z", "z = a;", loop_prep="T a = 1;", after_loop="a += 1;"))
    with pytest.raises(FusecError, match="unknown name 'b'"):
        parse(Definition("T x", "T z", "T b = x; z = b;", after_loop="b += 1;"))


def test_the_nesting_of_a_text_is_no_recursion():
    for text in ("else if (x > 1) z = 1; ", "x ? 1 : ", "- ", "z = "):
        start = "if (x) z = 1; " if "if" in text else "z = "
        parse(Definition("T x", "T z", start + text * 5000 + ("" if "if" in text else "x;")))
