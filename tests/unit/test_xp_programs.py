"""Random programs of reads and writes through views of views, by one thread and by many, are as NumPy's."""

import numpy as np
import pytest

import fusec.xp as xp
from tests.support.threads import run_together

VIEWS = {
    "rows": lambda x, n: x[n % 3 :],
    "row": lambda x, n: x[n % len(x)],
    "backwards": lambda x, n: x[:: -(n % 2 + 1)],
    "transposed": lambda x, n: x.T,
    "axis": lambda x, n: x[None] if x.ndim < 3 else x,
    "last": lambda x, n: x[..., n % 2 :],
    "flat": lambda x, n: x.reshape(-1),
    "flipped": lambda x, n: np.flip(x, 0),
    "whole": lambda x, n: x[...],
}
READS = {
    "scaled": lambda x, y, n: x * n - 1,
    "sum": lambda x, y, n: x + (y if y.shape == x.shape else n),
    "total": lambda x, y, n: np.cumsum(x, axis=0) % 13,
    "taken": lambda x, y, n: x[[0, -1]],
    "larger": lambda x, y, n: np.where(x > n, x, 7),
    "reduced": lambda x, y, n: x - x.sum(axis=0) % 11,
}


def fitting(y, x):
    """What can be written to x: y if it has that shape, or else its first element."""
    return y if y.shape == x.shape else y.reshape(-1)[:1] if y.size else 5


WRITES = {
    "row": lambda x, y, n: x.__setitem__(n % len(x), n),
    "rows": lambda x, y, n: x.__setitem__(slice(n % 2, None), fitting(y, x[n % 2 :])),
    "whole": lambda x, y, n: x.__setitem__(..., fitting(y, x)),
    "add": lambda x, y, n: x.__iadd__(n),
    "add array": lambda x, y, n: x.__iadd__(fitting(y, x)),
    "rest": lambda x, y, n: x.__imod__(17),
    "mask": lambda x, y, n: x.__setitem__(x > n * 3, n),
    "list": lambda x, y, n: x.__setitem__([0, -1], n),
    "item": lambda x, y, n: x.__setitem__((n % len(x),) + (0,) * (x.ndim - 1), n + 1),
    "row in place": lambda x, y, n: x[n % len(x)].__iadd__(2) if x.ndim > 1 else x.__imul__(2),
    "copyto": lambda x, y, n: np.copyto(x, fitting(y, x), where=y > n if y.shape == x.shape else True),
    "putmask": lambda x, y, n: np.putmask(x, x > n, n),
    "put": lambda x, y, n: np.put(x, [0, 0, n % x.size], [1, 2, n]),
    "at": lambda x, y, n: np.add.at(x, [0, 0], n),
    "out": lambda x, y, n: np.multiply(x, 2, out=x),
    "out of another": lambda x, y, n: np.add(fitting(y, x), n, out=x),
    "sorted": lambda x, y, n: x.sort(),
    "filled": lambda x, y, n: x.fill(n),
}


class Program:
    """Some arrays of a namespace, on which steps are run. Choices depend on shapes alone."""

    def __init__(self, own, plain):
        self.own, self.plain = [own], plain

    def run(self, kind, name, first, second, number):
        x, y = (self.own[each % len(self.own)] for each in (first, second))
        if not x.size or (not x.ndim and kind != "look"):
            return
        if kind == "view":
            self.own.append(VIEWS[name](x, number))
        elif kind == "read":
            self.own.append(READS[name](x, y, number))
        elif kind == "write":
            WRITES[name](x, y, number)
        elif kind == "plain":
            np.copyto(self.plain, x.reshape(-1)[:1])
            np.add.at(self.plain, [0, 1], x.reshape(-1)[0])
            self.plain %= 31
        else:
            np.asarray(x).sum()


def steps(seed, count):
    choose = np.random.default_rng(seed)
    for _ in range(count):
        kind = str(
            choose.choice(
                ["view", "read", "write", "write", "write", "plain", "look"], p=[0.2, 0.15, 0.2, 0.2, 0.1, 0.05, 0.1]
            )
        )
        names = {"view": VIEWS, "read": READS, "write": WRITES}.get(kind, {"": None})
        yield kind, [*names][choose.integers(len(names))], *map(int, choose.integers(0, 30, 3))


def check(theirs, own):
    for number, (expected, found) in enumerate(zip(theirs.own, own.own, strict=True)):
        np.testing.assert_array_equal(np.asarray(found), expected, err_msg=str(number))
        assert found.dtype == expected.dtype
    np.testing.assert_array_equal(own.plain, theirs.plain)


def run(seed, count, theirs, own):
    done = []
    for step in steps(seed, count):
        done.append(step)
        theirs.run(*step)
        own.run(*step)
        assert np.array_equal(own.plain, theirs.plain), done  # at once
    check(theirs, own)


def programs(begin, dtype, extent, blocks=1):
    """Programs of NumPy and of lazy arrays, for each block of rows of one array."""
    expected = np.arange(4 * blocks * extent).reshape(4 * blocks, extent).astype(dtype)
    found = begin(xp.asarray(expected.copy()))
    pairs = []
    for at in range(blocks):
        rows = slice(4 * at, 4 * at + 4)
        pairs.append((Program(expected[rows], np.zeros(3, dtype)), Program(found[rows], np.zeros(3, dtype))))
    return expected, found, pairs


BEGIN = {"values": lambda x: x, "pending": lambda x: x + 0}


@pytest.mark.parametrize("begin", BEGIN.values(), ids=BEGIN)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled(27)
def test_programs_of_writes_are_as_numpys(begin, seed):
    _, _, [(theirs, own)] = programs(begin, ["f8", "i8", "i4"][seed % 3], 5 + seed % 4)
    run(seed, 12, theirs, own)


@pytest.mark.parametrize("begin", BEGIN.values(), ids=BEGIN)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.sampled(20)
def test_programs_of_threads_on_parts_of_one_array_are_as_numpys(begin, seed):
    expected, found, pairs = programs(begin, "f8", 6, 4)
    run_together(lambda at: run(10 * seed + at, 8, *pairs[at]), 4)
    assert found.tolist() == expected.tolist()
