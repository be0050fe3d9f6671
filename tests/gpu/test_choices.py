"""What values choose on a device: the bits of the same in host memory, without CuPy."""

import sys

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.runtime import cuda
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
    both(lambda x: (*xp.unique_counts(x + 0), *xp.unique_inverse(x + 0)), np.nan_to_num(values))
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


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.sampled(3)
def test_places_in_sorted_arrays(dtype, side):
    edges, values = np.sort(few(40, dtype=dtype)), few(3, 130, dtype=dtype, seed=1)

    def program(x, y):
        places = xp.argsort(x[::-1])
        return (
            xp.searchsorted(x, y, side=side), xp.searchsorted(x, y.T[::2], side=side), xp.searchsorted(x[:0], y[0]),
            xp.searchsorted(x, y[:, :0], side=side), xp.searchsorted(x[::-1], y, side=side, sorter=places),
            xp.searchsorted(x, y[0, 0], side=side),
        )  # fmt: skip

    both(program, edges, values)
    both(lambda x: (xp.searchsorted(x, 1), xp.searchsorted(x, 0.5, side=side)), edges)
    if edges.dtype.kind == "f":
        both(lambda x, y: (xp.searchsorted(x, y), xp.searchsorted(y, x)), edges, np.arange(-3, 9))


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_bins(dtype, right):
    edges, values = np.linspace(-2, 3, 21).astype(dtype), few(7, 90, dtype=dtype)

    def program(x, y):
        return (
            xp.digitize(y, x, right=right), xp.digitize(y, x[::-1], right=right), xp.digitize(y, x[:1], right=right),
            xp.digitize(y[0], x * 0, right=right),
        )  # fmt: skip

    both(program, edges, values)
    there = xp.asarray([1.0, 3.0, 2.0], device=THERE)
    with pytest.raises(ValueError, match="monotonically"):
        xp.digitize(there, there).compute()


def test_places_in_fused_functions():
    edges, values = np.sort(few(70)), few(9, 33, seed=1)

    @fusec.fuse
    def program(x, y, number):
        found = np.searchsorted(x, y * 2, side="right")
        return found, x[np.minimum(found, 69)], np.digitize(y + 1, x[:20] - 1), np.searchsorted(x, number)

    for number in (0.5, 1.5, 2.5, 3.5):  # the later calls are repeated ones
        found = program(*map(cuda.from_numpy, (edges, values)), number)
        wanted = program(edges, values, number)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)
            assert one.dtype == np.asarray(other).dtype


RANKS = {
    "median": lambda x, **more: xp.median(x, **more),
    "nanmedian": lambda x, **more: xp.nanmedian(x, **more),
    "percentile": lambda x, **more: xp.percentile(x, [0, 12.5, 50, 99, 100], **more),
    "quantile": lambda x, **more: xp.quantile(x, 0.3, **more),
    "hazen": lambda x, **more: xp.quantile(x, 0.3, method="hazen", **more),
    "nearest": lambda x, **more: xp.quantile(x, [0.3, 0.9], method="nearest", **more),
    "nanpercentile": lambda x, **more: xp.nanpercentile(x, [0, 25, 50.0, 100], **more),
    "nanquantile": lambda x, **more: xp.nanquantile(x, 0.7, **more),
}


@pytest.mark.parametrize("name", RANKS)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
def test_ranks(name, dtype):
    values = normal(6, 5, 70, dtype=dtype)
    if values.dtype.kind == "f":
        values[0, 1, 3], values[2], values[3, 0, :7] = np.nan, np.inf, -np.inf
        values[1, 2, 5:] = values[4, 4] = np.nan
    rank = RANKS[name]
    both(lambda x: (rank(x), rank(x[:, 2, ::-1]), rank(x, axis=0), rank(x.T, axis=-2, keepdims=True)), values)
    both(lambda x: (rank(x, axis=(0, 2)), rank(x, axis=(2, 1), keepdims=True), rank(x[:1, 0, 0])), values)
    with pytest.raises(ValueError, match="range"):
        xp.nanquantile(xp.asarray(values, device=THERE), 1.5)


def test_orders_and_interpolation():
    rng = np.random.default_rng(3)
    keys, edges = rng.integers(0, 4, (3, 200)), np.sort(rng.normal(size=12))
    both(lambda x: (xp.lexsort(x), xp.lexsort((x[0], x[2])), xp.lexsort((x, x[::-1]), axis=0)), keys)
    both(lambda x: (xp.sort_complex(x), xp.sort_complex(x[0] + 1j)), keys)
    values = np.concatenate([edges, rng.normal(size=400) * 2, [np.nan, np.inf, -np.inf]])
    both(lambda x, y: (xp.interp(x, y, y * 3), xp.interp(x.reshape(5, -1), y[:1], y[:1])), values, edges)
    both(lambda x, y: xp.interp(x, y, y[::-1], left=-9.0, right=9), values, edges)


def test_ranks_in_fused_functions():
    values = few(40, 30)
    program = fusec.fuse(lambda x: (x - np.median(x * 2, axis=0), np.nanpercentile(x, [5, 95], axis=1) + 1))
    wanted = program(values)
    for _ in range(4):
        for one, other in zip(program(cuda.from_numpy(values)), wanted, strict=True):
            assert one.numpy().tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "float32", "complex128"])
def test_writes_to_chosen_elements(dtype):
    """Of several values for one element the last one stays; sums are in order."""
    values, rng = few(9, 11, dtype=dtype), np.random.default_rng(5)
    rows, columns = rng.integers(-9, 9, 200), rng.integers(0, 11, 200)
    given = (rng.normal(size=200) * 3).astype(dtype)

    def program(x, rows, columns, given):
        one, two, three, four, five, six = (x.copy() for _ in range(6))
        one[rows, columns] = given
        two[:, columns] = given
        two[rows[:3], 1:4] = 1
        three[::-1, ::2][rows[:7]] = x[0, :6]
        xp.add.at(four, (rows, columns), given)
        xp.multiply.at(four.T, columns, given[:9])
        xp.put(five, rows, given[:5])
        xp.put_along_axis(six, columns[:27].reshape(9, 3), given[:3], 1)
        return one, two, three, four, five, six

    both(program, values, rows, columns, given)


def test_writes_to_chosen_elements_in_fused_functions():
    values, places, given = few(50), np.array([3, -1, 3, 7, 3]), np.arange(5.0)

    @fusec.fuse
    def program(x, places, given):
        x = x * 2
        x[places] = given + 1
        np.add.at(x, places + 1 - 1, given)
        return x, x.sum()

    wanted = program(values, places, given)
    for _ in range(4):
        found = program(*map(cuda.from_numpy, (values, places, given)))
        np.testing.assert_array_equal(found[0].numpy(), wanted[0])
    with pytest.raises(ValueError, match="shape mismatch"):
        program(*map(cuda.from_numpy, (values, places, given[:3])))


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex64"])
def test_writes_where_masks_hold(dtype):
    values = np.nan_to_num(few(6, 7, dtype=dtype))

    def program(x):
        one, two, three, four = (x.copy() for _ in range(4))
        mask = x == x[0, 0]
        one[mask] = xp.arange(42, device=x.device)[: int(mask.sum())]
        two.T[(x != 0).T[:, 1]] = xp.arange(6, device=x.device).astype(x.dtype)
        three[xp.asarray([True, False] * 3, device=x.device), 1:3] = x[:3, :2]
        four[:, ::2][mask[:, ::2]] = four[mask][:1]
        one[x != x] = x[:0, 0]
        return one, two, three, four

    both(program, values)
    there = xp.asarray(values, device=THERE)
    with pytest.raises(ValueError, match=r"shape mismatch|cannot assign"):
        there[there == there] = xp.zeros(99, dtype=dtype, device=THERE)


def test_numbers_are_counted():
    rng = np.random.default_rng(1)
    places, weights = rng.integers(0, 9, 3000), rng.normal(size=3000).astype("float32")
    both(lambda x, y: (xp.bincount(x), xp.bincount(x, y), xp.bincount(x[::-2], minlength=20)), places, weights)
    both(lambda x: (xp.bincount(x.astype("uint8")), xp.bincount(x[:0]), xp.bincount(x[:0], minlength=3)), places)
    for wrong in (lambda x: xp.bincount(x - 5), lambda x: xp.bincount(x, x[:2]), lambda x: xp.bincount(x[None])):
        with pytest.raises(ValueError):  # noqa: PT011 - NumPy's
            wrong(xp.asarray(places, device=THERE))


def test_histograms():
    values = normal(4000).astype("float32")
    values[7] = np.nan
    edges = [-9, -1.5, 0, 0, 2, 11]

    def program(x):
        found = (xp.histogram(x, 100, range=(-3, 4.5)), xp.histogram(x, 5, range=(-3, 4.5)), xp.histogram(x, edges))
        return (*found[0], *found[1], *found[2], xp.histogram(x.astype("int16"), 40, range=(-20, 20))[0])

    both(program, values)


@pytest.mark.parametrize("dtype", ["int16", "float32", "complex128"])
def test_many_values_are_searched(dtype):
    values, others = few(300, dtype=dtype) * 2, few(20, 30, dtype=dtype, seed=3)
    both(
        lambda x, y: (xp.isin(x, y), xp.isin(y, x, invert=True), xp.isin(y[:0], x), xp.isin(y, x[::-1])), values, others
    )


def test_repeats_and_single_truths():
    values, counts = few(4, 5), np.array([2, 0, 3, 1, 1])

    def program(x, counts):
        return (
            xp.repeat(x, counts, axis=1), x.T.repeat(counts, axis=0), xp.repeat(x[0], counts),
            xp.repeat(x[0], counts * 0), x[x[0, 0] < 99], x[x[0, 0] > 99], x[True], x[False],
        )  # fmt: skip

    both(program, np.nan_to_num(values), counts)
    with pytest.raises(ValueError, match="negative"):
        xp.repeat(xp.asarray(values[0], device=THERE), xp.asarray(counts - 1, device=THERE))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_sums_along_windows(mode):
    rng = np.random.default_rng(2)
    for dtype in ("bool", "uint8", "int64", "complex64"):  # of small integers, so that the order does not matter
        for sizes in ((9, 4), (4, 9), (5, 5), (7, 1), (1, 1), (6, 2)):
            a, v = ((rng.integers(-3, 4, size) + 1j * rng.integers(-3, 4, size)) for size in sizes)
            a, v = (each.astype(dtype) if dtype == "complex64" else each.real.astype(dtype) for each in (a, v))
            both(lambda a, v: xp.convolve(a, v, mode), a, v)
            both(lambda a, v: xp.correlate(a[::-1], v, mode), a, v.real.astype("int16"))
            both(lambda a, v: xp.correlate(v, a, mode), a, v)
