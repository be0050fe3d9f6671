"""Lazy arrays on CUDA devices. Their values are arrays of `fusec.runtime.cuda`, whatever library made the memory.

Recorded programs run as fused functions of such arrays do. CUDA's libraries compute products, transforms and linear
algebra; what is neither traced nor computed at once by kernels is CuPy's to compute. Nothing is copied to the host
unless the user looks at it, but for the extents of results that depend on values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from fusec.base import dtypes
from fusec.base.records import replace
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.errors import FusecError
from fusec.errors.lazy import DevicesDoNotMix, NeedsCopy, NoSuchDevice, NotOnDevice
from fusec.errors.targets import DeviceDtypeUnsupported
from fusec.fusion.arguments import CallArguments, pattern_of
from fusec.fusion.at_once import value_functions
from fusec.fusion.devices import device_calls
from fusec.fusion.devices.device_memory import DeviceSide, is_described, outline
from fusec.fusion.fused_plan import UNFIT, FusedPlan, UnfitArraysError
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.results import MISSED, ServedCall
from fusec.fusion.trace.lines import here
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda
from fusec.runtime.cuda import CudaArray
from fusec.xp import forms
from fusec.xp.forms import CPU, Device, Form
from fusec.xp.trie import TapePlan


@cache
def name_of(ordinal: int) -> Device:
    """The name of a CUDA device."""
    return Device(f"cuda:{ordinal}")


def names() -> tuple[Device, ...]:
    """The CUDA devices of this machine."""
    try:
        return tuple(map(name_of, range(cuda.initialise())))
    except FusecError:  # no driver, no device, or no package that asks it
        return ()


def is_there(value: object) -> bool:
    """Whether an array of any library is in the memory of a CUDA device."""
    return cuda.is_device_array(value)


def form_of(value: CudaArray) -> Form:
    """The form of an array."""
    return forms.form_of(_outline(value), name_of(value.device))


def _outline(value: CudaArray) -> Any:
    """An array of NumPy's that lies alike, of which nothing may be read."""
    return outline(cuda.describe(value))


# --- copies and arrays of other libraries ------------------------------------------------------------------------


def ordinal_of(device: Any) -> int:
    """The number of a CUDA device. Raises NoSuchDevice."""
    known = names()
    if device not in known:
        raise NoSuchDevice.among(device, (CPU, *known)).at(here())
    return known.index(device)


def placed(values: Any, device: Any, stream: Any = None) -> CudaArray:
    """A copy of values from host memory. Raises NoSuchDevice."""
    return cuda.from_numpy(values, ordinal_of(device), stream)


def copied(value: CudaArray) -> CudaArray:
    """A copy on the same device, its axes in the same order."""
    order = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
    made = cuda.empty(value.shape, value.row, order, value.device, value.stream)
    Planned.copier().run((value, made), None, CallOptions(stream=value.stream))
    return made


def moved(value: Any, source: Device, target: Any, stream: Any) -> Any:
    """A copy elsewhere; between devices by way of the host. Raises NoSuchDevice."""
    if target != CPU:
        ordinal_of(target)
    if source != CPU:
        if stream is not None:
            cuda.acquire([cuda.describe(value)], cuda.handle(stream), value.device)
        value = value.numpy()
    return value if target == CPU else placed(value, target, stream)


def zeros(shape: Any, dtype: Any, device: Any) -> CudaArray:
    """An array of zeros, which are not copied from anywhere."""
    ordinal = ordinal_of(device)
    form = np.broadcast_to(np.zeros((), dtype), shape)
    row = dtypes.from_numpy(form.dtype)
    if row is None:
        raise DeviceDtypeUnsupported(str(form.dtype)).at(here())
    made = cuda.empty(form.shape, row, None, ordinal)
    cuda.fill_with_zeros(made.pointer, form.size * row.nbytes, ordinal, made.stream)
    return made


def taken(given: Any, copy: bool | None = None) -> CudaArray:
    """An array in the memory of another library's; a copy of one that must not be written.

    Raises NeedsCopy, and what the protocols raise.
    """
    found = cuda.describe(given, cuda.LEGACY)
    device = cuda.same_device([found])
    if isinstance(given, CudaArray):
        value = given
    else:
        cuda.acquire([found], cuda.LEGACY, device)
        value = cuda.borrowed(found.pointer, cuda.DeviceLayout(found.shape, found.strides, found.dtype), device, found)
    if found.readonly and copy is False:
        raise NeedsCopy("an array that must not be written").at(here())
    return copied(value) if copy or found.readonly else value


def exported(value: CudaArray, stream: Any, options: dict[str, Any]) -> Any:
    """A capsule of DLPack, of a copy if that is asked for."""
    if options["dl_device"] == (1, 0):
        if options["copy"] is False:
            raise BufferError("an array on a device is in host memory only as a copy, which copy=False forbids")
        return value.numpy().__dlpack__(**{**options, "copy": None})
    if options["copy"]:
        value, options = copied(value), {**options, "copy": None}
    return value.__dlpack__(stream=stream, **options)


def owner(value: CudaArray) -> tuple[Any, Device, int]:
    """The owner of an array's memory, its device, and its bytes."""
    return value.memory, name_of(value.device), value.memory.nbytes


def pooled(device: Device) -> int:
    """The freed bytes that are kept for new arrays."""
    return cuda.pooled_bytes(ordinal_of(device))


def may_share(one: CudaArray, other: CudaArray) -> bool:
    """Whether two arrays may share memory."""
    return one.device == other.device and np.may_share_memory(_outline(one), _outline(other))


# --- recorded programs -------------------------------------------------------------------------------------------


def without_memory(arguments: CallArguments, value: CudaArray) -> Any:
    """An array as an argument of a trace, which keeps its form, but not its memory."""
    found = replace(arguments.described(value), owner=None, given=None)
    arguments.side.arrays.clear()
    arguments._placed(found)
    return found


def check(statements: Sequence[Any]) -> None:
    """Raise CudaMathMissing or CallOnDevice if statements of a trace need cuBLAS or CuPy, and there is none."""
    for each in statements:
        if isinstance(each, LibraryCall):
            device_calls.check(each)


def outlines(flat: Sequence[Any]) -> list[Any]:
    """Arrays of NumPy's that lie as those on the device, of which nothing may be read, and the numbers."""
    return [_outline(each) if type(each) is CudaArray else each for each in flat]


def results(planned: TapePlan, flat: Sequence[Any], other: Callable[[Any], FusedPlan]) -> Any:
    """What a plan computes for arrays and numbers. If an operation fails, what was written has its old elements.

    other: the plan for arrays that share memory in some other way.
    """
    plan, kept = planned.plan, list[tuple[CudaArray, CudaArray]]()
    if planned.may_fail and any(isinstance(each, CallStep) and each.call.may_raise for each in plan.steps):
        kept = [(copied(flat[at]), flat[at]) for at in plan.writes]
    try:
        return _results(planned, flat, other)
    except Exception:
        for copy, value in kept:
            Planned.copier().run((copy, value), None, CallOptions(stream=value.stream))
        raise


def _results(planned: TapePlan, flat: Sequence[Any], other: Callable[[Any], FusedPlan]) -> Any:
    """The same; what was written before a failure stays."""
    found = MISSED if planned.repeats is None else planned.repeats.call(flat, {}, (), ())
    if found is MISSED:
        try:
            found = _run(planned, flat)
        except UNFIT:  # raised before anything is written
            found = other(pattern_of(outlines(flat), planned.plan.writes)).run(*_given(flat))
    device = next(each.device for each in flat if type(each) is CudaArray)
    if type(found) is tuple:
        return [_there(each, device) for each in found]
    return _there(found, device)


def _given(flat: Sequence[Any]) -> tuple[list[Any], DeviceSide]:
    """Arrays and numbers in the form that plans take."""
    side = DeviceSide()
    return [side.described(each) if type(each) is CudaArray else each for each in flat], side


def _run(planned: TapePlan, flat: Sequence[Any]) -> Any:
    """The results of a plan, whose launches later calls may repeat. Raises UnfitArraysError."""
    given, side = _given(flat)
    plan = planned.plan
    if plan.writes and plan.may_not_fit([outline(each) if is_described(each) else each for each in given]):
        raise UnfitArraysError
    found = plan.run(given, side)
    if side.served is not None:
        planned.repeats = planned.repeats or side.repeats(lambda problem: problem, {})
        planned.repeats.add(flat, {}, ServedCall(plan, given, len(flat), side.served))
    return found


def _there(found: Any, device: int) -> CudaArray:
    """A result on the device, to which a constant is copied."""
    return found if type(found) is CudaArray else cuda.from_numpy(found, device)


# --- what is not recorded ----------------------------------------------------------------------------------------


def call(function: Any, args: Any, options: dict[str, Any]) -> Any:
    """What a function makes of arrays: one of fusec's own, one that stands for NumPy's here, or CuPy's of that name.

    Raises NotOnDevice, and what the function raises.
    """
    arrays = [each for each in _items((args, tuple(options.values()))) if type(each) is CudaArray]
    device = arrays[0].device
    for each in _items((args, tuple(options.values()))):
        if isinstance(each, np.ndarray):
            raise DevicesDoNotMix(name_of(device), CPU).at(here())
    if _is_fusecs(function):
        return function(*args, **options)
    stream = arrays[0].stream
    cuda.acquire(map(cuda.describe, arrays), stream, device)
    own = value_functions.of(function)
    found = NotImplemented if own is None else own(*args, **options)
    if found is not NotImplemented:
        return found
    name = getattr(function, "__name__", None) or str(getattr(function, "args", [function])[0])
    try:
        import_module("cupy")
    except ImportError as problem:
        raise NotOnDevice(name, name_of(device), device_calls.NO_CUPY).at(here()) from problem

    def lend(each: Any) -> Any:
        return cuda.lent_to_cupy(cuda.describe(each)) if type(each) is CudaArray else each

    with cuda.in_cupy(cuda.StreamOn(stream, device)):
        try:
            found = function(*_each(args, lend), **{key: _each(each, lend) for key, each in options.items()})
        except TypeError as problem:  # NumPy's, for a function that CuPy does not have
            raise NotOnDevice(name, name_of(device), "CuPy does not have it for these arrays").at(here()) from problem

    def take(each: Any) -> Any:
        if cuda.library_of(each) != "cupy":
            return each
        got = cuda.describe(each, stream)
        made = cuda.borrowed(got.pointer, cuda.DeviceLayout(got.shape, got.strides, got.dtype), device, got)
        made.stream = stream
        return made

    return _each(found, take)


def _is_fusecs(function: Any) -> bool:
    homes = (str(getattr(each, "__module__", "")) for each in (function, type(function)))
    return any(home.partition(".")[0] == "fusec" and not home.startswith("fusec.xp") for home in homes)


def _items(given: Any) -> list[Any]:
    """All that is in containers."""
    if isinstance(given, (tuple, list)):
        return [one for each in given for one in _items(each)]
    return [given]


def _each(given: Any, change: Callable[[Any], Any]) -> Any:
    """Containers with their items changed."""
    if isinstance(given, (tuple, list)):
        items = [_each(each, change) for each in given]
        return type(given)(*items) if hasattr(given, "_fields") else type(given)(items)
    return change(given)
