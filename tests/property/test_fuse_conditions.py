"""Parts of arrays by fixed indices: one trace serves all extents for which they are the same parts, and no others."""

import numpy as np
import pytest

import fusec
from fusec.fusion.fuse import Fused

SHAPES = ((4, 6), (5, 9), (1, 7), (7, 1), (6, 6), (2, 12), (0, 3), (3, 5), (12, 2), (8, 20))
LENGTHS = (5, 40, 7, 8, 6, 9, 41, 4, 12, 30, 13, 14, 3, 1, 60, 2)


def parity(x):
    return x[::2][-1:] + x[-1:]


def shifted(x):
    x[2:] = x[:-2] + 1


def of_both_ends(x):
    return x[:3] + x[-3:], x[4] + x[-2]


def overlapping_writes(x):
    x[3:] *= 2
    x[:5] += 1
    return x.sum()


def head_from_tail(x):
    x[:4] += x[-4:]
    return x * 2


def every_second_of_some(x):
    return x[1:9:2] * 2


def parts_of_parts(x):
    return x[2:][3:][:4] - x[5:9], x[:-3][-2] + x[-5]


FUNCTIONS = (parity, shifted, of_both_ends, overlapping_writes, head_from_tail, every_second_of_some, parts_of_parts)


def outcome(function, x):
    try:
        return function(x), x
    except (IndexError, ValueError) as problem:
        return type(problem).__mro__[-4:], None


def check(function, fused, x):
    """The fused function does what the function does."""
    (wanted, after), (found, mine) = outcome(function, x.copy()), outcome(fused, x.copy())
    assert (mine is None) == (after is None)
    if after is None:
        return
    np.testing.assert_array_equal(mine, after)
    if wanted is None:
        assert found is None
        return
    wanted, found = (each if isinstance(each, tuple) else (each,) for each in (wanted, found))
    for one, other in zip(found, wanted, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("order", [LENGTHS, LENGTHS[::-1]])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_parts_are_those_of_the_call_whichever_plan_serves_it(function, order):
    fused = fusec.fuse(function)
    for length in order:
        check(function, fused, np.arange(length, dtype=float))


@pytest.fixture
def traced(monkeypatch):
    """A list that grows with each trace."""
    found, made = [], Fused._made
    monkeypatch.setattr(Fused, "_made", lambda *args: (found.append(1), made(*args))[1])
    return found


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: x[:, 0] * 2 + x[:, 1] - x[:, 2], [(5, 3), (9, 3), (40, 3)]),
        (lambda x: x[..., :2].sum(axis=-1) / x[..., 3], [(6, 7, 4), (9, 5, 4)]),
        (lambda x: x[:3].sum() - x[-4:-1].sum() + x[5], [(50,), (70,), (1000,)]),
        (lambda x: x[:3] * x[2:5], [(30,), (40,)]),
    ],
)
def test_a_function_of_fixed_parts_is_traced_once(function, shapes, traced):
    fused = fusec.fuse(function)
    for shape in shapes:
        x = np.random.default_rng(0).random(shape)
        np.testing.assert_allclose(fused(x), function(x), rtol=1e-14)
    assert len(traced) == 1


def test_a_function_of_fixed_parts_is_traced_again_where_they_meet(traced):
    fused = fusec.fuse(lambda x: x[:3] + x[-3:])
    for length, traces in ((40, 1), (60, 1), (5, 2), (41, 2)):
        x = np.arange(length, dtype=float)
        np.testing.assert_array_equal(fused(x), x[:3] + x[-3:])
        assert len(traced) == traces


def test_an_extent_that_becomes_that_of_a_fixed_part_is_seen():
    fused = fusec.fuse(lambda x, y: x[:3] + y)
    for length, other in ((5, 3), (30, 3), (40, 1), (3, 3), (50, 3)):
        x, y = np.arange(length, dtype=float), np.arange(other, dtype=float)
        np.testing.assert_array_equal(fused(x, y), x[:3] + y)
    with pytest.raises(fusec.FusecError, match="F212"):
        fused(np.ones(30), np.ones(4))


def flat(x):
    return x.reshape(-1) * 2, x.ravel() + 1, x.T.ravel()


def flat_parts(x):
    return x[:, 1:].reshape(-1), x[:, :2].ravel() * 2, x.T.reshape(-1) - 1


def written_through(x):
    x.reshape(-1)[1:] += 1
    x[:, 1:].reshape(-1)[...] = 7
    x[:, :5].reshape(-1)[...] = 8
    return x.sum()


def in_pairs(x):
    return x.reshape(-1, 2).sum(axis=1), x.reshape(2, -1) + 1


def by_names(x):
    return np.nanstd(x, axis=0), np.isclose(x, 3.0), np.diff(x, axis=1), np.angle(x), np.isneginf(x)


BY_SHAPE = (flat, flat_parts, written_through, in_pairs, by_names)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("order", [SHAPES, SHAPES[::-1]])
@pytest.mark.parametrize("function", BY_SHAPE, ids=lambda function: function.__name__)
@pytest.mark.sampled(3)
def test_other_shapes_are_views_and_copies_as_in_numpy(function, order):
    fused = fusec.fuse(function)
    for shape in order:
        check(function, fused, np.arange(float(np.prod(shape))).reshape(shape))


def flat_and_used(x):
    return x.reshape(-1) * 2, x.ravel() + 1, x.T.ravel() * x.ravel()


@pytest.mark.parametrize("function", [flat_and_used, in_pairs, by_names], ids=lambda function: function.__name__)
def test_other_shapes_need_no_other_trace(function, traced):
    fused = fusec.fuse(function)
    for shape in ((4, 6), (8, 10), (6, 20)):
        fused(np.ones(shape))
    assert len(traced) == 1
