"""Methods of classes that are fused: calls, verbs, and plans that all objects share."""

import functools
import pickle

import numpy as np
import pytest

import fusec


class Model:
    def __init__(self, weight=2.0, rate=0.5):
        self.weight, self.rate = np.full(3, weight), rate

    @fusec.fuse
    def step(self, x, scale=1.0):
        """One step."""
        return self.weight * x * scale + self.rate


def wanted(model, x, scale=1.0):
    return model.weight * x * scale + model.rate


def test_a_bound_method_has_the_verbs_of_the_function():
    model, x = Model(), np.arange(3.0)
    step = model.step
    assert dict(step.explain(x).lines)["kernels"] == "1"
    text = step.source("cuda", x)
    assert "step" in text
    assert "__global__" in text
    assert step.source("cuda", types={"x": "float64"}, shape=3).count("__global__") == 1
    assert step.source("cuda", {"x": "float64"}, shape=3).count("__global__") == 1
    np.testing.assert_array_equal(fusec.simulate(step)(x), wanted(model, x))
    np.testing.assert_array_equal(step(x, scale=2.0), wanted(model, x, 2.0))
    assert (step.name, step.params, step.__name__, step.__doc__) == ("step", ("x", "scale"), "step", "One step.")
    assert step.cached_codes
    assert {"explain", "source", "clear_cache", "params"} <= set(dir(step))
    assert step.__self__ is model
    assert step.__func__ is Model.step
    step.clear_cache()
    assert not Model.step._plans
    with pytest.raises(AttributeError):
        step.unknown  # noqa: B018


def test_bound_methods_are_equal_if_their_objects_are_the_same():
    one, other = Model(), Model()
    assert one.step == one.step
    assert hash(one.step) == hash(one.step)
    assert one.step != other.step
    assert isinstance(one.step, functools.partial)
    again = pickle.loads(pickle.dumps(one.step))
    np.testing.assert_array_equal(again(np.ones(3)), one.step(np.ones(3)))


def test_a_bound_method_is_an_argument_and_is_read_from_outside():
    model, x = Model(), np.arange(3.0)
    step = model.step
    inner = fusec.fuse(lambda function, x: function(x) + step(x))
    for weight in (1.0, 2.0):
        model.weight = np.full(3, weight)
        np.testing.assert_array_equal(inner(step, x), 2 * wanted(model, x))


def test_all_objects_of_a_class_share_one_plan():
    Model.step.clear_cache()
    x = np.arange(3.0)
    models = [Model(weight) for weight in range(100)]
    for rate in (0.5, 0.25, 0.125):
        for model in models:
            model.rate = rate
            np.testing.assert_array_equal(model.step(x), wanted(model, x))
    assert sum(map(len, Model.step._plans.values())) <= 2  # one with the rate as a number of the trace
