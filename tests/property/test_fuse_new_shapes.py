"""A known function at a new shape: nothing is traced, bound, arranged or compiled, and it gives the same bits."""

import gc
import warnings
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from fusec.dispatch.host import Host
from fusec.fusion.fuse import MAX_PLANS, Fused
from fusec.fusion.schedule.native_sequence import FrameSource
from fusec.fusion.schedule.plan import PlanBuilder
from fusec.runtime.cpu import engine
from tests.support.plan_rules import rules_are_compared


def softmax(x, y):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) + y


def normalised(x, y):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * y


def centred(x, y):
    return x - x.mean(0), y


def batch_normalised(x, y):
    x, y = np.stack([x, y]), np.stack([y, x])
    mean, spread = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
    return (x - mean) / np.sqrt(spread + 1e-5) * y


def summed(x, y):
    return (x[None] * y[:, None]).sum((0, 2)), (x * 2).sum(0)


def rectified(x, y):
    return np.maximum(x @ y.T + x[:, :1], 0.0)


def multiplied_twice(x, y):
    return np.tanh(x @ y.T) @ y, (x * y).sum()


def scaled(x, y):
    return x / x.shape[0] + y[::-1] * x.sum(axis=1, keepdims=True)


def shifted(x, y):
    return x[:, 1:] - x[:, :-1], y[1:].sum(axis=0)


def updated(x, y):
    x[1:] += y[:-1].sum(axis=1, keepdims=True)
    return x * y.max()


FUNCTIONS = (softmax, normalised, centred, batch_normalised, summed, rectified, multiplied_twice, scaled, shifted,
             updated)  # fmt: skip
SETTLED = ((20, 41), (21, 43), (22, 46), (23, 47), (25, 44))  # shapes after which a kind of call is known
BOUNDARY = {"rectified": 5, "multiplied_twice": 5}  # rows, where the sizes of products decide on other code


def arrays_of(shape, dtype, layout="dense", seed=3):
    rng = np.random.default_rng(seed)
    rows, columns = shape

    def made():
        if layout == "turned":
            return rng.normal(size=(columns, rows)).astype(dtype).T
        if layout == "gaps":
            return rng.normal(size=(rows, 2 * columns)).astype(dtype)[:, ::2]
        if layout == "rows apart":
            return rng.normal(size=(rows, columns + 3)).astype(dtype)[:, :columns]
        return rng.normal(size=shape).astype(dtype)

    return [made(), made()]


def listed(found):
    return list(found) if isinstance(found, tuple) else [found]


def assert_same_bits(fused, function, *kind):
    """A call gives what a new function object gives, also in the arrays that it writes."""
    mine, theirs = arrays_of(*kind), arrays_of(*kind)
    found, wanted = listed(fused(*mine)), listed(fusec.fuse(function)(*theirs))
    for one, other in zip([*found, *mine], [*wanted, *theirs], strict=True):
        assert (one.shape, one.dtype, one.strides) == (other.shape, other.dtype, other.strides)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("function", FUNCTIONS[:-1], ids=lambda function: function.__name__)
def test_new_shapes_of_a_known_kind_are_not_bound_or_built_or_compiled(function, dtype, monkeypatch):
    fused, done = fusec.fuse(function), []
    few = BOUNDARY.get(function.__name__)
    for rows, columns in SETTLED:
        fused(*arrays_of((few or rows, columns), dtype))
    for owner, name in (
        (Fused, "_made"), (PlanBuilder, "placed"), (Host, "bound"), (Host, "again"), (FrameSource, "launches"),
        (engine, "compile_object"), (engine, "load"),
    ):  # fmt: skip
        whole = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args, whole=whole, name=name: (done.append(name), whole(*args))[1])
    for rows, columns in ((24, 45), (26, 48), (27, 50), (29, 53)):
        fused(*arrays_of((few or rows, columns), dtype))
        assert not done
    monkeypatch.undo()
    assert_same_bits(fused, function, (few or 31, 51), dtype)


EXTENTS = st.sampled_from([0, 1, 2, 3, 7, 16, 33, 40, 65, 129, 140, 300])
LAYOUTS = st.sampled_from(["dense", "turned", "gaps", "rows apart"])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
@settings(max_examples=4, deadline=None)
@given(st.lists(st.tuples(EXTENTS, EXTENTS), min_size=3, max_size=6), LAYOUTS, st.sampled_from(["float64", "float32"]))
def test_all_shapes_give_the_bits_of_a_new_function(function, shapes, layout, dtype):
    fused = fusec.fuse(function)
    with rules_are_compared():
        for shape in [*SETTLED[:3], *shapes, *SETTLED[3:]]:
            try:
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    function(*arrays_of(shape, dtype, layout))
            except (ValueError, IndexError, ZeroDivisionError) as problem:
                with pytest.raises(type(problem)):
                    fused(*arrays_of(shape, dtype, layout))
                continue
            assert_same_bits(fused, function, shape, dtype, layout)


@pytest.mark.parametrize("function", [softmax, rectified, centred], ids=lambda function: function.__name__)
def test_thousands_of_shapes_leave_few_plans(function):
    fused, sizes = fusec.fuse(function), count(30)

    def calls():
        for size in (next(sizes) for _ in range(600)):
            fused(np.ones((3, size % 90 + 30)), np.ones((3, size % 90 + 30)))
            fused(np.ones((size % 70 + 4, 40)), np.ones((size % 70 + 4, 40)))
        gc.collect()
        return len(gc.get_objects())

    calls()
    before = calls()
    assert calls() - before < 500
    assert sum(map(len, fused._plans.values())) <= MAX_PLANS
