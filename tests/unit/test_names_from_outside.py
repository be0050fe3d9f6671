"""Names from outside stand for what they stood for when a function was decorated."""

# ruff: noqa: B023 - that it makes no difference is what is tested

from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fusec

SCALE = 2.0
Image = NDArray[np.float32]
ALIASES = [Image, np.ndarray, Annotated[Image, "rows"], Image | None, Any]


def scaled(x):
    return x * SCALE


def made():
    for k in (1, 2):

        def plus(x):
            return x + k

        @fusec.elementwise
        def element(x):
            return plus(x) * k

        @fusec.stencil
        def neighbour(a):
            return a[1] + k

        @fusec.kernel
        def explicit(a):
            for i in fusec.grid(len(a)):
                a[i] = plus(a[i]) + k

        total = fusec.reduction(map=lambda x: plus(x) + k, combine=lambda a, b: a + b)
        yield element, neighbour, explicit, total


def test_variables_of_a_closure_are_read_when_a_function_is_decorated():
    found = []
    for element, neighbour, explicit, total in list(made()):
        a = np.zeros(3)
        explicit(a)
        found.append([element(0), *neighbour(np.zeros(2)), *a, total(np.zeros(2))])
    assert found == [[1, 1, 1, 2, 2, 2, 4], [4, 2, 2, 4, 4, 4, 8]]


def test_functions_called_keep_what_their_names_stood_for(monkeypatch):
    calls = [fusec.elementwise(lambda x: f(x)) for f in (np.sin, np.cos)]
    decorated = fusec.elementwise(scaled)
    both = fusec.elementwise(lambda x: scaled(x) + decorated(x))
    monkeypatch.setitem(globals(), "SCALE", 100.0)
    monkeypatch.setitem(globals(), "scaled", abs)
    assert [each(0.0) for each in calls] == [0, 1]
    assert both(1.0) == 4


@pytest.mark.parametrize("kind", ["elementwise", "reduction"])
def test_a_name_is_looked_up_again_as_long_as_it_is_missing(kind, monkeypatch):
    if kind == "elementwise":
        later = fusec.elementwise(lambda x: x + LATER)  # noqa: F821
    else:
        later = fusec.reduction(map=lambda x: x + LATER, combine=lambda a, b: a + b)  # noqa: F821
    for _ in range(2):
        with pytest.raises(fusec.FusecError, match="LATER"):
            later(np.ones(1))
    monkeypatch.setitem(globals(), "LATER", 5)
    assert np.all(later(np.ones(1)) == 6)
    monkeypatch.setitem(globals(), "LATER", 50)
    assert np.all(later(np.ones(1, "f")) == 6)


@pytest.mark.parametrize("alias", ALIASES, ids=str)
def test_aliases_of_array_classes_annotate_as_the_classes_do(alias):
    twice = fusec.elementwise("def f(x: Alias) -> Alias:\n    y: Alias = 2 * x\n    return y", names={"Alias": alias})
    assert twice(np.ones(3)).tolist() == [2, 2, 2]


@fusec.kernel
def copied(x: Image, out: Image):
    for i in fusec.grid(len(x)):
        out[i] = x[i]


def test_an_alias_of_arrays_leaves_their_dtype_open_and_is_no_number():
    x, out = np.ones(3), np.zeros(3)
    copied(x, out)
    assert out.tolist() == [1, 1, 1]
    with pytest.raises(fusec.FusecError, match="'Image' is a GenericAlias"):
        fusec.elementwise(lambda x: x + Image)(1.0)


def test_aliases_in_a_function_annotate_functions_inside_it():
    real, rows = np.float32, np.ndarray

    @fusec.elementwise
    def twice(x: rows) -> real:
        return 2 * x

    assert twice(1.0).dtype == "float32"
    assert twice(np.ones(2)).tolist() == [2, 2]
