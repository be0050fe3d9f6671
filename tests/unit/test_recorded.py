"""Functions of integers that are recorded give what they give when they run, or nothing; forms lie as NumPy's views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusec.arguments.layouts import View
from fusec.base.dtypes import FLOAT64
from fusec.base.recorded import NotRecordedError, recorded
from fusec.fusion.trace.array_forms import ArrayForm, strides_of_shape

SMALL = st.integers(-6, 9)


def halves(given: Sequence[Any]) -> Any:
    """Branches on parity and on order, and divides."""
    one, two, three = given
    longest = max(one, two, three)
    if (one + two) % 2:
        return (longest, one // (abs(two) + 1), -three)
    return (min(one, two), [two * three - 1, "same"], {"a": one & 3})


def views(given: Sequence[Any]) -> Any:
    """Records, sorts, compares tuples and counts."""
    view = View(given[0], tuple(given), tuple([each * 8 for each in given]), FLOAT64)
    order = sorted(range(3), key=lambda axis: (-abs(given[axis]), axis))
    return view, order, tuple(given) == (given[1],) * 3, sum(given), 0 in given, view.size


@pytest.mark.parametrize("function", [halves, views])
@settings(max_examples=150, deadline=None)
@given(st.tuples(SMALL, SMALL, SMALL), st.lists(st.tuples(SMALL, SMALL, SMALL), min_size=1, max_size=12))
def test_a_recording_answers_as_the_function_or_not_at_all(function: Any, first: Any, others: Any) -> None:
    made = recorded(function, first, function(first))
    assert made is not None
    assert made(*first) == function(first)
    for each in others:
        found = made(*each)
        assert found is None or found == function(each)


@pytest.mark.parametrize(
    "function",
    [
        lambda given: range(given[0]),
        lambda given: {given[0]},
        lambda given: f"{given[0]}",
        lambda given: 1 if isinstance(given[0], int) else 2,
        lambda given: np.int64(2) + given[0],
        lambda given: 2.0 ** given[0],
    ],
)
def test_what_needs_the_integer_itself_is_not_recorded(function: Any) -> None:
    assert recorded(function, [3], function([3])) is None


@st.composite
def steps(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Any]]:
    """A shape, and views to take one after the other: of names, indices and shapes."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 9]), min_size=1, max_size=3)))
    bound = st.one_of(st.none(), st.integers(-7, 7))
    index = st.lists(
        st.one_of(
            st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, 3, -1, -2])),
            st.none(),
            st.just(...),
            st.integers(-3, 3),
        ),
        max_size=3,
    ).filter(lambda items: sum(each is ... for each in items) <= 1)
    names = st.sampled_from("transpose flip rot90 squeeze atleast_2d atleast_3d diagonal expand windows repeat".split())
    sizes = st.sampled_from([(-1,), (2, -1), (-1, 2), (3, -1), (-1, 1), (1, -1, 3), (-1, 6)])
    return shape, draw(st.lists(st.one_of(index.map(tuple), names, sizes.map(list)), max_size=4))


def taken(array: Any, step: Any) -> Any:
    """A view of an array, or of its form."""
    match step:
        case tuple():
            return array[(*step, ...) if ... not in step else step]
        case list():
            return np.reshape(array, tuple(step), copy=False)
        case "expand":
            return np.expand_dims(array, 1)
        case "windows":
            return np.lib.stride_tricks.sliding_window_view(array, 2, axis=0)
        case "repeat":
            return np.broadcast_to(array, (2, *array.shape))
    return getattr(np, step)(array)


def facts(array: Any) -> tuple[object, ...]:
    """What is asked of views."""
    flags = array.flags
    return array.shape, flags.c_contiguous, flags.f_contiguous, flags.writeable, array.ndim, array.size, array.nbytes


@settings(max_examples=400, deadline=None)
@given(steps())
def test_forms_take_steps_as_arrays_do(given: tuple[tuple[int, ...], list[Any]]) -> None:
    shape, todo = given
    array = np.zeros(shape)
    first = array.__array_interface__["data"][0]
    form = ArrayForm(0, shape, array.strides, array.dtype)
    for step in todo:
        if not array.ndim:  # of which some functions make numbers
            return
        try:
            array = taken(array, step)
        except (ValueError, IndexError) as problem:
            with pytest.raises((type(problem), ValueError, IndexError, NotRecordedError)):
                taken(form, step)
            return
        form = taken(form, step)
        assert facts(form) == facts(array)
        if array.size:
            assert form.start == array.__array_interface__["data"][0] - first
            pairs = zip(array.shape, array.strides, form.strides, strict=True)
            assert all(extent == 1 or one == other for extent, one, other in pairs)


@settings(max_examples=200, deadline=None)
@given(steps(), steps())
def test_forms_share_memory_where_numpy_sees_that_they_may(one: Any, other: Any) -> None:
    array, found = np.zeros((6, 7)), []
    form = ArrayForm(0, (6, 7), array.strides, array.dtype)
    for _, todo in (one, other):
        part, like = array, form
        try:
            for step in todo:
                if not part.ndim:
                    return
                part, like = taken(part, step), taken(like, step)
        except (ValueError, IndexError):
            return
        found.append((part, like))
    (a, b), (c, d) = found
    assert np.may_share_memory(a, c) == np.may_share_memory(b, d)


def test_strides_of_a_shape_are_none_where_that_needs_a_copy() -> None:
    assert strides_of_shape((4, 3), (8, 32), (12,), 8) is None
    assert strides_of_shape((4, 3), (24, 8), (2, 6), 8) == (48, 8)
