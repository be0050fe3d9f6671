"""Masks as indices in fused functions: what they pick is computed with, stored and summed; its size is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec


def _given(seed: int, shape: tuple[int, ...] = (4, 3)) -> list[Any]:
    rng = np.random.default_rng(seed)
    x, y = (np.round(rng.normal(size=shape) * 3) for _ in range(2))
    return [x, y, rng.random(shape) < 0.5, rng.random(shape[0]) < 0.7]


def in_place(x, y, m, r):
    x[m] = 0
    x[x < -1] *= -1
    y[r] += 1
    y[m] = np.sqrt(np.abs(y[m]))
    return x.sum()


def from_another(x, y, m, r):
    x[m] = y[m] * 2 + 1
    x[r] = y[0]
    return x


def totals(x, y, m, r):
    found = x[m].sum(), np.sum(x[m]), x[m].mean(), np.any(x[m] > 0), (x[m] + y[m]).sum(), np.count_nonzero(x[m])
    return (
        *found,
        np.add.reduce(x[m]),
        x[r].sum(axis=0),
        x[r].std(0, ddof=1),
        np.abs(x[m]).sum(),
        np.extract(m, x).sum(),
    )


def before_a_write(x, y, m, r):
    picked = x[m]
    x[...] = 0
    total = picked.sum()
    x[m] = picked
    return total


def less_its_mean(x, y, m, r):
    x[m] -= x[m].mean()
    picked = y.mean() - x[m]
    picked **= 2
    y[m] = picked
    return (
        np.where(x[m] > 0, x[m], 0).sum(),
        x[m].astype(int).sum(),
        np.clip(x[m], 0, 1).sum(),
        divmod(x[m], 2)[0].sum(),
    )


def of_views(x, y, m, r):
    x[m] = np.array([5.0])
    x[:, 0][r] = 7
    x[1][m[1]] = y[1, m[1]]
    x.T[m.T] += 1
    x[r, 0] = 9
    y[:, m[0]] = -1
    y[r, 1:] += x[r, :-1]
    return x[r, 1:].sum(axis=0), y[0, m[2]].mean(), x[r, 0].sum()


def one_truth(x, y, m, r):
    x[x.sum() > 0] += 1
    x[y.sum() > 1e6] = -7
    x[x[0, 0] == x[0, 0], 1] = 5
    x[m.any(), 1:, 0] = y[1:, 1]
    y[0][r[0]] = 2
    return x[x.sum() > 0].sum(), np.add.reduce(x[x.sum() < -1e6], axis=None)


def known(x, y, m, r):
    x[[True, False] * (len(x) // 2) + [True] * (len(x) % 2)] = y[0]
    x[0, np.arange(x.shape[1]) > 0] -= 1
    y[np.arange(y.size).reshape(y.shape) % 3 == 1] = np.arange(y.size)[1::3]
    y[True] *= 2
    y[False] = 3
    return x + y


@pytest.mark.parametrize(
    "function", [in_place, from_another, totals, before_a_write, less_its_mean, of_views, one_truth, known]
)
@pytest.mark.sampled(3)
def test_masks_pick_as_in_numpy(function: Callable[..., Any]) -> None:
    fused = fusec.fuse(function)
    for seed, shape in ((0, (4, 3)), (1, (4, 3)), (2, (3, 5))):
        theirs, ours = _given(seed, shape), _given(seed, shape)
        expected, found = function(*theirs), fused(*ours)
        for one, other in zip((found, *ours), (expected, *theirs), strict=True):
            for our, their in zip(
                *(each if isinstance(each, tuple) else (each,) for each in (one, other)), strict=True
            ):
                np.testing.assert_allclose(our, their, rtol=1e-12) if their is not None else None
                assert type(our) is type(their) or isinstance(their, int)  # np.count_nonzero before NumPy 2.3


def written_mask(x, y, m, r):
    picked = x[m]
    m[0] = True
    x[m] = picked


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, m, r: x[m], lambda x, y, m, r: [x[m] * 2], lambda x, y, m, r: len(x[m]), written_mask,
        lambda x, y, m, r: x[m].max(), lambda x, y, m, r: x[m] + y[r], lambda x, y, m, r: x.__setitem__(m, y[~m]),
        lambda x, y, m, r: np.sort(x[m]), lambda x, y, m, r: x[m][0], lambda x, y, m, r: x[m] @ x[m],
    ],
)  # fmt: skip
def test_what_needs_their_number_is_refused(function: Callable[..., Any]) -> None:
    given = _given(0)
    with pytest.raises(
        fusec.FusecTypeError, match=r"np\.where\(mask, x, y\), x\.sum\(where=mask\)|write x\.max|write mask\.sum"
    ) as raised:
        fusec.fuse(function)(*given)
    assert raised.value.code == "F281"
    np.testing.assert_array_equal(given[0], _given(0)[0])


def test_a_mask_of_another_shape_raises_numpys_error() -> None:
    x, _, _, r = _given(0)
    for wrong in (r[:2], np.ones((4, 3, 1), bool)):
        with pytest.raises(IndexError) as theirs:
            x[wrong]
        with pytest.raises(IndexError) as ours:
            fusec.fuse(lambda x, mask: x[mask].sum())(x, wrong)
        assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(("shape", "picked"), [((3, 4), (4,)), ((2, 3, 4), (3, 4)), ((2, 3, 4), (4,)), ((4,), (4,))])
def test_a_mask_of_the_last_axes_stores_a_number(shape, picked):
    def store(x, mask):
        x = x * 1
        x[..., mask] = 0
        return x

    random = np.random.default_rng(0)
    x, mask = random.random(shape), random.random(picked) > 0.5
    np.testing.assert_array_equal(fusec.fuse(store)(x, mask), store(x, mask))


def clipped(x, y):
    z = x * 2
    z[z > 2] = 2
    z[z < -2] = -2
    return z


def doubled(x, y):
    z = x * 2
    z[z < 0] *= 2
    return z


def by_sign(x, y):
    z = np.empty_like(x)
    m = x > 0
    z[m] = x[m] * 2
    z[~m] = -x[~m]
    z[x == 0] = 7
    return z


def by_rows(x, y):
    z = x * 2
    m = x[:, 0] > 0
    z[m] = 0
    z[~m] += y[0]
    return z


def returned_masks(x, y):
    z = x * 2
    above = z > 2
    z[above] = 2
    below = z < -2
    z[below] = -2
    return z, above, below


def costly(x, y):
    z = np.exp(x)
    z[z > 2] = 2
    z[np.isnan(z)] = 0
    z[y > 0] *= y[y > 0]
    return z


def in_arguments(x, y):
    x[x > 2] = 2
    x *= y
    x[x < -2] = y[x < -2]


def in_part_of_an_argument(x, y):
    inner = x[1:-1]
    inner[inner > 2] = 2
    inner[inner < -2] = -2
    inner *= y[1:-1]


def all_of_an_array(x, y):
    z = x * 2
    z[:, :] = np.where(z > 2, 2, z)
    z[:] *= 2
    z[..., :] += y
    return z


@pytest.mark.parametrize(
    "function",
    [
        clipped, doubled, by_sign, by_rows, returned_masks, costly, in_arguments, in_part_of_an_argument,
        all_of_an_array,
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "float16", "int16"])
def test_writes_to_what_masks_pick_share_a_kernel(function: Callable[..., Any], dtype: str) -> None:
    given = np.random.default_rng(0).normal(size=(2, 30, 20)) * 4
    ours, theirs = given.astype(dtype), given.astype(dtype)
    fused = fusec.fuse(function)
    assert fused.explain(*ours.copy()).kernels == 1
    with np.errstate(all="ignore"):
        found, expected = fused(*ours), function(*theirs)
    np.testing.assert_array_equal(ours, theirs)
    if expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-12 if dtype == "float64" else 2e-3)


def test_writes_in_turn_to_memory_that_arguments_share_are_one_kernel() -> None:
    def function(x, y):
        x[x > 1] = y[x > 1]
        x[x < -1] = -1
        x += 1

    memory = np.random.default_rng(0).normal(size=(31, 20)) * 4
    expected = memory.copy()
    function(expected[1:], expected[1:])
    fused = fusec.fuse(function)
    assert fused.explain(memory[1:].copy(), memory[1:]).kernels == 1
    fused(memory[1:], memory[1:])
    np.testing.assert_array_equal(memory, expected)
