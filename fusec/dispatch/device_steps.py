"""The kernels of a call on a device in order, and the memory between them, for reductions and scans."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from fusec.arguments.layouts import Shape, View
from fusec.base.dtypes import UINT8, DType
from fusec.base.records import dataclass
from fusec.kinds.slots import Arguments
from fusec.runtime import cuda
from fusec.runtime.cuda import CompiledModule, DeviceArray

ALIGNED = 256  # bytes, as the driver's own memory


@dataclass(frozen=True)
class DeviceLaunch:
    """One kernel, with its arguments."""

    module: CompiledModule
    arguments: Arguments
    launcher: cuda.Launcher
    threads: int  # of its launch


@dataclass(frozen=True)
class Steps:
    """The kernels of a call in order."""

    order: tuple[DeviceLaunch, ...]
    nbytes: int  # of the memory between them
    offsets: Mapping[str, int]  # where arrays lie there, in bytes, by their names among all kernels

    def run(
        self, addresses: Mapping[str, int], values: Mapping[str, object], name: str, device: int, stream: int
    ) -> None:
        """Enqueue all kernels; memory between them comes from the device's pool and returns after the last of them.

        addresses: of arrays. values: numbers. name: of the kernel, for messages.
        """
        between = cuda.empty((self.nbytes,), UINT8, device=device, stream=stream) if self.nbytes else None
        start = 0 if between is None else between.pointer
        known = {**addresses, **{array: start + offset for array, offset in self.offsets.items()}}
        for step in self.order:
            words = step.arguments.fill(known, values, name)
            try:
                step.launcher(words, stream)
            except Exception:  # another device is current, or the driver refuses: the long way does it, or says why
                cuda.launch(step.module, words, step.threads, cuda.StreamOn(stream, device))


def room_of(shape: Shape, dtype: DType) -> int:
    """Bytes that an array takes in memory between kernels."""
    return -(-prod(shape) * dtype.nbytes // ALIGNED) * ALIGNED


def view_of(array: DeviceArray) -> View:
    """The array as memory."""
    return View(array.pointer, array.shape, array.strides, array.dtype)
