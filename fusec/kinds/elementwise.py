"""How an elementwise kernel walks its operands, and how the slots of its code are filled for a call."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from fusec.arguments import layouts
from fusec.arguments.layouts import MergedSpace, Shape, View
from fusec.arguments.scalars import encode
from fusec.arguments.signature import Parameter
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel, Layout, Slot
from fusec.base.records import dataclass


@dataclass(frozen=True)
class Space:
    """The iteration space of a call and how its operands lie in it.

    shape: the broadcast shape. operands: the non-raw arrays, inputs first. raw: the arrays the body addresses itself.
    """

    shape: Shape
    nest: MergedSpace
    operands: tuple[tuple[Parameter, View], ...]
    raw: tuple[tuple[Parameter, View], ...]
    layout: Layout

    @property
    def size(self) -> int:
        """The number of elements that the operation runs for."""
        size = 1
        for extent in self.nest.extents:
            size *= extent
        return size


def make_space(
    shape: Shape,
    views: Sequence[tuple[Parameter, View]],
    *,
    uses_index: bool,
    reduce_dims: bool,
    streaming: bool = False,
    vectors: bool = False,
) -> Space:
    """Merge axes, choose the order of the walk, and classify the strides.

    uses_index: the body asks for its position, so the walk is in C order of `shape`. reduce_dims: axes may be merged.
    """
    operands = tuple((param, view) for param, view in views if not param.raw)
    raw = tuple((param, view) for param, view in views if param.raw)
    strides = [layouts.broadcast_strides(view, shape) for _, view in operands]
    nest = layouts.nest(shape, strides, reorder=not uses_index, merge=reduce_dims or not uses_index)
    named, named_raw = ([(param.name, view) for param, view in group] for group in (operands, raw))
    layout = layouts.make_layout(nest, named, named_raw, c_order=uses_index, streaming=streaming, vectors=vectors)
    return Space(shape, nest, operands, raw, layout)


@dataclass(frozen=True)
class Arguments:
    """How the slots of a kernel are filled for a space: constants once, addresses and numbers at every call.

    template: all slots, with extents, strides and sizes in place. pointers: (slot, argument, offset in bytes).
    scalars: (slot, argument, dtype, which half of a complex128).
    """

    template: array[int]
    pointers: tuple[tuple[int, int, int], ...]
    scalars: tuple[tuple[int, int, DType, int], ...]

    def fill(
        self, addresses: Sequence[int], values: Sequence[object], params: Sequence[Parameter], kernel: str
    ) -> array[int]:
        """The slots of one call. Raises an error if a number does not fit its parameter."""
        slots = self.template[:]
        for slot, argument, offset in self.pointers:
            slots[slot] = addresses[argument] + offset
        for slot, argument, dtype, half in self.scalars:
            slots[slot] = encode(values[argument], dtype, params[argument].name, kernel)[half]
        return slots


def arrange(kernel: Kernel, space: Space, params: Sequence[Parameter]) -> Arguments:
    """Match the slots of a kernel with the space of a call; `params` are the kernel's in argument order."""
    index = {param.name: position for position, param in enumerate(params)}
    walks = {
        param.name: (strides, offset)
        for (param, _), strides, offset in zip(space.operands, space.nest.strides, space.nest.offsets, strict=True)
    }
    raw = {param.name: view for param, view in space.raw}
    template, pointers, scalars = array("q"), [], []
    for position, slot in enumerate(kernel.slots):
        template.append(_constant(slot, space, walks, raw))
        if slot.kind == "pointer":
            offset = walks[slot.param][1] if slot.param in walks else 0
            pointers.append((position, index[slot.param], offset))
        elif slot.kind == "scalar":
            scalars.append((position, index[slot.param], slot.dtype, slot.axis if slot.dtype.bits == 128 else 0))
    return Arguments(template, tuple(pointers), tuple(scalars))


def _constant(slot: Slot, space: Space, walks: Mapping[str, tuple[Shape, int]], raw: Mapping[str, View]) -> int:
    match slot.kind:
        case "size":
            return space.size
        case "extent":
            return space.nest.extents[slot.axis]
        case "stride":
            return walks[slot.param][0][slot.axis]
        case "raw_size":
            return raw[slot.param].size
        case "raw_extent":
            return raw[slot.param].shape[slot.axis]
        case "raw_stride":
            return raw[slot.param].strides[slot.axis]
        case "pointer" | "scalar":
            return 0
