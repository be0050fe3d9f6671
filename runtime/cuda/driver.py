"""The driver: initialisation, facts about devices, contexts, and results turned into errors."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from fusec.base.records import dataclass
from fusec.errors.targets import CudaCallFailed, NoCudaDevice, NoCudaDriver
from fusec.runtime.cuda.libraries import driver_api

LIBRARY = "libcuda.so.1" if os.name == "posix" else "nvcuda.dll"

# Attributes of CUdevice_attribute: CUDA driver API reference, section "Data types used by CUDA driver".
_MULTIPROCESSORS = 16
_THREADS_PER_MULTIPROCESSOR = 39
_MAJOR, _MINOR = 75, 76
_DEVICE_ORDINAL = 9  # CUpointer_attribute


@dataclass(frozen=True)
class DeviceProperties:
    """Facts about one device.

    arch: its real architecture, e.g. ``"sm_90"``. multiprocessors: their number; threads_per_multiprocessor: how many
    may be resident on one. context: handle of the primary context, which fusec keeps for the life of the process.
    """

    ordinal: int
    arch: str
    multiprocessors: int
    threads_per_multiprocessor: int
    context: int

    @property
    def has_clusters(self) -> bool:
        """Whether blocks of a cluster see each other's shared memory."""
        return int(self.arch.removeprefix("sm_")) >= 90


def reason_of(code: Any) -> tuple[str, str]:
    """Name and text of a CUresult, in the driver's own words."""
    driver = driver_api()
    _, name = driver.cuGetErrorName(code)
    _, text = driver.cuGetErrorString(code)
    return (name or b"CUDA_ERROR_UNKNOWN").decode(), (text or str(code).encode()).decode()


def check(result: tuple[Any, ...], what: str) -> Any:
    """The value of a driver call. what: the action in plain words, for the error. Raises CudaCallFailed."""
    if int(result[0]) != 0:
        name, text = reason_of(result[0])
        raise CudaCallFailed(what, name, text).at()
    return result[1] if len(result) == 2 else result[1:]


@cache
def initialise() -> int:
    """Load and initialise the driver; return the number of devices, at least 1.

    Raises NoCudaDriver, NoCudaDevice, CudaCallFailed (a driver that does not match the kernel module, for example).
    """
    driver = driver_api()
    try:
        started = driver.cuInit(0)
    except RuntimeError as reason:  # what cuda.pathfinder raises when it cannot load the library
        raise NoCudaDriver(LIBRARY).at() from reason
    count = 0
    if started[0] != driver.CUresult.CUDA_ERROR_NO_DEVICE:
        check(started, "initialise")
        count = int(check(driver.cuDeviceGetCount(), "count the devices"))
    if not count:
        raise _no_device(0, 0)
    return count


def _no_device(ordinal: int, count: int) -> Exception:
    return NoCudaDevice(ordinal, count, os.environ.get("CUDA_VISIBLE_DEVICES", "(unset)")).at()


@cache
def device(ordinal: int) -> DeviceProperties:
    """Facts about a device by its ordinal. Raises NoCudaDriver, NoCudaDevice."""
    count = initialise()
    if not 0 <= ordinal < count:
        raise _no_device(ordinal, count)
    driver = driver_api()
    handle = check(driver.cuDeviceGet(ordinal), f"open device {ordinal}")

    def fact(attribute: int) -> int:
        kind = driver.CUdevice_attribute(attribute)
        return int(check(driver.cuDeviceGetAttribute(kind, handle), f"query device {ordinal}"))

    return DeviceProperties(
        ordinal=ordinal,
        arch=f"sm_{fact(_MAJOR)}{fact(_MINOR)}",
        multiprocessors=fact(_MULTIPROCESSORS),
        threads_per_multiprocessor=fact(_THREADS_PER_MULTIPROCESSOR),
        context=int(check(driver.cuDevicePrimaryCtxRetain(handle), f"start device {ordinal}")),
    )


def current_ordinal() -> int:
    """The current device of this thread; 0 if there is none yet. Raises NoCudaDriver, NoCudaDevice."""
    initialise()
    code, ordinal = driver_api().cuCtxGetDevice()
    return int(ordinal) if int(code) == 0 else 0


def is_current(ordinal: int) -> bool:
    """Whether a device is the current one of this thread, or the only one there is."""
    return initialise() == 1 or current_ordinal() == ordinal


def enter(on: DeviceProperties) -> bool:
    """Make a device current in this thread; return whether another one was, so that `leave` must restore it.

    Any context of the device will do: pointers, modules and streams are valid in it.
    """
    driver = driver_api()
    code, ordinal = driver.cuCtxGetDevice()
    if int(code) != 0:  # no context at all in this thread
        check(driver.cuCtxSetCurrent(driver.CUcontext(on.context)), f"make device {on.ordinal} current")
        return False
    if int(ordinal) == on.ordinal:
        return False
    check(driver.cuCtxPushCurrent(driver.CUcontext(on.context)), f"make device {on.ordinal} current")
    return True


def leave(entered: bool) -> None:
    """Undo an `enter`."""
    if entered:
        check(driver_api().cuCtxPopCurrent(), "make the former device current")


@contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """A block in which a device is current in this thread."""
    entered = enter(device(ordinal))
    try:
        yield
    finally:
        leave(entered)


def ordinal_of_pointer(pointer: int) -> int | None:
    """The device that holds an address; None if the driver does not know the address."""
    initialise()
    ordinal = ctypes.c_int(-1)
    code = _pointer_attribute()(ctypes.byref(ordinal), _DEVICE_ORDINAL, pointer)
    return ordinal.value if code == 0 and ordinal.value >= 0 else None


@cache
def _pointer_attribute() -> Any:
    """The driver's own entry: that of cuda-bindings answers 0 for every device up to 13.3.1 at least."""
    function = ctypes.CDLL(LIBRARY).cuPointerGetAttribute
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64), ctypes.c_int
    return function
