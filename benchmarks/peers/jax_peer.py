"""JAX on the CPU. It has no views, so a workload about a layout takes the whole array and makes the view inside."""

from __future__ import annotations

import os
from functools import partial

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from workloads import ITERATIONS, Arrays, Workload, saxpy

from peers import Prepared


class Namespace:
    """jax.numpy and the error function."""

    def __getattr__(self, name):
        return jax.scipy.special.erf if name == "erf" else getattr(jnp, name)


def mandelbrot(cx, cy):
    def step(_, state):
        zx, zy, count, live = state
        xx, yy = zx * zx, zy * zy
        live = live & (xx + yy <= 4)
        return xx - yy + cx, 2 * zx * zy + cy, count + live, live

    zero = jnp.zeros_like(cx)
    start = (zero, zero, jnp.zeros(cx.shape, jnp.int32), jnp.ones(cx.shape, bool))
    return lax.fori_loop(0, ITERATIONS, step, start)[2]


def whole(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    return array if array.base is None else array.base


INSIDE = {
    "strided": lambda x, y: saxpy(jnp, x[::2], y[::2]),
    "transposed": lambda x, y: saxpy(jnp, x.T, y),
    "reversed": lambda x, y: saxpy(jnp, x[::-1], y),
    "shifted": lambda x, y: saxpy(jnp, x[1:-4], y[3:-2]),
}


class Library:
    """JAX."""

    def __init__(self, threads: int) -> None:
        self.version = jax.__version__  # threads follow the CPU affinity

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        if work.name == "unaligned":
            return None
        jax.config.update("jax_enable_x64", work.dtype == "float64")
        function = INSIDE.get(work.name)
        if work.name == "softmax":
            function = partial(jax.nn.softmax, axis=1)
        if function is None:
            function = mandelbrot if work.name == "mandelbrot" else lambda *arrays: work.compute(Namespace(), *arrays)
        else:
            operands = (operands[0].T, operands[1]) if work.name == "transposed" else tuple(map(whole, operands))
        inputs = [jnp.asarray(operand) for operand in operands]
        run, last = jax.jit(function), [None]

        def call() -> None:
            last[0] = jax.block_until_ready(run(*inputs))

        return call, lambda: tuple(map(np.asarray, last[0] if isinstance(last[0], tuple) else (last[0],)))
