"""The stencils: a 3x3 window over an image, as slices for array libraries and as loops for others.

Results are compared without the outermost rows and columns, which slices do not compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = tuple[np.ndarray, ...]
SIDE = 4096


def image(dtype: str) -> Callable[[int], Arrays]:
    """One square image of about n elements."""

    def make(n: int) -> Arrays:
        side = math.isqrt(n)
        random = np.random.default_rng(0)
        if dtype == "uint8":
            return (random.integers(0, 256, (side, side), np.uint8),)
        return (random.random((side, side), np.float32),)

    return make


def around(x: Any) -> Any:
    """The sum of the 8 neighbours less 8 times the element, of all elements that have them."""
    total = x[:-2, :-2] + x[:-2, 1:-1] + x[:-2, 2:] + x[1:-1, :-2] - 8 * x[1:-1, 1:-1]
    return total + x[1:-1, 2:] + x[2:, :-2] + x[2:, 1:-1] + x[2:, 2:]


def laplacian(xp: Any, x: Any) -> Any:
    """In the dtype of the image; bytes wrap."""
    return around(x)


def edges(xp: Any, x: Any) -> Any:
    """The absolute Laplacian, clipped to bytes."""
    wide = x.to(xp.int32) if hasattr(x, "to") else x.astype(xp.int32)
    found = xp.clip(abs(around(wide)), 0, 255)
    return found.to(xp.uint8) if hasattr(x, "to") else found.astype(xp.uint8)


TEXTS = {
    "laplacian": """
def laplacian(a):
    total = a[-1, -1] + a[-1, 0] + a[-1, 1] + a[0, -1] - 8 * a
    return total + a[0, 1] + a[1, -1] + a[1, 0] + a[1, 1]
""",
    "edges": """
def edges(a):
    total = np.int32(a[-1, -1]) + a[-1, 0] + a[-1, 1] + a[0, -1] - 8 * np.int32(a)
    return np.uint8(np.clip(abs(total + a[0, 1] + a[1, -1] + a[1, 0] + a[1, 1]), 0, 255))
""",
}
WEIGHTS = ((1, 1, 1), (1, -8, 1), (1, 1, 1))
# name: (dtype, array code, which kernel text, text)
STENCILS: dict[str, tuple[str, Callable[..., Any], str, str]] = {
    "laplacian": ("float32", laplacian, "laplacian", "float32"),
    "laplacian_bytes": ("uint8", laplacian, "laplacian", "uint8"),
    "edges_bytes": ("uint8", edges, "edges", "absolute, clipped to uint8"),
}


def error(name: str, operands: Arrays, results: Arrays) -> float:
    """Largest difference to NumPy, in float64 for floats, relative to the largest value; how many bytes differ."""
    dtype, compute, *_ = STENCILS[name]
    (x,) = operands
    expected = compute(np, x.astype(np.float64) if dtype == "float32" else x)
    (found,) = results
    found = found if found.shape == expected.shape else found[1:-1, 1:-1]
    if dtype == "uint8":
        return float(np.mean(found != expected))
    return float(np.abs(found - expected).max() / np.abs(expected).max())
