"""How the slots of a kernel's code are filled for a call: constants once, addresses and numbers each time."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import prod

from fusec.arguments.layouts import Shape, View
from fusec.arguments.scalars import encode
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel, Slot
from fusec.base.recorded import words_of
from fusec.base.records import dataclass
from fusec.kinds.launch import Launch


@dataclass(frozen=True)
class Arguments:
    """The slots of a kernel for one combination of shapes and strides; arrays and numbers go by their names."""

    template: array[int]  # all slots, with what no call changes in place
    pointers: tuple[tuple[int, str, int], ...]  # slot, name, offset in bytes
    scalars: tuple[tuple[int, str, DType, int], ...]  # slot, name, dtype, which half of a complex128

    def fill(self, addresses: Mapping[str, int], values: Mapping[str, object], kernel: str) -> array[int]:
        """The slots of one call. Raises an error if a number does not fit its parameter."""
        slots = self.template[:]
        for slot, name, offset in self.pointers:
            slots[slot] = addresses[name] + offset
        for slot, name, dtype, half in self.scalars:
            slots[slot] = encode(values[name], dtype, name, kernel)[half]
        return slots


def arrange(
    kernel: Kernel, launch: Launch, extents: Shape, raw: Mapping[str, View], known: Mapping[str, int]
) -> Arguments:
    """Match the slots of a kernel with its launch; arrays go by their names among all launches of a call.

    extents: of the kernel's own space. raw: the arrays that the texts address. known: numbers that no call changes.
    """
    walks = {name: (strides, offset) for name, strides, offset in launch.operands}
    arrays = dict(launch.arrays)
    template, pointers, scalars = list[int](), [], []
    for position, slot in enumerate(kernel.slots):
        template.append(_constant(slot, extents, walks, raw, known))
        if slot.kind == "pointer":
            offset = walks[slot.param][1] if slot.param in walks else 0
            pointers.append((position, arrays.get(slot.param, slot.param), offset))
        elif slot.kind == "scalar" and slot.param not in known:
            scalars.append((position, slot.param, slot.dtype, slot.axis if slot.dtype.bits == 128 else 0))
    return Arguments(words_of(template), tuple(pointers), tuple(scalars))


def _constant(
    slot: Slot,
    extents: Shape,
    walks: Mapping[str, tuple[Shape, int]],
    raw: Mapping[str, View],
    known: Mapping[str, int],
) -> int:
    match slot.kind:
        case "size":
            return prod(extents)
        case "extent":
            return extents[slot.axis]
        case "stride":
            return walks[slot.param][0][slot.axis]
        case "raw_size":
            return raw[slot.param].size
        case "raw_extent":
            return raw[slot.param].shape[slot.axis]
        case "raw_stride":
            return raw[slot.param].strides[slot.axis]
        case "scalar":
            return known.get(slot.param, 0)
        case "pointer":
            return 0
