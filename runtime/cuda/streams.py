"""Streams of any library as handles, and waiting of one stream for another."""

from __future__ import annotations

from typing import NamedTuple

from fusec.errors.targets import StreamRefused
from fusec.runtime.cuda import driver
from fusec.runtime.cuda.libraries import driver_api


class StreamOn(NamedTuple):
    """A stream of a device."""

    stream: object = None  # whatever `handle` takes
    device: int | None = None  # None: the current one


LEGACY = 1  # a handle with a meaning of its own: the CUDA driver API's CU_STREAM_LEGACY
PER_THREAD = 2  # likewise, a stream of each thread: CU_STREAM_PER_THREAD
_ATTRIBUTES = ("ptr", "cuda_stream", "handle")  # CuPy, PyTorch, Numba and cuda.core, where __cuda_stream__ is missing
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING


def handle(stream: object) -> int:
    """The handle of a stream: an int, None (the legacy default), or an object of CuPy, PyTorch, Numba, cuda.core.

    Raises StreamRefused.
    """
    if stream is None:
        return LEGACY
    if isinstance(stream, int) and not isinstance(stream, bool):
        return _named(stream, stream)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        answer = protocol() if callable(protocol) else protocol
        return _named(int(answer[1]), stream)
    for attribute in _ATTRIBUTES:
        found = getattr(stream, attribute, None)
        if found is not None:
            return _as_handle(getattr(found, "value", found), stream)
    return _as_handle(stream, stream)


def _as_handle(found: object, stream: object) -> int:
    if isinstance(found, (str, bytes, float, bool)) or not hasattr(found, "__int__"):
        raise StreamRefused(type(stream).__name__).at()
    return _named(int(found), stream)


def _named(number: int, stream: object) -> int:
    """0 also means the legacy default stream, except to a process that redefines it; so it is spelled out."""
    if number < 0:
        raise StreamRefused(type(stream).__name__).at()
    return number or LEGACY


def wait(stream: int, producer: int, device: int) -> None:
    """Make later work on `stream` wait for the present work on `producer`; the host does not wait."""
    if stream == producer:
        return
    api = driver_api()
    with driver.on_device(device):
        event = driver.check(api.cuEventCreate(_NO_TIMING), "make an event")
        try:
            driver.check(api.cuEventRecord(event, api.CUstream(producer)), "record an event")
            driver.check(api.cuStreamWaitEvent(api.CUstream(stream), event, 0), "wait for an event")
        finally:
            driver.check(api.cuEventDestroy(event), "free an event")


def is_captured(stream: int) -> bool:
    """Whether a CUDA graph captures what is enqueued on a stream."""
    api = driver_api()
    return int(driver.check(api.cuStreamIsCapturing(api.CUstream(stream)), "query a stream")) != 0


def synchronise(stream: int, device: int) -> None:
    """Wait on the host until a stream is idle; faults of its kernels surface here. Raises CudaCallFailed."""
    api = driver_api()
    with driver.on_device(device):
        driver.check(api.cuStreamSynchronize(api.CUstream(stream)), "finish the work on a stream")
