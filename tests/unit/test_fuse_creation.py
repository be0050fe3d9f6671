"""Arrays that fused functions make, which they write and may know, and views of the bits of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy import array, zeros

import fusec


def _given() -> list[Any]:
    return [np.array([1.5, -2, 3]), np.array([3, 200, 7], "uint8"), np.array([1, 2, -3], "float16")]


def filled(x, u, h):
    found, ones, turn = zeros((2, 3)), np.ones(3, int), np.eye(3)
    found[0], found[1, 1:] = x, h[:2]
    ones[1] = u.max()
    turn[0, 2] = x.sum()
    full = np.full((2, 2), x[0])
    full[1] = 7
    return found, ones, turn, full, np.full(3, u), np.empty((0, 2)), np.identity(2, "float32")


def of_lists(x, u, h):
    turn = array([[np.cos(x[0]), -1], [1, x[1]]])
    return (
        turn,
        np.array([x, x + 1]),
        np.array([u.max(), 2.5], "float32"),
        np.asarray(x) is x,
        np.array([[u], [u]], ndmin=4),
    )


def known(x, u, h):
    shape = np.ones(2, int)
    shape[1] = 3
    count, flags = np.zeros(3), np.array([True, False])
    count[1:] += 2
    if count[1] == 2 and not count[0] and bool(flags[0]):
        x = x * float(count[2]) + len(count)
    return np.reshape(x, shape), [int(each) for each in count], shape.tolist(), count


def bits(x, u, h):
    y, signed = x.copy(), u.view("int8")
    y.view(np.int64)[1:] &= 0x7FFFFFFFFFFFFFFF
    y.view(np.uint64)[0] ^= np.uint64(1 << 63)
    signed[0] = -1
    same = x.view()
    same += 1
    return (
        y,
        x.view("int64") >> 63,
        h.view("uint16") + 1,
        x[0].view("int64"),
        (x * 2).view("u8"),
        x.view("u8")[::2].view("f8"),
    )


@pytest.mark.parametrize("function", [filled, of_lists, known, bits])
def test_arrays_are_those_of_numpy(function: Callable[..., Any]) -> None:
    fused = fusec.fuse(function)
    for shift in (0, 1):
        theirs, ours = ([(each + shift).astype(each.dtype) for each in _given()] for _ in range(2))
        expected, found = function(*theirs), fused(*ours)
        for one, other in zip((*found, *ours), (*expected, *theirs), strict=True):
            np.testing.assert_array_equal(one, other)
            assert getattr(one, "dtype", type(one)) == getattr(other, "dtype", type(other))


def test_sizes_of_new_arrays_may_be_numbers_of_the_call() -> None:
    fused = fusec.fuse(lambda x, n: (np.zeros((n, 2)), np.full(n, x.sum()), np.array([n, x[0]]), np.eye(n)))
    for n in (2, 3, 2):
        for one, other in zip(
            fused(np.ones(3), n), (np.zeros((n, 2)), np.full(n, 3.0), [n, 1.0], np.eye(n)), strict=True
        ):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "make", [lambda n: np.zeros(n), lambda n: np.full((n, 2), 1.0), lambda n: np.eye(n), lambda n: np.identity(n)]
)
def test_sizes_that_depend_on_values_are_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(fusec.FusecTypeError, match="an index, range or axis needs values") as refused:
        fusec.fuse(lambda x: make(x.sum()))(np.arange(3))
    assert refused.value.code == "F280"


def test_each_call_makes_new_arrays() -> None:
    fused = fusec.fuse(lambda x: (np.zeros(3), np.eye(2)))
    fused(np.ones(2))[0][...] = 5
    fused(np.ones(2))[1][...] = 5
    zero, eye = fused(np.ones(2))
    assert not zero.any()
    np.testing.assert_array_equal(eye, np.eye(2))


@pytest.mark.parametrize("dtype", ["f4", "bool", "c16"])
def test_views_of_other_sizes_are_refused(dtype: str) -> None:
    with pytest.raises(fusec.FusecTypeError, match=r"x\.view"):
        fusec.fuse(lambda x: x.view(dtype))(np.ones(2))


def of_a_slice(made: Any, x: Any) -> None:
    """Write a traced array."""
    made[:] = x


def of_an_element(made: Any, x: Any) -> None:
    """Write a traced number, for which NumPy reports that it is a sequence."""
    made[0] = x[0]


def in_place(made: Any, x: Any) -> None:
    """Write the result of a ufunc."""
    made += x


def given_as_out(made: Any, x: Any) -> None:
    """Write the result of a ufunc to its out=."""
    np.add(made, x, out=made)


@pytest.mark.parametrize("write", [of_a_slice, of_an_element, in_place, given_as_out])
@pytest.mark.parametrize("dtype", [float, "float32", int, complex])
def test_other_arrays_of_numpy_name_the_replacement(write: Any, dtype: Any) -> None:
    def numbered(x: Any) -> Any:
        made = np.arange(3).astype(dtype)
        write(made, x)
        return made

    with pytest.raises(fusec.FusecTypeError, match=r"a write to a constant array needs.*") as refused:
        fusec.fuse(numbered)(np.ones(3, dtype))
    assert refused.value.code == "F280"
    assert refused.value.hint.startswith("start from np.zeros")


def test_truth_values_and_numbers_are_written_to_arrays_of_numpy_or_refused_alike() -> None:
    def marked(x: Any) -> Any:
        made = np.arange(3) > 1
        made[0] = x.max() > 1
        return made

    def numbered(x: Any, given: Any) -> Any:
        made = np.arange(3.0)
        made[0], made[1] = given, 5
        return made + x

    with pytest.raises(fusec.FusecTypeError, match="a write to a constant array needs"):
        fusec.fuse(marked)(np.ones(3))
    for given in (2.0, 3.0, 4):
        np.testing.assert_array_equal(fusec.fuse(numbered)(np.ones(3), given), numbered(np.ones(3), given))


def test_views_by_strides_name_the_functions_that_make_views() -> None:
    strided = np.lib.stride_tricks.as_strided
    with pytest.raises(fusec.FusecTypeError, match="F280") as refused:
        fusec.fuse(lambda x: strided(x, (2, 2), (8, 8)))(np.ones(5))
    assert "sliding_window_view" in refused.value.hint


def test_an_argument_gets_no_other_shape() -> None:
    def own(x: Any, given: Any) -> Any:
        y, z = x * 2, x[:]
        y.shape = z.shape = (4, 3)
        x.shape = given
        return y, z, x

    x = np.arange(12.0).reshape(3, 4)
    y, z, same = fusec.fuse(own)(x, (3, -1))
    assert (y.shape, z.shape, same is x, x.shape) == ((4, 3), (4, 3), True, (3, 4))
    with pytest.raises(fusec.FusecTypeError, match="a new shape of an argument"):
        fusec.fuse(own)(x, (4, 3))


@pytest.mark.parametrize("shape", [(3, 5), (300, 301), (2, 257, 256), (1, 70_000)], ids=str)
@pytest.mark.parametrize("k", [0, 2, -3, 400])
@pytest.mark.sampled(5)
def test_matrices_with_diagonals_are_those_of_numpy(shape, k):
    def function(x):
        rows, columns = x.shape[-2:]
        one = np.eye(rows, columns, k, np.float32)
        two = np.eye(rows, columns, k, order="F")
        return np.triu(x, k), np.tril(x.T, k), x * one, two, np.identity(rows) + k, np.triu(x[..., ::-1], k).sum()

    x = np.random.default_rng(0).integers(-9, 9, shape)
    for found, wanted in zip(fusec.fuse(function)(x), function(x), strict=True):
        assert (found.dtype, found.flags.f_contiguous) == (wanted.dtype, wanted.flags.f_contiguous)
        np.testing.assert_array_equal(found, wanted)


def test_large_matrices_with_diagonals_are_not_read():
    moved = str(fusec.fuse(lambda x: np.triu(x) * np.eye(len(x))).explain(np.ones((500, 500)))).split("bytes moved")[1]
    assert int(moved.split()[0].replace(",", "")) < 2 * 8 * 500 * 500 + 10_000


def test_diagonals_of_triangles_need_not_be_integers():
    for size in (5, 300):
        x = np.ones((size, size))
        np.testing.assert_array_equal(fusec.fuse(lambda x: np.tril(x, 0.5))(x), np.tril(x, 0.5))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.r_[x[:2], x[1:], 0:3, x[0], 5], lambda x: np.c_[x, x * 2], lambda x: np.r_["0,2", x, x],
        lambda x: np.max([x[0], x[1]]), lambda x: np.mean([x, x * 2], axis=0), lambda x: np.sum([v * v for v in x]),
        lambda x: np.median([x[0], 3.0]), lambda x: np.sort([x[1], x[0]]), lambda x: np.max([1, 2]) * np.r_[1, 2],
    ],
)  # fmt: skip
def test_lists_of_traced_arrays_are_joined_as_numpy_joins_them(function: Callable[..., Any]) -> None:
    fused = fusec.fuse(function)
    for count in (10, 7, 13):
        x = np.random.default_rng(count).random(count).astype("float32")
        found, wanted = fused(x), function(x)
        assert (np.shape(found), found.dtype) == (np.shape(wanted), wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
