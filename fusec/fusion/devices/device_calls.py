"""Calls of NumPy's functions between kernels on a device: CUDA's libraries for mathematics compute those for which
there are recipes, CuPy, to which NumPy hands its arrays, all others.

memory: that of the call, a `DeviceMemory`.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.base.records import replace
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.errors import FusecError
from fusec.errors.fusing import CallOnDevice
from fusec.fusion.devices import (
    device_linear,
    device_products,
    device_searches,
    device_sorts,
    device_sums,
    device_transforms,
    recipes,
)
from fusec.fusion.memory.slots import SlotView, fresh
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda

MAX_LENT = 64  # arrays over other libraries' memory that one kind of call keeps

NO_CUPY = "CuPy, which would compute it there, cannot be imported; pip install cupy-cuda13x installs it"
"""Why a library's function is refused: it is never computed on the host instead."""


_MAKERS = device_products, device_sums, device_sorts, device_searches, device_transforms, device_linear


def maker_of(call: LibraryCall) -> Any:
    """The module that has recipes for a call; None if CUDA's libraries do not compute it."""
    return next((each for each in _MAKERS if each.computes(call)), None)


def check(call: LibraryCall) -> None:
    """Raise CudaMathMissing or CallOnDevice if a call needs a library of CUDA's or CuPy, and there is none."""
    if call.kernels or not call.buffers:
        return
    maker = maker_of(call)
    if maker is not None:
        try:
            maker.LIBRARY()
        except FusecError as problem:
            raise problem.error.at(call.place) from problem.__cause__
        return
    try:
        importlib.import_module("cupy")
    except ImportError as problem:
        raise _refused(call, NO_CUPY) from problem


def run(call: LibraryCall, operands: Sequence[Any], slots: Sequence[int], memory: Any) -> list[Any]:
    """The arrays that a call makes, for these slots. Raises CallOnDevice, and what the function raises."""
    maker = maker_of(call)
    if maker is not None:
        made = [memory.new(fresh(slot, buffer)) for slot, buffer in zip(slots, call.buffers, strict=True)]
        given = [*operands, *made]
        recipes.run(
            maker.recipe(call, [*map(recipes.form_of, given)], memory.device), given, memory.device, memory.stream
        )
        return made
    taken = (_by_kernels if call.kernels else _by_cupy)(call, operands, memory)
    wanted = [(each.phantom.shape, each.phantom.dtype) for each in call.buffers]
    if [(each.shape, each.dtype.numpy) for each in taken] != wanted:
        raise _refused(call, "CuPy's result has another shape or dtype than NumPy's")
    targets = [fresh(slot, buffer) for slot, buffer in zip(slots, call.buffers, strict=True)]
    return [memory.taken(each, target, operands) for each, target in zip(taken, targets, strict=True)]


def _by_cupy(call: LibraryCall, operands: Sequence[Any], memory: Any) -> list[cuda.DeviceArray]:
    """What CuPy makes of arrays."""
    arrays = [cuda.lent_to_cupy(each) if isinstance(each, cuda.DeviceArray) else each for each in operands]
    with cuda.in_cupy(cuda.StreamOn(memory.stream, memory.device)):
        try:
            found = call.function(*arrays)
        except TypeError as problem:  # NumPy's, for a function that CuPy does not have
            raise _refused(call, "CuPy does not have it for these arrays") from problem
        return [cuda.describe(each, memory.stream) for each in found if cuda.library_of(each) == "cupy"]


def _by_kernels(call: LibraryCall, operands: Sequence[Any], memory: Any) -> list[cuda.DeviceArray]:
    """What kernels of fusec make of arrays of its own, which run on a stream of theirs that each waits for."""
    arrays = [memory.owned(each) if isinstance(each, cuda.DeviceArray) else each for each in operands]
    found = [cuda.describe(each) for each in call.function(*arrays)]
    cuda.acquire(found, memory.stream, memory.device)
    return found


class CallTarget(NamedTuple):
    """A result of a call of a library: its slot, and how it should lie."""

    slot: int
    shape: tuple[int, ...]
    row: dtypes.DType
    order: Sequence[int]
    strides: tuple[int, ...]
    dtype: Any  # of NumPy

    def fits(self, found: Any) -> bool:
        """Whether an array has this shape and dtype."""
        return bool(found.shape == self.shape and found.dtype == self.dtype)


def targets_of(step: Any) -> tuple[CallTarget, ...]:
    """What repeated calls need to know about the results of a step."""
    found = []
    for slot, buffer in zip(step.outputs, step.call.buffers, strict=True):
        wanted, row = fresh(slot, buffer), buffer.dtype
        order = range(len(wanted.shape)) if wanted.order is None else wanted.order
        strides = strides_in_order(wanted.shape, order, row.nbytes)
        found.append(CallTarget(slot, wanted.shape, row, order, strides, row.numpy))
    return tuple(found)


class RepeatedCalls:
    """The library calls in one repeated call, on its stream, which is current in the library of its arrays.

    CuPy, and kernels of fusec that are called by name, compute on arrays of all libraries, in their own memory. Arrays
    over such memory are kept for later calls, which find them by address. They own no memory; a function's result that
    lies in it is copied.
    repeat: a `RepeatedCall`. held: the memory between kernels.
    """

    def __init__(self, repeat: Any, frame: list[Any], addresses: list[int], held: Any, stream: int) -> None:
        self.repeat, self.frame, self.addresses, self.held, self.stream = repeat, frame, addresses, held, stream
        self._constants = dict(repeat.constants)

    def _has_own(self, step: Any) -> bool:
        """Whether a step is given arrays of CuPy as they are."""
        is_view = any(slot in self.repeat.prepared.views or slot in self._constants for slot in step.inputs)
        arrays = [] if is_view else [self.frame[slot] for slot in step.inputs]
        return bool(arrays) and all(getattr(cuda.source_of(each), "library", "") == "cupy" for each in arrays)

    def _lent(self, slot: int, library: str) -> Any:
        """What is in a slot: a number, or an array of a library in the memory of any other's."""
        repeat = self.repeat
        view = repeat.prepared.views.get(slot)
        base = slot if view is None else view.slot
        if base == repeat.plan.memory.arena_slot:
            held, address = self.held, self.held.pointer
        else:
            held, address = self._constants.get(base, self.frame[base]), self.addresses[base]
        if view is not None:
            address += view.offset
        else:
            source = cuda.source_of(held)
            if source is None or source.library == library:
                return held
        key = (slot, address, library, self.stream)
        known = repeat.borrowing.get(key)
        if known is None:
            if len(repeat.borrowing) >= MAX_LENT:
                repeat.borrowing.clear()
            form = replace(_form(held, view, repeat.device), pointer=address)
            known = repeat.borrowing[key] = cuda.lent_to_cupy(form) if library == "cupy" else self._in_fusec(form)
        return known

    def _in_fusec(self, form: cuda.DeviceArray) -> cuda.CudaArray:
        layout = cuda.DeviceLayout(form.shape, form.strides, form.dtype)
        made = cuda.borrowed(form.pointer, layout, self.repeat.device, form)
        made.stream = self.stream
        return made

    def run(self, step: Any) -> None:
        """Call the function on the slots of a call. Raises CallOnDevice, and what the function raises."""
        if not step.call.buffers:  # a look at values, for which devices do not wait
            return
        if step.call.kernels:
            self._call(step, "cupy" if self._has_own(step) else "fusec")
        elif self.repeat.source.library == "cupy":
            self._call(step, "cupy")
        else:
            with cuda.in_cupy(cuda.StreamOn(self.stream, self.repeat.device)):
                self._call(step, "cupy")
        for slot in step.releases:
            self.frame[slot] = None

    def _call(self, step: Any, library: str) -> None:
        """Call the function on arrays of a library."""
        call, operands = step.call, [self._lent(slot, library) for slot in step.inputs]
        try:
            found = call.function(*operands)
        except TypeError as problem:  # NumPy's, for a function that CuPy does not have
            if call.kernels:
                raise
            raise _refused(call, "CuPy does not have it for these arrays") from problem
        for target, each in zip(self.repeat.calls[step], found, strict=True):
            source = cuda.source_of(each)
            if source is None or source.library != library or not target.fits(each):
                raise _refused(call, "CuPy's result has another shape or dtype than NumPy's")
            self.frame[target.slot], self.addresses[target.slot] = self._as_planned(each, source, target, operands)

    def _as_planned(
        self, found: Any, source: cuda.ArrayLibrary, wanted: CallTarget, operands: Sequence[Any]
    ) -> tuple[Any, int]:
        """A result that has memory of its own, laid out as the plan says, and of the call's library if that is seen;
        and its address.
        """
        address, _ = source.read(found)
        is_apart = not any(each is found for each in operands) and cuda.is_whole(found)
        is_laid_out = found.strides == wanted.strides and address % cuda.VECTOR_BYTES == 0
        is_own = source.library == self.repeat.source.library
        if is_apart and is_laid_out and (is_own or wanted.slot not in self.repeat.shown):
            return found, address
        if is_apart and is_laid_out and source.library == "fusec" and self.repeat.source.library == "cupy":
            return cuda.lent_to_cupy(cuda.describe(found)), address
        made, address = self.repeat.source.maker(wanted.shape, wanted.order, wanted.row, self.repeat.device)()
        Planned.copier().run((found, made), None, CallOptions(stream=self.stream))
        return made, address


def _form(held: Any, view: SlotView | None, device: int) -> cuda.DeviceArray:
    """How an array lies in its memory, or a view of one."""
    if view is not None:
        row, shape, strides = dtypes.from_numpy(view.dtype), view.shape, view.strides
    else:
        source = cuda.source_of(held)
        look = None if source is None else source.look(held)
        assert source is not None, "an array of a library"
        assert look is not None, "an array on a device"
        (row, shape), strides = look, source.strides(held)
    assert row is not None, "kernels take known dtypes"
    return cuda.DeviceArray(0, tuple(shape), strides, row, device, False, None, None, None)


def _refused(call: LibraryCall, why: str) -> FusecError:
    return CallOnDevice(call.name, why).at(call.place)
