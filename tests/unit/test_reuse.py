"""Reuse: a value that several statements compute is computed once, and no value changes."""

import numpy as np
import pytest

import fusec
from fusec.compiler import pipeline
from fusec.ir.loops import Call
from fusec.ir.walk import expressions, operands, statements
from tests.support.specialised import specialisation


def calls(operation, **kwargs):
    """How often the text of each function stands in the program that is generated."""
    kernel = fusec.ElementwiseKernel("float32 x, float32 y, int32 n", "float32 z, float32 w", operation, **kwargs)
    program = pipeline.program_of(kernel.definition, specialisation(kernel))
    seen = [
        expr.function
        for stmt in statements(program.body)
        for expr in expressions(operands(stmt))
        if isinstance(expr, Call)
    ]
    return {name: seen.count(name) for name in seen}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("z = exp(x * y) + 1; w = exp(x * y) * 2;", {"fusec_exp_float32": 1}),
        ("float a = exp(x); z = a; w = exp(x) + a;", {"fusec_exp_float32": 1}),
        ("z = exp(x); if (n > 0) { w = exp(x); } else { w = exp(x) + 1; }", {"fusec_exp_float32": 1}),
        ("z = 0; w = 0; if (n > 0) { z = exp(x); } w = exp(x);", {"fusec_exp_float32": 2}),
        ("z = n > 0 ? exp(x) : 0; w = exp(x);", {"fusec_exp_float32": 2}),
        ("z = 0; w = 0; for (int k = 0; k < n; ++k) { z += exp(x); w += exp(x); }", {"fusec_exp_float32": 1}),
        ("z = exp(x); float v = x; v += 1; w = exp(v) + exp(x);", {"fusec_exp_float32": 2}),
        ("float v = x; z = exp(v); v += 1; w = exp(v);", {"fusec_exp_float32": 2}),
    ],
)
def test_what_comes_again_is_computed_once(operation, expected):
    assert calls(operation) == expected


def test_names_of_an_inner_block_are_not_used_outside():
    kernel = fusec.ElementwiseKernel(
        "float32 x, int32 n",
        "float32 z, float32 w",
        "z = 0; w = 0; if (n > 2) { z = sqrt(x) / 3 + 1; w = sqrt(x) / 3 + 2; } z += sqrt(x) / 3; w += sqrt(x) / 3;",
    )
    x = np.linspace(0, 9, 100, dtype=np.float32)
    n = np.arange(100, dtype=np.int32) % 5
    root = np.sqrt(x) / np.float32(3)
    z, w = kernel(x, n)
    np.testing.assert_array_equal(z, np.where(n > 2, root + 1, 0).astype(np.float32) + root)
    np.testing.assert_array_equal(w, np.where(n > 2, root + 2, 0).astype(np.float32) + root)


@pytest.mark.parametrize("again", ["z = f(x); z = v + f(x);", "if (n > 0) { z = f(x); } z = v + f(x);"])
def test_a_call_for_its_effect_stays_a_call(again):
    triple = "__device__ float f(float v) { float w = v; { float* q = &w; *q = v * 3; } return w; }"
    kernel = fusec.ElementwiseKernel("float32 x, int32 n", "float32 z", f"float v = f(x); {again}", preamble=triple)
    x = np.linspace(0, 9, 100, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x, np.int32(3)), x * 3 + x * 3)
