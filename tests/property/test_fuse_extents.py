"""Random functions that ask for extents and move elements give NumPy's results, whichever plan serves a shape."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fusec
from fusec.fusion.trace import extents
from tests.support.plan_rules import rules_are_compared


def filled(shape, value):
    found = np.zeros(shape)
    found[...] = value
    return found


def shifted(x):
    found = np.zeros_like(x)
    found[1:] = x[:-1]
    return found


def written(x, y):
    x[: len(x) // 2] += 1
    x[len(y) // 2 :] *= 2
    return x


def branching(x):
    return x[:3] if len(x) > 3 else np.concatenate([x, x])


def pooled(x):
    return x.reshape(x.shape[0] // 2, 2, -1).max(axis=1)


def each_row(x):
    return sum((x[at] * at for at in range(min(len(x), 3))), 0.0) + x


def chained(x):
    for _ in range(2):
        x = x + 0.5 * (np.roll(x, 1) - x)
    return x


def counts(n):
    found = np.arange(n)
    found[: n // 2] = 7
    return found


def divided(one, other):
    try:
        return one / other + one // other
    except ZeroDivisionError:
        return -1.0


BLOCKS = {
    "roll": lambda x, y: np.roll(x, 1),
    "roll back": lambda x, y: np.roll(x, -2, axis=0) + x,
    "roll far": lambda x, y: np.roll(x, 5, axis=-1),
    "rolls": lambda x, y: chained(x),
    "pad": lambda x, y: np.pad(x, 1, mode="edge"),
    "pad wrap": lambda x, y: np.pad(x, 2, mode="wrap"),
    "pad more": lambda x, y: np.pad(x, (1, 2), constant_values=3.0),
    "join": lambda x, y: np.concatenate([x, y]),
    "join three": lambda x, y: np.concatenate([x, x[:1] * 2, y], axis=-1),
    "stack": lambda x, y: np.stack([x, x + 1], axis=1),
    "stack both": lambda x, y: np.stack([x, y]).sum(axis=0),
    "columns": lambda x, y: np.column_stack([x, x * 2]),
    "first half": lambda x, y: x[: len(x) // 2],
    "second half": lambda x, y: x[x.shape[0] // 2 :] * 2,
    "last": lambda x, y: x[x.shape[0] - 2 :] - 1,
    "as many": lambda x, y: x[: len(y)] + 1,
    "all but one": lambda x, y: x[: len(x) - 1] * 2 - x[1:],
    "extent": lambda x, y: x * x.shape[0] + len(y),
    "over": lambda x, y: x / x.size + (x.shape[-1] - 1) * 0.5,
    "size of": lambda x, y: x[1:] * y.size - x[:-1].shape[0],
    "turned": lambda x, y: x[::-1] - 1,
    "transposed": lambda x, y: x.T * 2,
    "inner": lambda x, y: x[1:-1] + x[2:],
    "rows": lambda x, y: x.reshape(x.shape[0], -1) * 2,
    "flat": lambda x, y: x.reshape(-1) + 1,
    "pairs": lambda x, y: x.reshape(-1, 2) + 1,
    "pool": lambda x, y: pooled(x),
    "total": lambda x, y: x - x.sum(axis=0),
    "mean": lambda x, y: x - x.mean(axis=-1, keepdims=True),
    "mean of parts": lambda x, y: x * x[1:].mean() + y.mean(),
    "spread": lambda x, y: x + x.var(axis=0) - x.std(),
    "zeros": lambda x, y: np.zeros_like(x) + y,
    "filled": lambda x, y: filled(x.shape, y),
    "filled row": lambda x, y: filled((len(x), x.shape[-1]), x[:1]),
    "of its own": lambda x, y: filled((3, 4), 1.0) + x,
    "shifted": lambda x, y: shifted(x),
    "copied": lambda x, y: (lambda z: (z.__setitem__(..., y), z)[1])(x[1:].copy()),
    "written": written,
    "full": lambda x, y: np.full((len(x),), 2.0) + x[..., 0],
    "ones": lambda x, y: np.ones((x.shape[0], 1)) * y,
    "repeat": lambda x, y: np.repeat(x, 2, axis=0),
    "tile": lambda x, y: np.tile(x, 2),
    "ends": lambda x, y: np.take(x, [0, -1], axis=0),
    "chosen": lambda x, y: x[(np.abs(y) * 2).astype(int)],
    "along": lambda x, y: np.take_along_axis(x, (x > 0).astype(int), axis=0),
    "where": lambda x, y: np.where(x > y, x, 0.0),
    "select": lambda x, y: np.select([x > 1, x < y], [x, y], 3.0),
    "broadcast": lambda x, y: np.broadcast_to(x[:1], x.shape) + 1,
    "broadcast to own": lambda x, y: np.broadcast_to(x, (2, *x.shape)) * 2,
    "diff": lambda x, y: np.diff(x, axis=0),
    "gradient": lambda x, y: np.gradient(x, axis=0),
    "sums": lambda x, y: np.cumsum(x, axis=0),
    "upper": lambda x, y: np.triu(x) - np.tril(x, -1),
    "halves": lambda x, y: np.split(x, 2)[1] + 1,
    "parts": lambda x, y: np.array_split(x, 3)[1] * 2,
    "branch": lambda x, y: branching(x),
    "square": lambda x, y: x * 2 if x.shape[0] == x.shape[-1] else x * 3,
    "same": lambda x, y: x + y if x.shape == y.shape else x - 1,
    "loop": lambda x, y: each_row(x),
    "longer": lambda x, y: x[: max(len(x), len(y)) - 1] * min(len(x), 4),
    "places": lambda x, y: x[np.argmin(x, axis=0)] if x.ndim == 1 else x + np.argmax(x, axis=0),
    "squeezed": lambda x, y: np.squeeze(x[:, None]) + 1,
    "meshed": lambda x, y: np.multiply(*np.meshgrid(x.ravel()[:4], y.ravel()[:3])),
    "outer": lambda x, y: np.outer(x[: len(x) // 2], y.ravel()[:3]),
    "diagonal": lambda x, y: np.diagonal(x) * 2,
    "sorted": lambda x, y: np.sort(x, axis=0)[1:],
    "softmax": lambda x, y: (lambda e: e / e.sum(axis=-1, keepdims=True))(np.exp(x - x.max(axis=-1, keepdims=True))),
    "convolved": lambda x, y: np.pad(x, 1)[1:] - np.roll(x, 1)[:1],
    "median": lambda x, y: x - np.median(x, axis=0),
    "twice": lambda x, y: np.concatenate([x[1:], x[:1]])[::-1],
    "counted": lambda x, y: x * np.arange(x.shape[-1]) + np.arange(len(y)).sum(),
    "counted from": lambda x, y: np.arange(1, len(x) + 1, dtype="float32")[::-1].reshape(-1, *[1] * (x.ndim - 1)) * x,
    "counts": lambda x, y: counts(len(x)) * 2.0,
    "unit": lambda x, y: np.eye(len(x)) * x[..., :1].sum() - np.identity(x.shape[0]),
    "triangle": lambda x, y: np.where(np.tri(x.shape[0], x.shape[-1], dtype=bool), x[..., None, :], 0.0).sum(axis=0),
    "window": lambda x, y: x * np.hanning(x.shape[-1]),
    "window twice": lambda x, y: np.hamming(len(x))[1:-1].sum() + np.bartlett(max(len(x), 2))[:2] + y.sum(),
    "root of extent": lambda x, y: x / np.sqrt(x.shape[-1]) + np.true_divide(1, len(y) + 1),
    "narrow root": lambda x, y: x.astype("float32") * np.sqrt(len(y)),
    "any division": lambda x, y: x + divided(len(x), len(y) - 3),
    "first place": lambda x, y: np.argmax(x) + np.argmin(y, axis=0),
    "last place": lambda x, y: x.argmin(axis=-1) * 2,
    "products": lambda x, y: np.cumprod(x, axis=-1) + 1,
    "sums of all": lambda x, y: np.cumsum(x[1:]) - 1,
    "sums of turned": lambda x, y: np.cumsum(x.T, axis=0) + np.cumsum(x[::-1], axis=-1).T,
    "highest": lambda x, y: np.maximum.accumulate(x, axis=0) - x,
    "bins": lambda x, y: np.histogram(x, bins=4, range=(0, 1))[0] * 1.5,
    "digits": lambda x, y: np.digitize(x, [0.0, 0.5]) + 0.5,
    "covariance": lambda x, y: np.cov(x) + np.corrcoef(x),
    "rolled join": lambda x, y: np.roll(np.concatenate([x, y]), 1, axis=0)[:-1],
}  # fmt: skip
EXTENTS = st.sampled_from([0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33])
CHOSEN = st.lists(st.sampled_from(sorted(BLOCKS)), min_size=1, max_size=3)
ONE = st.lists(st.tuples(st.tuples(EXTENTS), st.tuples(EXTENTS)), min_size=4, max_size=9)
TWO = st.lists(st.tuples(st.tuples(EXTENTS, EXTENTS), st.tuples(EXTENTS, EXTENTS)), min_size=4, max_size=9)


def outcome(function, arrays):
    """The result, and the arguments after the call; None if NumPy or fusec refuses the call."""
    try:
        with np.errstate(all="ignore"):
            return function(*arrays), arrays
    except (ValueError, IndexError, TypeError, ZeroDivisionError):
        return None


def composed(names):
    """A function of blocks in a row: each takes what the one before makes."""

    def function(x, y):
        found = x
        for name in names:
            found = BLOCKS[name](found, y)
        return found

    return function


def check(names, calls, alike):
    """Compare a fused function with NumPy for arrays of all shapes."""
    function = composed(names)
    fused = fusec.fuse(function)
    for seed, (one, other) in enumerate(calls):
        rng = np.random.default_rng(seed)
        given = [np.round(rng.normal(size=shape), 2) for shape in (one, one if alike else other)]
        mine = [each.copy() for each in given]
        wanted, found = outcome(function, given), outcome(fused, mine)
        if wanted is None or found is None:
            assert wanted is None or refuses(function, [each.copy() for each in mine]), (one, other)
            assert found is None, f"NumPy refuses {one}, {other}"
            continue
        for ours, theirs in zip((found[0], *found[1]), (wanted[0], *wanted[1]), strict=True):
            assert (np.shape(ours), ours.dtype) == (np.shape(theirs), theirs.dtype), (one, other)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=f"{one}, {other}")


def refuses(function, arrays):
    """Whether a newly fused function refuses the call, too: then earlier shapes are not the reason."""
    return outcome(fusec.fuse(function), arrays) is None


@pytest.fixture
def compared():
    with rules_are_compared():
        yield


pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.usefixtures("compared"),
]
RELAXED = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=40, derandomize=True, **RELAXED)
@given(CHOSEN, st.one_of(ONE, TWO), st.booleans())
def test_functions_of_extents_are_as_numpy_has_them(names, calls, alike):
    check(names, calls, alike)


@pytest.mark.slow
@settings(max_examples=2000, **RELAXED)
@given(CHOSEN, st.one_of(ONE, TWO), st.booleans())
def test_many_functions_of_extents_are_as_numpy_has_them(names, calls, alike):
    check(names, calls, alike)


@pytest.mark.parametrize(
    ("shift", "axis", "shapes"),
    [
        (5, None, [(5,), (7,), (9,), (5,), (10,), (1,), (0,), (6,)]),
        ((5, 7), (0, 0), [(12,), (7,), (8,), (4,), (12,), (3,)]),
        ((2, 3), (0, 1), [(2, 4), (3, 3), (4, 2), (6, 6), (5, 7)]),
        (-70, 0, [(70,), (71,), (140,), (69,), (35,)]),
    ],
)
def test_what_rolls_move_depends_on_extents(shift, axis, shapes):
    """In the first call, nothing moves along some axis."""
    fused = fusec.fuse(lambda x: np.roll(x, shift, axis))
    for shape in shapes:
        x = np.arange(float(np.prod(shape))).reshape(shape)
        np.testing.assert_array_equal(fused(x), np.roll(x, shift, axis))


def test_shapes_are_worked_out_once_for_each_array(monkeypatch):
    looked = []
    read_in = extents.read_in
    monkeypatch.setattr(extents, "read_in", lambda root: looked.append(root) or read_in(root))

    def looks(count):
        def steps(u):
            for _ in range(count):
                u = u + 0.1 * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
            return u

        looked.clear()
        fusec.fuse(steps).explain(np.ones(100))
        return len(looked)

    assert looks(24) < 3 * looks(12)


@pytest.mark.parametrize(
    "name",
    [
        "counted",
        "unit",
        "triangle",
        "window",
        "root of extent",
        "last place",
        "products",
        "highest",
        "bins",
    ],
)
def test_new_shapes_of_arrays_of_extents_need_no_trace(name, monkeypatch):
    fused, made = fusec.fuse(BLOCKS[name]), []
    trace = fused._made
    monkeypatch.setattr(fused, "_made", lambda *args: made.append(args) or trace(*args))
    for shape in ((7, 4), (9, 3), (6, 5), (12, 8)):
        x, y = np.random.default_rng(0).random((2, *shape))
        np.testing.assert_allclose(fused(x, y), BLOCKS[name](x, y), rtol=1e-12)
    assert len(made) == 1


@pytest.mark.parametrize("axes", [(0, 2), (0, 1), (1, 2), None])
def test_rows_that_take_several_walks_have_few_traces(axes, monkeypatch):
    def normalised(x):
        return (x - x.mean(axis=axes, keepdims=True)) / np.sqrt(x.var(axis=axes, keepdims=True) + 1)

    fused, made = fusec.fuse(normalised), []
    trace = fused._made
    monkeypatch.setattr(fused, "_made", lambda *args: made.append(args) or trace(*args))
    for shape in ((3, 4, 5), (4, 3, 6), (2, 50, 3), (40, 2, 30), (30, 70, 20), (3, 4, 1), (1, 4, 5), (2, 9, 2000)):
        x = np.random.default_rng(0).normal(size=shape)
        found = fused(x)
        np.testing.assert_array_equal(found, fusec.fuse(normalised)(x))
        np.testing.assert_allclose(found, normalised(x), rtol=1e-12, atol=1e-12)
    assert len(made) <= 4
