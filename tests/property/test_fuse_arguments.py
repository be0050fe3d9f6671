"""Calls with nested arguments: the quick key is the key, and no call takes the plan of another kind."""

from collections import OrderedDict, namedtuple
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from fusec.fusion.arguments import CallArguments
from fusec.fusion.quick_arguments import QuickArguments

Pair = namedtuple("Pair", ["first", "second"])


class Settings:
    def __init__(self, rate):
        self.rate = rate


OWN = Settings(2.0)
ARRAYS = [np.ones(3), np.ones((2, 3)).T, np.arange(4)[::2], np.float32([[1]]), np.ones(()), np.zeros((0, 2), "c8")]
LEAVES = st.one_of(
    st.sampled_from(ARRAYS),
    st.sampled_from([1, -2.5, 0.0, -0.0, 1j, True, None, "a", b"a", np.float32(1), np.int8(2), np.True_, 10**30]),
    st.sampled_from([np, fusec.xp, np.exp, np.sum, np.linspace, len, np.float32, np.dtype("f4"), int]),
    st.sampled_from([OWN, Settings, ModuleType("settings"), lambda x: x + 1]),
)
NAMES = st.text("abc", min_size=1, max_size=2)
NESTED = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(NAMES, inner, max_size=3),
        st.dictionaries(NAMES, inner, max_size=3).map(OrderedDict),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(NESTED, max_size=3), st.dictionaries(NAMES, NESTED, max_size=2), st.frozensets(st.integers(0, 5)))
def test_the_quick_key_is_the_key(args, options, values):
    slow = CallArguments(tuple(args), options, {Settings})
    quick = QuickArguments({Settings}, slow.constants)
    assert quick.take(args, options)
    assert quick.whole(values) == slow.key(values)
    for mine, wanted in ((quick.flat, slow.flat), (quick.objects, slow.objects)):
        assert len(mine) == len(wanted)
        assert all(one is other for one, other in zip(mine, wanted, strict=True))


def total(value):
    """A function of whatever it is given; named tuples, lists and dictionaries count differently."""
    if isinstance(value, dict):
        return sum((total(each) * (at + len(name)) for at, (name, each) in enumerate(value.items())), 0.5)
    if isinstance(value, Pair):
        return total(value.first) - total(value.second)
    if isinstance(value, (list, tuple)):
        return sum(map(total, value), len(value) * (2 if isinstance(value, list) else 3))
    if isinstance(value, (str, bytes, bool, type(None))):
        return len(repr(value))
    return value.rate if isinstance(value, Settings) else value * 2


SAME = st.recursive(
    st.sampled_from([np.arange(3.0), np.arange(3), np.ones(1), np.arange(6.0)[::2], 2, 2.0, True, "ab", OWN]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.lists(inner, max_size=2).map(tuple), st.dictionaries(NAMES, inner, max_size=2),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=4,
)  # fmt: skip
FUSED = fusec.fuse(lambda args: shape_of(args))


def shape_of(args):
    return [total(each) + np.zeros(1) for each in args]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(SAME, max_size=2), min_size=1, max_size=4))
def test_no_call_takes_the_plan_of_another_kind(calls):
    for args in [*calls, *calls]:
        for mine, wanted in zip(FUSED(args), shape_of(args), strict=True):
            np.testing.assert_array_equal(mine, wanted)
            assert mine.dtype == wanted.dtype


def test_nested_arguments_that_change_between_calls():
    @fusec.fuse
    def step(params, grads, *, rate):
        for name, each in params.items():
            each -= rate * grads[name]
        return [each * 2 for each in params.values()], {"rate": rate}

    def wanted(params, grads, rate):
        for name in params:
            params[name] = params[name] - rate * grads[name]
        return [each * 2 for each in params.values()]

    names = ["w", "b"]
    params = {name: np.arange(4.0) for name in names}
    theirs = {name: each.copy() for name, each in params.items()}
    for rate in (1, 0.5, 0.25, 0.125):
        grads = {name: np.full(4, rate) for name in names}
        mine, rest = step(params, grads, rate=rate)
        for one, other in zip(mine, wanted(theirs, grads, rate), strict=True):
            np.testing.assert_array_equal(one, other)
        assert rest == {"rate": rate}
    same = np.arange(4.0)
    step({"w": same, "b": same}, {"w": np.ones(4), "b": np.ones(4)}, rate=1.0)  # one array twice
    np.testing.assert_array_equal(same, np.arange(4.0) - 2)
    step({"b": params["b"], "w": params["w"]}, {"w": np.ones(4), "b": np.zeros(4)}, rate=1.0)  # another order
    np.testing.assert_array_equal(params["b"], theirs["b"])
    np.testing.assert_array_equal(params["w"], theirs["w"] - 1)
    with pytest.raises(KeyError):
        step({"w": same}, {"b": same}, rate=1.0)


def test_repeated_calls_with_nested_arguments_are_not_read_item_by_item(monkeypatch):
    fused = fusec.fuse(lambda params, pair, *, rate: [pair.first * each - rate for each in params["all"]])
    params, pair = {"all": [np.ones(3), np.ones(4)], "name": "x"}, Pair(2.0, None)
    fused(params, pair, rate=1)
    monkeypatch.setattr(CallArguments, "_taken", None)
    for rate in (2, 3):
        first, second = fused(params, pair, rate=rate)
        np.testing.assert_array_equal(first, np.full(3, 2.0 - rate))
        assert second.shape == (4,)


def test_a_number_computed_twice_is_one_number():
    fused = fusec.fuse(lambda xs, t: [x / (1 - 0.9**t) + (1 - 0.9**t) for x in xs])
    xs = [np.ones(3)] * 4
    for t in (1, 2, 3):
        for each in fused(xs, t):
            np.testing.assert_array_equal(each, xs[0] / (1 - 0.9**t) + (1 - 0.9**t))
    (plan,) = [plan for plans in fused._plans.values() for plan in plans]
    assert len(plan.numbers) == 2
