"""Fused functions: NumPy's results at every call, also after arguments and results were altered in place."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import fusec
from tests.fuzz.findings import FindingError, attempt, refused
from tests.support.array_programs import FURTHER, STEPS, Program, array, copies, leaves_signs_open, program, run
from tests.support.python_functions import quietly


def check(seed: int) -> None:
    """One program. Raises FindingError."""
    random = Random(f"fuse {seed}")
    given = [array(random) for _ in range(random.randint(1, 3))]
    steps = program(random, random.choice((1, 2, 3, 4, 4, 8)), STEPS + FURTHER)
    shown = described(steps, given)
    fused = fusec.fuse(lambda *arrays: run(steps, list(arrays)))
    theirs, ours = given, copies(given)
    for call in range(2):
        with quietly():
            expected = run(steps, list(theirs))
        with quietly():
            found = attempt(lambda ours=ours: fused(*ours), shown)
        if isinstance(found, fusec.FusecError):
            refused(found, shown)
        compare(found, expected, steps, f"call {call}: {shown}")
        compare(ours, theirs, steps, f"arguments of call {call}: {shown}")
        theirs, ours = altered(theirs, expected), altered(ours, found)


def altered(given: list[Any], results: list[Any]) -> list[Any]:
    """The arguments after a user has written into them and into the results."""
    for each in (*given, *results):
        if isinstance(each, np.ndarray) and each.flags.writeable:
            with np.errstate(all="ignore"):
                each[...] = (np.arange(each.size).reshape(each.shape) * 5 % 7 - 2).astype(each.dtype)
    return given


def described(steps: Program, given: list[Any]) -> str:
    """The steps, and how the arguments lie."""
    lines = [", ".join(getattr(part, "__name__", repr(part)) for part in step) for step in steps]
    return "\n".join([*lines, *(f"{each.dtype} {each.shape} {each.strides}" for each in given)])


def unsigned(values: Any) -> np.ndarray:
    """The values with infinities of one sign, as a number divided by a zero of either sign gives them."""
    values = np.asarray(values)
    return np.where(np.isinf(values), np.inf, values) if values.dtype.kind in "fc" else values


def strides(array: Any) -> list[int]:
    """The strides of the axes that have several elements."""
    return [step for step, extent in zip(array.strides, array.shape, strict=True) if extent > 1 and array.size]


def compare(found: list[Any], expected: list[Any], steps: Program, shown: str) -> None:
    """Raise FindingError unless all are alike: types, dtypes, values, strides, signs of zeros."""
    if len(found) != len(expected):
        raise FindingError("count", f"{len(found)} results, not {len(expected)}", shown)
    is_open = leaves_signs_open(steps)
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if type(ours) is not type(theirs) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            kinds = [f"{type(each).__name__} {each.dtype} {each.shape}" for each in (ours, theirs)]
            raise FindingError("dtype", f"value {at} is {kinds[0]}, not {kinds[1]}", shown)
        if not np.array_equal(*map(unsigned if is_open else np.asarray, (ours, theirs)), equal_nan=True):
            raise FindingError("value", f"value {at} is {ours!r}, not {theirs!r}", shown)
        if strides(ours) != strides(theirs):
            raise FindingError("layout", f"value {at} has strides {ours.strides}, not {theirs.strides}", shown)
        numbers = ~np.isnan(theirs)
        if is_open:
            numbers &= (theirs != 0) & ~np.isinf(theirs)
        if theirs.dtype.kind == "f" and not np.array_equal(np.signbit(ours)[numbers], np.signbit(theirs)[numbers]):
            raise FindingError("sign", f"value {at} is {ours!r}, not {theirs!r}", shown)
