"""What fails among lazy arrays fails where NumPy's program fails, once for each write, and nothing else does."""

import operator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import fusec.xp as xp

CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
ERRORS = (IndexError, OverflowError, np.linalg.LinAlgError)
ONE = st.integers(0, 9)
KEYS = st.sampled_from([slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(0, 2), ...])
INDICES = st.sampled_from([[0], [1, 0], [-1], [9], [0, 9], [-9]])
BINARY = st.sampled_from([operator.add, operator.sub, np.maximum])
IN_PLACE = st.sampled_from([operator.iadd, operator.isub])


class Memory:
    """What several views share. lost: the writes to it, or to what it was computed from, that have failed."""

    def __init__(self, lost=()):
        self.lost = {*lost}


class Lost:
    """A write that has failed. state: "unseen" before its error is raised, "seen" behind it, or "unclear"."""

    def __init__(self, state):
        self.state = state


class Pair:
    """A lazy array, and NumPy's; None if NumPy has none, since what makes it has failed.

    by_number: whether a number has failed, which nobody notices if all elements are written again.
    """

    def __init__(self, ours, theirs, memory, by_number=False):
        self.ours, self.theirs, self.memory, self.by_number = ours, theirs, memory, by_number

    @property
    def lost(self):
        return {each for each in self.memory.lost if each.state != "seen"}


class Failures(RuleBasedStateMachine):
    """Operations that fail and others, on arrays that share memory or depend on each other."""

    @initialize(computed=st.booleans())
    def begin(self, computed):
        own = np.arange(1.0, 7.0)
        pending = xp.asarray(own.copy()) if computed else xp.asarray(own - 1) + 1
        self.pairs = [Pair(pending, own, Memory()), Pair(xp.zeros(6), np.zeros(6), Memory())]

    def pick(self, place):
        return self.pairs[place % len(self.pairs)]

    def record(self, function, *operands):
        """Record a step, or run it; an evaluation before it may raise the errors of writes that failed."""
        lost = {found for each in operands for found in each.lost}
        for _ in range(len(lost) + 1):
            try:
                return function(*(each.ours for each in operands))
            except OverflowError:
                raise
            except ERRORS:
                assert lost
                for each in lost:
                    each.state = "unclear"
        raise AssertionError("more errors than failed writes")

    def make(self, function, *operands, fails=False, by_number=False):
        """Add what a function makes of arrays, in memory of its own."""
        lost = [found for each in operands for found in each.memory.lost]
        try:
            ours = self.record(function, *operands)
        except OverflowError:  # steps that are traced refuse numbers that others fail with
            assert by_number
            return
        fails = fails or by_number or any(each.theirs is None for each in operands)
        theirs = None if fails else function(*(each.theirs for each in operands))
        by_number = by_number or any(each.by_number for each in operands)
        self.pairs.append(Pair(ours, theirs, Memory(lost), by_number))

    def write_with(self, function, target, *operands, fails=False, by_number=False):
        """Have a function write an array that NumPy has."""
        if target.theirs is None:
            return
        try:
            self.record(function, target, *operands)
        except OverflowError:
            assert by_number
            return
        by_number = by_number or any(each.by_number for each in operands)
        if fails or by_number or any(each.theirs is None for each in operands):
            target.memory.lost.add(Lost("unclear" if by_number else "unseen"))
        else:
            function(target.theirs, *(each.theirs for each in operands))
        target.memory.lost.update(found for each in operands for found in each.memory.lost)

    @rule(op=BINARY, one=ONE, other=ONE)
    def combine(self, op, one, other):
        one, other = self.pick(one), self.pick(other)
        if one.ours.shape == other.ours.shape:
            self.make(op, one, other)

    @rule(one=ONE, number=st.sampled_from([2, 0.5, 10**400]))
    def with_number(self, one, number):
        self.make(lambda x: x * number, self.pick(one), by_number=number == 10**400)

    @rule(one=ONE)
    def total(self, one):
        self.make(lambda x: x + x.sum(), self.pick(one))

    @rule(key=KEYS, one=ONE)
    def view(self, key, one):
        one = self.pick(one)
        self.pairs.append(
            Pair(one.ours[key], None if one.theirs is None else one.theirs[key], one.memory, one.by_number)
        )

    @rule(indices=INDICES, one=ONE)
    def gather(self, indices, one):
        one = self.pick(one)
        fails = not all(-one.ours.size <= each < one.ours.size for each in indices)
        at = {False: np.asarray(indices), True: xp.asarray(indices)}
        self.make(lambda x: x[at[x is one.ours]], one, fails=fails)

    @rule(one=ONE, is_singular=st.booleans())
    def invert(self, one, is_singular):
        factor = 0 if is_singular else np.eye(2) + 1
        self.make(
            lambda x: x * np.linalg.inv(np.ones((2, 2)) * x[0] * 0 + factor).sum(), self.pick(one), fails=is_singular
        )

    @rule(indices=INDICES, one=ONE, number=st.sampled_from([5, -2.0]), is_sum=st.booleans())
    def write_chosen(self, indices, one, number, is_sum):
        one = self.pick(one)
        fails = not all(-one.ours.size <= each < one.ours.size for each in indices)
        at = {False: np.asarray(indices), True: xp.asarray(indices)}

        def change(x):
            if is_sum:
                x[at[x is one.ours]] += number
            else:
                x[at[x is one.ours]] = number

        self.write_with(change, one, fails=fails)

    @rule(key=KEYS, one=ONE, number=st.sampled_from([0, 7]))
    def write_number(self, key, one, number):
        self.write_with(lambda x: operator.setitem(x, key, number), self.pick(one))

    @rule(at=st.integers(-6, 5), one=ONE, other=ONE)
    def write_element(self, at, one, other):
        one, other = self.pick(one), self.pick(other)
        if -one.ours.size <= at < one.ours.size:
            self.write_with(lambda x, y: operator.setitem(x, at, y[0]), one, other)

    @rule(one=ONE, other=ONE)
    def write(self, one, other):
        one, other = self.pick(one), self.pick(other)
        if one.ours.shape == other.ours.shape:
            self.write_with(lambda x, y: operator.setitem(x, ..., y), one, other)

    @rule(op=IN_PLACE, one=ONE, other=ONE)
    def in_place(self, op, one, other):
        one, other = self.pick(one), self.pick(other)
        if one.ours.shape == other.ours.shape:
            self.write_with(op, one, other)

    @rule(one=ONE)
    def add_too_large_a_number(self, one):
        self.write_with(lambda x: operator.iadd(x, 10**400), self.pick(one), by_number=True)

    @rule(one=ONE, other=ONE)
    def compute(self, one, other):
        pairs = [self.pick(one), self.pick(other)]
        try:
            xp.compute(*(each.ours for each in pairs))
        except ERRORS:
            assert any(each.theirs is None or each.lost for each in pairs)
            for each in pairs:
                self.blur(each)
        else:
            assert not any(each.theirs is None or is_unseen(each) for each in pairs)

    def blur(self, pair):
        """An error was raised, which may have been that of any lost write."""
        for each in pair.lost:
            each.state = "unclear"

    @rule(one=ONE)
    def look(self, one):
        self.check(self.pick(one))

    def check(self, pair):
        """An array raises its errors, and then has NumPy's elements, unless NumPy has none."""
        if pair.theirs is None:
            with pytest.raises(ERRORS):
                np.asarray(pair.ours)
            self.blur(pair)
            return
        lost, raised = pair.lost, 0
        must_raise = is_unseen(pair)
        while True:
            try:
                found = np.asarray(pair.ours)
                break
            except ERRORS:
                raised += 1
                assert raised <= len(lost)
        assert raised or not must_raise
        for each in lost:
            each.state = "seen"
        np.testing.assert_array_equal(found, pair.theirs)

    @rule(one=ONE)
    def drop(self, one):
        if len(self.pairs) > 1:
            del self.pairs[one % len(self.pairs)]

    def teardown(self):
        for each in getattr(self, "pairs", ()):
            self.check(each)


def is_unseen(pair):
    """Whether an array depends on a lost write whose error was not raised."""
    return any(each.state == "unseen" for each in pair.lost)


TestFailures = pytest.mark.filterwarnings("ignore")(Failures.TestCase)
TestFailures.settings = settings(
    max_examples=int(__import__("os").environ.get("NEX", "40")), stateful_step_count=25, **CALM
)
