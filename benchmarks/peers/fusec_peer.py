"""Kernel strings, called through the public object as a user calls it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from reductions import REDUCTIONS, result_size
from stencils import STENCILS, TEXTS
from workloads import ITERATIONS, Arrays, Workload

import fusec
from peers import Prepared

PAIR = "float32 x, float32 y"
SAXPY = (PAIR, "float32 z", "z = 2.5f * x + y")
GELU = ("float32 x", "float32 z", "z = 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)))")
ADD = (PAIR, "float32 z", "z = x + y")
CHAIN = (PAIR, "float32 z", "float d = x - y, s = x + y; z = (d * d + s * s) * 0.5f - x * y")
BLACK_SCHOLES = """
float root = sqrt(t);
float d1 = (log(s / k) + 0.065f * t) / (0.3f * root);
float d2 = d1 - 0.3f * root;
float n1 = 0.5f + 0.5f * erf(d1 * 0.7071067811865476f);
float n2 = 0.5f + 0.5f * erf(d2 * 0.7071067811865476f);
float discounted = k * exp(-0.02f * t);
call = s * n1 - discounted * n2;
put = call - s + discounted;
"""
MANDELBROT = f"""
float zx = 0, zy = 0;
int steps = 0;
while (steps < {ITERATIONS} && zx * zx + zy * zy <= 4) {{
    float next = zx * zx - zy * zy + cx;
    zy = 2 * zx * zy + cy;
    zx = next;
    ++steps;
}}
count = steps;
"""
KERNELS = {
    "saxpy": SAXPY,
    "chain": CHAIN,
    "sigmoid": ("float32 x", "float32 z", "z = 1.0f / (1.0f + exp(-x))"),
    "gelu": GELU,
    "rbf": (PAIR, "float32 z", "float d = x - y; z = exp(-(d * d))"),
    "black_scholes": ("float32 s, float32 k, float32 t", "float32 call, float32 put", BLACK_SCHOLES),
    "mandelbrot": ("float32 cx, float32 cy", "int32 count", MANDELBROT),
    "call_add": ADD,
    "call_gelu": GELU,
}


def function(work: Workload, operands: int) -> tuple[str, str, str]:
    """The kernel of a workload that is one expression."""
    return ", ".join(("T x", "T y")[:operands]), "T z", f"z = {work.kernel}"


class Library:
    """fusec."""

    def __init__(self, threads: int, out: bool) -> None:
        self.version = fusec.__version__  # the number of threads comes from FUSEC_NUM_THREADS
        self.out = out

    def _reduced(self, name: str, operands: Arrays) -> Prepared:
        run = reduction(name)
        if not self.out:
            last: list[object] = [None]

            def call() -> None:
                last[0] = run(*operands)

            return call, lambda: as_tuple(last[0])
        count = result_size(name, operands)
        shape = operands[0].shape if count == operands[0].size else () if count == 1 else (count,)
        given = np.empty(shape, np.int64 if name == "argmax" else np.float32)
        return partial(run, *operands, out=given), lambda: (given,)

    def _stencil(self, name: str, operands: Arrays) -> Prepared:
        run = fusec.stencil(TEXTS[STENCILS[name][2]], boundary="reflect", names={"np": np})
        given = np.empty_like(operands[0])
        if self.out:
            return partial(run, *operands, out=given), lambda: (given,)
        last: list[object] = [None]

        def call() -> None:
            last[0] = run(*operands)

        return call, lambda: as_tuple(last[0])

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        name = work.name.removeprefix("call_")
        if name in REDUCTIONS:
            return self._reduced(name, operands)
        if name in STENCILS:
            return self._stencil(name, operands)
        ins, outs, operation = function(work, len(operands)) if work.kernel else KERNELS.get(work.name, SAXPY)
        kernel = fusec.ElementwiseKernel(ins, outs, operation, work.name)
        shape = np.broadcast_shapes(*(operand.shape for operand in operands))
        given = tuple(np.empty(shape, work.result_dtype) for _ in range(work.outputs))
        if self.out:
            return partial(kernel, *operands, *given), lambda: given
        if work.group == "call":
            return partial(kernel, *operands), lambda: as_tuple(kernel(*operands))
        last: list[object] = [None]

        def call() -> None:  # keeps a result until the next, as `z = kernel(x, y)` in a loop does
            last[0] = kernel(*operands)

        return call, lambda: as_tuple(last[0])


def reduction(name: str) -> Callable[..., object]:
    """The built-in reduction of a workload, or a kernel of its own."""
    kind, _, along = name.partition("_")
    axis = int(along) if along.isdigit() else None
    if name in ("softmax", "layer_norm"):
        return getattr(fusec, name)
    if kind == "squares":
        kernel = fusec.ReductionKernel("T x, T y", "T z", "(x - y) * (x - y)", "a + b", "z = a", "0", "squares")
        return partial(kernel, axis=axis)
    return partial(getattr(fusec, kind), axis=axis)


def as_tuple(result: object) -> Arrays:
    """Several results as they are, one in a tuple."""
    return result if isinstance(result, tuple) else (result,)  # type: ignore[return-value]
