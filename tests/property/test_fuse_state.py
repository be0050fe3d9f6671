"""Nothing old: a fused function gives what the function gives, whatever its caller changes between calls."""

import dataclasses
import importlib.util
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import fusec

CALM = {"deadline": None, "suppress_health_check": list(HealthCheck)}
NAMES = sys.modules[__name__]
LENGTH = 5
SCALE, WEIGHT, TABLE, SETTINGS = (
    2.0,
    np.ones(LENGTH),
    [1, 2.5],
    SimpleNamespace(shift=1.0, inner={"w": np.ones(LENGTH)}),
)

numbers = st.one_of(
    st.sampled_from([0, 1, -3, 0.0, -0.0, 2.5, np.float32(1.5), np.int8(7), np.float64(-2)]), st.integers(-9, 9)
)
vectors = st.builds(
    lambda dtype, values, step: np.array(values[:LENGTH] * 2, dtype)[::step][:LENGTH],
    st.sampled_from(["float64", "float32", "int64", "int16"]),
    st.lists(st.integers(-8, 8), min_size=LENGTH, max_size=LENGTH),
    st.sampled_from([1, 2, -1]),
)


class Series:
    """What pandas has: an object that gives an array."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


@dataclasses.dataclass
class Record:
    weight: object
    count: object = 1


class Model:
    unit = 1.0

    def __init__(self, weight):
        self.weight, self.bias, self.parts, self.steps = weight, 0.5, [Record(weight)], 0

    @property
    def doubled(self):
        return self.weight * 2

    def own(self, x):
        return x * self.unit + getattr(self, "extra", 0)

    def run(self, x):
        self.steps += 1
        for part in self.parts:
            x = x + part.weight * part.count
        return self.own(x) * self.weight + self.bias + self.doubled, self.steps


def outside(x):
    made = np.arange(LENGTH) * 1.0
    first = x + made
    made += 1
    return (
        first * SCALE + WEIGHT,
        made,
        TABLE[0] * x,
        x.sum() * TABLE[-1],
        SETTINGS.inner["w"] * SETTINGS.shift,
        [1, {"a": 2}],
    )


def written(x, y):
    x[1:] += y[:-1]
    y *= 2
    return x, x * y, np.full_like(x, 3), x[::-1]


def closed(cell, weights):
    def run(x, series):
        return x * cell["scale"] + sum(weight.sum() for weight in weights), series * x, np.exp2(weights[0])

    return run


def copy_of(value):
    return value.copy() if isinstance(value, np.ndarray) else value


def agree(ours, theirs):
    """Both have the same structure, types and bits."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            agree(one, other)
    elif isinstance(theirs, (np.ndarray, np.generic)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


def spoil(result):
    """Change all that a caller can change in a result."""
    for each in result if isinstance(result, (tuple, list)) else ():
        spoil(each)
        if isinstance(each, np.ndarray) and each.flags.writeable:
            each.fill(7)
        elif isinstance(each, dict):
            each["b"] = 1
    if isinstance(result, list):
        result.append("spoilt")


class Callers(RuleBasedStateMachine):
    """Every rule changes something that the functions are given or read; then each is called both ways."""

    @initialize(weight=vectors)
    def begin(self, weight):
        NAMES.SCALE, NAMES.WEIGHT, TABLE[:], Model.unit = 2.0, np.ones(LENGTH), [1, 2.5], 1.0
        NAMES.SETTINGS = SimpleNamespace(shift=1.0, inner={"w": np.ones(LENGTH)})
        self.model, self.plain = Model(weight.copy()), Model(weight.copy())
        self.cell, self.weights = {"scale": 1.0}, [weight.copy()]
        self.x, self.y, self.series = np.arange(LENGTH) * 0.5, np.ones(LENGTH), Series(np.ones(LENGTH))
        self.written, self.run = fusec.fuse(written), fusec.fuse(Model.run)
        run = closed(self.cell, self.weights)
        self.functions = [(outside, fusec.fuse(outside), False), (run, fusec.fuse(run), True)]

    def both(self, change):
        for model in (self.model, self.plain):
            change(model)

    @rule(value=numbers)
    def set_a_name(self, value):
        NAMES.SCALE = value

    @rule(value=vectors)
    def bind_an_array(self, value):
        NAMES.WEIGHT = value

    @rule(value=numbers, at=st.integers(0, 1))
    def set_an_item(self, value, at):
        TABLE[at] = value

    @rule(value=numbers)
    def set_a_setting(self, value):
        SETTINGS.shift = value

    @rule(value=vectors)
    def exchange_settings(self, value):
        NAMES.SETTINGS = SimpleNamespace(shift=SETTINGS.shift, inner={"w": value})

    @rule(value=st.one_of(numbers, vectors), name=st.sampled_from(["bias", "extra", "unit"]))
    def set_an_attribute(self, value, name):
        self.both(lambda model: setattr(model, name, copy_of(value)))

    @rule(value=numbers)
    def set_an_attribute_of_the_class(self, value):
        Model.unit = value

    @rule(value=vectors)
    def bind_the_weight(self, value):
        self.both(lambda model: setattr(model, "weight", value.copy()))

    @rule(value=numbers, at=st.integers(0, LENGTH - 1))
    def write_into_the_weight(self, value, at):
        self.both(lambda model: model.weight.__setitem__(at, int(value)))

    @rule(value=vectors, count=numbers)
    def append_a_part(self, value, count):
        self.both(lambda model: model.parts.append(Record(value.copy(), count)) if len(model.parts) < 3 else None)

    @rule()
    def drop_a_part(self):
        self.both(lambda model: model.parts.pop() if model.parts else None)

    @rule(value=numbers)
    def set_what_a_closure_has(self, value):
        self.cell["scale"] = value

    @rule(value=vectors)
    def exchange_what_a_closure_has(self, value):
        self.weights[0] = value

    @rule(value=st.integers(-3, 3))
    def write_into_what_a_closure_has(self, value):
        self.weights[0][...] = value

    @rule(value=vectors)
    def exchange_the_series(self, value):
        self.series.values = value

    @rule(value=vectors)
    def exchange_the_argument(self, value):
        self.x = value.astype("float64") if value.dtype.kind == "i" else value

    @rule(other=st.sampled_from(["apart", "same", "part"]))
    def write_into_arguments(self, other):
        base = np.arange(12.0)
        for function in (written, self.written):
            memory = base.copy()
            x = memory[:8]
            y = {"apart": np.ones(8), "same": x, "part": memory[2:10]}[other]
            result = function(x, y)
            assert result[0] is x
            if function is written:
                expected, left = [copy_of(each) for each in result], memory.copy()
        agree([*result], expected)
        np.testing.assert_array_equal(memory, left)

    @invariant()
    def every_call_is_as_without(self):
        if not hasattr(self, "functions"):
            return
        for plain, fused, takes_series in self.functions:
            theirs = plain(self.x, self.series.values) if takes_series else plain(self.x)
            ours = fused(self.x, self.series) if takes_series else fused(self.x)
            agree(ours, theirs)
            spoil(ours)
        theirs, ours = self.plain.run(self.x), self.run(self.model, self.x)
        agree(ours, theirs)
        assert self.model.steps == self.plain.steps
        spoil(ours)


Callers.TestCase.settings = settings(max_examples=5, stateful_step_count=12, derandomize=True, **CALM)
test_nothing_that_a_caller_changes_is_old = Callers.TestCase


class ManyCallers(Callers):
    pass


ManyCallers.TestCase.settings = settings(max_examples=100, stateful_step_count=40, **CALM)
test_nothing_that_many_callers_change_is_old = pytest.mark.slow(ManyCallers.TestCase)


@pytest.mark.skipif(importlib.util.find_spec("pandas") is None, reason="needs pandas")
def test_frames_are_read_at_every_call():
    pandas = __import__("pandas")
    frame, series = pandas.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}), pandas.Series([1.0, 2.0])
    run = fusec.fuse(lambda f: (f * 2 - f, f.sum(axis=0)))
    holder = fusec.fuse(lambda h, x: x * h.series)
    for step in range(4):
        expected = frame.to_numpy().copy(), frame.to_numpy().sum(axis=0)
        agree(run(frame), expected)
        agree(holder(SimpleNamespace(series=series), np.ones(2)), series.to_numpy() * 1.0)
        frame.loc[0, "a"], series = step * 2.0, series + 1


def _steps(x, y, n):
    """Several kernels, writes in place, totals, and a number."""
    for k in range(3):
        x = x - x.mean() * 0.1 + k
    y[1:] += y[:-1] * n
    y *= 2
    return x, (x * y).sum(), y[::2] + n


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (1000,), (40, 30)])
def test_native_sequences_give_the_bits_of_kernels_called_one_by_one(shape):
    fused, rng = fusec.fuse(_steps), np.random.default_rng(1)
    kept = []
    for n in (2.0, 3.0, 2.5, 0.5, np.float32(1.5), 4.0):
        x, y = rng.normal(size=shape), rng.normal(size=shape)
        mine = y.copy()
        expected = fusec.fuse(_steps)(x, y, n)  # a first call, whose kernels are called one by one
        found = fused(x, mine, n)
        kept.append((found, [np.array(each) for each in found]))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(mine, y)
    for results, copies in kept:  # no call writes results of another
        for one, other in zip(results, copies, strict=True):
            np.testing.assert_array_equal(one, other)
    assert shape == (1,) or any(plan.native for plans in fused._plans.values() for plan in plans)


def _with_calls(x, y, n):
    """Kernels before, between and after calls of a library, which share views, numbers and what they write."""
    rows = (x - x.mean(axis=0)) / (1 + x.var(axis=0))
    turned, part = rows.T, y[1:, ::-1]
    part += part.sum(axis=0) * n
    made = np.matmul(turned, y[:, ::-1])
    made += made.mean() + n
    ends = np.sort(made, axis=-1)[:, ::2] - made.sum()
    y *= 2
    return ends, ends.max(axis=0), np.matmul(part.T, part), rows[::2], (part.sum(axis=0) + n).std()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (40, 6)])
@pytest.mark.sampled(3)
def test_kernels_between_calls_of_libraries_give_the_bits_of_kernels_called_one_by_one(shape, order):
    fused, rng = fusec.fuse(_with_calls), np.random.default_rng(2)
    kept = []
    for call, n in enumerate((2.0, 3.0, 2.5, np.float32(1.5), 4.0, 0.25)):
        x, y = (np.array(rng.normal(size=shape), order=order) for _ in range(2))
        if call == 4:  # not aligned: kernel after kernel
            x = np.frombuffer(b" " + x.tobytes(order), np.float64, offset=1).reshape(shape, order=order)
        mine, plain = y.copy(order), y.copy(order)
        expected = fusec.fuse(_with_calls)(x, y, n)
        found = fused(x, mine, n)
        kept.append((found, [np.array(each) for each in found]))
        for one, other, third in zip(found, expected, _with_calls(x, plain, n), strict=True):
            np.testing.assert_array_equal(one, other)
            np.testing.assert_allclose(one, third, 1e-9, 1e-9)
            assert np.asarray(one).strides == np.asarray(other).strides
        np.testing.assert_array_equal(mine, y)
    for results, copies in kept:
        for one, other in zip(results, copies, strict=True):
            np.testing.assert_array_equal(one, other)
    assert any(plan.native for plans in fused._plans.values() for plan in plans)


def test_arrays_that_cannot_be_written_are_refused_by_native_sequences_too():
    def function(a):
        a += a.sum()
        return np.roll(a, 1).sum(axis=0) + a

    fused = fusec.fuse(function)
    for _ in range(4):
        fused(np.ones(512))
    fixed = np.ones(512)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match=r"read-only|written"):
        fused(fixed)
    assert (fixed == 1).all()
