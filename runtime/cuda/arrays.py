"""Device arrays of any library as plain numbers, by DLPack or ``__cuda_array_interface__``; and their order of use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import dataclass, replace
from fusec.errors import targets
from fusec.errors.base import FusecError
from fusec.runtime.cuda import dlpack, driver, streams
from fusec.runtime.cuda.memory import CudaArray


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array in device memory.

    pointer: address of the first element. shape: extents. strides: in bytes. device: ordinal, None if the array is
    empty and nobody says. readonly: must not be written. stream: handle of the producer's stream that work on the
    array must still wait for, None if there is nothing to wait for. owner: keeps the memory alive. given: the user's
    own object.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    device: int | None
    readonly: bool
    stream: int | None
    owner: object
    given: object


def is_device_array(value: object) -> bool:
    """True for an array in CUDA memory; queries the array, not the driver."""
    if isinstance(value, (CudaArray, DeviceArray)):
        return True
    kind = _dlpack_kind(value)
    if kind is not None:
        return kind in dlpack.ON_DEVICE
    return _has_interface(value)


def describe(value: object, stream: int | None = None) -> DeviceArray:
    """An array of any library that has DLPack or ``__cuda_array_interface__`` version 2 or 3.

    stream: handle of the stream the array will be used on; a DLPack producer then orders that stream after its own.
    Raises HostArrayAmongDeviceArrays, NotACudaDevice, DeviceDtypeUnsupported, DeviceArrayRefused.
    """
    if isinstance(value, CudaArray):
        return _own(value)
    if isinstance(value, DeviceArray):
        return value
    for bit, asks, cure in (("negative", "is_neg", "resolve_neg"), ("conjugate", "is_conj", "resolve_conj")):
        if getattr(value, asks, bool)():  # a PyTorch tensor whose memory holds other values; no protocol says so
            raise targets.DeviceArrayRefused(_name(value), f"its {bit} bit is set: call .{cure}()").at()
    kind = _dlpack_kind(value)
    reason = "it offers neither __dlpack__ nor __cuda_array_interface__"
    if kind in dlpack.ON_DEVICE:
        try:
            capsule = _capsule(value, stream)
            return _from_dlpack(value, capsule, dlpack.read(capsule))
        except FusecError:
            raise
        except Exception as refusal:  # exporters raise what they like
            reason = str(refusal) or repr(refusal)
    elif kind is not None:
        if kind in (dlpack.CPU, dlpack.CUDA_HOST):
            raise targets.HostArrayAmongDeviceArrays(_name(value)).at()
        raise targets.NotACudaDevice(_name(value), dlpack.DEVICE_KINDS.get(kind, f"DLPack device type {kind}")).at()
    return _by_interface(value, reason)


def broadcast(value: object, shape: tuple[int, ...], stream: int) -> DeviceArray:
    """A device array of any library broadcast to a larger shape, in the same memory; calls accept it as an argument.

    stream: handle of the stream it will be used on. The shape must be one that the array broadcasts to.
    """
    found = describe(value, stream)
    new = len(shape) - len(found.shape)
    kept = zip(found.shape, found.strides, shape[new:], strict=True)
    strides = [stride if extent == wanted else 0 for extent, stride, wanted in kept]
    return replace(found, shape=shape, strides=(*(0,) * new, *strides), readonly=True)


def same_device(arrays: Iterable[DeviceArray]) -> int:
    """The device of all arrays of a call; the current one if every array is empty. Raises ArraysOnDifferentDevices."""
    found: int | None = None
    for array in arrays:
        if array.device is None or array.device == found:
            continue
        if found is not None:
            raise targets.ArraysOnDifferentDevices(found, array.device).at()
        found = array.device
    return driver.current_ordinal() if found is None else found


def acquire(arrays: Iterable[DeviceArray], stream: int, device: int) -> None:
    """Before a launch: order `stream` after the streams on which the arrays were made.

    Arrays of fusec's own move to `stream`, so that whoever overwrites or frees them next waits for this launch.
    """
    everything = tuple(arrays)
    for producer in {array.stream for array in everything} - {None, stream}:
        assert producer is not None
        streams.wait(stream, producer, device)
    for array in everything:
        if isinstance(array.given, CudaArray):
            array.given.stream = stream


def release(outputs: Iterable[DeviceArray], stream: int, device: int) -> None:
    """After a launch: make later work on the streams of other libraries' outputs wait for `stream`."""
    for array in outputs:
        if array.stream is not None and not isinstance(array.given, CudaArray):
            streams.wait(array.stream, stream, device)


def check_writable(array: DeviceArray) -> None:
    """Raises ReadOnlyDeviceArray."""
    if array.readonly:
        raise targets.ReadOnlyDeviceArray(_name(array.given)).at()


# --- DLPack --------------------------------------------------------------------------------------------------------


def _dlpack_kind(value: object) -> int | None:
    """The DLPack device type of an array; None if it does not speak DLPack."""
    try:
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            return None
        return int(value.__dlpack_device__()[0])
    except Exception:  # as above; then another protocol may do, or gives the reason
        return None


def _capsule(value: object, stream: int | None) -> object:
    export = value.__dlpack__  # type: ignore[attr-defined]
    try:
        return export(stream=stream, max_version=(1, 0))
    except TypeError:  # a producer from before DLPack 1.0
        return export(stream=stream)


def _from_dlpack(value: object, capsule: object, contents: dlpack.Contents) -> DeviceArray:
    if contents.dtype is None:
        raise targets.DeviceDtypeUnsupported(contents.kind).at()
    return DeviceArray(
        pointer=contents.pointer,
        shape=contents.shape,
        strides=contents.strides,
        dtype=contents.dtype,
        device=contents.device,
        readonly=contents.readonly or _never_changes(value),
        stream=None,  # the producer has ordered our stream already
        owner=capsule,
        given=value,
    )


# --- __cuda_array_interface__ --------------------------------------------------------------------------------------
# https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html


def _has_interface(value: object) -> bool:
    try:
        return getattr(value, "__cuda_array_interface__", None) is not None
    except Exception:  # PyTorch's answer for a tensor that requires a gradient: on the device, but not shared
        return True


def _by_interface(value: object, reason: str) -> DeviceArray:
    """Read the interface; `reason` says why DLPack would not do, in case there is none."""
    try:
        interface = value.__cuda_array_interface__  # type: ignore[attr-defined]
    except AttributeError as absent:
        if isinstance(value, np.ndarray) or hasattr(value, "__array_interface__"):
            raise targets.HostArrayAmongDeviceArrays(_name(value)).at() from absent
        raise targets.DeviceArrayRefused(_name(value), reason).at() from absent
    except Exception as refusal:
        raise targets.DeviceArrayRefused(_name(value), str(refusal) or repr(refusal)).at() from refusal
    if not isinstance(interface, dict):
        raise targets.DeviceArrayRefused(_name(value), f"its __cuda_array_interface__ is {interface!r}, no dict").at()
    return _from_interface(value, interface)


def _from_interface(value: object, interface: dict[str, Any]) -> DeviceArray:
    version = interface.get("version")
    if not isinstance(version, int) or version < 2:
        raise targets.DeviceArrayRefused(
            _name(value), f"version {version} of its interface is too old; 2 or 3 is needed"
        ).at()
    if interface.get("mask") is not None:
        raise targets.DeviceArrayRefused(_name(value), "it has a mask, which would be lost").at()
    try:
        pointer, readonly, shape, given, typestr = _interface_layout(interface)
    except (KeyError, OverflowError, TypeError, ValueError) as wrong:
        raise targets.DeviceArrayRefused(
            _name(value), f"its __cuda_array_interface__ is malformed ({wrong!r})"
        ).at() from wrong
    dtype = _interface_dtype(value, typestr)
    strides = strides_in_order(shape, range(len(shape)), dtype.nbytes) if given is None else given
    if len(strides) != len(shape):
        raise targets.DeviceArrayRefused(_name(value), f"it has {len(shape)} extents but {len(strides)} strides").at()
    empty = 0 in shape or not pointer
    return DeviceArray(
        pointer=pointer,
        shape=shape,
        strides=strides,
        dtype=dtype,
        device=None if empty else _device_of(value, pointer),
        readonly=readonly or _never_changes(value),
        stream=_interface_stream(value, interface.get("stream")),
        owner=value,
        given=value,
    )


def _interface_layout(
    interface: dict[str, Any],
) -> tuple[int, bool, tuple[int, ...], tuple[int, ...] | None, str]:
    """Pointer (0 for none), read-only flag, shape, strides and typestr, as plain values."""
    pointer, readonly = interface["data"]
    strides = interface.get("strides")
    shape = tuple(int(extent) for extent in interface["shape"])
    if not all(0 <= extent < 1 << 63 for extent in shape):
        raise ValueError(f"shape {shape}")
    steps = None if strides is None else tuple(map(int, strides))
    return int(pointer or 0), bool(readonly), shape, steps, str(interface["typestr"])


def _interface_dtype(value: object, typestr: str) -> DType:
    """The dtype of a typestr; void ones hide bfloat16 and float8, which the array's own dtype may name."""
    try:
        given = np.dtype(getattr(value, "dtype", typestr) if typestr[1:2] == "V" else typestr)
    except (TypeError, ValueError) as unknown:
        raise targets.DeviceDtypeUnsupported(repr(typestr)).at() from unknown
    found = dtypes.from_numpy(given)
    if found is None:
        raise targets.DeviceDtypeUnsupported(repr(typestr)).at()
    return found


def _interface_stream(value: object, stream: object) -> int | None:
    """The stream field of version 3: None, 1 (legacy default), 2 (per-thread default) or a handle; 0 is forbidden."""
    if stream is None:
        return None
    if not isinstance(stream, int) or stream <= 0:
        raise targets.DeviceArrayRefused(_name(value), f"{stream!r} in its interface is not a stream").at()
    return stream


def _device_of(value: object, pointer: int) -> int:
    """The ordinal that the array tells by DLPack, else the one under which the driver knows the address."""
    if _dlpack_kind(value) == dlpack.CUDA:
        return int(value.__dlpack_device__()[1])  # type: ignore[attr-defined]
    found = driver.ordinal_of_pointer(pointer)
    if found is None:
        raise targets.DeviceArrayRefused(_name(value), f"the CUDA driver does not know its address 0x{pointer:x}").at()
    return found


# --- the rest ------------------------------------------------------------------------------------------------------


def _own(array: CudaArray) -> DeviceArray:
    return DeviceArray(
        pointer=array.pointer,
        shape=array.shape,
        strides=array.strides,
        dtype=array.row,
        device=array.device,
        readonly=False,
        stream=array.stream,
        owner=array,
        given=array,
    )


def _never_changes(value: object) -> bool:
    """JAX promises that its arrays keep their values, though their exports do not say so."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
