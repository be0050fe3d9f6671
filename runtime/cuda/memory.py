"""fusec's own device memory: CudaArray, from the driver's stream-ordered pool."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fusec.base import dtypes, locks
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.errors.targets import DeviceDtypeUnsupported, DeviceMemoryExhausted
from fusec.runtime.cuda import driver, streams
from fusec.runtime.cuda.libraries import cuda_core, driver_api

MOST_FREE = 32  # pieces of one size that wait for new arrays
MOST_SHELVED = 64 << 20  # bytes of one such piece
MOST_LAYOUTS = MOST_SIZES = 4096
MOST_IDLE = 256 << 20  # bytes of all on a device, once new memory is needed


class DeviceLayout(NamedTuple):
    """How an array lies in its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    row: DType


@lru_cache(MOST_LAYOUTS)
def laid_out(shape: tuple[int, ...], strides: tuple[int, ...], row: DType) -> DeviceLayout:
    """A layout; the same object for all arrays that lie alike, as long as there are few layouts."""
    return DeviceLayout(shape, strides, row)


class CudaArray:
    """An array in device memory that any library reads by DLPack or ``__cuda_array_interface__`` version 3.

    row: its fusec dtype; `dtype` is NumPy's. strides: in bytes. device: ordinal. pointer: address of the first element.
    stream: handle of the stream on which it was last used; the memory goes back to the pool in order of it, so that
    stream must live as long as the array does. Parts of an array, and other looks at it, share memory and stream.
    """

    __slots__ = ("__weakref__", "device", "is_view", "layout", "memory", "pointer", "row", "shape", "strides")

    def __init__(
        self, memory: CudaMemory, layout: DeviceLayout, device: int, start: int | None = None, is_view: bool = False
    ) -> None:
        """memory: shared by all arrays that lie in it. layout: as `laid_out` gives it, so that arrays which lie alike
        have the same object. start: address of the first element, if it is not the memory's.
        """
        self.memory, self.layout = memory, layout
        self.pointer = memory.pointer if start is None else start
        self.shape, self.strides, self.row = layout
        self.device, self.is_view = device, is_view

    @property
    def stream(self) -> int:
        """Handle of the stream on which the array was last used."""
        return self.memory.stream

    @stream.setter
    def stream(self, handle: int) -> None:
        """Return the memory to the pool in the order of the new stream."""
        if handle != self.memory.stream:
            self.memory.move(handle)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self.row.numpy

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "strides": self.strides,
            "stream": self.stream,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.device)  # kDLCUDA

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A capsule; `stream`, the consumer's, is made to wait for this array's. Raises BufferError if it cannot be."""
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("fusec.CudaArray is shared in place on its own device, without copying")
        if stream != -1:  # -1: the consumer sees to the order itself
            streams.wait(streams.handle(stream), self.stream, self.device)
        if any(stride < 0 or stride % self.row.nbytes for stride in self.strides):
            raise BufferError("DLPack has no strides that are negative or no multiples of the element")
        steps = tuple(stride // self.row.nbytes for stride in self.strides)
        low, high = reach(self.shape, self.strides, self.row.nbytes)
        buffer = cuda_core().Buffer.from_handle(self.pointer + low, max(1, high - low), owner=self.memory)
        view = cuda_core().utils.StridedMemoryView.from_buffer(buffer, self.shape, steps, dtype=self.dtype)
        capsule: object = view.__dlpack__(max_version=max_version)
        return capsule

    def ravel(self) -> CudaArray:
        """The elements along one axis, in the same memory. Raises ValueError unless they are in C order."""
        return self.with_shape((self.size,))

    def with_shape(self, shape: tuple[int, ...]) -> CudaArray:
        """The same elements in another shape, in the same memory. Raises ValueError unless they are in C order."""
        if self.strides != strides_in_order(self.shape, range(self.ndim), self.row.nbytes):
            raise ValueError(f"an array of shape {self.shape} with strides {self.strides} is not in C order")
        if prod(shape) != self.size:
            raise ValueError(f"shape {shape} does not hold {self.size} elements")
        return self.seen_as(shape, strides_in_order(shape, range(len(shape)), self.row.nbytes))

    def __getitem__(self, index: Any) -> CudaArray:
        """A view: integers, slices, None and ``...`` only, and no copy. Raises IndexError."""
        for each in index if isinstance(index, tuple) else (index,):
            if not (each is None or each is ... or isinstance(each, slice) or hasattr(each, "__index__")):
                raise IndexError("only integers, slices, None and ... index a fusec.CudaArray")
        where = index if isinstance(index, tuple) else (index,)
        return self._viewed(lambda form: form[where if ... in where else (*where, ...)])

    def reshape(self, *shape: Any) -> CudaArray:
        """The same elements in another shape, in the same memory. Raises ValueError where that needs a copy."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self._viewed(lambda form: form.reshape(wanted, copy=False))

    def transpose(self, *axes: Any) -> CudaArray:
        """A view with the axes in another order, reversed if none is given."""
        return self._viewed(lambda form: form.transpose(*axes))

    @property
    def T(self) -> CudaArray:  # noqa: N802 - NumPy's name
        """A view with the axes in reverse order."""
        return self.transpose()

    def part(self, axis: int, start: int, stop: int) -> CudaArray:
        """Elements from `start` up to `stop` along an axis, in the same memory."""
        return self[(slice(None),) * axis + (slice(start, stop),)]

    def _viewed(self, step: Callable[[NDArray[Any]], NDArray[Any]]) -> CudaArray:
        """The view that a function makes of a NumPy array of the same form, of which nothing is read."""
        form = np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)
        found = step(form)
        starts = [each.__array_interface__["data"][0] for each in (found, form)]
        return self.seen_as(found.shape, found.strides, starts[0] - starts[1] if found.size else 0)

    def seen_as(
        self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, row: DType | None = None
    ) -> CudaArray:
        """An array in the memory of this one, which it keeps. offset: of its first element from this array's, in bytes;
        row: its dtype. The caller sees to it that it lies within.
        """
        layout = laid_out(shape, strides, row or self.row)
        return CudaArray(self.memory, layout, self.device, self.pointer + offset, True)

    def numpy(self) -> NDArray[Any]:
        """A copy in host memory, after waiting for the array's stream."""
        low, high = reach(self.shape, self.strides, self.row.nbytes)
        host = np.empty(high - low, np.uint8)
        with driver.on_device(self.device):
            if host.size:
                api = driver_api()
                result = api.cuMemcpyDtoHAsync(
                    host.ctypes.data, self.pointer + low, host.size, api.CUstream(self.stream)
                )
                driver.check(result, "copy an array to the host")
            streams.synchronise(self.stream, self.device)
        return np.ndarray(self.shape, self.dtype, host.data, -low, self.strides)

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[Any]:
        raise TypeError("a fusec.CudaArray is not converted to NumPy silently: call .numpy()")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a zero-dimensional array")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<CudaArray {self.row}{list(self.shape)} on device {self.device}>"


def empty(
    shape: Sequence[int], row: DType, order: Sequence[int] | None = None, device: int = 0, stream: int = streams.LEGACY
) -> CudaArray:
    """A new array with undefined contents, ready for use on `stream`.

    order: axes from outermost to innermost in memory; None is C order. Raises DeviceMemoryExhausted, NoCudaDriver,
    NoCudaDevice, CudaExtraMissing.
    """
    extents = tuple(int(extent) for extent in shape)
    strides = strides_in_order(extents, range(len(extents)) if order is None else order, row.nbytes)
    memory = _allocated(prod(extents) * row.nbytes, device, stream)
    return CudaArray(memory, laid_out(extents, strides, row), device)


def borrowed(pointer: int, layout: DeviceLayout, device: int, owner: object) -> CudaArray:
    """An array in memory of another library's, which `owner` keeps."""
    low, high = reach(layout.shape, layout.strides, layout.row.nbytes)
    memory = CudaMemory(owner, pointer + low, max(1, high - low), streams.LEGACY)
    memory.is_lent = True
    return CudaArray(memory, laid_out(*layout), device, pointer, True)


def from_numpy(values: ArrayLike, device: int = 0, stream: object = None) -> CudaArray:
    """A copy of a host array on a device, its axes in the same order. Raises DeviceDtypeUnsupported and as `empty`."""
    host = np.asarray(values)
    row = dtypes.from_numpy(host.dtype)
    if row is None:
        raise DeviceDtypeUnsupported(str(host.dtype)).at()
    order = sorted(range(host.ndim), key=lambda axis: -abs(host.strides[axis]))
    made = empty(host.shape, row, order, device, streams.handle(stream))
    packed = np.ascontiguousarray(host.transpose(order))
    if packed.size:  # pageable memory: the call returns when the source may be reused
        api = driver_api()
        with driver.on_device(device):
            copied = api.cuMemcpyHtoDAsync(made.pointer, packed.ctypes.data, packed.nbytes, api.CUstream(made.stream))
            driver.check(copied, "copy an array to a device")
            streams.synchronise(made.stream, device)
    return made


def fill_with_zeros(pointer: int, nbytes: int, device: int, stream: int) -> None:
    """Enqueue the clearing of dense memory, such as that of a new array, on a stream."""
    if not nbytes:
        return
    api = driver_api()
    with driver.on_device(device):
        driver.check(api.cuMemsetD8Async(pointer, 0, nbytes, api.CUstream(stream)), "clear an array")


# --- the pool ------------------------------------------------------------------------------------------------------

# Note [Shelves]: what is freed on the legacy stream waits, by its size, for the next array of that size there, so that
# a repeated call asks the driver for nothing. The order of that stream makes it safe. No other stream has shelves: it
# may be destroyed, and another may get its handle; it may be captured, and memory of a graph belongs to the graph.


class CudaMemory:
    """A piece of device memory, shared by all arrays in it. When none is left, it returns to where it came from.

    owner: keeps it; a buffer of cuda.core's, unless another library has lent it. pointer: its address. stream: handle
    of the one on which it was last used. shelf: where it waits for its next use, if it may.
    """

    __slots__ = ("is_lent", "nbytes", "owner", "pointer", "shelf", "stream")

    def __init__(self, owner: Any, pointer: int, nbytes: int, stream: int, shelf: Shelf | None = None) -> None:
        self.owner, self.pointer, self.nbytes, self.stream = owner, pointer, nbytes, stream
        self.shelf, self.is_lent = shelf, False

    def move(self, stream: int) -> None:
        """Return to the pool in the order of another stream."""
        if not self.is_lent:
            self.owner.set_deallocation_stream(cuda_core().Stream.from_handle(stream))
        self.stream = stream

    def __del__(self, legacy: int = streams.LEGACY, most: int = MOST_FREE) -> None:  # there at the interpreter's end
        shelf = self.shelf
        if shelf is not None and self.stream == legacy and len(shelf) < most:
            shelf.append((self.owner, self.pointer))


class Shelf(list[tuple[Any, int]]):
    """Free buffers of one size, with their addresses."""


_shelves: dict[int, dict[int, Shelf]] = {}  # by device and bytes


def _shelf(device: int, nbytes: int) -> Shelf:
    with locks.lock:
        known = _shelves.setdefault(device, {})
        if len(known) >= MOST_SIZES:  # who has an array or makes some goes on with the shelf that it knows
            known.clear()
        return known.setdefault(nbytes, Shelf())


def _idle_bytes(device: int) -> int:
    return sum(nbytes * len(shelf) for nbytes, shelf in [*_shelves.get(device, {}).items()])


def _clear_shelves(device: int) -> None:
    for shelf in [*_shelves.get(device, {}).values()]:
        shelf.clear()


@cache
def _pool(device: int) -> Any:
    """The driver's stream-ordered pool of a device; cuda.core makes it keep freed memory instead of returning it."""
    with driver.on_device(device):
        core = cuda_core()
        core.Device(device).set_current()
        atexit.register(_clear_shelves, device)  # while the driver still takes memory back
        return core.DeviceMemoryResource(device)


def pooled_bytes(device: int) -> int:
    """The free bytes that are kept for new arrays of a device."""
    found = _pool(device).attributes
    return int(found.reserved_mem_current) - int(found.used_mem_current) + _idle_bytes(device)


def _allocated(nbytes: int, device: int, stream: int) -> CudaMemory:
    allocate = allocator(nbytes, device, stream)
    with driver.on_device(device):
        try:
            return allocate()
        except Exception as reason:  # cuda.core raises a class of its own, which derives from Exception alone
            raise DeviceMemoryExhausted(device, nbytes, str(reason)).at() from reason


def allocator(nbytes: int, device: int, stream: int) -> Callable[[], CudaMemory]:
    """A function that allocates that much memory from the pool, for use on `stream`.

    While a CUDA graph captures the stream, the memory belongs to the graph.
    """
    core, wanted = cuda_core(), max(nbytes, 1)
    on = core.Stream.from_handle(stream)
    take = partial(_pool(device).allocate, wanted, stream=on)
    shelf = _shelf(device, wanted) if wanted <= MOST_SHELVED else None

    def allocate() -> CudaMemory:
        if not driver.is_current(device):
            with driver.on_device(device):
                return allocate()
        try:
            buffer = take()
        except Exception as problem:
            if isinstance(problem, RuntimeError) and streams.is_captured(stream):
                buffer = core.GraphMemoryResource(device).allocate(wanted, stream=on)
                return CudaMemory(buffer, int(buffer.handle), wanted, stream)
            if not _idle_bytes(device):
                raise
            _clear_shelves(device)
            buffer = take()
        return CudaMemory(buffer, int(buffer.handle), wanted, stream, shelf)

    def reuse() -> CudaMemory:
        try:
            buffer, pointer = shelf.pop()  # type: ignore[union-attr]
        except IndexError:
            if _idle_bytes(device) > MOST_IDLE:
                _clear_shelves(device)
            return allocate()
        return CudaMemory(buffer, pointer, wanted, stream, shelf)

    return allocate if shelf is None or stream != streams.LEGACY else reuse


def reach(shape: Sequence[int], strides: Sequence[int], nbytes: int) -> tuple[int, int]:
    """Where the memory of an array starts and ends, in bytes from its first element."""
    if 0 in shape:
        return 0, 0
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(min(0, step) for step in steps), nbytes + sum(max(0, step) for step in steps)
