"""Values for the slots of a kernel, from the arrays and scalars of a call: what a runtime would bind."""

from collections.abc import Mapping
from math import prod

import numpy as np
from guarded import Guarded

from fusec.arguments.layouts import SMALL_STEPS, TILE
from fusec.base.dtypes import COMPLEX128
from fusec.base.kernel_abi import Kernel, Layout, Slot, Step
from fusec.ir.loops import Program


def broadcast_strides(array: np.ndarray, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in bytes of the array seen with `shape`."""
    return np.broadcast_to(array, shape).strides


def layout_of(
    program: Program,
    arrays: Mapping[str, np.ndarray],
    shape: tuple[int, ...],
    wide: bool = False,
    aligned: int = 16,
    ragged: bool = False,
) -> Layout:
    """The layout of a call whose axes are not merged; arrays are taken to be aligned as said."""
    steps, raw, gaps = [], [], []
    turned = set()
    for param in program.arrays:
        array = arrays[param.name]
        if param.raw:
            raw.append((param.name, (array.ndim, bool(array.flags.c_contiguous))))
            continue
        strides = broadcast_strides(array, shape or (1,))
        row = []
        for axis, stride in enumerate(strides):
            inner = axis == len(strides) - 1
            unit = stride == array.itemsize
            row.append(Step.UNIT if unit else Step.ZERO if stride == 0 and inner else Step.ANY)
        steps.append((param.name, tuple(row)))
        gaps += [(param.name, count) for count in SMALL_STEPS if strides[-1] == count * array.itemsize]
        turned |= {axis for axis, step in enumerate(row) if step is Step.UNIT and row[-1] is Step.ANY}
    tiled = bool(turned) and min(shape[axis] for axis in (*turned, -1)) >= TILE
    return Layout(
        max(len(shape), 1), tuple(steps), tuple(raw), True, wide, aligned, tiled=tiled, ragged=ragged, gaps=tuple(gaps)
    )


def value_of(
    slot: Slot, guarded: Mapping[str, Guarded], scalars: Mapping[str, object], shape: tuple[int, ...], program: Program
) -> bytes:
    """The bytes of one argument."""
    number: object
    match slot.kind:
        case "size":
            number = prod(shape)
        case "extent":
            number = (shape or (1,))[slot.axis]
        case "pointer":
            return guarded[slot.param].address.to_bytes(8, "little")
        case "stride":
            number = broadcast_strides(guarded[slot.param].array, shape or (1,))[slot.axis]
        case "raw_size":
            number = guarded[slot.param].array.size
        case "raw_extent":
            number = guarded[slot.param].array.shape[slot.axis]
        case "raw_stride":
            number = guarded[slot.param].array.strides[slot.axis]
        case "scalar":
            number = scalars[slot.param]
            declared = {param.name: param.dtype for param in program.params}[slot.param]
            if declared == COMPLEX128:
                return np.float64((complex(number).real, complex(number).imag)[slot.axis]).tobytes()
    return np.asarray(number).astype(slot.dtype.numpy).tobytes()


def encode(
    kernel: Kernel,
    program: Program,
    guarded: Mapping[str, Guarded],
    scalars: Mapping[str, object],
    shape: tuple[int, ...],
) -> list[bytes]:
    """The bytes of every argument, in the order of the slots."""
    return [value_of(slot, guarded, scalars, shape, program) for slot in kernel.slots]
