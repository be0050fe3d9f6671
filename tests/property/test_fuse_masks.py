"""Random chains of writes to the elements that masks pick, with reads between them, give NumPy's bits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import fusec

SHAPES = [(6, 5), (7,), (0, 4), (1, 1), (3, 4, 2)]
VIEWS = [
    "{}",
    "{}[...]",
    "{}[:]",
    "{}[1:]",
    "{}[:-1]",
    "{}[::-1]",
    "{}.T",
    "{}[..., ::2]",
    "{}.reshape(-1)",
    "{}.copy()",
]
WRITES = [
    "{v}[{v} > {n}] = {n}",
    "{v}[{v} < {n}] *= 2",
    "{v}[{v} != {n}] = {v}[{v} != {n}] + 1",
    "{v}[~({v} > {n})] = 3",
    "{v}[m_of({v})] += {v}[m_of({v})]",
    "{v}[({v} > 1) & ({v} < {n})] = np.array([{n}], {v}.dtype)",
    "{v} += {v}",
    "{v}[...] = np.where({v} > {n}, {v}, {n})",
    "{v}[:] *= 2",
    "np.putmask({v}, {v} == {n}, 1)",
    "np.copyto({v}, {n}, where={v} > 2)",
    "np.add({v}, 1, out={v}, where={v} < {n})",
    "{v}[{v}.sum() > {n}] = {n}",
    "{v}[row_of({v})] = {n}",
    "{v}[row_of({v})] -= 1",
]
READS = ["found.append({v} * 2)", "found.append({v}.sum())", "found.append({v} > {n})", "found.append({v}[1:] + 1)"]


def m_of(v: Any) -> Any:
    """A mask of the shape of an array, made of its values."""
    return v + v > 3


def row_of(v: Any) -> Any:
    """A mask of the first axis, made of values along it."""
    return v.reshape(len(v), -1).sum(1) > 2 if v.ndim > 1 else v > 2


def chain(seed: int) -> tuple[str, Any]:
    """The text and the function of a program over x and y, which may share memory."""
    choose = random.Random(seed)
    lines = ["z = x + 1", "w = z"]
    for at in range(choose.randint(2, 7)):
        name = choose.choice("xyzw")
        if choose.random() < 0.3:
            lines.append(f"w = {choose.choice(VIEWS).format(choose.choice('xyz'))}")
        line = choose.choice(WRITES if choose.random() < 0.75 else READS)
        lines.append(line.format(v=name, n=choose.randint(0, 4), at=at))
    body = "\n    ".join(lines)
    text = f"def program(x, y):\n    found = []\n    {body}\n    return (*found, z, w * 1)\n"
    scope = {"np": np, "m_of": m_of, "row_of": row_of}
    exec(text, scope)
    return text, scope["program"]


def given(seed: int, dtype: str) -> tuple[Any, Any]:
    """Two arrays: of one memory, at the same or at other elements, or of two."""
    shape = SHAPES[seed % len(SHAPES)]
    memory = np.random.default_rng(seed).integers(0, 5, (2, shape[0] + 1, *shape[1:])).astype(dtype)
    x = memory[0, 1:]
    return x, (x, memory[0, :-1], memory[1, 1:], memory[1, 1:][::-1])[seed // 5 % 4]


def outcome(function: Any, seed: int, dtype: str) -> tuple[Any, ...] | type[Exception]:
    """What a program returns and leaves in its arguments, or the type of the error that it raises."""
    x, y = given(seed, dtype)
    try:
        with np.errstate(all="ignore"):
            found = function(x, y)
    except (ValueError, IndexError, TypeError) as problem:
        return type(problem)
    return (*found, x, y)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "uint8", "complex64"])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sampled(3)
def test_chains_of_masked_writes_give_the_bits_of_numpy(seed: int, dtype: str) -> None:
    text, program = chain(seed)
    theirs, ours = outcome(program, seed, dtype), outcome(fusec.fuse(program), seed, dtype)
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours is theirs or issubclass(ours, theirs), text
        return
    for one, other in zip(ours, theirs, strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype, text
        np.testing.assert_array_equal(one, other, err_msg=text)
