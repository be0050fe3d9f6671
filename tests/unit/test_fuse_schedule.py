"""Long traces: statements find their kernels without asking all of them, and repairs have no bound."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.base.dtypes import FLOAT64
from fusec.fusion.arguments import CallArguments
from fusec.fusion.schedule import plan, schedule
from fusec.fusion.schedule.groups import Group
from fusec.fusion.schedule.repairs import store
from fusec.fusion.trace.trace import Trace
from fusec.ir.expr import Expr, apply
from fusec.ir.graph import Input
from fusec.ir.walk import kept

X = np.linspace(0, 1, 16).reshape(4, 4)


def steps_of(function: Callable[..., Any], *args: Any) -> list[Any]:
    """The steps of the plan of a call, of which nothing is compiled."""
    fused: Any = fusec.fuse(function)
    found, _ = fused._plan(CallArguments(args, {}, function=function))
    return list(found.steps)


def updates(count: int) -> Callable[..., None]:
    def update(a: Any, b: Any, c: Any) -> None:
        arrays = (a, b, c)
        for at in range(count):
            arrays[at % 3][at % 5 :] += arrays[(at + 1) % 3][0]

    return update


def outputs(count: int) -> Callable[..., Any]:
    return lambda x: [x + at for at in range(count)]


@pytest.mark.parametrize("made", [updates, outputs])
def test_few_kernels_are_asked_for_each_statement(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ask = [0], Group.why_not

    def counted(self: Group, *args: Any) -> str:
        asked[0] += 1
        return ask(self, *args)

    monkeypatch.setattr(Group, "why_not", counted)
    counts = []
    for count in (60, 120):
        asked[0] = 0
        args = [np.ones(20 + at) for at in range(3)]
        steps_of(made(count), *(args if made is updates else args[:1]))
        counts.append(asked[0])
    assert counts[1] < 2.3 * counts[0] < 2.3 * 60 * 4


def shared(count: int) -> Callable[..., Any]:
    """Each value is computed from the one before, and two kernels need all of them."""

    def both(x: Any) -> Any:
        values = [x]
        for _ in range(count):
            values.append(np.exp(-values[-1]))
        return [each.sum(axis=0) for each in values[1:]], [each.sum(axis=1) for each in values[1:]]

    return both


def test_values_that_kernels_share_are_stored_however_many_there_are() -> None:
    steps = steps_of(shared(60), X)
    stored = [each for step in steps for each in step.stored if step.group.axes is None and step.group.shape == X.shape]
    assert len(stored) == 60
    small = shared(10)
    for found, wanted in zip(fusec.fuse(small)(X), small(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_quotients_that_larger_walks_repeat_are_stored_in_few_repairs(monkeypatch: pytest.MonkeyPatch) -> None:
    repairs = [0]

    def counted(*args: Any) -> Any:
        repairs[0] += 1
        return store(*args)

    def nested(x: Any, y: Any) -> Any:
        """Each quotient is computed from the one before, and two kernels need all of them."""
        value, sums, products = x, x, y
        for _ in range(100):
            value = 1 / (value + 2)
            sums, products = sums + value, products * 0.5 + value
        return sums, products

    def totals(x: Any) -> Any:
        """There are so many totals that their kernels compute most quotients often."""
        values = [x]
        for _ in range(200):
            values.append(1 / (values[-1] + 2))
        return [each.sum() for each in values[1:]]

    monkeypatch.setattr(schedule, "store", counted)
    x, y = np.linspace(0, 1, 12), np.linspace(1, 2, 5)[:, None]
    stored = [each for step in steps_of(nested, x, y) for each in step.stored if step.group.shape == x.shape]
    assert len(stored) >= 100
    assert repairs[0] == 1
    steps_of(totals, x)
    assert 1 < repairs[0] <= 6


def test_totals_are_returned_without_the_axes_that_are_gone_by_the_kernels_that_find_them() -> None:
    def totals(x: Any) -> Any:
        return [(x + at).sum(axis=0) for at in range(70)]

    assert [step.group.axes for step in steps_of(totals, X)] == [(0,)] * 3
    for found, wanted in zip(fusec.fuse(totals)(X), totals(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def exchange(*arrays: Any) -> None:
    values = [each + 1 for each in arrays]
    for array, value in zip(arrays, values[1:] + values[:1], strict=True):
        array[...] = value


def test_arrays_that_change_places_are_copied_as_often_as_it_takes() -> None:
    arrays = [np.full(3, float(at)) for at in range(70)]
    fusec.fuse(exchange)(*arrays)
    assert [each[0] for each in arrays] == [*(at + 1.0 for at in range(1, 70)), 1.0]


def test_a_value_in_a_stored_value_is_stored_if_others_need_it_too() -> None:
    @fusec.fuse
    def nested(x: Any) -> Any:
        inner = np.exp(x)
        outer = np.log1p(inner)
        return outer.sum(axis=0), outer.max(axis=1), inner.sum(axis=0), inner.min(axis=1)

    found = nested(X)
    inner, outer = np.exp(X), np.log1p(np.exp(X))
    for mine, wanted in zip(
        found, (outer.sum(axis=0), outer.max(axis=1), inner.sum(axis=0), inner.min(axis=1)), strict=True
    ):
        np.testing.assert_allclose(mine, wanted, rtol=1e-14)


def test_a_write_looks_at_the_values_that_read_its_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, look = [0], Trace._groups_read

    def counted(self: Trace, memory: Any) -> set[int]:
        looked[0] += 1
        return look(self, memory)

    def notes(x: Any, y: Any) -> list[Any]:
        found = []
        for at in range(80):
            found.append(y * 2 + at)
            x[at % 3] += 1.0
        return found

    monkeypatch.setattr(Trace, "_groups_read", counted)
    steps_of(notes, np.ones(4), np.ones(4))
    assert looked[0] < 80 * 12


def test_all_rows_that_are_too_long_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    schedules, made = [0], plan.schedule

    def counted(*args: Any) -> Any:
        schedules[0] += 1
        return made(*args)

    def softmaxes(*arrays: Any) -> list[Any]:
        powers = [np.exp(x - x.max(axis=-1, keepdims=True)) for x in arrays]
        return [each / each.sum(axis=-1, keepdims=True) for each in powers]

    monkeypatch.setattr(plan, "schedule", counted)
    steps = steps_of(softmaxes, *(np.ones((2, 20_000 + at)) for at in range(6)))
    assert (len(steps), schedules[0]) == (24, 2)


def test_what_an_expression_is_made_of_is_found_once_for_each_node() -> None:
    found: list[Expr] = []

    @kept
    def depth(expr: Expr, parts: list[int]) -> int:
        found.append(expr)
        return 1 + max(parts, default=0)

    value: Expr = Input("x", FLOAT64)
    values = [value := apply("multiply", value, value) for _ in range(5000)]
    assert [depth(each) for each in values] == [*range(2, 5002)]
    assert depth(apply("add", values[-1], values[0])) == 5002
    assert len(found) == len(set(found)) == 5002


def of_pairs(x: Any, y: Any, z: Any) -> Any:
    ratio = y / z
    return (x[:, None] * x * ratio).sum(-1) + (x * ratio).sum(-1)


def scaled(x: Any, y: Any, z: Any) -> Any:
    return x * np.sqrt(np.abs(y) / z) + x


def of_rows(x: Any, y: Any, z: Any) -> Any:
    return x * (y[:, None] / z[:, None])


def stored(function: Callable[..., Any], *args: Any) -> int:
    return str(fusec.explain(fusec.fuse(function), *args)).count("each element would be divided")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [(of_pairs, "float32"), (of_pairs, "complex128"), (scaled, "float32"), (scaled, "float64")],
)
def test_quotients_that_a_larger_walk_repeats_are_computed_once(function: Any, dtype: str, order: Any) -> None:
    x = np.asarray(np.arange(1, 5 * 70 + 1).reshape(5, 70) / 7, dtype, order=order)
    y, z = x[1].copy(), x[2].copy()
    fused = fusec.fuse(function)
    for count in (5, 4):  # the second call takes the plan of the first
        some = x[:count]
        assert stored(function, some, y, z) == 1
        for _ in range(4):
            found, wanted = fused(some, y, z), function(some, y, z)
            if function is scaled:
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype == "float32" else 1e-13)
            y += 1


def test_quotients_that_few_elements_or_a_loop_repeat_are_not_stored() -> None:
    x, y = np.arange(1.0, 211).reshape(3, 70), np.arange(1.0, 71)
    assert not stored(scaled, x, y, y)  # three times
    assert not stored(of_rows, x, x[:, 0], x[:, 1])  # once for each row
    assert not stored(scaled, x, x, x)
    assert not stored(scaled, x[:0], y, y)


def columns(x: Any) -> Any:
    return np.stack([x[:, 0] * 2, x[:, 1] + 1, x[:, 2] - x[:, 0]], axis=1)


def planes(x: Any) -> Any:
    y = np.zeros((2, *x.shape), x.dtype)
    y[0], y[1] = x + 1, x * 2
    return y


def halves(x: Any) -> Any:
    y = np.zeros((4, x.shape[0] - 2), x.dtype)
    y[:2], y[2:4] = x[:2, 2:3], x[1:3, 3:4] * 2
    return y


def crossed(x: Any) -> Any:
    y = x + 0
    y[:3], y[2:5] = x[:3] + 1, x[2:5] * 2
    return y


def swapped(x: Any) -> None:
    x[:, 0], x[:, 1] = x[:, 1] + 0, x[:, 0] + 0


@pytest.mark.parametrize(
    ("function", "kernels"),
    [(columns, 1), (planes, 1), (halves, 1), (crossed, 2), (swapped, 2)],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_parts_that_share_no_element_are_written_by_one_kernel(function: Callable[..., Any], kernels: int) -> None:
    fused = fusec.fuse(function)
    for extent in (7, 12, 5):
        x = np.random.default_rng(extent).normal(size=(extent, 4))
        expected, given = x.copy(), x.copy()
        np.testing.assert_array_equal(fused(given), function(expected))
        np.testing.assert_array_equal(given, expected)
    assert fused.explain(x).kernels == kernels
