"""fusec's own device memory: CudaArray, from the driver's stream-ordered pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.errors.targets import DeviceDtypeUnsupported, DeviceMemoryExhausted
from fusec.runtime.cuda import driver, streams
from fusec.runtime.cuda.libraries import cuda_core, driver_api


class DeviceLayout(NamedTuple):
    """How an array lies in its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]  # in bytes
    row: DType


class CudaArray:
    """An array in device memory that any library reads by DLPack or ``__cuda_array_interface__`` version 3.

    row: its fusec dtype; `dtype` is NumPy's. strides: in bytes. device: ordinal. pointer: address of the first element.
    stream: handle of the stream on which it was last used; the memory goes back to the pool in order of it, so that
    stream must live as long as the array does. A part of another array, or another look at it, shares that stream.
    """

    _whole: CudaArray | None = None

    def __init__(self, buffer: Any, layout: DeviceLayout, device: int, stream: int) -> None:
        self._buffer = buffer
        self.pointer = int(buffer.handle)
        self.shape, self.strides, self.row = layout
        self.device, self._stream = device, stream

    @property
    def stream(self) -> int:
        """Handle of the stream on which the array was last used."""
        return self._stream if self._whole is None else self._whole.stream

    @stream.setter
    def stream(self, handle: int) -> None:
        """Return the memory to the pool in the order of the new stream."""
        if self._whole is not None:
            self._whole.stream = handle
        elif handle != self._stream:
            self._buffer.set_deallocation_stream(cuda_core().Stream.from_handle(handle))
            self._stream = handle

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
        view = cuda_core().utils.StridedMemoryView.from_buffer(self._buffer, self.shape, steps, dtype=self.dtype)
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
        whole = self if self._whole is None else self._whole
        row = row or self.row
        low, high = reach(shape, strides, row.nbytes)
        buffer = cuda_core().Buffer.from_handle(self.pointer + offset + low, max(1, high - low), owner=whole)
        made = CudaArray(buffer, DeviceLayout(shape, strides, row), self.device, self.stream)
        made.pointer -= low
        made._whole = whole
        return made

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
    buffer = _buffer(prod(extents) * row.nbytes, device, stream)
    return CudaArray(buffer, DeviceLayout(extents, strides, row), device, stream)


class _Lender:
    """The owner of memory that another library has allocated, and the stream of its last use here."""

    def __init__(self, owner: object) -> None:
        self.owner, self.stream = owner, streams.LEGACY


def borrowed(pointer: int, layout: DeviceLayout, device: int, owner: object) -> CudaArray:
    """An array in memory of another library's, which `owner` keeps."""
    whole: Any = _Lender(owner)
    low, high = reach(layout.shape, layout.strides, layout.row.nbytes)
    buffer = cuda_core().Buffer.from_handle(pointer + low, max(1, high - low), owner=whole)
    made = CudaArray(buffer, layout, device, streams.LEGACY)
    made.pointer, made._whole = pointer, whole
    return made


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


@cache
def _pool(device: int) -> Any:
    """The driver's stream-ordered pool of a device; cuda.core makes it keep freed memory instead of returning it."""
    with driver.on_device(device):
        core = cuda_core()
        core.Device(device).set_current()
        return core.DeviceMemoryResource(device)


def pooled_bytes(device: int) -> int:
    """The free bytes that the pool of a device keeps for new arrays."""
    found = _pool(device).attributes
    return int(found.reserved_mem_current) - int(found.used_mem_current)


def _buffer(nbytes: int, device: int, stream: int) -> Any:
    allocate = allocator(nbytes, device, stream)
    with driver.on_device(device):
        try:
            return allocate()
        except Exception as reason:  # cuda.core raises a class of its own, which derives from Exception alone
            raise DeviceMemoryExhausted(device, nbytes, str(reason)).at() from reason


def allocator(nbytes: int, device: int, stream: int) -> Callable[[], Any]:
    """A function that allocates that much memory from the pool, for use on `stream`, while the device is current.

    While a CUDA graph captures the stream, the memory belongs to the graph.
    """
    core, wanted = cuda_core(), max(nbytes, 1)
    on = core.Stream.from_handle(stream)
    take = partial(_pool(device).allocate, wanted, stream=on)

    def allocate() -> Any:
        try:
            return take()
        except RuntimeError:
            if not streams.is_captured(stream):
                raise
            return core.GraphMemoryResource(device).allocate(wanted, stream=on)

    return allocate


def reach(shape: Sequence[int], strides: Sequence[int], nbytes: int) -> tuple[int, int]:
    """Where the memory of an array starts and ends, in bytes from its first element."""
    if 0 in shape:
        return 0, 0
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    return sum(min(0, step) for step in steps), nbytes + sum(max(0, step) for step in steps)
