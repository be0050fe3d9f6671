"""The iteration space of an interpreted program: its positions, and the given arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fusec.base.dtypes import from_numpy
from fusec.base.records import dataclass, field
from fusec.ir.loops import Program
from fusec.ir.memory import ArrayBuffer, InterpreterError

Array = NDArray[Any]


@dataclass
class RunSpace:
    """The iteration space and the arrays of a program; their buffers have the numbers 1, 2, ... in every run."""

    program: Program
    arrays: Mapping[str, Array]
    shape: tuple[int, ...]
    buffers: dict[str, ArrayBuffer] = field(init=False)
    steps: dict[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        self.buffers, self.steps = {}, {}
        for param in self.program.arrays:
            array = self.arrays[param.name]
            if from_numpy(array.dtype) != param.dtype:
                raise InterpreterError(f"{param.name} is {param.dtype}, got an array of {array.dtype}")
            if param.raw and array.ndim != param.ndim:
                raise InterpreterError(f"{param.name} has {param.ndim} axes, got an array with {array.ndim}")
            self.buffers[param.name] = ArrayBuffer(param.name, array)
            if not param.raw:
                self.steps[param.name] = _steps(array, self.shape)

    def extents(self, param: str) -> tuple[int, ...]:
        """The shape of a raw array, or of the space for ""."""
        return self.arrays[param].shape if param else self.shape


def _steps(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides along the space; an array that goes on beyond it keeps its own, since addresses may be moved there."""
    if array.ndim != len(shape):
        return np.broadcast_to(array, shape).strides
    pairs = list(zip(array.shape, shape, array.strides, strict=True))
    assert all(extent >= here or extent == 1 for extent, here, _ in pairs), (
        f"{array.shape} does not broadcast to {shape}"
    )
    return tuple(0 if extent == 1 < here else stride for extent, here, stride in pairs)


def unravelled(positions: Array, shape: tuple[int, ...]) -> list[Array]:
    """C-order coordinates; the first one takes the overflow beyond the shape, so end addresses stay meaningful."""
    coordinates: list[Array] = []
    for extent in reversed(shape[1:]):
        coordinates.append(positions % max(extent, 1))
        positions = positions // max(extent, 1)
    return [*([positions] if shape else []), *reversed(coordinates)]
