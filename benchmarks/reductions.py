"""The reductions: inputs, the same expressions for every array library, and how large the results are.

`xp` is numpy, jax.numpy or torch; all three know axis= and keepdims=.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]
COLUMNS = 1024  # of the matrix whose rows are normalised
EPSILON = 1e-5


def matrix(n: int) -> Arrays:
    """One square matrix of about n elements."""
    side = math.isqrt(n)
    return (np.random.default_rng(0).uniform(-1, 1, (side, side)).astype(np.float32),)


def matrices(n: int) -> Arrays:
    """Two square matrices."""
    (x,) = matrix(n)
    return x, np.random.default_rng(1).uniform(-1, 1, x.shape).astype(np.float32)


def vector(n: int) -> Arrays:
    """One vector with a mean that is not zero, so that relative errors mean something."""
    return (np.random.default_rng(0).uniform(-1, 2, n).astype(np.float32),)


def rows(n: int) -> Arrays:
    """A matrix of rows to normalise."""
    return (np.random.default_rng(0).normal(0, 2, (n // COLUMNS, COLUMNS)).astype(np.float32),)


def _sum(axis: int | None) -> Callable[..., Any]:
    return lambda xp, x: xp.sum(x, axis=axis)


def _mean(axis: int | None) -> Callable[..., Any]:
    return lambda xp, x: xp.mean(x, axis=axis)


def _var(axis: int | None) -> Callable[..., Any]:
    return lambda xp, x: xp.var(x, axis=axis, correction=0)


def _squares(axis: int) -> Callable[..., Any]:
    return lambda xp, x, y: xp.sum((x - y) * (x - y), axis=axis)


def _cumsum(axis: int) -> Callable[..., Any]:
    return lambda xp, x: xp.cumsum(x, axis=axis)


def _argmax(xp: Any, x: Any) -> Any:
    return xp.argmax(x)


def softmax(xp: Any, x: Any) -> Any:
    """The softmax of each row."""
    power = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return power / xp.sum(power, axis=1, keepdims=True)


def layer_norm(xp: Any, x: Any) -> Any:
    """Each row with mean 0 and variance 1."""
    far = x - xp.mean(x, axis=1, keepdims=True)
    return far / xp.sqrt(xp.mean(far * far, axis=1, keepdims=True) + EPSILON)


WHOLE, ROWS = (10_000_000,), (4096 * COLUMNS,)
# name: (inputs, array code, sizes, shape of the result, text)
REDUCTIONS: dict[str, tuple[Callable[[int], Arrays], Callable[..., Any], tuple[int, ...], str, str]] = {
    "sum": (vector, _sum(None), WHOLE, "one", "all"),
    "sum_0": (matrix, _sum(0), WHOLE, "side", "axis 0"),
    "sum_1": (matrix, _sum(1), WHOLE, "side", "axis 1"),
    "mean": (vector, _mean(None), WHOLE, "one", "all"),
    "mean_0": (matrix, _mean(0), WHOLE, "side", "axis 0"),
    "mean_1": (matrix, _mean(1), WHOLE, "side", "axis 1"),
    "var": (vector, _var(None), WHOLE, "one", "all"),
    "var_0": (matrix, _var(0), WHOLE, "side", "axis 0"),
    "var_1": (matrix, _var(1), WHOLE, "side", "axis 1"),
    "squares_0": (matrices, _squares(0), WHOLE, "side", "sum((x-y)^2), axis 0"),
    "squares_1": (matrices, _squares(1), WHOLE, "side", "sum((x-y)^2), axis 1"),
    "argmax": (vector, _argmax, WHOLE, "one", "all"),
    "cumsum": (vector, _cumsum(0), WHOLE, "all", "all"),
    "cumsum_0": (matrix, _cumsum(0), WHOLE, "all", "axis 0"),
    "cumsum_1": (matrix, _cumsum(1), WHOLE, "all", "axis 1"),
    "softmax": (rows, softmax, ROWS, "all", "4096 x 1024"),
    "layer_norm": (rows, layer_norm, ROWS, "all", "4096 x 1024"),
}


def result_size(name: str, operands: Arrays) -> int:
    """Elements of a result."""
    kind = REDUCTIONS[name][3]
    return {"one": 1, "side": operands[0].shape[-1], "all": operands[0].size}[kind]


def error(name: str, operands: Arrays, results: Arrays) -> float:
    """Largest difference to NumPy in float64, relative to the largest value; for positions how many differ."""
    expected = np.asarray(REDUCTIONS[name][1](np, *(operand.astype(np.float64) for operand in operands)))
    found = np.asarray(results[0]).reshape(expected.shape)
    if expected.dtype.kind == "i":
        return float(np.mean(found != expected))
    return float(np.abs(found - expected).max() / np.abs(expected).max()) if np.isfinite(found).all() else math.inf
