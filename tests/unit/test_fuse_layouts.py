"""New arrays of fused functions lie in memory as NumPy's do, so that the same shapes are views of them or copies."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "flipped": lambda a: a[:, :, ::-1],
    "gaps": lambda a: a[:, :2, :3],
    "transposed": lambda a: a.T,
    "swapped": lambda a: a.swapaxes(0, 1),
    "repeated": lambda a: np.broadcast_to(a[0, :, :1], a.shape),
}
MADE: dict[str, Callable[[Any], Any]] = {
    "view of a value": lambda a: (a + 1).T * 2,
    "view of a total": lambda a: a.max(0).T + 1,
    "copy of a view of a value": lambda a: np.copy((a + 1)[:, ::-1]),
    "copy method": lambda a: a.copy(),
    "copy in F order": lambda a: a.copy("F"),
    "copy in A order": lambda a: a.copy("A"),
    "np.copy": np.copy,
    "np.copy in C order": lambda a: np.copy(a, order="C"),
    "astype": lambda a: a.astype(np.float32),
    "astype in F order": lambda a: a.astype(np.float64, order="F"),
    "astype in A order": lambda a: a.astype(np.float64, order="A"),
    "astype without a copy": lambda a: a.astype(np.float32, "F", copy=False) + 0,
    "roll by nothing": lambda a: np.roll(a, 0, 0),
    "roll": lambda a: np.roll(a, 1, 0),
    "concatenate": lambda a: np.concatenate((a, a)),
    "concatenate with C order": lambda a: np.concatenate((a, a + np.zeros(a.shape)), 2),
    "stack": lambda a: np.stack((a, a), -1),
    "diff": lambda a: np.diff(a, axis=1, prepend=0),
    "maximum": lambda a: a.max(0),
    "maximum of two axes": lambda a: a.max((0, 2), keepdims=True),
    "minimum along the last axis": lambda a: a.min(-1),
    "any": lambda a: a.any(1),
    "mean": lambda a: (a * 0).mean(1),
    "ptp": lambda a: np.ptp(a, 0),
    "less the maximum": lambda a: a - a.max(0),
    "like": lambda a: np.full_like(a, 2),
    "like in F order": lambda a: np.zeros_like(a, order="F"),
    "like of a shape": lambda a: np.zeros_like(a, shape=(3, 2, 2)),
    "ufunc in F order": lambda a: np.add(a, a, order="F"),
    "compared with None": lambda a: a == None,  # noqa: E711 - an array of answers
    "rounded": lambda a: np.round(a, 1),
    "without nan": np.nan_to_num,
    "chosen along an axis": lambda a: a[:, [1, 0]],
    "chosen behind two axes": lambda a: a[..., [1, 0]],
    "chosen along two axes": lambda a: a[[0, 1], :, [1, 0]],
    "chosen by an array that is transposed": lambda a: a[np.array([[0, 1, 0], [1, 1, 0]]).T, 0, 1],
    "chosen by a value": lambda a: a[0, 0][(a > 9).astype(int)],
    "a new axis beside a choice": lambda a: a[0, 0][(a > 9).astype(int), None],
    "taken along an axis": lambda a: np.take_along_axis(a, (a > 9).astype(int), 1),
    "is in": lambda a: np.isin(a, [1, 2]),
    "copy.copy": copy.copy,
    "copy.deepcopy of a value": lambda a: copy.deepcopy(a * 2),
    "in A order": lambda a: np.asarray(a + 1, order="A"),
    "total of a list": lambda a: np.sum([a, a], axis=0),
    "running totals of a list": lambda a: np.cumsum([a, a], axis=1),
    "a list in A order": lambda a: np.asarray([a, a], order="A"),
    "complex numbers rounded": lambda a: np.round(a * 1j, 1),
    "product with a number": lambda a: np.inner(2, a),
    "product of a matrix with a number": lambda a: np.dot(a[0], np.float32(2)),
    "product of a matrix of integers with a number": lambda a: np.dot(a[0].astype(int), 2),
    "an array of arrays": lambda a: np.array([a, a]),
    "deleted": lambda a: np.delete(a, 0, 1),
    "several deleted": lambda a: np.delete(a, [0, 1], -1),
    "a slice deleted": lambda a: np.delete(a, slice(0, 2), 0),
    "by a mask deleted": lambda a: np.delete(a, np.arange(a.shape[1]) == 1, 1),
    "inserted": lambda a: np.insert(a, 1, 7, 1),
    "several inserted": lambda a: np.insert(a, [0, 1], 7, 0),
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.sampled(5)
def test_new_arrays_lie_as_numpy_lays_them_out(make: Callable[[Any], Any]) -> None:
    def written(*arrays: Any) -> list[Any]:
        found = []
        for each in arrays:
            new = make(each)
            flat = np.reshape(new, -1)  # a view if it is dense in C order
            new[...] = 99
            found += [new, flat]
        return found

    def given() -> list[Any]:
        return [lay(np.arange(24, dtype=np.float32).reshape(2, 3, 4)) for lay in LAYOUTS.values()]

    for ours, theirs in zip(fusec.fuse(written)(*given()), written(*given()), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
        pairs = zip(ours.shape, ours.strides, theirs.strides, strict=True)
        assert all(extent == 1 or one == other for extent, one, other in pairs)


def test_arrays_of_the_namespace_have_the_order_asked_for() -> None:
    def made(a: Any) -> Any:
        xp = a.__array_namespace__()
        return [xp.zeros((2, 3), order="F"), xp.ones((2, 3), int, "F"), xp.full((2, 3), 2.5, order="F")]

    for ours, theirs in zip(fusec.fuse(made)(np.ones(1)), made(np.ones(1)), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
        assert ours.strides == theirs.strides


def test_an_argument_that_was_written_still_lies_as_it_does() -> None:
    def doubled(a: Any) -> Any:
        a[...] = a * 2
        return a * 2

    assert fusec.fuse(doubled)(np.ones((2, 3)).T).strides == doubled(np.ones((2, 3)).T).strides


def test_copies_of_what_cannot_be_written_can_be() -> None:
    a = np.arange(6.0)
    a.flags.writeable = False

    def written(a: Any) -> Any:
        one, other = np.copy(a), np.roll(np.broadcast_to(a, (2, 6)), 0, 1)
        one += 1
        other[1] = 7
        return one, other, a

    for ours, theirs in zip(fusec.fuse(written)(a), written(a), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_copy_of_a_number_is_a_number() -> None:
    assert isinstance(fusec.fuse(lambda a: a.sum().copy())(np.ones(3)), np.float64)


@pytest.mark.parametrize("turn", [(2, 1, 0), (1, 0, 2), (0, 2, 1)])
def test_scans_lie_in_memory_as_their_arrays_and_places_in_c_order(turn):
    def along(x, axis):
        return np.cumsum(x, axis), x.cumprod(axis, "f4"), np.maximum.accumulate(x, axis), np.argmax(x, axis)

    x, fused = np.arange(1, 25, dtype="int16").reshape(2, 3, 4).transpose(turn) % 5, fusec.fuse(along)
    for axis in (0, -1):
        for found, expected in zip(fused(x, axis), along(x, axis), strict=True):
            np.testing.assert_array_equal(found, expected, strict=True)
            assert found.strides == expected.strides


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_in_another_order_than_their_shape_says_have_views_too(order: Any) -> None:
    def products(a: Any, b: Any) -> Any:
        v = np.outer(a.T, b)
        return v, v[1:].flatten("F"), v.T.ravel(), v[::2].reshape(-1, order="F")

    fused = fusec.fuse(products)
    for shape in ((5, 3), (1, 1), (1, 4), (4, 1), (7, 2), (5, 3)):
        a = np.asarray(np.random.default_rng(0).normal(size=shape), np.float32, order=order)
        b = np.ones(shape[::-1])
        for found, wanted in zip(fused(a, b), products(a, b), strict=True):
            np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.filterwarnings("error")
def test_arrays_of_broadcast_arrays_are_read_without_numpys_warning_about_writes() -> None:
    fused = fusec.fuse(lambda a, b: np.sort(a, axis=0) + b[:, :1] + sum(np.broadcast_arrays(a[0], b)))
    for extent in (3, 3, 4, 5):
        given = np.meshgrid(np.arange(float(extent)), np.arange(2.0), copy=False)
        np.testing.assert_array_equal(fused(*given), fused.__wrapped__(*given))


IN_ANY_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "a new array in F order": lambda x, y: np.multiply(x, 2, order="F"),
    "one element, repeated": lambda x, y: x[:1, :1] * np.ones(x.shape, order="F"),
    "C order": lambda x, y: x + 1,
}
WRITTEN: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda y: y, "reversed": lambda y: y[:, ::-1], "a transpose": lambda y: y.T, "gaps": lambda y: y[::2],
}  # fmt: skip


@pytest.mark.parametrize("view", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("make", IN_ANY_ORDER.values(), ids=IN_ANY_ORDER)
def test_rows_that_are_walked_again_are_stored_in_any_order(make: Callable[..., Any], view: Callable[..., Any]) -> None:
    def shares(x: Any, y: Any) -> Any:
        made = make(x, y)
        found = made / made.sum()
        view(y)[...] = found
        return found

    for order in ("C", "F"):
        x = np.arange(1.0, 7).reshape(2, 3, order=order)  # type: ignore[call-overload]
        y = np.zeros(
            {"gaps": (4, 3), "a transpose": (3, 2)}.get(next(k for k, v in WRITTEN.items() if v is view), (2, 3))
        )
        wanted, theirs = shares(x, z := y.copy()), z
        for _ in range(3):
            found = fusec.fuse(shares)(x, y)
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
            np.testing.assert_allclose(y, theirs, rtol=1e-14)
            assert found.strides == wanted.strides


@pytest.mark.parametrize(
    "view",
    [
        lambda a: np.broadcast_to(a, (2, 3, 4)),
        lambda a: np.broadcast_to(a.T, (2, 4, 3)),
        lambda a: np.swapaxes(np.broadcast_to(a, (2, 3, 4)), 0, 2),
        lambda a: np.broadcast_to(a[:, None, :], (3, 2, 4)).transpose(2, 1, 0),
        lambda a: a[::-1].T,
    ],
)
@pytest.mark.parametrize("order", "KAFC")
def test_elements_of_repeated_arrays_are_flattened_in_the_order_of_numpy(view, order):
    a = np.arange(12.0).reshape(3, 4)
    found = fusec.fuse(lambda a: (np.ravel(view(a), order), view(a).flatten(order)))(a)
    for one, wanted in zip(found, (np.ravel(view(a), order), view(a).flatten(order)), strict=True):
        np.testing.assert_array_equal(one, wanted)
