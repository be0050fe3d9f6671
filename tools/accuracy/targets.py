"""Where kernels run while they are measured: this machine's CPU, or an NVIDIA device."""

from __future__ import annotations

from typing import Any

import numpy as np

import fusec
from tools.accuracy.functions import Row
from tools.accuracy.sweeps import Shape


class Cpu:
    """The CPU target."""

    name = "cpu"
    shape = Shape(1 << 15, 256)

    def empty(self, size: int, dtypes: tuple[str, ...]) -> list[Any]:
        """Arrays to write to."""
        return [np.empty(size, dtype) for dtype in dtypes]

    def fetch(self, arrays: list[Any]) -> list[np.ndarray]:
        """Their contents."""
        return arrays

    def evaluate(self, row: Row, *arguments: np.ndarray) -> np.ndarray:
        """The function's values, in the dtype of the arguments."""
        return kernel_of(row.name, row.arity)(*arguments)  # type: ignore[return-value]


class Cuda:
    """The current NVIDIA device; raises FusecError if there is none."""

    name = "cuda"
    shape = Shape(1 << 18, 1024)

    def __init__(self) -> None:
        from fusec.runtime import cuda

        self.cuda = cuda
        cuda.device(0)

    def empty(self, size: int, dtypes: tuple[str, ...]) -> list[Any]:
        """Device arrays to write to."""
        return [self.cuda.from_numpy(np.zeros(size, dtype)) for dtype in dtypes]

    def fetch(self, arrays: list[Any]) -> list[np.ndarray]:
        """Their contents, when all launches are done."""
        return [array.numpy() for array in arrays]

    def evaluate(self, row: Row, *arguments: np.ndarray) -> np.ndarray:
        """The function's values, computed on the device."""
        result: Any = kernel_of(row.name, row.arity)(*(self.cuda.from_numpy(each) for each in arguments))
        return result.numpy()  # type: ignore[no-any-return]


_KERNELS: dict[tuple[str, int], fusec.ElementwiseKernel] = {}


def kernel_of(name: str, arity: int) -> fusec.ElementwiseKernel:
    """The kernel of one call, for every dtype."""
    if (name, arity) not in _KERNELS:
        inputs, text = ("T x", f"z = {name}(x)") if arity == 1 else ("T x, T y", f"z = {name}(x, y)")
        _KERNELS[name, arity] = fusec.ElementwiseKernel(inputs, "T z", text, f"one_{name}")
    return _KERNELS[name, arity]


def target_named(name: str) -> Cpu | Cuda:
    """One of `cpu`, `cuda`."""
    return Cpu() if name == "cpu" else Cuda()
