"""Type hints of the public functions: accepted arrays, and the types of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fusec.base.kernel_abi import Fp

Number = bool | int | float | complex | np.generic
"""A number by value, Python's or NumPy's."""

Given = Number | NDArray[Any] | list[Any] | tuple[Any, ...]
"""What calls of kernels take, of NumPy."""

Axes = SupportsIndex | Sequence[SupportsIndex] | None
"""One axis, several, or None for all."""


class ArrayObject(Protocol):
    """An array of another library that NumPy can read."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class TensorObject(Protocol):
    """An array of another library, in memory of whatever device."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class MemoryObject(Protocol):
    """An array of another library that describes its memory."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


Foreign = TypeVar("Foreign", bound=ArrayObject | TensorObject | MemoryObject)
"""The type of an argument that is the type of the result too."""

Output = TypeVar("Output")
"""The type of what is given as out=, which is what is returned."""

Arrays = ArrayLike | ArrayObject | TensorObject | MemoryObject
"""What is taken as an array: of NumPy, of another library, a number, or a list of them."""


class FunctionOptions(TypedDict, total=False):
    """Keywords of fusec.elementwise, and of whatever else makes kernels of functions."""

    name: str
    fp: Fp
    names: Mapping[str, object] | None
    bounds: Literal["check", "trust"] | None
    check: str | None


class StencilOptions(FunctionOptions, total=False):
    """Keywords of fusec.stencil."""

    boundary: str | Sequence[str]
    cval: object
    axes: Sequence[int]


class GridOptions(FunctionOptions, total=False):
    """Keywords of fusec.kernel."""

    block: int | Sequence[int] | None


class RoleOptions(FunctionOptions, total=False):
    """Keywords of fusec.reduction, but for combine."""

    map: Callable[..., object] | str | None
    finish: Callable[..., object] | str | None
    identity: object


class ElementwiseOptions(TypedDict, total=False):
    """Keywords of calls of an ElementwiseKernel."""

    size: int | None
    stream: object
    block_size: int | None


class ReductionOptions(TypedDict, total=False):
    """Keywords of calls of a ReductionKernel."""

    axis: Axes
    keepdims: bool
    where: Any
    stream: object


class ScanOptions(TypedDict, total=False):
    """Keywords of calls of a ScanKernel."""

    axis: SupportsIndex | None
    reverse: bool
    where: Any
    stream: object
