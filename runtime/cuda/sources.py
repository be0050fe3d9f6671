"""Arrays of one library as repeated calls see them: an address and a mark that settles everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from fusec.dtypes import DType
from fusec.records import dataclass
from fusec.runtime.cuda import foreign, memory, streams
from fusec.runtime.cuda.memory import CudaArray

VECTOR_BYTES = 16  # alignment that kernels may count on

Reader = Callable[[Any], tuple[int, object]]
Maker = Callable[[], tuple[Any, int]]


@dataclass(frozen=True)
class Source:
    """How a library's arrays are read and made without DLPack, where its own attributes say the same in less time.

    kind: the exact type it is for; subclasses may mean something else. read: the address of the first element, and a
    mark: arrays with equal marks have the same dtype, shape, strides, device and alignment. Raises if it is unfit.
    stream: handle of the stream that is current on a device. maker: for a new array's shape, axes from outermost to
    innermost in memory, dtype and device, a function that makes one and tells its address.
    """

    kind: type
    read: Reader
    stream: Callable[[int], int]
    maker: Callable[[Sequence[int], Sequence[int], DType, int], Maker]


def source_of(value: object) -> Source | None:
    """The source of an array of CuPy, PyTorch or fusec itself; None for any other."""
    kind = type(value)
    if kind is CudaArray:
        return Source(CudaArray, _read_own, _own_stream, _own_maker)
    library = foreign.library_of(value)
    if library == "torch" and kind is foreign.module("torch").Tensor:
        return _torch(foreign.module("torch"))
    if library == "cupy" and kind is foreign.module("cupy").ndarray:
        return _cupy(foreign.module("cupy"))
    return None


def _read_own(array: CudaArray) -> tuple[int, object]:
    pointer = array.pointer
    return pointer, (array.shape, array.strides, array.row.name, array.device, array.stream, pointer % VECTOR_BYTES)


def _own_stream(device: int) -> int:
    del device
    return streams.LEGACY


def _own_maker(shape: Sequence[int], order: Sequence[int], dtype: DType, device: int) -> Maker:
    extents = tuple(shape)
    strides = memory.strides_in_order(extents, order, dtype.nbytes)
    allocate = memory.allocator(prod(extents) * dtype.nbytes, device, streams.LEGACY)

    def make() -> tuple[CudaArray, int]:
        array = CudaArray(allocate(), extents, strides, dtype, device, streams.LEGACY)
        return array, array.pointer

    return make


def _torch(torch: Any) -> Source:
    def read(tensor: Any) -> tuple[int, object]:
        if tensor.requires_grad or tensor.is_neg() or tensor.is_conj():
            raise ValueError("this tensor is more than its memory")
        pointer: int = tensor.data_ptr()
        layout = (tensor.dtype, tensor.shape, tensor.stride(), tensor.get_device())
        return pointer, (*layout, pointer % VECTOR_BYTES)

    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public call's time

    def stream(device: int) -> int:
        handle = torch.cuda.current_stream(device).cuda_stream if raw_stream is None else raw_stream(device)
        return int(handle) or streams.LEGACY

    def maker(shape: Sequence[int], order: Sequence[int], dtype: DType, device: int) -> Maker:
        extents, on, row = tuple(shape), torch.device("cuda", device), getattr(torch, dtype.name)
        steps = tuple(stride // dtype.nbytes for stride in memory.strides_in_order(extents, order, dtype.nbytes))

        def make() -> tuple[Any, int]:
            tensor = torch.empty_strided(extents, steps, dtype=row, device=on)
            return tensor, tensor.data_ptr()

        return make

    return Source(torch.Tensor, read, stream, maker)


def _cupy(cupy: Any) -> Source:
    def read(array: Any) -> tuple[int, object]:
        data = array.data
        pointer: int = data.ptr
        return pointer, (array.dtype, array.shape, array.strides, data.device_id, pointer % VECTOR_BYTES)

    current = cupy.cuda.get_current_stream

    def stream(device: int) -> int:
        return current(device).ptr or streams.LEGACY

    def maker(shape: Sequence[int], order: Sequence[int], dtype: DType, device: int) -> Maker:
        del device  # the current one, or else this is no repeated call
        axes = tuple(order)
        packed, row = tuple(shape[axis] for axis in axes), dtype.numpy
        back = tuple(axes.index(axis) for axis in range(len(axes)))
        in_order, ndarray = back == tuple(range(len(axes))), cupy.ndarray

        def make() -> tuple[Any, int]:
            array = ndarray(packed, row)
            return array if in_order else array.transpose(back), array.data.ptr

        return make

    return Source(cupy.ndarray, read, stream, maker)
