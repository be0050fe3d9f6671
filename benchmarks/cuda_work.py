"""The work for CUDA devices, and how each library does it. Inputs are PyTorch tensors, shared without copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

import fusec

Tensor = torch.Tensor
Call = Callable[[], Any]  # enqueues the work and returns its result


@dataclass(frozen=True)
class Work:
    """One row of the table.

    inputs: makes about n elements for every operand. text: the kernel for fusec and CuPy. compute: the same for array
    libraries, given their namespace. scalar: the same for Numba, one element. dtype: of all arrays.
    """

    name: str
    inputs: Callable[[int, torch.dtype], tuple[Tensor, ...]]
    text: str
    compute: Callable[..., Any]
    dtype: torch.dtype = torch.float32
    sizes: tuple[int, ...] = (1 << 28,)
    outputs: int = 1
    note: str = ""
    tolerance: float = 1e-5
    view: Callable[[Any], Any] | None = None  # of the first operand, for libraries without views
    scalar: Callable[..., Any] | None = field(default=None)

    @property
    def label(self) -> str:
        """The name with the dtype."""
        return f"{self.name} {str(self.dtype).removeprefix('torch.')}"


# --- inputs ----------------------------------------------------------------------------------------------------------


def uniform(*ranges: tuple[float, float]) -> Callable[[int, torch.dtype], tuple[Tensor, ...]]:
    """Operands of n elements, one for each range."""

    def make(n: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
        generator = torch.Generator("cuda").manual_seed(0)
        if not dtype.is_floating_point:
            return tuple(torch.randint(-50, 50, (n,), generator=generator, dtype=dtype, device="cuda") for _ in ranges)
        made = []
        for low, high in ranges:
            x = torch.empty(n, dtype=dtype, device="cuda")
            made.append(x.uniform_(low, high, generator=generator))
        return tuple(made)

    return make


PAIR = uniform((-1, 1), (-1, 1))


def square(n: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Two square matrices."""
    side = math.isqrt(n)
    return tuple(x.reshape(side, side) for x in PAIR(side * side, dtype))


def transposed(n: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """The first of two matrices turned."""
    x, y = square(n, dtype)
    return x.T, y


def every_second(n: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Every second element of the first operand."""
    x, _ = PAIR(2 * n, dtype)
    _, y = PAIR(n, dtype)
    return x[::2], y


def row(n: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """A matrix and a row for all of its rows."""
    x, y = square(n, dtype)
    return x, y[0].clone()


# --- what is computed ------------------------------------------------------------------------------------------------


def saxpy(xp: Any, x: Any, y: Any) -> Any:
    """Two reads, one write."""
    return x * 2 + y


def chain(xp: Any, x: Any, y: Any) -> Any:
    """Eight operations."""
    d, s = x - y, x + y
    return (d * d + s * s) * 0.5 - x * y


def sigmoid(xp: Any, x: Any) -> Any:
    """The logistic function."""
    return 1.0 / (1.0 + xp.exp(-x))


def gelu_tanh(xp: Any, x: Any) -> Any:
    """GELU by tanh."""
    return 0.5 * x * (1.0 + xp.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def gelu_erf(xp: Any, x: Any) -> Any:
    """GELU by the error function."""
    return 0.5 * x * (1.0 + xp.erf(x * 0.7071067811865476))


def black_scholes(xp: Any, s: Any, k: Any, t: Any) -> Any:
    """Call and put."""
    root = xp.sqrt(t)
    d1 = (xp.log(s / k) + 0.065 * t) / (0.3 * root)
    d2 = d1 - 0.3 * root
    n1 = 0.5 + 0.5 * xp.erf(d1 * 0.7071067811865476)
    n2 = 0.5 + 0.5 * xp.erf(d2 * 0.7071067811865476)
    discounted = k * xp.exp(-0.02 * t)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


F = np.float32


def saxpy_1(x, y):
    return x * F(2) + y


def saxpy_i(x, y):
    return x * 2 + y


def chain_1(x, y):
    d = x - y
    s = x + y
    return (d * d + s * s) * F(0.5) - x * y


def sigmoid_1(x):
    return F(1) / (F(1) + math.exp(-x))


def gelu_tanh_1(x):
    return F(0.5) * x * (F(1) + math.tanh(F(0.7978845608028654) * (x + F(0.044715) * x * x * x)))


def gelu_erf_1(x):
    return F(0.5) * x * (F(1) + math.erf(x * F(0.7071067811865476)))


def black_scholes_1(s, k, t):
    root = math.sqrt(t)
    d1 = (math.log(s / k) + F(0.065) * t) / (F(0.3) * root)
    d2 = d1 - F(0.3) * root
    n1 = F(0.5) + F(0.5) * math.erf(d1 * F(0.7071067811865476))
    n2 = F(0.5) + F(0.5) * math.erf(d2 * F(0.7071067811865476))
    discounted = k * math.exp(F(-0.02) * t)
    call = s * n1 - discounted * n2
    return call, call - s + discounted


SAXPY = "z = x * (T)2 + y"
BLACK_SCHOLES = """
T root = sqrt(t);
T d1 = (log(s / k) + 0.065f * t) / (0.3f * root);
T d2 = d1 - 0.3f * root;
T n1 = 0.5f + 0.5f * erf(d1 * 0.7071067811865476f);
T n2 = 0.5f + 0.5f * erf(d2 * 0.7071067811865476f);
T discounted = k * exp(-0.02f * t);
call = s * n1 - discounted * n2;
put = call - s + discounted;
"""
SIGMOID = "z = 1.0f / (1.0f + exp(-x))"
TANH = "z = 0.5f * x * (1.0f + tanh(0.7978845608028654f * (x + 0.044715f * x * x * x)))"
ERF = "z = 0.5f * x * (1.0f + erf(x * 0.7071067811865476f))"
CHAIN = "T d = x - y, s = x + y; z = (d * d + s * s) * 0.5f - x * y"
SMALL = (100_000, 1 << 20, 1 << 24, 1 << 28)
OPTION = uniform((10, 50), (10, 50), (0.5, 2))

WORK = (
    Work("saxpy", PAIR, SAXPY, saxpy, sizes=SMALL, note="x * 2 + y", scalar=saxpy_1),
    Work("saxpy", PAIR, SAXPY, saxpy, torch.float64, scalar=saxpy_i, note="x * 2 + y"),
    Work("saxpy", PAIR, SAXPY, saxpy, torch.float16, tolerance=2e-3, note="x * 2 + y"),
    Work("saxpy", PAIR, SAXPY, saxpy, torch.bfloat16, tolerance=2e-2, note="x * 2 + y"),
    Work("saxpy", PAIR, SAXPY, saxpy, torch.int8, tolerance=0, scalar=saxpy_i, note="x * 2 + y"),
    Work("chain", PAIR, CHAIN, chain, note="8 operations", scalar=chain_1),
    Work("sigmoid", uniform((-8, 8)), SIGMOID, sigmoid, scalar=sigmoid_1),
    Work("gelu_tanh", uniform((-6, 6)), TANH, gelu_tanh, sizes=SMALL, scalar=gelu_tanh_1),
    Work("gelu_tanh", uniform((-6, 6)), TANH, gelu_tanh, torch.bfloat16, tolerance=2e-2),
    Work("gelu_erf", uniform((-6, 6)), ERF, gelu_erf, scalar=gelu_erf_1),
    Work("black_scholes", OPTION, BLACK_SCHOLES, black_scholes, outputs=2, scalar=black_scholes_1),
    Work("strided", every_second, SAXPY, saxpy, note="x[::2] * 2 + y", view=lambda x: x[::2]),
    Work("transposed", transposed, SAXPY, saxpy, note="x.T * 2 + y", view=lambda x: x.T),
    Work("row", row, SAXPY, saxpy, note="matrix, row"),
)


# --- the libraries ---------------------------------------------------------------------------------------------------


def outputs_for(work: Work, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Memory for the results, in C order."""
    shape = torch.broadcast_shapes(*(each.shape for each in inputs))
    return tuple(torch.zeros(shape, dtype=work.dtype, device="cuda") for _ in range(work.outputs))


def definition(work: Work) -> tuple[str, str, str, str]:
    """The texts of a kernel string."""
    if work.outputs == 2:
        return "T s, T k, T t", "T call, T put", work.text, work.name
    return "T x, T y" if "y" in work.text else "T x", "T z", work.text, work.name


def with_fusec(work: Work, inputs: tuple[Tensor, ...]) -> Call:
    """A kernel string on PyTorch tensors, outputs given."""
    return partial(fusec.ElementwiseKernel(*definition(work)), *inputs, *outputs_for(work, inputs))


def with_fusec_fast(work: Work, inputs: tuple[Tensor, ...]) -> Call | None:
    """The same with fp="fast"."""
    if not work.dtype.is_floating_point:
        return None
    return partial(fusec.ElementwiseKernel(*definition(work), fp="fast"), *inputs, *outputs_for(work, inputs))


def with_cupy_kernel(work: Work, inputs: tuple[Tensor, ...]) -> Call:
    """The same kernel string, outputs given."""
    import cupy

    arrays = [cupy.from_dlpack(each) for each in (*inputs, *outputs_for(work, inputs))]
    return partial(cupy.ElementwiseKernel(*definition(work)), *arrays)


class CuPyNames:
    """cupy and its error function."""

    def __getattr__(self, name: str) -> Any:
        import cupy
        import cupyx.scipy.special

        return cupyx.scipy.special.erf if name == "erf" else getattr(cupy, name)


def with_cupy(work: Work, inputs: tuple[Tensor, ...]) -> Call:
    """Array expressions, an operation at a time; allocates."""
    import cupy

    return partial(work.compute, CuPyNames(), *(cupy.from_dlpack(each) for each in inputs))


def with_cupy_fuse(work: Work, inputs: tuple[Tensor, ...]) -> Call:
    """cupy.fuse; allocates."""
    import cupy

    names = CuPyNames()

    def one(x):
        return work.compute(names, x)

    def two(x, y):
        return work.compute(names, x, y)

    def three(x, y, z):
        return work.compute(names, x, y, z)

    function = (one, two, three)[len(inputs) - 1]  # fuse looks at the parameters and the name
    return partial(cupy.fuse()(function), *(cupy.from_dlpack(each) for each in inputs))


def with_torch(work: Work, inputs: tuple[Tensor, ...]) -> Call:
    """Eager, an operation at a time; allocates."""
    return partial(work.compute, torch, *inputs)


def with_torch_compile(work: Work, inputs: tuple[Tensor, ...]) -> Call:
    """torch.compile(dynamic=False); allocates."""
    torch._dynamo.reset()
    return partial(torch.compile(lambda *tensors: work.compute(torch, *tensors), dynamic=False), *inputs)


class JaxNames:
    """jax.numpy and the error function."""

    def __getattr__(self, name: str) -> Any:
        import jax

        return jax.scipy.special.erf if name == "erf" else getattr(jax.numpy, name)


def with_jax(work: Work, inputs: tuple[Tensor, ...]) -> Call | None:
    """jax.jit; allocates. A view is made inside, since JAX has none."""
    import jax

    jax.config.update("jax_enable_x64", True)
    whole = list(inputs)
    view = work.view or (lambda x: x)
    if work.view is not None:
        whole[0] = inputs[0]._base if work.name == "strided" else inputs[0].T
    arrays = [jax.dlpack.from_dlpack(each.reshape(-1) if work.name == "strided" else each) for each in whole]
    return partial(jax.jit(lambda x, *others: work.compute(JaxNames(), view(x), *others)), *arrays)


def with_numba(work: Work, inputs: tuple[Tensor, ...]) -> Call | None:
    """An explicit kernel with a thread an element, outputs given."""
    if work.scalar is None or inputs[0].ndim != 1:
        return None
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # which some versions of Numba ask of NumPy, and newer NumPy lacks
    from numba import cuda

    one = cuda.jit(device=True)(work.scalar)

    def over_one(x, z):
        i = cuda.grid(1)
        if i < z.size:
            z[i] = one(x[i])

    def over_two(x, y, z):
        i = cuda.grid(1)
        if i < z.size:
            z[i] = one(x[i], y[i])

    def over_three(s, k, t, call, put):
        i = cuda.grid(1)
        if i < call.size:
            call[i], put[i] = one(s[i], k[i], t[i])

    kernel = cuda.jit((over_one, over_two, over_three)[len(inputs) - 1])
    arrays = [cuda.as_cuda_array(each) for each in (*inputs, *outputs_for(work, inputs))]
    configured = kernel[(-(-inputs[0].numel() // 256), 256)]

    def call() -> Any:
        configured(*arrays)
        return arrays[len(inputs) :]

    return call


PEERS: dict[str, Callable[[Work, tuple[Tensor, ...]], Call | None]] = {
    "fusec": with_fusec,
    "fusec fast": with_fusec_fast,
    "cupy kernel": with_cupy_kernel,
    "cupy": with_cupy,
    "cupy.fuse": with_cupy_fuse,
    "torch": with_torch,
    "torch.compile": with_torch_compile,
    "jax": with_jax,
    "numba": with_numba,
}
