"""The work: inputs, what is computed from them, and how many bytes that must move at least.

Element-wise results are checked on a sample of their elements against float64 NumPy; the reductions, which stand in
reductions.py, as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import reductions
import stencils
from reductions import REDUCTIONS
from stencils import STENCILS

Arrays = tuple[np.ndarray, ...]
ITERATIONS = 50  # of Mandelbrot


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    inputs: makes the operands of about n elements. compute: the same expression for every array library, given its
    namespace. group: "compute", "layout", "function", "function64", "reduction", "stencil" or "call". sizes: what it
    is run with unless asked otherwise. kernel: the expression in C, if it stands in one line. dtype: of the operands
    and results. tolerance: of the error relative to the largest result; for integer results the share that may differ.
    """

    name: str
    inputs: Callable[[int], Arrays]
    compute: Callable[..., Any]
    group: str = "compute"
    sizes: tuple[int, ...] = (10_000_000,)
    outputs: int = 1
    tolerance: float = 1e-5
    integer: bool = False
    text: str = ""
    kernel: str = ""
    dtype: str = "float32"

    @property
    def result_dtype(self) -> np.dtype:
        """The dtype of the results."""
        return np.dtype(np.int32 if self.integer else self.dtype)

    def least_bytes(self, operands: Arrays) -> int:
        """Bytes that must cross the memory bus: each used element once; gaps cost their cache lines too."""
        read = sum(touched(operand) for operand in operands)
        if self.group == "reduction":
            return read + self.result_dtype.itemsize * reductions.result_size(self.name, operands)
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        return read + self.result_dtype.itemsize * self.outputs * math.prod(shape)


def touched(array: np.ndarray) -> int:
    """Bytes of memory that reading all elements moves, in whole cache lines."""
    steps = [abs(step) for step, extent in zip(array.strides, array.shape, strict=True) if step and extent > 1]
    elements = math.prod(extent for step, extent in zip(array.strides, array.shape, strict=True) if step)
    return elements * min(64, max(array.itemsize, min(steps, default=array.itemsize)))


def uniform(*ranges: tuple[float, float]) -> Callable[[int], Arrays]:
    """Operands of n float32, one for each range of values."""
    return uniform_of("float32", *ranges)


def uniform_of(dtype: str, *ranges: tuple[float, float]) -> Callable[[int], Arrays]:
    """Operands of n elements, one for each range of values."""

    def make(n: int) -> Arrays:
        random = np.random.default_rng(0)
        return tuple(random.uniform(low, high, n).astype(dtype) for low, high in ranges)

    return make


# --- what is computed; `xp` is numpy, jax.numpy, torch or drjit ----------------------------------------------------


def add(xp: Any, x: Any, y: Any) -> Any:
    """The smallest kernel there is, for the cost of a call."""
    return x + y


def saxpy(xp: Any, x: Any, y: Any) -> Any:
    """Two reads, one write, two operations."""
    return 2.5 * x + y


def chain(xp: Any, x: Any, y: Any) -> Any:
    """Eight operations: what fusing is about."""
    d = x - y
    s = x + y
    return (d * d + s * s) * 0.5 - x * y


def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function."""
    return 1.0 / (1.0 + xp.exp(-x))


def gelu(xp: Any, x: Any) -> Any:
    """The tanh form of the Gaussian error linear unit (Hendrycks and Gimpel 2016)."""
    return 0.5 * x * (1.0 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def gelu_erf(xp: Any, x: Any) -> Any:
    """The Gaussian error linear unit itself."""
    return 0.5 * x * (1.0 + xp.erf(0.7071067811865476 * x))


def rbf(xp: Any, x: Any, y: Any) -> Any:
    """A radial basis function."""
    d = x - y
    return xp.exp(-(d * d))


def black_scholes(xp: Any, s: Any, k: Any, t: Any) -> Any:
    """European call and put at 2 % interest and 30 % volatility; s price, k strike, t years."""
    root = xp.sqrt(t)
    d1 = (xp.log(s / k) + 0.065 * t) / (0.3 * root)
    d2 = d1 - 0.3 * root
    n1 = 0.5 + 0.5 * xp.erf(d1 * 0.7071067811865476)
    n2 = 0.5 + 0.5 * xp.erf(d2 * 0.7071067811865476)
    discounted = k * xp.exp(-0.02 * t)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


def mandelbrot(xp: Any, cx: Any, cy: Any) -> Any:
    """Steps until escape, at most ITERATIONS; as array code, which always runs all of them."""
    zx, zy = xp.zeros_like(cx), xp.zeros_like(cx)
    count = xp.zeros(cx.shape, dtype=xp.int32)
    live = xp.ones(cx.shape, dtype=xp.bool)
    for _ in range(ITERATIONS):
        xx, yy = zx * zx, zy * zy
        live = live & (xx + yy <= 4)
        count = count + live
        zy = 2 * zx * zy + cy
        zx = xx - yy + cx
    return count


# --- operands of other layouts -------------------------------------------------------------------------------------


def square(n: int) -> Arrays:
    """Two square matrices of about n elements each."""
    side = math.isqrt(n)
    x, y = uniform((-1, 1), (-1, 1))(side * side)
    return x.reshape(side, side), y.reshape(side, side)


def strided(n: int) -> Arrays:
    """Every second element of both."""
    x, y = uniform((-1, 1), (-1, 1))(2 * n)
    return x[::2], y[::2]


def transposed(n: int) -> Arrays:
    """A matrix in Fortran order beside one in C order."""
    x, y = square(n)
    return x.T, y


def reversed_(n: int) -> Arrays:
    """One operand runs backwards."""
    x, y = uniform((-1, 1), (-1, 1))(n)
    return x[::-1], y


def outer(n: int) -> Arrays:
    """A column against a row."""
    x, y = square(n)
    return x[:, :1].copy(), y[:1].copy()


def row(n: int) -> Arrays:
    """A matrix and one row for all of its rows."""
    x, y = square(n)
    return x, y[0].copy()


def column(n: int) -> Arrays:
    """A matrix and one column for all of its columns."""
    x, y = square(n)
    return x, y[:, :1].copy()


def shifted(n: int) -> Arrays:
    """Operands that start in the middle of a vector register's width, and not at the same place."""
    x, y = uniform((-1, 1), (-1, 1))(n + 5)
    return x[1:-4], y[3:-2]


def unaligned(n: int) -> Arrays:
    """An operand that starts at an odd byte."""
    x, y = uniform((-1, 1), (-1, 1))(n)
    raw = np.empty(4 * n + 1, np.uint8)
    odd = raw[1:].view(np.float32)
    odd[:] = x
    return odd, y


def plane(n: int) -> Arrays:
    """The square [-2, 1] x [-1.5, 1.5], n points."""
    side = math.isqrt(n)
    cx, cy = np.meshgrid(np.linspace(-2, 1, side), np.linspace(-1.5, 1.5, side))
    return cx.astype(np.float32), cy.astype(np.float32)


FUNCTIONS: dict[str, tuple[Callable[..., Any], str, tuple[tuple[float, float], ...]]] = {
    # name: array code, kernel text, ranges of the operands; T is the dtype
    "increment": (lambda xp, x: x + 1.0, "x + 1", ((-1, 1),)),  # as fast as memory lets anything be
    "exp": (lambda xp, x: xp.exp(x), "exp(x)", ((-10, 10),)),
    "log": (lambda xp, x: xp.log(x), "log(x)", ((0.01, 100),)),
    "tanh": (lambda xp, x: xp.tanh(x), "tanh(x)", ((-5, 5),)),
    "logistic": (sigmoid, "1 / (1 + exp(-x))", ((-8, 8),)),
    "gelu_tanh": (gelu, "T(0.5)*x*(1 + tanh(T(0.7978845608028654)*(x + T(0.044715)*x*x*x)))", ((-6, 6),)),
    "gelu_erf": (gelu_erf, "T(0.5)*x*(1 + erf(T(0.7071067811865476)*x))", ((-6, 6),)),
    "erf": (lambda xp, x: xp.erf(x), "erf(x)", ((-4, 4),)),
    "sin": (lambda xp, x: xp.sin(x), "sin(x)", ((-50, 50),)),
    "pow": (lambda xp, x, y: x**y, "pow(x, y)", ((0.1, 10), (-3, 3))),
}


def functions(dtype: str, mark: str, tolerance: float) -> tuple[Workload, ...]:
    """One workload for each function, its name followed by `mark`."""
    return tuple(
        Workload(
            name + mark,
            uniform_of(dtype, *ranges),
            compute,
            "function" + mark,
            text=kernel if "T(" not in kernel else "",
            kernel=kernel,
            dtype=dtype,
            tolerance=tolerance,
        )
        for name, (compute, kernel, ranges) in FUNCTIONS.items()
    )


PAIR = uniform((-1, 1), (-1, 1))
WORKLOADS = {
    row_.name: row_
    for row_ in (
        Workload("saxpy", PAIR, saxpy, text="2.5 x + y"),
        Workload("chain", PAIR, chain, text="8 operations"),
        Workload("sigmoid", uniform((-8, 8)), sigmoid),
        Workload("gelu", uniform((-6, 6)), gelu, text="GELU, tanh form"),
        Workload("rbf", PAIR, rbf, text="exp(-(x-y)^2)"),
        Workload("black_scholes", uniform((10, 50), (10, 50), (0.5, 2)), black_scholes, outputs=2),
        Workload(
            "mandelbrot", plane, mandelbrot, sizes=(1024 * 1024,), integer=True, tolerance=0.01, text="50 iterations"
        ),
        Workload("strided", strided, saxpy, "layout", text="x[::2], y[::2]"),
        Workload("transposed", transposed, saxpy, "layout", text="x.T, y"),
        Workload("reversed", reversed_, saxpy, "layout", text="x[::-1], y"),
        Workload("outer", outer, saxpy, "layout", text="column, row"),
        Workload("row", row, saxpy, "layout", text="matrix, row"),
        Workload("column", column, saxpy, "layout", text="matrix, column"),
        Workload("shifted", shifted, saxpy, "layout", text="x[1:], y[3:]"),
        Workload("unaligned", unaligned, saxpy, "layout", text="x at an odd address"),
        *functions("float32", "", 1e-5),
        *functions("float64", "64", 1e-12),
        *(
            Workload(
                name,
                inputs,
                compute,
                "reduction",
                sizes,
                integer=name == "argmax",
                tolerance=1e-3 if name.startswith("cumsum") else 2e-6,  # NumPy's adds one after the other
                text=text,
            )
            for name, (inputs, compute, sizes, _, text) in REDUCTIONS.items()
        ),
        *(
            Workload(name, stencils.image(dtype), compute, "stencil", (stencils.SIDE**2,), text=note, dtype=dtype)
            for name, (dtype, compute, _, note) in STENCILS.items()
        ),
        Workload("call_sum", reductions.vector, REDUCTIONS["sum"][1], "call", sizes=(1000,), text="sum"),
        Workload("call_add", PAIR, add, "call", sizes=(1000,), text="x + y"),
        Workload("call_gelu", uniform((-6, 6)), gelu, "call", sizes=(1000,), text="GELU"),
    )
}


class NumPy64:
    """NumPy with the error function, as the reference needs it."""

    def __getattr__(self, name: str) -> Any:
        return np.vectorize(math.erf, otypes=[np.float64]) if name == "erf" else getattr(np, name)


def error(work: Workload, operands: Arrays, results: Arrays, sample: int = 20_000) -> float:
    """Largest difference to the reference on a sample of elements, relative to its largest value.

    For integer results: the share of elements that differ from the same steps in float32 (rounding decides there).
    """
    name = work.name.removeprefix("call_")
    if name in REDUCTIONS:
        return reductions.error(name, operands, results)
    if name in STENCILS:
        return stencils.error(name, operands, results)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))
    size = math.prod(shape)
    at = np.unravel_index(np.linspace(0, size - 1, min(size, sample)).astype(np.int64), shape)
    some = [np.broadcast_to(operand, shape)[at] for operand in operands]
    with np.errstate(all="ignore"):
        expected = work.compute(NumPy64(), *(some if work.integer else [part.astype(np.float64) for part in some]))
    expected = expected if isinstance(expected, tuple) else (expected,)
    worst = 0.0
    for want, got in zip(expected, results, strict=True):
        have = np.asarray(got).reshape(shape)[at]
        if work.integer:
            worst = max(worst, float(np.mean(want != have)))
        elif not np.isfinite(have).all():
            return math.inf
        else:
            worst = max(worst, float(np.abs(have - want).max() / np.abs(want).max()))
    return worst
