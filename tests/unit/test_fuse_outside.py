"""What fused functions read from outside is what it is now: names, attributes, items, and results made anew."""

import abc
import array
import dataclasses
import enum
import functools
import gc
import random
import re
import sys
import weakref
from collections import namedtuple
from types import ModuleType, SimpleNamespace
from typing import Generic, TypeVar

import numpy as np
import pytest
from numpy.random import default_rng, rand

import fusec
from fusec.errors import FusecError, FusecTypeError

X = np.arange(4.0)


def plans(function):
    return sum(map(len, function._plans.values()))


def same(ours, theirs):
    """Whether two results are of one type, dtype and content."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, (tuple, list)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return np.array_equal(ours, theirs) and getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)


def agrees(function, arguments, changes):
    """Whether the fused function gives what the function gives, before and after each change of what it reads."""
    fused = fusec.fuse(function)
    for change in (lambda: None, *changes, lambda: None):
        change()
        if not same(fused(*arguments), function(*arguments)):
            return False
    return True


# --- objects ---------------------------------------------------------------------------------------------------------


class Base:
    scale = 2.0

    def run(self, x):
        return x * self.scale * FACTOR


class Model(Base):
    table = np.ones(4)

    def __init__(self):
        self.weight, self.bias, self.axis = np.ones(4), 1.0, 0

    @property
    def doubled(self):
        return self.weight * 2

    @classmethod
    def row(cls):
        return cls.table

    @staticmethod
    def shifted(x):
        return x + FACTOR

    def run(self, x):
        y = super().run(x) + self.row() + Model.table + self.shifted(x) + self.doubled
        y = y + self.extra if hasattr(self, "extra") else y
        return y * self.weight + self.bias, (x * self.weight).sum(axis=self.axis)


@pytest.fixture
def restored(monkeypatch):
    for name in ("FACTOR", "WEIGHT", "LIST", "CONFIG", "helper"):
        monkeypatch.setattr(sys.modules[__name__], name, globals()[name])
    monkeypatch.setattr(Base, "scale", 2.0)
    monkeypatch.setattr(Model, "table", Model.table)


@pytest.mark.usefixtures("restored")
def test_attributes_of_objects_and_classes_are_read_at_every_call():
    model = Model()

    def rebind():
        global FACTOR
        FACTOR = 5.0

    def set_class(name, value):
        return lambda: setattr(Model if name == "table" else Base, name, value)

    changes = [
        *(lambda name=name, value=value: setattr(model, name, value) for name, value in (
            ("bias", 2.0), ("bias", 3.0), ("bias", np.float32(3)), ("weight", X * 2), ("extra", 5), ("axis", None),
            ("extra", X[::-1]), ("weight", X.astype("float32")), ("scale", 7.0), ("bias", -0.0)
        )),
        lambda: model.weight.fill(9), set_class("table", X), set_class("scale", 4.0), rebind,
    ]  # fmt: skip
    assert agrees(Model.run, (model, X), changes)
    assert agrees(model.run, (X,), changes)


def test_numbers_that_change_are_passed_by_value_from_then_on():
    @fusec.fuse
    def scaled(model, x):
        return x * model.rate

    model = SimpleNamespace(rate=1.0)
    for model.rate in np.linspace(0, 1, 20).tolist():
        assert same(scaled(model, X), X * model.rate)
    assert plans(scaled) == 2


def test_instances_are_not_kept_and_share_a_plan():
    class Holder:
        def __init__(self, value):
            self.weight = np.full(4, value)

        @fusec.fuse
        def run(self, x):
            return x * self.weight

    kept = []
    for value in range(20):
        holder = Holder(float(value))
        assert same(holder.run(X), X * value)
        kept += [weakref.ref(holder), weakref.ref(holder.weight)]
        del holder
    gc.collect()
    assert all(each() is None for each in kept)
    assert plans(Holder.run) == 1


@pytest.mark.parametrize(
    "function", [fusec.fuse(lambda x: x[1:] + x.sum()), fusec.sum, fusec.cumsum, lambda x: fusec.sum(x, axis=0)]
)
def test_arguments_are_not_kept(function):
    x = np.ones(100)
    kept = weakref.ref(x)
    for _ in range(4):
        function(x)
    del x
    gc.collect()
    assert kept() is None


@dataclasses.dataclass(frozen=True)
class Layer:
    weight: np.ndarray
    steps: int = 2


@pytest.mark.parametrize(
    "make",
    [
        lambda value: SimpleNamespace(weight=X * value, steps=value),
        lambda value: Layer(X + value, value),
        lambda value: namedtuple("Pair", "weight steps")(X - value, value),
        lambda value: type("Own", (), {"weight": X * value, "steps": value})(),
        lambda value: type("Slotted", (), {"__slots__": ("weight", "steps"), "__init__": lambda self: (
            setattr(self, "weight", X + value), setattr(self, "steps", value), None)[2]})(),
    ],
    ids=["namespace", "dataclass", "named tuple", "class", "slots"],
)  # fmt: skip
def test_objects_of_every_kind_are_arguments(make):
    def run(layers, x):
        for layer in layers:
            for _ in range(layer.steps):
                x = x + layer.weight
        return x

    fused = fusec.fuse(run)
    for values in ((1, 2), (1, 2), (3, 2), (3,), (), (1, 2)):
        layers = [make(value) for value in values]
        assert same(fused(layers, X), run(layers, X))


def test_what_an_object_is_given_is_stored_at_every_call():
    class Filter:
        def __init__(self):
            self.state, self.total, self.count = np.zeros(4), np.zeros(4), 0

        def step(self, x):
            self.count += 1
            self.total += x
            self.state = self.state * 0.5 + x
            return self.state * self.count, self.total, self

    mine, theirs, step = Filter(), Filter(), fusec.fuse(Filter.step)
    total = mine.total
    for at in range(5):
        found, expected = step(mine, X + at), theirs.step(X + at)
        assert same(found[:2], expected[:2])
        assert found[2] is mine
        assert found[1] is mine.total is total
        assert found[0] is not mine.state
        assert (mine.count, type(mine.count)) == (theirs.count, int)
        found[0][:] = -1
        assert same(mine.state, theirs.state)


def test_stand_ins_are_of_the_class():
    def run(model, x):
        known = isinstance(model, Model) and isinstance(x, np.ndarray) and model.__class__ is Model
        return x if known and type(model).scale == 2.0 and callable(model.run) else -x

    assert same(fusec.fuse(run)(Model(), X), X)


# --- names -----------------------------------------------------------------------------------------------------------

FACTOR = 2.0
WEIGHT = np.ones(4)
LIST = [1.0, np.ones(4)]
CONFIG = SimpleNamespace(scale=3.0, inner=SimpleNamespace(weight=np.ones(4)))


def helper(x):
    return x * FACTOR + WEIGHT.sum() + LIST[0]


def of_names(x):
    made = np.exp(WEIGHT) * CONFIG.scale + CONFIG.inner.weight
    return helper(x) + made * 0 + LIST[1], CONFIG.scale * x


@pytest.mark.usefixtures("restored")
def test_names_from_outside_are_what_they_are_now():
    module = sys.modules[__name__]

    def name(attribute, value):
        return lambda: setattr(module, attribute, value)

    changes = [
        name("FACTOR", 3.0), name("WEIGHT", X + 1), lambda: WEIGHT.fill(4), name("LIST", [2, X]),
        lambda: LIST.__setitem__(0, 7), lambda: LIST.append(None), lambda: setattr(CONFIG, "scale", 4),
        lambda: setattr(CONFIG, "inner", SimpleNamespace(weight=X)), name("helper", lambda x: -x * FACTOR),
        name("FACTOR", np.float32(1)), name("FACTOR", X), name("CONFIG", SimpleNamespace(scale=1, inner=CONFIG.inner)),
    ]  # fmt: skip
    assert agrees(of_names, (X,), changes)


def test_closures_defaults_and_builtins_are_what_they_are_now(monkeypatch):
    scale, weights = 1.0, [np.ones(4)]

    def run(x, weights=weights):
        return sum(weight * x for weight in weights) * scale

    def rescale(value):
        def change():
            nonlocal scale
            scale = value

        return change

    shadow = lambda: monkeypatch.setattr(sys.modules[__name__], "sum", lambda _: X, raising=False)  # noqa: E731
    changes = [rescale(2.0), rescale(3.0), rescale(X), lambda: weights.append(X), lambda: weights[0].fill(5), shadow]
    assert agrees(run, (X,), changes)


def test_names_that_the_function_binds_are_bound_at_every_call():
    count = 0

    @fusec.fuse
    def counted(x):
        nonlocal count
        count += 1
        return x * count

    for at in range(1, 6):
        assert same(counted(X), X * at)
    assert (count, type(count)) == (5, int)


def test_modules_are_read_at_every_call(monkeypatch):
    module = ModuleType("settings_of_a_test")
    exec("SCALE = 2.0\nclass C:\n    z = 1.0\ndef f(x): return x * SCALE\n", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def run(x):
        from settings_of_a_test import SCALE

        return module.f(x) + module.SCALE + module.C.z + SCALE

    changes = [lambda: setattr(module, "SCALE", 3.0), lambda: setattr(module.C, "z", 9.0)]
    assert agrees(run, (X,), changes)


def test_fused_functions_that_are_called_are_read_too():
    scale = [2.0]
    inner = fusec.fuse(lambda x: x * scale[0])
    assert agrees(lambda x: inner(x) + inner(np.ones(4)), (X,), [lambda: scale.__setitem__(0, 3.0)])


def adding(scale):
    return lambda x: x + scale


def test_functions_are_arguments():
    apply = fusec.fuse(lambda x, function: function(x))
    for scale in (1.0, 2.0, 3.0, 4.0):
        assert same(apply(X, lambda x, scale=scale: x * scale), X * scale)
        assert same(apply(X, lambda x: x + scale), X + scale)  # noqa: B023 - called at once
        assert same(apply(X, adding(scale)), X + scale)
    assert plans(apply) <= 7


def test_classes_and_modules_are_arguments():
    class Named(Generic[TypeVar("T")]):
        unit = 2.0
        made = []

        def __init_subclass__(cls):
            Named.made.append(cls)

        @classmethod
        @fusec.fuse
        def scaled(cls, x):
            return x * cls.unit

    module = ModuleType("settings_of_another_test")
    module.unit = 1.0
    pair, by_name = (Named, module), {Named: Named, "m": module}
    change = (lambda: setattr(Named, "unit", 3.0), lambda: setattr(module, "unit", 4.0))
    assert agrees(lambda x, kind: x * kind.unit, (X, Named), change)
    assert agrees(lambda x, kind: x * kind.unit, (X, module), [lambda: setattr(module, "unit", 5.0)])
    assert agrees(lambda x, kinds: x * kinds[0].unit + kinds[1].unit, (X, pair), [lambda: setattr(module, "unit", 6.0)])
    assert agrees(lambda x: x * pair[0].unit * by_name[Named].unit, (X,), [lambda: setattr(Named, "unit", 7.0)])
    for Named.unit in (1.0, 2.0, 3.0):
        assert same(Named.scaled(X), X * Named.unit)
    assert agrees(lambda x, thing: x * thing.unit, (X, Named()), [lambda: setattr(Named, "unit", 8.0)])
    assert Named.made == []


def test_classes_of_the_user_are_made_in_a_trace():
    class Point:
        unit = 2.0

        def __init__(self, x):
            self.x = x

        def length(self):
            return abs(self.x) * self.unit

    assert agrees(lambda x: Point(-x).length(), (X,), [lambda: setattr(Point, "unit", 3.0)])


# --- arrays by protocol ----------------------------------------------------------------------------------------------


class Series:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


def test_what_has_array_is_an_array_whose_values_are_read_at_every_call():
    series, holder = Series(np.ones(4)), SimpleNamespace(series=None)
    holder.series = series
    by_argument, by_attribute = fusec.fuse(lambda s, x: s * x), fusec.fuse(lambda h, x: h.series * x)
    for _ in range(3):
        assert same(by_argument(series, X), series.values * X)
        assert same(by_attribute(holder, X), series.values * X)
        series.values = series.values + 1
    with pytest.raises(ValueError, match="read-only"):
        fusec.fuse(lambda s: s.__iadd__(1))(series)


def test_arrays_that_numpy_makes_in_the_function_are_what_they_were_when_they_were_read():
    @fusec.fuse
    def run(x):
        made = np.zeros(4)
        first = x + made
        made += 1
        return first, x + made, made

    for _ in range(3):
        first, second, made = run(X)
        assert same((first, second, made), (X, X + 1, np.ones(4)))
        made += 5


def test_results_that_are_not_traced_are_made_anew():
    @fusec.fuse
    def run(x):
        return [1, 2], {"a": [3]}, {4}, np.zeros(2), x.shape

    for _ in range(3):
        found = run(X)
        assert found[:3] == ([1, 2], {"a": [3]}, {4})
        assert found[3].tolist() == [0, 0]
        found[0].append(1), found[1]["a"].clear(), found[2].add(1), found[3].fill(7)


def test_read_only_arrays_stay_as_they_are():
    add = fusec.fuse(lambda x: x.__iadd__(1))
    add(np.ones(4)), add(np.ones(4))
    frozen = np.ones(4)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        add(frozen)
    assert frozen.tolist() == [1] * 4


# --- refusals --------------------------------------------------------------------------------------------------------

GENERATOR, APPENDED = np.random.default_rng(0), []


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x * np.random.rand(4), lambda x: x * GENERATOR.normal(size=4), lambda x: x * rand(4),
        lambda x: x * random.random(), lambda x: x * default_rng(0).normal(),
    ],
)  # fmt: skip
def test_random_numbers_are_refused_with_a_hint(draw):
    with pytest.raises(FusecTypeError, match=r"fusec\.random, whose") as caught:
        fusec.fuse(draw)(X)
    assert caught.value.error.code == "F701"


def test_generators_are_refused_however_they_come():
    for given in (GENERATOR, GENERATOR.normal, np.random):
        with pytest.raises(FusecTypeError) as caught:
            fusec.fuse(lambda x, given: x)(X, given)
        assert caught.value.error.code == "F701"
    with pytest.raises(FusecTypeError, match="F701"):
        fusec.fuse(lambda x, xp: x * xp.random.rand(4))(X, np)


@pytest.mark.parametrize(
    "given", [array.array("d", [1.0]), iter([1]), memoryview(b"12"), open], ids=lambda each: type(each).__name__
)
def test_what_cannot_be_read_again_is_refused(given):
    if given is open:
        given = (each for each in ())
    with pytest.raises(FusecTypeError) as caught:
        fusec.fuse(lambda x, given: x * 2)(X, given)
    assert caught.value.error.code == "F282"
    holder = SimpleNamespace(given=given)
    with pytest.raises(FusecTypeError, match="cannot read a value of type") as caught:
        fusec.fuse(lambda x, holder: x * holder.given[0])(X, holder)
    assert caught.value.error.code == "F282"


@pytest.mark.parametrize(
    "change",
    [
        lambda given, x: given["list"].append(x), lambda given, x: given.update(y=x), lambda _, x: APPENDED.append(x),
        lambda given, x: given["list"].clear(), lambda _, x: setattr(Model, "table", x),
    ],
)  # fmt: skip
def test_changes_that_later_calls_would_not_make_are_refused(change):
    with pytest.raises(FusecTypeError) as caught:
        fusec.fuse(lambda given, x: change(given, x * 2))({"list": [X]}, X)
    assert caught.value.error.code == "F700"
    assert APPENDED == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda given, x: given.append(x), "('given')"), (lambda given, x: APPENDED.append(x), "('APPENDED')"),
        (lambda *given: given[0].append(given[1]), "('given[0]')"), (lambda given, x: inner(x), "('kept')"),
    ],
)  # fmt: skip
def test_the_error_for_a_change_names_the_changed_container(change, name):
    with pytest.raises(FusecTypeError, match=re.escape(f"changes a list {name} that is not its own")):
        fusec.fuse(change)([X], X)


def keeping():
    kept = [X]

    def keep(x):
        kept.append(x * 2)

    return keep


inner = keeping()


def test_results_that_no_call_could_make_anew_are_refused():
    for made in (lambda x: Layer(x), lambda x: iter([x]), lambda x: lambda: x):
        with pytest.raises(FusecTypeError) as caught:
            fusec.fuse(made)(X)
        assert caught.value.error.code == "F282"


# --- plans -----------------------------------------------------------------------------------------------------------


def test_the_plans_used_last_are_kept():
    double = fusec.fuse(lambda x: x * 2)
    double(np.ones(1))
    (hot,) = next(iter(double._plans.values()))
    for extent in range(2, fusec.fusion.fuse.MAX_PLANS + 40):
        double(np.ones(extent)), double(np.ones(1))
    assert 0.8 * fusec.fusion.fuse.MAX_PLANS < plans(double) <= fusec.fusion.fuse.MAX_PLANS
    assert any(hot in each for each in double._plans.values())


def test_a_repeated_call_is_a_few_python_calls():
    root = fusec.fuse(lambda x, y: np.sqrt(x * x + y * y) * FACTOR)
    for _ in range(3):
        root(X, X)
    calls = []
    sys.setprofile(lambda _, event, __: calls.append(event) if event == "call" else None)
    try:
        root(X, X)
    finally:
        sys.setprofile(None)
    assert len(calls) <= 2


def test_numbers_from_outside_that_change_are_compared_as_they_are():
    owner = SimpleNamespace(limit=5)
    x = np.array([0, 10, 250], "uint8")
    limits = [lambda limit=limit: setattr(owner, "limit", limit) for limit in (7, 256, 266, -1, 10)]
    assert agrees(lambda x: (x < owner.limit, x == owner.limit, x >= owner.limit), (x,), limits)


# --- what appears or is replaced later -------------------------------------------------------------------------------


def rated(x):
    return x * rated_by.rate


def rated_by(x):
    return x


def test_attributes_of_functions_are_read_at_every_call(monkeypatch):
    def helper(x):
        return x * getattr(helper, "rate", 1) + helper.shift

    helper.shift = 1.0
    changes = [lambda value=value: setattr(helper, "rate", value) for value in (2.0, 3.0, np.arange(4.0))]
    changes += [lambda: setattr(helper, "shift", X), lambda: delattr(helper, "rate")]
    assert agrees(lambda x: helper(x), (X,), changes)
    monkeypatch.setattr(rated_by, "rate", 2.0, raising=False)
    assert agrees(rated, (X,), [lambda value=value: setattr(rated_by, "rate", value) for value in (3.0, 4.0, 5)])


def test_a_function_that_sets_an_attribute_of_a_function_is_refused():
    def count(x):
        count.calls = 1
        return x + 1

    with pytest.raises(FusecTypeError, match="F700"):
        fusec.fuse(count)(X)


def test_names_of_globals_that_appear_later_are_found(monkeypatch):
    def setting(value):
        return lambda: monkeypatch.setitem(globals(), "LATER", value)

    changes = [setting(2.0), setting(3.0), lambda: monkeypatch.delitem(globals(), "LATER"), setting(4.0)]
    assert agrees(lambda x: x * globals().get("LATER", 1.0), (X,), changes)
    monkeypatch.undo()
    assert agrees(lambda x: x + 1 if "LATER" in globals() else x, (X,), changes)
    monkeypatch.undo()
    for read in (lambda x: x * len(globals()), lambda x: x * ("LATER" in list(globals()))):
        with pytest.raises(FusecTypeError, match="F282"):
            fusec.fuse(read)(X)


def of_class():
    class Rates:
        def __init__(self, scale=1.0):
            self.own = scale

        @property
        def scale(self):
            return 2.0

        def __call__(self, x):
            return x + self.own

        def __len__(self):
            return 3

        def method(self, x):
            return x * 5

        @staticmethod
        def static(x):
            return x * 7

        @classmethod
        def made(cls, x):
            return x * 9

    return Rates


CLASS_CHANGES = {
    "RATE": (2.0, X, "?"),
    "scale": (property(lambda self: 3.0), 4.0, property(lambda self: self.own + 1)),
    "__call__": (lambda self, x: x - self.own, lambda self, x: x * 8),
    "__len__": (lambda self: 4,),
    "method": (lambda self, x: x - 5, staticmethod(lambda x: x)),
    "static": (staticmethod(lambda x: x - 7),),
    "made": (classmethod(lambda cls, x: x - 9),),
    "__init__": (lambda self, scale=1.0: setattr(self, "own", 5.0),),
}
CLASS_READS = {
    "RATE": lambda cls, one, x: x * 2 if isinstance(getattr(cls, "RATE", 1), str) else x * getattr(cls, "RATE", 1),
    "scale": lambda cls, one, x: (x * one.scale, x * cls().scale),
    "__call__": lambda cls, one, x: (one(x), cls()(x)),
    "__len__": lambda cls, one, x: (x * len(one), x * len(cls())),
    "method": lambda cls, one, x: one.method(x),
    "static": lambda cls, one, x: (one.static(x), cls.static(x), cls().static(x)),
    "made": lambda cls, one, x: (one.made(x), cls.made(x), cls().made(x)),
    "__init__": lambda cls, one, x: x * cls().own,
}


@pytest.mark.parametrize("name", CLASS_READS)
def test_what_a_class_has_is_what_it_has_now(name):
    cls, read = of_class(), CLASS_READS[name]
    one = cls()
    fused = fusec.fuse(lambda x: read(cls, one, x))
    for change in (None, *CLASS_CHANGES[name]):
        if change is not None:
            setattr(cls, name, change)
        for _ in range(3):
            assert same(fused(X), read(cls, one, X))
        before = plans(fused)
        fused(X)
        assert plans(fused) == before


def test_an_attribute_that_a_class_gets_later_is_seen_by_hasattr():
    cls = of_class()
    assert agrees(lambda x: x + 1 if hasattr(cls, "RATE") else x, (X,), [lambda: setattr(cls, "RATE", 1)])


# --- what an exception leaves behind ----------------------------------------------------------------------------------


def failing(owner, x, y):
    owner.steps += 1
    owner.total = x.sum() * 2
    APPENDED.append(1)
    x[0] = 9
    y += x
    problem = LookupError("no such thing", x.sum())
    problem.total = x + 1
    raise problem


@pytest.mark.parametrize("is_shared", [False, True])
def test_what_is_done_before_an_exception_is_done_as_in_python(is_shared):
    left = []
    for run in (failing, fusec.fuse(failing)):
        owner, x, appended = SimpleNamespace(steps=0), np.arange(4.0), []
        y = x[::-1] if is_shared else np.arange(4.0)
        for _ in range(2):
            with pytest.raises(LookupError) as caught:
                run(owner, x, y)
            appended += APPENDED
            APPENDED.clear()
            left.append(
                (
                    owner.steps,
                    owner.total,
                    x.tolist(),
                    y.tolist(),
                    [*appended],
                    caught.value.args,
                    caught.value.total.tolist(),
                )
            )
    assert left[:2] == left[2:]


def test_a_call_that_is_refused_leaves_nothing_behind():
    def run(owner, x):
        owner.steps = 1
        APPENDED.append(1)
        return np.unique(x)

    owner = SimpleNamespace(steps=0)
    for _ in range(2):
        with pytest.raises(FusecTypeError, match="F281"):
            fusec.fuse(run)(owner, X)
    assert (APPENDED, owner.steps) == ([], 0)


def test_what_is_lost_with_an_exception_is_refused():
    def run(given, x):
        given.append(x * 2)
        raise ValueError("no")

    given = [X]
    with pytest.raises(FusecTypeError, match="F700"):
        fusec.fuse(run)(given, X)
    assert len(given) == 1


# --- what Python keeps -----------------------------------------------------------------------------------------------


def test_a_cached_property_is_computed_once_as_in_python():
    class Lazy:
        def __init__(self):
            self.weight, self.asked = np.ones(4), 0

        @functools.cached_property
        def double(self):
            self.asked += 1
            return self.weight * 2

    def run(one, x, weight):
        first = x * one.double + Lazy().double
        if weight is not None:
            one.weight = weight
        return first + one.double

    def assigning(one, x, weight):
        one.weight = weight
        return x + one.double, one.double.sum()

    for function, weight in ((run, None), (run, X), (assigning, X)):
        left = []
        for each in (function, fusec.fuse(function)):
            one, other = Lazy(), Lazy()
            found = [each(owner, X, weight) for owner in (one, one, other, one)]
            one.double = X
            left.append((*found, each(one, X, weight), one.asked, other.asked))
        assert same(*left)


def test_functions_that_keep_their_results_are_asked_at_every_call():
    held = {"rate": 2.0}

    class Table:
        def __init__(self, size):
            self.size = size

        @functools.cache  # noqa: B019
        def row(self, scale):
            return np.arange(self.size) * scale * held["rate"]

    @functools.lru_cache
    def kept(n, *, shift=0):
        return n * held["rate"] + shift

    table = Table(4)

    def clear(rate):
        held["rate"] = rate
        kept.cache_clear(), Table.row.cache_clear()

    changes = [lambda: clear(3.0), lambda: held.update(rate=9.0), lambda: clear(4.0)]
    assert agrees(lambda x: x * kept(3) + table.row(2) + kept(1, shift=2), (X,), changes)
    assert agrees(lambda x, ask, one: x * ask(3) + one.row(1), (X, kept, table), changes)
    inner = fusec.fuse(lambda x: x * held["rate"])
    outer = functools.lru_cache(lambda n: inner(np.arange(n)))
    assert agrees(lambda x: x + outer(4), (X,), [lambda: outer.cache_clear()])
    assert type(outer(4)) is np.ndarray
    for ask in (lambda x: table.row(x), lambda x: x * Table(3).row(1)):
        with pytest.raises(TypeError, match=r"unhashable type: 'numpy.ndarray'|functools\.lru_cache"):
            fusec.fuse(ask)(X)


def test_types_are_those_without_fuse():
    one = of_class()()

    def run(x, n, one):
        is_known = (
            type(x) is np.ndarray and type(n) is float and type(x.sum()) is np.float64 and isinstance(type(x), type)
        )
        return x + is_known, type(one)(3.0).own * x, type(x).__name__, type(one).__name__, type("A", (), {"b": 1}).b

    assert agrees(
        run, (X, 2.0, one), [lambda: setattr(type(one), "__init__", lambda self, own: setattr(self, "own", 7.0))]
    )


# --- code, defaults, bases, descriptors ------------------------------------------------------------------------------


def replaced(x):
    return x + 1


def of_functions():
    def inner(x, factor=2.0, *, shift=1.0):
        return x * factor + shift

    def outer(x):
        return inner(x) + 1

    def set_keyword():
        inner.__kwdefaults__["shift"] = 5.0

    return inner, outer, set_keyword


def test_code_and_defaults_of_functions_are_what_they_are_now():
    inner, outer, set_keyword = of_functions()
    changes = [
        lambda: setattr(inner, "__defaults__", (3.0,)), lambda: setattr(inner, "__kwdefaults__", {"shift": X}),
        set_keyword, lambda: setattr(inner, "__code__", (lambda x, factor=1, *, shift=1: x - factor - shift).__code__),
    ]  # fmt: skip
    assert agrees(outer, (X,), changes)
    inner, outer, set_keyword = of_functions()
    assert agrees(inner, (X,), changes)
    fused = fusec.fuse(of_functions()[0])
    fused(X)
    assert next(iter(fused._plans.values()))[0].names is not None  # repeated calls stay quick
    assert agrees(replaced, (X,), [lambda: setattr(replaced, "__code__", (lambda x: x - 1).__code__)])


def test_the_first_attribute_of_a_function_is_seen():
    def helper(x):
        return x * getattr(helper, "rate", 1) + hasattr(other, "shift")

    def other(x):
        return x

    changes = [lambda: setattr(helper, "rate", 2.0), lambda: setattr(other, "shift", 1)]
    assert agrees(lambda x: helper(x), (X,), changes)
    fused = fusec.fuse(lambda x, f: x * getattr(f, "rate", 1))
    for each in (other, helper, other):
        np.testing.assert_array_equal(fused(X, each), X * getattr(each, "rate", 1))


class Scaled:
    """A descriptor of the user's."""

    def __init__(self, scale):
        self.scale = scale

    def __get__(self, instance, owner=None):
        return self if instance is None else instance.own * self.scale * FACTOR

    def __set__(self, instance, value):
        instance.own = value / self.scale


def of_bases():
    class Left:
        unit, rate = 2.0, Scaled(2.0)

        def run(self, x):
            return x * 2

        @property
        def doubled(self):
            return self.own * 2

        @classmethod
        def made(cls, x):
            return x * cls.unit

    class Right(Left):
        def run(self, x):
            return x * 3

    class Leaf(Left):
        def __init__(self):
            super().__init__()
            self.own = 1.0

        def run(self, x):
            return super().run(x) + super().unit + super().doubled + super().made(x) + self.rate

        def move(self, x):
            self.rate = x
            return self.rate * 1.0 + self.own

    return Left, Right, Leaf


BASE_CHANGES = {
    "bases": lambda left, right, leaf: setattr(leaf, "__bases__", (right,)),
    "method": lambda left, right, leaf: setattr(left, "run", lambda self, x: x * 9),
    "data": lambda left, right, leaf: setattr(left, "unit", 5.0),
    "array": lambda left, right, leaf: setattr(left, "unit", X),
    "property": lambda left, right, leaf: setattr(left, "doubled", property(lambda self: self.own * 7)),
    "class method": lambda left, right, leaf: setattr(left, "made", classmethod(lambda cls, x: x - 1)),
    "descriptor": lambda left, right, leaf: setattr(left, "rate", Scaled(8.0)),
    "its data": lambda left, right, leaf: setattr(vars(left)["rate"], "scale", 8.0),
    "its class": lambda left, right, leaf: setattr(
        Scaled, "__get__", lambda self, instance, owner=None: instance.own * 3 if instance else self
    ),
    "a method between": lambda left, right, leaf: setattr(leaf, "unit", 7.0),
    "a special method": lambda left, right, leaf: setattr(leaf, "__bool__", lambda self: False),
    "an operator": lambda left, right, leaf: setattr(left, "__len__", lambda self: 0),
}


@pytest.mark.parametrize("name", BASE_CHANGES)
@pytest.mark.sampled(3)
def test_what_super_and_descriptors_find_is_what_it_is_now(name, monkeypatch):
    monkeypatch.setattr(Scaled, "__get__", Scaled.__get__)
    classes = of_bases()
    one = classes[-1]()
    change = functools.partial(BASE_CHANGES[name], *classes)
    assert agrees(lambda x, one: one.run(x) if one else x, (X, one), [change])
    classes = of_bases()
    one = classes[-1]()
    assert agrees(
        lambda x: (one.move(x), one.run(x)) if one else x, (X,), [functools.partial(BASE_CHANGES[name], *classes)]
    )
    leaf = classes[-1]
    assert agrees(lambda x: leaf().run(x) if leaf() else x, (X,), [])


# --- texts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda x: f"{x}", "F280"), (lambda x: str(x), "F280"), (lambda x: repr([x]), "F280"),
        (lambda x: f"{x!r:>9}", "F280"),
        (lambda x: "".join(map(str, x)), "F280"), (lambda x: f"{x.sum():.3}", "F280"), (lambda x: x + None, "F281"),
        (lambda x: None - x, "F281"), (lambda x: x < object(), "F281"), (lambda x: np.add(x, {1}), "F281"),
        (lambda x: x.iloc[0], "F283"), (lambda x: x.summ(), "F283"),
    ],
)  # fmt: skip
def test_nothing_tells_of_the_objects_in_a_trace(make, code):
    with pytest.raises(FusecTypeError if code != "F283" else AttributeError) as caught:
        fusec.fuse(make)(X)
    assert (caught.value.code, bool(caught.value.hint)) == (code, True)
    assert "test_fuse_outside.py, line" in str(caught.value)
    assert "racer" not in str(caught.value)


def test_attributes_that_arrays_lack_are_no_attributes():
    assert same(fusec.fuse(lambda x: x + hasattr(x, "iloc") + getattr(x, "loc", 1))(X), X + 1)
    assert fusec.fuse(lambda n, x: (f"{n:.2f}", x * n))(2.0, X)[0] == "2.00"


class Abstract(abc.ABC):
    """What has a method."""

    @abc.abstractmethod
    def move(self, x): ...


class Concrete(Abstract):
    def move(self, x):
        return x + 1


def test_abstract_classes_tell_their_instances_in_fused_functions_and_outside():
    leaf, other = Concrete(), object
    fused = fusec.fuse(lambda x: leaf.move(x) if isinstance(leaf, Abstract) and not issubclass(other, Abstract) else x)
    assert same(fused(X), X + 1)
    assert not isinstance(X, Abstract)
    assert not issubclass(type("Fresh", (), {}), Abstract)
    assert issubclass(type("Fresh", (Concrete,), {}), Abstract)
    assert same(fusec.fuse(lambda x: x * 2 if isinstance(leaf, Concrete) else x)(X), X * 2)


def test_classes_have_no_other_subclasses_after_a_call():
    class Base:
        def move(self, x):
            return x + 1

    class Leaf(Base):
        pass

    leaf = Leaf()
    for x in (X, np.ones((2, 3)), np.ones(3)):
        assert same(fusec.fuse(lambda x: leaf.move(x) if isinstance(leaf, Base) else x)(x), x + 1)
        assert (Base.__subclasses__(), Leaf.__subclasses__()) == ([Leaf], [])


class Held:
    """An object with a value."""

    def __init__(self, value=1.0):
        self.value = value


ALIASES = {
    "attributes": lambda o, p, x: (setattr(o, "value", x * 2), p.value + x)[1],
    "in place": lambda o, p, x: (setattr(o, "value", o.value + x), setattr(p, "value", p.value + 1), x * o.value)[2],
    "in a list": lambda o, p, x: [setattr(each, "value", each.value * x) for each in (o, p)] and o.value,
    "identity": lambda o, p, x: x + (o is p) - (o == p) * 3,
}


@pytest.mark.parametrize("function", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize("is_array", [False, True])
def test_objects_may_be_one_in_one_call_and_several_in_another(function, is_array):
    fused = fusec.fuse(function)
    for is_one in (False, True, False, True, True, False):
        pairs = []
        for call in (function, fused):
            one, other = (Held(np.full(6, 3.0) if is_array else 3.0) for _ in range(2))
            other = one if is_one else other
            pairs.append((call(one, other, X[0]), one.value, other.value))
        for ours, theirs in zip(*pairs, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_an_argument_may_be_what_is_outside():
    outside = Held()

    @fusec.fuse
    def compute(given, x):
        given.value = given.value + 1
        return x * outside.value

    assert same(compute(Held(), X), X)
    assert same(compute(outside, X), X * 2)
    assert same(compute(Held(), X), X * 2)


def test_members_of_enumerations_that_are_numbers_are_operands():
    kinds = [enum.IntEnum("Count", {"TWO": 2}).TWO, enum.IntFlag("Bits", {"FOUR": 4}).FOUR]
    for member in kinds:
        for x in (X, X.astype("f4"), X.astype("i2")):
            assert same(fusec.fuse(lambda x, member=member: x * member)(x), x * member)
            assert same(fusec.fuse(lambda x, member: x * member)(x, member), x * member)


@pytest.mark.parametrize("name", ["writeable", "aligned", "owndata", "behaved"])
def test_flags_of_arguments_that_calls_are_not_told_apart_by_are_refused(name):
    with pytest.raises(FusecTypeError, match=name):
        fusec.fuse(lambda x: x if getattr(x.flags, name) else x.copy())(X)
    assert same(fusec.fuse(lambda x: x + 1 if x.flags.c_contiguous else x)(X), X + 1)
    assert same(fusec.fuse(lambda x: x + 1 if (x * 1).flags.writeable else x)(X), X + 1)


def test_what_compiled_functions_of_libraries_refuse_is_named():
    pandas = pytest.importorskip("pandas")
    for function in (pandas.unique, pandas.factorize, lambda x: pandas.cut(x, 3)):
        with pytest.raises(FusecTypeError, match="pandas") as caught:
            fusec.fuse(lambda x, function=function: function(x))(X)
        assert caught.value.code == "F281"


@pytest.mark.parametrize("statement", ["x.foo = 1", "x._foo = 1", "x.T = x", "x.dtype = 'i4'", "(x + 1j).foo = 1"])
def test_attributes_of_arrays_are_not_assigned(statement):
    def assign(x):
        exec(statement)
        return x + 1

    with pytest.raises(AttributeError, match="'ndarray' object"):
        fusec.fuse(assign)(X)


def test_errors_name_the_parameters_of_the_function():
    def compute(left, *others, scale=1):
        return left + scale + (others[0] if others else 0)

    fused = fusec.fuse(compute)
    small = np.zeros(3, "uint8")
    fused(small, scale=3)
    for call, name in (
        (lambda: fused(small, scale=300), "'scale'"), (lambda: fused(small, 300), r"'others\[0\]'"),
        (lambda: fused(memoryview(b"1")), "'left'"), (lambda: fused(small, np.ma.array([1, 2, 3])), r"'others\[0\]'"),
        (lambda: fused(small, scale=np.array(["a"])), "'scale'"),
        (lambda: fused(small, scale={object(): 1}), "'scale'"), (lambda: fused([X, np.array([None])]), "'left'"),
    ):  # fmt: skip
        with pytest.raises(FusecError, match=name):
            call()
    plain = fusec.fuse(lambda x, n: x + n)
    for _ in range(3):
        plain(small, 3)
        with pytest.raises(OverflowError, match="'n'"):
            plain(small, 300)
    holder = SimpleNamespace(rate=1)
    held = fusec.fuse(lambda x, holder: x + holder.rate)
    for holder.rate in (1, 2, 3):
        held(small, holder)
    holder.rate = 300
    with pytest.raises(OverflowError, match="'rate'"):
        held(small, holder)


@pytest.mark.parametrize("where", ["list", "function"])
def test_changes_are_refused_with_the_line_of_the_function(where):
    def run(x):
        if where == "list":
            APPENDED.append(x * 2)
        else:
            run.total = 1
        return x

    with pytest.raises(FusecTypeError) as caught:
        fusec.fuse(run)(X)
    line = run.__code__.co_firstlineno
    assert f"test_fuse_outside.py, line {line}" in str(caught.value)
    assert "in this function" in str(caught.value)


def test_functions_of_lazy_arrays_are_known_by_their_own_names():
    from fusec.xp import linspace, sin, where

    def written(x, value):
        x[1] = value
        return x

    def f(x, shape=sin):
        return where(x > 1, shape(x), linspace(0, 1, 3)).sum()

    x = np.arange(3.0)
    assert fusec.fuse(f)(x) == np.where(x > 1, np.sin(x), np.linspace(0, 1, 3)).sum()
    assert fusec.fuse(f).explain(x).kernels == 1
    assert np.array_equal(fusec.fuse(lambda make: written(make(3), 2.0))(np.zeros), [0, 2, 0])


def test_cupys_functions_are_numpys(monkeypatch):
    cupy = ModuleType("cupy")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    fused, x = fusec.fuse(lambda x: cupy.exp(x).sum() + cupy.arange(3)), np.arange(3.0)
    for _ in range(2):
        np.testing.assert_allclose(fused(x), np.exp(x).sum() + np.arange(3))
