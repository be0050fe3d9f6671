"""Mistakes with reductions: every message names what the user called and a cure that fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

X = np.arange(10, dtype="f4").reshape(2, 5)
TEXTS = ("T x", "T y", "x", "a + b", "y = a", "0", "k")
PAIR = "struct P { float s; float n; }; __device__ P pair(float s) { P r; r.s = s; r.n = 1; return r; }"


def mapped(text: str, **options: str) -> fusec.ReductionKernel:
    return fusec.ReductionKernel("T x", "T y", text, "a + b", "y = a", "0", "k", **options)


CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: fusec.ReductionKernel(*TEXTS)(X, size=3), "axis=, keepdims=, out=, where= and stream="),
    (lambda: mapped("x * foo"), "known here: _J, _in_ind, _out_ind, x"),
    (lambda: mapped("x * i"), "known here: _J, _in_ind, _out_ind, x"),
    (lambda: mapped("pair(x)", preamble=PAIR)(X), "pass reduce_type='P'"),
    (lambda: fusec.sum(X, out=np.zeros((), "i4")), "kernel 'sum'"),
    (lambda: fusec.sum(X, out=np.zeros((), "i4")), "hint: pass an array of float32"),
    (lambda: fusec.max(X, axis=0, out=np.zeros(5)), "kernel 'max'"),
    (lambda: fusec.max(np.zeros(0)), "pass initial="),
    (lambda: fusec.mean_var(X, out=np.zeros(())), "'mean_var' has 2 outputs, but out= holds 1"),
    (lambda: fusec.sum(X, axis=0, initial=X[0]), "initial= of 'sum' must be one number, not an array of shape"),
    (lambda: fusec.var(X, ddof=1), "pass correction= instead"),
    (lambda: fusec.mean_var(X, dof=1), "a call takes axis=, dtype=, out=, correction="),
]


@pytest.mark.parametrize(("mistake", "said"), CASES)
def test_a_mistake_is_told_with_its_cure(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(FusecError) as caught:
        mistake()
    assert said in str(caught.value)


def test_numbers_may_be_arrays_without_axes() -> None:
    assert fusec.sum(X, axis=0, initial=X[0, 1]).tolist() == [6, 8, 10, 12, 14]
    assert fusec.max(X, initial=np.array(20, "f4")) == 20


def test_the_median_of_no_rows_is_empty() -> None:
    assert fusec.median(np.zeros((0, 3)), axis=1).shape == (0,)
