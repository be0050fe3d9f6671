"""Kernels that do not need each other share a launch: equal ones, and small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
from fusec.fusion.arguments import CallArguments


def launches_of(function: Callable[..., Any], *args: Any) -> list[int]:
    """How many steps each launch of a call has; nothing is compiled."""
    fused: Any = fusec.fuse(function)
    plan, _ = fused._plan(CallArguments(args, {}, function=function))
    return [getattr(step, "beside", 0) + 1 for step in plan.steps if not getattr(step, "place", 0)]


def check(function: Callable[..., Any], given: Callable[[int], tuple[Any, ...]]) -> None:
    """The same bits as without fuse, one by one and as one native sequence, for arguments that change."""
    fused = fusec.fuse(function)
    for seed in range(4):
        mine, theirs = given(seed), given(seed)
        for one, other in zip((fused(*mine), mine), (function(*theirs), theirs), strict=True):
            assert len(one) == len(other)
            for our, their in zip(one, other, strict=True):
                np.testing.assert_array_equal(our, their)


def arrays(*shapes: tuple[int, ...]) -> Callable[[int], tuple[Any, ...]]:
    return lambda seed: tuple(np.random.default_rng(seed).integers(0, 99, shape).astype(float) for shape in shapes)


def steps(*params: Any) -> tuple[Any, ...]:
    for param in params:
        param *= 0.5
        param += 1
    return params


def test_equal_kernels_share_a_launch_whatever_their_sizes() -> None:
    given = arrays((70, 40), (3,), (5, 700), (2, 2), (3001,), (1, 1, 7))
    assert launches_of(steps, *given(0)) == [6]
    check(steps, given)
    text = fusec.fuse(steps).source("cuda", *given(0))
    assert text.startswith("// steps: 1 launch\n")
    assert "over 6 parts of the grid" in text
    assert text.count('extern "C" __global__') == 1
    assert text.count("* 0.5") == 1


def test_no_launch_has_very_many() -> None:
    assert launches_of(steps, *arrays(*[(each,) for each in range(2, 42)])(0)) == [16, 16, 8]


def different(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
    return x + 1, y.T * 2, np.stack([z, -z, z]), x.sum(), np.concatenate([y, y])


def test_small_kernels_share_a_launch_though_they_differ() -> None:
    assert sorted(launches_of(different, *arrays((50,), (3, 5), (4,))(0))) == [1, 4]
    check(different, arrays((50,), (3, 5), (4,)))
    assert launches_of(lambda x, y: (x + 1, y.T * 2), np.ones(200_000), np.ones((300, 500))) == [1, 1]


def dependent(x: Any, y: Any) -> tuple[Any, ...]:
    first = np.cumsum(x) + y.sum()
    x[1:] = y[: x.size - 1]
    y[0] = 7
    return first, x[::-1] + y[: x.size], y * 2


def test_what_is_read_or_written_before_comes_first() -> None:
    check(dependent, arrays((50,), (60,)))
    check(lambda x, y: dependent(x[5:45], x), arrays((60,), (1,)))


def chains(x: Any, y: Any) -> tuple[Any, ...]:
    found = []
    for each in (x, y, x[:-1], y[1:]):
        for _ in range(4):
            each = np.exp(-each)[::-1]
        found.append(each)
    return tuple(found)


def test_temporaries_of_one_launch_lie_apart() -> None:
    given = arrays((40,), (30,))
    assert launches_of(chains, *given(0)) == [4, 4, 4, 4]
    fused = fusec.fuse(chains)
    expected = [[fusec.fuse(lambda x, y, at=at: chains(x, y)[at])(*given(seed)) for at in range(4)] for seed in (0, 1)]
    for seed in (0, 1, 0, 1):
        for one, other in zip(fused(*given(seed)), expected[seed], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("offset", [0, 1, 7])
def test_arguments_that_overlap_are_written_in_order(offset: int) -> None:
    def update(x: Any, y: Any) -> tuple[Any, ...]:
        x += 1
        y *= 2
        return ()

    fused, alone = fusec.fuse(update), np.arange(40.0)
    for _ in range(4):
        mine, theirs = alone.copy(), alone.copy()
        fused(mine[:20], mine[offset : offset + 20])
        update(theirs[:20], theirs[offset : offset + 20])
        np.testing.assert_array_equal(mine, theirs)


def test_nothing_moves_across_a_call_that_may_raise() -> None:
    def solve(x: Any, a: Any, y: Any) -> Any:
        x += 1
        found = np.linalg.inv(a)
        y += 1
        return found

    fused, (x, y) = fusec.fuse(solve), (np.zeros(3), np.zeros(4))
    with pytest.raises(np.linalg.LinAlgError):
        fused(x, np.zeros((2, 2)), y)
    assert (x.tolist(), y.tolist()) == ([1.0] * 3, [0.0] * 4)


def test_the_report_counts_launches() -> None:
    report = fusec.fuse(steps).explain(*arrays((4,), (5, 3))(0))
    assert (report.kernels, report.launches) == (1, 1)
    assert "beside it, " in str(report)


def test_totals_of_few_totals_are_one_kernel() -> None:
    cases = [
        (lambda x: x.sum(1).sum(), 1),
        (lambda x: np.sqrt((x * x).sum(1)).mean(), 1),
        (lambda x: x.max(0).min(), 1),
    ]
    for function, count in cases:
        for x in (np.random.default_rng(0).random((40, 30)), np.ones((5, 3)), np.ones((30, 40)).T):
            fused = fusec.fuse(function)
            for turn in range(3):
                np.testing.assert_allclose(fused(x + turn), function(x + turn), rtol=1e-14)
            assert fused.explain(x).kernels == count, fused.explain(x)
    twice = fusec.fuse(lambda x: (x.sum(1), x.sum(1).sum(), x.sum(1)[::-1].max()))
    assert twice.explain(np.ones((40, 30))).kernels <= 2
    assert fusec.fuse(lambda x: x.sum(1).sum()).explain(np.ones((5000, 3))).kernels == 2
    text = fusec.fuse(lambda x: x.sum(1).sum()).source("cuda", np.ones((40, 30)))
    assert text.count('extern "C" __global__') == 1
    assert "; the last goes on;" in text
