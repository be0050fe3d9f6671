"""Cumulative functions of arrays on a CUDA device: all elements in one row, with a given first element."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.errors.arguments import OutShapeMismatch
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.kinds.reduction import dense
from fusec.runtime import cuda

if TYPE_CHECKING:
    from fusec.kernels.scan_kernel import ScanKernel


def flat(x: object) -> object:
    """The elements of an array in C order along one axis: the same memory if it is in C order, else a copy."""
    stream = cuda.stream_for((x,))
    found = cuda.describe(x, stream)
    if isinstance(x, cuda.CudaArray) and found.strides == dense(found.shape, found.dtype).strides:
        return x.ravel()
    made = cuda.empty(found.shape, found.dtype, device=cuda.same_device([found]), stream=stream)
    Planned.copier().run((x, made), None, CallOptions(stream=stream))
    return made.ravel()


def with_initial(kernel: ScanKernel, x: object, axis: int, start: int, out: object) -> object:
    """A scan with one more element along the axis, the first, which is `start`.

    Raises OutShapeMismatch, and what `run` raises.
    """
    (param,) = kernel.out_params
    assert param.dtype is not None, "a built-in scan declares its output"
    stream, made = cuda.stream_for((x, out)), out
    found = cuda.describe(x, stream)
    shape = (*found.shape[:axis], found.shape[axis] + 1, *found.shape[axis + 1 :])
    if out is None:
        made = cuda.allocate(x, shape, param.dtype, on=cuda.StreamOn(stream, cuda.same_device([found])))
    elif (given := cuda.describe(out, stream)).shape != shape:
        raise OutShapeMismatch(kernel.name, param.name, given.shape, shape).at()
    kernel(x, axis=axis, out=_part(made, axis, 1, shape[axis]))
    _filler()(start, _part(made, axis, 0, 1))  # last: the output may be where the elements are
    return cuda.deliver(x, made) if out is None else out


def _part(array: object, axis: int, start: int, stop: int) -> Any:
    """Elements from `start` up to `stop` along an axis, as the array's library takes them out."""
    if isinstance(array, cuda.CudaArray):
        return array.part(axis, start, stop)
    found: object = array[(*(slice(None),) * axis, slice(start, stop))]  # type: ignore[index]
    return found


@cache
def _filler() -> ElementwiseKernel:
    return ElementwiseKernel("T start", "T y", "y = start", "initial")
