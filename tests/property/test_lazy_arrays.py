"""Lazy arrays are NumPy's: whatever is written, viewed, dropped or looked at in between."""

import gc
import operator
from random import Random
from weakref import ref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import fusec.xp as xp
from fusec.xp.recording import MAX_STEPS
from tests.property.array_programs import arrays, drawn_from
from tests.property.test_fuse_extents import CHOSEN, ONE, TWO, composed, outcome
from tests.support.array_programs import (
    DTYPES,
    ELSEWHERE,
    FURTHER,
    INDICES,
    LAYOUTS,
    PLACES,
    STEPS,
    array_of,
    copies,
    run,
)
from tests.support.plan_rules import rules_are_compared

CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
NUMBERS = st.sampled_from([0, 1, -3, 2.5, True])
KEYS = st.sampled_from(
    [..., 0, -1, slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(0, 2), None, (slice(None), None)]
)
BINARY = st.sampled_from([operator.add, operator.sub, operator.mul, np.maximum, operator.lt])


def assert_equal(ours, theirs):
    """Compare an array with NumPy's."""
    theirs = np.asarray(theirs)
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_array_equal(np.asarray(ours), theirs)


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=60, **CALM)
@given(
    st.lists(drawn_from(STEPS + FURTHER + ELSEWHERE), min_size=1, max_size=10),
    st.lists(arrays, min_size=1),
    st.randoms(),
)
def test_programs_for_numpy_run_on_lazy_arrays(program, given_arrays, random: Random):
    theirs = run(program, copies(given_arrays))
    ours = run(program, [xp.asarray(each) for each in copies(given_arrays)])
    assert len(ours) == len(theirs)
    places = [*range(len(ours))]
    random.shuffle(places)  # what is looked at first computes what belongs to it
    for place in places:
        assert_equal(ours[place], theirs[place])


class Aliases(RuleBasedStateMachine):
    """Views, writes and reads in any order, on arrays that share memory or depend on each other."""

    @initialize(shape=st.sampled_from([(4,), (3, 4), (4, 1), (2, 0)]), dtype=st.sampled_from(["f8", "i8", "f4"]))
    def begin(self, shape, dtype):
        self.theirs = [np.arange(np.prod(shape)).reshape(shape).astype(dtype), np.ones(shape, dtype)]
        self.ours = [xp.asarray(each, copy=True) for each in self.theirs]

    def pick(self, place):
        return self.ours[place % len(self.ours)], self.theirs[place % len(self.theirs)]

    def both(self, function, *places):
        """Apply a function to arrays of both kinds; errors come to both."""
        picked = [self.pick(place) for place in places]
        found = []
        for side in range(2):
            try:
                found.append(function(*(each[side] for each in picked)))
            except (TypeError, ValueError, IndexError) as error:
                found.append(error)
        assert isinstance(found[0], Exception) == isinstance(found[1], Exception), found
        return found

    def add(self, found):
        if not isinstance(found[0], Exception):
            self.ours.append(found[0])
            self.theirs.append(np.asarray(found[1]))

    @rule(op=BINARY, one=st.integers(0, 9), other=st.integers(0, 9))
    def combine(self, op, one, other):
        self.add(self.both(op, one, other))

    @rule(op=BINARY, one=st.integers(0, 9), number=NUMBERS)
    def with_number(self, op, one, number):
        self.add(self.both(lambda x: op(x, number), one))

    @rule(key=KEYS, one=st.integers(0, 9))
    def view(self, key, one):
        self.add(self.both(lambda x: x[key] if x.ndim else x[...], one))

    @rule(one=st.integers(0, 9))
    def transposed(self, one):
        self.add(self.both(lambda x: x.T, one))

    @rule(one=st.integers(0, 9))
    def total(self, one):
        self.add(self.both(lambda x: x.max(axis=0, keepdims=True) if x.size else x, one))

    @rule(key=KEYS, one=st.integers(0, 9), number=st.sampled_from([0, 5, -2]))
    def write_number(self, key, one, number):
        if self.pick(one)[1].ndim:
            self.both(lambda x: x.__setitem__(key, number), one)

    @rule(key=KEYS, one=st.integers(0, 9), other=st.integers(0, 9))
    def write(self, key, one, other):
        if self.pick(one)[1].ndim and np.can_cast(self.pick(other)[1].dtype, self.pick(one)[1].dtype):
            self.both(lambda x, y: x.__setitem__(key, y), one, other)

    @rule(op=st.sampled_from([operator.iadd, operator.imul]), one=st.integers(0, 9), other=st.integers(0, 9))
    def in_place(self, op, one, other):
        (_, theirs), (_, value) = self.pick(one), self.pick(other)
        if theirs.ndim and np.result_type(theirs, value) == theirs.dtype:
            self.both(op, one, other)

    @rule(one=st.integers(0, 9))
    def masked(self, one):
        if self.pick(one)[1].ndim:
            self.both(lambda x: x.__setitem__(x > 2, 1), one)

    @rule(one=st.integers(0, 9))
    def look(self, one):
        assert_equal(*self.pick(one))

    @rule(one=st.integers(0, 9))
    def drop(self, one):
        if len(self.ours) > 1:
            del self.ours[one % len(self.ours)], self.theirs[one % len(self.theirs)]

    @invariant()
    def forms_are_known(self):
        for ours, theirs in zip(getattr(self, "ours", ()), getattr(self, "theirs", ()), strict=True):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)

    def teardown(self):
        for ours, theirs in zip(getattr(self, "ours", ()), getattr(self, "theirs", ()), strict=True):
            assert_equal(ours, theirs)


TestAliases = pytest.mark.filterwarnings("ignore")(Aliases.TestCase)
TestAliases.settings = settings(max_examples=40, stateful_step_count=20, **CALM)


@settings(max_examples=5, **CALM)
@given(st.integers(1, 3 * MAX_STEPS), st.integers(1, 5))
def test_chains_of_any_length(steps, size):
    ours, theirs = xp.asarray(np.arange(size)), np.arange(size)
    for step in range(steps):
        ours, theirs = (ours + step, theirs + step) if step % 3 else (ours * 3 % 1001, theirs * 3 % 1001)
    assert_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=25, **CALM)
@given(CHOSEN, st.one_of(ONE, TWO), st.booleans())
def test_programs_run_on_arrays_of_any_extents(names, calls, alike):
    check_extents(names, calls, alike)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_later_steps_hold_where_those_before_them_do():
    check_extents(["parts", "square", "first half"], [((n, m), (n, m)) for n, m in [(33, 20), (5, 7), (12, 18)]], True)


def test_traces_behind_rules_of_others_say_what_must_be_true_for_them():
    def joined(library, one, other, is_longer):
        twice, thrice = library.concat([one, one]), library.concat([other, other, other])
        both = library.concat([twice, thrice])
        return thrice * 2 if is_longer else both

    for rows, columns, is_longer in ((5, 7, False), (6, 4, True), (10, 7, True)):  # 2 * 6 and 3 * 4 are equal
        arrays = np.arange(float(rows)), np.arange(float(columns))
        found = joined(xp, *map(xp.asarray, arrays), is_longer)
        wanted = joined(np, *arrays, is_longer)
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(np.asarray(found / found.shape[0]), wanted / wanted.shape[0])


def test_refused_steps_are_counted_among_kinds(monkeypatch):
    monkeypatch.setattr("fusec.xp.trie.MAX_NODES", 50)
    kept = []
    for _ in range(400):
        added = lambda each: each + 1  # noqa: E731
        kept.append(ref(added))
        assert np.asarray(np.frompyfunc(added, 1, 1)(xp.asarray([1.0]) + 1)).tolist() == [3.0]
    del added
    gc.collect()
    assert sum(each() is not None for each in kept) < 150


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=1000, **CALM)
@given(CHOSEN, st.one_of(ONE, TWO), st.booleans())
def test_many_programs_run_on_arrays_of_any_extents(names, calls, alike):
    check_extents(names, calls, alike)


def check_extents(names, calls, alike):
    """Run blocks in a row, of which each takes what the one before makes, on arrays of all shapes."""
    function = composed(names)
    with rules_are_compared():
        for seed, (one, other) in enumerate(calls):
            rng = np.random.default_rng(seed)
            given_arrays = [
                np.round(rng.normal(size=[each + 1 for each in shape]), 2)[tuple(slice(each) for each in shape)]
                for shape in (one, one if alike else other)
            ]  # with gaps
            if seed % 4 > 1:
                given_arrays = [np.ascontiguousarray(each) for each in given_arrays]
            own = copies(given_arrays)
            wanted = outcome(function, given_arrays)
            found = outcome(lambda *each: np.asarray(function(*each)), [xp.asarray(each) for each in own])
            if wanted is None and "chosen" in names[:-1]:
                continue  # an index that is out of range is not noticed if nobody needs the element
            assert (found is None) == (wanted is None), (one, other)
            if found is not None:
                for ours, theirs in zip((found[0], *found[1]), (wanted[0], *wanted[1]), strict=True):
                    ours = np.asarray(ours)
                    assert (ours.shape, ours.dtype) == (np.shape(theirs), theirs.dtype), (one, other)
                    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12, err_msg=f"{one}, {other}")


LONG = (1025, 65537)  # lengths that do not divide into vectors, chunks or threads
KEEPING_LENGTHS = [
    each
    for each in (*STEPS, *FURTHER, *ELSEWHERE)
    if each[0] not in ("index", "assign", "product", "windows", "repeat")
]  # without steps that combine a long axis with another one
PARTS = tuple(each for each in INDICES if len(each) < 2 and None not in each)
KEEPING_LENGTHS += [("index", PARTS, PLACES), ("assign", PARTS, PLACES, PLACES)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("length", LONG)
@settings(max_examples=8, **CALM)
@given(
    st.lists(drawn_from(tuple(KEEPING_LENGTHS)), min_size=2, max_size=6),
    st.lists(st.tuples(st.sampled_from(DTYPES), st.sampled_from(LAYOUTS), st.integers(0, 99)), min_size=1, max_size=3),
)
def test_long_arrays_have_the_bits_of_eager_mode(length, program, drawn):
    given_arrays = [array_of((length,), *each) for each in drawn]
    ours = run(program, [xp.asarray(each) for each in copies(given_arrays)])
    with xp.eager():
        theirs = run(program, [xp.asarray(each) for each in copies(given_arrays)])
    for lazy, eager in zip(ours, theirs, strict=True):
        assert_equal(lazy, eager)
        for each in (np.real, np.imag):
            np.testing.assert_array_equal(signs(each(np.asarray(lazy))), signs(each(np.asarray(eager))))


def signs(array):
    """Which elements are negative, -0.0 included, and NaN excluded."""
    return np.signbit(array) & ~np.isnan(array) if array.dtype.kind == "f" else array < 0
