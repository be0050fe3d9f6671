"""New arrays of the caller's own library, and the library's current stream: CuPy, PyTorch, Numba, JAX, fusec."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any, Literal, NamedTuple, assert_never

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.runtime.cuda import memory, streams
from fusec.runtime.cuda.arrays import DeviceArray
from fusec.runtime.cuda.memory import CudaArray
from fusec.runtime.cuda.streams import StreamOn

Library = Literal["cupy", "torch", "numba", "jax", "fusec"]


def library_of(value: object) -> Library:
    """The library whose arrays are returned for `value`; fusec's own for a library that cannot create arrays."""
    root = type(_given(value)).__module__.partition(".")[0]
    match root:
        case "cupy" | "torch":
            return root
        case "numba" | "numba_cuda":
            return "numba"
        case "jax" | "jaxlib":
            return "jax"
        case _:
            return "fusec"


def stream_for(values: Iterable[object], stream: object = None) -> int:
    """The handle of a call's stream: `stream` if given, else the current stream of the library of the first
    array that has such a notion, on that array's device, else the legacy default stream.

    Raises StreamRefused.
    """
    if stream is not None:
        return streams.handle(stream)
    for value in map(_given, values):
        match library_of(value):
            case "cupy":
                return streams.handle(module("cupy").cuda.get_current_stream(value.device.id))  # type: ignore[attr-defined]
            case "torch":
                if getattr(value, "is_cuda", False):
                    return streams.handle(module("torch").cuda.current_stream(value.device))  # type: ignore[attr-defined]
            case "numba" | "jax" | "fusec":
                continue
    return streams.LEGACY


def allocate(
    like: object,
    shape: Sequence[int],
    dtype: DType,
    order: Sequence[int] | None = None,
    on: StreamOn | None = None,
) -> object:
    """A new array with undefined contents, of the library of `like` (JAX: a CudaArray until `deliver`).

    order: axes from outermost to innermost in memory; None is C order. on: where it will be written first; None is the
    legacy stream of the first device.
    Raises DeviceMemoryExhausted for memory of fusec's own, and whatever the library raises.
    """
    given, ordinal = on or StreamOn()
    stream, device = streams.handle(given), ordinal or 0
    extents = tuple(shape)
    axes = tuple(range(len(extents))) if order is None else tuple(order)
    strides = strides_in_order(extents, axes, dtype.nbytes)
    library = library_of(like)
    match library:
        case "cupy":
            cupy = module("cupy")
            with cupy.cuda.Device(device), _on_stream(cupy.cuda, stream, device):
                packed = cupy.empty(tuple(extents[axis] for axis in axes), dtype.numpy)
            return packed.transpose(tuple(axes.index(axis) for axis in range(len(axes))))
        case "torch":
            torch = module("torch")
            steps = tuple(stride // dtype.nbytes for stride in strides)
            with _on_stream(torch.cuda, stream, device):
                return torch.empty_strided(extents, steps, dtype=getattr(torch, dtype.name), device=f"cuda:{device}")
        case "numba":
            numba_cuda = sys.modules["numba.cuda"]
            with numba_cuda.gpus[device]:
                return numba_cuda.device_array(extents, dtype.numpy, strides, stream=numba_cuda.external_stream(stream))
        case "jax" | "fusec":
            return memory.empty(extents, dtype, axes, device, stream)
        case _:
            assert_never(library)


def deliver(like: object, array: object) -> object:
    """The array as `like`'s library presents it to the user, after the launch that writes it was enqueued."""
    if not isinstance(array, CudaArray):
        return array
    library, given = library_of(like), _given(like)
    if library == "jax":
        return module("jax").dlpack.from_dlpack(array)
    namespace = getattr(type(given), "__array_namespace__", None)
    return array if library != "fusec" or namespace is None else namespace(given).from_dlpack(array)


def seen_as(array: Any, view: DeviceArray, offset: int) -> object | None:
    """A view of an array's memory in its library; None where the library has no such views.

    offset: of the first element of the view from that of the array, in bytes.
    """
    dtype, shape, strides = view.dtype, view.shape, view.strides
    match library_of(array):
        case "cupy":
            return module("cupy").ndarray(shape, dtype.numpy, array.data + offset, strides)  # type: ignore[no-any-return]
        case "torch":
            if any(stride < 0 or stride % dtype.nbytes for stride in strides):
                return None
            torch = module("torch")
            base = array if array.dtype == getattr(torch, dtype.name) else torch.view_as_real(array)
            steps = [stride // dtype.nbytes for stride in strides]
            return base.as_strided(shape, steps, base.storage_offset() + offset // dtype.nbytes)  # type: ignore[no-any-return]
        case "jax":
            return None
        case "numba":
            data = {"data": (view.pointer, view.readonly), "version": 3, "stream": None}
            described = {**data, "shape": shape, "strides": strides, "typestr": dtype.numpy.str}
            return sys.modules["numba.cuda"].from_cuda_array_interface(described, array, sync=False)  # type: ignore[no-any-return]
        case "fusec" if not isinstance(array, CudaArray):
            return memory.borrowed(view.pointer, memory.DeviceLayout(shape, strides, dtype), view.device or 0, array)
        case _:
            return array.seen_as(shape, strides, offset, dtype)


def is_whole(array: Any) -> bool:
    """Whether an array of CuPy or fusec has memory of its own, and is no view of another array."""
    return not array.is_view if isinstance(array, CudaArray) else array.base is None


def lent_to_cupy(array: DeviceArray) -> Any:
    """A CuPy array in the memory of any array, which it keeps."""
    cupy = module("cupy")
    low, high = memory.reach(array.shape, array.strides, array.dtype.nbytes)
    whole = cupy.cuda.UnownedMemory(array.pointer + low, max(1, high - low), array, array.device or 0)
    start = cupy.cuda.MemoryPointer(whole, -low)
    return cupy.ndarray(array.shape, array.dtype.numpy, start, array.strides)


@contextmanager
def in_cupy(on: StreamOn) -> Iterator[None]:
    """Have CuPy work on a stream and its device."""
    cupy, stream, device = module("cupy"), streams.handle(on.stream), on.device or 0
    with cupy.cuda.Device(device), _on_stream(cupy.cuda, stream, device):
        yield


def _given(value: object) -> object:
    """The user's own array."""
    return value.given if isinstance(value, DeviceArray) else value


def module(name: str) -> Any:
    """A library that must be loaded, because one of its arrays was given."""
    found: ModuleType = sys.modules[name]
    return found


def _on_stream(cuda: Any, stream: int, device: int) -> AbstractContextManager[object]:
    """Make a stream current in CuPy or PyTorch, so that the memory's next user waits for the kernel on it."""
    is_torch = hasattr(cuda, "current_stream")
    current = cuda.current_stream(device) if is_torch else cuda.get_current_stream(device)
    if streams.handle(current) == stream:
        return nullcontext()
    context: AbstractContextManager[object]
    if is_torch:
        legacy = stream == streams.LEGACY
        context = cuda.stream(cuda.default_stream(device) if legacy else cuda.ExternalStream(stream, device=device))
    else:
        wrapped = getattr(cuda.Stream, "from_external", None)  # from CuPy 14 on, which warns of the other
        context = cuda.ExternalStream(stream, device) if wrapped is None else wrapped(_Protocol(stream))
    return context


class _Protocol(NamedTuple):
    """The handle of a stream as an object that other libraries take."""

    stream: int

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream
