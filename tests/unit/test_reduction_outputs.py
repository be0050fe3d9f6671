"""What post_map_expr reads besides the total: outputs as they are, and inputs that are numbers."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

X = np.arange(10, dtype="f4").reshape(2, 5)
ADDING = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y += a", "0", "adding")


@pytest.mark.parametrize("again", range(3))
def test_an_output_that_is_read_first_keeps_what_it_holds(again: int) -> None:
    assert ADDING(X, np.full(2, 100, "f4"), axis=1).tolist() == [110, 135]
    assert ADDING(X, axis=1).tolist() == [10, 35]


def test_only_the_last_of_several_kernels_adds_to_the_output() -> None:
    x = np.ones((3, 20_000), "f4")
    assert ADDING(x, np.full(3, 100, "f4"), axis=1).tolist() == [20_100] * 3
    assert ADDING(x.T.copy(), np.full((1, 3), 100, "f4"), axis=0, keepdims=True).tolist() == [[20_100] * 3]


def test_totals_of_no_elements_add_to_outputs_too() -> None:
    assert ADDING(np.ones((2, 0), "f4"), np.array([5, 6], "f4"), axis=1).tolist() == [5, 6]


def test_an_output_among_the_arguments_is_read_as_it_was() -> None:
    x = X.copy()
    assert ADDING(x, x[0], axis=0).tolist() == [5, 8, 11, 14, 17]


def test_an_output_that_a_path_leaves_alone_keeps_what_it_holds() -> None:
    kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "if (a > 20) y = a", "0", "some")
    assert kernel(X, np.full(2, 100, "f4"), axis=1).tolist() == [100, 35]
    assert kernel(X, axis=1).tolist() == [0, 35]


def test_a_return_leaves_the_outputs_assigned_so_far() -> None:
    kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = 1; if (a > 20) return; y = a", "0", "left")
    assert kernel(X, axis=1).tolist() == [10, 1]


def test_numbers_are_seen_and_arrays_are_not() -> None:
    kernel = fusec.ReductionKernel("T x, T p", "T y", "pow(x, p)", "a + b", "y = pow(a, 1 / p)", "0", "lp")
    assert np.allclose(kernel(X, 3, axis=1), np.linalg.norm(X, 3, axis=1))
    assert kernel(np.ones((2, 0), "f4"), 3, axis=1).tolist() == [0, 0]
    with pytest.raises(FusecError, match="post_map_expr sees the total a, inputs that are numbers"):
        kernel(X, X, axis=1)


@pytest.mark.parametrize("post", ["", "  ", "y = a", "y = a + z", "y = a; // z = a", "if (z > 0) y = a"])
def test_every_output_is_assigned_somewhere(post: str) -> None:
    with pytest.raises(FusecError, match=r"post_map_expr (is empty|never assigns the output 'z')"):
        fusec.ReductionKernel("T x", "T y, T z", "x", "a + b", post, "0")


@pytest.mark.parametrize(
    "post", ["(y) = a", "y++", "if (a > 0) { for (;;) { y = a; break; } }", "set(a, y)", "(y, y) = a"]
)
def test_an_assignment_may_stand_anywhere(post: str) -> None:
    given = "__device__ void set(float x, float& z) { z = x; }"
    fusec.ReductionKernel("T x", "T y", "x", "a + b", post, "0", preamble=given)
