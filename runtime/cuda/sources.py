"""Arrays of one library as repeated calls see them: an address, and a mark that determines everything else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, lru_cache
from math import prod
from typing import Any

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass
from fusec.runtime.cuda import dlpack, driver, foreign, memory, streams
from fusec.runtime.cuda.memory import CudaArray

VECTOR_BYTES = 16  # alignment that kernels may count on

Reader = Callable[[Any], tuple[int, object]]
Look = tuple[DType, tuple[int, ...]]
Maker = Callable[[], tuple[Any, int]]


@dataclass(frozen=True)
class ArrayLibrary:
    """How a library's arrays are read and created without DLPack, where its own attributes take less time.

    library: its name. kind: the exact type it is for; subclasses may mean something else. address: a Python expression
    of an array for the address of its first element. facts: expressions, and how their values compare, for all else:
    dtype, shape, strides, device, and whether the array is more than its memory. They are empty if the address and all
    else are known only from a function, read_by. stream: the handle of the current stream of a device. maker: for a new
    array's shape, axes from outermost to innermost in memory, dtype and device, a function that makes one and tells its
    address. look: the dtype and the shape of an array on a device. strides: in bytes. deliver: makes the user's array
    from what a maker made, once work on it is enqueued; None if these are the same.
    """

    library: foreign.Library
    kind: type
    address: str
    facts: tuple[tuple[str, str], ...]
    stream: Callable[[int], int]
    maker: Callable[[Sequence[int], Sequence[int], DType, int], Maker]
    look: Callable[[Any], Look | None]
    strides: Callable[[Any], tuple[int, ...]]
    read_by: Reader | None = None
    deliver: Callable[[Any], Any] | None = None

    @cached_property
    def read(self) -> Reader:
        """Gives the address and the mark of an array: the values of its facts and its alignment."""
        if self.read_by is not None:
            return self.read_by
        values = ", ".join(expression.format("a") for expression, _ in self.facts)
        text = f"def read(a):\n p = {self.address.format('a')}\n return p, ({values}, p % {VECTOR_BYTES})"
        names: dict[str, Any] = {}
        exec(text, names)
        reader: Reader = names["read"]
        return reader


def source_of(value: object) -> ArrayLibrary | None:
    """The source of an array of CuPy, PyTorch, JAX or fusec itself; None for any other."""
    kind: Any = type(value)
    return _of_type(kind)


def look(value: object) -> Look | None:
    """The dtype and the shape of a device array of a library that has a source; None for anything else."""
    kind: Any = type(value)
    library = _of_type(kind)
    return None if library is None else library.look(value)


@lru_cache(64)
def _of_type(kind: type) -> ArrayLibrary | None:
    root = kind.__module__.partition(".")[0]
    if kind is CudaArray:
        return _own()
    if root == "torch" and kind is foreign.module("torch").Tensor:
        return _torch(foreign.module("torch"))
    if root == "cupy" and kind is foreign.module("cupy").ndarray:
        return _cupy(foreign.module("cupy"))
    if root == "jaxlib" and kind.__name__ == "ArrayImpl":
        return _jax(foreign.module("jax"), kind)
    return None


def _strides(array: Any) -> tuple[int, ...]:
    strides: tuple[int, ...] = array.strides
    return strides


def _typed(row: DType | None, shape: tuple[int, ...]) -> Look | None:
    return None if row is None else (row, shape)


@cache
def _row_of_torch(dtype: object) -> DType | None:
    return dtypes.BY_NAME.get(str(dtype).removeprefix("torch."))


OWN = (("{}.layout", "is"), ("{}.device", "=="), ("{}.memory.stream", "=="))
TORCH = (
    ("{}.dtype", "is"),
    ("{}.shape", "=="),
    ("{}.stride()", "=="),
    ("{}.get_device()", "=="),
    ("{}.requires_grad", "is"),
    ("{}.is_neg()", "is"),
    ("{}.is_conj()", "is"),
)
CUPY = (("{}.dtype", "=="), ("{}.shape", "=="), ("{}.strides", "=="), ("{}.data.device_id", "=="))


def _own_maker(shape: Sequence[int], order: Sequence[int], dtype: DType, device: int) -> Maker:
    extents = tuple(shape)
    layout = memory.laid_out(extents, strides_in_order(extents, order, dtype.nbytes), dtype)
    allocate = memory.allocator(prod(extents) * dtype.nbytes, device, streams.LEGACY)

    def make() -> tuple[CudaArray, int]:
        held = allocate()
        return CudaArray(held, layout, device), held.pointer

    return make


def _own() -> ArrayLibrary:
    def looked(array: CudaArray) -> Look:
        return array.row, array.shape

    return ArrayLibrary("fusec", CudaArray, "{}.pointer", OWN, lambda _: streams.LEGACY, _own_maker, looked, _strides)


@cache
def _torch(torch: Any) -> ArrayLibrary:
    raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # a tenth of the public call's time

    def stream(device: int) -> int:
        handle = torch.cuda.current_stream(device).cuda_stream if raw_stream is None else raw_stream(device)
        return int(handle) or streams.LEGACY

    def maker(shape: Sequence[int], order: Sequence[int], dtype: DType, device: int) -> Maker:
        extents, on, row = tuple(shape), torch.device("cuda", device), getattr(torch, dtype.name)
        steps = tuple(stride // dtype.nbytes for stride in strides_in_order(extents, order, dtype.nbytes))

        def make() -> tuple[Any, int]:
            tensor = torch.empty_strided(extents, steps, dtype=row, device=on)
            return tensor, tensor.data_ptr()

        return make

    def looked(tensor: Any) -> Look | None:
        return _typed(_row_of_torch(tensor.dtype), tensor.shape) if tensor.is_cuda else None

    def strides(tensor: Any) -> tuple[int, ...]:
        return tuple(step * tensor.element_size() for step in tensor.stride())

    return ArrayLibrary("torch", torch.Tensor, "{}.data_ptr()", TORCH, stream, maker, looked, strides)


@cache
def _cupy(cupy: Any) -> ArrayLibrary:
    current = cupy.cuda.get_current_stream

    def stream(device: int) -> int:
        return current(device).ptr or streams.LEGACY

    def maker(shape: Sequence[int], order: Sequence[int], dtype: DType, device: int) -> Maker:
        axes = tuple(order)
        packed, row = tuple(shape[axis] for axis in axes), dtype.numpy
        back = tuple(axes.index(axis) for axis in range(len(axes)))
        in_order, ndarray = back == tuple(range(len(axes))), cupy.ndarray

        def make() -> tuple[Any, int]:
            if not driver.is_current(device):
                raise LookupError("CuPy makes arrays on the current device")
            array = ndarray(packed, row)
            return array if in_order else array.transpose(back), array.data.ptr

        return make

    def looked(array: Any) -> Look | None:
        return _typed(dtypes.from_numpy(array.dtype), array.shape)

    return ArrayLibrary("cupy", cupy.ndarray, "{}.data.ptr", CUPY, stream, maker, looked, _strides)


def _exported(array: Any) -> tuple[int, object]:
    """The address and the mark of an array that the legacy stream waits for."""
    return dlpack.mark(array.__dlpack__(stream=streams.LEGACY))


@cache
def _jax(jax: Any, kind: type) -> ArrayLibrary:
    """The source of JAX, which enqueues on streams of its own: only DLPack waits for these, and tells strides.

    Arrays that are computed need not be waited for, and tell their address in a hundredth of the time.
    """

    def read(array: Any) -> tuple[int, object]:
        mark: object
        try:
            mark = array.dtype, array.shape, array.format.layout, array.device
            pointer = array.unsafe_buffer_pointer() if array.is_ready() else _exported(array)[0]
        except Exception:  # of a version that has no such attributes, or in the memory of several devices
            pointer, mark = _exported(array)
        return pointer, (mark, pointer % VECTOR_BYTES)

    def looked(array: Any) -> Look | None:
        if array.__dlpack_device__()[0] not in dlpack.ON_DEVICE:
            return None
        return _typed(dtypes.from_numpy(array.dtype), array.shape)

    def strides(array: Any) -> tuple[int, ...]:
        return dlpack.read(array.__dlpack__(stream=streams.LEGACY)).strides

    def deliver(array: Any) -> Any:
        return jax.dlpack.from_dlpack(array)

    own = _own_maker
    return ArrayLibrary("jax", kind, "", (), lambda _: streams.LEGACY, own, looked, strides, read, deliver)
