"""Numba: one scalar function for each workload, in explicit loops over all elements."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from reductions import result_size
from workloads import ITERATIONS, Arrays, Workload

from peers import Prepared
from peers.numba_reductions import LOOPS
from peers.numba_stencils import WINDOWS

F = np.float32


def add(x, y):
    return x + y


def saxpy(x, y):
    return F(2.5) * x + y


def chain(x, y):
    d = x - y
    s = x + y
    return (d * d + s * s) * F(0.5) - x * y


def sigmoid(x):
    return F(1) / (F(1) + math.exp(-x))


def gelu(x):
    return F(0.5) * x * (F(1) + math.tanh(F(0.7978845608028654) * (x + F(0.044715) * x * x * x)))


def rbf(x, y):
    d = x - y
    return math.exp(-(d * d))


def black_scholes(s, k, t):
    root = math.sqrt(t)
    d1 = (math.log(s / k) + F(0.065) * t) / (F(0.3) * root)
    d2 = d1 - F(0.3) * root
    n1 = F(0.5) + F(0.5) * math.erf(d1 * F(0.7071067811865476))
    n2 = F(0.5) + F(0.5) * math.erf(d2 * F(0.7071067811865476))
    discounted = k * math.exp(F(-0.02) * t)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


def mandelbrot(cx, cy):
    zx = zy = F(0)
    count = 0
    while count < ITERATIONS and zx * zx + zy * zy <= F(4):
        zx, zy = zx * zx - zy * zy + cx, F(2) * zx * zy + cy
        count += 1
    return count


def gelu_erf(x):
    return F(0.5) * x * (F(1) + math.erf(F(0.7071067811865476) * x))


def gelu_erf64(x):
    return 0.5 * x * (1 + math.erf(0.7071067811865476 * x))


def gelu_tanh64(x):
    return 0.5 * x * (1 + math.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def logistic64(x):
    return 1 / (1 + math.exp(-x))


def increment(x):
    return x + F(1)


def exp(x):
    return math.exp(x)


def log(x):
    return math.log(x)


def tanh(x):
    return math.tanh(x)


def erf(x):
    return math.erf(x)


def sin(x):
    return math.sin(x)


def power(x, y):
    return x**y


SAME = {"increment": increment, "exp": exp, "log": log, "tanh": tanh, "erf": erf, "sin": sin, "pow": power}
SCALAR: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (saxpy, chain, sigmoid, gelu, rbf, black_scholes, mandelbrot)
} | {"call_add": add, "call_gelu": gelu, "logistic": sigmoid, "gelu_tanh": gelu, "gelu_erf": gelu_erf}
SCALAR |= SAME | {f"{name}64": function for name, function in SAME.items()}
SCALAR |= {"logistic64": logistic64, "gelu_tanh64": gelu_tanh64, "gelu_erf64": gelu_erf64}


def over_one(f):
    def loop(x, z):
        for i in numba.prange(x.shape[0]):
            z[i] = f(x[i])

    return loop


def over_two(f):
    def loop(x, y, z):
        for i in numba.prange(x.shape[0]):
            z[i] = f(x[i], y[i])

    return loop


def over_three(f):
    def loop(s, k, t, call, put):
        for i in numba.prange(s.shape[0]):
            call[i], put[i] = f(s[i], k[i], t[i])

    return loop


def over_planes(f):
    def loop(x, y, z):
        for i in numba.prange(x.shape[0]):
            for j in range(x.shape[1]):
                z[i, j] = f(x[i, j], y[i, j])

    return loop


class Library:
    """Numba."""

    def __init__(self, threads: int, fastmath: bool) -> None:
        self.version = numba.__version__
        self.fastmath = fastmath
        numba.set_num_threads(threads)

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        name = work.name.removeprefix("call_")
        if name in LOOPS:
            made = np.empty(result_size(name, operands), np.int64 if work.integer else np.float32)
            outputs = (made.reshape(operands[0].shape) if made.size == operands[0].size else made,)
            run = numba.njit(parallel=work.group != "call", fastmath=self.fastmath, cache=True)(LOOPS[name])
            return partial(run, *operands, *outputs), lambda: outputs
        if name in WINDOWS:
            made = np.zeros_like(operands[0])
            run = numba.njit(parallel=True, fastmath=self.fastmath, cache=True)(WINDOWS[name])
            return partial(run, *operands, made), lambda: (made,)
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        inputs = [np.broadcast_to(x, shape) if x.shape != shape else x for x in operands]
        outputs = tuple(np.empty(shape, work.result_dtype) for _ in range(work.outputs))
        over = over_planes if len(shape) == 2 else (over_one, over_two, over_three)[len(inputs) - 1]
        scalar = numba.njit(fastmath=self.fastmath, cache=True)(SCALAR.get(work.name, saxpy))
        run = numba.njit(parallel=work.group != "call", fastmath=self.fastmath, cache=True)(over(scalar))
        return partial(run, *inputs, *outputs), lambda: outputs
