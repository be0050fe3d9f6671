"""Contraction: which products go into which sums, and that a contracted program has the same bits on the CPU."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import FLOAT32
from fusec.ir.expr import Expr, Pointer, apply
from fusec.ir.loops import ArrayParam, Element, Load, Program, Store
from fusec.passes.contract import contract

FORMED = {
    "a * b + c": "fma(a, b, c)",
    "c + a * b": "fma(a, b, c)",
    "a * b - c": "fma(a, b, negative(c))",
    "c - a * b": "fma(negative(a), b, c)",
    "-(a * b) + c": "fma(negative(a), b, c)",
    "c + -(a * b)": "fma(negative(a), b, c)",
    "-(a * b) - c": "fma(negative(a), b, negative(c))",
    "c - -(a * b)": "fma(a, b, c)",
    "b - 2 * a": "fma(a, T(-2.0), b)",
    "a * b - 1": "fma(a, b, T(-1.0))",
    "a * b + c * d": "fma(a, b, (c * d))",
    "a * b * c + d": "fma((a * b), c, d)",
    "(a * b + c) * (a * b - c)": "(fma(a, b, c) * fma(a, b, negative(c)))",
    "-(a * b + c)": "negative(fma(a, b, c))",
    "(a * b + c * d) * (c * d + a)": "(fma(a, b, t1) * (t1 + a))",
    "a > 0 ? a * b + c : c": "where((a > T(0.0)), fma(a, b, c), c)",
    "sqrt(a * b + c)": "sqrt(fma(a, b, c))",
}
KEPT = {
    "a * b": "(a * b)",
    "a / b + c": "((a / b) + c)",
    "(a * b + c) / (a * b)": "((t1 + c) / t1)",
    "a * b + a * b": "(t1 + t1)",
    "(a + b) * c": "((a + b) * c)",
}


def last_value(expression: str, dtype: str = "float32", fp: str = "contract") -> str:
    """What is stored, in fusec's IR, with T for the dtype."""
    params = f"{dtype} a, {dtype} b, {dtype} c, {dtype} d"
    kernel = fusec.ElementwiseKernel(params, f"{dtype} z", f"z = {expression}", fp=fp)
    found = re.findall(r"let z: \w+ = (.*) @1", kernel.source("ir"))
    return found[-1].replace(dtype, "T")


@pytest.mark.parametrize("expression", FORMED)
def test_a_product_goes_into_its_sum(expression: str) -> None:
    assert last_value(expression) == FORMED[expression]


@pytest.mark.parametrize("expression", ["c - a * b", "b - 2 * a"])
def test_float64_contracts_alike(expression: str) -> None:
    assert last_value(expression, "float64") == FORMED[expression]


@pytest.mark.parametrize("expression", KEPT)
def test_what_is_wanted_elsewhere_or_is_no_product_stays(expression: str) -> None:
    assert last_value(expression) == KEPT[expression]


def test_strict_forms_no_fma() -> None:
    expressions = [*FORMED, *KEPT]
    outputs = ", ".join(f"T z{n}" for n in range(len(expressions)))
    body = "; ".join(f"z{n} = {each}" for n, each in enumerate(expressions))
    kernel = fusec.ElementwiseKernel("T a, T b, T c, T d", outputs, body)
    assert "fma" not in kernel.source("ir", {"T": "float32"})


def test_a_local_variable_ends_an_expression() -> None:
    params = "float32 a, float32 b, float32 c"
    text = fusec.ElementwiseKernel(params, "float32 z", "float p = a * b; z = p + c", fp="contract").source("ir")
    assert "fma" not in text
    text = fusec.ElementwiseKernel(params, "float32 z", "z = c; z += a * b", fp="contract").source("ir")
    assert "fma(a, b, z)" in text


def test_arithmetic_on_halves_contracts_in_float32() -> None:
    assert "fma(convert<float32>(a), convert<float32>(b), convert<float32>(c))" in last_value("a * b + c", "float16")


@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_only_real_floats_contract(dtype: str) -> None:
    assert "fma" not in last_value("a * b + c", dtype)


def test_elementary_functions_are_the_same_functions() -> None:
    """What fusec.math wrote is exact as it stands: the kernels differ in their own expression alone."""

    def functions(fp: str) -> str:
        kernel = fusec.ElementwiseKernel("float64 x", "float64 z", "z = x * pow(x, 1.5) + lgamma(x)", fp=fp)
        return kernel.source("ir").partition("kernel ")[0]

    assert functions("contract") == functions("strict")
    assert "function fusec_lgamma_float64" in functions("strict")


def test_device_functions_of_a_preamble_are_the_users() -> None:
    preamble = "__device__ float f(float x, float y) { return x * y + 1.0f; }"
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = f(x, x)", preamble=preamble, fp="contract")
    assert "fma(x, y, float32(1.0))" in kernel.source("ir")


def program(value: Expr) -> Program:
    params = (*(ArrayParam(name, FLOAT32) for name in "ab"), ArrayParam("z", FLOAT32, written=True, read=False))
    return Program("k", params, (Store(Element("z", Pointer(FLOAT32, "global")), value),))


def test_a_sum_chooses_among_the_products_that_can_vanish() -> None:
    """The left product is wanted elsewhere, so the right one goes in."""
    a, b = (Load(Element(name, Pointer(FLOAT32, "global")), FLOAT32) for name in "ab")
    left, right = apply("multiply", a, b), apply("multiply", b, b)
    (stmt,) = contract(program(apply("divide", apply("add", left, right), left))).body
    assert isinstance(stmt, Store)
    assert stmt.value is apply("divide", apply("fma", b, b, left), left)


def test_a_program_without_products_in_sums_is_itself() -> None:
    a = Load(Element("a", Pointer(FLOAT32, "global")), FLOAT32)
    for value in (apply("multiply", apply("add", a, a), a), apply("divide", a, a), apply("fma", a, a, a)):
        same = program(value)
        assert contract(same) is same


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_contracted_sum_rounds_once(dtype: str) -> None:
    """x * x - y with y the rounded square is the rounding error of the square, which only an fma can see."""
    x = np.random.default_rng(1).random(1000).astype(dtype)
    y = x * x
    arguments = (f"{dtype} x, {dtype} y", f"{dtype} z", "z = x * x - y")
    strict = fusec.ElementwiseKernel(*arguments)(x, y)
    contracted = fusec.ElementwiseKernel(*arguments, fp="contract")(x, y)
    explicit = fusec.ElementwiseKernel(*arguments[:2], "z = fma(x, x, -y)")(x, y)
    assert not strict.any()
    assert np.count_nonzero(contracted) > 900
    assert np.array_equal(contracted, explicit)
