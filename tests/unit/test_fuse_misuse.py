"""Mistakes in fused functions, and other calls that used to raise exceptions without a code."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.ones((3, 4))


@pytest.mark.parametrize(
    ("function", "code", "message", "hint"),
    [
        (lambda x: x.sum(axis=1, keepdim=True), "F281", "'sum' with keepdim= cannot", "did you mean 'keepdims'?"),
        (lambda x: x.sum(axis=1, nothing=True), "F281", "'sum' with nothing= cannot", "leave it out"),
        (lambda x: math.sqrt(x), "F281", "math.sqrt cannot be fused", "write np.sqrt(x)"),
        (lambda x: math.erf(x), "F281", "math.erf cannot be fused", "NumPy has none: a function with @fusec.element"),
        (lambda x: float(x), "F280", "float() needs a Python scalar", "keep arrays as they are"),
        (lambda x: x.mean(axis=4), "F240", "axis 4 is out of bounds for array of dimension 2", "the axes of "),
        (lambda x: np.max(x, axis=-3), "F240", "axis -3 is out of bounds for array of dimension 2", "the axes of "),
    ],
)
def test_hint_and_line(function: Callable[..., Any], code: str, message: str, hint: str) -> None:
    with pytest.raises(fusec.FusecError) as raised:
        fusec.fuse(function)(X)
    assert raised.value.code == code
    assert message in str(raised.value)
    assert raised.value.hint.startswith(hint)
    assert raised.value.span is not None
    assert "lambda x" in raised.value.span.text


def test_function_catches_an_axis_error() -> None:
    @fusec.fuse
    def last(x: Any) -> Any:
        x += 1
        try:
            return x.sum(axis=2)
        except np.exceptions.AxisError:
            return x.sum(axis=1)

    assert last(X.copy()).tolist() == [8.0, 8.0, 8.0]


def test_writes_before_an_axis_error_stay() -> None:
    given = X.copy()

    @fusec.fuse
    def wrong(x: Any) -> Any:
        x += 1
        return x.sum(axis=2)

    with pytest.raises(fusec.FusecAxisError) as raised:
        wrong(given)
    assert (raised.value.axis, raised.value.ndim, given[0, 0]) == (2, 2, 2.0)


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda: fusec.sum(X, dtype="flot32"), "F102", "data type 'flot32' not understood [F102]\nhint: did you mean"),
        (lambda: fusec.cumsum(X, dtype="flot32"), "F102", "did you mean 'float32'? dtype= takes a name such as"),
        (
            lambda: fusec.NumExpr("a + b", ["a", "b"]),
            "F507",
            "the signature ['a', 'b'] has no types [F507]\nhint: pass",
        ),
        (lambda: fusec.barrier(), "F397", "fusec.barrier() works only in kernels with block="),
    ],
)
def test_errors_have_codes(call: Callable[[], object], code: str, text: str) -> None:
    with pytest.raises(fusec.FusecError) as raised:
        call()
    assert raised.value.code == code
    assert text in str(raised.value)


def test_functions_that_wrap_kernels_are_fused() -> None:
    @fusec.fuse
    @functools.wraps(fusec.sum)
    def total(x: Any) -> Any:
        return np.sum(x)

    assert total(X) == fusec.fuse(fusec.fuse(lambda x: x.sum()))(X) == X.sum()
