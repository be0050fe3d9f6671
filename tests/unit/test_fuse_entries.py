"""Plans without calls of libraries are one native entry after some calls, which leaves to Python what it must."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import fusec

CONSTANT = np.arange(7.0)


def of_several_shapes(x: Any, y: Any) -> Any:
    return np.stack([x, y]), (x + y).sum(), np.concatenate([x[:3], y, x * y]), np.outer(x, y)


def of_temporaries(x: Any, y: Any) -> Any:
    power = np.exp(x - y)
    return np.flip(power) / power.sum(), np.concatenate([power, power[:2]])


def of_constants(x: Any, y: Any) -> Any:
    return np.stack([x * CONSTANT, y, np.array([1.0, 2, 3, 4, 5, 6, 7])]), x[::-1] * CONSTANT


def in_fortran_order(x: Any, y: Any) -> Any:
    return np.outer(x, y).T, np.stack([x, y]).T.copy(order="K"), np.add.outer(x, y)


def of_nothing_but_itself(x: Any, y: Any) -> Any:
    x[1:] = y[:-1]
    y *= x.sum()


def of_numbers(x: Any, y: Any, n: int, angle: float) -> Any:
    return np.stack([np.cos(angle) * x, n * y]), np.concatenate([x + n, y])


def of_large_results(x: Any, y: Any) -> Any:
    return np.repeat(np.outer(x, y)[:, :, None], 900, axis=2), np.stack([x, y])


def arguments(seed: int, function: Callable[..., Any]) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    given = rng.integers(-3, 4, (2, 7)).astype(float)
    return (*given, seed, seed / 7) if function is of_numbers else (*given,)


def flat(result: Any) -> list[Any]:
    return [] if result is None else list(result)


def entry_of(fused: Any) -> Any:
    (plans,) = fused._plans.values()
    return plans[0].entry


PROGRAMS = (
    of_several_shapes, of_temporaries, of_constants, in_fortran_order, of_nothing_but_itself, of_numbers,
    of_large_results,
)  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS)
def test_calls_give_what_the_first_one_does(function: Callable[..., Any]) -> None:
    fused: Any = fusec.fuse(function)
    kept = []
    for seed in range(12):
        mine, theirs = arguments(seed, function), arguments(seed, function)
        found, wanted = flat(fused(*mine)), flat(fusec.fuse(function)(*theirs))
        kept.append((found, [each.copy() for each in found]))
        for one, other in zip([*found, *mine], [*wanted, *theirs], strict=True):
            np.testing.assert_array_equal(one, other)
            assert getattr(one, "strides", ()) == getattr(other, "strides", ())
            assert np.asarray(one).dtype == np.asarray(other).dtype
        for given in mine:
            if isinstance(given, np.ndarray):
                given[:] = 99
    assert entry_of(fused) is not None
    for found, copies in kept:
        for one, other in zip(found, copies, strict=True):
            np.testing.assert_array_equal(one, other)


def many_tensors(tensors: Any, step: int) -> None:
    for tensor in tensors:
        tensor *= 1 / step**2
        tensor += 1


def test_many_tensors_are_written_unless_they_share_memory() -> None:
    fused: Any = fusec.fuse(many_tensors)
    for step in range(1, 12):
        mine, theirs = ([np.arange(float(n)) for n in range(3, 30)] for _ in range(2))
        fused(mine, step), many_tensors(theirs, step)
        assert all(map(np.array_equal, mine, theirs))
    assert entry_of(fused) is not None
    memory, other = np.arange(40.0), np.arange(40.0)
    fused([memory[at : at + n] for at, n in enumerate(range(3, 30))], 2)
    many_tensors([other[at : at + n] for at, n in enumerate(range(3, 30))], 2)
    np.testing.assert_array_equal(memory, other)


def warmed(function: Callable[..., Any], *args: Any) -> Any:
    """A fused function whose calls with such arguments are an entry."""
    fused = fusec.fuse(function)
    for _ in range(10):
        fused(*args)
    assert entry_of(fused) is not None
    return fused


def scaled(x: Any, y: Any, n: int) -> None:
    x[:] = np.concatenate([y[:2] * n, x[2:]])
    y += 1


def test_arguments_that_are_not_as_they_were_go_to_python() -> None:
    x, y = np.arange(7.0), np.arange(7.0)
    stacked = warmed(lambda x, y: np.stack([x, y]), x, y)
    odd = np.zeros(57, "uint8")[1:].view("float64")
    odd[:] = x + 1
    np.testing.assert_array_equal(stacked(odd, y), [x + 1, y])
    long, longer = x.astype(np.int64), x.astype(np.longlong)
    whole = warmed(lambda x, y: np.stack([x, y]), long, long)
    np.testing.assert_array_equal(whole(longer + 2, long), [x + 2, y])


def test_arrays_that_are_written_may_be_read_only_or_share_memory() -> None:
    given = np.arange(14.0)
    fused = warmed(scaled, given[:7].copy(), given[7:].copy(), 2)
    locked = given[:7].copy()
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fused(locked, given[7:].copy(), 2)
    for start in (0, 3, 6):
        mine, theirs = given.copy(), given.copy()
        fused(mine[:7], mine[start : start + 7], 3)
        scaled(theirs[:7], theirs[start : start + 7], 3)
        np.testing.assert_array_equal(mine, theirs)


def test_numbers_convert_or_are_refused_before_anything_is_written() -> None:
    x, y = np.arange(7, dtype="int8"), np.arange(7, dtype="int8")
    fused = warmed(scaled, x.copy(), y.copy(), 2)
    before = x.copy()
    with pytest.raises(OverflowError):
        fused(before, y.copy(), 300)
    np.testing.assert_array_equal(before, x)
    real = warmed(lambda x, f: np.stack([x * f, x + f]), x.astype("float32"), 0.1)
    for number in (7.25, -0.0, 1e300, float("nan")):
        with np.errstate(over="ignore", invalid="ignore"):
            wanted = np.stack([x.astype("float32") * number, x.astype("float32") + number])
        np.testing.assert_array_equal(real(x.astype("float32"), number), wanted)


def test_threads_have_temporaries_of_their_own() -> None:
    fused = warmed(of_temporaries, np.zeros(9000), np.zeros(9000))

    def differences(seed: int) -> list[float]:
        x = np.random.default_rng(seed).normal(size=9000)
        wanted = fusec.fuse(of_temporaries)(x, x / 2)
        found = (fused(x, x / 2) for _ in range(40))
        return [np.abs(one - other).max() for each in found for one, other in zip(each, wanted, strict=True)]

    with ThreadPoolExecutor(4) as pool:
        assert not any(any(each) for each in pool.map(differences, range(8)))
