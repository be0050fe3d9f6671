"""What NumPy computes between kernels on the host, and kernels on devices: with NumPy's bits, without CuPy."""

import sys

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.runtime import cuda

WARM = 3  # calls before all of a call is known


@pytest.fixture(autouse=True)
def _no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)


def numbers(shape, dtype, seed=0):
    """Numbers of the whole range of a dtype."""
    own = np.random.default_rng(seed)
    if np.dtype(dtype) == bool:
        return own.random(shape) < 0.3
    bounds = np.iinfo(dtype)
    return own.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)


def same(found, wanted):
    np.testing.assert_array_equal(found, wanted)
    assert found.dtype == wanted.dtype


def check(function, *arrays):
    fused, wanted = fusec.fuse(function), function(*arrays)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for _ in range(WARM + 1):
        given = [cuda.from_numpy(each) for each in arrays]
        found = fused(*given)
        for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            same(one.numpy(), np.asarray(other))
        for one, other in zip(given, arrays, strict=True):
            same(one.numpy(), other)  # what is read is left as it is


def on_device(values):
    return xp.asarray(values, device="cuda:0")


def on_host(array):
    return np.asarray(array.to_device("cpu"))


# --- products of integers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["?", "b", "B", "h", "H", "i", "I", "q", "Q"])
def test_kept_products_of_integers_wrap(dtype):
    a, b = numbers((17, 33), dtype), numbers((33, 29), dtype, 1)
    check(lambda a, b: (a @ b, (b.T @ a.T).T, np.dot(a[0], b), np.inner(a, b.T), a @ b[:, 0]), a, b)


PRODUCTS = [
    lambda x: x.reshape(8, 8, 24) @ x.reshape(8, 8, 24).swapaxes(1, 2), lambda x: x[:, :0] @ x[:0],
    lambda x: x.reshape(8, 1, 8, 24) @ x.reshape(1, 8, 8, 24)[:, 1:].swapaxes(2, 3), lambda x: x[::-2, ::3] @ x[0, ::3],
    lambda x: np.tensordot(x.reshape(8, 8, 24), x.reshape(24, 8, 8), ([2, 0], [0, 2])), lambda x: x[:0] @ x.T,
    lambda x: np.einsum("aij,bji->abi", x.reshape(8, 8, 24), x.reshape(8, 24, 8)), lambda x: x @ (x.T > 0),
    lambda x: np.matvec(x.reshape(8, 8, 24), x[0]), lambda x: np.vecdot(x.reshape(8, 8, 24), x[:8], axis=-1),
    lambda x: x.astype("b") @ x.T, lambda x: np.linalg.matrix_power(x[:, :24][:24], 5),
    lambda x: np.tensordot(x, x), lambda x: np.kron(x[:2, :3], x[:3, :2]), lambda x: (x > 0) @ (x > 0).T,
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(PRODUCTS)))
def test_kept_products_of_integers_of_other_layouts(case):
    check(PRODUCTS[case], numbers((64, 24), "q"))


def test_kept_products_of_integers_of_lazy_arrays():
    a, b = numbers((40, 50), "i"), numbers((50, 30), "i", 1)
    for turn in range(WARM + 1):
        x, y = on_device(a + turn), on_device(b)
        same(on_host(x @ y + 1), (a + turn) @ b + 1)


# --- sorts -----------------------------------------------------------------------------------------------------------

REAL = ["?", "b", "H", "i", "Q", "e", "f", "d"]


def unsorted(shape, dtype, seed=0):
    """Few different numbers, some of them nan, 0 or -0."""
    own = np.random.default_rng(seed)
    values = own.integers(0, 20, shape).astype(dtype)
    if values.dtype.kind == "f":
        values[own.random(shape) < 0.1] = np.nan
        values[own.random(shape) < 0.1] = np.inf
        values[own.random(shape) < 0.1] *= -1
    if values.dtype.kind == "c":
        values = values + 1j * unsorted(shape, values.real.dtype, seed + 1)
        values[own.random(shape) < 0.1] += np.nan
    return values.astype(dtype)


def sorts(x):
    return (
        np.sort(x, kind="stable"), np.argsort(x, kind="stable"), np.sort(x, 0, kind="stable"),
        np.argsort(x, 0, kind="stable") + 1, np.sort(x, None, kind="stable")[::-1],
        np.sort(x[::-1, ::2], kind="stable"),
    )  # fmt: skip


@pytest.mark.parametrize("size", [1, 32, 33, 200, 1025])
@pytest.mark.parametrize("dtype", [*REAL, "F", "D"])
def test_kept_sorts_are_stable_and_put_nan_last(dtype, size):
    check(sorts, unsorted((3, size), dtype))


def test_kept_sorts_of_no_elements_and_of_stacks():
    check(lambda x: (np.sort(x[:, :0]), np.argsort(x[:0]), np.sort(x[:, :1])), unsorted((3, 4), "d"))
    check(lambda x: (np.sort(x, 1), np.argsort(x.T, 1, "stable"), np.sort(x, 2)), unsorted((4, 70, 5), "i"))


def test_kept_partitions_have_their_elements_on_either_side():
    x = unsorted((3, 100), "i")
    fused = fusec.fuse(lambda x: (np.partition(x, 30), np.argpartition(x, (5, -7), 0 - 1)))
    for _ in range(WARM + 1):
        found, places = (each.numpy() for each in fused(cuda.from_numpy(x)))
        for each, at in ((found, 30), (np.take_along_axis(x, places, 1), 5), (np.take_along_axis(x, places, 1), -7)):
            assert (each[:, at] == np.partition(x, at)[:, at]).all()
            assert (each[:, :at] <= each[:, at, None]).all()
            assert (each[:, at:] >= each[:, at, None]).all()
    with pytest.raises(ValueError, match="kth"):
        fusec.fuse(lambda x: np.partition(x, 100))(cuda.from_numpy(x))


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", ["i", "d", "F"])
def test_kept_sorts_of_long_rows(dtype):
    check(lambda x: (np.sort(x, kind="stable"), np.argsort(x, kind="stable")), unsorted(1_000_003, dtype))


def test_kept_sorts_of_lazy_arrays():
    values = unsorted((5, 60), "d")
    x = on_device(values)
    same(on_host(xp.sort(x)), np.sort(values, kind="stable"))
    same(on_host(xp.argsort(x, axis=0)), np.argsort(values, 0, kind="stable"))
    same(on_host(xp.sort(x, descending=True)), np.flip(np.sort(values, kind="stable"), -1))
