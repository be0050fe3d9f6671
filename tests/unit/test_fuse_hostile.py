"""Fused functions that are long, wide, interrupted or too large: a right result, or an error that leaves nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.fusion.schedule import plan

X = np.linspace(0, 1, 30)


def same_as_unfused(function: Callable[..., Any], *args: Any) -> None:
    np.testing.assert_array_equal(fusec.fuse(function)(*args), function(*args))


def test_deep_chains_are_right() -> None:
    def chain(x: Any) -> Any:
        for _ in range(400):
            x = x * 0.5 + 1.0
        return x

    same_as_unfused(chain, X)


def test_functions_take_300_arrays() -> None:
    def total(*arrays: Any) -> Any:
        found = arrays[0]
        for each in arrays[1:]:
            found = found + each
        return found

    same_as_unfused(total, *[X + at for at in range(300)])


def test_an_interrupted_trace_leaves_nothing_behind() -> None:
    is_stopped = [True]
    results: list[Any] = []
    settings = {"scale": 1.0}

    class Model:
        count = 0

    model = Model()

    @fusec.fuse
    def step(x: Any) -> Any:
        model.count += 1
        x += settings["scale"]
        if is_stopped[0]:
            results.append(x)
            settings["scale"] = x
            raise KeyboardInterrupt
        return 2 * x

    x = np.ones(3)
    with pytest.raises(KeyboardInterrupt):
        step(x)
    assert (model.count, results, settings) == (0, [], {"scale": 1.0})
    assert (x == 1).all()
    is_stopped[0] = False
    assert (step(x) == 4).all()
    assert (model.count, x[0]) == (1, 2)


def test_an_interrupted_schedule_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    @fusec.fuse
    def raised(x: Any) -> Any:
        x += 1
        return x * 3

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    x = np.ones(3)
    with monkeypatch.context() as patch:
        patch.setattr(plan, "schedule", interrupt)
        with pytest.raises(KeyboardInterrupt):
            raised(x)
    assert (x == 1).all()
    assert (raised(x) == 6).all()


def grid(x: Any) -> Any:
    return (x[:, None] + x)[:, :, None] + x


def grid_in_between(x: Any) -> Any:
    found = grid(x)
    found[0] = 0
    return found.sum() + found[1:].max()


@pytest.mark.parametrize("function", [grid, grid_in_between])
def test_too_little_memory_is_an_error_with_the_function(function: Callable[..., Any]) -> None:
    fused = fusec.fuse(function)
    for _ in range(2):
        with pytest.raises(MemoryError, match=f"not enough memory in fused function '{function.__name__}'") as caught:
            fused(np.zeros(30_000))
        assert f"def {function.__name__}" in str(caught.value)
    small = np.ones(3)
    np.testing.assert_array_equal(fused(small), function(small))


def test_the_functions_own_memory_error_is_raised_as_it_is() -> None:
    def own(x: Any) -> Any:
        raise MemoryError("mine")

    with pytest.raises(MemoryError, match=r"^mine$"):
        fusec.fuse(own)(X)


def test_an_update_in_place_is_one_kernel() -> None:
    @fusec.fuse
    def update(x: Any, y: Any) -> None:
        x[1:] += y  # Python assigns the result to x[1:] again
        x[::2] *= 2

    x, y = np.arange(5.0), np.ones(4)
    wanted = x.copy()
    wanted[1:] += y
    wanted[::2] *= 2
    assert update.explain(x, y).launches == 2
    update(x, y)
    np.testing.assert_array_equal(x, wanted)


def test_a_view_that_was_written_since_is_stored_again() -> None:
    @fusec.fuse
    def swap(x: Any) -> None:
        old = x[1:] + 0
        x[0] = 5
        x[1:] = old
        same = x[:2]
        x[1] = 7
        x[:2] = same
        x[:2] = x[2:0:-1]

    def plain(x: Any) -> None:
        swap.__wrapped__(x)

    x, y = np.arange(3.0), np.arange(3.0)
    swap(x)
    plain(y)
    np.testing.assert_array_equal(x, y)
