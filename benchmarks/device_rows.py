"""The rows of rows_on_cuda.py: what is computed of which arrays, by fusec and by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

import fusec

DTYPES = {
    "f4": torch.float32, "f8": torch.float64, "bf16": torch.bfloat16, "f2": torch.float16, "u1": torch.uint8,
    "b1": torch.bool,
}  # fmt: skip


class Row(NamedTuple):
    """One function of arrays. moved: bytes that are read and written at least, in arrays of the first one's size.

    shapes: of further arrays. turned: the order of the first array's axes in memory.
    """

    name: str
    shape: tuple[int, ...]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    moved: float = 1
    dtype: str = "f4"
    shapes: tuple[tuple[int, ...], ...] = ()
    turned: tuple[int, ...] | None = None

    def inputs(self) -> list[Any]:
        """Random arrays: numbers around 0, or bytes."""
        found = [made(shape, self.dtype) for shape in (self.shape, *self.shapes)]
        if self.turned is not None:
            stored = found[0].permute(self.turned).contiguous()
            found[0] = stored.permute(*np.argsort(self.turned).tolist())
        return found


def made(shape: tuple[int, ...], dtype: str) -> Any:
    """A random array."""
    if dtype == "u1":
        return torch.randint(0, 256, shape, device="cuda", dtype=torch.uint8)
    if dtype == "b1":
        return torch.rand(shape, device="cuda") < 0.5
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(DTYPES[dtype])


# --- what rows compute -------------------------------------------------------------------------------------------


def _fused(x: Any) -> Any:
    return np.exp(x - x.max(1, keepdims=True)).sum(1) + x.mean(1)


def _rms_norm(x: Any, w: Any) -> Any:
    return x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(1e-6)) * w


def _batch_norm(x: Any) -> Any:
    mean, var = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(var + np.float32(1e-5))


def _bias_gelu(x: Any, b: Any) -> Any:
    y = x + b
    return 0.5 * y * (1 + np.tanh(np.float32(0.7978845608) * (y + np.float32(0.044715) * y * y * y)))


def _haversine(a: Any, b: Any, c: Any, d: Any) -> Any:
    s, t = np.sin((c - a) * np.float32(0.5)), np.sin((d - b) * np.float32(0.5))
    return 2 * np.arcsin(np.sqrt(np.minimum(s * s + np.cos(a) * np.cos(c) * t * t, 1)))


def _by_torch(a: Any, b: Any, c: Any, d: Any) -> Any:
    s, t = torch.sin((c - a) * 0.5), torch.sin((d - b) * 0.5)
    return 2 * torch.asin(torch.sqrt(torch.clamp(s * s + torch.cos(a) * torch.cos(c) * t * t, max=1)))


def _grey(x: Any) -> Any:
    red, green, blue = (x[:, :, at] * np.float32(by) for at, by in enumerate((0.299, 0.587, 0.114)))
    return (red + green + blue).astype(np.uint8)


def _swiglu(x: Any) -> Any:
    half = x.shape[1] // 2
    a = x[:, :half]
    return a / (1 + np.exp(-a)) * x[:, half:]


def _swiglu_by_torch(x: Any) -> Any:
    a, b = x.chunk(2, 1)
    return torch.nn.functional.silu(a) * b


FUSED, RMS_NORM, BATCH_NORM, BIAS_GELU = map(fusec.fuse, (_fused, _rms_norm, _batch_norm, _bias_gelu))
HAVERSINE, SWIGLU, GREY = map(fusec.fuse, (_haversine, _swiglu, _grey))
ADD = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")


@fusec.stencil(boundary="nearest")
def blur(x):
    """The mean of 25 neighbours."""
    total = 0.0
    for i in range(-2, 3):
        for j in range(-2, 3):
            total += x[i, j]
    return total / 25


@fusec.stencil(boundary="wrap")
def seven(x):
    """A step of diffusion in three dimensions."""
    around = x[-1, 0, 0] + x[1, 0, 0] + x[0, -1, 0] + x[0, 1, 0] + x[0, 0, -1] + x[0, 0, 1]
    return x[0, 0, 0] * 0.4 + around * 0.1


COUNT = fusec.ElementwiseKernel("uint8 x", "raw int32 bins", "atomicAdd(&bins[x], 1)", "count")


def _count(x: Any) -> Any:
    bins = torch.zeros(256, device="cuda", dtype=torch.int32)
    COUNT(x, bins)
    return bins


def _mean_of_25(x: Any) -> Any:
    padded = torch.nn.functional.pad(x[None, None], (2, 2, 2, 2), mode="replicate")[0, 0]
    rows, columns = x.shape
    total = padded[:rows, :columns]
    for at in range(1, 25):
        total = total + padded[at // 5 : at // 5 + rows, at % 5 : at % 5 + columns]
    return total / 25


def _seven_by_torch(x: Any) -> Any:
    around = sum(torch.roll(x, by, axis) for axis in range(3) for by in (1, -1))
    return x * 0.4 + around * 0.1


def softmax(shape: tuple[int, ...], dtype: str = "f4") -> Row:
    """Along the last axis."""
    return Row("softmax", shape, fusec.softmax, lambda x: torch.softmax(x, -1), 2, dtype)


def norm(shape: tuple[int, ...], dtype: str = "f4") -> Row:
    """Along the last axis."""
    theirs = lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:])  # noqa: E731
    return Row("layer_norm", shape, fusec.layer_norm, theirs, 2, dtype)


def along(name: str, shape: tuple[int, ...], axis: int | None, dtype: str = "f4") -> Row:
    """A function of the library along an axis."""
    ours, theirs = getattr(fusec, name), getattr(torch, name)
    further = {"unbiased": False} if name == "var" else {}
    title = f"{name} axis {axis}" if axis is not None else name
    call = (lambda x: theirs(x, **further)) if axis is None else (lambda x: theirs(x, axis, **further))
    return Row(title, shape, lambda x: ours(x, axis=axis), call, 1, dtype)


def scan(name: str, shape: tuple[int, ...], axis: int, dtype: str = "f4") -> Row:
    """A scan of the library along an axis."""
    ours, theirs = getattr(fusec, name), getattr(torch, name)
    return Row(f"{name} axis {axis}", shape, lambda x: ours(x, axis=axis), lambda x: theirs(x, axis), 2, dtype)


def neighbours(shape: tuple[int, ...], dtype: str = "f4") -> Row:
    """Sums of neighbours: two operands at different distances from addresses that 16 bytes divide."""
    return Row("x[1:] + x[:-1]", shape, lambda x: ADD(x[1:], x[:-1]), lambda x: x[1:] + x[:-1], 2, dtype)


def function(text: str, theirs: Callable[..., Any], count: int = 1) -> Row:
    """An element-wise function of so many arrays, written by x and y."""
    names = "T x, T y" if count == 2 else "T x"
    kernel = fusec.ElementwiseKernel(names, "T z", f"z = {text}", "work")
    shape = (50_000_017,)
    return Row(text, shape, kernel, theirs, count + 1, "f4", (shape,) * (count - 1))


ROWS = (
    softmax((32768, 1024)), norm((32768, 1024)),
    softmax((16384, 2048)), softmax((8192, 4096)), softmax((4096, 8192)),
    softmax((32768, 1024), "bf16"), softmax((16384, 1000)), norm((9001, 3333)),
    softmax((4096, 2048), "f8"), softmax((2048, 16384)), softmax((512, 65536)), norm((512, 65536)),
    softmax((256, 262_144)), norm((900, 40_001)),
    softmax((256, 4096)), norm((64, 8192)),
    softmax((1_000_000, 3)), softmax((1_000_000, 10)), softmax((500_000, 31)), softmax((500_000, 31), "bf16"),
    softmax((500_000, 17), "f8"), norm((800_000, 12)), norm((300_000, 49)), norm((200_000, 100), "bf16"),
    along("var", (8192, 8192), 0), along("var", (8192, 8192), 1), along("var", (4096, 4096), 0, "f8"),
    along("argmax", (8192, 8192), 1), along("argmax", (8192, 8192), 0), along("argmax", (1_000_000, 5), 1),
    Row("logsumexp", (8192, 8192), lambda x: fusec.logsumexp(x, axis=1), lambda x: torch.logsumexp(x, 1)),
    Row("fused", (8192, 4096), FUSED, lambda x: torch.exp(x - x.amax(1, keepdim=True)).sum(1) + x.mean(1)),
    along("sum", (10_000,), None), along("sum", (1_000_000,), None), along("sum", (10_000_000,), None),
    along("sum", (1 << 26,), None), along("sum", (4_000_000, 16), 0), along("sum", (8192, 8192), 0),
    along("sum", (8192, 8192), 1), along("var", (10_000_000,), None), along("argmax", (10_000_000,), None),
    along("var", (1_000_000, 16), 0), along("sum", (100_000_007,), None, "b1"),
    scan("cumsum", (1 << 26,), 0), scan("cumsum", (10_000_019,), 0), scan("cumsum", (8192, 8192), 1),
    scan("cumsum", (8192, 8192), 0), scan("cumsum", (3001, 5003), 0), scan("cumsum", (8192, 4096), 0, "f8"),
    scan("cumsum", (1 << 25,), 0, "f8"),
    scan("logcumsumexp", (1 << 26,), 0),
    Row("blur 5x5", (8192, 8192), blur, _mean_of_25, 2), Row("blur 5x5", (5003, 3001), blur, _mean_of_25, 2),
    Row("diffusion", (400, 401, 403), seven, _seven_by_torch, 2),
    Row("nhwc + nchw", (64, 128, 97, 101), ADD, lambda x, y: x + y, 3, "bf16", ((64, 128, 97, 101),), (0, 2, 3, 1)),
    Row("x.T + y", (8001, 8003), ADD, lambda x, y: x + y, 3, "u1", ((8001, 8003),), (1, 0)),
    Row("x.T + y", (8001, 8003), ADD, lambda x, y: x + y, 3, "f2", ((8001, 8003),), (1, 0)),
    Row("histogram", (1 << 26,), _count, lambda x: torch.bincount(x.view(-1), minlength=256), 1, "u1"),
    Row("grey", (3001, 4001, 3), GREY,
        lambda x: (x[..., 0] * 0.299 + x[..., 1] * 0.587 + x[..., 2] * 0.114).to(torch.uint8), 4 / 3, "u1"),
    Row("swiglu", (9001, 8192), SWIGLU, _swiglu_by_torch, 1.5, "bf16"),
    Row("rms_norm", (20_011, 2048), RMS_NORM,
        lambda x, w: x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * w, 2, "f4", ((2048,),)),
    Row("batch_norm", (32, 64, 113, 113), BATCH_NORM,
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True), 3),
    Row("bias_gelu", (30_011, 1536), BIAS_GELU,
        lambda x, b: torch.nn.functional.gelu(x + b, approximate="tanh"), 2, "f4", ((1536,),)),
    Row("bias_gelu", (30_011, 1537), BIAS_GELU,
        lambda x, b: torch.nn.functional.gelu(x + b, approximate="tanh"), 2, "f4", ((1537,),)),
    neighbours((100_000_003,)), neighbours((200_000_003,), "bf16"), neighbours((400_000_003,), "u1"),
    Row("haversine", (20_000_003,), HAVERSINE, _by_torch, 5, "f4", ((20_000_003,),) * 3),
    function("sin(x) * cos(x)", lambda x: torch.sin(x) * torch.cos(x)),
    function("tan(x)", torch.tan), function("erf(x)", torch.erf), function("lgamma(x)", torch.lgamma),
    function("log(fabs(x)) + exp(y)", lambda x, y: torch.log(torch.abs(x)) + torch.exp(y), 2),
    function("atan2(x, y)", torch.atan2, 2), function("pow(fabs(x), y)", lambda x, y: torch.pow(torch.abs(x), y), 2),
)  # fmt: skip
