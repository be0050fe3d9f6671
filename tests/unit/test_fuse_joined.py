"""Joined arrays that are returned: kernels compute the parts side by side, each into its place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec
import fusec.fusion.fuse
from fusec import xp


def turned(x: Any, y: Any) -> Any:
    return np.stack([0.6 * x - 0.8 * y, 0.8 * x + 0.6 * y])


def waves(x: Any, y: Any) -> Any:
    return np.stack([np.sin(x), np.cos(x), x * y], axis=1)


def halves(x: Any, y: Any) -> Any:
    return np.concatenate([x[:, :3] * y[:, :3] - 1, x[:, 3:6] * y[:, :3]], axis=1)


def of_several_dtypes(x: Any, y: Any) -> Any:
    return np.stack([x > y, x * 2, (y * 3).astype(np.int32)], axis=-2)


def written_later(x: Any, y: Any) -> Any:
    twice = x * 2
    found = np.stack([x + 1, twice])
    x[1:] = y[1:]
    twice += 1
    return found.T, twice


def used_twice(x: Any, y: Any) -> Any:
    found = np.stack([x + y, x - y])
    return found, found.sum(0), found * 2


def overwritten(x: Any, y: Any) -> Any:
    found = np.stack([x + y, x - y])
    found[0, 1:] *= 2
    return found


PROGRAMS = [turned, waves, halves, of_several_dtypes, written_later, used_twice, overwritten]


def arrays(shape: tuple[int, int], kind: str) -> tuple[Any, Any]:
    x, y = (np.random.default_rng(seed).normal(size=shape[:: -1 if kind == "transposed" else 1]) for seed in range(2))
    if kind == "transposed":
        return x.T, y.T
    return (x, y) if kind == "dense" else (np.repeat(x, 2, axis=1)[:, ::2], y[::-1])


@pytest.mark.parametrize("kind", ["dense", "transposed", "apart"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_joined_arrays_are_numpys(program: Callable[..., Any], kind: str) -> None:
    fused = fusec.fuse(program)
    for shape in ((5, 6), (7, 6), (1, 6), (0, 6), (301, 6), (40, 300), (300, 40)):
        mine, theirs = arrays(shape, kind), arrays(shape, kind)
        found, wanted = fused(*mine), program(*theirs)
        both = ((each,) if isinstance(each, np.ndarray) else each for each in (found, wanted))
        for one, other in zip(*both, strict=True):
            assert one.dtype == other.dtype
            assert one.size < 2 or one.strides == other.strides
            np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-15)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("program", [turned, waves, halves])
def test_one_kernel_reads_once_and_writes_all_parts(program: Callable[..., Any]) -> None:
    report = fusec.fuse(program).explain(*arrays((50, 6), "dense"))
    assert report.kernels == 1
    assert report.bytes_moved == report.least_bytes
    assert "note " not in str(report)


@pytest.mark.parametrize("program", [turned, waves, halves])
def test_other_extents_need_no_new_trace(program: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fused = fusec.fuse(program)
    fused(*arrays((50, 6), "dense"))
    monkeypatch.setattr(fusec.fusion.fuse, "TracedRun", None)
    for rows in (51, 7, 20):
        given = arrays((rows, 6), "dense")
        np.testing.assert_allclose(fused(*given), program(*given), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("dtype", ["f8", "f2", "i1", "?", "c8"])
@pytest.mark.parametrize("axis", [0, 2])
@pytest.mark.sampled(3)
def test_totals_across_a_stack_read_its_arrays_where_they_are(dtype, axis):
    def totals(a, b, c):
        stacked = np.stack([a, b * b, c], axis)
        return stacked.sum(axis), stacked.mean(axis), stacked.max(axis, keepdims=True), np.any(stacked, axis)

    rng, fused = np.random.default_rng(axis), fusec.fuse(totals)
    for shape, order in (((5, 40), "C"), ((5, 40), "F"), ((1, 1), "C"), ((60, 2), "F")):
        a, b, c = (np.asarray((rng.normal(size=shape) * 3).astype(dtype), order=order) for _ in range(3))
        stacked = fusec.fuse(lambda s: (s.sum(axis), s.mean(axis), s.max(axis, keepdims=True), np.any(s, axis)))
        for found, alone, wanted in zip(
            fused(a, b, c), stacked(np.stack([a, b * b, c], axis)), totals(a, b, c), strict=True
        ):
            assert found.dtype == wanted.dtype
            assert found.shape == wanted.shape
            assert found.tobytes() == alone.tobytes()
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=0.1 if dtype == "f2" else 1e-6)
    assert fusec.explain(fused, a, b, c).kernels == 1


def test_totals_along_other_axes_of_a_stack_are_those_of_the_stack():
    def totals(a, b):
        stacked = np.stack([a, b + 1])
        return stacked.sum(axis=1), (stacked * np.arange(2.0)[:, None]).sum(axis=0), np.vstack([a, b]).sum(axis=0)

    a, b = np.arange(12.0), np.ones(12)
    for found, wanted in zip(fusec.fuse(totals)(a, b), totals(a, b), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_stacks_of_arrays_with_other_shapes_have_the_message_of_numpy():
    x = np.ones((2, 3))
    fused = fusec.fuse(lambda x, y: np.stack([x, y], axis=0))
    np.testing.assert_array_equal(fused(x, x), np.stack([x, x]))
    for y in (x[0], x[:, :1], x[:1]):
        for function in (fused, lambda x, y: xp.stack([xp.asarray(x), y])):
            with pytest.raises(ValueError, match=r"^all input arrays must have the same shape"):
                function(x, y)
