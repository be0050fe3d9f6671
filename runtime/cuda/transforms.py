"""Fourier transforms by cuFFT, called by pointer, on a stream, in memory that it is given.

A `TransformPlan` is what cuFFT prepares for arrays that lie in some way; it lives as long as somebody has it. One
thread at a time sets its stream and its memory and enqueues. Sizes are 64 bits wide. Nothing is divided by a size.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from functools import cache, lru_cache
from threading import Lock
from typing import Any, Literal, NamedTuple
from weakref import finalize

from fusec.errors.targets import CudaMathRefused
from fusec.runtime.cuda import driver
from fusec.runtime.cuda.libraries import math_library

# cufft.h: cufftType_t, cufftResult_t, and the directions.
_TYPES = {"R2C": (0x2A, 0x6A), "C2R": (0x2C, 0x6C), "C2C": (0x29, 0x69)}
_ENTRIES = {
    "R2C": ("cufftExecR2C", "cufftExecD2Z"), "C2R": ("cufftExecC2R", "cufftExecZ2D"),
    "C2C": ("cufftExecC2C", "cufftExecZ2Z"),
}  # fmt: skip
_FORWARD, _INVERSE = c_int(-1), c_int(1)
_NAMES = {
    1: "INVALID_PLAN", 2: "ALLOC_FAILED", 3: "INVALID_TYPE", 4: "INVALID_VALUE", 5: "INTERNAL_ERROR",
    6: "EXEC_FAILED", 7: "SETUP_FAILED", 8: "INVALID_SIZE", 9: "UNALIGNED_DATA", 0xB: "INVALID_DEVICE",
    0xD: "NO_WORKSPACE", 0xE: "NOT_IMPLEMENTED", 0x10: "NOT_SUPPORTED", 0x11: "MISSING_DEPENDENCY",
    0x12: "NVRTC_FAILURE", 0x13: "NVJITLINK_FAILURE", 0x14: "NVSHMEM_FAILURE",
}  # fmt: skip

MAX_PLANS = 256  # which have tables of roots in device memory
MOST_AXES = 3  # of one plan

Kind = Literal["C2C", "R2C", "C2R"]


class Placing(NamedTuple):
    """How transformed axes lie, in elements: step between neighbours along the innermost one, the extents that the
    axes have in memory, and the distance of one transform to the next.
    """

    step: int
    extents: tuple[int, ...]
    distance: int


class TransformForm(NamedTuple):
    """Transforms of so many rows, planes or boxes at once. sizes: of the transform. wide: of float64."""

    kind: Kind
    wide: bool
    sizes: tuple[int, ...]
    several: int
    source: Placing
    target: Placing


@cache
def library() -> Any:
    """CuFFT. Raises CudaMathMissing, CudaExtraMissing."""
    return math_library("cufft")


class TransformPlan:
    """What cuFFT prepares on a device. nbytes: of the memory that it works in."""

    def __init__(self, form: TransformForm, device: int) -> None:
        self.form, self.device = form, device
        self._lock = Lock()
        self._set: tuple[int, int] | None = None  # stream, and address of the memory to work in
        entries, made, nbytes = library(), c_int(), c_size_t()
        size = c_longlong * len(form.sizes)
        with driver.on_device(device):
            _check(entries.cufftCreate(byref(made)), "start")
            finalize(self, _free, made, device).atexit = False
            _check(entries.cufftSetAutoAllocation(made, c_int(0)), "leave memory to its caller")
            source, target = (
                (size(*each.extents), c_longlong(each.step), c_longlong(each.distance))
                for each in (form.source, form.target)
            )
            _check(
                entries.cufftMakePlanMany64(
                    made, c_int(len(form.sizes)), size(*form.sizes), *source, *target,
                    c_int(_TYPES[form.kind][form.wide]), c_longlong(form.several), byref(nbytes),
                ),
                f"plan a transform of {' x '.join(map(str, form.sizes))}",
            )  # fmt: skip
        self._handle, self.nbytes = made, nbytes.value
        self._call = getattr(entries, _ENTRIES[form.kind][form.wide])

    def enqueue(self, pairs: Sequence[tuple[int, int]], is_forward: bool, workspace: int, stream: int) -> None:
        """Enqueue transforms from and to addresses, while the device is current. Raises CudaMathRefused."""
        direction = (_FORWARD if is_forward else _INVERSE,) if self.form.kind == "C2C" else ()
        with self._lock:
            if self._set != (stream, workspace):
                entries, known, self._set = library(), self._set, None
                if known is None or known[0] != stream:
                    _check(entries.cufftSetStream(self._handle, c_void_p(stream)), "use a stream")
                if self.nbytes:
                    _check(entries.cufftSetWorkArea(self._handle, c_void_p(workspace)), "use memory")
                self._set = stream, workspace
            for source, target in pairs:
                status = self._call(self._handle, c_void_p(source), c_void_p(target), *direction)
                if status:
                    _check(status, f"transform {' x '.join(map(str, self.form.sizes))}")


def _free(handle: c_int, device: int) -> None:
    with driver.on_device(device):
        library().cufftDestroy(handle)


class Transform(NamedTuple):
    """Transforms of one or several places in memory, by one plan. The first address is that of memory to work in."""

    plan: TransformPlan
    is_forward: bool

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue them. addresses: behind the first one, of each transform where it reads and where it writes.

        Raises CudaMathRefused.
        """
        if not driver.is_current(device):
            with driver.on_device(device):
                return self.run(addresses, device, stream)
        pairs = [*zip(addresses[1::2], addresses[2::2], strict=True)]
        return self.plan.enqueue(pairs, self.is_forward, addresses[0], stream)


@lru_cache(MAX_PLANS)
def transform_plan(form: TransformForm, device: int) -> TransformPlan:
    """The plan for a form. Raises CudaMathMissing, CudaMathRefused."""
    return TransformPlan(form, device)


def _check(status: int, what: str) -> None:
    if status:
        raise CudaMathRefused("cuFFT", what, f"CUFFT_{_NAMES.get(status, status)}").at()
