"""A fused function called with many shapes gives what NumPy gives for each, whichever plan it reuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from tests.property.array_programs import arrays, programs
from tests.support.array_programs import array_of, copies, run
from tests.support.plan_rules import rules_are_compared


def chain(x, y):
    return np.where(x > y, x * 2, y) + np.abs(x)


def inner(x, y):
    return (x[1:-1] + y[:-2]) * x[2:]


def first_five(x, y):
    return x[:5] + y[:5] * 2


def last_two(x, y):
    return x[-2:] - y[:-1][-1:]


def ends(x, y):
    return x[0] + y[-1], x[..., 0]


def turned(x, y):
    return x[::-1] + y.T.T, np.flip(x) * 2


def centred(x, y):
    return x - y.mean(), x.sum() / 3


def rows(x, y):
    return x - x.max(axis=-1, keepdims=True) + y.sum(axis=-1, keepdims=True)


def moments(x, y):
    return x.mean(axis=0), y.var(axis=0), x.std()


def by_size(x, y):
    return x / x.shape[0] + (x.shape[-1] - 1) * 0.5 + y * x.size


def in_place(x, y):
    x[1:] += y[:-1]
    x *= 2
    return x.sum()


def first_five_in_place(x, y):
    x[:5] = y[:5] + 1
    return x + 1


def swapped(x, y):
    x[...] = y + 1
    y[...] = x * 2


def of_zeros(x, y):
    return np.zeros_like(x) + y, x * 0 + 5


def flattened(x, y):
    return (x + 1).reshape(-1) * 2 + y.ravel()


def joined(x, y):
    return np.concatenate([x, y * 2]) + 1


def staged(x, y):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) * y


def costly(x, y):
    e = np.sin(x) * 2
    return e.sum(axis=0), e.sum(axis=-1), y - 1


def branching(x, y):
    return x * 2 if len(x) > 3 else y * 3


def offset(x, y):
    return x + np.arange(len(x), dtype=x.dtype), y


def literal(x, y):
    return x + np.array([1.0, 2.0, 3.0]), y


def of_three(x, y):
    return x + np.zeros(3), y


def head_in_place(x, y):
    x[:5] = y[:1] * 2
    y[1] = 3


def turned_in_place(x, y):
    x[:5] = x[::-1]
    y[-4:] *= 2
    return x.T * 2


def product(x, y):
    z = (x + 1) @ y.T
    return np.maximum(z, 0) * 2, z.sum()


def products(x, y):
    return np.dot(x @ (y * 2).T, y) - y * 2


def spectrum(x, y):
    return np.abs(np.fft.rfft(x * 2)), np.fft.ifft(y, axis=0).real + 1


def ordered(x, y):
    return np.sort(x, axis=-1) * 2, np.argsort(-y, axis=0)[::-1], np.linalg.norm(x) + y


def finished(x, y):
    return y.mean(axis=-1) + (x * y).sum(axis=-1), (x[..., :1] + (y * 2).sum(axis=-1, keepdims=True)) * 3


def inverse(x, y):
    return np.linalg.inv(x @ x.T + np.linalg.norm(x) * 0 + 1) @ x


def parts(x, y):
    z = x * 2
    return z.T, z[1:], z.ravel(), y[::-1], z[..., None], np.rot90(np.atleast_2d(z))


def windowed(x, y):
    windows = np.lib.stride_tricks.sliding_window_view(x, 2, axis=-1)
    return windows.sum(axis=-1), windows[..., 0] + 1, np.einsum("...ij,j->...i", windows, np.array([1.0, 2.0]))


def contracted(x, y):
    return np.einsum("...i,...i->...", x, y), np.einsum("...i->...", x), np.einsum("i...->...i", y)


def tables(x, y):
    places = np.abs(x * 3).astype("int64")
    return np.take(y.ravel(), places, mode="wrap"), y.ravel()[places % y.size]


def spans(x, y):
    return x * np.linspace(0, 1, x.shape[-1]), np.kron(x, np.array([1.0, -1.0])), np.average(y), np.average(y, axis=0)


def covariances(x, y):
    return np.cov(x), np.cov(x, rowvar=False), np.corrcoef(x + y)


def sized_spectrum(x, y):
    return np.fft.irfft(np.fft.rfft(x), x.shape[-1]), np.fft.fft(y, 2 * len(y), axis=0).real + 1


def padded(x, y):
    return np.pad(x, 1, mode="edge") + 1, np.pad(y, (0, 2)) * 2


def beside(x, y):
    return np.stack([x, y], axis=-1) + 1, np.concatenate([x[..., None] * 2, y[..., None]], axis=-1)


def numbers_apart(x, y):
    turn = np.array([[y.sum(), 1.0], [2.0, x.mean()]])
    return turn[0, 0] * x + turn[1, 1], turn.ravel()


FUNCTIONS = (
    chain, inner, first_five, last_two, ends, turned, centred, rows, moments, by_size, in_place, first_five_in_place,
    swapped, of_zeros, flattened, joined, staged, costly, branching, offset, literal, of_three, head_in_place,
    turned_in_place, product, products, spectrum, ordered, finished, inverse, parts, windowed, contracted, tables,
    spans, covariances, sized_spectrum, padded, numbers_apart, beside,
)  # fmt: skip
EXTENTS = st.integers(0, 7)
ONE = st.tuples(EXTENTS)
TWO = st.tuples(EXTENTS, EXTENTS)
CALLS = [st.lists(st.tuples(each, each), min_size=3, max_size=8) for each in (ONE, TWO)]


def outcome(function, arrays):
    """The results and what the arguments hold then, or the error."""
    try:
        found = function(*arrays)
    except (ValueError, IndexError, TypeError, ZeroDivisionError) as problem:
        return type(problem).__mro__[-4:], None
    return found, arrays


def assert_same(found, wanted):
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, (np.ndarray, np.generic)):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=12, deadline=None)
@given(st.one_of(CALLS), st.booleans(), st.integers(0, 99))
@pytest.mark.sampled(5)
def test_every_call_of_a_fused_function_is_as_numpy_has_it(function, shapes, alike, seed):
    fused = fusec.fuse(function)
    rng = np.random.default_rng(seed)
    for one, other in shapes:
        arrays = [rng.normal(size=shape) for shape in (one, one if alike else other)]
        mine = [each.copy() for each in arrays]
        wanted, after = outcome(function, arrays)
        found, mine_after = outcome(fused, mine)
        if after is None:
            assert mine_after is None, f"NumPy refuses {one}, {other}"
            continue
        assert mine_after is not None, f"NumPy takes {one}, {other}: {found}"
        assert_same(found, wanted)
        assert_same(tuple(mine_after), tuple(after))


def compiled_by(fused, monkeypatch, shapes):
    """How often a function is traced for shapes."""
    from fusec.fusion.fuse import Fused

    traced = []
    made = Fused._made
    monkeypatch.setattr(Fused, "_made", lambda self, *found: (traced.append(1), made(self, *found))[1])
    for shape in shapes:
        x = np.ones(shape)
        fused(x, x + 1)
    return len(traced)


@pytest.mark.parametrize(
    "function",
    [
        chain,
        inner,
        turned,
        centred,
        rows,
        staged,
        costly,
        swapped,
        in_place,
        products,
        spectrum,
        finished,
        flattened,
        by_size,
    ],
)
def test_a_known_function_is_not_traced_again_for_other_extents(function, monkeypatch):
    fused = fusec.fuse(function)
    assert compiled_by(fused, monkeypatch, [(5, 6), (7, 9), (100, 3), (4, 8)]) == 1
    assert compiled_by(fused, monkeypatch, [(6, 6)]) == 1  # equal extents are another kind


SEEN = (chain, inner, turned, centred, rows, moments, staged, costly, swapped, products, finished, spectrum, parts,
        windowed, contracted, tables, spans, sized_spectrum, padded, numbers_apart, ends, beside)  # fmt: skip


@pytest.mark.parametrize("function", SEEN, ids=lambda function: function.__name__)
def test_the_third_shape_is_neither_traced_nor_placed_nor_compiled(function, monkeypatch):
    from fusec.fusion.fuse import Fused
    from fusec.fusion.schedule.plan import PlanBuilder
    from fusec.runtime.cpu import engine

    done = []
    fused = fusec.fuse(function)
    for shape in ((4, 50), (7, 90), (9, 80)):
        fused(np.full(shape, 1.5), np.full(shape, 2.5))
    for owner, name in ((Fused, "_made"), (PlanBuilder, "placed"), (engine, "compile_object"), (engine, "load")):
        whole = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, whole=whole, name=name: (done.append(name), whole(*args))[1])
    for shape in ((6, 110), (12, 51), (5, 400), (33, 60)):
        arrays = [np.random.default_rng(3).normal(size=shape) for _ in range(2)]
        mine = copies(arrays)
        found = fused(*mine)
        assert not done
        theirs = copies(arrays)
        assert_bits([*mine, *listed(found)], [*theirs, *listed(fusec.fuse(function)(*theirs))])
        done.clear()


def listed(found):
    """Results in a list."""
    return [] if found is None else list(found) if isinstance(found, tuple) else [found]


def assert_bits(found, wanted):
    """Arrays are equal in everything; NaNs have no sign."""
    for one, other in zip(found, wanted, strict=True):
        assert (np.shape(one), one.dtype, one.strides) == (np.shape(other), other.dtype, other.strides)
        np.testing.assert_array_equal(one, other)


def test_rows_past_a_chunk_have_a_plan_of_their_own_for_all_extents(monkeypatch):
    fused = fusec.fuse(staged)
    shapes = [(4, 5), (4, 5000), (3, 9), (3, 8000), (6, 33), (2, 5001)]
    assert compiled_by(fused, monkeypatch, shapes) == 2
    for shape in [(5, 66), (5, 6000)]:
        x, y = np.sin(np.arange(2.0 * np.prod(shape))).reshape(2, *shape)
        found = fused(x, y)
        np.testing.assert_array_equal(found, fusec.fuse(staged)(x, y))
        np.testing.assert_allclose(found, staged(x, y), rtol=1e-13)
    few, many = np.ones((6, 34)), np.ones((2, 5002))
    assert [fused.explain(each, each).kernels for each in (few, many)] == [1, 4]


def test_kernels_of_short_rows_are_planned_once_for_each_shape(monkeypatch):
    from fusec.dispatch.host import Host

    fused = fusec.fuse(staged)
    fused(np.ones((4, 5)), np.ones((4, 5)))
    planned, plan = [], Host.plan
    monkeypatch.setattr(Host, "plan", lambda *args: (planned.append(1), plan(*args))[1])
    for count, shape in enumerate([(61, 17), (3, 2000), (70, 19)], 1):
        fused(np.ones(shape), np.ones(shape))
        assert len(planned) == count


@pytest.mark.parametrize("function", [first_five, last_two, head_in_place])
def test_a_function_that_depends_on_extents_is_traced_for_each(function, monkeypatch):
    assert compiled_by(fusec.fuse(function), monkeypatch, [(3, 3), (9, 3), (7, 3)]) == 3


def test_extents_are_numbers_that_kernels_take(tmp_path, monkeypatch):
    from fusec.compiler import pipeline

    made = []
    compiled = pipeline.machine_code
    monkeypatch.setattr(pipeline, "machine_code", lambda *args: (made.append(args[0]), compiled(*args))[1])
    fused = fusec.fuse(lambda x: (x / x.shape[0] + (x.shape[0] - 1) * 0.5 + x.sum() / x.size, x.shape, x.size + 1))
    names = set()
    for n in (5, 6, 7, 1000):
        x = np.arange(n, dtype=float)
        found, shape, size = fused(x)
        np.testing.assert_array_equal(found, x / n + (n - 1) * 0.5 + x.sum() / n)
        assert (shape, size, type(shape[0]), type(size)) == ((n,), n + 1, int, int)
        names |= set(made)
        made.clear()
        if n == 6:
            known = set(names)
    assert names == known


def test_a_write_that_is_whole_by_accident_is_not_so_for_other_extents():
    def step(x, s):
        x[:5] = s * 2

    fused = fusec.fuse(step)
    for n in (5, 9, 4, 6):
        x, wanted = np.arange(n, dtype=float), np.arange(n, dtype=float)
        fused(x, np.ones(1))
        step(wanted, np.ones(1))
        np.testing.assert_array_equal(x, wanted)


def check_shapes(steps, arrays, calls):
    """Call a random program with arrays of the shapes of some, each with other extents in place of 2, 3 and 4."""
    fused = fusec.fuse(lambda *xs: run(steps, list(xs)))
    for seed, extents in enumerate([(2, 3, 4), *calls]):
        known = dict(zip((2, 3, 4), extents, strict=True))
        shapes = [tuple(known.get(extent, extent) for extent in each.shape) for each in arrays]
        theirs = [array_of(shape, each.dtype.name, "C", seed) for shape, each in zip(shapes, arrays, strict=True)]
        mine = copies(theirs)
        with np.errstate(all="ignore"):
            wanted = run(steps, list(theirs))
            found = fused(*mine)
        for one, other in zip([*found, *mine], [*wanted, *theirs], strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            np.testing.assert_array_equal(one, other)


OTHERS = st.lists(st.tuples(EXTENTS, EXTENTS, EXTENTS), min_size=2, max_size=4)
SOME = st.lists(arrays, min_size=1, max_size=3)
MANY = st.lists(
    st.tuples(*[st.sampled_from([0, 1, 2, 3, 4, 5, 7, 16, 33, 40, 1025, 2100])] * 2), min_size=6, max_size=14
)


@pytest.mark.parametrize("function", [*SEEN, covariances], ids=lambda function: function.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=6, deadline=None)
@given(MANY, st.integers(0, 99))
@pytest.mark.sampled(5)
def test_shapes_in_any_order_give_the_bits_of_a_fresh_function(function, shapes, seed):
    fused = fusec.fuse(function)
    rng = np.random.default_rng(seed)
    for rows, columns in shapes:
        arrays = [rng.normal(size=(min(rows, 40), columns)) for _ in range(2)]
        mine, theirs = copies(arrays), copies(arrays)
        found, mine = outcome(fused, mine)
        wanted, theirs = outcome(fusec.fuse(function), theirs)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert_bits([*mine, *listed(found)], [*theirs, *listed(wanted)])


@settings(max_examples=12, derandomize=True, deadline=None)
@given(programs, SOME, OTHERS)
def test_rules_say_what_placing_says(steps, arrays, calls):
    check_rules(steps, arrays, calls)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(programs, SOME, OTHERS)
def test_many_rules_say_what_placing_says(steps, arrays, calls):
    check_rules(steps, arrays, calls)


def check_rules(steps, arrays, calls):
    with rules_are_compared():
        check_shapes(steps, arrays, calls)


@settings(max_examples=4, derandomize=True, deadline=None)
@given(programs, SOME, OTHERS)
def test_random_programs_give_the_same_for_arrays_of_other_extents(steps, arrays, calls):
    check_shapes(steps, arrays, calls)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(programs, SOME, OTHERS)
def test_many_random_programs_give_the_same_for_arrays_of_other_extents(steps, arrays, calls):
    check_shapes(steps, arrays, calls)


def test_a_function_that_catches_an_error_for_shapes_is_traced_for_each():
    def step(x, y):
        try:
            return x[1:] + y
        except ValueError:
            return x * 2

    fused = fusec.fuse(step)
    for n, m in ((6, 4), (6, 5), (7, 5), (7, 6)):
        x, y = np.arange(n, dtype=float), np.arange(m, dtype=float)
        np.testing.assert_array_equal(fused(x, y), step(x, y))
