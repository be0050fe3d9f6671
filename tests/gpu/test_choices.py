"""What values choose on a device: the bits of the same in host memory, without CuPy."""

import sys

import numpy as np
import pytest

import fusec.xp as xp
from tests.gpu.test_lazy_arrays import THERE, both, normal, same


@pytest.fixture(autouse=True)
def no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


DTYPES = ("bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64", "complex128")
SHAPES = ((0,), (1,), (7,), (5, 1025), (3, 0), (2, 3, 4))


def few(*shape, dtype="float64", seed=0):
    """Few different values, among them nan and both zeros."""
    values = np.random.default_rng(seed).integers(-2, 4, shape).astype(dtype)
    if values.dtype.kind in "fc":
        values[values == 3] = np.nan
        values[values == -1] = -0.0
    return values


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sampled(3)
def test_masks_and_places(dtype, shape):
    values = few(*shape, dtype=dtype)
    both(lambda x: x[x == x], values)
    both(lambda x: x[x != 0], values)
    both(lambda x: x[x != x], values)
    both(xp.nonzero, values)
    both(lambda x: (xp.argwhere(x), xp.extra.flatnonzero(x), *x.T.nonzero()), values)
    both(lambda x: (xp.extract(x == 1, x), xp.extract(x.T, x)), values)
    both(lambda x: xp.extra.where2(x), values)


def test_views_are_chosen_from():
    values = few(6, 70)
    both(lambda x: (x[:, ::-2][x[:, ::-2] > 0], x.T[x.T > 0], x[::-1, 3:9][(x > 0)[::-1, 3:9]]), values)
    both(lambda x: (x[x.T[0] > -5], x[2:5, :9][xp.asarray([True, False, True], device=x.device)]), values)
    both(lambda x: (*xp.nonzero(x.T), xp.argwhere(x[:, ::3])), values)
    both(lambda x: xp.broadcast_to(x[0], (4, 70))[xp.broadcast_to(x[1], (4, 70)) > 0], values)
    both(lambda x: (x[0] + 1)[(x[0] > 0) & (x[1] <= 0)] * 2, values)


def test_masks_beside_other_indices():
    values = np.arange(4 * 5 * 6.0).reshape(4, 5, 6)

    def program(x):
        rows = xp.asarray([True, False, True, True], device=x.device)
        columns = xp.asarray([False, True, False, True, True], device=x.device)
        plane = x[0] % 3 == 1
        return (
            x[rows], x[:, columns], x[..., x[0, 0] > 2], x[rows, 1:3], x[1, columns], x[:, plane], x[rows, ..., 2],
            x[rows, xp.asarray([0, 1, 4], device=x.device)], x[None, rows], x[rows, 1, ::-1], x[rows, :, None],
            x[[True, False, False, True]],
        )  # fmt: skip

    both(program, values)


@pytest.mark.parametrize("key", [lambda x: x[0] > 1, lambda x: (slice(None), x[:, 0] > 1), lambda x: x[None] > 1])
def test_masks_of_other_shapes_raise_numpys_errors(key):
    errors = []
    for device in (THERE, "cpu"):
        x = xp.asarray(normal(4, 5, 6), device=device)
        with pytest.raises(IndexError) as raised:
            x[key(x)]
        errors.append(str(raised.value).split(" [")[0])
    assert errors[0] == errors[1]


def test_what_conditions_leave():
    values = few(5, 8)

    def program(x):
        mask = xp.asarray([True, False, True], device=x.device)
        rows = xp.asarray([1, 0, 0, 2, 5], device=x.device)
        return (
            x.compress(rows, axis=0), xp.compress(mask, x, axis=1), xp.compress(mask, x), xp.extract(mask, x),
            x[0].compress(x[1] > 0), xp.compress(mask, x, axis=-1),
        )  # fmt: skip

    both(program, values)
    for device in (THERE, "cpu"):
        x = xp.asarray(values, device=device)
        with pytest.raises(IndexError):
            xp.extract(xp.ones(99, device=device), x)
        with pytest.raises(ValueError, match="1-d"):
            xp.compress(x > 0, x)
        with pytest.raises(ValueError, match="0d"):
            xp.nonzero(x[0, 0])
        assert x[:1].tobytes() == values[:1].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.sampled(3)
def test_sets(dtype, shape):
    values = few(*shape, dtype=dtype)
    both(lambda x: tuple(xp.unique_all(x)), values)
    both(lambda x: (*xp.unique_counts(x + 0), *xp.unique_inverse(xp.nan_to_num(x) + 0)), values)
    wanted = xp.unique_all(xp.asarray(values)).values  # of equal ones that which comes first
    same(xp.unique_values(xp.asarray(values, device=THERE)), wanted)
    both(lambda x: xp.unique(x, return_index=True), values)


def test_sets_of_two_arrays():
    def program(x, y):
        return (
            xp.union1d(x, y), xp.intersect1d(x, y), xp.setdiff1d(x, y), xp.setxor1d(x, y), xp.union1d(x[:0], y[:0]),
            xp.intersect1d(x[:0], y), xp.setxor1d(x[:0], y[:0]), xp.setdiff1d(x, y[:0]),
            xp.setdiff1d(xp.unique(x)[::-1], y, assume_unique=True),
        )  # fmt: skip

    one, other = (np.random.default_rng(seed).integers(0, 40, 30) for seed in (1, 2))
    both(program, one, other)
    both(program, one.reshape(5, 6) / 4, other.astype("float32"))
